"""Backups at intervals: when the next one is due, and the loop that makes them until it is stopped.

    due     EVERY after the newest backup was taken; at once if there is none
    failed  again after RETRY_S, or EVERY if that is shorter

Invariants:
    I1. No exception of a run ends the loop: the exception is logged and counted, and the next run is planned.
    I2. A restart of the loop makes no backup before it is due, because the newest backup's time is in the place itself.
    I3. A clock that was set back delays the next run by EVERY at most.

Times are seconds since 1970.  Knows nothing of stores and places: a run is a function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from columnar.errors import ColumnarError

_log = logging.getLogger(__name__)

RETRY_S: Final = 600.0


class Stopped(Exception):
    """The loop was stopped while a backup ran, which leaves nothing that looks whole."""


class Stop(Protocol):
    def wait_for(self, seconds: float) -> bool:
        """Wait until the loop is to stop, for ``seconds`` at most; return whether it is."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Figures of the runs so far."""

    every_s: float = 0.0  # the interval
    runs: int = 0
    failures: int = 0
    is_failed: bool = False  # the last run
    success_s: float = 0.0  # when the newest backup was taken; 0: there is none
    next_run_s: float = 0.0
    bytes: int = 0  # of the newest backup
    copied_bytes: int = 0
    duration_s: float = 0.0


def due_s(every_s: float, figures: RunFigures, now_s: float) -> float:
    """Return when the next run is due; ``now_s`` is the end of the last one."""
    if figures.is_failed:
        return now_s + min(every_s, RETRY_S)
    return min(max(figures.success_s + every_s, now_s), now_s + every_s)  # I3


class BackupLoop:
    """Owned by one thread."""

    def __init__(
        self,
        every_s: float,
        run: Callable[[], dict[str, object]],
        newest_s: Callable[[], float],
        report: Callable[[RunFigures], None],
        now: Callable[[], float],
    ) -> None:
        """``run`` makes a backup and returns its facts; ``newest_s`` tells when the newest was taken, or 0."""
        self._every_s = every_s
        self._run = run
        self._newest_s = newest_s
        self._report = report
        self._now = now
        self.figures = RunFigures(every_s=every_s)

    def run_until(self, stop: Stop) -> bool:
        """Make backups until ``stop``; return whether the last one succeeded."""
        self._survive("the newest backup cannot be read", self._read_newest)
        while True:
            due = due_s(self._every_s, self.figures, self._now())
            self.figures = replace(self.figures, next_run_s=due)
            self._survive("the figures cannot be written", lambda: self._report(self.figures))
            if stop.wait_for(max(0.0, due - self._now())):
                return not self.figures.is_failed
            try:
                self._make_backup()
            except Stopped:
                _log.warning("a backup was stopped before its end; the next one goes on from there")
                return False

    def _read_newest(self) -> None:
        self.figures = replace(self.figures, success_s=self._newest_s())

    def _make_backup(self) -> None:
        began_s = self._now()
        self.figures = replace(self.figures, runs=self.figures.runs + 1)
        is_failed = not self._survive("a backup failed", lambda: self._note(self._run(), began_s))
        self.figures = replace(self.figures, is_failed=is_failed, failures=self.figures.failures + is_failed)

    def _note(self, facts: dict[str, object], began_s: float) -> None:
        self.figures = replace(
            self.figures,
            success_s=began_s,
            duration_s=self._now() - began_s,
            bytes=_number(facts, "bytes"),
            copied_bytes=_number(facts, "copied_bytes"),
        )

    def _survive(self, what: str, work: Callable[[], None]) -> bool:
        """Return whether ``work`` succeeded; an exception is logged (I1)."""
        try:
            work()
        except Stopped:
            raise
        except ColumnarError as error:
            _log.error("%s: %s", what, error.text)
        except Exception as error:  # noqa: BLE001 - the loop survives whatever one run raises
            is_known = hasattr(error, "message")  # of a command, whose text says all
            _log.error("%s: %s", what, getattr(error, "message", error), exc_info=None if is_known else error)
        else:
            return True
        return False


def _number(facts: dict[str, object], name: str) -> int:
    found = facts.get(name)
    return found if isinstance(found, int) else 0


def metrics_text(figures: RunFigures) -> str:
    """Return the figures in Prometheus' text format, for the textfile collector of its node exporter."""
    lines = []
    for name, kind, value, meaning in (
        ("runs_total", "counter", figures.runs, "Backups begun since the start of the loop."),
        ("failures_total", "counter", figures.failures, "Backups that failed since the start of the loop."),
        ("last_run_failed", "gauge", int(figures.is_failed), "Whether the last backup failed."),
        ("last_success_timestamp_seconds", "gauge", figures.success_s, "When the newest backup was begun; 0: never."),
        ("interval_seconds", "gauge", figures.every_s, "Interval of the loop."),
        ("next_run_timestamp_seconds", "gauge", figures.next_run_s, "When the next backup is due."),
        ("last_bytes", "gauge", figures.bytes, "Size of the last backup of this loop."),
        ("last_copied_bytes", "gauge", figures.copied_bytes, "Bytes that the last backup of this loop sent."),
        ("last_duration_seconds", "gauge", figures.duration_s, "Duration of the last backup of this loop."),
    ):
        full = f"columnar_backup_{name}"
        lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}", f"{full} {value:.15g}"]
    return "\n".join(lines) + "\n"

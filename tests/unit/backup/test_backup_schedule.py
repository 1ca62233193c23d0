"""The loop of backups: when runs are due, and that no exception ends it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import click
import pytest

from columnar.backup.schedule import RETRY_S, BackupLoop, RunFigures, Stopped, due_s, metrics_text
from columnar.errors import HostError

HOUR = 3_600.0


class Clock:
    """Time that passes only while the loop waits; the stop comes after so many waits."""

    def __init__(self, waits: int) -> None:
        self.now_s = 1_000_000.0
        self.waits = waits
        self.waited: list[float] = []

    def now(self) -> float:
        return self.now_s

    def wait_for(self, seconds: float) -> bool:
        self.waits -= 1
        if self.waits < 0:
            return True
        self.waited.append(seconds)
        self.now_s += seconds
        return False


def looped(
    clock: Clock, run: Callable[[], dict[str, object]], newest_s: float = 0.0, every_s: float = 6 * HOUR
) -> tuple[bool, BackupLoop, list[RunFigures]]:
    reported: list[RunFigures] = []
    loop = BackupLoop(every_s, run, lambda: newest_s, lambda figures: reported.append(figures), clock.now)
    return loop.run_until(clock), loop, reported


def test_the_first_run_is_at_once_and_later_ones_after_the_interval() -> None:
    clock = Clock(3)
    succeeded, loop, _ = looped(clock, lambda: {"bytes": 10, "copied_bytes": 4})
    assert succeeded
    assert clock.waited == [0, 6 * HOUR, 6 * HOUR]
    assert (loop.figures.runs, loop.figures.failures, loop.figures.bytes, loop.figures.copied_bytes) == (3, 0, 10, 4)


def test_a_restart_makes_no_backup_before_it_is_due() -> None:
    clock = Clock(1)
    looped(clock, dict, newest_s=clock.now_s - HOUR)
    assert clock.waited == [5 * HOUR]


def test_a_backup_from_the_future_delays_by_one_interval() -> None:
    clock = Clock(1)
    looped(clock, dict, newest_s=clock.now_s + 1_000 * HOUR)
    assert clock.waited == [6 * HOUR]


@pytest.mark.parametrize(
    "error",
    [HostError("the bucket is gone"), RuntimeError("no idea"), OSError(5, "broken"), click.ClickException("no")],
)
def test_a_failed_run_is_logged_and_tried_again_sooner(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(3)
    outcomes: list[Exception | None] = [error, error, None]

    def run() -> dict[str, object]:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return {}

    with caplog.at_level(logging.ERROR):
        succeeded, loop, _ = looped(clock, run)
    assert succeeded
    assert clock.waited == [0, RETRY_S, RETRY_S]
    assert (loop.figures.runs, loop.figures.failures, loop.figures.is_failed) == (3, 2, False)
    assert [one.message.startswith("a backup failed: ") for one in caplog.records] == [True, True]
    assert due_s(120, RunFigures(is_failed=True), 50) == 170


def test_figures_that_cannot_be_read_or_written_end_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_any: object) -> float:
        raise OSError(28, "No space left on device")

    clock = Clock(2)
    assert BackupLoop(HOUR, dict, broken, broken, clock.now).run_until(clock)
    assert clock.waited == [0, HOUR]
    assert len(caplog.records) == 4


def test_a_stop_amid_a_run_ends_the_loop() -> None:
    def stopped() -> dict[str, object]:
        raise Stopped

    succeeded, loop, _ = looped(Clock(5), stopped)
    assert not succeeded
    assert loop.figures.runs == 1


def test_a_last_run_that_failed_is_told() -> None:
    def failing() -> dict[str, object]:
        raise HostError("no")

    succeeded, _, reported = looped(Clock(1), failing)
    assert not succeeded
    text = metrics_text(reported[-1])
    assert "columnar_backup_last_run_failed 1\n" in text
    assert f"columnar_backup_interval_seconds {6 * HOUR:g}\n" in text
    assert "# TYPE columnar_backup_failures_total counter\ncolumnar_backup_failures_total 1\n" in text
    assert "columnar_backup_next_run_timestamp_seconds 1000600\n" in text

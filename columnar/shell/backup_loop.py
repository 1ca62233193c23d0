"""The loop of ``columnar backup --every``: signals, the log, and a file of metrics."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from columnar.backup.repository import Repository
from columnar.backup.schedule import BackupLoop, RunFigures, Stopped, metrics_text
from columnar.errors import IllegalArgument
from columnar.runtime.log_lines import log_to_stderr
from columnar.shell.text import seconds_of
from columnar.storage.durable_files import replace_file

SHORTEST_S: Final = 60  # between two backups: each makes copies of all regions


def interval_of(text: str) -> int:
    """Parse the value of ``--every`` into seconds.  Raises IllegalArgument."""
    found = seconds_of(text)
    if found < SHORTEST_S:
        raise IllegalArgument(f"--every takes {SHORTEST_S} seconds at least, not {text}")
    return found


class StopSignal:
    """SIGTERM and SIGINT of this process; a second one ends the process at once."""

    def __init__(self, descriptors: tuple[int, int]) -> None:
        """Take the two ends of a pipe: a handler of a signal may only write to it."""
        self._reading, self._writing = descriptors
        self._is_set = False

    def wait_for(self, seconds: float) -> bool:
        if not self._is_set:
            select.select([self._reading], [], [], seconds)
        return self._is_set

    def note(self, number: int, _frame: object) -> None:
        self._is_set = True
        os.write(self._writing, b"x")
        signal.signal(number, signal.SIG_DFL)

    def check(self) -> None:
        """Raise Stopped if a signal came."""
        if self._is_set:
            raise Stopped


@contextmanager
def stop_signals() -> Iterator[StopSignal]:
    """Yield the signals of this process until the block ends."""
    descriptors = os.pipe()
    stop = StopSignal(descriptors)
    before = {number: signal.signal(number, stop.note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in descriptors:
            os.close(descriptor)


def run_backups(
    every_s: float,
    repository: Callable[[], Repository],
    make_backup: Callable[[Callable[[], None]], dict[str, object]],
    metrics_file: str | None,
) -> bool:
    """Make backups until a signal comes; return whether the last one succeeded.

    ``make_backup`` gets a function that it calls after each piece, and that raises Stopped.
    """
    log_to_stderr("INFO")

    def newest_s() -> float:
        found = repository().newest()
        return 0.0 if found is None else found.taken_ms / 1_000

    def report(figures: RunFigures) -> None:
        if metrics_file is not None:
            replace_file(metrics_file, metrics_text(figures).encode(), sync=False)

    with stop_signals() as stop:
        return BackupLoop(every_s, lambda: make_backup(stop.check), newest_s, report, time.time).run_until(stop)

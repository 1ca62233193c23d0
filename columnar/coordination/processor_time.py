"""Processor time of another process' interpreter: whether a silent process works, or is stopped.

A step that keeps the interpreter lock silences every thread of Python in its process, and burns one processor.  A
process that is stopped, waits for a disk, or is deadlocked burns none.  Three things burn some without being a sign
of life, so ``works`` counts threads one by one:

    waiting for the lock    wakes every 0.1 ms (``process_tuning``) and uses a tenth of a processor, 16 us at a time
    the engine's threads    merge files on and on, whatever becomes of the interpreter: they are not counted
    a moment of work        a clock of 10 ms cannot tell it from none

Only Linux has these numbers; on other systems ``threads_of`` returns None, and a silent process counts as one that is
stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

_TICK_MS: Final = 1000 / os.sysconf("SC_CLK_TCK")
_WORKED_MS: Final = 20  # of one thread between two polls: two ticks of the usual clock
_BETWEEN_WAITS_MS: Final = 0.1  # of processor time: six times what waiting for the lock has
_ENGINE: Final = "rocksdb:"
POLL_S: Final = 1.0


class ThreadTime(NamedTuple):
    used_ms: float  # of a processor
    waits: int  # how often it gave the processor up by itself


def threads_of(pid: int) -> dict[int, ThreadTime] | None:
    """Return the threads of a process, by number, without the engine's; None: unknown, or the process has ended."""
    folder = f"/proc/{pid}/task"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return None
    found: dict[int, ThreadTime] = {}
    for number in numbers:
        try:
            with open(f"{folder}/{number}/stat", encoding="utf-8", errors="replace") as file:
                name, _, numbers_of_it = file.read().partition("(")[2].rpartition(")")
            with open(f"{folder}/{number}/status", encoding="utf-8", errors="replace") as file:
                waits = next(line for line in file if line.startswith("voluntary_ctxt_switches:"))
        except (OSError, StopIteration):
            continue  # the thread has ended
        if not name.startswith(_ENGINE):
            fields = numbers_of_it.split()
            used = int(fields[11]) + int(fields[12])  # utime, stime: proc(5) counts from the number before the name
            found[int(number)] = ThreadTime(used * _TICK_MS, int(waits.split()[1]))
    return found


def works(before: Mapping[int, ThreadTime] | None, now: Mapping[int, ThreadTime] | None) -> bool:
    """Tell whether a thread has worked between two polls of the same process."""
    if before is None or now is None:
        return False
    for number, thread in now.items():
        earlier = before.get(number, ThreadTime(0.0, 0))
        used_ms, waits = thread.used_ms - earlier.used_ms, thread.waits - earlier.waits
        if used_ms >= _WORKED_MS and used_ms >= waits * _BETWEEN_WAITS_MS:
            return True
    return False


class ProcessorWatch:
    """The threads of one process as they were at the last poll."""

    def __init__(self, pid: int, threads: Callable[[int], dict[int, ThreadTime] | None] = threads_of) -> None:
        self._pid = pid
        self._threads = threads
        self._seen: dict[int, ThreadTime] | None = None
        self._seen_s = 0.0

    def has_worked(self, now_s: float) -> bool:
        """Tell whether it has worked since the last poll; a poll older than POLL_S is ignored."""
        before = self._seen if now_s - self._seen_s <= POLL_S else None
        self._seen, self._seen_s = self._threads(self._pid), now_s
        return works(before, self._seen)

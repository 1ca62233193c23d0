"""(pure) Functions that blocked the leading thread, and therefore run in threads of their own for now.

    quick --blocks--> aside for TRIAL_S --time--> on trial, one call in the leader --quick--> quick
                        ^                            |
                        +-- blocks: twice as long ---+

A long call is no proof that its function blocks: next to calls that compute, each call waits for the interpreter.
Functions that compute delay each other when they are put aside, and all of their calls look long.  So a function
is tried in the leader from time to time, and one quick call there ends its time aside.

Knows nothing of threads and clocks.
"""

from __future__ import annotations

from typing import Final

TRIAL_S: Final = 0.1
LONGEST_S: Final = 10.0
_NEVER: Final = float("inf")


class BlockingFunctions:
    def __init__(self) -> None:
        self._aside: dict[str, list[float]] = {}  # function: when its trial is, and how long it waited for that

    def __contains__(self, function: str) -> bool:
        return function in self._aside

    def note_blocking(self, function: str, now_s: float) -> None:
        """Put the function aside, because a call of it blocked the leader."""
        entry = self._aside.get(function)
        pause_s = TRIAL_S if entry is None else min(LONGEST_S, 2 * entry[1])
        self._aside[function] = [now_s + pause_s, pause_s]

    def runs_aside(self, function: str, now_s: float) -> bool:
        """Return whether its next call runs aside; False also for a trial, which begins now."""
        entry = self._aside.get(function)
        if entry is None or now_s >= entry[0]:
            if entry is not None:
                entry[0] = _NEVER  # until it is over: other calls of it run aside meanwhile
            return False
        return True

    def was_quick(self, function: str) -> None:
        self._aside.pop(function, None)

"""A callback of the loop that is planned repeatedly, at most once at any time, and survives its exceptions.

    idle --soon, after--> planned --its time--> runs --soon, after--> planned
                                                     --returns------> idle
                                                     --raises-------> planned, after a growing pause

Invariants:
    I1. The step is planned at most once at any time; only ``is_planned`` tells whether it is.
    I2. A step that raised is reported (``faults``) and runs again, because its work is still to be done.

Loops that plan their next step use this class: with a flag in each loop, a flag left set by an exception would stop its
loop for ever.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from columnar.runtime.faults import FAULTS, UNEXPECTED

FIRST_PAUSE_S: Final = 0.01
LONGEST_PAUSE_S: Final = 5.0
_DOUBLINGS: Final = 12  # more than are needed to reach the longest pause


def pause_after(failures: int) -> float:
    """Return the pause in seconds after ``failures`` in a row: 0.01, 0.02, 0.04 ..., at most 5."""
    return float(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, _DOUBLINGS)))


class PlannedStep:
    def __init__(self, name: str, step: Callable[[], object]) -> None:
        """Pass ``name``, under which exceptions are reported (``Faults.met``)."""
        self._name = name
        self._step = step
        self._handle: asyncio.Handle | None = None
        self._failures = 0  # in a row

    @property
    def is_planned(self) -> bool:
        return self._handle is not None

    def soon(self) -> None:
        """Plan the step for the next loop iteration, unless it is planned already."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._run)

    def after(self, seconds: float) -> None:
        """Plan the step to run in ``seconds``, unless it is planned already, for any time."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(seconds, self._run)

    def now(self) -> None:
        """Run the step now; if it was planned, that plan is cancelled."""
        self.cancel()
        self._run()

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _run(self) -> None:
        self._handle = None
        try:
            self._step()
        except UNEXPECTED as error:  # a loop of the server: I2
            self._failures += 1
            self.after(pause_after(self._failures))
            FAULTS.met(self._name, error)
            return
        if self._failures:
            self._failures = 0
            FAULTS.went_well(self._name)

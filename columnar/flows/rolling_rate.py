"""(pure) The rate of events over the last RATE_S seconds, in a few numbers: counts of two windows.

The events of the window before the present one count by the part of it that is still within RATE_S, as if they were
spread evenly.
"""

from __future__ import annotations

from typing import Final

RATE_S: Final = 60.0


class RollingRate:
    __slots__ = ("_before", "_began_s", "_count", "_since_s")

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s  # constant
        self._began_s = now_s  # of the present window
        self._count = 0  # in the present window
        self._before = 0  # in the window before

    def add_events(self, count: int, now_s: float) -> None:
        self._pass_windows(now_s)
        self._count += count

    def per_s(self, now_s: float) -> float:
        """Return events a second over the last RATE_S, or since the beginning, but over 1 s at least."""
        self._pass_windows(now_s)
        known_s = now_s - self._since_s
        if known_s < RATE_S:
            return self._count / max(1.0, known_s)
        left = 1.0 - max(0.0, now_s - self._began_s) / RATE_S  # of the window before
        return (self._before * left + self._count) / RATE_S

    def _pass_windows(self, now_s: float) -> None:
        passed = int((now_s - self._began_s) // RATE_S)
        if passed > 0:  # a clock that was set back is waited for
            self._before = self._count if passed == 1 else 0
            self._count = 0
            self._began_s += passed * RATE_S

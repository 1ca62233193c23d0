"""(pure) Places in the worker: how many calls of a trigger may be there at a time.

At least as many as run side by side.  The worker has more of a trigger whose calls are quick: what is there waits less
than PIPELINE_S for its turn, and the worker never waits for the store.
"""

from __future__ import annotations

from typing import Final

from columnar.triggers.frames import PLACES

PIPELINE_S: Final = 0.005
_WEIGHT: Final = 1 / 16  # of the last call in the mean


class Places:
    def __init__(self) -> None:
        self._taken: dict[str, int] = {}  # by trigger, where any are
        self._mean_s: dict[str, float] = {}  # of a slice

    def has_room(self, trigger: str, side_by_side: int) -> bool:
        taken = self._taken.get(trigger, 0)
        return taken < side_by_side or taken < self._quick(trigger)

    def _quick(self, trigger: str) -> int:
        mean_s = self._mean_s.get(trigger)
        return 0 if mean_s is None else min(PLACES, int(PIPELINE_S / max(mean_s, 1e-6)))

    def take(self, trigger: str) -> None:
        self._taken[trigger] = self._taken.get(trigger, 0) + 1

    def give_back(self, trigger: str) -> None:
        left = self._taken[trigger] - 1
        if left:
            self._taken[trigger] = left
        else:
            del self._taken[trigger]

    def used(self, trigger: str, seconds: float) -> None:
        """A slice of a call took so long."""
        mean_s = self._mean_s.get(trigger, PIPELINE_S)
        self._mean_s[trigger] = mean_s + (seconds - mean_s) * _WEIGHT

    def forget(self, trigger: str) -> None:
        """It is removed; calls of it may still be there."""
        self._mean_s.pop(trigger, None)

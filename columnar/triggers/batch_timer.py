"""(pure) When a batch is due: it is full, or its first change has waited long enough (linger).

Changes are counted as they are read from the log, with the time of the read, and leave in the order of their arrival.
A change that is delivered again (after a failure, or a pause) is not counted: it makes the batch due at once, and may
do so for later changes.  So a change never waits longer than it should, and a batch may be smaller than it could.

Knows nothing of changes and clocks.
"""

from __future__ import annotations

from collections import deque


class BatchTimer:
    def __init__(self, most: int, within_s: float) -> None:
        self._most = most  # changes of a full batch
        self._within_s = within_s
        self._came: deque[list[float]] = deque()  # when, and how many of those are still waiting; oldest first
        self._is_urgent = False

    def came(self, count: int, now_s: float) -> None:
        """Count changes that were read."""
        self._came.append([now_s, float(count)])

    def came_again(self) -> None:
        self._is_urgent = True

    def took(self, count: int) -> None:
        """Remove changes that are delivered, or left to another consumer."""
        self._is_urgent = False
        while count and self._came:
            gone = min(count, int(self._came[0][1]))
            self._came[0][1] -= gone
            count -= gone
            if not self._came[0][1]:
                self._came.popleft()

    def is_due(self, waiting: int, now_s: float) -> bool:
        """``waiting``: changes that a batch could have now."""
        due_s = self.due_s()
        return self._is_urgent or waiting >= self._most or due_s is None or due_s <= now_s

    def due_s(self) -> float | None:
        """Return when the batch is due at the latest; None: no change that was read waits."""
        return self._came[0][0] + self._within_s if self._came else None

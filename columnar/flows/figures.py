"""Figures of followers: deliveries, failed attempts, durations of runs, and the time of the last delivery.

Figures count from the start of the process.  Owned by the loop; the time is an argument.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from columnar.flows.follower_name import FollowerName
from columnar.model.histogram import Histogram

RATE_S: Final = 60  # the rate is the mean over this many seconds


class FollowerFigures:
    def __init__(self, now_s: float) -> None:
        self.delivered = 0
        self.failed = 0  # attempts
        self.runs = Histogram()
        self._last_s: float | None = None
        self._since_s = now_s
        self._by_second: deque[tuple[int, int]] = deque()  # second and deliveries in it; RATE_S at most

    def delivery(self, now_s: float, changes: int = 1) -> None:
        self.delivered += changes
        self._last_s = now_s
        second = int(now_s)
        if self._by_second and self._by_second[-1][0] == second:
            self._by_second[-1] = (second, self._by_second[-1][1] + changes)
        else:
            self._by_second.append((second, changes))
            self._forget(now_s)

    def note_failed(self) -> None:
        """Count an attempt that failed."""
        self.failed += 1

    def _forget(self, now_s: float) -> None:
        while self._by_second and self._by_second[0][0] <= now_s - RATE_S:
            self._by_second.popleft()

    def rate_per_s(self, now_s: float) -> float:
        self._forget(now_s)
        seconds = min(float(RATE_S), max(1.0, now_s - self._since_s))
        return sum(count for _, count in self._by_second) / seconds

    def idle_s(self, now_s: float) -> float:
        """Return the time since the last delivery; -1 if there was none."""
        return -1.0 if self._last_s is None else now_s - self._last_s


class Figures:
    def __init__(self) -> None:
        self._of: dict[FollowerName, FollowerFigures] = {}

    def of(self, name: FollowerName, now_s: float) -> FollowerFigures:
        found = self._of.get(name)
        if found is None:
            found = self._of[name] = FollowerFigures(now_s)
        return found

    def forget_follower(self, name: FollowerName) -> None:
        self._of.pop(name, None)

"""Figures of followers: deliveries, failed attempts, durations of runs, and the time of the last delivery.

Figures count from the start of the process.  Owned by the loop; the time is an argument.
"""

from __future__ import annotations

from columnar.flows.follower_name import FollowerName
from columnar.flows.rolling_rate import RollingRate
from columnar.model.histogram import Histogram


class FollowerFigures:
    def __init__(self, now_s: float) -> None:
        self.delivered = 0
        self.failed = 0  # attempts
        self.runs = Histogram()
        self._last_s: float | None = None
        self._rate = RollingRate(now_s)

    def delivery(self, now_s: float, changes: int = 1) -> None:
        self.delivered += changes
        self._last_s = now_s
        self._rate.add_events(changes, now_s)

    def note_failed(self) -> None:
        """Count an attempt that failed."""
        self.failed += 1

    def rate_per_s(self, now_s: float) -> float:
        """Return deliveries a second, over the last minute."""
        return self._rate.per_s(now_s)

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

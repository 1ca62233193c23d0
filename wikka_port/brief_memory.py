"""An answer that is dear to find and may be a little old: found once in a while, for all who ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BriefMemory(Generic[T]):
    """Thread-safe; while one looks for the answer the others wait for it instead of looking too."""

    def __init__(self, find: Callable[[], T], age_s: float, clock: Callable[[], float]) -> None:
        self._find = find
        self._age_s = age_s
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, T] | None = None  # guarded by _lock: when it was found

    def get(self) -> T:
        """At most ``age_s`` old.  What ``find`` raises is raised and not kept."""
        with self._lock:
            now = self._clock()
            if self._kept is None or not 0 <= now - self._kept[0] <= self._age_s:
                self._kept = (now, self._find())
            return self._kept[1]

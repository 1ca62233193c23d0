"""An answer that is expensive to find and may be a little old: found once in a while, for all callers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")


QUICK_S: Final = 0.1  # what is found in that time is not kept for the time it took


class BriefMemory(Generic[T]):
    """Thread-safe; while one thread finds the answer the others wait for it instead of searching too.

    An answer is kept for ``age_s``, and if it took QUICK_S or more for ``times`` as long as that: finding it then
    costs at most one part in ``times`` of a process, and a list of a small wiki is always new.
    """

    def __init__(
        self,
        find: Callable[[], T],
        age_s: float,
        clock: Callable[[], float],
        *,
        times: float = 0.0,
        of: Callable[[], object] = lambda: None,
    ) -> None:
        """``of``: an answer is kept as long as this gives the same object."""
        self._find = find
        self._of = of
        self._age_s = age_s
        self._times = times
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, float, object, T] | None = None  # guarded by _lock: when, for how long, of what

    def get(self) -> T:
        """Raises what ``find`` raises, which is not kept."""
        with self._lock:
            now, of = self._clock(), self._of()
            kept = self._kept
            if kept is None or kept[2] is not of or not 0 <= now - kept[0] < kept[1]:
                found = self._find()
                took_s = self._clock() - now
                age_s = max(self._age_s, self._times * took_s if took_s >= QUICK_S else 0.0)
                kept = self._kept = (now, age_s, of, found)
            return kept[3]

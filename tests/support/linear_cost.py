"""Whether work costs time in proportion to its size, on a machine that may be slow or busy."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

_MEASURES: Final = 6
_MOST_TIMES: Final = 3.0  # as much for twice the size: 2 where it is linear, 4 where it is quadratic


def require_linear(work: Callable[[int], object], size: int, usual_s: float) -> None:
    """Check that ``work(size)`` does not cost more processor time than its size.

    A cost of at most ``usual_s`` is taken for little: choose some ten times what it is, and a size at which what is
    quadratic takes many times as long.  Beyond it, the machine may be slow, so the growth decides: twice the size
    costs at most three times as much, each by the least of up to six measures.
    """
    if (cost := _cost_s(work, size)) <= usual_s:
        return
    half, whole = _cost_s(work, size // 2), cost
    for _ in range(_MEASURES - 1):
        if whole <= _MOST_TIMES * half:
            return
        half, whole = min(half, _cost_s(work, size // 2)), min(whole, _cost_s(work, size))
    assert whole <= _MOST_TIMES * half, f"{size // 2:,} cost {half:.2f} s, {size:,} cost {whole:.2f} s"


def _cost_s(work: Callable[[int], object], size: int) -> float:
    began = process_time()
    work(size)
    return process_time() - began

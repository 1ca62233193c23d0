"""Waits for deliveries that last their time, whatever server ends meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

CALL_MS: Final = 600_000  # of one call at most: a server refuses longer ones


def wait_within(timeout_ms: int, call: Callable[[int], object], now_s: Callable[[], float] = time.monotonic) -> bool:
    """Return whether ``call``, a wait of so many ms, returns true within the time.

    A server that leaves or stops returns false at once, and a call lasts CALL_MS at most.  So the wait is called again
    for the time that is left, at the next server, or the call raises, as there is none.
    """
    ends_s, left_ms = now_s() + timeout_ms / 1_000, timeout_ms
    while not call(min(left_ms, CALL_MS)):
        left_ms = round((ends_s - now_s()) * 1_000)
        if left_ms <= 0:
            return False
    return True

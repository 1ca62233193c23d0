"""Calls that came in messages too large for one turn: one after the other, with a rest after one that held the loop.

A row of 60 MB is one write of the engine, which cannot be cut: it holds the loop for a third of a second.  A
client that sends one after the other would leave others nothing.  After such a call the next large one waits
REST times as long as it took, and while others ask REST_BESIDE_OTHERS times: so all of them together have a quarter
of the loop, or a hundredth, and of a hundred requests of others less than one meets one.
Calls of a shorter step (a batch of many rows is cut into such) follow each other as they come.

What waits is counted as input and bounded with it (``limits.SERVER_INPUT_BYTES``).  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

HELD_S: Final = 0.05  # a call that holds the loop longer is followed by a rest
REST: Final = 3
REST_BESIDE_OTHERS: Final = 99
_OWN_ANSWERS: Final = 1  # in a rest: that of the call itself


class LargeCalls:
    def __init__(self, answered: Callable[[], int]) -> None:
        """``answered``: how many requests the server has answered so far."""
        self._answered = answered
        self._waiting: deque[Callable[[], object]] = deque()
        self._is_planned = False

    def soon(self, call: Callable[[], object]) -> None:
        """Make it in its turn."""
        self._waiting.append(call)
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        begun = perf_counter()
        try:
            if self._waiting:
                self._waiting.popleft()()
        finally:  # whatever becomes of one, the others get their turn
            self._go_on(perf_counter() - begun)

    def _go_on(self, took: float) -> None:
        loop = asyncio.get_running_loop()
        if took > HELD_S:
            loop.call_later(REST * took, self._rested, took, REST * took, self._answered())
        elif self._waiting:
            loop.call_soon(self._next)
        else:
            self._is_planned = False

    def _rested(self, took: float, rested: float, answered: int) -> None:
        """A rest of ``rested`` is over; ``answered`` is what the server had answered before its last stretch."""
        now = self._answered()
        if now - answered <= _OWN_ANSWERS or rested >= REST_BESIDE_OTHERS * took:
            self._next()
        else:
            step = REST * took
            asyncio.get_running_loop().call_later(step, self._rested, took, rested + step, now)

"""The TLS handshakes in progress: bounds on their number, their duration and their share of the loop's time.

    begun --bytes came--> wants a step --queue turn--> a step --...--> over

A step costs up to a millisecond (a signature).  Thousands of clients that connect at once would block the loop for
seconds, so the steps are done in slices of SLICE_S, between which all other requests are served.

Over the bound the oldest handshake is closed: honest clients need milliseconds, so it most likely belongs to a client
that never continues.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from time import perf_counter
from typing import Final, Protocol

from columnar.limits import HANDSHAKE_S, HANDSHAKES
from columnar.runtime.faults import FAULTS, surviving

SLICE_S: Final = 0.002


class Handshake(Protocol):
    def step(self) -> None:
        """Take in what has come; calls ``Handshakes.end`` when the handshake is over, well or not."""

    def refuse(self, why: str) -> None:
        """Close, with ``why`` in the log; calls ``Handshakes.end``."""


class Handshakes:
    def __init__(self, bound: int = HANDSHAKES, limit_s: float = HANDSHAKE_S) -> None:
        self._bound = bound
        self._limit_s = limit_s
        self._open: OrderedDict[Handshake, asyncio.TimerHandle] = OrderedDict()  # the oldest first
        self._ready: deque[Handshake] = deque()
        self._turning = False

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, handshake: Handshake) -> None:
        if len(self._open) >= self._bound:
            next(iter(self._open)).refuse(f"{self._bound} handshakes are under way, and this one began first")
        why = f"no TLS handshake within {self._limit_s:g} s"
        timer = asyncio.get_running_loop().call_later(self._limit_s, handshake.refuse, why)
        self._open[handshake] = timer

    def end(self, handshake: Handshake) -> None:
        timer = self._open.pop(handshake, None)
        if timer is not None:
            timer.cancel()

    def step_soon(self, handshake: Handshake) -> None:
        self._ready.append(handshake)
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._run_slice)

    def _run_slice(self) -> None:
        ends = perf_counter() + SLICE_S
        self._turning = False
        while self._ready:
            handshake = self._ready.popleft()
            if handshake in self._open:
                try:
                    handshake.step()
                except Exception as fault:  # noqa: BLE001 - of one client; other clients have their steps
                    FAULTS.met("TLS handshakes", fault)
                    with surviving("TLS handshakes"):
                        handshake.refuse("its handshake met a fault of the server")
            if self._ready and perf_counter() >= ends:
                self._turning = True
                asyncio.get_running_loop().call_soon(self._run_slice)
                return

    def close(self) -> None:
        """Stop: no handshake is accepted any more."""
        for handshake in list(self._open):
            handshake.refuse("the server stops")

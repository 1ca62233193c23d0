"""Handshakes: how many, how long, and in turns."""

from __future__ import annotations

import asyncio
import time

from columnar.wire.tls_protocol import SLICE_S, Handshakes


class Fake:
    """Takes ``steps`` steps of a whole turn each, then is over."""

    def __init__(self, of: Handshakes, steps: int = 1) -> None:
        self._of = of
        self.left = steps
        self.why = ""
        self.refused = asyncio.Event()
        self.over = asyncio.Event()
        of.begin_handshake(self)

    def step(self) -> None:
        ends = time.perf_counter() + SLICE_S
        while time.perf_counter() < ends:
            pass
        self.left -= 1
        if self.left:
            self._of.step_soon(self)
        else:
            self._of.end(self)
            self.over.set()

    def refuse(self, why: str) -> None:
        self._of.end(self)
        self.why = why
        self.refused.set()


def test_over_the_bound_the_oldest_goes() -> None:
    async def scene() -> None:
        handshakes = Handshakes(bound=3)
        fakes = [Fake(handshakes) for _ in range(5)]
        assert [bool(one.why) for one in fakes] == [True, True, False, False, False]
        assert len(handshakes) == 3
        handshakes.close()
        assert len(handshakes) == 0
        assert all(one.why for one in fakes)

    asyncio.run(scene())


def test_one_that_does_not_go_on_is_ended() -> None:
    async def scene() -> None:
        handshakes = Handshakes(limit_s=0.01)
        fake = Fake(handshakes)
        await asyncio.wait_for(fake.refused.wait(), 10)
        assert fake.why == "no TLS handshake within 0.01 s"
        assert len(handshakes) == 0

    asyncio.run(scene())


def test_between_two_turns_others_are_served() -> None:
    async def scene() -> None:
        handshakes = Handshakes()
        fakes = [Fake(handshakes) for _ in range(5)]
        for one in fakes:
            handshakes.step_soon(one)
        left = []
        while not fakes[-1].over.is_set():
            await asyncio.sleep(0)
            left.append(sum(one.left for one in fakes))
        assert left[-1] == 0
        assert all(before - after <= 1 for before, after in zip([5, *left], left, strict=False)), left
        assert len(handshakes) == 0

    asyncio.run(scene())


def test_one_that_ended_before_its_turn_takes_none() -> None:
    async def scene() -> None:
        handshakes = Handshakes()
        gone, there = Fake(handshakes), Fake(handshakes)
        handshakes.step_soon(gone)
        handshakes.step_soon(there)
        handshakes.end(gone)
        await asyncio.wait_for(there.over.wait(), 10)
        assert gone.left == 1

    asyncio.run(scene())

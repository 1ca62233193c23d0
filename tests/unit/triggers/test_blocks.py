"""Blocked triggers: the end of a pause, and what an exception at it leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from columnar.triggers.blocks import IN_SERIES, LOOP, Blocks


class Scheduled:
    """What the feeder does with a trigger; lets it go in vain so many times first."""

    def __init__(self, faults: int) -> None:
        self.faults = faults
        self.is_suspended = False
        self.resumed = asyncio.Event()

    def suspend(self, _name: str) -> None:
        self.is_suspended = True

    def let_go(self, _name: str) -> None:
        if self.faults:
            self.faults -= 1
            raise KeyError("t")
        self.is_suspended = False
        self.resumed.set()


def suspended(faults: int) -> tuple[Blocks, Scheduled]:
    scheduled = Scheduled(faults)
    blocks = Blocks(scheduled.suspend, scheduled.let_go)
    for _ in range(IN_SERIES):
        blocks.met("t", "out is disabled", 0.05)
    assert scheduled.is_suspended
    assert blocks.is_suspended("t")
    return blocks, scheduled


@pytest.mark.parametrize(
    "end", [lambda _blocks: None, lambda blocks: blocks.worked("t"), lambda blocks: blocks.forget("t")],
    ids=["pause", "worked", "removed"],
)  # fmt: skip
def test_a_suspended_trigger_is_let_go_though_that_fails_at_first(
    end: Callable[[Blocks], None], expected_faults: Callable[[], dict[str, int]]
) -> None:
    async def run() -> None:
        blocks, scheduled = suspended(faults=2)
        end(blocks)
        async with asyncio.timeout(10):
            await scheduled.resumed.wait()
        assert not scheduled.is_suspended
        assert not blocks.is_suspended("t")
        assert expected_faults() == {LOOP: 2}, "health tells of it"

    asyncio.run(run())


def test_no_pause_ends_after_the_close() -> None:
    async def run() -> None:
        blocks, scheduled = suspended(faults=0)
        blocks.close()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await scheduled.resumed.wait()

    asyncio.run(run())

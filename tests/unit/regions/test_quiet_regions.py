"""A region is closed when nothing of it is under way; whoever waits for that leaves the loop alone."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable

import pytest

from columnar.errors import OutcomeUnknown
from columnar.model.mutation import Durability, Put
from columnar.model.schema import Family, make_table
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])
PUT = Put(b"a", b"q", b"v")
IDLE_S = 0.02
FEW = 50  # iterations of the loop within IDLE_S; one that spins has thousands


class CountingSelector(selectors.DefaultSelector):
    """Counts the loop's iterations."""

    def __init__(self) -> None:
        super().__init__()
        self.iterations = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.iterations += 1
        return super().select(timeout)


def run(test: Callable[[House, CountingSelector], Awaitable[None]]) -> None:
    selector = CountingSelector()

    async def main() -> None:
        house = House(TABLE)
        async with asyncio.timeout(20):
            await test(house, selector)
        await house.close()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())


async def waits_idly(waiting: asyncio.Task[None], selector: CountingSelector) -> None:
    await asyncio.sleep(0)
    before = selector.iterations
    await asyncio.wait([waiting], timeout=IDLE_S)
    assert selector.iterations - before < FEW
    assert not waiting.done()


@pytest.mark.parametrize("durability", list(Durability))
def test_it_waits_for_writes_under_way(durability: Durability) -> None:
    """Also for those that nobody waits for: what is closed has them on disk."""

    async def test(house: House, selector: CountingSelector) -> None:
        house.gate.hold()
        applied = house.apply(b"r", PUT, durability=durability)
        region = house.region()
        waiting = asyncio.ensure_future(house.server.hosting.quiesce(region))
        await waits_idly(waiting, selector)
        assert not region.syncs.is_quiet
        house.gate.release()
        await waiting
        assert region.syncs.is_quiet
        assert applied.durable is None or applied.durable.done()
        assert house.gate.syncs == 1

    run(test)


def test_it_waits_for_what_a_thread_does_with_the_region() -> None:
    async def test(house: House, selector: CountingSelector) -> None:
        region = house.region()
        with region.work.kept_up():
            waiting = asyncio.ensure_future(house.server.hosting.quiesce(region))
            await waits_idly(waiting, selector)
        await waiting

    run(test)


def test_it_waits_for_an_fsync_that_no_write_asked_for() -> None:
    """As where the server's log gives up a segment."""

    async def test(house: House, selector: CountingSelector) -> None:
        region = house.region()
        house.gate.hold()
        synced = house.committer.durable(region.store)
        waiting = asyncio.ensure_future(house.server.hosting.quiesce(region))
        await waits_idly(waiting, selector)
        house.gate.release()
        await waiting
        assert synced.done()

    run(test)


def test_a_failed_fsync_ends_the_wait() -> None:
    async def test(house: House, selector: CountingSelector) -> None:
        house.gate.hold()
        applied = house.apply(b"r", PUT)
        region = house.region()
        waiting = asyncio.ensure_future(house.server.hosting.quiesce(region))
        await waits_idly(waiting, selector)
        house.gate.fail()
        await waiting
        assert applied.durable is not None
        with pytest.raises(OutcomeUnknown):
            await applied.durable
        house.gate.release()

    run(test)


def test_closing_the_server_keeps_what_nobody_waited_for() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.apply(b"r", PUT, durability=Durability.ASYNC)
        path = house.server.folder_of(house.region().info)
        await house.close()
        house.memory.crash(path)
        again = House(TABLE, engine=house.memory)
        assert [value for _, value, _ in again.row(b"r")] == [b"v"]
        await again.close()

    asyncio.run(main())

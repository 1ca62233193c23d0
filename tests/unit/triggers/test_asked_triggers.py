"""What an owner answers when other servers ask about its triggers: waits, looks, letters."""

from __future__ import annotations

import asyncio

from columnar.cluster.peer_requests import TriggerStatuses, Waited, WaitForDelivery
from columnar.flows.delivery_cursor import unpack_cursor
from columnar.triggers.trigger_peer_handlers import TriggerPeerHandlers
from tests.unit.triggers.test_dispatcher import Bench, on_bench


class Asked:
    """The keeper's answers to other servers."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.changing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.triggers = TriggerPeerHandlers(bench.keeper, bench.server, lambda: self.changing)

    def waiting(self, timeout_ms: int = 10_000, *, saved: bool = False) -> asyncio.Future[Waited]:
        regions = tuple(self.bench.table.regions)
        return asyncio.ensure_future(self.triggers.wait_delivered(WaitForDelivery("t", "", timeout_ms, regions, saved)))

    def leaves(self) -> None:
        self.bench.server.hosting.state.give_up(self.bench.table.regions[-1].region_id)
        changed, self.changing = self.changing, asyncio.get_running_loop().create_future()
        changed.set_result(None)

    async def letters(self) -> int:
        (look,) = await self.triggers.trigger_statuses(TriggerStatuses())
        return look.dead_letters


@on_bench(2)
async def test_an_owner_vouches_for_what_it_owns_from_beginning_to_end(bench: Bench) -> None:
    await bench.add("t")
    asked = Asked(bench)
    await bench.put(b"00", b"99")
    waiting = asked.waiting()
    for call_id, _, _ in bench.main.take():
        assert not waiting.done()
        bench.main.answer(call_id)
    assert await waiting == Waited(is_delivered=True, is_not_local=False)
    await bench.put(b"99")
    assert await asked.waiting(0) == Waited(is_delivered=False, is_not_local=False)
    waiting = asked.waiting()
    await asyncio.sleep(0)
    asked.leaves()
    assert await waiting == Waited(is_delivered=False, is_not_local=True), "the next owner delivers what is left"
    assert await asked.waiting() == Waited(is_delivered=False, is_not_local=True)


@on_bench()
async def test_an_owner_that_has_a_region_since_a_moment_ago_opens_it_and_delivers_what_is_left(bench: Bench) -> None:
    await bench.add("t")
    await bench.put(b"a")
    bench.main.take()
    (info,), state = bench.table.regions, bench.server.hosting.state
    state.give_up(info.region_id)
    await bench.restart()
    assert await bench.keeper.wait_delivered("t", "", 5.0), "it is another server's, and nothing of it is opened here"
    asked = Asked(bench)
    assert state.own(info.region_id, state.epoch_of(info.region_id) + 1)
    waiting = asked.waiting()
    await bench.main.until(lambda: bench.main.sent)
    assert not waiting.done()
    for call_id, _, row in bench.main.take():
        assert row == b"a"
        bench.main.answer(call_id)
    assert await waiting == Waited(is_delivered=True, is_not_local=False)


@on_bench()
async def test_an_owner_vouches_for_cursors_that_are_on_disk(bench: Bench) -> None:
    await bench.add("t")
    asked = Asked(bench)
    await bench.put(b"a")
    waiting = asked.waiting(saved=True)
    for call_id, _, _ in bench.main.take():
        bench.main.answer(call_id)
    assert await waiting == Waited(is_delivered=True, is_not_local=False)
    region = bench.region(b"a")
    saved = region.log.cursors.cursor("t")
    assert saved is not None
    assert unpack_cursor(saved).read_to == region.log.durable
    bench.keeper.hub.upkeep.pause_saving()
    assert await asked.waiting(saved=True) == Waited(is_delivered=False, is_not_local=False)


@on_bench()
async def test_letters_are_counted_where_they_lie(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    asked = Asked(bench)
    assert await asked.letters() == 0
    rows = [b"%03d" % n for n in range(3)]
    for row in rows:
        await bench.put(row)
        ((call_id, _, _),) = bench.main.take()
        bench.main.answer(call_id, "Error: no")
    assert await asyncio.wait_for(asked.waiting(), 5) == Waited(is_delivered=True, is_not_local=False)
    assert await asked.letters() == 3
    assert await asked.letters() == 3, "nothing was written since"
    assert await bench.keeper.retry("t", rows[0]) == 1
    assert await asked.letters() == 2
    await bench.restart()
    assert await Asked(bench).letters() == 2, "no count is lost with the process that counted"

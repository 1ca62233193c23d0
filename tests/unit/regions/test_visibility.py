"""Promise 3 and house rule 5: what is answered before, after and without an fsync."""

from __future__ import annotations

import asyncio

import pytest

from columnar.errors import OutcomeUnknown, RegionUnavailable
from columnar.model.mutation import CompareOp, Condition, Durability, Increment, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.region import Region
from tests.support.region_house import House, names_of

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)])
PUT = Put(b"a", b"q", b"new")


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_read_waits_for_the_commit_in_flight_on_its_row_and_no_other() -> None:
    async def main() -> None:
        house = House(TABLE)
        await house.put_value(b"other")
        house.gate.hold()
        applied = house.apply(b"r", PUT)
        region = house.region()
        await asyncio.to_thread(house.gate.entered.wait, 10)
        assert house.row(b"r") == [(b"a:q", b"new", 1000)]
        barrier = region.syncs.barrier(b"r")
        assert barrier is not None
        assert applied.durable is not None
        await turns()
        assert not barrier.done()
        assert not applied.durable.done()
        assert region.syncs.barrier(b"other") is None
        house.gate.release()
        await barrier
        assert applied.durable.done()
        assert region.syncs.barrier(b"r") is None
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_is_acknowledged_in_the_turn_in_which_its_fsync_ended(fails: bool) -> None:
    async def main() -> None:
        house = House(TABLE)
        house.gate.hold()
        applied = house.apply(b"r", PUT)
        region = house.region()
        synced = house.committer.durable(region.store)  # the fsync that the write waits for; the region asked first
        told: list[bool] = []
        synced.add_callback(lambda _: told.append(applied.durable.done()))
        await asyncio.to_thread(house.gate.entered.wait, 10)
        if fails:
            house.gate.fail()
        else:
            house.gate.release()
        await asyncio.wait([applied.durable], timeout=10)
        assert told == [True]
        house.gate.release()
        await house.close()

    asyncio.run(main())


def test_a_write_during_an_fsync_is_not_covered_by_it() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.gate.hold()
        first = house.apply(b"r", PUT).durable
        await asyncio.to_thread(house.gate.entered.wait, 10)
        second = house.apply(b"r", Put(b"a", b"q", b"newer")).durable
        assert first is not second
        assert house.region().syncs.barrier(b"r") is second, "a reader sees the newest and waits for that"
        house.gate.release()
        assert second is not None
        await second
        assert house.committer.syncs == 2
        await house.close()

    asyncio.run(main())


def test_a_scan_waits_for_what_it_saw() -> None:
    async def main() -> None:
        house = House(TABLE)
        await house.put_value(b"r1")
        house.gate.hold()
        house.apply(b"r2", PUT)
        asking = asyncio.ensure_future(names_of(house.scanner()))
        await turns(20)
        assert not asking.done()
        house.gate.release()
        assert await asking == [b"r1", b"r2"]
        await house.close()

    asyncio.run(main())


def test_a_false_check_waits_for_what_it_saw() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.gate.hold()
        house.apply(b"r", PUT)
        refused = house.region().apply(RowMutation(b"r", (PUT,), (Condition(b"a", b"q", CompareOp.ABSENT),)))
        assert refused.failed_condition == 0
        assert refused.durable is not None
        await turns()
        assert not refused.durable.done()
        house.gate.release()
        await refused.durable
        again = house.region().apply(RowMutation(b"r", (PUT,), (Condition(b"a", b"q", CompareOp.ABSENT),)))
        assert again.durable is None, "nothing is in flight: answered at once"
        await house.close()

    asyncio.run(main())


def test_async_writes_wait_for_nothing_and_raise_no_barrier() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.gate.hold()
        applied = house.apply(b"r", PUT, durability=Durability.ASYNC)
        assert applied.durable is None
        assert house.region().syncs.barrier(b"r") is None
        assert house.committer.syncs == 0
        begun = house.region().syncs.sync_async_writes()
        assert begun is not None
        house.gate.release()
        await begun
        assert house.region().syncs.sync_async_writes() is None
        await house.close()

    asyncio.run(main())


def test_increments_pipeline_and_share_fsyncs() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.gate.hold()
        first = house.apply(b"r", Increment(b"a", b"n", 1))
        await asyncio.to_thread(house.gate.entered.wait, 10)
        rest = [house.apply(b"r", Increment(b"a", b"n", 1)) for _ in range(127)]
        assert [int.from_bytes(one.results[0][1], "big") for one in [first, *rest]] == list(range(1, 129))
        house.gate.release()
        await asyncio.gather(*(one.durable for one in rest if one.durable is not None))
        assert house.committer.syncs == 2
        await house.close()

    asyncio.run(main())


def test_a_failed_fsync_is_never_acknowledged_and_the_region_opens_again_from_disk() -> None:
    async def main() -> None:
        house = House(TABLE)
        await house.put_value(b"r", b"old")
        region = house.region()
        house.gate.hold()
        writers = [house.apply(b"r", Put(b"a", b"q", b"lost")), house.apply(b"s", PUT)]
        await asyncio.to_thread(house.gate.entered.wait, 10)
        late = house.apply(b"r", Put(b"a", b"q", b"lost too"))
        barrier = region.syncs.barrier(b"r")
        assert barrier is not None
        house.gate.fail()
        for applied in [*writers, late]:
            assert applied.durable is not None
            with pytest.raises(OutcomeUnknown, match="read before you repeat"):
                await applied.durable
        with pytest.raises(OutcomeUnknown):
            await barrier
        assert house.server.open_count() == 0, "closed; nothing is served from memory that the disk refused"
        with pytest.raises(RegionUnavailable):  # a thread closes it: requests wait for that
            house.region()
        assert await house.server.hosting.all_there(10)
        house.gate.release()
        house.memory.crash(house.server.folder_of(region.info))
        assert house.region() is not region
        assert house.row(b"r") == [(b"a:q", b"old", 1000)]
        await house.put_value(b"r", b"newer")
        assert house.row(b"r") == [(b"a:q", b"newer", house.clock.now_ms)]
        await house.close()

    asyncio.run(main())


def test_a_lost_lease_is_never_acknowledged() -> None:
    async def main() -> None:
        house = House(TABLE)
        region = house.region()
        fed: list[Region] = []
        region.begin_serving(LogPolicy(frozenset({b"a"}), frozenset()), fed.append)
        house.gate.hold()
        applied = house.apply(b"r", PUT)
        await asyncio.to_thread(house.gate.entered.wait, 10)
        region.syncs.is_ours = lambda: False
        house.gate.release()
        assert applied.durable is not None
        with pytest.raises(OutcomeUnknown, match="lease"):
            await applied.durable
        assert fed == []
        assert list(region.log.read_records(None)) == [], "consumers are not fed what was not acknowledged"
        await house.close()

    asyncio.run(main())


def test_consumers_see_a_change_only_after_its_fsync() -> None:
    async def main() -> None:
        house = House(TABLE)
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset({b"a"})))
        region = house.region()
        house.gate.hold()
        applied = house.apply(b"r", PUT)
        assert list(region.log.read_records(None)) == []
        house.gate.release()
        assert applied.durable is not None
        await applied.durable
        ((sequence, record),) = region.log.read_records(None)
        assert (sequence, record.row) == (applied.sequence, b"r")
        await house.close()

    asyncio.run(main())


def test_a_row_that_ran_ahead_of_the_clock_takes_puts_after_a_restart() -> None:
    """Each change of a logged row is later than the last; a restart must not let new puts lose against old ones."""

    async def main() -> None:
        house = House(TABLE)
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        for n in range(50):
            await house.put_value(b"r", b"%d" % n)
        region = house.region()
        await house.server.hosting.quiesce(region)
        house.server.eviction.evict(region)
        house.clock.now_ms += 2
        await house.put_value(b"r", b"after")
        assert [value for _, value, _ in house.row(b"r")] == [b"after"]
        await house.close()

    asyncio.run(main())

"""The hub with a kind of follower of the test's own: one class and one registration, beside the triggers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from columnar.errors import HostError
from columnar.flows.backpressure import LogBounds
from columnar.flows.delivery_cursor import unpack_cursor
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Follower, Kind, Subscription
from columnar.flows.follower_name import FollowerName
from columnar.flows.log_upkeep import SAVED_AT_ONCE, LogUpkeep
from columnar.model.mutation import Put
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import Images
from columnar.regions.region import Region
from columnar.regions.write.images import RowImages, images_of
from tests.unit.triggers.test_dispatcher import Bench, on_bench

COLLECTOR = "collector"
F = frozenset({b"f"})


class Collector(Follower):
    """Collects the rows of changes in process, one a step."""

    seen: list[bytes]
    is_off = False
    wanted: Images | None = None
    images: list[RowImages | None]

    def step(self) -> float | None:
        if self.is_off:
            return None
        more = self.fill()
        delivery = self.state.take(asyncio.get_running_loop().time())
        if delivery is None:
            return 0.0 if more else None
        self.seen.append(delivery.row)
        if self.wanted is not None:
            record = self.region.log.record_at(delivery.sequence)
            assert record is not None
            self.images.append(images_of(record, self.wanted))
        self.state.done(delivery.sequence)
        self.dirty = True
        return 0.0


class Collecting:
    """What another package would keep: its registrations, here in memory."""

    def __init__(self, bench: Bench, *, promises: bool = True) -> None:
        self.seen: list[bytes] = []
        self.images: dict[str, list[RowImages | None]] = {}
        self.removed: set[int] = set()
        self.hub = bench.hub
        bench.hub.register(Kind(COLLECTOR, promises, lambda _name, number: number in self.removed))

    def subscription(self, name: str, number: int, images: Images | None = None) -> Subscription:
        follow = partial(self._follow, FollowerName(COLLECTOR, name), images)
        return Subscription(FollowerName(COLLECTOR, name), number, "t", F, frozenset(), follow, images or {})

    def _follow(self, name: FollowerName, images: Images | None, region: Region, state: DeliveryState) -> Collector:
        made = Collector(name, region, F, state)
        made.seen, made.wanted, made.images = self.seen, images, self.images.setdefault(name.name, [])
        return made

    async def add(self, name: str, number: int = 1, images: Images | None = None) -> None:
        async with self.hub.lock:
            await self.hub.begin_subscription(self.subscription(name, number, images))
            await self.hub.follow(self.subscription(name, number, images))

    async def drain(self) -> None:
        assert await self.hub.waits.wait(FollowerName(COLLECTOR, ""), "", 5.0)


@on_bench(regions=2)
async def test_another_kind_of_follower(bench: Bench) -> None:
    collecting = Collecting(bench)
    await bench.put(b"before")
    await collecting.add("c")
    await bench.put(b"00", b"01", b"00")
    await collecting.drain()
    assert sorted(collecting.seen) == [b"00", b"00", b"01"]
    assert set(bench.region(b"00").log.cursors.all_cursors()) == {"collector:c"}


@on_bench()
async def test_kinds_do_not_meet(bench: Bench) -> None:
    """A trigger and a collector of one name: two places, two waits, two ends."""
    collecting = Collecting(bench)
    await collecting.add("t")
    await bench.add("t")
    await bench.put(b"a")
    await collecting.drain()
    assert not await bench.keeper.wait_delivered("t", "", 0.0), "the trigger's worker has not answered"
    await bench.triggers.remove("t")
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"collector:t"}
    await bench.put(b"b")
    await collecting.drain()
    assert collecting.seen == [b"a", b"b"]


@on_bench()
async def test_it_goes_on_where_it_was_after_a_closing(bench: Bench) -> None:
    collecting = Collecting(bench)
    await collecting.add("c")
    await bench.put(b"a")
    await collecting.drain()
    bench.server.eviction.evict(bench.region(b"a"))
    await bench.put(b"b")
    await collecting.drain()
    assert collecting.seen == [b"a", b"b"]


@on_bench()
async def test_the_table_logs_before_the_registration_is_durable(bench: Bench) -> None:
    collecting = Collecting(bench)
    async with bench.hub.lock:
        await bench.hub.begin_subscription(collecting.subscription("c", 1))
        await bench.put(b"meanwhile")
        assert collecting.seen == [], "it may come to nothing"
        await bench.hub.follow(collecting.subscription("c", 1))
    await collecting.drain()
    assert collecting.seen == [b"meanwhile"]


@on_bench()
async def test_a_subscription_that_is_called_off_leaves_no_log(bench: Bench) -> None:
    collecting = Collecting(bench)
    await bench.hub.begin_subscription(collecting.subscription("c", 1))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"collector:c"}
    bench.hub.unsubscribe(FollowerName(COLLECTOR, "c"))
    assert bench.server.policy_of("t") is None
    assert not bench.region(b"a").log.cursors.all_cursors()
    collecting.removed.add(1)
    await collecting.add("other", 2)
    bench.server.eviction.evict(bench.region(b"a"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"collector:other"}


@on_bench(regions=2)
async def test_a_region_that_opens_while_a_subscription_begins_is_marked_then(bench: Bench) -> None:
    collecting = Collecting(bench)
    await bench.put(b"00", b"01")
    await bench.hub.begin_subscription(collecting.subscription("c", 7))
    for row in (b"00", b"01"):
        bench.region(row).log.cursors.drop_cursor("collector:c")
        bench.server.eviction.evict(bench.region(row))  # as one that another owner had when the subscription began
    assert bench.region(b"00").log.cursors.number_of("collector:c") == 7
    await bench.put(b"00")
    await bench.hub.follow(collecting.subscription("c", 7))
    await bench.put(b"01")
    await collecting.drain()
    assert sorted(collecting.seen) == [b"00", b"01"], "each from its mark, or from its log's beginning"


@on_bench()
async def test_the_cursor_of_a_removed_one_goes_and_that_of_an_unknown_kind_stays(bench: Bench) -> None:
    collecting = Collecting(bench)
    await collecting.add("c", 7)
    await bench.add("t")
    region = bench.region(b"a")
    region.log.cursors.begin_cursor("view:v", region.log.cursors.all_cursors()["t"], 7)
    bench.server.eviction.evict(region)
    bench.hub.unsubscribe(FollowerName(COLLECTOR, "c"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"collector:c", "view:v", "t"}, "no removal is recorded"
    collecting.removed.add(7)
    bench.server.eviction.evict(bench.region(b"a"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"view:v", "t"}


# --- what is needed of a log -----------------------------------------------------------------------


def lagging(promises: bool) -> Callable[[], None]:
    @on_bench()
    async def run(bench: Bench) -> None:
        collecting = Collecting(bench, promises=promises)
        await collecting.add("c")
        (follower,) = bench.hub.followers.of(FollowerName(COLLECTOR, "c"))
        assert isinstance(follower, Collector)
        follower.is_off = True
        upkeep: LogUpkeep = bench.hub.upkeep
        upkeep._bounds = LogBounds(records=3)
        await bench.put(b"a", b"b", b"c", b"d")
        region = bench.region(b"a")
        upkeep.save(region)
        assert region.refuses_writes is promises
        assert region.log.count_after(None, 9) == 4
        upkeep._bounds = LogBounds(records=3, size_bytes=1)
        upkeep.save(region)
        assert (region.log.count_after(None, 9) == 4) is promises, "above the bound"
        if promises:
            assert "collector c is behind" in region.log_obstacle

    return run


def test_a_follower_that_promises_slows_writers_and_keeps_the_log() -> None:
    lagging(promises=True)()


def test_a_follower_that_promises_nothing_slows_nobody() -> None:
    lagging(promises=False)()


@on_bench()
async def test_of_a_trigger_and_a_slow_stream_only_the_trigger_counts(bench: Bench) -> None:
    collecting = Collecting(bench, promises=False)
    await collecting.add("c")
    (follower,) = bench.hub.followers.of(FollowerName(COLLECTOR, "c"))
    assert isinstance(follower, Collector)
    follower.is_off = True
    await bench.add("t")
    bench.hub.upkeep._bounds = LogBounds(records=4)
    for _ in range(5):
        await bench.put(b"a", b"b")
        for call_id, _, _ in bench.main.take():
            bench.main.answer(call_id)
        bench.hub.upkeep.save(bench.region(b"a"))
        assert not bench.region(b"a").refuses_writes
    await bench.triggers.pause("t")
    await bench.put(b"a", b"b", b"c", b"d")
    assert bench.region(b"a").refuses_writes


# --- regions that are replaced ---------------------------------------------------------------------


@on_bench()
async def test_a_held_region_is_not_followed_until_it_is_released(bench: Bench) -> None:
    collecting = Collecting(bench)
    await collecting.add("c")
    region = bench.region(b"a")
    assert await bench.hub.listener.quiesce_region(region, 1.0) == ""
    await bench.put(b"a")
    assert collecting.seen == []
    bench.hub.listener.release(region)
    await collecting.drain()
    assert collecting.seen == [b"a"]


@on_bench()
async def test_followers_find_the_images_that_they_asked_for_from_their_beginning_on(bench: Bench) -> None:
    """Others ask for less before them, for more beside them, and leave again."""
    collecting = Collecting(bench)
    narrow: Images = {b"f": frozenset({b"a"})}
    whole: Images = {b"f": None}
    await bench.put(b"r")
    await collecting.add("narrow", 1, narrow)
    await bench.apply(b"r", Put(b"f", b"x", b"2"))
    await collecting.add("whole", 2, whole)
    await bench.apply(b"r", Put(b"f", b"y", b"3"))
    await collecting.drain()
    assert bench.server.policy_of("t") == LogPolicy(F, frozenset(), whole, {b"f": "collector whole"})
    bench.hub.unsubscribe(FollowerName(COLLECTOR, "whole"))
    assert bench.server.policy_of("t") == LogPolicy(F, frozenset(), narrow)
    await bench.apply(b"r", Put(b"f", b"a", b"4"))
    await collecting.drain()
    one, four = {b"f:a": b"1"}, {b"f:a": b"4"}
    assert collecting.images == {
        "narrow": [(one, one), (one, one), (one, four)],
        "whole": [({**one, b"f:x": b"2"}, {**one, b"f:x": b"2", b"f:y": b"3"})],
    }


@on_bench()
async def test_a_cursor_that_could_not_be_saved_is_saved_before_its_log_is_trimmed(bench: Bench) -> None:
    """Else a restart would begin before records that are gone (``log_upkeep`` I1)."""
    collecting = Collecting(bench)
    await collecting.add("c")
    region, upkeep = bench.region(b"a"), bench.hub.upkeep
    upkeep.save(region)
    await bench.put(b"a", b"b")
    await collecting.drain()
    save_cursor = region.log.cursors.save_cursor

    def refuses(_consumer: str, _state: bytes) -> None:
        raise HostError("the disk is full")

    region.log.cursors.save_cursor = refuses  # type: ignore[method-assign]
    upkeep.save(region)
    region.log.cursors.save_cursor = save_cursor  # type: ignore[method-assign]
    upkeep.save(region)
    assert region.log.count_after(None, 9) == 1, "the others are trimmed"
    saved = region.log.cursors.cursor("collector:c")
    assert saved is not None
    assert unpack_cursor(saved).read_to == region.log.last_to_wait_for


@on_bench(regions=40)
async def test_cursors_of_many_regions_are_saved_in_steps(bench: Bench) -> None:
    """Else a thousand regions would hold up every request for the time that all of them take."""
    collecting = Collecting(bench)
    await collecting.add("c")
    await bench.put(*(info.start or b"0" for info in bench.table.regions))
    await collecting.drain()
    upkeep, saved = bench.hub.upkeep, list[Region]()
    save = upkeep.save

    def noted(region: Region) -> None:
        saved.append(region)
        save(region)

    upkeep.save = noted  # type: ignore[method-assign]
    upkeep.save_all()
    assert len(saved) == SAVED_AT_ONCE
    gone = next(region for region in bench.server.all_open() if region not in saved and region.table.name == "t")
    bench.server.eviction.evict(gone)
    saved.clear()
    await bench.put(b"0")
    while upkeep._round:  # noqa: ASYNC110 - each step is an iteration of the loop
        await asyncio.sleep(0)
    assert len(saved) == 40 - SAVED_AT_ONCE - 1, "one is closed, and what was written meanwhile waits for its time"
    assert len(set(saved)) == len(saved)

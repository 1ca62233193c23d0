"""What follows a split or a merge: an unknown outcome and a restart, cleaning up, others that change meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import NotServingRegion, OutcomeUnknown, RegionTooBusy
from columnar.model.mutation import Durability, Put, RowMutation
from columnar.model.schema import Family
from columnar.regions.replace import region_copier, region_replacement
from columnar.regions.write.ingestion import obstacles_of
from tests.support.memory_house import House, housed

NOTHING = lambda _step: None  # noqa: E731 - what is told of steps when nobody looks


def at_step(house: House, wanted: str, work: Callable[[], Any]) -> None:
    """Do ``work`` when that step of the next split or merge is over, once."""

    def at(step: str) -> None:
        if step == wanted:
            house.regions.at = NOTHING
            work()

    house.regions.at = at


def in_two(house: House) -> Awaitable[Any]:
    return house.regions.split(house.infos[0], b"50")


def in_one(house: House) -> Awaitable[Any]:
    return house.regions.merge(*house.infos)


# --- an unknown outcome --------------------------------------------------------------------------------


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("splits", [(), (b"50",)])
def test_a_restart_after_an_unknown_outcome_finds_every_row(commits: bool, splits: tuple[bytes, ...]) -> None:
    """The disk may have taken the commit or not: the regions that it names have their rows either way."""

    @housed(splits=splits)
    async def run(house: House) -> None:
        await house.put(b"10", b"60", b"90")
        before = list(house.infos)

        def fail() -> None:
            house.rows.failure, house.rows.takes_what_fails = OutcomeUnknown("the disk refused"), commits

        at_step(house, "made", fail)
        with pytest.raises(OutcomeUnknown):
            await (in_one(house) if splits else in_two(house))
        house.rows.failure = None
        again = await house.restarted()
        assert (again.infos != before) == commits
        assert again.rows_held() == [b"10", b"60", b"90"]
        assert again.catalogue.dropped == []
        assert not [path for path in again.engine.memory.disks if "meta" not in path and again.is_of_t(path)]
        await again.put(b"20")
        assert again.rows_held() == [b"10", b"20", b"60", b"90"]
        await again.close()

    run()


# --- while it is under way -----------------------------------------------------------------------------


@housed(splits=(b"20", b"40"), open_regions=1)
async def test_regions_that_are_replaced_stay_open_however_many_others_are_touched(house: House) -> None:
    await house.put(b"10", b"30", b"60", b"90")
    seen: list[int] = []

    def touch_others() -> None:
        house.rows_held()
        house.region(b"10")
        seen.append(house.server.open_count())

    at_step(house, "prepared", touch_others)
    await house.regions.split(house.infos[2], b"80")
    assert seen
    assert [info.start for info in house.infos] == [b"", b"20", b"40", b"80"]
    assert house.rows_held() == [b"10", b"30", b"60", b"90"]
    house.region(b"10")
    assert house.server.open_count() == 1, "none is kept open once it is over"


@housed(splits=(b"50",))
async def test_a_region_that_is_replaced_is_not_compacted_and_a_neighbour_is(house: House) -> None:
    await house.put(b"10", b"90")
    asked: list[asyncio.Future[None]] = []

    def compact() -> None:
        for row in (b"10", b"90"):
            region = house.region(row)
            asked.append(asyncio.ensure_future(house.server.upkeep.compact(region)))
            asked.append(asyncio.ensure_future(house.server.upkeep.major_compact(region)))

    at_step(house, "prepared", compact)
    await house.regions.split(house.infos[0], b"20")
    refused = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in refused] == [RegionTooBusy, RegionTooBusy, type(None), type(None)]
    await house.server.upkeep.major_compact(house.region(b"10"))


@pytest.mark.parametrize("splits", [(), (b"50",)])
def test_what_triggers_have_under_way_ends_before_the_regions_do(
    splits: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the successors would tell it again."""

    @housed(triggers=1, splits=splits)
    async def run(house: House) -> None:
        for worker in house.workers:
            worker.is_held = True
        monkeypatch.setattr(region_replacement, "QUIESCE_TIMEOUT_S", 0.01)
        await house.put(b"10", b"90")
        await house.until(lambda: len(house.told) == 2)
        before = list(house.infos)
        with pytest.raises(RegionTooBusy, match="trigger-0 has been running for"):
            await (in_one(house) if splits else in_two(house))
        assert house.infos == before
        monkeypatch.setattr(region_replacement, "QUIESCE_TIMEOUT_S", 10.0)
        changing = asyncio.ensure_future(in_one(house) if splits else in_two(house))
        await asyncio.sleep(0.01)
        assert not changing.done()
        for worker in house.workers:
            worker.is_held = False
        await changing
        await house.put(b"20", b"80")
        await house.drain()
        assert sorted(row for row, _ in house.told) == [b"10", b"20", b"80", b"90"]

    run()


@pytest.mark.parametrize("splits", [(), (b"50",)])
def test_nearly_all_is_on_disk_before_requests_wait(splits: tuple[bytes, ...]) -> None:
    @housed(splits=splits)
    async def run(house: House) -> None:
        await house.put(b"10", b"90")
        syncs: dict[str, int] = {}

        def at(step: str) -> None:
            syncs[step] = house.engine.gate.syncs

        house.regions.at = at
        await (in_one(house) if splits else in_two(house))
        assert syncs["held"] - syncs["prepared"] == len(house.infos), "each store that was made"
        assert syncs["shut"] == syncs["held"]
        assert syncs["made"] - syncs["shut"] == len(house.infos), "and the last few rows"

    run()


@pytest.mark.parametrize("splits", [(), (b"50",)])
def test_a_trigger_that_goes_meanwhile_leaves_nothing_in_the_successors(
    splits: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their stores began as copies of one that still knew where it stood."""
    began = region_copier.RegionCopier.begin_copy

    @housed(triggers=2, splits=splits)
    async def run(house: House) -> None:
        await house.put(b"10", b"90")
        await house.drain()
        for info in house.infos:
            for consumer in house.keeper.hub.followers.in_region(house.region(info.start)):
                consumer.save()
        gone: list[str] = []

        async def begin(self: region_copier.RegionCopier) -> None:
            await began(self)
            for name in ("trigger-0", "trigger-1"):
                await house.triggers.remove(name)
                gone.append(name)

        monkeypatch.setattr(region_copier.RegionCopier, "begin_copy", begin)
        await (in_one(house) if splits else in_two(house))
        assert len(gone) == 2
        assert [house.region(row).log.cursors.all_cursors() for row in (b"10", b"90")] == [{}, {}]

    run()


@pytest.mark.parametrize(("written", "is_called_off"), [(3, False), (4, True)])
def test_a_copy_that_falls_behind_is_called_off(
    written: int, is_called_off: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of both regions that wait to be copied are counted together."""
    monkeypatch.setattr(region_copier, "TOUCHED_ROWS", 3)
    monkeypatch.setattr(region_copier, "COPY_CELLS", 1)

    @housed(splits=(b"50",))
    async def run(house: House) -> None:
        await house.put(*(b"%02d" % n for n in range(0, 100, 10)))
        merging = asyncio.ensure_future(in_one(house))
        while house.region(b"10").syncs.touched is None:  # noqa: ASYNC110 - a step before the first copy
            await asyncio.sleep(0)
        for row in (b"11", b"91", b"12", b"92")[:written]:  # at once: nothing is copied in between
            house.region(row).apply(RowMutation(row, (Put(b"f", b"q", b"1"),), (), Durability.ASYNC))
        if is_called_off:
            with pytest.raises(RegionTooBusy, match=r"written to faster than it can be copied \(4 rows wait\)"):
                await merging
            assert len(house.infos) == 2
        else:
            await merging
            assert len(house.infos) == 1
        assert len(house.rows_held()) == 10 + written
        assert obstacles_of(house.region(b"10")) == [], "nobody counts its rows any more"

    run()


def test_a_round_that_falls_behind_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_copier, "TOUCHED_ROWS", 3)
    monkeypatch.setattr(region_copier, "COPY_ROWS", 1)

    @housed()
    async def run(house: House) -> None:
        await house.put(b"10", b"90")
        region = house.region(b"10")

        def write(*rows: bytes) -> None:
            for row in rows:
                region.apply(RowMutation(row, (Put(b"f", b"q", b"1"),), (), Durability.ASYNC))

        splitting = asyncio.ensure_future(in_two(house))
        while region.syncs.touched is None:  # noqa: ASYNC110 - a step before the first round
            await asyncio.sleep(0)
        write(b"11", b"12")
        while region.syncs.touched:  # noqa: ASYNC110 - until the round has taken them
            await asyncio.sleep(0)
        write(b"13", b"91", b"14", b"92")
        with pytest.raises(RegionTooBusy, match=r"\(4 rows wait\)"):
            await splitting
        assert house.rows_held() == [b"10", b"11", b"12", b"13", b"14", b"90", b"91", b"92"]
        assert len(house.infos) == 1
        await in_two(house)
        assert len(house.infos) == 2

    run()


# --- cleaning up ---------------------------------------------------------------------------------------


@housed()
async def test_each_new_region_gives_back_what_is_not_its_own(house: House) -> None:
    await house.put(b"10", b"90")
    low, high = await house.regions.split(house.infos[0], b"50")
    await house.until(lambda: house.was_cleaned(low) and house.was_cleaned(high))


async def cleaning_waits(house: House) -> None:
    """The cleaning up of a first split hangs, so that of the next one waits for it."""
    house.engine.may_clean.clear()
    await house.changes.create(b"u", [Family("f")])
    (other,) = house.server.tables.known(b"u").regions
    low, _ = await house.regions.split(other, b"50")
    await house.until(lambda: house.was_cleaned(low))
    await house.put(b"10", b"90")


async def cleaning_ends(house: House) -> None:
    house.engine.may_clean.set()
    last = house.server.tables.known(b"u").regions[-1]
    await house.until(lambda: house.was_cleaned(last))
    low, high = await house.regions.split(last, b"70")
    await house.until(lambda: house.was_cleaned(low) and house.was_cleaned(high))


@housed()
async def test_a_table_that_was_disabled_meanwhile_is_not_opened_to_be_cleaned(house: House) -> None:
    await cleaning_waits(house)
    fresh = await in_two(house)
    await house.changes.disable(b"t")
    await cleaning_ends(house)
    assert not any(house.was_cleaned(info) or house.server.is_open(info) for info in fresh)


@housed()
async def test_a_table_that_was_dropped_meanwhile_is_not_cleaned(house: House) -> None:
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    await cleaning_waits(house)
    fresh = await in_two(house)
    await house.changes.disable(b"t")
    await house.changes.drop(b"t")
    await cleaning_ends(house)
    assert not any(house.was_cleaned(info) or house.engine.exists(house.server.folder_of(info)) for info in fresh)
    await house.regions.close()
    assert unhandled == []


@housed()
async def test_regions_that_were_replaced_meanwhile_are_not_cleaned(house: House) -> None:
    await cleaning_waits(house)
    low, high = await in_two(house)
    lowest, middle = await house.regions.split(low, b"20")
    await cleaning_ends(house)
    assert not house.was_cleaned(low)
    assert house.was_cleaned(high)
    assert house.was_cleaned(lowest)
    assert house.was_cleaned(middle)


@housed()
async def test_a_server_that_stops_begins_no_more_cleaning(house: House) -> None:
    """Nor while it waits for a split that is under way."""
    await cleaning_waits(house)
    (_, other) = house.server.tables.known(b"u").regions
    house.engine.gate.hold()
    splitting = asyncio.ensure_future(in_two(house))
    await asyncio.to_thread(house.engine.gate.entered.wait, 10)
    closing = asyncio.ensure_future(house.regions.close())
    await asyncio.sleep(0)
    house.engine.may_clean.set()
    await house.until(lambda: not any(region.work.running for region in house.server.all_open()))
    for _ in range(10):
        await asyncio.sleep(0)
    house.engine.gate.release()
    await splitting
    await closing
    assert len(house.infos) == 2, "what was under way is finished"
    assert not any(house.was_cleaned(info) for info in (other, *house.infos))
    assert house.rows_held() == [b"10", b"90"]
    with pytest.raises(NotServingRegion, match="stopping"):
        await in_two(house)


# --- by size -------------------------------------------------------------------------------------------


@housed(region_bytes=100)
async def test_a_large_region_waits_until_what_is_no_longer_needed_is_given_back(house: House) -> None:
    """Before that the halves are as large as the whole: they would be split again and again."""
    house.engine.may_clean.clear()
    await house.put(*(b"%02d" % n for n in range(0, 100, 5)))
    assert await house.regions.split_the_largest()
    assert len(house.infos) == 2
    assert not await house.regions.split_the_largest()
    assert len(house.infos) == 2
    house.engine.may_clean.set()
    await house.until(lambda: all(house.was_cleaned(info) for info in house.infos))
    while not await house.regions.split_the_largest():  # noqa: ASYNC110 - the thread has ended, its task not yet
        await asyncio.sleep(0)
    assert len(house.infos) == 3


@housed(region_bytes=100)
async def test_regions_split_by_themselves_one_after_the_other(house: House) -> None:
    """The end of one's cleaning up begins the next, without a wait for the next look."""
    await house.put(*(b"%02d" % n for n in range(0, 100, 5)))
    assert await house.regions.split_the_largest()
    house.regions.start()
    await house.until(lambda: len(house.infos) > 4)
    assert len(house.rows_held()) == 20


@housed(region_bytes=100)
async def test_a_server_that_stops_splits_nothing_by_size(house: House) -> None:
    await house.put(*(b"%02d" % n for n in range(0, 100, 5)))
    await house.regions.close()
    assert not await house.regions.split_the_largest()
    assert len(house.infos) == 1


@pytest.mark.parametrize("turns", range(8))
def test_a_server_stops_in_the_moment_in_which_a_look_was_asked_for(turns: int) -> None:
    """``asyncio.wait_for`` passes over a cancellation that comes when what it waits for has just come about."""

    @housed()
    async def run(house: House) -> None:
        house.regions.start()
        await asyncio.sleep(0.01)
        house.regions._split_check_due.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        closing = asyncio.ensure_future(house.regions.close())
        done, _ = await asyncio.wait([closing], timeout=5)
        assert done, "it stops"

    run()


@housed(region_bytes=100)
async def test_a_look_that_fails_is_not_the_last(house: House) -> None:
    free_bytes, refused = house.folders.free_bytes, asyncio.Event()

    def refuses() -> int:
        house.folders.free_bytes = free_bytes  # type: ignore[method-assign]
        refused.set()
        raise OSError(5, "Input/output error")

    await house.put(*(b"%02d" % n for n in range(0, 100, 5)))
    house.folders.free_bytes = refuses  # type: ignore[method-assign]
    house.regions.start()
    house.regions._split_check_due.set()
    await refused.wait()
    house.regions._split_check_due.set()
    await house.until(lambda: len(house.infos) > 1)

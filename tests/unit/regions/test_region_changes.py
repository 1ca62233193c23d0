"""Splits and merges that are called off, cut off or waited for: nothing changes but what is said to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import (
    HostError,
    IllegalArgument,
    NotServingRegion,
    OutcomeUnknown,
    RegionTooBusy,
    RegionUnavailable,
    TableNotEnabled,
    TableNotFound,
)
from columnar.model.mutation import Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Commit, Loads, RegionChange
from columnar.model.system_tables import DEAD_LETTERS_TABLE
from columnar.model.trigger_registration import Registration
from columnar.operations.system_tables import SystemTables
from columnar.regions.replace import region_copier, region_replacement
from columnar.regions.write.ingestion import obstacles_of
from columnar.storage.api import StoreClosed
from columnar.triggers import consumer
from tests.crash.test_region_kills import ALL
from tests.support.memory_house import House, housed
from tests.support.openings import opened_at_once


@housed()
async def test_a_catalogue_that_does_not_take_the_commit_calls_it_off(house: House) -> None:
    await house.put(b"10", b"90")
    before = list(house.infos)

    def at(step: str) -> None:
        if step == "made":
            house.rows.failure = HostError("no more")

    house.regions.at = at
    with pytest.raises(HostError):
        await house.regions.split(before[0], b"50")
    house.rows.failure, house.regions.at = None, lambda _step: None
    assert house.infos == before
    await house.put(b"20")
    await house.regions.split(before[0], b"50")
    assert house.rows_held() == [b"10", b"20", b"90"]


@housed()
async def test_ranges_and_sorted_files_keep_out_of_a_region_that_is_replaced(house: House) -> None:
    """What replaces it is told of single rows: what came or went by a range would be lost, or come back."""
    await house.put(b"10", b"90")
    region = house.region(b"10")
    now_ms = region.now_ms + 1
    assert region.can_delete_at_once(now_ms)
    assert obstacles_of(region) == []
    seen: list[tuple[bool, int]] = []

    def at(step: str) -> None:
        if step == "prepared":
            seen.append((region.can_delete_at_once(now_ms), len(obstacles_of(region))))

    house.regions.at = at
    await house.regions.split(house.infos[0], b"50")
    assert seen == [(False, 1)]
    assert house.region(b"10").can_delete_at_once(now_ms)
    assert obstacles_of(house.region(b"10")) == []


@housed()
async def test_a_catalogue_that_takes_no_write_calls_it_off(house: House) -> None:
    await house.put(b"10", b"90")
    before = list(house.infos)
    house.rows.failure = HostError("no more")
    with pytest.raises(HostError):
        await house.regions.split(before[0], b"50")
    house.rows.failure = None
    assert house.infos == before
    await house.put(b"20")
    assert house.rows_held() == [b"10", b"20", b"90"]
    await house.regions.split(before[0], b"50")
    assert [info.start for info in house.infos] == [b"", b"50"]
    assert house.rows_held() == [b"10", b"20", b"90"]


@housed()
async def test_where_nobody_knows_the_outcome_nobody_serves(house: House) -> None:
    await house.put(b"10", b"90")

    def at(step: str) -> None:
        if step == "made":
            house.rows.failure = OutcomeUnknown("the disk refused")

    house.regions.at = at
    with pytest.raises(OutcomeUnknown):
        await house.regions.split(house.infos[0], b"50")
    with pytest.raises(NotServingRegion, match="known when the disk takes writes again"):
        await house.put(b"20")


@housed(triggers=1)
async def test_when_the_catalogue_is_mended_the_old_ones_serve_again(house: House) -> None:
    """With their triggers, whether anybody asks for them or not."""
    await house.put(b"10", b"90")
    (before,) = house.infos

    def at(step: str) -> None:
        if step == "made":
            house.rows.failure = OutcomeUnknown("the disk refused")

    house.regions.at = at
    with pytest.raises(OutcomeUnknown):
        await house.regions.split(before, b"50")
    house.rows.failure, house.regions.at = None, lambda _step: None
    await house.rows.write(house.catalogue.repairs(house.rows.read()))
    await house.regions.catalogue_repaired()
    assert house.infos == [before]
    assert house.server.is_open(before), "its changes are still to be delivered"
    assert house.rows_held() == [b"10", b"90"]
    assert not [path for path in house.engine.memory.disks if "meta" not in path and house.is_of_t(path)]
    await house.drain()
    await house.put(b"20")
    low, high = await house.regions.split(before, b"50")
    assert house.rows_held() == [b"10", b"20", b"90"]
    assert house.infos == [low, high]
    await house.drain()
    assert {row for row, _ in house.told} == {b"10", b"20", b"90"}


@housed()
async def test_a_change_passes_every_step_that_kills_are_tried_at(house: House) -> None:
    await house.put(b"10", b"90")
    steps: list[str] = []
    house.regions.at = steps.append
    await house.regions.split(house.infos[0], b"50")
    assert tuple(steps) == ALL


@housed()
async def test_requests_wait_while_it_is_shut(house: House) -> None:
    await house.put(b"10", b"90")
    seen: list[asyncio.Task[str]] = []

    def at(step: str) -> None:
        if step == "shut":
            seen.append(asyncio.ensure_future(house.put(b"60", value=b"2")))

    house.regions.at = at
    await house.regions.split(house.infos[0], b"50")
    await seen[0]
    assert house.region(b"60").info.start == b"50"
    assert house.rows_held() == [b"10", b"60", b"90"]


@housed()
async def test_a_pause_that_would_be_too_long_is_called_off(house: House) -> None:
    await house.put(b"10", b"90")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_replacement, "MADE_S", -1.0)
        with pytest.raises(RegionTooBusy, match="called off"):
            await house.regions.split(house.infos[0], b"50")
    assert len(house.infos) == 1
    assert house.rows_held() == [b"10", b"90"]


@housed()
async def test_what_was_copied_is_on_disk_before_requests_wait(house: House) -> None:
    steps: list[str] = []
    await house.put(b"10", b"90")
    with pytest.MonkeyPatch.context() as patch:
        sync = region_copier.RegionCopier.sync

        async def noted(self: region_copier.RegionCopier) -> None:
            steps.append("sync")
            await sync(self)

        patch.setattr(region_copier.RegionCopier, "sync", noted)
        house.regions.at = steps.append
        await house.regions.split(house.infos[0], b"50")
    assert steps[:6] == ["prepared", "sync", "held", "shut", "sync", "made"]


@housed()
async def test_a_table_of_the_system_is_read_again_after_its_region_was_closed(house: House) -> None:
    """That nothing is open says nothing about what is stored."""
    tables = SystemTables(house.server)
    await tables.write_mutation(DEAD_LETTERS_TABLE, RowMutation(b"x", (Put(b"info", b"letter", b"{}"),)))
    served = house.server.tables.enabled(DEAD_LETTERS_TABLE.encode())
    region = opened_at_once(house.server, served, served.regions[0])
    house.server.eviction.evict(region)
    assert [row async for row, _ in tables.rows(DEAD_LETTERS_TABLE)] == [b"x"]


@housed()
async def test_requests_are_let_in_between_two_tries(house: House) -> None:
    """What waited for a pause that came to nothing is served then, and the successors have it."""
    await house.put(b"10", b"90")
    steps: list[str] = []
    served: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_replacement, "MADE_S", -1.0)

        def at(step: str) -> None:
            steps.append(step)
            if step == "shut" and len(served) < 2:
                served.append(asyncio.ensure_future(house.put(b"%d" % (20 + len(served)), b"95")))
            if steps.count("shut") == 3:
                patch.setattr(region_replacement, "MADE_S", 60.0)

        house.regions.at = at
        await house.regions.split(house.infos[0], b"50")
    assert steps[:8] == ["prepared", "held", "shut", "held", "shut", "held", "shut", "made"]
    assert [info.start for info in house.infos] == [b"", b"50"]
    await asyncio.gather(*served)
    assert house.rows_held() == [b"10", b"20", b"21", b"90", b"95"]


@housed(splits=(b"50",))
async def test_a_region_that_never_calms_down_is_left_alone(house: House) -> None:
    await house.put(b"10", b"90")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_copier, "FEW", -1)
        with pytest.raises(RegionTooBusy, match="faster than it can be copied"):
            await house.regions.merge(*house.infos)
    assert [info.start for info in house.infos] == [b"", b"50"]
    assert house.rows_held() == [b"10", b"90"]
    assert house.region(b"10").syncs.touched is None


@housed()
async def test_a_failed_fsync_calls_it_off(house: House) -> None:
    await house.put(b"10", b"90")
    lost: list[Any] = []

    def at(step: str) -> None:
        if step == "held":
            house.engine.gate.hold()
            lost.append(house.region(b"10").apply(RowMutation(b"10", (Put(b"f", b"q", b"lost"),))).durable)
            asyncio.get_running_loop().call_later(0.02, house.engine.gate.fail)

    house.regions.at = at
    with pytest.raises(NotServingRegion):
        await house.regions.split(house.infos[0], b"50")
    with pytest.raises(OutcomeUnknown):
        await lost[0]
    house.engine.gate.release()
    assert len(house.infos) == 1
    assert house.rows_held() == [b"10", b"90"]


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_disk_that_fails_while_requests_wait_opens_nothing_before_the_catalogue_has_answered(is_taken: bool) -> None:
    """What were written to the old region then would be in no successor."""

    @housed(triggers=1)
    async def run(house: House) -> None:
        await house.put(b"10", b"90")
        (parent,) = house.infos
        late: list[asyncio.Task[str]] = []

        def at(step: str) -> None:
            if step == "made":
                house.rows.failure = None if is_taken else HostError("no more")
                assert house.committer.on_broken is not None
                house.committer.on_broken(store, HostError("an fsync failed"))
                late.append(asyncio.ensure_future(house.put(b"60")))
            if step in ("made", "committed"):
                with pytest.raises(RegionUnavailable):
                    house.server.open_region(house.table, parent)
                house.server.openings.check_invariants()

        store, house.regions.at = house.region(b"10").store, at
        if is_taken:
            await house.regions.split(parent, b"50")
        else:
            with pytest.raises(HostError, match="no more"):
                await house.regions.split(parent, b"50")
        house.rows.failure = None
        await asyncio.gather(*late)
        assert len(house.infos) == (2 if is_taken else 1)
        assert house.rows_held() == [b"10", b"60", b"90"]
        await house.drain()
        assert {row for row, _ in house.told} == {b"10", b"60", b"90"}, "its consumers go on"

    run()


@housed(triggers=1)
async def test_it_waits_for_what_triggers_have_under_way(house: House) -> None:
    house.workers[0].is_held = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_replacement, "QUIESCE_TIMEOUT_S", 0.05)
        await house.put(b"10", b"90")
        await house.workers[0].until(lambda: house.told)
        with pytest.raises(RegionTooBusy, match="trigger-0 has been running for"):
            await house.regions.split(house.infos[0], b"50")
    house.workers[0].is_held = False
    await house.regions.split(house.infos[0], b"50")
    await house.put(b"20", b"80")
    await house.drain()
    assert sorted(row for row, _ in house.told) == [b"10", b"20", b"80", b"90"]


@housed(triggers=1)
async def test_timestamps_of_a_row_rise_over_it_though_the_clock_stands_still(house: House) -> None:
    async def stamp() -> int:
        return (await house.apply(RowMutation(b"90", (Put(b"f", b"q", b"1"),)))).timestamp

    found = [await stamp(), await stamp()]
    await house.regions.split(house.infos[0], b"50")
    found += [await stamp(), await stamp()]
    await house.regions.merge(*house.infos)
    found += [await stamp(), await stamp()]
    assert found == sorted(set(found))


@housed(triggers=1)
async def test_tokens_of_a_region_that_is_gone_are_answered(house: House) -> None:
    tokens = [await house.put(b"10"), await house.put(b"90")]
    await house.regions.split(house.infos[0], b"50")
    for token in tokens:
        assert await house.keeper.wait_delivered("trigger-0", token, 5)
    house.keeper.dispatcher.pause("trigger-0")
    late = await house.put(b"20")
    await house.regions.merge(*house.infos)
    assert not await house.keeper.wait_delivered("", late, 0.01)
    house.keeper.dispatcher.resume("trigger-0")
    assert await house.keeper.wait_delivered("", late, 5)
    assert [row for row, _ in house.told] == [b"10", b"90", b"20"]


@housed(triggers=2)
async def test_a_wait_outlives_the_region(house: House) -> None:
    for n in range(2):
        house.keeper.dispatcher.pause(f"trigger-{n}")
    token = await house.put(b"90")
    await house.put(b"10")
    waits = [
        asyncio.ensure_future(house.keeper.wait_delivered(*args, 10))
        for args in (("", ""), ("trigger-1", token), ("", token))
    ]
    await asyncio.sleep(0)
    await house.regions.split(house.infos[0], b"50")
    await house.regions.split(house.infos[1], b"70")
    await house.regions.merge(house.infos[1], house.infos[2])
    await house.regions.merge(house.infos[0], house.infos[1])
    assert not any(wait.done() for wait in waits)
    house.keeper.dispatcher.resume("trigger-0")
    house.keeper.dispatcher.resume("trigger-1")
    assert await asyncio.gather(*waits) == [True, True, True]
    assert len(house.told) == 4
    assert len(house.infos) == 1


@housed()
async def test_a_backfill_goes_over_to_both_daughters(house: House) -> None:
    names = [b"%02d%d" % (n, k) for n in range(100) for k in range(10)]
    await house.put(*names)
    held = Registration("all", "t", "m:f", ("f",), from_where="beginning")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consumer, "BACKFILL_ROWS", 1)
        await house.register(held)
        await house.regions.split(house.infos[0], b"40")
        assert any(not c.is_prepared for c in house.keeper.dispatcher.intake.consumers_of("all")), "it shows nothing"
        await house.regions.split(house.infos[0], b"05")
        with pytest.raises(RegionTooBusy, match="not yet seen all of its rows"):
            await house.regions.merge(house.infos[1], house.infos[2])
        await house.drain()
    assert sorted(row for row, _ in house.told) == names
    await house.regions.merge(house.infos[1], house.infos[2])
    await house.drain()
    assert len(house.told) == len(names)


@housed()
async def test_a_table_that_is_dropped_meanwhile_is_gone(house: House) -> None:
    await house.put(b"10", b"90")
    splitting = asyncio.ensure_future(house.regions.split(house.infos[0], b"50"))
    await asyncio.sleep(0)
    await house.changes.disable(b"t")
    await house.changes.drop(b"t")
    with pytest.raises((NotServingRegion, TableNotFound, TableNotEnabled)):
        await splitting
    assert not [path for path in house.engine.memory.disks if "meta" not in path and house.is_of_t(path)]


@housed(triggers=1, splits=(b"50",))
async def test_a_region_far_behind_is_not_merged(house: House) -> None:
    house.keeper.dispatcher.pause("trigger-0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("columnar.flows.handover.CARRIED_CHANGES", 1)
        patch.setattr("columnar.regions.replace.region_replacement.QUIESCE_TIMEOUT_S", 0.01)
        await house.put(b"10", b"11", b"90")
        with pytest.raises(RegionTooBusy, match="a trigger is far behind"):
            await house.regions.merge(*house.infos)
    await house.regions.merge(*house.infos)
    house.keeper.dispatcher.resume("trigger-0")
    await house.drain()
    assert sorted(row for row, _ in house.told) == [b"10", b"11", b"90"]


@housed()
async def test_what_cannot_be_says_so(house: House) -> None:
    with pytest.raises(IllegalArgument, match="fewer than two rows"):
        await house.regions.split(house.infos[0], None)
    await house.put(b"10", b"90")
    parent = house.infos[0]
    await house.regions.split(parent, None)
    with pytest.raises(NotServingRegion, match="meanwhile"):
        await house.regions.split(parent, b"20")
    system = house.catalogue.tables[DEAD_LETTERS_TABLE].regions[0]
    with pytest.raises(IllegalArgument, match="table of the system"):
        await house.regions.split(system, b"20")
    await house.changes.disable(b"t")
    with pytest.raises(TableNotEnabled):
        await house.regions.merge(*house.infos)
    await house.changes.enable(b"t")
    await house.regions.merge(*house.infos)
    assert house.rows_held() == [b"10", b"90"]


@housed(region_bytes=100)
async def test_a_large_region_splits_by_itself(house: House) -> None:
    await house.put(*(b"%02d" % n for n in range(0, 100, 5)))
    while await house.regions.split_the_largest():
        await house.regions._cleaning.ended()
    assert len(house.infos) > 4
    loads = await house.owner.request_peer(Loads())
    assert len(loads) == len(house.infos)
    assert all(load.size_bytes <= 100 or load.info.region_id in house.regions._tried for load in loads), loads
    assert len(house.rows_held()) == 20


@housed()
async def test_only_the_owner_at_its_epoch_carries_a_change_out(house: House) -> None:
    await house.put(b"10", b"90")
    house.catalogue.ownership.epoch += 1  # another was named meanwhile
    with pytest.raises(NotServingRegion, match="not owned at epoch"):
        await house.regions.split(house.infos[0], b"50")
    house.catalogue.ownership.epoch -= 1
    assert house.catalogue.dropped == []
    assert len(await house.regions.split(house.infos[0], b"50")) == 2


@housed()
async def test_nothing_is_committed_but_the_change_that_is_being_finished(house: House) -> None:
    """An owner that was called off, or fenced, may come late."""
    await house.put(b"10", b"90")
    low, high = (RegionInfo("t", 1_000 + n, start, end) for n, (start, end) in enumerate(((b"", b"5"), (b"5", b""))))
    late = RegionChange(tuple(house.infos), (low, high), house.catalogue.ownership.epoch)
    with pytest.raises(NotServingRegion, match="called off"):
        await house.regions.request_peer(Commit(late))

    def at(step: str) -> None:
        if step == "made":
            seen.append(asyncio.ensure_future(house.regions.request_peer(Commit(late))))

    seen: list[asyncio.Future[None]] = []
    house.regions.at = at
    fresh = await house.regions.split(house.infos[0], b"50")
    with pytest.raises(NotServingRegion, match="called off"):
        await seen[0]
    assert house.infos == fresh


@housed()
async def test_an_epoch_is_never_given_twice(house: House) -> None:
    first = house.catalogue.ownership.epoch
    assert house.server.hosting.state.epoch == first
    await house.rows.write(house.catalogue.repairs(house.rows.read()))
    again = await house.restarted()
    assert again.catalogue.ownership.epoch == again.server.hosting.state.epoch == first + 1
    await again.close()


@housed()
async def test_a_store_that_is_closed_amid_a_split_is_a_region_that_is_not_served(house: House) -> None:
    """A disable beside a split: the client heard of the store's path, and that it has no space."""
    await house.put(b"10", b"90")
    changing = house.owner.changing

    def at(step: str) -> None:
        if step == "held":
            raise StoreClosed("the store /data/regions/ab is closed, or has no space log")

    changing.at = at
    with pytest.raises(NotServingRegion, match=r"region [0-9a-f]+ was closed meanwhile; try again"):
        await house.regions.split(house.infos[0], b"50")
    changing.at = lambda _step: None
    await house.regions.split(house.infos[0], b"50")
    assert house.rows_held() == [b"10", b"90"]

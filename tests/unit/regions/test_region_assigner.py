"""Regions that a master gives a server: what is answered when, what a store is opened with, and who is refused."""

from __future__ import annotations

import asyncio

import pytest

from columnar.errors import DamagedData, HostError, NotServingRegion, RegionNotLocal, RegionUnavailable
from columnar.model.owner import Owner, OwnershipPeriod, first_owner
from columnar.model.owner_messages import CannotOpen, CloseRegion, GivenUp, OpenRegion, RenumberRegion
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange
from columnar.regions.life import region_assigner
from columnar.regions.life.region_state import State
from columnar.regions.tables import ServedTable
from columnar.storage.dead_logs import DeadLog
from columnar.storage.ownership import THIS_RUN, LogPart, Ownership
from tests.support.owned_regions import (
    DEAD,
    FIRST,
    HERE,
    LEADER,
    OTHER,
    PUT,
    REGIONS,
    TABLE,
    House,
    run,
)


def test_a_region_is_served_when_it_was_told_and_not_before() -> None:
    async def check(house: House) -> None:
        with pytest.raises(RegionNotLocal):
            house.server.open_region(house.served, FIRST)
        await house.open(first_owner(HERE))
        await house.put()
        await house.open(first_owner(HERE))  # told again
        assert house.engine.claims == [Ownership(FIRST.encoded, 1)]
        with pytest.raises(RegionNotLocal):
            house.server.open_region(house.served, REGIONS[1])

    run(check)


def test_what_is_behind_is_brought_in_before_the_answer_and_once() -> None:
    async def check(house: House) -> None:
        owner = Owner(HERE, 9, unreplayed_logs=(OwnershipPeriod(DEAD, 7), OwnershipPeriod(OTHER, 8)))
        lengths = (("00000001.segment", 99),)
        asked = asyncio.ensure_future(house.open(owner, FIRST, (DEAD, lengths), (OTHER, ())))
        await asyncio.sleep(0)
        assert not asked.done()
        await asked
        behind = (LogPart("s2.3", 7), LogPart("s3.4", 8))
        assert house.engine.claims == [Ownership(FIRST.encoded, 9, behind)]
        assert house.logs.read == [("s2.3", lengths), ("s3.4", ())]
        assert house.logs.dead_logs.of("s2.3") is None, "nobody lacks anything of it any more"
        house.server.eviction.evict(await house.region())
        await house.region()
        assert house.engine.claims[1:] == [Ownership(FIRST.encoded, 9)]

    run(check)


def test_regions_are_brought_in_as_they_were_told_before_others_are_opened() -> None:
    async def check(house: House) -> None:
        owners = [
            first_owner(HERE),
            *[Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),)) for _ in REGIONS[1:]],
        ]
        asks = [house.open(owner, info, (DEAD, ())) for owner, info in zip(owners, REGIONS, strict=True)]
        await asyncio.gather(*asks)
        await house.settled()
        order = [*REGIONS[1:], REGIONS[0]]
        assert [claim.region for claim in house.engine.claims] == [info.encoded for info in order]

    run(check)


def test_a_dead_log_stays_as_long_as_a_region_lacks_it() -> None:
    async def check(house: House) -> None:
        house.engine.failures[REGIONS[1].encoded] = HostError("the disk is full")
        owner = Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),))
        asks = [asyncio.ensure_future(house.open(owner, info, (DEAD, ()))) for info in REGIONS[:2]]
        await asks[0]
        house.owning.check_invariants()
        with pytest.raises(HostError, match="the disk is full"):
            await asks[1]
        assert house.logs.dead_logs.of("s2.3") is None
        assert house.logs.read == [("s2.3", ())], "one reading for both"

    run(check)


def test_a_region_that_cannot_be_brought_up_to_date_is_refused_at_that_epoch_for_ever() -> None:
    async def check(house: House) -> None:
        house.engine.failures[FIRST.encoded] = DamagedData("a segment is cut")
        with pytest.raises(DamagedData, match="a segment is cut"):
            await house.open(Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),)), FIRST, (DEAD, ()))
        house.engine.failures.clear()
        with pytest.raises(NotServingRegion, match="epoch 2"):
            await house.open(Owner(HERE, 2))
        with pytest.raises(RegionNotLocal):
            house.server.open_region(house.served, FIRST)
        await house.open(Owner(HERE, 3))
        await house.put()

    run(check)


def test_a_log_of_which_no_extent_was_told_is_missed() -> None:
    async def check(house: House) -> None:
        asked = asyncio.ensure_future(house.open(Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),))))
        await asked
        assert house.engine.claims == [Ownership(FIRST.encoded, 2, (LogPart("s2.3", 1),))]
        assert house.logs.read == [], "the engine says that it is not here"

    run(check)


@pytest.mark.parametrize("fault", [OSError(5, "Input/output error"), DamagedData("a bound is cut"), IndexError("7")])
def test_a_log_that_fails_in_its_own_way_fails_its_region_and_no_other(fault: Exception) -> None:
    async def check(house: House) -> None:
        read = house.logs.dead_log

        def dead_log(incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog:
            if incarnation == str(DEAD):
                raise fault
            return read(incarnation, lengths)

        house.logs.dead_log = dead_log  # type: ignore[method-assign]
        owners = [Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(server, 1),)) for server in (DEAD, OTHER)]
        asks = [
            asyncio.ensure_future(house.open(owner, info, (DEAD, ()), (OTHER, ())))
            for owner, info in zip(owners, REGIONS, strict=False)
        ]
        await asks[1]
        with pytest.raises(DamagedData if isinstance(fault, DamagedData) else HostError, match=str(fault.args[-1])):
            await asks[0]
        house.owning.check_invariants()
        await house.open(Owner(HERE, 3))
        await house.put()

    run(check)


def test_a_region_that_a_request_has_had_opened_has_not_failed() -> None:
    """Its log could be read then, and cannot be read any more."""

    async def check(house: House) -> None:
        is_open = asyncio.Event()

        async def load(_region: int) -> None:
            await is_open.wait()
            raise HostError("the disk does not answer")

        house.owning._lacking.load = load  # type: ignore[assignment,method-assign]
        asked = asyncio.ensure_future(
            house.open(Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),)), FIRST, (DEAD, ()))
        )
        await asyncio.sleep(0)
        await house.region()
        is_open.set()
        await asked
        await house.settled()
        assert house.reports == []
        await house.put()

    run(check)


def test_a_region_of_a_disabled_table_is_closed_when_it_has_what_was_behind() -> None:
    async def check(house: House) -> None:
        house.server.tables.install(ServedTable(TABLE, False, list(REGIONS)))
        await house.open(Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),)), FIRST, (DEAD, ()))
        await house.open(Owner(HERE, 2), REGIONS[1])
        await house.settled()
        assert house.server.open_count() == 0, "nobody would close it when the table is dropped"
        assert house.owning.state.serving() == {10: 2, 11: 2}
        house.server.tables.install(house.served)
        await house.put()
        behind = (LogPart("s2.3", 1),)
        assert house.engine.claims == [Ownership(FIRST.encoded, 2, behind), Ownership(FIRST.encoded, 2)]

    run(check)


def test_own_records_come_from_this_runs_log() -> None:
    async def check(house: House) -> None:
        await house.open(Owner(HERE, 3, unreplayed_logs=(OwnershipPeriod(HERE, 2),)))
        assert house.engine.claims == [Ownership(FIRST.encoded, 3, (LogPart(THIS_RUN, 2),))]
        # Later its disk fails; the log has records of an earlier tenure, too, which others have written over.
        house.logs.server_log.parts[FIRST.encoded] = (LogPart(THIS_RUN, 1), LogPart(THIS_RUN, 3))
        house.server.eviction.evict(await house.region())
        await house.region()
        assert house.engine.claims[1:] == [Ownership(FIRST.encoded, 3, (LogPart(THIS_RUN, 3),))]

    run(check)


def test_a_close_waits_for_what_was_written_and_those_who_wait_go_elsewhere() -> None:
    async def check(house: House) -> None:
        await house.open(first_owner(HERE))
        region = await house.region()
        house.engine.gate.hold()
        written = region.apply(PUT)
        closing = asyncio.ensure_future(house.close_at(1))
        while house.server.hosting.state_of(region) is not State.CLOSING:  # noqa: ASYNC110 - some steps of the loop
            await asyncio.sleep(0)
        late = asyncio.ensure_future(house.put())
        await asyncio.sleep(0)
        assert not closing.done()
        assert not written.durable.done()
        house.engine.gate.release()
        assert await closing == GivenUp(1, has_unreplayed_log=False)
        assert written.durable.done()
        with pytest.raises(RegionNotLocal):
            await late
        assert await house.close_at(1) == GivenUp(1, has_unreplayed_log=False)

    run(check)


def test_a_closed_region_says_whether_its_log_has_more_than_its_store() -> None:
    async def check(house: House) -> None:
        await house.open(Owner(HERE, 4))
        await house.put()
        house.logs.server_log.parts[FIRST.encoded] = (LogPart(THIS_RUN, 2),)  # of an earlier tenure
        await house.open(Owner(HERE, 4), REGIONS[1])
        house.logs.server_log.parts[REGIONS[1].encoded] = (LogPart(THIS_RUN, 4),)
        assert await house.close_at(4) == GivenUp(4, has_unreplayed_log=False)
        assert await house.close_at(4, REGIONS[1]) == GivenUp(4, has_unreplayed_log=True)
        assert await house.close_at(9, REGIONS[2]) == GivenUp(9, has_unreplayed_log=False), "it was never here"
        with pytest.raises(NotServingRegion):
            await house.open(Owner(HERE, 9), REGIONS[2])

    run(check)


def test_a_close_overtakes_an_opening() -> None:
    async def check(house: House) -> None:
        owner = Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),))
        asked = asyncio.ensure_future(house.open(owner, FIRST, (DEAD, ())))
        await asyncio.sleep(0)
        assert await house.close_at(2) == GivenUp(2, has_unreplayed_log=False)
        with pytest.raises(NotServingRegion, match="given it up"):
            await asked
        assert house.logs.dead_logs.of("s2.3") is None
        await house.settled()
        assert house.engine.claims == [], "the next owner opens it, and nobody twice"

    run(check)


def test_a_close_calls_off_an_opening_that_waits_for_its_turn_and_requests_go_elsewhere() -> None:
    async def check(house: House) -> None:
        owner = Owner(HERE, 2, unreplayed_logs=(OwnershipPeriod(DEAD, 1),))
        asked = [asyncio.ensure_future(house.open(owner, info, (DEAD, ()))) for info in REGIONS[:2]]
        await asyncio.sleep(0)
        request = asyncio.ensure_future(house.region(REGIONS[1]))
        await asyncio.sleep(0)
        assert house.owning._hosting.state.state(REGIONS[1].region_id) is State.OPENING
        assert await house.close_at(2, REGIONS[1]) == GivenUp(2, has_unreplayed_log=False)
        with pytest.raises(RegionNotLocal):
            await request
        await asked[0]
        with pytest.raises(NotServingRegion, match="given it up"):
            await asked[1]
        assert [claim.region for claim in house.engine.claims] == [FIRST.encoded]
        house.owning.check_invariants()

    run(check)


def test_the_epoch_rises_under_an_open_store() -> None:
    async def check(house: House) -> None:
        await house.open(first_owner(HERE))
        region = await house.region()
        await house.owning.renumber(
            RenumberRegion(FIRST, Owner(HERE, 3, unreplayed_logs=(OwnershipPeriod(HERE, 1),))), LEADER
        )
        assert house.engine.owned == [(FIRST.encoded, 3)]
        assert await house.region() is region, "it serves on"
        assert await house.close_at(1) == GivenUp(1, has_unreplayed_log=True)
        await house.put()
        assert await house.close_at(3) == GivenUp(3, has_unreplayed_log=False)
        await house.owning.renumber(RenumberRegion(FIRST, Owner(HERE, 5)), LEADER)  # closed by now: as an opening
        await house.put()

    run(check)


def test_a_region_that_is_doubted_is_open_when_its_server_says_so() -> None:
    async def check(house: House) -> None:
        house.engine.failures[FIRST.encoded] = HostError("no descriptor is free")
        with pytest.raises(HostError, match="no descriptor is free"):
            await house.owning.open_region(OpenRegion(FIRST, first_owner(HERE), (), True), LEADER)
        assert house.reports == [], "the answer has said it"
        house.engine.failures.clear()
        await house.owning.open_region(OpenRegion(FIRST, first_owner(HERE, 2), (), True), LEADER)
        assert house.server.hosting.find_region(FIRST.region_id) is not None

    run(check)


def test_the_master_hears_once_of_a_region_that_a_request_could_not_open() -> None:
    async def check(house: House) -> None:
        house.engine.failures[FIRST.encoded] = DamagedData("a file is missing")
        await house.open(first_owner(HERE))
        await house.settled()
        for _ in range(2):
            with pytest.raises(DamagedData):
                await house.region()
        assert house.reports == [CannotOpen(FIRST, 1, "a file is missing", True)]
        house.engine.failures.clear()
        await house.region()
        house.server.eviction.evict(await house.region())
        house.engine.failures[FIRST.encoded] = HostError("the disk is full")
        with pytest.raises(HostError):
            await house.region()
        assert house.reports[1:] == [CannotOpen(FIRST, 1, "the disk is full", False)], "it was open in between"

    run(check)


def test_the_master_hears_again_of_a_region_whose_openings_go_on_failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been splitting or moving the region when it heard, and have taken no notice."""

    async def check(house: House) -> None:
        house.engine.failures[FIRST.encoded] = HostError("no file")
        await house.open(first_owner(HERE))
        await house.settled()
        for again_s, reports in ((10.0, 1), (0.0, 2), (10.0, 2)):
            monkeypatch.setattr(region_assigner, "REPORT_AGAIN_S", again_s)
            with pytest.raises(HostError, match="no file"):
                await house.region()
            assert house.reports == [CannotOpen(FIRST, 1, "no file", False)] * reports

    run(check)


def test_a_master_that_was_replaced_is_refused() -> None:
    async def check(house: House) -> None:
        await house.open(first_owner(HERE), leader=8)
        with pytest.raises(NotServingRegion, match="another master"):
            await house.open(Owner(HERE, 2), leader=7)
        with pytest.raises(NotServingRegion, match="another master"):
            await house.owning.close(CloseRegion(FIRST, 1), 7)
        await house.put()

    run(check)


def test_a_refusal_of_an_old_leader_is_no_answer_to_the_new_one() -> None:
    """Both may name this server at the same epoch; the region is had for the new one."""

    async def check(house: House) -> None:
        owner = Owner(HERE, 3, unreplayed_logs=(OwnershipPeriod(DEAD, 2),))
        asked = asyncio.ensure_future(house.open(owner, FIRST, (DEAD, ()), leader=8))
        await asyncio.sleep(0)
        with pytest.raises(NotServingRegion, match="another master"):
            await house.open(owner, FIRST, (DEAD, ()), leader=7)
        with pytest.raises(NotServingRegion, match="another master"):
            await house.owning.renumber(RenumberRegion(FIRST, owner), 7)
        await asked
        await house.put()

    run(check)


def test_a_region_that_comes_back_with_nothing_behind_keeps_no_segment() -> None:
    """It was closed here "behind me"; another server has brought that in since."""

    async def check(house: House) -> None:
        await house.open(Owner(HERE, 4))
        house.logs.server_log.parts[FIRST.encoded] = (LogPart(THIS_RUN, 4),)
        assert await house.close_at(4) == GivenUp(4, has_unreplayed_log=True)
        assert house.logs.server_log.parts, "its records stay as long as anybody may need them"
        await house.open(Owner(HERE, 6))
        assert not house.logs.server_log.parts
        await house.put()

    run(check)


def test_regions_are_opened_before_anybody_asks_up_to_the_bound_and_requests_go_first() -> None:
    async def check(house: House) -> None:
        for info in REGIONS:
            await house.open(first_owner(HERE), info)
        last = REGIONS[-1]
        with pytest.raises(RegionUnavailable):
            house.server.open_region(house.served, last)
        await house.settled()
        assert len(house.engine.claims) == house.server.open_count() == 2
        assert last.encoded in {claim.region for claim in house.engine.claims[:2]}

    run(check, open_regions=2)


def test_successors_of_a_split_are_owned_and_what_no_table_has_is_forgotten() -> None:
    async def check(house: House) -> None:
        await house.open(first_owner(HERE))
        await house.put()
        halves = (RegionInfo("t", 20, b"", b"b"), RegionInfo("t", 21, b"b", b"d"))
        house.owning.made(RegionChange((FIRST,), halves, 1))
        assert house.server.hosting.state.owns(20)
        assert house.owning.state.serving() == {10: 1, 20: 1, 21: 1}
        house.owning.dropped([FIRST])
        assert 10 in house.owning.state.serving(), "its store is open"
        house.server.eviction.evict(await house.region())
        house.logs.server_log.parts[FIRST.encoded] = (LogPart(THIS_RUN, 1),)
        house.owning.forget_dropped()
        assert house.owning.state.serving() == {20: 1, 21: 1}
        assert not house.logs.server_log.parts, "segments need not wait for it"

    run(check)


def test_successors_that_are_found_committed_later_are_opened_and_the_old_region_is_forgotten() -> None:
    async def check(house: House) -> None:
        await house.open(first_owner(HERE))
        await house.put()
        house.server.eviction.evict(await house.region())
        halves = (RegionInfo("t", 20, b"", b"b"), RegionInfo("t", 21, b"b", b"d"))
        house.server.tables.named("t").replace_regions([*halves, *REGIONS[1:]])
        house.owning.found_made(RegionChange((FIRST,), halves, 1))
        assert house.owning.state.serving() == {20: 1, 21: 1}
        while not all(map(house.server.is_open, halves)):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)

    run(check)

"""A cursor goes when its number is recorded as removed, and for no other reason."""

from __future__ import annotations

import pytest

from columnar.errors import HostError, TriggerError
from columnar.flows import follower
from columnar.flows.backpressure import LogBounds
from columnar.flows.delivery_cursor import Cursor, pack_cursor
from columnar.flows.follower_name import trigger
from columnar.model.trigger_registration import Registration
from columnar.regions.log.change_record import Sequence
from tests.unit.triggers.test_dispatcher import Bench, on_bench

UNREADABLE = b'{"name": "t", "table'
ELSEWHERE = pack_cursor(Cursor(Sequence(1, 1, 1), ()))


def write_registration(bench: Bench, name: bytes, data: bytes) -> None:
    bench.rows.cells[b"tr/" + name][b"info:registration"] = data


def stored_registration(bench: Bench, name: bytes) -> bytes:
    return bench.rows.cells[b"tr/" + name][b"info:registration"]


async def deliver(bench: Bench, name: str) -> list[bytes]:
    """The rows of the calls of one trigger; others are answered too."""
    rows = []
    assert await bench.hub._openings.settled(10.0)
    while not await bench.keeper.wait_delivered(name, "", 0.0):
        await bench.main.until(lambda: bench.main.sent)
        for call_id, called, row in bench.main.take():
            rows += [row] if called == name else []
            bench.main.answer(call_id)
    return rows


# --- what stays ------------------------------------------------------------------------------------


@on_bench()
async def test_a_trigger_whose_registration_cannot_be_read_keeps_its_place(bench: Bench) -> None:
    await bench.add("t")
    await bench.add("other")
    await bench.triggers.pause("t")
    await bench.put(b"a", b"b")
    good = stored_registration(bench, b"t")
    write_registration(bench, b"t", UNREADABLE)
    await bench.restart()
    await bench.put(b"c")
    write_registration(bench, b"t", good)
    await bench.restart()
    assert await deliver(bench, "other") == [b"a", b"b", b"c"]
    await bench.triggers.resume("t")
    assert await deliver(bench, "t") == [b"a", b"b", b"c"]


@on_bench()
async def test_a_cursor_of_another_kind_of_follower_stays(bench: Bench) -> None:
    await bench.add("t")
    bench.region(b"a").log.cursors.save_cursor("stream:audit", ELSEWHERE)
    bench.server.eviction.evict(bench.region(b"a"))
    assert bench.region(b"a").log.cursors.all_cursors()["stream:audit"] == ELSEWHERE


@on_bench()
async def test_what_a_cursor_without_a_registration_needs_is_kept(bench: Bench) -> None:
    await bench.add("t")
    await bench.add("other")
    await bench.triggers.pause("t")
    await bench.put(b"a", b"b")
    write_registration(bench, b"t", UNREADABLE)
    await bench.restart()
    await deliver(bench, "other")
    region = bench.region(b"a")
    bench.keeper.dispatcher.intake.upkeep.save(region)
    assert region.log.count_after(None, 10) == 2
    assert region.log.counts.needed[0] == 2


@on_bench()
async def test_an_unreadable_registration_is_listed_and_can_be_removed(bench: Bench) -> None:
    await bench.add("t")
    await bench.add("other")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    write_registration(bench, b"t", UNREADABLE)
    await bench.restart()
    states = {one.name: one.state for one in bench.keeper.trigger_statuses()}
    assert states == {"other": "running", "t": "unreadable"}
    await bench.triggers.remove("t")
    await bench.restart()
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"other"}
    assert [one.name for one in bench.keeper.trigger_statuses()] == ["other"]


@on_bench()
async def test_writers_are_told_of_a_place_without_a_registration(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"a", b"b")
    await bench.add("other")
    write_registration(bench, b"t", UNREADABLE)
    await bench.restart()
    region, upkeep = bench.region(b"a"), bench.keeper.dispatcher.intake.upkeep
    while region.log.counts.count_step(10):
        pass
    upkeep._bounds = LogBounds(records=2)
    upkeep.slow_writers(region)
    assert region.refuses_writes
    assert "trigger t has a place" in region.log_obstacle


# --- what goes -------------------------------------------------------------------------------------


@on_bench()
async def test_the_cursor_of_a_removed_trigger_goes_at_the_opening(bench: Bench) -> None:
    await bench.add("t")
    await bench.add("other")
    region = bench.region(b"a")
    bench.server.eviction.evict(region)
    await bench.triggers.remove("t")
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"other"}


@on_bench()
async def test_a_cursor_of_an_earlier_version_goes_by_its_name(bench: Bench) -> None:
    await bench.add("other")
    bench.region(b"a").log.cursors.save_cursor("gone", ELSEWHERE)
    bench.server.eviction.evict(bench.region(b"a"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"other"}


@on_bench()
async def test_a_trigger_of_an_earlier_version_keeps_its_place(bench: Bench) -> None:
    """Neither its registration nor its cursor has a number."""
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    make_older(bench, b"t")
    await bench.restart()
    await bench.put(b"b")
    await bench.triggers.resume("t")
    assert await deliver(bench, "t") == [b"a", b"b"]
    await bench.triggers.remove("t")
    await bench.restart()
    assert bench.keeper.trigger_statuses() == []


@on_bench()
async def test_a_registration_that_was_half_made_leaves_no_cursor(bench: Bench) -> None:
    await bench.add("other")
    half = Registration("half", "t", "m:f", ("f",))
    await bench.catalogue.derivations.write_derivations(bench.catalogue.derivations.triggers.adding(half))
    number = bench.catalogue.derivations.triggers.all[0].number
    await follower.begin_after(bench.region(b"a"), trigger("half"), number)
    await bench.restart()
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"other"}
    await bench.add("half")
    assert bench.region(b"a").log.cursors.number_of("half") == number + 1, "no number is given twice"


@on_bench()
async def test_a_registration_that_fails_on_the_way_is_called_off(bench: Bench) -> None:
    def no_disk(step: str) -> None:
        if step == "marked":
            raise HostError("the disk is full")

    bench.triggers.at = no_disk
    with pytest.raises(HostError):
        await bench.add("t")
    bench.triggers.at = lambda _step: None
    assert bench.server.policy_of("t") is None
    await bench.add("other")
    bench.server.eviction.evict(bench.region(b"a"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"other"}


@on_bench()
async def test_unreadable_numbers_lose_nothing(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    bench.rows.cells[b"tr/#numbers"][b"info:numbers"] = b"{"
    await bench.restart()
    await bench.triggers.resume("t")
    assert await deliver(bench, "t") == [b"a"]
    with pytest.raises(TriggerError, match="numbers"):
        await bench.add("u")
    with pytest.raises(TriggerError, match="numbers"):
        await bench.triggers.remove("t")
    assert bench.rows.cells[b"tr/#numbers"] == {b"info:numbers": b"{"}, "what cannot be read stays as it is"


def make_older(bench: Bench, name: bytes) -> None:
    """As an earlier version left it."""
    del bench.rows.cells[b"tr/" + name][b"info:number"]
    del bench.rows.cells[b"tr/#numbers"]
    region = bench.region(b"a")
    cursor = region.log.cursors.all_cursors()[name.decode()]
    region.log.cursors.drop_cursor(name.decode())
    region.log.cursors.save_cursor(name.decode(), cursor)


@on_bench()
async def test_a_merge_does_not_lose_a_place_that_nobody_can_carry(bench: Bench) -> None:
    await bench.add("t")
    region = bench.region(b"a")
    assert await bench.hub.listener.merge_obstacle(region, 0.0) == ""
    region.log.cursors.save_cursor("stream:audit", ELSEWHERE)
    assert "stream audit" in await bench.hub.listener.merge_obstacle(region, 0.0)


@on_bench()
async def test_a_trigger_that_was_the_last_to_be_added_before_a_restart_stays(bench: Bench) -> None:
    await bench.add("t")
    await bench.restart()
    await bench.add("u")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    await bench.restart()
    assert [one.name for one in bench.keeper.trigger_statuses()] == ["t", "u"]
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"t", "u"}
    await bench.triggers.resume("t")
    assert await deliver(bench, "t") == [b"a"]

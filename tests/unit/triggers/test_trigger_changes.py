"""Changes of triggers, step by step: a kill after each, several owners, owners that fail, disks that fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from columnar.errors import HostError, NoSuchColumnFamily, OutcomeUnknown, RegionNotLocal, TriggerError
from columnar.master.catalogue import Catalogue
from columnar.master.trigger_changes import TriggerChanges
from columnar.model import region_messages as messages
from columnar.model.derivations import Triggers
from columnar.model.region_info import RegionInfo
from columnar.model.trigger_registration import MOST_PROCESSES, Registration
from columnar.regions.region import Region
from columnar.regions.tables import ServedTable
from tests.support.several_owners import FakeOwner, SeveralOwners
from tests.unit.triggers.test_dispatcher import Bench, on_bench

T = Registration("t", "t", "m:f", ("f",))


def stored(bench: Bench) -> dict[str, str]:
    return {one.name: one.state for one in Catalogue(bench.rows.read(), bench.rows.write).derivations.triggers.all}


# --- kills -----------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


async def killed_at(bench: Bench, step: str, doing: Callable[[], object]) -> None:
    """The master ends when the step is over, and does nothing more."""

    def at(over: str) -> None:
        if over == step:
            raise Killed

    async def nothing() -> None:
        pass

    bench.triggers.at, bench.triggers.call_off = at, nothing  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await doing()  # type: ignore[misc]


@pytest.mark.parametrize("step", ["written", "marked"])
def test_a_trigger_that_was_being_added_at_a_kill_is_called_off(step: str) -> None:
    @on_bench(regions=2)
    async def run(bench: Bench) -> None:
        await bench.add("other")
        await bench.put(b"00")
        await killed_at(bench, step, lambda: bench.add("t"))
        assert stored(bench) == {"other": "running", "t": "adding"}
        assert ("t" in bench.region(b"01").log.cursors.all_cursors()) is (step == "marked")
        await bench.put(b"01")
        await bench.restart()
        assert stored(bench) == {"other": "running"}
        assert [one.name for one in bench.keeper.trigger_statuses()] == ["other"]
        for row in (b"00", b"01"):
            assert set(bench.region(row).log.cursors.all_cursors()) == {"other"}
        await bench.add("t")
        assert bench.catalogue.derivations.triggers.find("t").number == 3, "no number is given twice"  # type: ignore[union-attr]
        assert bench.catalogue.derivations.triggers.is_removed("t", 2)

    run()


@on_bench(regions=2)
async def test_a_trigger_that_is_written_as_running_has_missed_nothing_at_a_kill(bench: Bench) -> None:
    await bench.put(b"00")
    await killed_at(bench, "running", lambda: bench.add("t"))
    await bench.put(b"00", b"01")
    await bench.restart()
    assert stored(bench) == {"t": "running"}
    assert await bench.hub._openings.settled(10.0)
    await bench.main.until(lambda: len([parts for parts in bench.main.sent if parts[0] == "run"]) == 2)
    assert sorted(row for _, _, row in bench.main.take()) == [b"00", b"01"]


# --- several owners --------------------------------------------------------------------------------


def beside(bench: Bench) -> FakeOwner:
    """Another owner, of regions that are elsewhere."""
    fake = FakeOwner()
    bench.triggers = TriggerChanges(bench.catalogue, SeveralOwners([bench.owner, fake]), ("m",))
    return fake


@on_bench()
async def test_a_trigger_runs_when_every_owner_has_marked(bench: Bench) -> None:
    fake = beside(bench)
    fake.may_answer.clear()
    adding = asyncio.ensure_future(bench.add("t"))
    while not (fake.asked and "t" in bench.region(b"a").log.cursors.all_cursors()):  # noqa: ASYNC110 - its mark is nobody's event
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    assert stored(bench) == {"t": "adding"}, "the other has not answered"
    assert bench.keeper.trigger_statuses() == []
    await bench.put(b"a")
    assert bench.main.take() == []
    fake.may_answer.set()
    await adding
    assert stored(bench) == {"t": "running"}
    assert fake.states() == [{"t": "adding"}, {"t": "running"}]
    assert [row for _, _, row in bench.main.take()] == [b"a"], "it was caught"


@on_bench()
async def test_an_owner_that_cannot_mark_calls_the_trigger_off_everywhere(bench: Bench) -> None:
    fake = beside(bench)
    full = HostError("the disk is full")
    fake.refuses = lambda message: full if fake.states()[-1] == {"t": "adding"} else None
    with pytest.raises(HostError, match="is full"):
        await bench.add("t")
    assert stored(bench) == {}
    assert fake.states() == [{"t": "adding"}, {}]
    assert bench.server.policy_of("t") is None
    assert bench.region(b"a").log.cursors.all_cursors() == {}
    fake.refuses = lambda _message: None
    await bench.add("t")
    assert stored(bench) == {"t": "running"}


@on_bench()
async def test_an_addition_that_is_given_up_is_called_off(bench: Bench) -> None:
    """Its call is cancelled when the server stops."""
    fake = beside(bench)
    fake.may_answer.clear()
    adding = asyncio.ensure_future(bench.add("t"))
    while not fake.asked:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    adding.cancel()
    await asyncio.sleep(0)
    fake.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await adding
    async with bench.triggers.lock:
        assert stored(bench) == {}
        assert fake.states() == [{"t": "adding"}, {}]


@on_bench()
async def test_every_change_is_told_to_every_owner(bench: Bench) -> None:
    fake = beside(bench)
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.triggers.resume("t")
    await bench.triggers.remove("t")
    assert fake.states()[1:] == [{"t": "running"}, {"t": "paused"}, {"t": "running"}, {}]
    assert not any(isinstance(one, messages.CheckFunction) for one in fake.asked), "one owner checks"


def test_what_is_undelivered_is_of_all_owners(caplog: pytest.LogCaptureFixture) -> None:
    @on_bench()
    async def run(bench: Bench) -> None:
        fake = beside(bench)
        await bench.add("t")
        await bench.triggers.pause("t")
        await bench.put(b"a", b"b")
        fake.undelivered = {"t": 5}
        await bench.triggers.say_undelivered("t", bench.triggers.watchers("t"))
        fake.refuses = lambda _message: HostError("gone")
        await bench.triggers.say_undelivered("t", bench.triggers.watchers("t"))

    with caplog.at_level(logging.WARNING):
        run()
    first, second = (record.getMessage() for record in caplog.records)
    assert first == "table t is dropped: trigger t goes with it, 7 changes undelivered"
    assert "is not known: gone" in second


@on_bench()
async def test_no_owner_is_asked_about_a_dropped_table_without_triggers(bench: Bench) -> None:
    fake = beside(bench)
    await bench.triggers.say_undelivered("t", bench.triggers.watchers("t"))
    assert fake.asked == []


@on_bench(regions=2)
async def test_an_owner_marks_its_own_regions(bench: Bench) -> None:
    """The others raise RegionNotLocal out of their opening."""
    opened, elsewhere = bench.server.opened, bench.table.regions[1]

    async def owned(served: ServedTable, info: RegionInfo) -> Region:
        if info == elsewhere:
            raise RegionNotLocal(info.table, info.encoded)
        return await opened(served, info)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench.server, "opened", owned)
        await bench.add("t")
        assert await bench.hub._openings.settled(10.0)
        assert not bench.hub._openings._again, "nobody tries to open what another owns"
        assert await bench.keeper.undelivered("t", ("t",)) == {"t": 0}
    assert not bench.server.is_open(elsewhere)


@on_bench(regions=2)
async def test_an_owner_that_comes_later_is_told_all(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    fake = beside(bench)
    await bench.triggers.publish()
    assert fake.states() == [{"t": "paused"}]
    assert bench.keeper.triggers == bench.catalogue.derivations.triggers, "telling again changes nothing"


@on_bench()
async def test_no_cursor_goes_before_the_owner_was_told_of_triggers(bench: Bench) -> None:
    await bench.add("t")
    bench.region(b"a").log.cursors.save_cursor("older", bench.region(b"a").log.cursors.all_cursors()["t"])
    bench.keeper._triggers = None
    bench.server.eviction.evict(bench.region(b"a"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"t", "older"}
    await bench.triggers.publish()
    bench.server.eviction.evict(bench.region(b"a"))
    assert set(bench.region(b"a").log.cursors.all_cursors()) == {"t"}


# --- disks that fail -------------------------------------------------------------------------------


def fail_at(bench: Bench, step: str, is_there: bool) -> None:
    """From the step on no write of the catalogue is known to be on disk."""

    def at(over: str) -> None:
        if over == step:
            bench.rows.failure, bench.rows.takes_what_fails = OutcomeUnknown("the disk refused"), is_there

    bench.triggers.at = at


@pytest.mark.parametrize("is_there", [True, False])
def test_a_trigger_whose_last_write_is_unknown_is_called_off_when_the_disk_is_back(is_there: bool) -> None:
    @on_bench()
    async def run(bench: Bench) -> None:
        fail_at(bench, "marked", is_there)
        with pytest.raises(OutcomeUnknown):
            await bench.add("t")
        assert bench.catalogue.derivations.triggers.half_made() == ["t"]
        assert bench.keeper.trigger_statuses() == []
        with pytest.raises(OutcomeUnknown):
            await bench.triggers.add_trigger(replace(T, name="other"))
        assert bench.keeper.triggers.half_made() == ["t"], "it may be on disk: its mark stays"
        bench.rows.failure = None
        await bench.rows.write(bench.catalogue.repairs(bench.rows.read()))
        assert stored(bench) == {"t": "adding"}
        await bench.triggers.catalogue_repaired()
        assert stored(bench) == {}
        assert bench.server.policy_of("t") is None
        assert bench.region(b"a").log.cursors.all_cursors() == {}

    run()


@on_bench()
async def test_a_change_that_is_not_written_changes_nothing(bench: Bench) -> None:
    await bench.add("t")
    bench.rows.failure = HostError("the disk is full")
    for change in (bench.triggers.pause, bench.triggers.remove):
        with pytest.raises(HostError):
            await change("t")
    assert [one.state for one in bench.keeper.trigger_statuses()] == ["running"]
    with pytest.raises(TriggerError, match="there is no trigger"):
        await bench.triggers.resume("u")
    assert bench.catalogue.derivations.triggers != Triggers()


@on_bench()
async def test_processes_of_labels_are_bounded(bench: Bench) -> None:
    for number in range(MOST_PROCESSES):
        await bench.add(f"t{number}", process=f"label-{number}")
    await bench.add("shared", process="label-0")
    await bench.add("common")
    with pytest.raises(TriggerError, match="take one of their labels: label-0, label-1"):
        await bench.triggers.add_trigger(Registration("more", "t", "m:f", ("f",), process="another"))
    await bench.triggers.remove("t3")
    await bench.add("more", process="another")


@pytest.mark.parametrize(
    "change", [{"where": ("z:a exists",)}, {"look": (("a", "t", "z:a"),)}, {"writes": ("t/z",)}, {"families": ("z",)}]
)
def test_a_trigger_that_names_a_family_that_is_missing_is_refused(change: dict[str, Any]) -> None:
    """Its condition would hold for no row, for ever and in silence."""

    @on_bench()
    async def run(bench: Bench) -> None:
        with pytest.raises(NoSuchColumnFamily, match="z does not exist in table t"):
            await bench.triggers.add_trigger(replace(T, **change))
        assert stored(bench) == {}

    run()


@on_bench()
async def test_two_administrators_at_once_leave_one_story(bench: Bench) -> None:
    await bench.add("t")
    results = await asyncio.gather(
        bench.triggers.remove("t"), bench.triggers.pause("t"), bench.triggers.remove("t"), return_exceptions=True
    )
    assert [str(result) for result in results[1:]] == [
        "there is no trigger t; columnar trigger list shows those there are"
    ] * 2
    assert [row for row in bench.rows.cells if row.startswith(b"tr/")] == [b"tr/#numbers"]


@on_bench()
async def test_deliveries_of_a_region_are_counted_and_failures_are_not(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await bench.put(b"a", b"b")
    calls = {row: call_id for call_id, _, row in bench.main.take()}
    bench.main.answer(calls[b"a"])
    bench.main.answer(calls[b"b"], "Error: no")
    assert bench.region(b"a").deliveries == 1

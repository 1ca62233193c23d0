"""Views are added and dropped, step by step: a kill after each, owners and disks that fail, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from columnar.errors import (
    ColumnarError,
    HostError,
    IllegalArgument,
    NoSuchColumnFamily,
    NotAllowed,
    OutcomeUnknown,
    TableExists,
    TableNotFound,
    ViewError,
)
from columnar.master.catalogue import Catalogue
from columnar.master.view_changes import Declaring, ViewChanges
from columnar.model import region_messages as messages
from columnar.model.attributes import TableChange
from columnar.model.mutation import Put, RowMutation
from columnar.model.schema import Family
from columnar.model.view_definition import Source, View, to_json
from columnar.storage.memory import MemoryEngine
from columnar.views import declaring
from tests.support.changing_house import CatalogueRows
from tests.support.held_engine import FakeClock
from tests.support.several_owners import FakeOwner, SeveralOwners
from tests.support.view_house import ViewHouse, by_a, in_view_house, nothing


def stored(house: ViewHouse) -> dict[str, str]:
    return {one.name: one.state for one in Catalogue(house.rows.read(), house.rows.write).derivations.views.all}


async def cursors(house: ViewHouse, row: bytes = b"a", table: str = "t") -> set[str]:
    served = house.served(table)
    return set((await house.server.opened(served, served.holding(row))).log.cursors.all_cursors())


class Killed(BaseException):
    pass


async def killed_at(house: ViewHouse, step: str, doing: Callable[[], object]) -> None:
    def at(over: str) -> None:
        if over == step:
            raise Killed

    house.views.at, house.views.call_off = at, nothing  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await doing()  # type: ignore[misc]


# --- kills -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["written", "marked"])
def test_a_view_that_was_being_added_at_a_kill_is_called_off_with_its_table(step: str) -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await house.make_source("t", ("f",), b"m")
        await house.add(by_a("other"))
        await killed_at(house, step, lambda: house.add(by_a()))
        assert stored(house) == {"by_a": "adding", "other": "building"}
        assert "by_a" in house.catalogue.tables
        marked = {"view:by_a"} if step == "marked" else set()
        assert await cursors(house) == {"view:other", *marked}
        again = await house.restarted()
        assert stored(again) == {"other": "building"}
        assert "by_a" not in again.catalogue.tables
        assert again.catalogue.dropped == []
        assert again.server.tables.find(b"by_a") is None
        for row in (b"a", b"z"):
            assert await cursors(again, row) == {"view:other"}
        await again.add(by_a())
        assert again.catalogue.derivations.views.known("by_a").number == 3, "no number is given twice"
        await again.close()

    run()


@in_view_house
async def test_a_view_that_is_written_as_building_goes_on_after_a_kill(house: ViewHouse) -> None:
    await house.make_source()
    await killed_at(house, "building", lambda: house.add(by_a()))
    again = await house.restarted()
    assert stored(again) == {"by_a": "building"}
    assert again.catalogue.tables["by_a"].schema.kept_by == "by_a"
    assert await cursors(again) == {"view:by_a"}
    await again.close()


@in_view_house
async def test_a_dropped_view_leaves_nothing(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.views.drop("by_a")
    assert stored(house) == {}
    assert set(house.catalogue.tables) == {"columnar:dead_letters", "columnar:groups", "columnar:leases", "t"}
    assert house.catalogue.dropped == []
    assert await cursors(house) == set()
    assert house.server.policy_of("t") is None
    with pytest.raises(ViewError, match="there is no view by_a; columnar view list"):
        await house.views.drop("by_a")
    await house.add(by_a())
    assert house.state("by_a") == "building"


@in_view_house
async def test_a_cursor_of_a_view_that_was_dropped_meanwhile_goes_when_its_region_opens(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    served = house.served("t")
    region = await house.server.opened(served, served.regions[0])
    for follower in list(house.keeper.hub.followers.in_region(region)):
        house.keeper.hub.listener.drop(follower)
    await region.flush()
    await house.server.hosting.close(region)
    await house.views.drop("by_a")
    house.server.set_policy("t", None)
    again = await house.restarted()
    await again.changes.triggers.publish()
    region = await again.server.opened(again.served("t"), again.served("t").regions[0])
    assert again.owner.views._manager is None, "a store without views loads none"
    again.keeper.hub.listener.region_opened(region)
    assert await cursors(again) == set()
    await again.close()


# --- builds ------------------------------------------------------------------------------------------


class LookingHouse(ViewHouse):
    looks_by_itself = True


def test_a_view_is_live_when_its_last_region_has_shown_it_all() -> None:
    async def run() -> None:
        house = LookingHouse(MemoryEngine(), "regions", CatalogueRows(), FakeClock())
        await house.start()
        await house.make_source("t", ("f",), b"3", b"6")
        for number in range(9):
            await house.put_cells("t", b"%d" % number, a=b"x", n=b"1")
        looks: list[dict[str, list[int]]] = []
        ask = house.owner.request_peer

        async def noted(message: messages.Message[Any]) -> Any:
            answer = await ask(message)
            if isinstance(message, messages.BackfilledRegions):
                looks.append(answer)
            return answer

        house.owner.request_peer = noted  # type: ignore[method-assign]
        await house.add(by_a())
        assert house.state("by_a") == "building"
        async with asyncio.timeout(20):
            while house.state("by_a") != "live":  # noqa: ASYNC110 - no sleep is long enough to hide that nobody told
                await asyncio.sleep(0)
        assert 1 <= len(looks) <= 1 + 3, "one at the beginning, and one for each region"
        shown = [look["by_a"] for look in looks if "by_a" in look]  # a look may come when it is live already
        assert len(shown[-1]) == 3
        await house.close()

    asyncio.run(run())


# --- owners and disks that fail ----------------------------------------------------------------------


@in_view_house
async def test_an_owner_that_cannot_mark_calls_the_view_off_everywhere(house: ViewHouse) -> None:
    await house.make_source()
    fake = FakeOwner()
    made = Declaring(declaring.declared, declaring.table_of)
    both = SeveralOwners([house.owner, fake])
    house.changes._owner = both
    house.views = ViewChanges(house.catalogue, both, house.changes, lambda: made, nothing)

    def refuses(message: messages.Message[object]) -> Exception | None:
        is_adding = isinstance(message, messages.PublishViews) and message.views.half_made()
        return HostError("the disk is full") if is_adding else None

    fake.refuses = refuses
    with pytest.raises(HostError, match="is full"):
        await house.add(by_a())
    assert stored(house) == {}
    assert house.server.policy_of("t") is None
    assert house.server.tables.find(b"by_a") is None
    told = [[one.state for one in asked.views.all] for asked in fake.asked if isinstance(asked, messages.PublishViews)]
    assert told == [["adding"], []]
    fake.refuses = lambda _message: None
    await house.add(by_a())
    assert stored(house) == {"by_a": "building"}


@pytest.mark.parametrize("is_there", [True, False])
def test_a_view_whose_last_write_is_unknown_is_called_off_when_the_disk_is_back(is_there: bool) -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await house.make_source()

        def at(over: str) -> None:
            if over == "marked":
                house.rows.failure, house.rows.takes_what_fails = OutcomeUnknown("the disk refused"), is_there

        house.views.at = at
        with pytest.raises(OutcomeUnknown):
            await house.add(by_a())
        assert house.catalogue.derivations.views.half_made() == ["by_a"]
        house.rows.failure = None
        await house.rows.write(house.catalogue.repairs(house.rows.read()))
        assert stored(house) == {"by_a": "adding"}
        await house.changes.catalogue_repaired()
        await house.views.catalogue_repaired()
        assert stored(house) == {}
        assert house.server.policy_of("t") is None
        assert await cursors(house) == set()
        assert "by_a" not in house.catalogue.tables

    run()


@in_view_house
async def test_a_drop_that_is_not_written_changes_nothing(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    house.rows.failure = HostError("the disk is full")
    with pytest.raises(HostError):
        await house.views.drop("by_a")
    house.rows.failure = None
    assert stored(house) == {"by_a": "building"}
    assert house.server.tables.find(b"by_a") is not None
    await house.views.drop("by_a")


# --- what is refused -------------------------------------------------------------------------------


@in_view_house
async def test_definitions_that_cannot_be_kept(house: ViewHouse) -> None:
    await house.changes.create(b"t", [Family("f"), Family("old", ttl_s=60)])
    cases: list[tuple[View, type[ColumnarError], str]] = [
        (by_a(table="none"), TableNotFound, "none"),
        (by_a("t", table="u"), TableNotFound, "u"),
        (View("v", Source("t", ("g:a",))), NoSuchColumnFamily, "Column family g does not exist"),
        (View("v", Source("t", ("old:a",))), IllegalArgument, "expire after 60 s unheard"),
        (View("v", Source("t", ("key[0]",))), IllegalArgument, "the source is a table, not a view"),
        (View("v", Source("columnar:dead_letters", ("info:a",))), IllegalArgument, "is no source"),
        (View("none:v", Source("t", ("f:a",))), ColumnarError, "make it first"),
    ]
    for view, kind, text in cases:
        with pytest.raises(kind, match=text):
            await house.add(view)
    await house.make_source("u")
    with pytest.raises(TableExists):
        await house.add(by_a("u"))
    with pytest.raises(IllegalArgument, match="definition of a view"):
        await house.views.add_view(b"{")
    assert stored(house) == {}
    await house.add(by_a())
    await house.add(by_a())
    with pytest.raises(IllegalArgument, match=r"exists with another definition.*columnar view drop by_a"):
        await house.add(replace(by_a(), spread=2))
    await house.changes.disable(b"u")
    with pytest.raises(ColumnarError, match="u is disabled"):
        await house.add(by_a("w", table="u"))


@in_view_house
async def test_a_view_of_a_view_knows_the_parts_of_its_keys(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(View("pairs", Source("t", ("f:a", "f:b"))))
    above = View("above", Source("pairs", ("key[1]",), where=("v:count exists",)))
    await house.add(above)
    held = house.catalogue.derivations.views.known("above")
    assert declaring.definition_of(held).source.key_parts == 2
    assert [(read.table, read.families) for read in held.reads] == [("pairs", ("v",))]
    with pytest.raises(NotAllowed, match=r"pairs is not dropped: view above follows it.*columnar view drop above"):
        await house.views.drop("pairs")
    await house.views.drop("above")
    await house.views.drop("pairs")


@in_view_house
async def test_a_source_loses_nothing_unheard(house: ViewHouse) -> None:
    await house.make_source("t", ("f", "g"))
    await house.add(by_a())
    drops_f = TableChange(drop=frozenset({"f"}))
    expires_f = TableChange(change={"f": {"TTL": "60"}})
    with pytest.raises(NotAllowed, match=r"family f of t is not dropped: view by_a reads it.*view drop by_a"):
        await house.alterations.alter(b"t", drops_f)
    with pytest.raises(NotAllowed, match=r"family f of t keeps its TTL and MIN_VERSIONS: view by_a"):
        await house.alterations.alter(b"t", expires_f)
    with pytest.raises(NotAllowed, match=r"t is not truncated: view by_a would not hear of it; delete its rows"):
        await house.alterations.truncate(b"t", True)
    await house.alterations.alter(b"t", TableChange(drop=frozenset({"g"})))
    await house.changes.disable(b"t")
    with pytest.raises(NotAllowed, match=r"t is not dropped: view by_a follows it; .*columnar view drop by_a"):
        await house.changes.drop(b"t")
    await house.views.drop("by_a")
    await house.changes.drop(b"t")


@in_view_house
async def test_nobody_but_its_maintainer_touches_a_view(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    said = "by_a is a view"
    for change in (
        house.changes.disable(b"by_a"),
        house.changes.drop(b"by_a"),
        house.alterations.alter(b"by_a", TableChange(add=(Family("x"),))),
        house.alterations.truncate(b"by_a", True),
    ):
        with pytest.raises(NotAllowed, match=said):
            await change
    served = house.served("by_a")
    put = RowMutation(b"r", (Put(b"v", b"count", b"1"),))
    writes, caller = house.keeper.applier._writes, None
    for write in (
        lambda: writes.write_row(caller, served, put, str),  # type: ignore[arg-type]
        lambda: writes.write_single(caller, served, put, str),  # type: ignore[arg-type]
        lambda: writes.write_rows(caller, served, {b"r": put}, str),  # type: ignore[arg-type]
        lambda: writes.write_each(caller, [(served, put)], str),  # type: ignore[arg-type]
        lambda: writes.write_each(caller, [(served, put)], str, "another"),  # type: ignore[arg-type]
    ):
        with pytest.raises(NotAllowed, match=r"nobody but its maintainer writes.*columnar view drop by_a"):
            write()
    errors: list[object] = []
    house.keeper.applier.apply([(b"by_a", put)], 1, errors.append)
    await house.settled("by_a")
    assert [type(error) for error in errors] == [NotAllowed], "triggers, too"


@in_view_house
async def test_definitions_are_kept_as_json(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    held = house.catalogue.derivations.views.known("by_a")
    assert held.definition == to_json(by_a())
    assert declaring.definition_of(held) == by_a()

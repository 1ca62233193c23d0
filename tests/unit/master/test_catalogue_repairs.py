"""After a write of unknown outcome the rows on disk are brought back to what the catalogue in memory says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random

import pytest

from columnar.errors import OutcomeUnknown
from columnar.master.catalogue import Catalogue
from columnar.model.derivations import Triggers
from columnar.model.mutation import RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.model.trigger_registration import Registration
from tests.support.changing_house import CatalogueRows

TABLE = make_table("t", [Family("f"), Family("g")])
ON_T = Registration("on-t", "t", "m:f", ("f",))


class UnsureRows(CatalogueRows):
    """Each write is told what becomes of it: done, or unknown and there, or unknown and not there."""

    def __init__(self) -> None:
        super().__init__()
        self.is_there, self.is_told = True, True
        self.reserved: dict[str, list[RegionInfo]] = {}  # by the change that takes them

    async def write(self, mutations: list[RowMutation]) -> None:
        if self.is_there:
            await super().write(mutations)
        if not self.is_told:
            raise OutcomeUnknown("the disk refused")

    def loaded(self) -> Catalogue:
        return Catalogue(self.read(), self.write)


async def made(rows: UnsureRows) -> Catalogue:
    catalogue = rows.loaded()
    await catalogue.namespaces.create_namespace("n", {"owner": "anna"})
    await catalogue.adopt(TABLE, await catalogue.reserve("t", [(b"", b"k"), (b"k", b"")]))
    await catalogue.adopt(make_table("n:other", [Family("f")]), await catalogue.reserve("n:other", [(b"", b"")]))
    await catalogue.set_enabled("n:other", False)
    for registration in (ON_T, replace(ON_T, name="off-t"), replace(ON_T, name="there", table="n:other")):
        await catalogue.derivations.write_derivations(catalogue.derivations.triggers.adding(registration))
    await catalogue.derivations.write_derivations(catalogue.derivations.triggers.with_state("on-t", "running"))
    await announce(catalogue, rows)
    return catalogue


async def announce(catalogue: Catalogue, rows: UnsureRows) -> None:
    """What the changes below need: folders of these may be made."""
    rows.is_there = rows.is_told = True
    rows.reserved = {
        "create": await catalogue.reserve("new", [(b"", b"m"), (b"m", b"")]),
        "truncate": await catalogue.reserve("t", [(b"", b"k"), (b"k", b"")]),
        "split": await catalogue.reserve("t", [(b"", b"c"), (b"c", b"k")]),
    }


async def mend(catalogue: Catalogue, rows: UnsureRows) -> None:
    rows.is_there = rows.is_told = True
    mutations = catalogue.repairs(rows.read())
    names = [mutation.row for mutation in mutations]
    assert len(set(names)) == len(names), "a region takes each row once"
    await rows.write(mutations)


def assert_the_same(loaded: Catalogue, memory: Catalogue) -> None:
    assert loaded.tables == memory.tables
    assert loaded.namespaces.names == memory.namespaces.names
    assert loaded.namespaces.configurations == memory.namespaces.configurations
    assert loaded.derivations.triggers == memory.derivations.triggers
    memory.derivations.triggers.check_invariants()
    assert set(loaded.dropped) >= set(memory.dropped)
    live = {info for entry in memory.tables.values() for info in entry.regions}
    assert not live & set(loaded.dropped), "what serves is not removed at the next start"


async def split(catalogue: Catalogue, rows: UnsureRows) -> None:
    await catalogue.replace(catalogue.tables["t"].regions[:1], rows.reserved["split"])


async def forget(catalogue: Catalogue, _rows: UnsureRows) -> None:
    gone = [one.name for one in catalogue.derivations.triggers.of_table("t")]
    await catalogue.forget_dropped(await catalogue.drop("t", catalogue.derivations.triggers.without(gone)))


def trigger_change(catalogue: Catalogue, change: Callable[[Triggers], Triggers]) -> Awaitable[None]:
    return catalogue.derivations.write_derivations(change(catalogue.derivations.triggers))


Change = Callable[[Catalogue, UnsureRows], Awaitable[object]]
CHANGES: dict[str, Change] = {
    "create": lambda c, rows: c.adopt(make_table("new", [Family("f")]), rows.reserved["create"]),
    "alter": lambda c, _: c.alter(make_table("t", [Family("f")])),
    "truncate": lambda c, rows: c.adopt(TABLE, rows.reserved["truncate"]),
    "drop": lambda c, _: c.drop("n:other", c.derivations.triggers.without(["there"])),
    "disable": lambda c, _: c.set_enabled("t", False),
    "create a namespace": lambda c, _: c.namespaces.create_namespace("m"),
    "drop a namespace": lambda c, _: c.namespaces.drop_namespace("n"),
    "configure a namespace": lambda c, _: c.namespaces.configure_namespace("n", {"team": "b"}),
    "configure it no more": lambda c, _: c.namespaces.configure_namespace("n", {}),
    "configure the default": lambda c, _: c.namespaces.configure_namespace("default", {"owner": "bob"}),
    "truncate and enable": lambda c, rows: c.adopt(TABLE, rows.reserved["truncate"], enable=True),
    "split": split,
    "add a trigger": lambda c, _: trigger_change(c, lambda triggers: triggers.adding(replace(ON_T, name="new"))),
    "a trigger runs": lambda c, _: trigger_change(c, lambda triggers: triggers.with_state("off-t", "running")),
    "a trigger is paused": lambda c, _: trigger_change(c, lambda triggers: triggers.with_state("on-t", "paused")),
    "remove triggers": lambda c, _: trigger_change(c, lambda triggers: triggers.without(["on-t", "there"])),
    "reserve": lambda c, _: c.reserve("t", [(b"", b"")]),
    "forget": forget,
}


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "not there"])
@pytest.mark.parametrize("name", CHANGES)
def test_the_change_is_taken_back(name: str, is_there: bool) -> None:
    async def main() -> None:
        rows = UnsureRows()
        catalogue = await made(rows)
        before = rows.loaded()
        rows.is_there, rows.is_told = is_there, False
        with pytest.raises(OutcomeUnknown):
            await CHANGES[name](catalogue, rows)
        await mend(catalogue, rows)
        assert_the_same(rows.loaded(), before)
        assert_the_same(rows.loaded(), catalogue)

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(20))
def test_any_change_after_any_other(seed: int) -> None:
    """And no region that the disk ever named is forgotten while it may have a folder."""
    rng = Random(seed)

    async def main() -> None:
        rows = UnsureRows()
        catalogue = await made(rows)
        for _ in range(30):
            await announce(catalogue, rows)
            name = rng.choice([name for name in CHANGES if can_be(name, catalogue)])
            rows.is_there, rows.is_told = (True, True) if rng.random() < 0.6 else (rng.random() < 0.5, False)
            try:
                await CHANGES[name](catalogue, rows)
            except OutcomeUnknown:
                after = named(rows.loaded())
                await mend(catalogue, rows)
                assert named(rows.loaded()) >= after, f"{name}: a folder that nobody names any more"
            assert_the_same(rows.loaded(), catalogue)
            assert max((info.region_id for info in named(rows.loaded())), default=0) < catalogue.next_ids(1)[0]

    asyncio.run(main())


def can_be(name: str, catalogue: Catalogue) -> bool:
    """The callers of the catalogue look before they change."""
    match name:
        case "create":
            return "new" not in catalogue.tables
        case "drop":
            return "n:other" in catalogue.tables
        case "add a trigger":
            return "t" in catalogue.tables and catalogue.derivations.triggers.find("new") is None
        case "a trigger runs":
            return catalogue.derivations.triggers.find("off-t") is not None
        case "a trigger is paused":
            return catalogue.derivations.triggers.find("on-t") is not None
        case "create a namespace" | "drop a namespace" | "truncate" | "remove triggers":
            return True
        case "split":
            return "t" in catalogue.tables and catalogue.tables["t"].regions[0].end == b"k"
        case _:
            return "t" in catalogue.tables


def named(catalogue: Catalogue) -> set[RegionInfo]:
    return {info for entry in catalogue.tables.values() for info in entry.regions} | set(catalogue.dropped)


def test_rows_of_a_kind_that_it_does_not_know_stay() -> None:
    async def main() -> None:
        rows = UnsureRows()
        catalogue = await made(rows)
        rows.cells[b"x/later"] = {b"info:what": b"of a later version"}
        await mend(catalogue, rows)
        assert rows.cells[b"x/later"] == {b"info:what": b"of a later version"}

    asyncio.run(main())


def test_there_is_always_something_to_write() -> None:
    """An fsync proves that the disk takes writes."""

    async def main() -> None:
        rows = UnsureRows()
        catalogue = await made(rows)
        assert [mutation.row for mutation in catalogue.repairs(rows.read())] == [b"n"]

    asyncio.run(main())

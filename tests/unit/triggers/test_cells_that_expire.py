"""Cells that expire under a trigger: refused where it is declared and where they are put, unless it allows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from columnar.errors import IllegalArgument, NotAllowed
from columnar.master.alterations import Alterations
from columnar.master.schema_changes import SchemaChanges
from columnar.model.attributes import TableChange
from columnar.model.mutation import Put
from columnar.model.schema import Family
from columnar.storage.region_folders import RegionFolders
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_synced_triggers import KEPT, registrations, sync

BRIEF = Put(b"f", b"a", b"1", None, 60_000)
OTHER = Put(b"f", b"b", b"1", None, 60_000)


async def expires(bench: Bench, family: str = "f") -> None:
    """The family of the table has a TTL from now on."""
    await alter(bench, TableChange(change={family: {"TTL": "2"}}))


async def alter(bench: Bench, change: TableChange) -> None:
    changes = SchemaChanges(bench.catalogue, bench.owner, cast(RegionFolders, None), bench.triggers)
    await Alterations(bench.catalogue, bench.owner, changes).alter(b"t", change)


@pytest.mark.parametrize("way", ["add", "sync"])
def test_a_trigger_on_a_family_with_ttl_says_so(way: str) -> None:
    @on_bench()
    async def run(bench: Bench) -> None:
        await expires(bench)
        wanted = replace(KEPT, of_module="m")
        with pytest.raises(IllegalArgument, match=r"family f, expire after 2 s.*--allow-expiry"):
            await (bench.add("kept") if way == "add" else sync(bench, [wanted]))
        assert bench.triggers.derivations.all == ()
        if way == "add":
            await bench.add("kept", allow_expiry=True)
        else:
            await sync(bench, [replace(wanted, allow_expiry=True)])
        assert registrations(bench)["kept"].allow_expiry

    run()


@on_bench()
async def test_a_put_that_expires_into_a_followed_column_is_refused(bench: Bench) -> None:
    await bench.add("t", columns=("f:a",), images=True, row=False)
    with pytest.raises(NotAllowed, match=r"a put into f:a of t has a time to live: trigger t reads.*--allow-expiry"):
        await bench.apply(b"r", OTHER, BRIEF)
    await bench.apply(b"r", OTHER)
    await bench.add("whole")
    with pytest.raises(NotAllowed, match="a put into f:b of t has a time to live: trigger whole reads"):
        await bench.apply(b"r", OTHER)
    await bench.triggers.add_trigger(bench.registration("whole", allow_expiry=True))
    await bench.apply(b"r", OTHER)
    with pytest.raises(NotAllowed, match="trigger t reads"):
        await bench.apply(b"r", BRIEF)
    await bench.triggers.remove("t")
    await bench.apply(b"r", BRIEF)


@on_bench()
async def test_a_family_gets_a_ttl_later_only_if_its_trigger_allows_that(bench: Bench) -> None:
    await bench.add("t")
    with pytest.raises(NotAllowed, match=r"without trigger t hearing of it.*--allow-expiry"):
        await expires(bench)
    await bench.triggers.add_trigger(bench.registration("t", allow_expiry=True))
    await expires(bench)
    with pytest.raises(IllegalArgument, match="expire after 2 s"):
        await bench.triggers.add_trigger(bench.registration("t"))


@pytest.mark.parametrize(
    "reads",
    [{"where": ("g:w exists",)}, {"look": (("a", "t", "g:w"),)}],
)
def test_families_of_conditions_and_looks_are_read_too(reads: dict[str, Any]) -> None:
    """A cell of theirs that vanishes changes what was derived, or which rows meet the condition."""

    @on_bench()
    async def run(bench: Bench) -> None:
        await alter(bench, TableChange(add=(Family("g"),)))
        settings: dict[str, Any] = {"columns": ("f:a",), "images": True, "row": False, **reads}
        await bench.add("t", **settings)
        with pytest.raises(NotAllowed, match=r"family g of t stay: .* without trigger t hearing of it"):
            await expires(bench, "g")
        with pytest.raises(NotAllowed, match="family g of t is not dropped: trigger t reads it"):
            await alter(bench, TableChange(drop=frozenset({"g"})))
        await bench.triggers.add_trigger(bench.registration("t", allow_expiry=True, **settings))
        await expires(bench, "g")
        with pytest.raises(IllegalArgument, match="family g, expire after 2 s"):
            await bench.add("other", **settings)

    run()

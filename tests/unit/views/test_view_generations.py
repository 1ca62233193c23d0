"""A view is rebuilt beside itself, swapped and rolled back: over a master and an owner in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from columnar.errors import ColumnarError, IllegalArgument, TableExists, ViewError
from columnar.master.catalogue import Catalogue
from columnar.model import region_messages as messages
from columnar.model.mutation import RowMutation
from columnar.model.schema import Family, Table
from columnar.model.trigger_registration import Registration
from columnar.model.view_definition import Source, View, to_json
from columnar.model.view_generations import KEPT_MS, LEFT_MS, role_of
from tests.support.view_house import ViewHouse, by_a, in_view_house

OTHER = View("by_a", Source("t", ("f:a",), sums={"m": "f:m"}))


async def built(house: ViewHouse, table: str) -> None:
    while house.state(table) != "live":
        await house.settled(table)
        await house.views.check_view_builds()


async def filled(house: ViewHouse) -> None:
    await house.make_source()
    for number in range(5):
        await house.put_cells("t", b"r%d" % number, a=b"x", n=b"1", m=b"10")
    await house.add(by_a())
    await built(house, "by_a")


async def rebuilt(house: ViewHouse, definition: bytes = b"") -> str:
    table = await house.generations.rebuild("by_a", definition)
    await built(house, table)
    return table


def meant(house: ViewHouse, name: str) -> str | None:
    served = house.server.tables.meant(name.encode())
    return served.schema.name if served is not None else None


def roles(house: ViewHouse) -> dict[str, str]:
    views = house.catalogue.derivations.views
    return {one.name: role_of(one.name, views.swaps) for one in views.all}


def test_the_next_generation_is_built_beside_the_live_one_and_swapped_in() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        assert await rebuilt(house, to_json(OTHER)) == "by_a.2"
        assert roles(house) == {"by_a": "live", "by_a.2": "next"}
        assert (meant(house, "by_a"), meant(house, "by_a@1"), meant(house, "by_a@2")) == ("by_a", "by_a", "by_a.2")
        assert await house.generations.swap("by_a") == ("by_a.2", "by_a")
        assert (meant(house, "by_a"), meant(house, "by_a@1"), meant(house, "by_a@2")) == ("by_a.2", "by_a", "by_a.2")
        assert roles(house) == {"by_a": "kept", "by_a.2": "live"}
        token = await house.put_cells("t", b"r9", a=b"x", n=b"1", m=b"10")
        for table in ("by_a", "by_a.2"):  # both are kept up
            await house.settled(table, token)
        assert await house.totals("by_a") == {b"x": {"count": 6, "n": 6}}
        assert await house.totals("by_a.2") == {b"x": {"count": 6, "m": 60}}
        assert await house.generations.rollback("by_a") == ("by_a", "by_a.2")
        assert meant(house, "by_a") == "by_a"
        assert await house.generations.rollback("by_a") == ("by_a.2", "by_a"), "forth again"

    run()


def test_the_old_generation_goes_when_its_hour_is_over() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        now_ms = [1_000]
        house.generations._now_ms = lambda: now_ms[0]
        await filled(house)
        await rebuilt(house)
        await house.generations.swap("by_a")
        now_ms[0] += KEPT_MS - 1
        await house.generations.sweep()
        assert roles(house) == {"by_a": "kept", "by_a.2": "live"}
        now_ms[0] += 1
        await house.generations.sweep()
        assert roles(house) == {"by_a.2": "live"}
        assert (meant(house, "by_a"), meant(house, "by_a@1")) == ("by_a.2", None)
        with pytest.raises(ViewError, match="no generation to go back to"):
            await house.generations.rollback("by_a")
        with pytest.raises(TableExists):
            await house.changes.create(b"by_a", [Family("f")])
        with pytest.raises(IllegalArgument, match="another definition"):
            await house.add(OTHER)
        await house.add(by_a())  # the very same one
        assert await rebuilt(house) == "by_a.3"
        await house.generations.swap("by_a")
        assert roles(house) == {"by_a.2": "kept", "by_a.3": "live"}
        await rebuilt(house)
        await house.generations.swap("by_a")
        assert roles(house) == {"by_a.2": "kept", "by_a.3": "kept", "by_a.4": "live"}, "whoever reads it ends"
        now_ms[0] += LEFT_MS
        await house.generations.sweep()
        assert roles(house) == {"by_a.3": "kept", "by_a.4": "live"}, "a swap leaves one generation to go back to"

    run()


def test_aliases_are_on_disk_and_go_with_the_view() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)
        await house.generations.swap("by_a")
        again = await house.restarted()
        assert meant(again, "by_a") == "by_a.2"
        assert (
            Catalogue(again.rows.read(), again.rows.write).derivations.views.swaps
            == again.catalogue.derivations.views.swaps
            != ()
        )
        await again.views.drop("by_a")
        assert again.catalogue.derivations.views.all == again.catalogue.derivations.views.swaps == ()
        assert (meant(again, "by_a"), meant(again, "by_a.2"), meant(again, "by_a@2")) == (None, None, None)
        assert not [row for row, _ in again.rows.read() if row.startswith(b"alias/")]
        await again.add(OTHER)
        assert meant(again, "by_a") == "by_a"
        await again.close()

    run()


def test_what_is_refused() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        generations = house.generations

        async def refused(work: object, says: str, kind: type[ColumnarError] = ViewError) -> None:
            with pytest.raises(kind, match=says):
                await work  # type: ignore[misc]

        await refused(generations.rebuild("nobody", b""), "there is no view nobody")
        await refused(generations.swap("by_a"), "no next generation")
        await refused(generations.rollback("by_a"), "no generation to go back to")
        await refused(generations.rebuild("by_a", to_json(by_a("other"))), "no generation", IllegalArgument)
        await generations.rebuild("by_a", b"")
        await refused(generations.swap("by_a"), "still being built")
        await refused(generations.rebuild("by_a", b""), "has a next generation")
        await refused(house.views.drop("by_a@2"), "there is no view")
        await house.views.drop("by_a.2")
        assert roles(house) == {"by_a": "live"}
        await rebuilt(house)
        await generations.swap("by_a")
        await refused(house.views.drop("by_a.2"), "readers of by_a see by_a.2", IllegalArgument)
        await house.views.drop("by_a")
        await house.add(by_a())
        await built(house, "by_a")
        await house.add(View("of_it", Source("by_a", ("key[0]",))))
        for work in (generations.rebuild("by_a", b""), generations.swap("by_a"), generations.rollback("by_a")):
            await refused(work, r"view of_it would not follow a swap of by_a\. .*check by_a --repair")
        await house.add(View("of_it_too", Source("by_a", ("key[0]",))))
        await refused(generations.rebuild("by_a", b""), "views of_it, of_it_too would not follow")

    run()


def test_a_view_of_a_view_follows_the_generation_that_readers_see() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)
        with pytest.raises(IllegalArgument, match=r"by_a.2 is no source: .*follow by_a"):
            await house.add(View("above", Source("by_a.2", ("key[0]",))))
        await house.generations.swap("by_a")
        above = View("above", Source("by_a", ("key[0]",), sums={"rows": "v:count"}))
        await house.add(above)
        await house.add(above)  # the very same again
        assert [read.table for read in house.catalogue.derivations.views.known("above").reads] == ["by_a.2"]
        await built(house, "above")
        house.generations._now_ms = lambda: 1 << 62
        await house.generations.sweep()
        assert roles(house) == {"above": "live", "by_a.2": "live"}
        token = await house.put_cells("t", b"r9", a=b"x", n=b"1")
        await house.settled("by_a.2", token)
        await house.settled("above")
        assert await house.totals("above") == {b"x": {"count": 1, "rows": 6}}

    run()


def test_a_view_that_a_trigger_follows_is_not_swapped() -> None:
    """The trigger would follow a table that nobody sees, and go with it within the hour."""

    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await house.register(Registration("mails", "by_a", "m:f", ("v",)))
        generations = house.generations
        with pytest.raises(ViewError, match=r"trigger mails would not follow a swap of by_a\..*trigger remove mails"):
            await generations.rebuild("by_a", b"")
        await house.triggers.remove("mails")
        await rebuilt(house)
        await house.register(Registration("mails", "by_a", "m:f", ("v",)))
        with pytest.raises(ViewError, match="trigger mails would not follow"):
            await generations.swap("by_a")
        await house.triggers.remove("mails")
        await generations.swap("by_a")
        await house.register(Registration("mails", "by_a.2", "m:f", ("v",)))
        with pytest.raises(ViewError, match="trigger mails would not follow"):
            await generations.rollback("by_a")

    run()


def test_a_trigger_follows_the_generation_that_readers_see() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)

        async def refused(table: str, says: str) -> None:
            with pytest.raises(IllegalArgument, match=says):
                await house.triggers.add_trigger(Registration("mails", table, "m:f", ("v",)))

        await refused("by_a.2", "readers of view by_a see by_a, not by_a.2")
        await house.generations.swap("by_a")
        await refused("by_a", "readers of view by_a see by_a.2, not by_a")
        house.generations._now_ms = lambda: 1 << 62
        await house.generations.sweep()
        await refused("by_a", "readers of view by_a see by_a.2, not by_a")
        await house.changes.create(b"by_a.7", [Family("v")])  # a table that only looks like a generation
        worker = house.workers[0]
        for table in ("by_a.2", "by_a.7"):
            worker.sent.clear()
            adding = asyncio.ensure_future(
                house.triggers.add_trigger(Registration(f"on-{table}", table, "m:f", ("v",)))
            )
            await worker.until(lambda: worker.sent)
            worker.listener.take_frame(["checked", worker.sent[0][1], None])
            await adding

    run()


def test_a_generation_is_not_named_for_its_view() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)
        generations = house.generations
        for name in ("by_a.2", "by_a@2"):
            for work in (generations.rebuild(name, b""), generations.swap(name), generations.rollback(name)):
                with pytest.raises(ViewError, match=f"{name} is a generation of view by_a: say by_a"):
                    await work
        with pytest.raises(ViewError, match="there is no view by_a@"):
            await generations.swap("by_a@\N{SUPERSCRIPT TWO}")

    run()


def test_a_swap_that_the_disk_refuses_changes_nothing() -> None:
    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)
        write, views = house.catalogue.derivations._write, house.catalogue.derivations.views

        async def refuse(_mutations: object) -> None:
            raise ColumnarError("the disk is full")

        house.catalogue.derivations._write = refuse  # type: ignore[method-assign, assignment]
        with pytest.raises(ColumnarError, match="full"):
            await house.generations.swap("by_a")
        house.catalogue.derivations._write = write  # type: ignore[method-assign]
        assert house.catalogue.derivations.views == views
        assert meant(house, "by_a") == "by_a"
        await house.generations.swap("by_a")
        assert meant(house, "by_a") == "by_a.2"

    run()


def test_a_table_that_is_made_meanwhile_takes_no_swap_back() -> None:
    """Tables are made without the lock of views: what the catalogue wrote of views since the making began stays."""

    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)
        write, is_being_made = house.catalogue._write, asyncio.Event()

        async def in_turn(mutations: list[RowMutation]) -> None:
            rows = [mutation.row for mutation in mutations]
            if b"t/u" in rows:
                is_being_made.set()
                await asyncio.wait([swapping])
            elif any(row.startswith(b"alias/") for row in rows):
                await is_being_made.wait()
            await write(mutations)

        house.catalogue._write = house.catalogue.derivations._write = in_turn
        swapping = asyncio.ensure_future(house.generations.swap("by_a"))
        await house.changes.create(b"u", [Family("f")])
        assert await swapping == ("by_a.2", "by_a")
        assert roles(house) == {"by_a": "kept", "by_a.2": "live"}

    run()


def test_views_of_an_earlier_version_are_compressed_as_new_ones_are() -> None:
    """Their families had no compression; readers see what they saw, and files follow as they are compacted."""

    @in_view_house
    async def run(house: ViewHouse) -> None:
        await filled(house)
        await rebuilt(house)
        for name in ("by_a", "by_a.2"):
            assert compressions(house.served(name).schema) == {"LZ4"}
            schema = house.served(name).schema
            older = replace(schema, families=tuple(replace(one, compression="NONE") for one in schema.families))
            await house.changes.publish(await house.catalogue.alter(older))
            await house.owner.request_peer(messages.FollowSchema(name))
        totals = await house.totals("by_a")
        await house.generations.sweep()
        for name in ("by_a", "by_a.2"):
            assert compressions(house.served(name).schema) == {"LZ4"}
            assert compressions(Catalogue(house.rows.read(), house.rows.write).tables[name].schema) == {"LZ4"}
        assert await house.totals("by_a") == totals != {}
        house.rows.failure = AssertionError("it is written again")
        await house.generations.sweep()
        house.rows.failure = None

    run()


def compressions(schema: Table) -> set[str]:
    return {family.compression for family in schema.families}

"""Regions are announced before they have folders, and have folders before they are a table's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import HostError, IllegalArgument, NamespaceNotFound, OutcomeUnknown
from columnar.limits import ROW_KEY_BYTES
from columnar.master.alterations import Alterations
from columnar.master.catalogue import Catalogue
from columnar.master.schema_changes import SchemaChanges
from columnar.master.trigger_changes import TriggerChanges
from columnar.model import region_info
from columnar.model.mutation import Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Publish
from columnar.model.schema import Family
from columnar.storage.rocks import RocksEngine
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.held_engine import FakeClock


class SeenRows(CatalogueRows):
    """It looks at the folders before each write."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.announced: set[str] = set()
        self.named: set[str] = set()

    async def write(self, mutations: list[RowMutation]) -> None:
        for mutation in mutations:
            for operation in mutation.operations:
                if mutation.row[:2] in (b"r/", b"d/") and isinstance(operation, Put):
                    self.look(mutation.row[:2], region_info.from_json(operation.value))
        await super().write(mutations)

    def look(self, kind: bytes, info: RegionInfo) -> None:
        if kind == b"r/":
            assert info.encoded in self.announced, "else a crash leaves a folder that nobody names"
            assert (self.folder / info.encoded).is_dir(), "else it looks lost after a crash"
            self.named.add(info.encoded)
        elif info.encoded not in self.named:
            assert not (self.folder / info.encoded).exists(), "else a crash leaves a folder that nobody names"
            self.announced.add(info.encoded)


def run(folder: Path, check: Callable[[ChangingHouse, SeenRows], Awaitable[None]]) -> None:
    async def main() -> None:
        rows = SeenRows(folder)
        house = ChangingHouse(RocksEngine(cache_bytes=1 << 20), str(folder), rows, FakeClock())
        await house.start()
        await check(house, rows)
        await house.close()

    asyncio.run(main())


def test_a_table_that_is_dropped_while_the_master_starts_does_not_end_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        for name in (b"first", b"second"):
            await house.changes.create(name, [Family("f")])
        entered, released, request = asyncio.Event(), asyncio.Event(), house.owner.request_peer
        published: list[str] = []

        async def slow(message: Any) -> Any:
            if isinstance(message, Publish):
                published.append(message.table.name)
                entered.set()
                await released.wait()
            return await request(message)

        monkeypatch.setattr(house.owner, "request_peer", slow)
        starting = asyncio.ensure_future(house.changes.start())
        await entered.wait()
        dropping = asyncio.ensure_future(house.changes.drop(b"second", disable=True))
        for _ in range(20):
            await asyncio.sleep(0.001)
        released.set()
        await asyncio.gather(starting, dropping)
        assert set(house.catalogue.tables) >= {"first"}
        assert "second" not in house.catalogue.tables
        served = [name for name in ("first", "second") if house.server.tables.find(name.encode()) is not None]
        assert served == ["first"], f"published {published}"

    run(tmp_path, check)


def test_a_table_is_made_and_truncated_with_folders(tmp_path: Path) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        await house.changes.create(b"new", [Family("f")], splits=[b"g", b"p"])
        first = house.catalogue.tables["new"].regions
        assert [(info.start, info.end) for info in first] == [(b"", b"g"), (b"g", b"p"), (b"p", b"")]
        alterations = Alterations(house.catalogue, house.owner, house.changes)
        assert await alterations.truncate(b"new", preserve_splits=True) == 3
        second = house.catalogue.tables["new"].regions
        assert [(info.start, info.end) for info in second] == [(info.start, info.end) for info in first]
        assert not set(first) & set(second)
        assert {info.encoded for info in second} < rows.named
        assert not any((tmp_path / info.encoded).exists() for info in first)
        assert house.catalogue.dropped == []
        assert not [row for row in rows.cells if row.startswith(b"d/")]

    run(tmp_path, check)


@pytest.mark.parametrize("goes", [True, False])
def test_a_table_whose_folders_cannot_be_made_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes: bool
) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        make, known, held = house.engine.make_folders, set(rows.cells), folders(tmp_path)

        def refuse(paths: list[str]) -> None:
            make(paths[:1])
            raise HostError("the disk is full")

        def refuse_too(path: str) -> None:
            raise HostError("the disk takes no writes")

        with monkeypatch.context() as patched:
            patched.setattr(house.engine, "make_folders", refuse)
            if not goes:
                patched.setattr(house.engine, "destroy", refuse_too)
            with pytest.raises(HostError, match="the disk is full"):
                await house.changes.create(b"new", [Family("f")], splits=[b"g"])
        assert "new" not in house.catalogue.tables
        left = {row for row in rows.cells if row not in known}
        if goes:
            assert left == set()
            assert folders(tmp_path) == held
        else:
            assert {row[:2] for row in left} == {b"d/"}, "the next start removes them"
            assert folders(tmp_path) - held <= {row[2:].decode() for row in left}
        await house.changes.create(b"new", [Family("f")], splits=[b"g"])

    run(tmp_path, check)


def test_nothing_of_a_dropped_table_is_open_when_its_folders_go_and_the_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that brings in what a dead one's log has opens regions of disabled tables, too."""

    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        await house.changes.create(b"old", [Family("f")], splits=[b"g"])
        infos = house.catalogue.tables["old"].regions
        await house.changes.disable(b"old")
        served = house.server.tables.known(b"old")
        for info in infos:
            await house.server.opened(served, info)
        seen = noted_removals(house, monkeypatch)
        await house.changes.drop(b"old")
        assert seen == [(False, 0)] * 2
        assert not any((tmp_path / info.encoded).exists() for info in infos)

    run(tmp_path, check)


def test_a_start_removes_what_is_left_of_drops_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        left = [RegionInfo("old", 900), RegionInfo("old", 901)]
        house.folders.make([info.encoded for info in left])
        house.catalogue.dropped += left
        seen = noted_removals(house, monkeypatch)
        await house.changes.finish_drops()
        assert [on_loop for on_loop, _ in seen] == [False] * 2
        assert house.catalogue.dropped == []
        assert not any((tmp_path / info.encoded).exists() for info in left)

    run(tmp_path, check)


def noted_removals(house: ChangingHouse, monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """For each folder that is removed: whether that held the loop, and how many regions of tables of users are open."""
    seen: list[tuple[bool, int]] = []
    destroy, loop_thread = house.engine.destroy, threading.get_ident()

    def noted(path: str) -> None:
        opened = [region for region in house.server.all_open() if not region.table.is_system]
        seen.append((threading.get_ident() == loop_thread, len(opened)))
        destroy(path)

    monkeypatch.setattr(house.engine, "destroy", noted)
    return seen


def test_dropping_twice_the_regions_costs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(regions: int) -> int:
        """How often regions are compared, or hashed, when as many are removed."""
        found, same, hashed = [0], RegionInfo.__eq__, RegionInfo.__hash__

        async def write(_mutations: list[RowMutation]) -> None:
            pass

        def compared(one: RegionInfo, other: object) -> bool:
            found[0] += 1
            return same(one, other)

        def counted(one: RegionInfo) -> int:
            found[0] += 1
            return hashed(one)

        nobody: Any = None
        folders: Any = type("Folders", (), {"destroy": lambda _self, _encoded: None})()
        catalogue = Catalogue([], write)
        catalogue.dropped = [RegionInfo("t", number) for number in range(regions)]
        with monkeypatch.context() as patched:
            patched.setattr(RegionInfo, "__eq__", compared)
            patched.setattr(RegionInfo, "__hash__", counted)
            triggers = TriggerChanges(catalogue, nobody, ())
            asyncio.run(SchemaChanges(catalogue, nobody, folders, triggers).finish_drops())
        assert catalogue.dropped == []
        return found[0]

    assert looks(200) <= 2 * looks(100)


def test_what_became_of_a_new_table_is_unknown(tmp_path: Path) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        with lost_in_the_last_write(house, rows):
            await house.changes.create(b"new", [Family("f")], splits=[b"g"])
        assert len(announced(rows)) == 2
        assert announced(rows) <= folders(tmp_path), "they may be the table's"

    run(tmp_path, check)


def test_what_became_of_truncating_is_unknown(tmp_path: Path) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        await house.changes.create(b"old", [Family("f")])
        alterations = Alterations(house.catalogue, house.owner, house.changes)
        with lost_in_the_last_write(house, rows):
            await alterations.truncate(b"old", preserve_splits=False)
        assert len(announced(rows)) == 1
        assert announced(rows) <= folders(tmp_path), "they may be the table's"
        assert not house.server.tables.known(b"old").enabled, "it is not served until that is known"

    run(tmp_path, check)


def test_split_points_are_row_keys_that_differ(tmp_path: Path) -> None:
    longest = b"k" * ROW_KEY_BYTES

    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        held = dict(rows.cells)
        for splits in ([b""], [b"g", b""], [longest + b"k"], [b"g", longest + b"k"], [b"g", b"p", b"g"]):
            with pytest.raises(IllegalArgument, match="split point"):
                await house.changes.create(b"new", [Family("f")], splits=splits)
        assert rows.cells == held, "nothing was announced"
        await house.changes.create(b"new", [Family("f")], splits=[longest, b"p", b"g"])
        found = house.catalogue.tables["new"].regions
        assert [info.start for info in found] == [b"", b"g", longest, b"p"]
        assert [info.end for info in found] == [b"g", longest, b"p", b""]

    run(tmp_path, check)


def test_users_make_no_tables_in_the_namespace_of_the_system(tmp_path: Path) -> None:
    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        held = dict(rows.cells)
        for name in (b"columnar:new", b"none:new"):
            with pytest.raises(NamespaceNotFound):
                await house.changes.create(name, [Family("f")])
        with pytest.raises(NamespaceNotFound):
            house.changes.check_namespace("columnar")
        house.changes.check_namespace("columnar", system=True)
        house.changes.check_namespace("default")
        assert rows.cells == held

    run(tmp_path, check)


def folders(path: Path) -> set[str]:
    return {one.name for one in path.iterdir()}


def announced(rows: SeenRows) -> set[str]:
    return {row[2:].decode() for row in rows.cells if row.startswith(b"d/")}


@contextmanager
def lost_in_the_last_write(house: ChangingHouse, rows: SeenRows) -> Iterator[None]:
    async def unsure(mutations: list[RowMutation]) -> None:
        if any(mutation.row.startswith(b"r/") for mutation in mutations):
            raise OutcomeUnknown("the disk refused")
        await rows.write(mutations)

    house.catalogue._write = unsure
    with pytest.raises(OutcomeUnknown):
        yield


def test_a_table_that_serves_again_is_told_before_it_can_be_dropped(tmp_path: Path) -> None:
    """Else servers would know a dropped table: they hear of it after its end."""

    async def check(house: ChangingHouse, rows: SeenRows) -> None:
        await house.changes.create(b"new", [Family("f")])
        await house.changes.disable(b"new")
        rows.failure = OutcomeUnknown("the disk refused")
        with pytest.raises(OutcomeUnknown):
            await house.changes.drop(b"new")
        rows.failure = None
        ask, told, may_answer = house.owner.request_peer, list[str](), asyncio.Event()

        async def slowly(message: Any) -> Any:
            if isinstance(message, Publish):
                await may_answer.wait()
            told.append(type(message).__name__)
            return await ask(message)

        house.owner.request_peer = slowly  # type: ignore[method-assign]
        repaired = asyncio.ensure_future(house.changes.catalogue_repaired())
        await asyncio.sleep(0)
        dropping = asyncio.ensure_future(house.changes.drop(b"new"))
        await asyncio.wait([dropping], timeout=0.05)
        may_answer.set()
        await asyncio.gather(repaired, dropping)
        assert told.index("Publish") < told.index("Withdraw")
        assert house.server.tables.named("new") is None

    run(tmp_path, check)

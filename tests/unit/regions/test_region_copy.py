"""Which regions are opened to be copied: those whose files alone lack something that was acknowledged."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from columnar.backup.cell_blocks import ExportedCell
from columnar.backup.region_builder import SortedFiles
from columnar.model.schema import Family, make_table
from columnar.regions.life.region_state import Event
from columnar.regions.log.change_record import pack_key
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.log.lost_changes import END
from columnar.regions.region import Region, spaces_of
from columnar.regions.replace import region_copier
from columnar.regions.write.ingestion import INGESTING
from columnar.storage.ownership import LogPart, Ownership
from columnar.storage.rocks import RocksEngine
from tests.support.region_house import House


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_closed_region_that_a_log_has_more_of_is_opened_to_be_copied(
    is_behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked: list[str] = []
    opened: list[Region] = []

    async def noted(region: Region, path: str) -> None:
        opened.append(region)

    async def main() -> None:
        house = House(make_table("t", [Family("a")]))
        await house.put_value(b"r")
        info = house.region().info
        house.server.eviction.evict(house.region())
        behind = (LogPart("dead", 1),) if is_behind else ()
        house.server.openings.ownership_at = lambda region, epoch: Ownership(region, epoch, behind)
        await region_copier.copy_region(house.server, info, "copies/r")
        folder = house.server.folder_of(info)
        await house.close()
        assert linked == ([] if is_behind else [folder])
        assert [region.info for region in opened] == ([info] if is_behind else [])

    monkeypatch.setattr(region_copier, "link_closed", lambda folder, _path: linked.append(folder))
    monkeypatch.setattr(region_copier, "copy_open_region", noted)
    asyncio.run(main())


def test_files_of_a_store_that_a_thread_still_closes_are_not_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk refused an fsync: while it closes, its files come and go."""
    seen: list[str] = []
    closing, may_close = threading.Event(), threading.Event()

    async def noted(region: Region, _path: str) -> None:
        seen.append(f"opened {region.is_open}")

    async def main() -> None:
        house = House(make_table("t", [Family("a")]))
        await house.put_value(b"r")
        region, hosting = house.region(), house.server.hosting
        close = region.store.close

        def slowly() -> None:
            closing.set()
            may_close.wait(9)
            close()

        region.store.close = slowly  # type: ignore[method-assign]
        hosting.report_event(region, Event.FSYNC_FAILED)
        copying = asyncio.ensure_future(region_copier.copy_region(house.server, region.info, "copies/r"))
        while not closing.is_set():  # noqa: ASYNC110 - a thread tells
            await asyncio.sleep(0.001)
        assert not copying.done()
        assert not seen
        may_close.set()
        await copying
        assert seen == ["opened True"]
        await house.close()

    monkeypatch.setattr(region_copier, "link_closed", lambda _folder, _path: seen.append("linked"))
    monkeypatch.setattr(region_copier, "copy_open_region", noted)
    asyncio.run(main())


def test_an_ingestion_that_was_cut_off_is_undone_in_a_copy_of_a_region_that_nobody_has_opened_since(
    tmp_path: Path,
) -> None:
    """The copy forgets the mark with the log: what was half in would stay."""
    table = make_table("t", [Family("a"), Family("b")])

    async def main() -> None:
        house = House(table, engine=RocksEngine(), folder=str(tmp_path / "regions"))
        await house.put_value(b"z")
        region = house.region()
        files = SortedFiles(RocksEngine(), str(tmp_path), table)
        for family in (b"a", b"b"):
            files.add_cell(ExportedCell(b"r", family, b"q", 5, None, b"v"))
        files.finish()
        await region.note(INGESTING, b"\x00\x00\x00\x01rr", 5)
        region.store.files.ingest({"f:a": files.paths()["f:a"]})
        await house.server.close_regions([region.info])  # as after a crash: the mark stands
        copy = str(tmp_path / "copy")
        await region_copier.copy_region(house.server, region.info, copy)
        region_copier.forget_log_at(RocksEngine(), copy, table)
        store = RocksEngine().open_store(copy, spaces_of(table))
        assert [key[:1] for key, _ in store.scan("f:a", b"", None)] == [b"z"]
        store.close()
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_copy_says_where_the_log_ends_if_no_record_does(is_kept: bool, tmp_path: Path) -> None:
    """Readers may stand behind the last record, at a sequence that a refused write took."""

    async def main() -> None:
        house = House(make_table("t", [Family("a")]), engine=RocksEngine(), folder=str(tmp_path / "regions"))
        await house.put_value(b"z")
        region = house.region()
        if is_kept:
            region.log.coverage.begin_coverage(b"", region.log.written_to)
        end = region.log.next()
        copy = str(tmp_path / "copy")
        await region_copier.copy_region(house.server, region.info, copy)
        store = RocksEngine().open_store(copy, spaces_of(region.table))
        assert store.get(META_SPACE, END) == (pack_key(end) if is_kept else None)
        store.close()
        await house.close()

    asyncio.run(main())

"""Whole rows come in at once or not at all, also where the engine dies half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from columnar.backup.cell_blocks import ExportedCell
from columnar.backup.region_builder import SortedFiles
from columnar.errors import HostError
from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.regions.life import retry
from columnar.regions.read.region_reads import get_column
from columnar.regions.write.ingestion import INGESTING, IncomingRows, ingest
from columnar.storage.api import Batch, StoreBusy
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_files import RocksFiles
from columnar.storage.rocks_store import RocksStore
from tests.support.region_house import House

TABLE = make_table("t", [Family("a", max_versions=2), Family("b")])
FUTURE_MS = 1 << 50


def in_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def house_at(tmp_path: Path) -> House:
    return House(TABLE, (b"m",), engine=RocksEngine(), folder=str(tmp_path / "regions"))


def incoming(tmp_path: Path, *rows: bytes, single_ms: int = 5) -> IncomingRows:
    """``single_ms``: of the cells in the family that keeps one version."""
    folder = tmp_path / f"files{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    files = SortedFiles(RocksEngine(), str(folder), TABLE)
    for row in rows:
        for family, timestamp in ((b"a", FUTURE_MS), (b"a", 5), (b"b", single_ms)):
            files.add_cell(ExportedCell(row, family, b"q", timestamp, None, row + b" %d" % timestamp))
    files.finish()
    assert files.first_row is not None
    return IncomingRows(files.first_row, files.last_row, files.highest_timestamp, files.rows, files.paths())


def test_rows_come_in_and_later_writes_are_compared_with_them(tmp_path: Path) -> None:
    async def work() -> None:
        house = house_at(tmp_path)
        assert await ingest(house.region(b"b"), incoming(tmp_path, b"b", b"c"))
        assert house.row(b"b") == [(b"a:q", b"b %d" % FUTURE_MS, FUTURE_MS), (b"b:q", b"b 5", 5)]
        await house.put(b"b", Put(b"a", b"q", b"by the clock"))
        assert house.row(b"b")[0][2] == FUTURE_MS, "a cell in the future still wins"
        assert house.region(b"b").mark(INGESTING) is None
        await house.close()

    in_loop(work)


def test_a_cell_in_the_future_that_came_in_stays_though_its_family_keeps_one_version(tmp_path: Path) -> None:
    async def work() -> None:
        house = house_at(tmp_path)
        region = house.region(b"b")
        assert await ingest(region, incoming(tmp_path, b"b", b"c", single_ms=FUTURE_MS))
        await house.put(b"b", Put(b"b", b"q", b"by the clock"))
        assert house.row(b"b")[1] == (b"b:q", b"b %d" % FUTURE_MS, FUTURE_MS)
        assert not region.can_delete_at_once(house.clock.now_ms)
        await house.close()

    in_loop(work)


def test_what_may_not_come_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        house = house_at(tmp_path)
        await house.put(b"c", Put(b"b", b"x", b"here"))
        region = house.region(b"b")
        assert not await ingest(region, incoming(tmp_path, b"b", b"d")), "a row stands among them"
        assert await ingest(region, incoming(tmp_path, b"d", b"e"))
        assert not await ingest(region, incoming(tmp_path, b"f", b"x")), "not all of this region"
        assert not await ingest(house.region(b"x"), incoming(tmp_path, b"f", b"x"))
        assert house.row(b"f") == house.row(b"x") == []
        assert await ingest(region, incoming(tmp_path, b"f", b"g")), "nothing of them is left"
        assert house.row(b"c") == [(b"b:x", b"here", house.clock())]
        assert house.row(b"b") == []
        await house.close()

    in_loop(work)


def test_a_row_written_meanwhile_keeps_them_out(tmp_path: Path) -> None:
    async def work() -> None:
        house = house_at(tmp_path)
        region = house.region(b"b")
        house.gate.hold()
        coming = asyncio.ensure_future(ingest(region, incoming(tmp_path, b"a", b"c")))
        await asyncio.sleep(0)
        applied = house.apply(b"b", Put(b"b", b"q", b"meanwhile"))
        house.gate.release()
        assert not await coming
        assert applied.durable is not None
        await applied.durable
        assert [row for row in (b"a", b"b", b"c") if house.row(row)] == [b"b"]
        await house.close()

    in_loop(work)


def test_a_row_written_and_deleted_meanwhile_keeps_them_out(tmp_path: Path) -> None:
    """The range is empty again, but the mark is gone: a crash between the files would leave half of the rows."""

    async def work() -> None:
        house = house_at(tmp_path)
        region = house.region(b"b")
        house.gate.hold()
        coming = asyncio.ensure_future(ingest(region, incoming(tmp_path, b"a", b"c")))
        await asyncio.sleep(0)
        house.apply(b"b", Put(b"b", b"q", b"meanwhile"))
        house.apply(b"b", Delete(b"b", b"q"))
        house.gate.release()
        assert not await coming
        assert [row for row in (b"a", b"b", b"c") if house.row(row)] == []
        await house.close()

    in_loop(work)


@pytest.mark.parametrize("is_refused_first", [False, True])
def test_a_row_written_meanwhile_is_there_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused_first: bool
) -> None:
    """The range of an ingestion that was cut off is emptied; what was acknowledged in it was lost."""

    def refuse(_batch: Batch) -> None:
        raise StoreBusy("behind with flushing")

    async def work() -> None:
        house = house_at(tmp_path)
        region = house.region(b"b")
        await house.put(b"z", Put(b"b", b"q", b"the other region"))
        marks, note = list[bytes | None](), region.note

        async def noted(key: bytes, value: bytes | None, highest: int, rows: int = 0) -> None:
            marks.append(value)
            if value is None:
                raise HostError("killed")  # before the mark is taken back
            await note(key, value, highest, rows)

        region.note = noted  # type: ignore[method-assign]
        house.gate.hold()
        coming = asyncio.ensure_future(ingest(region, incoming(tmp_path, b"a", b"c")))
        await asyncio.sleep(0)
        assert len(marks) == 1
        if is_refused_first:
            with monkeypatch.context() as patch:
                patch.setattr(region.store, "gather", refuse)
                with pytest.raises(StoreBusy):
                    house.apply(b"b", Put(b"b", b"q", b"meanwhile"))
        acknowledged = [house.apply(row, Put(b"b", b"q", b"meanwhile")).durable for row in (b"d", b"b")]
        house.gate.release()
        with pytest.raises(HostError, match="killed"):
            await coming
        for durable in acknowledged:
            assert durable is not None
            await durable
        await house.server.close_regions([region.info])
        assert [row for row in (b"a", b"b", b"c", b"d") if house.row(row)] == [b"b", b"d"]
        assert house.region(b"b").mark(INGESTING) is None
        await house.close()

    in_loop(work)


@pytest.mark.parametrize("spaces", [(), (0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_an_ingestion_that_was_cut_off_is_undone(tmp_path: Path, spaces: tuple[int, ...]) -> None:
    async def work() -> None:
        house = house_at(tmp_path)
        await house.put(b"z", Put(b"b", b"q", b"the other region"))
        region = house.region(b"b")
        await house.put(b"aa", Put(b"b", b"q", b"before"))
        rows = incoming(tmp_path, b"b", b"c")
        await region.note(INGESTING, b"\x00\x00\x00\x01bc", 0)
        assert len(rows.files) == 3, "two families, and older versions"
        for space in (sorted(rows.files)[number] for number in spaces):
            region.store.files.ingest({space: rows.files[space]})
        await house.server.close_regions([region.info])  # as after a crash: the mark stands
        assert house.row(b"b") == house.row(b"c") == []
        assert [value for _, value, _ in house.row(b"aa")] == [b"before"]
        assert house.region(b"b").mark(INGESTING) is None
        assert await ingest(house.region(b"b"), incoming(tmp_path, b"c"))
        await house.put(b"b", Put(b"a", b"q", b"the only version"))
        every = replace(house.read(b"a:q"), max_versions=9)
        assert [value for value, _ in get_column(house.region(b"b"), b"b", b"a", b"q", every)] == [b"the only version"]
        await house.close()

    in_loop(work)


def test_two_ingestions_go_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one mark: of what the engine takes now."""
    marked: list[tuple[bytes | None, bytes]] = []

    async def work() -> None:
        house = house_at(tmp_path)
        region, whole = house.region(b"b"), RocksFiles.ingest
        files = [incoming(tmp_path, b"b", b"c"), incoming(tmp_path, b"d", b"e")]

        def looked(self: RocksFiles, paths: Any) -> None:
            (one,) = [one for one in files if one.files == paths]
            marked.append((region.mark(INGESTING), one.first + one.last))
            whole(self, paths)

        monkeypatch.setattr(RocksFiles, "ingest", looked)
        assert await asyncio.gather(*(ingest(region, one) for one in files)) == [True, True]
        assert [row for row in (b"b", b"c", b"d", b"e") if house.row(row)] == [b"b", b"c", b"d", b"e"]
        await house.close()

    in_loop(work)
    assert [mark for mark, _ in marked] == [b"\x00\x00\x00\x01" + rows for _, rows in marked]
    assert len(marked) == 2


def test_an_ingestion_that_the_engine_refuses_half_way_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = RocksFiles.ingest

    def half(self: RocksFiles, files: Any) -> None:
        first = sorted(files)[0]
        whole(self, {first: files[first]})
        raise HostError("the disk is full")

    async def work() -> None:
        house = house_at(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(RocksFiles, "ingest", half)
            with pytest.raises(HostError):
                await ingest(house.region(b"b"), incoming(tmp_path, b"b", b"c"))
        assert house.row(b"b") == []
        assert await ingest(house.region(b"b"), incoming(tmp_path, b"b", b"c"))
        await house.close()

    in_loop(work)


@pytest.mark.parametrize("recovers", [True, False])
def test_an_engine_that_is_behind_leaves_no_mark_that_later_rows_fall_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovers: bool
) -> None:
    """The next opening empties a range whose mark stands, with all that was acknowledged in it since."""
    monkeypatch.setattr(retry, "STALL_TIMEOUT_S", 9.0 if recovers else 0.0)
    tries: list[Any] = []

    async def work() -> None:
        house = house_at(tmp_path)
        region, whole = house.region(b"b"), RocksFiles.ingest

        def behind(self: RocksFiles, files: Any) -> None:
            tries.append(files)
            if recovers and len(tries) == 3:
                whole(self, files)
                return
            raise StoreBusy("behind with flushing")

        def no_write(_self: RocksStore, _batch: Batch) -> None:
            raise StoreBusy("behind with flushing")

        with monkeypatch.context() as patch:
            patch.setattr(RocksFiles, "ingest", behind)
            patch.setattr(RocksStore, "write_batch", no_write)
            if recovers:
                assert await ingest(region, incoming(tmp_path, b"a", b"c"))
            else:
                with pytest.raises(StoreBusy):
                    await ingest(region, incoming(tmp_path, b"a", b"c"))
        await house.put(b"b", Put(b"b", b"q", b"later"))
        await house.server.close_regions([region.info])
        assert [row for row in (b"a", b"b", b"c") if house.row(row)] == ([b"a", b"b", b"c"] if recovers else [b"b"])
        assert house.region(b"b").mark(INGESTING) is None
        await house.close()

    in_loop(work)
    assert len(tries) == (3 if recovers else 1)


def test_a_row_written_after_an_ingestion_whose_caller_went_is_there_at_the_next_opening(tmp_path: Path) -> None:
    async def work() -> None:
        house = house_at(tmp_path)
        region = house.region(b"b")
        house.gate.hold()
        coming = asyncio.ensure_future(ingest(region, incoming(tmp_path, b"a", b"c")))
        await asyncio.sleep(0)
        coming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await coming
        house.gate.release()
        await house.put(b"b", Put(b"b", b"q", b"later"))
        await house.server.close_regions([region.info])
        assert [row for row in (b"a", b"b", b"c") if house.row(row)] == [b"b"]
        await house.close()

    in_loop(work)


def test_files_of_a_family_that_was_dropped_meanwhile_keep_all_out(tmp_path: Path) -> None:
    """The files before were in already, and the mark stood."""

    async def work() -> None:
        house = house_at(tmp_path)
        region = house.region(b"b")
        house.gate.hold()
        coming = asyncio.ensure_future(ingest(region, incoming(tmp_path, b"a", b"c")))
        await asyncio.sleep(0)
        region.follow_schema(make_table("t", [Family("a", max_versions=2)]))
        house.gate.release()
        assert not await coming
        assert house.row(b"a") == []
        assert region.mark(INGESTING) is None
        await house.close()

    in_loop(work)

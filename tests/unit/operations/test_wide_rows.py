"""Rows that cost more than a step: others are served meanwhile, and the row is as of one moment, whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import ClientGone, RequestTooBig, RowTooBig
from columnar.limits import STEP_CELLS
from columnar.model.filter_language import parse
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.operations import reads, wide_reads
from columnar.storage.rocks import RocksEngine
from columnar.wire.codec_replies import rows_success
from columnar.wire.service import CallContext
from tests.support.region_house import House, counted_turns, rows_of
from tests.support.service_calls import RowCalls, answer_of

TABLE = make_table("t", [Family("a"), Family("b", max_versions=9)])
WIDTH = 8 * STEP_CELLS
CTX = CallContext(1, "test")
STEPS = WIDTH // STEP_CELLS


async def filled(engine: Any = None, folder: str = "regions") -> tuple[House, RowCalls]:
    house = House(TABLE, (b"s",), engine=engine, folder=folder)
    for start in range(0, WIDTH, 5_000):
        house.apply(b"r", *(Put(b"a", b"%06d" % n, b"v") for n in range(start, start + 5_000)))
    house.apply(b"r", Put(b"b", b"q", b"old", 5))
    house.apply(b"r", Put(b"b", b"q", b"new", 6))
    house.apply(b"r1", Put(b"a", b"q", b"small"))
    for region in house.server.all_open():
        await house.server.hosting.quiesce(region)
    return house, RowCalls(house)


READS: dict[str, Any] = {
    "getRow": lambda house, calls: calls.getRow(CTX, b"t", b"r", {}),
    "getRowWithColumns": lambda house, calls: calls.getRowWithColumns(CTX, b"t", b"r", [b"a"], {}),
    "getRows": lambda house, calls: calls.getRows(CTX, b"t", [b"r", b"r1"], {}),
    "getVer": lambda house, calls: calls.getVer(CTX, b"t", b"r", b"a", 1, {}),
    "scan": lambda house, calls: rows_of(house.scanner()),
    "scan back": lambda house, calls: rows_of(house.scanner(reversed=True)),
    "batch": lambda house, calls: rows_of(house.scanner(batch=10)),
    "rare column": lambda house, calls: rows_of(house.scanner(b"", b"", b"a:zzz", b"b:q")),
    "filter": lambda house, calls: rows_of(house.scanner(row_filter=parse(b"ValueFilter(=, 'binary:new')"))),
    "pattern": lambda house, calls: rows_of(house.scanner(row_filter=parse(b"ValueFilter(=,'regexstring:(n|x)ew')"))),
}


@pytest.mark.parametrize("batch", [1, 3])
def test_others_are_served_while_a_row_is_handed_out_in_small_batches(batch: int) -> None:
    """The pieces of a row are a step's work too: a scan of one cell a batch held the loop for ten seconds."""

    async def main() -> None:
        house, _ = await filled()
        with counted_turns() as turns:
            rows = await rows_of(house.scanner(b"r", b"r1", batch=batch), 1_000_000)
        assert turns[0] >= 4 * STEPS, "to read it, and to hand it out"
        cells = [column for _, found in rows for column, *_ in found]
        assert cells == [b"a:%06d" % n for n in range(WIDTH)] + [b"b:q"]
        assert [len(found) for _, found in rows[:-1]] == [batch] * (len(rows) - 1)

    asyncio.run(main())


@pytest.mark.parametrize("name", READS)
def test_others_are_served_while_a_row_is_read(name: str) -> None:
    async def main() -> None:
        house, calls = await filled()
        with counted_turns() as turns:
            await answer_of(READS[name](house, calls))
        assert turns[0] >= STEPS - 1
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_row_is_as_of_one_moment_while_it_is_written(on_disk: bool, tmp_path: Any) -> None:
    async def main() -> None:
        engine = RocksEngine() if on_disk else None
        house, calls = await filled(engine, str(tmp_path / "regions"))
        expected = rows_success(await answer_of(calls.getRow(CTX, b"t", b"r", {})))
        reading = asyncio.ensure_future(calls.getRow(CTX, b"t", b"r", {}))
        of_b = parse(b"FamilyFilter(=, 'binary:b')")
        scanning = asyncio.ensure_future(rows_of(house.scanner(b"r", b"r", row_filter=of_b)))
        versions = asyncio.ensure_future(
            calls.getRowWithColumnsTs(CTX, b"t", b"r", [b"a", b"b:q"], 6, {})
        )  # the older version of b:q, which the write below moves
        while len(house.region(b"r").on_leave) < 3:  # noqa: ASYNC110 - of calls under way
            await asyncio.sleep(0)
        await house.put(b"r", Put(b"a", b"%06d" % (WIDTH - 1), b"x"), Put(b"a", b"zz", b"new"), Put(b"b", b"q", b"x"))
        assert rows_success(await reading) == expected
        assert [cells[0][1] for _, cells in await scanning] == [b"new"]
        assert [value for _, value, _ in house.row(b"r", b"b:q")] == [b"x"]
        assert b"old" in rows_success(await versions)
        await house.close()

    asyncio.run(main())


@pytest.mark.parametrize("name", ["getRow", "scan", "filter"])
def test_a_region_that_is_closed_meanwhile_has_its_row_read_anew(name: str, tmp_path: Any) -> None:
    async def main() -> None:
        house, calls = await filled(RocksEngine(), str(tmp_path / "regions"))
        expected = await answer_of(READS[name](house, calls))
        reading = asyncio.ensure_future(answer_of(READS[name](house, calls)))
        region = house.region(b"r")
        while not region.on_leave:  # noqa: ASYNC110 - of a call under way
            await asyncio.sleep(0)
        await house.server.hosting.close(region)
        assert not region.on_leave
        found = await reading
        if name == "getRow":
            assert rows_success(found) == rows_success(expected)
        else:
            assert [(row, list(cells)) for row, cells in found] == [(row, list(cells)) for row, cells in expected]
        await house.close()

    asyncio.run(main())


def test_a_client_that_has_gone_ends_the_reading() -> None:
    async def main() -> None:
        house, calls = await filled()
        gone = [False]
        ctx = CallContext(1, "test", has_gone=lambda: gone[0])
        reading = asyncio.ensure_future(calls.getRow(ctx, b"t", b"r", {}))
        await asyncio.sleep(0)
        gone[0] = True
        with pytest.raises(ClientGone):
            await reading
        assert not house.region(b"r").on_leave
        assert house.operations.access.reply_memory.calls == 0
        await house.close()

    asyncio.run(main())


def test_a_row_that_is_too_large_for_an_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        house, calls = await filled()
        monkeypatch.setattr(reads, "ROWS_BYTES", 100_000)
        with pytest.raises(RequestTooBig, match="over 100000 bytes"):
            await calls.getRows(CTX, b"t", [b"r"], {})
        for sink in (wide_reads.Packed, wide_reads.Listed):
            monkeypatch.setattr(sink.__init__, "__defaults__", (*(sink.__init__.__defaults__ or ())[:-1], 100_000))
        monkeypatch.setattr(wide_reads, "ROW_BYTES", 100_000)
        with pytest.raises(RowTooBig, match="row 'r' has over 100000 bytes"):
            await calls.getRow(CTX, b"t", b"r", {})
        with pytest.raises(RowTooBig):
            await rows_of(house.scanner())
        assert house.operations.access.reply_memory.calls == 0
        await house.close()

    asyncio.run(main())

"""The short way of a scan gives what the long one gives, wherever its steps end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.model.read import Projection, ReadSpec
from columnar.regions.read.family_view import FamilyView
from columnar.regions.read.found_rows import FoundRows, ScanRow, size_of
from columnar.regions.read.plain_rows import BLOCK_BYTES, PlainStep
from columnar.regions.read.row_reader import RowCursor, visible_cells, wire_cells
from columnar.storage.layout import cell_key, pack_cell, pack_marker, row_end
from columnar.storage.memory import MemoryEngine
from columnar.storage.stored_cells import PackedRows, StoredCells
from columnar.wire import idl
from columnar.wire.codec import ServiceCodec
from columnar.wire.codec_replies import RowList, map_rows
from columnar.wire.detect import Protocol

SPACE = "f0"
VIEW = FamilyView(b"f", b"f:", SPACE, 0, 1, None)
SPEC = ReadSpec(Projection(((b"f", None),)))
NOW_MS = 1_000
NAMES = st.sampled_from([b"", b"a", b"a\x00", b"b", b"\x00", b"\xff", b"long" * 9])
STORED = st.one_of(
    st.builds(pack_cell, st.integers(0, 2**63 - 1), st.just(0), st.binary(max_size=9)),
    st.builds(pack_cell, st.integers(0, 900), st.just(0), st.binary(max_size=9), st.sampled_from([1, 10_000])),
    st.builds(pack_marker, st.integers(0, 900), st.just(0), st.just(1)),
)
CELLS = st.dictionaries(st.tuples(NAMES.filter(bool), NAMES), STORED, max_size=30)


def store_of(cells: dict[tuple[bytes, bytes], bytes]) -> Any:
    store = MemoryEngine().open_store("x", frozenset({SPACE, "default"}))
    batch = store.batch()
    for (row, qualifier), raw in cells.items():
        batch.put(SPACE, cell_key(row, qualifier), raw)
    store.write_batch(batch)
    return store


def the_long_way(store: Any) -> list[ScanRow]:
    cursor = RowCursor.over(store, {b"f": VIEW}, SPEC.projection, b"", None, reverse=False)
    rows: list[ScanRow] = []
    while (found := cursor.next_row()) is not None:
        cells = wire_cells(store, found[0], found[1], SPEC, NOW_MS)
        assert visible_cells(store, found[0], found[1], SPEC, NOW_MS) == cells
        if cells:
            rows.append((found[0], cells))
    return rows


@settings(max_examples=200)
@given(CELLS, st.integers(1, 5), st.integers(1, 9), st.integers(1, 300))
def test_steps_of_any_size_give_every_row_once(cells: Any, max_rows: int, max_cells: int, max_bytes: int) -> None:
    store = store_of(cells)
    found = FoundRows()
    place: bytes | None = b""
    walked = read = 0
    while place is not None:
        before, row_cells = len(found), 0
        step = PlainStep(store, VIEW, SPEC, NOW_MS, found, (before + max_rows, max_cells, max_bytes))
        step.take(store.scan(SPACE, place, None))
        rows = list(found)
        assert found.size_bytes == sum(size_of(row) for row in rows)
        assert len(found) == len(rows) <= before + max_rows
        assert sum(map(size_of, rows[before:-1])) < max_bytes, "but for the last row"
        row_cells = max((sum(row == name for name, _ in cells) for row, _ in cells), default=0)
        assert step.cells_walked < max_cells + row_cells or step.last_row is None
        walked, read = walked + step.cells_walked, read + step.rows_read
        place = None if step.last_row is None else row_end(step.last_row)
    assert list(found) == the_long_way(store)
    assert (walked, read) == (len(cells), len({row for row, _ in cells}))


def test_large_rows_are_packed_block_by_block_to_the_same_reply() -> None:
    """Blocks end at rows; a delete marker and a cell with its own time to live stand in rows of their own."""
    value = b"v" * (BLOCK_BYTES // 3)
    cells = {(b"%02d" % row, b"%d" % cell): pack_cell(5, 0, value) for row in range(12) for cell in range(row % 3 + 1)}
    cells[b"04", b"0"] = pack_marker(900, 0, 1)
    cells[b"07", b"1"] = pack_cell(5, 0, value, 10_000)
    store = store_of(cells)
    reply = ServiceCodec(idl.SERVICE).methods["scannerGetList"].reply
    for max_rows in (3, 5, 12, 99):
        found, packed = FoundRows(), FoundRows(map_rows)
        for each in (found, packed):
            PlainStep(store, VIEW, SPEC, NOW_MS, each, (max_rows, 1_000, 1 << 30)).take(store.scan(SPACE, b"", None))
        assert (found.count, found.size_bytes) == (packed.count, packed.size_bytes)
        assert found.count == min(max_rows, 12)
        assert reply(Protocol.BINARY, 1, RowList(packed.blocks)) == reply(Protocol.BINARY, 1, RowList(found.blocks))
        assert reply(Protocol.BINARY, 1, RowList(list(found))) == reply(Protocol.BINARY, 1, RowList(found.blocks))
        assert sum(isinstance(one, PackedRows) for one in packed.blocks) >= min(max_rows, 12) // 3
        with pytest.raises(TypeError, match="are packed"):
            list(packed)


def test_stored_cells_are_a_list_to_whoever_wants_one() -> None:
    raw = pack_cell(5, 1, b"value")
    cells = StoredCells([(b"f:", [(b"a", raw), (b"b", raw)])], 2, 16)
    assert list(cells) == cells == [(b"f:a", b"value", 5), (b"f:b", b"value", 5)]
    assert len(cells) == 2
    assert cells != [(b"f:a", b"value", 5)]
    assert not StoredCells([], 0, 0)
    with pytest.raises(TypeError, match="unhashable"):
        hash(cells)
    assert size_of((b"row", cells)) == size_of((b"row", list(cells)))

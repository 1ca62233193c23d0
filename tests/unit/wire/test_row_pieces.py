"""A row packed in pieces is the row packed at once, in every form."""

from __future__ import annotations

from random import Random

import pytest

from columnar.storage.layout import pack_cell
from columnar.storage.stored_cells import VALUE_AT, StoredCells
from columnar.wire import codec_results
from columnar.wire.codec_results import Form, RowPieces
from tests.support.seeds import seed

FORMS = ["MAP", "SORTED", "COMPACT_MAP", "COMPACT_SORTED", "RESULT", "COMPACT_RESULT"]


def stored(cells: list[tuple[bytes, bytes, int]]) -> StoredCells:
    pairs = [(column.removeprefix(b"f:"), pack_cell(timestamp, 7, value)) for column, value, timestamp in cells]
    size = sum(len(name) + len(raw) - VALUE_AT + 2 for name, raw in pairs)
    return StoredCells([(b"f:", pairs)], len(pairs), size)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("number", range(6))
def test_pieces_are_the_whole(name: str, number: int) -> None:
    rng = Random(seed(31) + number)
    form: Form = getattr(codec_results, name)
    count = rng.choice([1, 3, 14, 15, 16, 127, 128, 400])
    cells = [(b"f:%06d" % n, b"v" * rng.choice([0, 1, 127, 128, 1_100]), rng.randint(0, 2**60)) for n in range(count)]
    row = b"r" * rng.choice([1, 127, 300])
    pieces, at = RowPieces(form), 0
    while at < count:
        piece = cells[at : at + rng.choice([1, 2, 14, 200])]
        pieces.add_columns(stored(piece) if rng.random() < 0.5 else piece)
        pieces.add_columns([])
        at += len(piece)
    packed = pieces.row(row)
    assert packed.data == form.pack(row, cells)
    assert (packed.row_count, packed.cell_count, packed.last_key) == (1, count, row)

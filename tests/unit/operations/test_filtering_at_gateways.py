"""A gateway's own filter over rows of other servers: in steps, whatever a row and the filter cost."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from columnar.model.filter_language import parse
from columnar.model.filters import apply
from columnar.operations import distributed_scans
from columnar.operations.distributed_scans import PIECE_CELLS, _Filtering
from columnar.operations.wide_reads import Filtered, _cell
from columnar.regions.read.row_reader import WireCell

CELLS: list[WireCell] = [(b"f:%05d" % number, b"v%d" % (number % 7), 1) for number in range(10 * PIECE_CELLS)]


class Gateway:
    """A scanner's filter, and how often its call let others run."""

    def __init__(self, text: bytes) -> None:
        self.filter = parse(text)
        self.turns = 0

    def filtering(self, row: bytes) -> Filtered:
        return Filtered(row, self.filter, 1)

    async def reserve_step(self) -> None:
        self.turns += 1


def filtered(gateway: Any, rows: list[list[WireCell]]) -> list[tuple[list[WireCell], bool]]:
    async def run() -> list[tuple[list[WireCell], bool]]:
        filtering = _Filtering(gateway, gateway.reserve_step)
        return [await filtering.row(b"row-%d" % number, cells) for number, cells in enumerate(rows)]

    return asyncio.run(run())


@pytest.mark.parametrize("wide", [True, False])
def test_others_run_between_pieces_of_a_row_and_between_rows(monkeypatch: pytest.MonkeyPatch, wide: bool) -> None:
    """A long filter over a row of a million cells kept a gateway for two minutes, and ended it."""
    seconds = count()
    monkeypatch.setattr(distributed_scans, "perf_counter", lambda: float(next(seconds)))  # each piece takes a second
    gateway = Gateway(b"ValueFilter(=, 'substring:v')")
    pieces = [CELLS[at : at + PIECE_CELLS] for at in range(0, len(CELLS), PIECE_CELLS)]
    found = filtered(gateway, [CELLS] if wide else pieces)
    assert [cell for cells, _ in found for cell in cells] == CELLS
    assert gateway.turns == len(pieces)


@pytest.mark.parametrize(
    "text",
    [
        b"ValueFilter(=, 'substring:v3')",
        b"FirstKeyOnlyFilter()",
        b"PageFilter(2)",
        b"ColumnPaginationFilter(5, 20)",
        b"SKIP ValueFilter(!=, 'binary:v3')",
        b"WHILE ValueFilter(!=, 'binary:v3')",
        b"RowFilter(=, 'binary:row-1') OR ColumnCountGetFilter(3)",
        b"SingleColumnValueFilter('f', '00150', =, 'binary:v3', true, true)",
    ],
)
def test_pieces_answer_as_the_whole_row_does(text: bytes) -> None:
    rows = [CELLS, [], CELLS[:40], CELLS[:3], []]
    whole, expected = parse(text), []
    for number, cells in enumerate(rows):
        answer = apply(whole, b"row-%d" % number, [_cell(*cell) for cell in cells], 1)
        expected.append(([(cell.column, cell.value, cell.timestamp) for cell in answer.cells], answer.done))
    assert filtered(Gateway(text), rows) == expected

"""What the growth measurement asks and writes: batches numbered on, splits, histories."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport.memory import TCyMemoryBuffer

from benchmarks.growth_filling import BATCH_ROWS, batches, splits_for
from benchmarks.growth_histories import deletes, history
from benchmarks.growth_report import GrowthPlan
from columnar.bench import dataset
from columnar.bench.calls import FRAME_HEAD, Exchange
from columnar.wire import idl
from gauge.rounds import zigzag_rounds


def arguments_of(exchanges: Iterator[Exchange], method: str) -> list[Any]:
    found = []
    for one in exchanges:
        assert int.from_bytes(one.frame[:FRAME_HEAD], "big") == len(one.frame) - FRAME_HEAD
        protocol = TCyBinaryProtocol(TCyMemoryBuffer(one.frame[FRAME_HEAD:]))
        assert protocol.read_message_begin()[0] == method
        arguments = getattr(idl.SERVICE, f"{method}_args")()
        protocol.read_struct(arguments)
        found.append(arguments)
    return found


@pytest.mark.parametrize("rows", [1, 7, BATCH_ROWS - 1, BATCH_ROWS, 2 * BATCH_ROWS + 3])
def test_batches_write_each_row_once_and_not_in_order(rows: int) -> None:
    calls = arguments_of(batches(b"t", rows), "mutateRows")
    assert {call.tableName for call in calls} == {b"t"}
    written = [batch for call in calls for batch in call.rowBatches]
    numbers = {dataset.row_key(number): number for number in range(rows)}
    order = [numbers[batch.row] for batch in written]
    assert sorted(order) == list(range(rows))
    if rows > 10:  # else their files lie side by side, and the engine never merges them
        assert all(abs(one - other) > rows // 4 for one, other in pairwise(order))
    assert {len(batch.mutations[0].value) for batch in written} == {dataset.SMALL_BYTES}
    assert sum(one.units for one in batches(b"t", rows)) == rows


def test_splits_part_the_rows_evenly() -> None:
    assert splits_for(1_000, 1) == []
    assert splits_for(1_000, 4) == [dataset.row_key(250), dataset.row_key(500), dataset.row_key(750)]
    assert len(set(splits_for(100_000, 100))) == 99


def test_a_history_overwrites_each_row_as_often_as_its_step_says() -> None:
    calls = arguments_of(history(b"t", plan(overwrites=10), 1_000), "mutateRowTs")
    times: dict[bytes, list[int]] = {}
    for call in calls:
        times.setdefault(call.row, []).append(call.timestamp)
    rows_of_10 = [stamps for row, stamps in times.items() if row.startswith(b"o-00000010-")]
    assert len(rows_of_10) == 4
    assert all(stamps == list(range(1_000, 1_010)) for stamps in rows_of_10)
    assert [stamps for row, stamps in times.items() if row.startswith(b"o-00000001-")] == [[1_000]] * 4
    cycle = [call.mutations[0].isDelete for call in calls if call.row == b"p-00000000"]
    assert cycle == [False, True] * 10 + [False]


def test_deleted_neighbours_are_those_that_were_written() -> None:
    written = {
        (call.row, mutation.column)
        for call in arguments_of(history(b"t", plan(overwrites=10), 1_000), "mutateRowTs")
        for mutation in call.mutations
        if mutation.column.startswith(b"s:other")
    }
    deleted = {
        (call.row, mutation.column)
        for call in arguments_of(deletes(b"t", 10, 1_000), "mutateRowTs")
        for mutation in call.mutations
        if mutation.isDelete and call.timestamp > 1_000
    }
    assert written == deleted
    assert len(written) == 20


def test_sizes_grow_by_powers_of_ten_to_the_largest() -> None:
    assert plan(rows=10_000_000).sizes == (10_000, 100_000, 1_000_000, 10_000_000)
    assert plan(rows=200_000).sizes == (10_000, 100_000, 200_000)
    assert plan(rows=10_000).sizes == (1_000, 10_000)


def test_no_more_regions_and_overwrites_than_were_asked_for() -> None:
    assert plan(regions=100).region_counts == (1, 10, 100)
    assert plan(regions=100).region_counts_of_puts == (1, 4, 16, 64)
    assert plan(regions=4).region_counts == (1,)
    assert plan(regions=4).region_counts_of_puts == (1, 4)
    assert plan(overwrites=10_000).histories == (1, 100, 10_000)
    assert plan(overwrites=100).histories == (1, 100)


def plan(rows: int = 10_000, regions: int = 1, overwrites: int = 10) -> GrowthPlan:
    return GrowthPlan(rows, regions, overwrites, 1.0, 4)


def test_turns_go_there_and_back() -> None:
    assert [place for _, place in zigzag_rounds(2, 4)] == [0, 1, 2, 3, 3, 2, 1, 0]

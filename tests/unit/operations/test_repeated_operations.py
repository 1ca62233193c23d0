"""One call that names a row or a cell again and again costs what it holds, and no more than its bounds."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable
from itertools import islice
from time import thread_time
from typing import Any

import pytest

from columnar.errors import ClientGone, RequestTooBig
from columnar.limits import APPENDED_BYTES, ROW_OPERATIONS
from columnar.model.mutation import Append, Delete, Increment, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.operations import row_plan, writes
from columnar.regions.hooks import LogPolicy
from columnar.regions.read.region_reads import get_column
from columnar.regions.write import row_columns
from columnar.regions.write.row_columns import WIDE_ROW
from columnar.thrift.extension import ExtensionMethods
from columnar.thrift2.rows import RowMethods2
from columnar.wire.codec_results import Result
from columnar.wire.detect import Protocol
from columnar.wire.idl import columnar, hbase
from columnar.wire.idl2 import hbase2
from columnar.wire.service import CallContext
from tests.support.region_house import House, counted_turns
from tests.support.service_calls import RowCalls, answer_of

TABLE = make_table("t", [Family("a"), Family("v", max_versions=3)])
LOGGED = make_table("t", [Family("a")], {"CHANGE_LOG": "60"})
CTX = CallContext(1, "test")
PIECE = b"x" * 50


def in_house(scene: Callable[[House], Any], table: Any = TABLE) -> None:
    async def main() -> None:
        house = House(table)
        try:
            await scene(house)
        finally:
            await house.close()

    asyncio.run(main())


async def append(house: House, count: int) -> Any:
    asked = hbase.TAppend(b"t", b"r%d" % count, [b"a:q"] * count, [PIECE] * count)
    return await answer_of(RowCalls(house).append(CTX, asked))


async def append2(house: House, count: int) -> Any:
    columns = [hbase2.TColumnValue(b"a", b"q", PIECE) for _ in range(count)]
    house.region(b"r")
    methods = RowMethods2(house.operations)
    found = await answer_of(methods.append(CTX, b"t", hbase2.TAppend(row=b"r%d" % count, columns=columns)))
    assert isinstance(found, Result)
    return [(value, stamp) for _, value, stamp in found.cells]


async def check_and_mutate(house: House, count: int) -> Any:
    some: Any = None
    methods = ExtensionMethods(house.operations, RowCalls(house).writes, some, some)
    step = [
        columnar.RowOperation(kind=3, column=b"a:q", value=PIECE),
        columnar.RowOperation(kind=2, column=b"a:n", amount=1),
    ]
    found = await answer_of(methods.columnarCheckAndMutate(CTX, b"t", b"r%d" % count, [], step * (count // 2), {}))
    return found.counters


@pytest.mark.parametrize(("call", "cells"), [(append, 1), (append2, 1), (check_and_mutate, None)])
def test_appends_to_one_cell_make_one_answer_and_linear_memory(call: Any, cells: int | None) -> None:
    peaks = {}

    async def scene(house: House) -> None:
        for count in (500, 1_000, 8_000):
            tracemalloc.start()
            try:
                found = await call(house, count)
                peaks[count] = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert len(found) == (cells or count // 2)
            appended = count if cells else count // 2
            ((value, _),) = get_column(house.region(), b"r%d" % count, b"a", b"q", house.read())
            assert value == PIECE * appended
            if cells:
                assert found[0][0] == value

    in_house(scene)
    assert peaks[8_000] <= 2.5 * 8 * peaks[1_000]


def test_a_logged_cell_has_one_entry_for_its_appends() -> None:
    async def scene(house: House) -> None:
        house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
        one = house.apply(b"r", Append(b"a", b"q", b"1"))
        await one.durable
        many = house.apply(b"r", *[Append(b"a", b"q", PIECE)] * 1_000, Put(b"a", b"p", b"between"))
        await many.durable
        ((_, record),) = list(islice(house.region().log.read_records(one.sequence), 5))[-1:]
        assert [(entry.qualifier, len(entry.value)) for entry in record.entries] == [(b"q", 50_001), (b"p", 7)]

    in_house(scene, LOGGED)


def test_cells_that_are_appended_to_have_a_bound_together() -> None:
    async def scene(house: House) -> None:
        names = [b"%d" % number for number in range(4)]
        await house.put(b"r", *[Put(b"a", name, b"x" * 9_000_000) for name in names])
        before = house.row(b"r")
        with pytest.raises(RequestTooBig, match=f"over {APPENDED_BYTES} bytes; nothing was stored"):
            house.apply(b"r", *[Append(b"a", name, b"y") for name in names])
        assert house.row(b"r") == before
        await house.put(b"r", *[Append(b"a", name, b"y") for name in names[:3]])

    in_house(scene)


def test_operations_between_appends_see_what_was_appended() -> None:
    async def scene(house: House) -> None:
        grown = [Append(b"v", b"q", b"ab"), Append(b"v", b"q", b"cd")]
        counted = [Increment(b"v", b"n", 3), Increment(b"v", b"n", 4)]
        applied = house.apply(b"r", *grown, Put(b"v", b"q", b"old", 5), *grown, *counted)
        assert [value[-1:] for _, value, _ in applied.results] == [b"\x03", b"\x07", b"d"]
        values = [value for value, _ in get_column(house.region(), b"r", b"v", b"q", house.read())]
        assert values == [b"abcdabcd"]
        house.apply(b"r", *grown, Delete(b"v", b"q"), *grown)
        assert house.row(b"r", b"v:q")[0][1] == b"abcd"
        house.apply(b"n", *[Append(b"v", b"q", b"\0\0\0\0")] * 2, Increment(b"v", b"q", 7), Append(b"v", b"q", b"!"))
        assert house.row(b"n")[0][1] == b"\0\0\0\0\0\0\0\x07!"

    in_house(scene)


def batches(rows: list[bytes], each: int = 1) -> list[Any]:
    mutations = [[hbase.Mutation(column=b"a:q", value=b"%d" % number)] * each for number in range(len(rows))]
    return [hbase.BatchMutation(row, some) for row, some in zip(rows, mutations, strict=True)]


def test_a_row_that_is_named_again_and_again_is_linear() -> None:
    """In time of the processor, the least of some tries: the collector walks the heap of every test before this one."""

    async def cost_of(methods: RowCalls, count: int) -> float:
        gc.collect()
        gc.disable()
        try:
            begun = thread_time()
            await answer_of(methods.mutateRows(CTX, b"t", batches([b"r"] * count), {}))
            return thread_time() - begun
        finally:
            gc.enable()

    async def scene(house: House) -> None:
        methods = RowCalls(house)
        few = min([await cost_of(methods, 4_000) for _ in range(3)])
        many = min([await cost_of(methods, 16_000) for _ in range(3)])
        assert house.row(b"r")[0][1] == b"15999"
        assert many <= 2.5 * 4 * few

    in_house(scene)


def test_a_large_call_is_planned_and_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "STEP_S", 0.0)
    monkeypatch.setattr(row_plan, "STEP_S", 0.0)

    async def scene(house: House) -> None:
        methods = RowCalls(house)
        names = [b"%04d" % number for number in range(400)]
        with counted_turns() as turns:
            await answer_of(methods.mutateRows(CTX, b"t", batches([*names, *names]), {}))
        assert turns[0] >= 2 * len(names) // row_plan.CLOCK_CHECK_ELEMENTS
        assert [house.row(name)[0][1] for name in names] == [b"%d" % (n + 400) for n in range(400)]

    in_house(scene)


def test_steps_end_with_their_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "STEP_S", 0.0)
    monkeypatch.setattr(row_plan, "STEP_S", 0.0)
    monkeypatch.setattr(row_plan, "BATCH_BYTES", 1_000)

    async def scene(house: House) -> None:
        left = [60]

        def has_gone() -> bool:
            left[0] -= 1
            return left[0] < 0

        names = [b"%04d" % number for number in range(400)]
        gone = CallContext(2, "gone", Protocol.BINARY, has_gone)
        with pytest.raises(ClientGone):
            await answer_of(RowCalls(house).mutateRows(gone, b"t", batches(names), {}))
        written = [name for name in names if house.row(name)]
        assert 0 < len(written) < 400
        assert written == names[: len(written)]

    in_house(scene)


def test_one_row_has_a_bound_of_operations_and_a_row_named_often_is_several_steps() -> None:
    async def scene(house: House) -> None:
        methods = RowCalls(house)
        (over,) = batches([b"r"], ROW_OPERATIONS + 1)
        said = f"{ROW_OPERATIONS + 1} operations on row r as one step, at most {ROW_OPERATIONS}"
        for call in (
            lambda: methods.mutateRows(CTX, b"t", [*batches([b"good"]), over], {}),
            lambda: methods.mutateRow(CTX, b"t", b"r", over.mutations, {}),
            lambda: methods.append(CTX, hbase.TAppend(b"t", b"r", *[[b"a:q"] * len(over.mutations)] * 2)),
        ):
            with pytest.raises(RequestTooBig, match=said):
                await answer_of(call())
        assert house.row(b"r") == house.row(b"good") == []
        half = batches([b"r"], ROW_OPERATIONS // 2 + 1)
        await answer_of(methods.mutateRows(CTX, b"t", [*half, *batches([b"r"]), *half], {}))
        assert house.row(b"r")[0][1] == b"0"

    in_house(scene)


@pytest.mark.parametrize("family", [b"a", b"v"])
def test_a_wide_row_is_deleted_by_one_range(family: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_columns, "ROW_OPERATIONS", WIDE_ROW + 100)

    async def scene(house: House) -> None:
        names = [b"%05d" % number for number in range(WIDE_ROW + 500)]
        for row in (b"q", b"r", b"s"):
            for value in (b"1", b"2"):
                await house.put(row, *[Put(family, name, value) for name in names])
                house.clock.now_ms += 1
        house.clock.now_ms += 1
        batch, deletion = house.region().store.batch(), (Delete(family, None), Put(family, b"new", b"3"))
        step = house.region().drafting.draft_row(batch, RowMutation(b"r", deletion), house.clock(), None)
        assert step.failed_condition is None
        assert len(batch.operations) <= 3
        await house.put(b"r", Delete(family, None), Put(family, b"new", b"3"))
        assert [cell[:2] for cell in house.row(b"r")] == [(family + b":new", b"3")]
        assert len(house.row(b"q")) == len(house.row(b"s")) == len(names)
        assert get_column(house.region(), b"r", family, names[0], house.read()) == []
        with pytest.raises(RequestTooBig, match="too many to delete in one step; nothing was deleted"):
            house.apply(b"q", Delete(family, None, 5))  # older than some: each must be looked at
        assert len(house.row(b"q")) == len(names)

    in_house(scene)

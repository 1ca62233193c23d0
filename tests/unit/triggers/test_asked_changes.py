"""What a registration with columns, conditions, images and looks is delivered, and what passes without a call."""

from __future__ import annotations

import asyncio
from typing import Any

from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.triggers.api import Change
from columnar.triggers.slices import change_from
from tests.support.fake_links import runs
from tests.support.openings import region_at_once
from tests.unit.triggers.test_dispatcher import Bench, on_bench


def put(column: bytes, value: bytes) -> Put:
    return Put(b"f", column, value)


async def add(bench: Bench, **settings: Any) -> None:
    await bench.add("t", images=True, row=False, **settings)


async def delivered(bench: Bench) -> list[Change]:
    """All until the trigger is at rest, each answered."""
    found: list[Change] = []
    waiting = asyncio.ensure_future(bench.keeper.wait_delivered("", "", 10.0))
    while not waiting.done():
        for call in runs(*bench.main.sent):
            found.append(change_from(list(call[4][0])))
        bench.main.sent, sent = [], bench.main.sent
        for call in runs(*sent):
            bench.main.answer(call[0])
        await asyncio.sleep(0)
    assert waiting.result()
    return found


async def written(bench: Bench, *rows: tuple[bytes, tuple[Operation, ...]]) -> list[Change]:
    for row, operations in rows:
        await bench.apply(row, *operations)
    return await delivered(bench)


@on_bench()
async def test_images_are_of_the_named_columns_before_and_after(bench: Bench) -> None:
    await bench.apply(b"r", put(b"a", b"1"), put(b"b", b"1"), put(b"c", b"1"))
    await add(bench, columns=("f:a", "f:b"), before=True)
    first, second, third = await written(
        bench, (b"r", (put(b"a", b"2"),)), (b"r", (Delete(b"f", b"b"), put(b"c", b"3"))), (b"r", (Delete(b"f", None),))
    )
    assert (first.before, first.after) == ({b"f:a": b"1", b"f:b": b"1"}, {b"f:a": b"2", b"f:b": b"1"})
    assert (second.before, second.after) == ({b"f:a": b"2", b"f:b": b"1"}, {b"f:a": b"2"})
    assert [step.column for step in second.changes] == [b"f:b"], "steps of named columns alone"
    assert (third.before, third.after) == ({b"f:a": b"2"}, {})
    assert not any(change.is_backfill for change in (first, second, third))


@on_bench()
async def test_changes_of_other_columns_and_of_rows_that_do_not_match_make_no_call(bench: Bench) -> None:
    await add(bench, columns=("f:a",), where=("f:state=ready", "number(f:n)>=2"))
    ready = (put(b"state", b"ready"), put(b"n", b"2"))
    changes = await written(
        bench,
        (b"other column", ready),
        (b"not ready", (put(b"a", b"1"), put(b"n", b"3"))),
        (b"too few", (put(b"a", b"1"), put(b"state", b"ready"), put(b"n", b"1"))),
        (b"match", (put(b"a", b"1"), *ready)),
        (b"match", (put(b"n", b"9"),)),
        (b"match", (Delete(b"f", b"a"),)),
        (b"match", (Delete(b"f", None),)),
    )
    assert [(change.row, change.after.get(b"f:a")) for change in changes] == [(b"match", b"1"), (b"match", None)]
    assert changes[0].after == {b"f:a": b"1", b"f:state": b"ready", b"f:n": b"2"}
    assert bench.keeper.trigger_statuses()[0].lag_changes == 0


@on_bench()
async def test_rows_that_a_trigger_begins_with_come_as_they_are(bench: Bench) -> None:
    await bench.apply(b"a", put(b"a", b"1"), put(b"state", b"ready"))
    await bench.apply(b"b", put(b"a", b"1"))
    await add(bench, columns=("f:a",), where=("f:state=ready",), from_where="beginning", before=True)
    (change,) = await delivered(bench)
    assert (change.row, change.is_backfill) == (b"a", True)
    assert (change.before, change.after) == ({}, {b"f:a": b"1", b"f:state": b"ready"})
    assert change.came("f:a") == (b"1",)


@on_bench()
async def test_a_looked_up_row_comes_along(bench: Bench) -> None:
    durable = (
        region_at_once(bench.server, bench.out, b"ann")
        .apply(RowMutation(b"ann", (put(b"1", b"x"), put(b"2", b"y"))))
        .durable
    )
    assert durable is not None
    await durable
    await add(bench, look=(("fans", "out", "row.split('/', 0)"), ("friend", "out", "f:friend")))
    changes = await written(bench, (b"ann/7", (put(b"a", b"1"),)), (b"bob/8", (put(b"friend", b"ann"),)))
    fans = changes[0].look("fans")
    assert (fans.table, fans.row, list(fans)) == (b"out", b"ann", [b"f:1", b"f:2"])
    assert (list(changes[0].look("friend")), changes[0].look("friend").row) == ([], b"")
    assert dict(changes[1].look("friend").items()) == {b"f:1": b"x", b"f:2": b"y"}
    assert list(changes[1].look("fans")) == []


@on_bench()
async def test_a_registration_without_images_is_delivered_as_ever(bench: Bench) -> None:
    await bench.add("t", before=True)
    first, second = await written(bench, (b"r", (put(b"a", b"1"),)), (b"r", (put(b"b", b"2"),)))
    assert (first.before, second.before) == ({}, {}), "of touched cells alone"
    assert second.now == {b"f:a": b"1", b"f:b": b"2"}

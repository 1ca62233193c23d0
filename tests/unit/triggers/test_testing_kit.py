"""The kit for authors: good functions converge, each classic mistake is found, with a short history."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from columnar.client import Connection
from columnar.errors import IllegalArgument
from columnar.triggers.api import Barrier, Change, Checkpoint, Contribute, Delete, Effect, Later, Put, Tally, on
from columnar.triggers.model_history import Event, random_history, shrunk
from columnar.triggers.model_tables import ModelClient, ModelTables, Write
from columnar.triggers.testing import assert_converges, effects_of

TAGS = {"pages": {"m:tags": [b"x", b"x,y", b"y,z", b""], "m:state": [b"ready", b"draft"]}}
SEEDS = 120


# --- good --------------------------------------------------------------------------------------------


@on("pages", columns=["m:tags"], before=True)
def tags(change: Change) -> Iterator[Effect]:
    for tag in change.gone("m:tags", split=","):
        yield Delete("tags", tag, [b"p:" + change.row])
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:" + change.row: b""})


@on("pages", columns=["m:tags"], before=True)
def tags_by_client(change: Change, client: Connection) -> None:
    table = client.table(b"tags")
    for tag in change.gone("m:tags", split=","):
        table.delete(tag, [b"p:" + change.row], timestamp=change.stamp)
    for tag in change.came("m:tags", split=","):
        table.put(tag, {b"p:" + change.row: b""}, timestamp=change.stamp)


@on("pages", columns=["m:tags"], before=True)
def in_steps(change: Change) -> Iterator[Effect]:
    """A fan-out of which the part before a checkpoint is not run again."""
    gone, came = change.gone("m:tags", split=","), change.came("m:tags", split=",")
    every = [*(Delete("tags", tag, [b"p:" + change.row]) for tag in gone)]
    every_put = [*(Put("tags", tag, {b"p:" + change.row: b""}) for tag in came)]
    steps: list[Effect] = [*every, *every_put]
    for number in range(int(change.progress or b"0"), len(steps)):
        yield steps[number]
        yield Checkpoint(b"%d" % (number + 1))


@on("pages", columns=["m:state"], before=True, look={"site": ("sites", "row")})
def copied(change: Change) -> Iterator[Effect]:
    if change.attempt == 1 and change.after.get(b"m:state") == b"draft":
        raise Later(1)
    if b"m:state" in change.after:
        yield Put("states", change.row, {b"s:of": change.look("site").get(b"n:name", b"none")})
    else:
        yield Delete("states", change.row)


@on("pages", batch=10, columns=["m:state"], before=True)
def in_batches(changes: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    for change in changes:
        for state in change.gone("m:state"):
            yield change, Delete("states", state, [b"p:" + change.row])
        for state in change.came("m:state"):
            yield change, Put("states", state, {b"p:" + change.row: b""})


@on("pages", columns=["m:state"], before=True)
def gives(change: Change) -> Iterator[Effect]:
    for state in change.gone("m:state"):
        yield Contribute("counts", state, None)
    if b"m:state" in change.after:
        yield Contribute("counts", change.after[b"m:state"], {b"n:pages": 1})


@pytest.mark.parametrize("function", [tags, tags_by_client, in_steps, copied, in_batches, gives])
def test_good_functions_converge(function: Callable[..., Any]) -> None:
    assert_converges(function, {**TAGS, "sites": {b"a": {b"n:name": b"A"}}}, SEEDS)


def tallies(change: Change) -> Iterator[Effect]:
    """Counts changes, in four steps; a backfill is none."""
    if change.is_backfill:
        return
    if not change.progress:
        yield Tally("counts", b"all", {b"n:changes": 1})
        yield Put("seen", change.row, {b"s:it": b""})
        yield Tally("counts", b"all", {b"n:changes": 1})
        yield Checkpoint(b"half")
    yield Tally("counts", b"all", {b"n:changes": 1})
    yield Barrier()
    yield Put("seen", change.row, {b"s:all": b""})
    yield Tally("counts", b"all", {b"n:changes": 1})


def test_tallies_converge_to_the_count_of_changes() -> None:
    assert_converges(on("pages", columns=["m:state"])(tallies), TAGS, SEEDS)


# --- classic mistakes ----------------------------------------------------------------------------------


@on("pages", columns=["m:tags"], before=True)
def unnamed_source(change: Change) -> Iterator[Effect]:
    """Two rows of one tag write the same cell, and the one that leaves takes it along."""
    for tag in change.gone("m:tags", split=","):
        yield Delete("tags", tag, [b"p:there"])
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:there": b""})


@on("pages", columns=["m:state"])
def unnamed_last_writer(change: Change) -> Iterator[Effect]:
    yield Put("states", b"last", {b"s:of": change.row})


@on("pages", columns=["m:tags"], before=True)
def nothing_removed(change: Change) -> Iterator[Effect]:
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:" + change.row: b""})


@on("pages", columns=["m:tags"], before=True)
def stamped_by_the_clock(change: Change, client: Connection) -> None:
    for tag in change.gone("m:tags", split=","):
        client.table(b"tags").delete(tag, [b"p:" + change.row])
    for tag in change.came("m:tags", split=","):
        client.table(b"tags").put(tag, {b"p:" + change.row: b""})


@on("pages", columns=["m:tags"], before=True)
def stamped_by_the_client(change: Change, client: Connection) -> None:
    for tag in change.gone("m:tags", split=","):
        client.table(b"tags").delete(tag, [b"p:" + change.row], timestamp=change.client_timestamp)
    for tag in change.came("m:tags", split=","):
        client.table(b"tags").put(tag, {b"p:" + change.row: b""}, timestamp=change.client_timestamp)


@on("pages", columns=["m:state"])
def counted(change: Change, client: Connection) -> None:
    if b"m:state" in change.after:
        client.table(b"counts").counter_inc(change.after[b"m:state"], b"n:pages")


@on("pages", columns=["m:tags"], where=["m:state=ready"], before=True)
def left_behind(change: Change) -> Iterator[Effect]:
    """A row that is ready no more makes no call, and its tags stay."""
    for tag in change.gone("m:tags", split=","):
        yield Delete("tags", tag, [b"p:" + change.row])
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:" + change.row: b""})


@on("pages", columns=["m:tags"], before=True)
def from_the_steps(change: Change) -> Iterator[Effect]:
    """A put that an older timestamp hides is a step, and changes nothing of the row."""
    for step in change.changes:
        if step.kind == "put":
            for tag in change.before.get(b"m:tags", b"").split(b","):
                if tag:
                    yield Delete("tags", tag, [b"p:" + change.row])
            for tag in step.value.split(b","):
                if tag:
                    yield Put("tags", tag, {b"p:" + change.row: b""})
        else:
            for tag in change.before.get(b"m:tags", b"").split(b","):
                if tag:
                    yield Delete("tags", tag, [b"p:" + change.row])


@on("pages", columns=["m:tags"])
def raises(change: Change) -> Iterator[Effect]:
    yield Put("tags", change.after[b"m:tags"] or b"none", {b"p:" + change.row: b""})


@pytest.mark.parametrize(
    ("function", "says", "most"),
    [
        (unnamed_source, "is left over|is missing", 4),
        (unnamed_last_writer, "is left over|is another", 3),
        (nothing_removed, "left over: Delete what change.gone", 2),
        (stamped_by_the_clock, "is left over|is missing", 6),
        (stamped_by_the_client, "is left over|is missing", 4),
        (counted, "add to no counter|is left over", 3),
        (left_behind, "is left over|is missing", 4),
        (from_the_steps, "is left over|is missing", 3),
        (raises, "raises KeyError: b'm:tags'", 2),
    ],
)
def test_classic_mistakes_are_found_and_shown_in_few_events(function: Callable[..., Any], says: str, most: int) -> None:
    with pytest.raises(AssertionError, match=says) as caught:
        assert_converges(function, TAGS)
    events = [line for line in str(caught.value).splitlines() if line.lstrip()[:1].isdigit()]
    assert 0 < len(events) <= most, str(caught.value)


@pytest.mark.parametrize("seeds", [1, 20, 200])
def test_a_write_through_the_client_without_the_stamp_is_found_however_few_histories(seeds: int) -> None:
    with pytest.raises(AssertionError, match="does not converge"):
        assert_converges(stamped_by_the_clock, {"pages": {"m:tags": [b"a", b"a,b", b"b,c"]}}, seeds=seeds)


@on("pages", columns=["m:tags"])
def in_a_batch(change: Change, client: Any) -> None:
    with client.table("copies").batch(timestamp=change.timestamp) as batch:
        if b"m:tags" in change.after:
            batch.put(change.row, {b"c:tags": change.after[b"m:tags"]})
        else:
            batch.delete(change.row, [b"c:tags"])


@on("pages", columns=["m:tags"])
def in_a_batch_without_the_stamp(change: Change, client: Any) -> None:
    with client.table("copies").batch(batch_size=1) as batch:
        if b"m:tags" in change.after:
            batch.put(change.row, {b"c:tags": change.after[b"m:tags"]})
        else:
            batch.delete(change.row, [b"c:tags"])


def test_batches_of_a_client_are_written_as_its_other_calls() -> None:
    source = {"pages": {"m:tags": [b"a", b"a,b", b"b,c"]}}
    assert_converges(in_a_batch, source, SEEDS)
    with pytest.raises(AssertionError, match="of copies through client without timestamp"):
        assert_converges(in_a_batch_without_the_stamp, source, SEEDS)


def test_a_batch_that_fails_is_written_unless_it_is_a_transaction() -> None:
    tables = ModelTables(lambda: 5)
    table = ModelClient(tables, tables.apply, lambda: None).table("t")
    for name, is_transaction in ((b"a", False), (b"b", True)):
        with suppress(KeyError), table.batch(transaction=is_transaction) as batch:
            batch.put(name, {b"c:x": b"1"})
            raise KeyError
    assert tables.table_contents() == {b"t": {b"a": {b"c:x": b"1"}}}
    with pytest.raises(TypeError, match="batch_size"):
        table.batch(batch_size=0)


def test_a_batch_of_a_size_is_written_whenever_it_has_as_many_mutations() -> None:
    tables = ModelTables(lambda: 5)
    batch = ModelClient(tables, tables.apply, lambda: None).table("t").batch(batch_size=2)
    seen = []
    for row in (b"a", b"b", b"c"):
        batch.put(row, {b"c:x": b"1"})
        seen.append(sorted(tables.table_contents().get(b"t", {})))
    assert seen == [[], [b"a", b"b"], [b"a", b"b"]]


@on("pages", columns=["m:tags"], before=True, batch=10)
def last_of_each_row(changes: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    for change in {one.row: one for one in changes}.values():
        for effect in tags(change):
            yield change, effect


@on("pages", columns=["m:tags"], before=True, batch=10)
def stamped_as_the_first(changes: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    for change in changes:
        for effect in tags(change):
            yield changes[0], effect


@pytest.mark.parametrize("function", [last_of_each_row, stamped_as_the_first])
def test_batches_of_several_changes_are_tried(function: Callable[..., Any]) -> None:
    """With batches of one change both do what is right."""
    with pytest.raises(AssertionError, match=r"is left over|is missing"):
        assert_converges(function, {"pages": {"m:tags": [b"a", b"a,b", b"b,c"]}})


def test_a_failure_reads_as_a_story() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_converges(nothing_removed, {"pages": {"m:tags": [b"x", b"y"]}}, rows=[b"a"])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("pages-nothing_removed does not converge (seed ")
    assert lines[1].startswith("  1. put a: m:tags=")
    assert lines[-3].startswith("  and the rest")
    assert lines[-2].endswith("; its rows give is not there")


# --- effects without a store ---------------------------------------------------------------------------


def test_effects_of_one_change() -> None:
    found = effects_of(tags, row=b"p", before={b"m:tags": b"x,y"}, after={b"m:tags": b"y,z", b"m:other": b"1"})
    assert found == [Delete("tags", b"x", [b"p:p"]), Put("tags", b"z", {b"p:p": b""})]
    assert effects_of(left_behind, after={b"m:tags": b"x", b"m:state": b"draft"}) == [], "its condition does not hold"
    assert effects_of(copied, after={b"m:state": b"ready"}, looked={"site": {b"n:name": b"A"}}) == [
        Put("states", b"row", {b"s:of": b"A"})
    ]
    assert effects_of(in_steps, after={b"m:tags": b"x"}, before={}, progress=b"1") == []
    assert effects_of(in_batches, after={b"m:state": b"x"}) == [Put("states", b"x", {b"p:row": b""})]
    with pytest.raises(LookupError, match="before=True"):
        effects_of(raises_without_before, after={})


@on("pages", columns=["m:tags"])
def raises_without_before(change: Change) -> Iterator[Effect]:
    for tag in change.gone("m:tags"):
        yield Delete("tags", tag)


def test_what_cannot_be_tried_is_told() -> None:
    def bare(change: Change) -> None: ...

    with pytest.raises(TypeError, match="write @on"):
        assert_converges(bare, TAGS)


# --- its parts -----------------------------------------------------------------------------------------


def test_the_shortest_history_is_found_whatever_surrounds_it() -> None:
    rng = random.Random(5)
    long = random_history(rng, {b"m:t": [b"1"]}, [b"a", b"b"])
    needle = (Event("put", b"z", ((b"m:t", b"1"), (b"m:u", b"2")), shift_ms=5), Event("deliver", b"z", cut=3))

    def fails(history: Sequence[Event]) -> bool:
        kinds = [event.kind for event in history if event.row == b"z"]
        return kinds == ["put", "deliver"]

    found = shrunk((*long, needle[0], *long, needle[1], *long), fails)
    assert found == (Event("put", b"z", ((b"m:t", b"1"),)), Event("deliver", b"z"))


def test_model_tables_keep_what_the_store_would() -> None:
    tables = ModelTables(lambda: 50)
    for write in (
        Write(b"t", b"r", 10, cells={b"f:a": b"1", b"g:b": b"1"}),
        Write(b"t", b"r", 20, columns=[b"f:a"]),
        Write(b"t", b"r", 15, cells={b"f:a": b"late"}),
        Write(b"t", b"r", 20, cells={b"f:c": b"same time"}),
        Write(b"t", b"r", 20, columns=[b"f"]),
        Write(b"t", b"r", 20, cells={b"f:d": b"after it"}),
        Write(b"t", b"r", None, amounts={b"n:n": 3}),
        Write(b"t", b"r", None, amounts={b"n:n": -1}),
    ):
        tables.apply(write)
    assert tables.table_contents() == {
        b"t": {b"r": {b"f:d": b"after it", b"g:b": b"1", b"n:n": (2).to_bytes(8, "big")}}
    }
    tables.apply(Write(b"t", b"r", 60))
    tables.apply(Write(b"t", b"r", 59, cells={b"f:a": b"late"}))
    assert tables.table_contents() == {}


def test_two_hundred_histories_take_little_time() -> None:
    begun = time.process_time()
    assert_converges(tags, TAGS, seeds=200)
    assert time.process_time() - begun < 10, "authors run it with each change"


# --- as the store ------------------------------------------------------------------------------------


def state_of(change: Change, table: str) -> Effect:
    if b"m:state" in change.after:
        return Put(table, change.row, {b"s:of": change.after[b"m:state"]})
    return Delete(table, change.row)


@on("pages", batch=10, columns=["m:state"])
def in_batches_with_barriers(changes: Sequence[Change]) -> Iterator[Any]:
    for change in changes:
        yield change, state_of(change, "states")
        yield Barrier()
        yield change, state_of(change, "seen")


@on("pages", batch=10, columns=["m:state"])
def in_batches_as_a_tuple(changes: Sequence[Change]) -> Any:
    return tuple((change, state_of(change, "states")) for change in changes)


@pytest.mark.parametrize("function", [in_batches_with_barriers, in_batches_as_a_tuple])
def test_the_kit_takes_what_a_worker_takes(function: Callable[..., Any]) -> None:
    assert len(effects_of(function, after={b"m:state": b"x"})) == (3 if function is in_batches_with_barriers else 1)
    assert_converges(function, TAGS, SEEDS)


PUT = Put("out", b"r", {b"f:a": b"1"})


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ([5], "int"), (5, "int"), (True, "bool"), ("text", "str"), (b"bytes", "bytes"), ({b"a": PUT}, "dict"),
        ([("change", PUT)], "tuple"), ([(PUT for _ in range(3))], "generator"), ([None], "NoneType"),
        (object(), "object"),
        ([PUT, "text"], "str"),
    ],
)  # fmt: skip
def test_what_a_function_returns_that_is_no_effect_is_an_error_with_its_type(found: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"effects.* of type {kind}$"):
        effects_of(lambda _change: found)


@pytest.mark.parametrize(
    ("found", "effects"),
    [(None, []), ([], []), (PUT, [PUT]), ((PUT,), [PUT]), ({1: PUT}.values(), [PUT]), (iter([PUT]), [PUT])],
)
def test_any_iterable_of_effects_is_taken(found: Any, effects: list[Effect]) -> None:
    assert effects_of(lambda _change: found) == effects


def of_no_column(_change: Change) -> Iterator[Effect]:
    yield Put("states", b"a", {b"no column": b""})


def of_a_long_row(change: Change) -> Iterator[Effect]:
    yield Delete("states", change.row * 10_000)


def of_totals_among_members(_change: Change) -> Iterator[Effect]:
    yield Contribute("counts", b"a", {b"m:pages": 1})


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (of_no_column, "which is no column"),
        (of_a_long_row, "row key has"),
        (of_totals_among_members, "stand in families of their own"),
    ],
)
def test_the_kit_refuses_what_the_store_does_not_write(function: Callable[..., Any], says: str) -> None:
    with pytest.raises(IllegalArgument, match=says):
        effects_of(function, row=b"page")
    with pytest.raises(AssertionError, match=says):
        assert_converges(on("pages", columns=["m:state"])(function), TAGS, 5, rows=(b"page",))


@on("pages", batch=10, columns=["m:state"])
def of_a_change_of_its_own(changes: Sequence[Change]) -> Iterator[Any]:
    yield replace(changes[0]), Put("states", b"a", {b"s:of": b""})


@on("pages", batch=10, columns=["m:state"])
def with_a_checkpoint(changes: Sequence[Change]) -> Iterator[Any]:
    yield changes[0], Checkpoint(b"1")


@pytest.mark.parametrize("function", [of_a_change_of_its_own, with_a_checkpoint])
def test_the_kit_refuses_what_a_worker_does_not_take(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="batch"):
        effects_of(function)


def test_the_row_as_it_is_comes_where_it_is_asked_for() -> None:
    def copies(change: Change) -> Iterator[Effect]:
        yield Put("states", change.row, dict(change.now))

    now = {b"m:state": b"x"}
    assert effects_of(copies, now=now) == [Put("states", b"row", now)]
    with pytest.raises(LookupError, match="row=True"):
        effects_of(on("pages", columns=["m:state"])(copies), now=now)

    @on("pages", columns=["m:state"], row=True)
    def copies_too(change: Change) -> Iterator[Effect]:
        return copies(change)

    assert effects_of(copies_too, now=now) == [Put("states", b"row", now)]

"""Dead letters: they keep their change, which is retried as the row is now or as it was, skipped, or removed."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData, TriggerError
from columnar.model.mutation import Put, RowMutation
from columnar.model.system_tables import DEAD_LETTERS_TABLE
from columnar.operations import system_tables
from columnar.regions.log.change_record import ChangeRecord
from columnar.triggers import dead_letter_store, dead_letters
from columnar.triggers.api import Change
from columnar.triggers.dead_letters import INFO, DeadLetter
from columnar.triggers.slices import change_from
from tests.support.fake_links import runs
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did, out, put, stamp_of


async def die(bench: Bench, row: bytes) -> int:
    """One change of the row becomes a dead letter; its stamp."""
    await bench.put(row)
    stamp = stamp_of(bench, row)
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "failed", error="Error: no")
    await bench.settle()
    return stamp


@on_bench()
async def test_a_letter_keeps_the_whole_change(bench: Bench) -> None:
    await bench.add("t", attempts=1, before=True)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id)
    stamp = await die(bench, b"a")
    (listed,) = await bench.keeper.dead_letters("t", 10)
    assert listed.change is None, "lists do not read them"
    (letter,) = await bench.keeper.dead_letter_store.letters_with_changes("t", b"a", 10)
    assert letter.change is not None
    assert letter.change.stamp == stamp
    assert [(one.qualifier, one.value) for one in letter.change.entries] == [(b"a", b"1")]
    assert [one.value for one in letter.change.before] == [b"1"]
    assert await bench.keeper.dead_letter_store.letters_with_changes("t", b"other", 10) == []


@on_bench()
async def test_a_retry_as_it_was_has_its_own_change_and_stamp_under_a_new_sequence(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    stamp = await die(bench, b"a")
    (letter,) = await bench.keeper.dead_letters("t", 10)
    await bench.put(b"a")  # a later change of the row
    newer = stamp_of(bench, b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "done", put(b"x", b"newer"))
    await bench.settle()
    assert await bench.keeper.retry("t", b"a", as_it_was=True) == 1
    await bench.main.until(lambda: runs(*bench.main.sent))
    ((call_id, _, _, change, *_),) = [(call[0], call[1], call[2], call[4][0]) for call in runs(*bench.main.sent)]
    bench.main.sent.clear()
    assert change[2] == stamp, "so its effects lose against those of later changes"
    assert change[3] != letter.sequence
    assert [step[1] for step in change[4]] == [b"f:a"]
    assert (change[8], change[13]) == (False, True), "no backfill, a repeat"
    did(bench, call_id, "done", put(b"x", b"older"))
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert out(bench, b"x") == {b"f:a": (b"newer", newer)}
    assert await bench.keeper.dead_letters("t", 10) == []


@on_bench(attributes={"CHANGE_LOG": "3600"})
async def test_stamps_rise_after_a_change_that_was_logged_again(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await die(bench, b"a")
    await bench.put(*[b"a"] * 1)
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id)
    highest = stamp_of(bench, b"a")
    await bench.keeper.retry("t", b"a", as_it_was=True)
    await bench.restart()
    stamps = bench.region(b"a").logging.stamps
    batch = bench.region(b"a").store.batch()
    assert stamps.give(batch, b"a", 0) > highest, "the last record of the log has an old stamp, and a clock goes back"


@on_bench()
async def test_letters_are_skipped_and_purged_undelivered(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    for row in (b"a", b"b", b"c"):
        await die(bench, row)
    assert await bench.keeper.dead_letter_store.skip("t", b"b") == 1
    assert [letter.row for letter in await bench.keeper.dead_letters("t", 10)] == [b"a", b"c"]
    assert bench.keeper.dead_letter_store.count_of("t") == 2
    assert await bench.keeper.dead_letter_store.skip("t", b"") == 2
    assert bench.keeper.dead_letter_store.count_of("t") == 0
    assert bench.main.take() == []


@on_bench()
async def test_a_letter_of_an_earlier_version_is_retried_as_its_row_is_now(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    old = dead_letters.writing(DeadLetter("t", "t", b"old", "5-1-1", 3, "Error: why", "", 1))
    await bench.keeper.system.write_mutation(DEAD_LETTERS_TABLE, old)
    with pytest.raises(TriggerError, match="1 dead letters of trigger t hold no change"):
        await bench.keeper.retry("t", b"", as_it_was=True)
    assert await bench.keeper.retry("t", b"old") == 1
    await bench.main.until(lambda: bench.main.sent)
    ((_, _, row),) = bench.main.take()
    assert row == b"old"


async def buried(bench: Bench, count: int, error: str = "") -> None:
    """Letters of rows 0 to ``count``, oldest first."""
    for number in range(count):
        letter = DeadLetter("t", "t", b"%d" % number, f"5-1-{number + 1}", 1, error, "", 1)
        await bench.keeper.system.write_mutation(DEAD_LETTERS_TABLE, dead_letters.writing(letter))


def test_letters_behind_the_longest_list_are_shown_retried_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_store, "LETTERS_PER_CALL", 3)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t", attempts=1)
        await buried(bench, 10)
        assert [one.row for one in await bench.keeper.dead_letters("t", 10)] == [b"0", b"1", b"2"]
        assert [one.row for one in await bench.keeper.dead_letter_store.letters_with_changes("t", b"9", 1)] == [b"9"]
        assert await bench.keeper.dead_letter_store.skip("t", b"9") == 1
        assert await bench.keeper.retry("t", b"8") == 1
        await bench.main.until(lambda: bench.main.sent)
        assert [row for _, _, row in bench.main.take()] == [b"8"]
        assert await bench.keeper.retry("t", b"") == 8
        assert await bench.keeper.dead_letters("t", 10) == []

    run()


@on_bench()
async def test_a_list_of_letters_ends_where_an_answer_is_large(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await buried(bench, 10, "e" * (dead_letter_store.LISTED_BYTES // 4))
    assert len(await bench.keeper.dead_letters("t", 10)) == 4
    assert await bench.keeper.dead_letter_store.skip("t", b"") == 10


def test_a_letter_that_dies_again_meanwhile_is_not_retried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_tables, "SCANNED_ROWS", 1)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t", attempts=1)
        await die(bench, b"a")
        log_again, logged = bench.keeper.dead_letter_store.log_again, list[bytes]()

        async def logged_and_dead_again(table: str, record: ChangeRecord) -> None:
            logged.append(record.row)
            assert len(logged) < 50, "letters of the millisecond in which the retry began count as earlier"
            await log_again(table, record)
            await bench.main.until(lambda: bench.main.sent)
            ((call_id, _, _),) = bench.main.take()
            did(bench, call_id, "failed", error="Error: no")
            await bench.settle()

        bench.keeper.dead_letter_store.log_again = logged_and_dead_again  # type: ignore[method-assign]
        assert await bench.keeper.retry("t", b"") == len(logged)
        assert len(await bench.keeper.dead_letters("t", 10)) == 1

    run()


def test_a_letter_is_a_put_of_two_cells() -> None:
    mutation = dead_letters.writing(DeadLetter("t", "t", b"r", "5-1-1", 1, "", "", 1))
    assert isinstance(mutation, RowMutation)
    assert all(isinstance(one, Put) and one.family == INFO for one in mutation.operations)


@on_bench()
async def test_a_letter_of_a_table_that_the_trigger_does_not_follow_any_more_stays(bench: Bench) -> None:
    """Logged there for a trigger that reads another table it would be delivered to nobody, and be gone."""
    await bench.add("t", attempts=1)
    await die(bench, b"a")
    await bench.triggers.remove("t")
    await bench.add("t", table="out", attempts=1)
    for as_it_was in (False, True):
        with pytest.raises(TriggerError, match="1 dead letters of trigger t are of another table, t"):
            await bench.keeper.retry("t", b"", as_it_was=as_it_was)
    assert [letter.row for letter in await bench.keeper.dead_letters("t", 10)] == [b"a"]
    assert bench.keeper.dead_letter_store.count_of("t") == 1


SEES = {"row": False, "images": True, "before": True, "columns": ("f:a",), "where": ("f:a=ordered",), "attempts": 1}


async def dies_as_ordered(bench: Bench, value: bytes = b"ordered") -> int:
    """A change to ``ordered`` becomes a letter, another follows, which meets no condition; the stamp of the first."""
    await bench.apply(b"o", Put(b"f", b"a", b"draft"))
    await bench.apply(b"o", Put(b"f", b"a", value))
    stamp = stamp_of(bench, b"o")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "failed", error="Error: no")
    await bench.settle()
    await bench.apply(b"o", Put(b"f", b"a", b"shipped"))
    return stamp


async def delivered_change(bench: Bench) -> Change:
    await bench.main.until(lambda: runs(*bench.main.sent))
    (call,) = runs(*bench.main.sent)
    return change_from(call[4][0])


@on_bench()
async def test_a_retry_as_it_was_sees_the_row_of_then_whatever_became_of_it(bench: Bench) -> None:
    await bench.add("t", **SEES)
    stamp = await dies_as_ordered(bench)
    assert await bench.keeper.retry("t", b"", as_it_was=True) == 1
    change = await delivered_change(bench)
    assert (change.before, change.after) == ({b"f:a": b"draft"}, {b"f:a": b"ordered"})
    assert (change.stamp, change.is_backfill, change.is_repeat) == (stamp, False, True)
    assert [one.value for one in change.changes] == [b"ordered"]


@on_bench()
async def test_a_retry_as_it_was_that_dies_again_can_be_retried_again(bench: Bench) -> None:
    await bench.add("t", **SEES)
    await dies_as_ordered(bench)
    for _ in range(2):
        assert await bench.keeper.retry("t", b"", as_it_was=True) == 1
        change = await delivered_change(bench)
        assert change.after == {b"f:a": b"ordered"}
        ((call_id, _, _),) = bench.main.take()
        did(bench, call_id, "failed", error="Error: no")
        await bench.settle()


@on_bench()
async def test_letters_whose_change_is_not_whole_stay_and_say_why(bench: Bench) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dead_letters, "CHANGE_BYTES", 120)  # room for the change, and for no images
        await bench.add("t", **SEES)
        await dies_as_ordered(bench)
    with pytest.raises(TriggerError, match="1 dead letters of trigger t lack the row before and after their change"):
        await bench.keeper.retry("t", b"", as_it_was=True)
    assert len(await bench.keeper.dead_letters("t", 10)) == 1
    assert bench.main.take() == []


@on_bench()
async def test_a_row_that_was_shown_without_a_change_is_retried_as_it_is_now_alone(bench: Bench) -> None:
    """Under its old stamp the row as it is now would lose against what came meanwhile."""
    await bench.add("t", attempts=1)
    await die(bench, b"a")
    assert await bench.keeper.retry("t", b"a") == 1
    await bench.main.until(lambda: runs(*bench.main.sent))
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "failed", error="Error: no")
    await bench.settle()
    with pytest.raises(TriggerError, match="1 dead letters of trigger t stand for a row that was shown as it was then"):
        await bench.keeper.retry("t", b"", as_it_was=True)
    assert await bench.keeper.retry("t", b"a") == 1


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (b"r", {b"letter": b"1"}),
        (b"\xff\xfe", {b"letter": b"{}"}),
        (b"t\x00" + b"0" * 20, {b"letter": b"{"}),
        (b"t\x00" + b"1" * 20, {b"other": b"1"}),
        (b"t\x00" + b"2" * 20, {b"letter": b'{"trigger": "t"}'}),
    ],
)
def test_what_is_no_letter_hides_no_letter(row: bytes, cells: dict[bytes, bytes]) -> None:
    """Clients may write into the table of letters."""

    async def body(bench: Bench) -> None:
        await bench.add("t", attempts=1)
        await die(bench, b"a")
        puts = tuple(Put(INFO, qualifier, value) for qualifier, value in cells.items())
        await bench.keeper.system.write_mutation(DEAD_LETTERS_TABLE, RowMutation(row, puts))
        for name in ("", "t"):
            assert [one.row for one in await bench.keeper.dead_letters(name, 10)] == [b"a"]
        assert [one.row for one in await bench.keeper.dead_letter_store.letters_with_changes("t", b"", 10)] == [b"a"]
        await bench.keeper.dead_letter_store.load()
        assert await bench.keeper.retry("t", b"", as_it_was=True) == 1

    on_bench()(body)()


@pytest.mark.parametrize(
    ("field", "value"), [("sequence", '"x"'), ("sequence", '"1-1"'), ("attempts", '"8"'), ("attempts", "true")]
)
def test_a_letter_whose_fields_are_none_is_damaged(field: str, value: str) -> None:
    said = {"trigger": '"t"', "table": '"s"', "row": '"r"', "sequence": '"1-1-1"', "attempts": "8"}
    said |= {"error": '""', "output": '""', "timestamp_ms": "5"}
    for held in (said | {field: value}, said | {"more": "1"}, {one: said[one] for one in said if one != field}):
        data = "{" + ", ".join(f'"{name}": {text}' for name, text in held.items()) + "}"
        with pytest.raises(DamagedData, match="no dead letter"):
            dead_letters.from_cell(data.encode())

"""Timelines of a restored store: which sequences only a former timeline gave, in bytes and in a region's log."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.regions.log.change_log import ChangeLog, begin_log
from columnar.regions.log.change_record import ChangeRecord, Sequence
from columnar.regions.log.lost_changes import (
    MOST_SPANS,
    LostSpan,
    Timeline,
    begin_timeline,
    pack_spans,
    spans_in,
    unpack_spans,
)
from columnar.storage.api import Store
from columnar.storage.memory import MemoryEngine
from tests.support.golden import hold_to

A, B, C, D = Sequence(3, 1, 7), Sequence(3, 900, 0), Sequence(9, 0, 0), Sequence(1 << 40, 0, 0)
SPANS = (LostSpan(A, B), LostSpan(C, D))


def opened() -> Store:
    return MemoryEngine().open_store("s", frozenset({"default", "meta", "log"}))


def append(store: Store, log: ChangeLog, count: int) -> Sequence:
    for _ in range(count):
        batch = store.batch()
        last = log.next()
        log.append(batch, last, ChangeRecord(b"r", 1, (), ()))
        store.write_batch(batch)
    return log.written_to


def test_bytes() -> None:
    hold_to("lost-changes.txt", {"two": pack_spans(SPANS), "one": pack_spans(SPANS[:1])})
    assert unpack_spans(pack_spans(reversed(SPANS))) == SPANS


@pytest.mark.parametrize("data", [b"", b"\x00", pack_spans(SPANS)[:-1], pack_spans(SPANS) + b"x", b"\x00\x03"])
def test_other_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(DamagedData, match="another length"):
        unpack_spans(data)


def test_spans_that_descend_are_an_error() -> None:
    data = pack_spans(SPANS)
    with pytest.raises(DamagedData, match="do not ascend"):
        unpack_spans(data[:2] + data[42:] + data[2:42])


def test_too_many_spans_become_fewer_that_call_more_lost() -> None:
    many = [LostSpan(Sequence(3, 10 * n, 5), Sequence(3, 10 * n + 9, 0)) for n in range(3 * MOST_SPANS)]
    found = unpack_spans(pack_spans(many))
    assert len(found) == MOST_SPANS
    for one in many:
        assert any(span.has(Sequence(3, one.after.epoch, 6)) for span in found)
    assert found[-1] == many[-1]


def test_what_the_former_timeline_wrote_after_the_copy_is_lost_and_nothing_else() -> None:
    store = opened()
    before = append(store, begin_log(store, 3), 5)
    begin_timeline(store, 3, Timeline.from_restore(1_800_000_000_000, next_id=12))
    log = begin_log(store, 3)
    after = append(store, log, 5)
    for kept in (Sequence(3, 1, 2), before, log.durable, after, Sequence(2, 7, 7), Sequence(1_800_000_000_000, 1, 1)):
        assert not log.is_lost(kept), kept
    for lost in (before._replace(n=6), Sequence(3, 2, 0), Sequence(3, 1_799_999_999, 4), Sequence(12, 1, 1)):
        assert log.is_lost(lost), lost


def test_no_sequence_is_given_twice_over_restores_of_the_same_copy() -> None:
    given: set[Sequence] = set()
    for restored_s in (0, 1_800_000_000, 1_800_000_001):
        store = opened()
        append(store, begin_log(store, 3), 5)
        if restored_s:
            begin_timeline(store, 3, Timeline.from_restore(1_000 * restored_s, 12))
        log = begin_log(store, 3)
        fresh = {append(store, log, 1) for _ in range(5)}
        assert all(log.is_lost(one) for one in given)
        assert not fresh & given
        given |= fresh


def test_a_restore_of_a_restored_store_knows_both_former_timelines() -> None:
    store = opened()
    first = append(store, begin_log(store, 3), 5)
    begin_timeline(store, 3, Timeline.from_restore(1_800_000_000_000, 12))
    second = append(store, begin_log(store, 3), 5)
    begin_timeline(store, 3, Timeline.from_restore(1_800_000_000_001, 1_800_000_000_004))
    log = begin_log(store, 3)
    assert log.epoch > second.epoch, "also when the clock stands"
    assert [log.is_lost(one._replace(n=n)) for one in (first, second) for n in (5, 6)] == [False, True, False, True]
    assert log.is_lost(Sequence(1_800_000_000_000, 1, 1)) is False
    assert log.is_lost(Sequence(12, 1, 1))


def test_the_end_counts_sequences_without_a_record_and_records_that_were_removed() -> None:
    store = opened()
    log = begin_log(store, 3)
    append(store, log, 3)
    log.trim(log.written_to._replace(n=4), b"mark", 0)
    log.next()  # a condition failed
    log.note_end()
    begin_timeline(store, 3, Timeline.from_restore(1_800_000_000_000, 12))
    log = begin_log(store, 3)
    assert not log.is_lost(Sequence(3, 1, 4))
    assert log.is_lost(Sequence(3, 1, 5))


def test_a_store_that_was_never_restored_lost_nothing() -> None:
    store = opened()
    assert spans_in(store) == ()
    assert not begin_log(store, 3).is_lost(Sequence(3, 1, 99))

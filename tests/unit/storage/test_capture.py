"""The marks of a capture: a store holds those of what it has not synced, each is deleted once, records are a chain."""

from __future__ import annotations

import random
from itertools import count

import pytest

from columnar.storage.capture import CAPTURED_BYTES, FEW_MARKS, Capture
from columnar.storage.server_log import MARK, MARKS_END, Operation, mark

ERA = b"era"
EPOCH = 7
PUT: Operation = ("a", b"k", b"v", None)


class Marked:
    """A store, of which only the marks are kept."""

    def __init__(self) -> None:
        self.capture = Capture("r", EPOCH, ERA, count(1).__next__)
        self.capture.take()  # from here on it is noted
        self.marks = {mark(b"earlier", 7)}
        self.deletes = 0

    def write(self, *sizes_bytes: int) -> None:
        """A batch that was noted in so many parts."""
        for size_bytes in sizes_bytes or (1,):
            self.capture.note([PUT], size_bytes)
        key, _ = self.capture.mark()
        single, between = self.capture.outdated()
        assert self.marks.issuperset(single), "a mark that is gone is not deleted again"
        outdated = set(single)
        if between is not None:
            start, stop = between
            outdated |= {held for held in self.marks if start <= held < stop}
        self.deletes += len(single) + (between is not None)
        self.marks = (self.marks - outdated) | {key}
        self.capture.batch_written()

    def sync(self) -> None:
        self.capture.synced = self.capture.last

    def unsynced(self) -> int:
        return len(self.marks)


def test_marks_of_earlier_runs_go_with_the_first_batch() -> None:
    store = Marked()
    assert mark(b"earlier", 7) > MARK
    assert mark(b"earlier", 7) < MARKS_END
    store.write()
    assert store.marks == {mark(ERA, store.capture.last)}


@pytest.mark.parametrize("between", [1, 3, FEW_MARKS, FEW_MARKS + 1, 3 * FEW_MARKS])
def test_each_mark_is_deleted_once_after_its_sync(between: int) -> None:
    """However many batches come between two syncs, the store holds a mark for each since the last, and no other."""
    store = Marked()
    store.write()
    for _ in range(5):
        store.sync()
        for number in range(1, between + 1):
            store.write()
            assert store.unsynced() == number
    few = between <= FEW_MARKS
    assert store.deletes == 1 + 1 + 4 * (between if few else 1)


@pytest.mark.parametrize("left", [1, 2, 5])
@pytest.mark.parametrize("synced", [1, FEW_MARKS, FEW_MARKS + 1, 3 * FEW_MARKS])
def test_marks_behind_what_was_synced_stay(synced: int, left: int) -> None:
    """Writes go on during an fsync: a batch without its mark would count as lost."""
    store = Marked()
    for _ in range(synced + left):
        store.write()
    first = store.capture.last - left + 1
    store.capture.synced = first - 1
    store.write()
    assert store.marks == {mark(ERA, number) for number in range(first, first + left + 1)}


def test_a_store_that_is_never_synced_keeps_all_its_marks() -> None:
    store = Marked()
    for number in range(100):
        store.write()
        assert store.unsynced() == number + 1


@pytest.mark.parametrize("seed", range(5))
def test_records_name_the_mark_before_them(seed: int) -> None:
    """Else a replay could not tell that a batch is missing."""
    store, rng, last = Marked(), random.Random(seed), 0
    for _ in range(50):
        written = rng.randrange(4)
        for _ in range(written):
            store.write()
        if rng.random() < 0.3:
            store.sync()
        records = store.capture.take()
        assert records is not None
        assert len(records) == written
        assert all((region, epoch) == ("r", EPOCH) for region, epoch, *_ in records)
        previous = [before for _, _, _, before, _ in records]
        numbers = [number for _, _, number, _, _ in records]
        if records:
            assert previous[0] == last
            assert previous[1:] == numbers[:-1]
            last = numbers[-1]
            assert last == store.capture.last
    assert last > 0


def test_a_batch_that_outgrows_the_bound_leaves_nothing_for_the_next() -> None:
    store = Marked()
    store.write()
    store.write(1, CAPTURED_BYTES, 1)
    assert store.capture.take() is None
    store.write()
    records = store.capture.take()
    assert records is not None
    assert [operations for *_, operations in records] == [[PUT]]


def test_what_nobody_noted_ends_the_records_until_they_are_taken() -> None:
    store = Marked()
    store.write()
    store.capture.missed()
    store.write()
    assert store.capture.take() is None
    store.write()
    records = store.capture.take()
    assert records is not None
    assert [operations for *_, operations in records] == [[PUT]]


@pytest.mark.parametrize(("size_bytes", "is_whole"), [(CAPTURED_BYTES, True), (CAPTURED_BYTES + 1, False)])
def test_more_than_the_bound_between_two_syncs_is_not_kept(size_bytes: int, is_whole: bool) -> None:
    store = Marked()
    store.write(size_bytes - 1)
    store.write(1)
    assert (store.capture.take() is not None) == is_whole
    store.write(CAPTURED_BYTES)
    assert store.capture.take() is not None, "each time begins anew"

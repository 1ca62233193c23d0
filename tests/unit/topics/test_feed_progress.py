"""Which rows a feed has read, and which of their changes it still wants."""

from __future__ import annotations

from columnar.regions.log.change_record import Sequence
from columnar.topics.feed_batch import RowNumbers
from columnar.topics.feed_progress import FeedProgress

AT = Sequence(5, 2, 10)
LATER = Sequence(5, 2, 11)


def test_changes_of_rows_that_are_not_read_are_not_wanted() -> None:
    assert [FeedProgress(b"m").wants(row) for row in (b"a", b"m", b"z")] == [True, False, False]
    assert FeedProgress().wants(b"z")
    assert not FeedProgress(b"").wants(b"a")


def test_the_last_piece_has_its_rows_as_of_its_fence() -> None:
    piece = FeedProgress(b"m", b"c", AT)
    assert [piece.has(row, AT) for row in (b"a", b"c", b"l", b"m")] == [False, True, True, False]
    assert not piece.has(b"c", LATER)
    assert FeedProgress(None, b"c", AT).has(b"z", AT), "to the end of the region"
    assert not FeedProgress().has(b"a", AT)


def test_all_is_read_behind_the_last_fence() -> None:
    assert FeedProgress().has_all(None)
    assert not FeedProgress(b"m").has_all(LATER)
    last = FeedProgress(None, b"c", AT)
    assert [last.has_all(read_to) for read_to in (None, Sequence(5, 2, 9), AT, LATER)] == [False, False, True, True]


def test_the_next_piece_waits_for_the_fence_and_not_for_the_end_of_the_log() -> None:
    piece = FeedProgress(b"m", b"c", AT)
    found = [piece.may_continue(read_to) for read_to in (None, Sequence(5, 2, 9), AT, LATER)]
    assert found == [False, False, True, True]
    assert FeedProgress(b"").may_continue(None), "the first piece has none before it"
    assert not FeedProgress(None, b"c", AT).may_continue(LATER), "all rows are read"


def test_numbers_of_rows_rise_also_beyond_a_process() -> None:
    numbers = RowNumbers()
    found = [numbers.next_number(ms) for ms in (1_000, 1_000, 999, 1_001)]
    assert found == sorted(set(found))
    assert RowNumbers().next_number(1_002) > found[-1]

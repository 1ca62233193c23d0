"""How far a region is shown to a view: bounds never go back, and numbers follow splits and merges."""

from __future__ import annotations

from columnar.regions.log.change_record import Sequence
from columnar.views.progress import Pass, Piece, Progress, merged

OVER = Progress(1, 2, 10, Pass.OVER, None, None)


def w(n: int) -> Sequence:
    return Sequence(1, 1, n)


def test_nothing_is_wanted_before_it_is_bound() -> None:
    begun = Progress(1)
    assert not begun.wants(b"a")
    bound = begun.bound_to(b"m")
    assert (bound.wants(b"a"), bound.wants(b"m")) == (True, False)
    assert bound.bound_to(b"c") == bound, "a bound never goes back"
    shown = bound.piece_ended(b"c", 3, 1)
    assert (shown.done, shown.bound, shown.rows, shown.rejected) == (b"c", b"m", 3, 1)
    over = shown.bound_to(None).piece_ended(None, 2, 0)
    assert over == Progress(1, 1, 5, Pass.OVER, None, None)
    assert over.wants(b"\xff")


def test_a_daughter_counts_again_where_a_number_was_of_both() -> None:
    assert OVER.in_region(1, b"") is OVER
    daughter = OVER.in_region(5, b"m")
    assert daughter == Progress(5, 0, 5, Pass.COUNTS, b"m", b"m")
    assert daughter.is_backfilled
    assert daughter.wants(b"z")
    counted = daughter.bound_to(None).piece_ended(None, 4, 1)
    assert counted == Progress(5, 1, 5, Pass.OVER, None, None)
    clean = Progress(1, 0, 10, Pass.OVER, None, None).in_region(5, b"m")
    assert clean == Progress(5, 0, 5, Pass.OVER, None, None), "neither has any"


def test_a_daughter_in_the_middle_of_a_build_shows_first() -> None:
    building = Progress(1, 2, 10, Pass.SHOWS, b"k", b"p")
    right = building.in_region(5, b"m")
    assert right == Progress(5, 2, 5, Pass.SHOWS_THEN_COUNTS, b"m", b"p")
    assert not right.is_backfilled
    after = right.piece_ended(None, 1, 0)
    assert (after.walk, after.done, after.rejected) == (Pass.COUNTS, b"", 0)


def test_a_merged_region_has_what_both_have() -> None:
    assert merged([OVER, Progress(2, 3, 4, Pass.OVER, None, None)], 9) == Progress(9, 5, 14, Pass.OVER, None, None)
    counting = Progress(2, 3, 4, Pass.COUNTS, b"c", b"c")
    assert merged([OVER, counting], 9) == Progress(9, 0, 14, Pass.COUNTS, b"", b"")


def test_a_piece_counts_changes_after_each_row_was_read() -> None:
    piece = Piece(b"a")
    assert not piece.counts(b"b", w(9))
    piece.gathered(b"c", w(4), 2, 1)
    piece.gathered(b"f", w(6), 2, 0)
    cases = [(b"b", 4, False), (b"b", 5, True), (b"c", 5, False), (b"c", 7, True), (b"f", 9, False)]
    assert [piece.counts(row, w(n)) for row, n, _ in cases] == [expected for _, _, expected in cases]
    piece.gathered(None, w(8), 1, 0)
    assert piece.counts(b"z", w(9))
    assert not piece.counts(b"z", w(8))
    assert (piece.end, piece.last, piece.rows, piece.rejected) == (None, w(8), 5, 1)

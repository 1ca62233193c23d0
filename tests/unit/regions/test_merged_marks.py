"""Marks of time of a merged log: each stands before all that came since in both logs."""

from __future__ import annotations

from columnar.regions.log.change_record import Sequence
from columnar.regions.log.log_retention import MARKS, merged

LOW, HIGH = 3, 9  # origins of two regions


def log(origin: int, marks: dict[int, int], whole_from: int = 0) -> tuple[list[int], object]:
    """``marks``: by time how many records there were."""

    def before(at_ms: int) -> Sequence | None:
        known = [count for ms, count in marks.items() if whole_from <= ms <= at_ms]
        return Sequence(origin, 1, max(known)) if known else None

    return sorted(marks), before


def test_a_mark_stands_before_the_records_of_both_logs() -> None:
    one, other = log(LOW, {10: 5, 30: 8}), log(HIGH, {20: 2})
    assert merged([one, other]) == [(20, Sequence(LOW, 1, 5)), (30, Sequence(LOW, 1, 8))]  # type: ignore[list-item]


def test_there_is_no_mark_of_a_time_for_which_one_log_is_not_whole() -> None:
    one, other = log(LOW, {10: 5, 30: 8}, whole_from=30), log(HIGH, {20: 2})
    assert merged([one, other]) == [(30, Sequence(LOW, 1, 8))]  # type: ignore[list-item]
    assert merged([log(LOW, {}), other]) == []  # type: ignore[list-item]


def test_marks_stay_bounded_and_rise() -> None:
    some = {at: at for at in range(MARKS)}
    found = merged([log(LOW, some), log(HIGH, {at + 1_000: at for at in range(MARKS)})])  # type: ignore[list-item]
    assert 0 < len(found) <= MARKS
    assert found == sorted(found)

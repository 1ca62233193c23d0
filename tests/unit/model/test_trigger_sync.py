"""What a sync of a module adds, changes and removes, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from columnar.errors import IllegalArgument
from columnar.model.trigger_registration import Registration
from columnar.model.trigger_sync import Change, no_more_declared, plan_of

ONE = Registration("one", "t", "m:one", ("f",), images=True, columns=("f:a",), of_module="m")
TWO = replace(ONE, name="two", function="m:two")
BY_HAND = Registration("hand", "t", "m:hand", ("f",))


def test_a_sync_adds_changes_and_removes() -> None:
    held = [ONE, TWO, BY_HAND, replace(ONE, name="other", of_module="other")]
    wanted = [replace(ONE, share=20), replace(ONE, name="new")]
    removed = no_more_declared(held, wanted, "m")
    plan = plan_of(held, wanted, removed)
    assert (plan.added, plan.removed) == ((wanted[1],), ("two",))
    (change,) = plan.changed
    assert (change.wanted.share, change.words()) == (20, ["share: 10 -> 20"])
    assert plan_of([ONE, TWO], [TWO, ONE], ()).is_empty


def test_one_that_was_made_by_hand_is_taken_over() -> None:
    (change,) = plan_of([BY_HAND], [replace(ONE, name="hand")], ()).changed
    assert "made by a sync of: none -> m" in change.words()


def test_where_it_starts_counts_only_for_a_new_one() -> None:
    assert plan_of([ONE], [replace(ONE, from_where="beginning")], ()).is_empty


@pytest.mark.parametrize(
    ("wanted", "asks"),
    [
        ({"share": 5}, False),
        ({"where": ("f:a=1",)}, False),
        ({"where": ("f:b=1",)}, True),
        ({"columns": ("f:a", "f:b")}, True),
        ({"columns": ("f",)}, True),
        ({"before": True}, True),
        ({"look": (("x", "u", "f:b"),)}, True),
        ({"look": (("x", "u", "row"),)}, False),
    ],
)
def test_what_asks_for_more_than_waiting_records_may_have(wanted: dict[str, object], asks: bool) -> None:
    change = Change(ONE, replace(ONE, **wanted))  # type: ignore[arg-type]
    assert change.needs_more_images is asks
    assert ("changes that wait" in change.words()[-1]) is asks


@pytest.mark.parametrize(
    ("held", "wanted", "removed", "message"),
    [
        ([ONE], [replace(ONE, table="u")], (), "on table t, not u"),
        ([replace(ONE, of_module="other")], [ONE], (), "made by a sync of other"),
        ([BY_HAND], [], ("hand",), "by no sync"),
        ([], [ONE], ("gone",), "by no sync"),
        ([replace(TWO, of_module="other")], [ONE], ("two",), "by no sync of this module"),
        ([ONE], [ONE], ("one",), "removed and declared at once"),
        ([], [ONE, ONE], (), "names of their own"),
        ([], [ONE, replace(TWO, of_module="other")], (), "of one module"),
        ([], [BY_HAND], (), "of one module"),
    ],
)
def test_what_is_refused(
    held: list[Registration], wanted: list[Registration], removed: tuple[str, ...], message: str
) -> None:
    with pytest.raises(IllegalArgument, match=message):
        plan_of(held, wanted, removed)

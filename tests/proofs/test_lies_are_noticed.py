"""Each proof fails against a table that breaks its promise, and holds against an honest table."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.proofs import acid, grouped, linearizable, linked_list, lying
from tests.proofs.asking import Cells
from tests.proofs.linked_list import Derived, Shape
from tests.proofs.list_accounts import ListAccounts
from tests.proofs.lying import MemoryTable
from tests.proofs.verdict import Plan, Verdict

Make = Callable[[], MemoryTable]
PLAN = Plan(seconds=0.3, writers=4, seed=1, kill_every_s=0)


TRIES = 20  # of so many seconds each: a machine that is busy elsewhere may not come to a lie at once


def noticed(make: Make, prove: Callable[[MemoryTable], Verdict]) -> Verdict:
    """Return the first verdict with a fault of the table, on a fresh table each time."""
    for _ in range(TRIES):
        table = make()
        verdict = prove(table)
        if table.lies and not verdict.is_good:
            return verdict
    raise AssertionError(f"{make} was not noticed")


@pytest.fixture
def listed(tmp_path: Path) -> Callable[[MemoryTable], Verdict]:
    numbers = itertools.count()

    def prove(table: MemoryTable) -> Verdict:
        folder = tmp_path / f"accounts-{next(numbers)}"
        return linked_list.prove(lambda: table, folder, PLAN, lambda _: None, shape=Shape(50, 4))

    return prove


def test_an_honest_table_holds_its_list(listed: Callable[[MemoryTable], Verdict]) -> None:
    verdict = listed(MemoryTable())
    assert verdict.problems == []
    assert verdict.counts["REFERENCED"] == verdict.counts["nodes acknowledged"] == verdict.counts["nodes read back"]


def test_a_list_that_lost_answers_and_was_told_again_holds(listed: Callable[[MemoryTable], Verdict]) -> None:
    assert listed(lying.LosesAnswers()).problems == []


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (partial(lying.LosesWrites, one_in=200), {"UNDEFINED", "LOST"}),
        (partial(lying.ForgetsHalfARow, one_in=100), {"TORN", "UNREFERENCED"}),
        (lying.ScansTwice, {"a scan", "EXTRANEOUS"}),
    ],
)
def test_the_list_notices(make: Make, kinds: set[str], listed: Callable[[MemoryTable], Verdict]) -> None:
    told = "\n".join(noticed(make, listed).problems)
    assert {kind for kind in kinds if kind in told} == kinds


class Triggered(MemoryTable):
    """A trigger's table of references that loses some; honest with ``one_in`` of 0."""

    def __init__(self, one_in: int) -> None:
        super().__init__(one_in=max(one_in, 1))
        self.derived = MemoryTable()
        self._lies = one_in > 0

    def put_rows(self, rows: Sequence[tuple[bytes, Cells]]) -> None:
        super().put_rows(rows)
        for row, cells in rows:
            if linked_list.PREVIOUS in cells and not (self._lies and self.lies_now()):
                self.derived.put_rows([(cells[linked_list.PREVIOUS], {b"r:" + row: b""})])


def test_a_change_that_no_trigger_was_told_is_noticed(tmp_path: Path) -> None:
    numbers = itertools.count()

    def prove(table: MemoryTable) -> Verdict:
        assert isinstance(table, Triggered)
        folder = tmp_path / f"accounts-{next(numbers)}"
        derived = Derived(lambda: table.derived, lambda: True)
        return linked_list.prove(lambda: table, folder, PLAN, lambda _: None, derived=derived)

    assert prove(Triggered(0)).problems == []
    assert "by the trigger's table, UNREFERENCED" in noticed(partial(Triggered, 100), prove).problems[0]


def test_a_run_in_which_nothing_happened_is_no_proof() -> None:
    total = Verdict("all")
    for writes in (0, 0):
        total.take_in(Verdict("ACID", counts={"writes": writes}, needed=("writes",)))
    total.look_for_nothing()
    assert total.problems == ["there were no writes: the run shows nothing"]


def test_the_books_of_the_list(tmp_path: Path) -> None:
    a, b, c, d, e = (bytes([n]) * 16 for n in (1, 2, 3, 65, 129))
    with ListAccounts(tmp_path / "accounts") as accounts:
        accounts.add("acknowledged", [a, b, c, d])
        accounts.add("defined", [a, b, d, e])  # c is gone, nobody wrote e
        accounts.add("referred", [a, c, d, d, e])  # nobody refers to b, two refer to d
        found = accounts.count()
    assert dict(found.counts) == {
        "acknowledged": 4, "REFERENCED": 2, "UNREFERENCED": 1, "UNDEFINED": 1, "EXTRANEOUS": 2, "LOST": 1,
    }  # fmt: skip
    assert found.examples["UNDEFINED"] == [c]
    assert sorted(found.examples["EXTRANEOUS"]) == [d, e]


def test_a_walk_ends_where_a_node_is_missing() -> None:
    table = MemoryTable()
    keys = [bytes([n]) * 16 for n in range(4)]
    table.put_rows([(key, {linked_list.PREVIOUS: keys[n - 1]}) for n, key in enumerate(keys)])
    assert linked_list.walk(table, keys[3], 100) == ""
    del table.rows[keys[1]]
    assert "UNDEFINED: step 2" in linked_list.walk(table, keys[3], 100)


def whole(table: MemoryTable) -> Verdict:
    return acid.prove(lambda: table, PLAN, lambda _: None)


@pytest.mark.parametrize("make", [MemoryTable, lying.LosesAnswers])
def test_honest_rows_are_whole(make: Make) -> None:
    assert whole(make()).problems == []


@pytest.mark.parametrize("make", [lying.TearsRows, partial(lying.ForgetsHalfARow, one_in=20)])
def test_torn_rows_are_noticed(make: Make) -> None:
    told = "\n".join(noticed(make, whole).problems)
    assert "has no" in told or "mixes" in told


def in_order(table: MemoryTable) -> Verdict:
    return linearizable.prove(lambda: table, PLAN, lambda _: None)


@pytest.mark.parametrize("make", [MemoryTable, lying.LosesAnswers])
def test_an_honest_table_is_linearizable(make: Make) -> None:
    assert in_order(make()).problems == []


@pytest.mark.parametrize(
    "make",
    [
        lying.LosesWrites,
        lying.ReadsThePast,
        lying.LosesUpdates,
        lying.TearsRows,
        partial(lying.ForgetsHalfARow, one_in=5),
        partial(lying.ComesBack, one_in=20),
    ],
)
def test_what_is_not_linearizable_is_noticed(make: Make) -> None:
    assert "nothing explains" in noticed(make, in_order).problems[0]


def groups_in_order(table: MemoryTable) -> Verdict:
    return linearizable.prove(lambda: table, PLAN, lambda _: None, grouped.GAME)


@pytest.mark.parametrize("make", [MemoryTable, lying.LosesAnswers])
def test_honest_groups_are_linearizable(make: Make) -> None:
    assert groups_in_order(make()).problems == []


def test_every_kind_of_call_is_drawn_in_a_group() -> None:
    rng = Random(1)
    calls = [grouped.random_call(rng, b"g/", b"") for _ in range(1_000)]
    ways = {"group", "row", "scan", "put", "deleteAllRow", "mutate_group", "transact, rows", "transact, group"}
    assert {call.way for call in calls} == ways


@pytest.mark.parametrize(
    "make", [partial(lying.WritesHalfAGroup, one_in=20), lying.ComparesNothing, partial(lying.LosesWrites, one_in=20)]
)
def test_groups_that_are_not_linearizable_are_noticed(make: Make) -> None:
    assert "nothing explains" in noticed(make, groups_in_order).problems[0]


def test_a_run_goes_on_until_its_counts_have_begun() -> None:
    verdict = Verdict("queues", counts=Counter({"pushed": 3}))
    assert verdict.has_some("pushed")
    assert not verdict.has_some("pushed", "committed")

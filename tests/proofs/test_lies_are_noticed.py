"""Each proof fails against a table that breaks what the proof is for, and holds against one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs import acid, linearizable, linked_list, lying
from tests.proofs.list_accounts import ListAccounts
from tests.proofs.lying import MemoryTable
from tests.proofs.verdict import Plan, Verdict

PLAN = Plan(seconds=0.3, writers=4, seed=1, kill_every_s=0)


def listed(table: MemoryTable, folder: Path) -> Verdict:
    return linked_list.prove(lambda: table, folder / "accounts", PLAN, lambda _: None, width=50, layers=4)


def test_an_honest_table_holds_its_list(tmp_path: Path) -> None:
    verdict = listed(MemoryTable(), tmp_path)
    assert verdict.problems == []
    assert verdict.counts["REFERENCED"] == verdict.counts["nodes acknowledged"] == verdict.counts["nodes read back"]
    assert verdict.counts["circles"] >= 4


def test_a_list_that_lost_answers_and_was_told_again_holds(tmp_path: Path) -> None:
    assert listed(lying.LosesAnswers(), tmp_path).problems == []


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        (lying.LosesWrites(one_in=200), {"UNDEFINED", "LOST"}),
        (lying.ForgetsHalfARow(one_in=200), {"TORN", "UNREFERENCED"}),
        (lying.ScansTwice(), {"a scan", "EXTRANEOUS"}),
    ],
)
def test_the_list_notices(table: MemoryTable, kinds: set[str], tmp_path: Path) -> None:
    verdict = listed(table, tmp_path)
    assert table.lies > 0
    told = "\n".join(verdict.problems)
    assert {kind for kind in kinds if kind in told} == kinds


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


@pytest.mark.parametrize("table", [MemoryTable(), lying.LosesAnswers()])
def test_honest_rows_are_whole(table: MemoryTable) -> None:
    verdict = acid.prove(lambda: table, PLAN, lambda _: None)
    assert verdict.problems == []


@pytest.mark.parametrize("table", [lying.TearsRows(), lying.ForgetsHalfARow(one_in=20)])
def test_torn_rows_are_noticed(table: MemoryTable) -> None:
    verdict = acid.prove(lambda: table, PLAN, lambda _: None)
    assert table.lies > 0
    assert any("has no" in problem or "mixes" in problem for problem in verdict.problems)


@pytest.mark.parametrize("table", [MemoryTable(), lying.LosesAnswers()])
def test_an_honest_table_is_linearizable(table: MemoryTable) -> None:
    verdict = linearizable.prove(lambda: table, PLAN, lambda _: None)
    assert verdict.problems == []
    assert int(verdict.counts["calls judged"]) > 100


@pytest.mark.parametrize(
    "table",
    [
        lying.LosesWrites(), lying.ReadsThePast(), lying.LosesUpdates(), lying.ForgetsHalfARow(one_in=5),
        lying.TearsRows(), lying.ComesBack(one_in=20),
    ],
    ids=lambda table: type(table).__name__,
)  # fmt: skip
def test_what_is_not_linearizable_is_noticed(table: MemoryTable) -> None:
    verdict = linearizable.prove(lambda: table, PLAN, lambda _: None)
    assert table.lies > 0
    assert verdict.problems
    assert "nothing explains" in verdict.problems[0]

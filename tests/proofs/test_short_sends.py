"""The proof of sends for some kills, and what it finds wrong; ``python -m tests.proofs.sends`` is the long form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.proofs.kill_runs import SHORT_RUNS, check_short_run
from tests.proofs.killed_store import KilledStore
from tests.proofs.sends import TARGETS, Ledger, prove
from tests.proofs.verdict import Plan, Verdict
from tests.support.deep import cases

A = TARGETS[0]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize(("kind", "plan"), cases("sends over servers, too", deep=SHORT_RUNS, short=SHORT_RUNS[:1]))
def test_it_holds(kind: type[KilledStore], plan: Plan, tmp_path: Path) -> None:
    check_short_run(prove, kind, plan, tmp_path)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(Verdict("sends"))
    made.verdict.counts = Counter()
    for body, outcome in ((b"1", "acknowledged"), (b"2", "unknown"), (b"3", "acknowledged"), (b"4", "refused")):
        made.begin_change(body, b"row", (A,))
        made.end_change(body, outcome)
    return made


def judged(ledger: Ledger, cells: set[bytes], *numbers: tuple[bytes, int]) -> list[str]:
    for body, number in numbers:
        ledger.note_message(A, body, number)
    ledger.judge(cells)
    return [problem.partition(":")[0] for problem in ledger.verdict.problems]


def test_what_should_be_is_no_problem(ledger: Ledger) -> None:
    assert judged(ledger, {b"1", b"3"}, (b"1", 10), (b"3", 12), (b"1", 10)) == []
    assert ledger.missing({b"1", b"3"}) == 0


def test_a_message_that_never_came_is_noticed(ledger: Ledger) -> None:
    assert ledger.missing({b"1", b"2", b"3"}) == 3
    assert judged(ledger, {b"1", b"2", b"3"}, (b"1", 10), (b"3", 12)) == ["lost"]


def test_a_second_number_is_noticed(ledger: Ledger) -> None:
    assert judged(ledger, {b"1", b"3"}, (b"1", 10), (b"3", 12), (b"3", 13)) == ["doubled"]


def test_a_message_without_its_change_is_noticed(ledger: Ledger) -> None:
    assert judged(ledger, {b"1", b"3"}, (b"1", 10), (b"2", 11), (b"3", 12)) == ["strange"]


def test_a_message_of_a_refused_change_and_one_of_no_change_are_noticed(ledger: Ledger) -> None:
    found = judged(ledger, {b"1", b"3"}, (b"1", 10), (b"3", 12), (b"4", 13), (b"9", 14))
    assert found == ["strange", "strange"]


def test_messages_in_another_order_are_noticed(ledger: Ledger) -> None:
    assert judged(ledger, {b"1", b"3"}, (b"1", 12), (b"3", 10)) == ["order"]


def test_an_acknowledged_change_that_is_not_there_is_noticed(ledger: Ledger) -> None:
    assert judged(ledger, {b"3"}, (b"3", 10)) == ["gone"]

"""The proof of topics for some kills, and what it finds wrong; ``python -m tests.proofs.topics`` is the long form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from columnar.client.topics import ReadRecord
from tests.proofs.kill_runs import SHORT_RUNS, check_short_run
from tests.proofs.killed_store import KilledStore
from tests.proofs.topics import Ledger, prove
from tests.proofs.verdict import Plan, Verdict
from tests.support.deep import cases


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize(("kind", "plan"), cases("topics over servers, too", deep=SHORT_RUNS, short=SHORT_RUNS[:1]))
def test_it_holds(kind: type[KilledStore], plan: Plan, tmp_path: Path) -> None:
    check_short_run(prove, kind, plan, tmp_path)


@pytest.fixture
def ledger() -> Ledger:
    """Two records of producer 0 in partition 0, acknowledged, and one that was sent."""
    made = Ledger(Verdict("topics"))
    made.verdict.counts = Counter()
    made.note_sent(0, 0, 3)
    made.note_acknowledged(0, 0, [b"0/0/0", b"0/0/1"])
    return made


def log(*values: bytes, first: int = 0) -> list[ReadRecord]:
    return [ReadRecord(0, first + number, 0, None, value, ()) for number, value in enumerate(values)]


def found(ledger: Ledger, *values: bytes, first: int = 0) -> set[str]:
    ledger.judge_log(0, log(*values, first=first))
    return {problem.partition(":")[0] for problem in ledger.verdict.problems}


@pytest.mark.parametrize("last", [(), (b"0/0/2",)])
def test_a_record_without_an_acknowledgement_may_be_there_or_not(ledger: Ledger, last: tuple[bytes, ...]) -> None:
    assert found(ledger, b"0/0/0", b"0/0/1", *last) == set()


def test_what_is_wrong_is_noticed(ledger: Ledger) -> None:
    assert found(ledger, b"0/0/0") == {"lost"}


def test_a_doubled_record_is_noticed(ledger: Ledger) -> None:
    assert "doubled" in found(ledger, b"0/0/0", b"0/0/1", b"0/0/1")


def test_two_answers_for_one_offset_are_noticed(ledger: Ledger) -> None:
    ledger.note_acknowledged(0, 1, [b"0/0/2"])
    assert found(ledger, b"0/0/0", b"0/0/1", b"0/0/2") == {"doubled"}


def test_a_wrong_order_is_noticed(ledger: Ledger) -> None:
    assert "order" in found(ledger, b"0/0/1", b"0/0/0")


def test_a_gap_is_noticed(ledger: Ledger) -> None:
    assert "gap" in found(ledger, b"0/0/0", b"0/0/1", first=1)


def test_a_strange_record_is_noticed(ledger: Ledger) -> None:
    assert found(ledger, b"0/0/0", b"0/0/1", b"0/0/2", b"0/0/3") == {"strange"}
    assert "strange" in found(ledger, b"0/0/0", b"0/0/1", b"0/1/0")


def test_a_record_that_a_reader_saw_and_that_went_is_noticed(ledger: Ledger) -> None:
    ledger.note_seen(log(b"0/0/0", b"0/0/1", b"0/0/2"))
    assert found(ledger, b"0/0/0", b"0/0/1") == {"changed"}
    ledger.note_seen(log(b"0/0/1"))
    assert len(ledger.verdict.problems) == 2

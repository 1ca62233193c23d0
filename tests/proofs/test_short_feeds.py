"""The proof of feeds for some kills, and what it finds wrong; ``python -m tests.proofs.feeds`` is the long form."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from columnar.client.topics import ReadRecord
from tests.proofs.feeds import Ledger, prove
from tests.proofs.kill_runs import SHORT_RUNS, check_short_run
from tests.proofs.killed_store import KilledStore
from tests.proofs.verdict import Plan, Verdict
from tests.support.deep import cases


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize(("kind", "plan"), cases("feeds over servers, too", deep=SHORT_RUNS, short=SHORT_RUNS[:1]))
def test_it_holds(kind: type[KilledStore], plan: Plan, tmp_path: Path) -> None:
    check_short_run(prove, kind, plan, tmp_path)


def image(number: int | None) -> dict[str, str] | None:
    return None if number is None else {"row": "r", "m:n": str(number)}


def change(number: int, before: int | None, *, sequence: bytes = b"", partition: int = 0) -> ReadRecord:
    value = json.dumps({"before": image(before), "after": image(number)}).encode()
    headers = (("sequence", sequence or b"5-1-%d" % number),)
    return ReadRecord(partition, 0, 0, b"r", value, headers)


GOOD = [change(0, None), change(1, 0), change(2, 1)]


@pytest.mark.parametrize(
    ("records", "problems"),
    [
        (GOOD, set()),
        ([*GOOD, change(2, 2, sequence=b"5-1-9")], set()),  # put again, as its outcome was unknown
        (GOOD[:2], {"lost"}),
        ([], {"lost"}),
        ([*GOOD, GOOD[2]], {"doubled", "torn"}),
        ([GOOD[1], GOOD[0], GOOD[2]], {"order", "torn"}),
        ([GOOD[0], GOOD[2]], {"lost", "torn"}),
        ([*GOOD, change(3, 2)], {"strange"}),
        ([*GOOD[:2], change(2, 1, partition=1)], {"order"}),
    ],
)
def test_what_is_wrong_is_noticed(records: list[ReadRecord], problems: set[str]) -> None:
    ledger = Ledger(Verdict("feeds"))
    ledger.verdict.counts = Counter()
    ledger.note_put(b"r", 2)
    ledger.note_acknowledged(b"r", 2)
    ledger.judge_topic(records)
    assert {problem.partition(":")[0] for problem in ledger.verdict.problems} == problems

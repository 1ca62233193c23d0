"""The proof of queues for some kills, and what it finds wrong; ``python -m tests.proofs.queues`` is the long form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.kill_runs import SHORT_RUNS, check_short_run
from tests.proofs.killed_store import KilledStore
from tests.proofs.queues import DEAD, FIFO, LEASE_MS, MORTAL, QUEUES, Known, Ledger, prove
from tests.proofs.verdict import Plan, Verdict
from tests.support.deep import cases


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize(("kind", "plan"), cases("queues over servers, too", deep=SHORT_RUNS, short=SHORT_RUNS[:1]))
def test_it_holds(kind: type[KilledStore], plan: Plan, tmp_path: Path) -> None:
    check_short_run(prove, kind, plan, tmp_path)


class Message:
    """A message as a consumer sees it."""

    def __init__(self, body: bytes, number: str = "1", attempts: int = 1) -> None:
        self.body, self.id, self.attempts = body, number, attempts


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(Verdict("queues"))
    made.verdict.counts = Counter()
    for body, queue in ((b"p0/0", QUEUES[0]), (b"p0/4", FIFO), (b"p0/9", FIFO)):
        made.begin_push(queue, body)
        made.note_pushed(body)
    return made


def found(ledger: Ledger, call_s: float, *messages: Message, queue: bytes = QUEUES[0]) -> list[str]:
    given: Any = messages
    ledger.note_popped(1, queue, given, call_s)
    return [problem.partition(":")[0] for problem in ledger.verdict.problems]


def known(ledger: Ledger) -> Known:
    return ledger.messages[b"p0/0"]


def test_a_message_in_two_hands_is_noticed(ledger: Ledger) -> None:
    assert found(ledger, 1e9, Message(b"p0/0")) == []
    known(ledger).held_s = (1e9, 1e10)
    assert found(ledger, 1e9 + 1, Message(b"p0/0")) == ["two hands"]


def test_a_message_whose_lease_was_ended_may_come_again(ledger: Ledger) -> None:
    found(ledger, 1e9, Message(b"p0/0"))
    known(ledger).held_s = (1e9, 1e10)
    ledger.release(b"p0/0")
    assert found(ledger, 1e9 + LEASE_MS, Message(b"p0/0")) == []


def test_a_message_after_its_commit_is_noticed(ledger: Ledger) -> None:
    found(ledger, 1e9, Message(b"p0/0"))
    ledger.begin_commit(b"p0/0")
    ledger.note_committed(b"p0/0")
    known(ledger).held_s = None
    assert found(ledger, 0.0, Message(b"p0/0")) == [], "the pop began before"
    known(ledger).held_s = None
    assert found(ledger, 1e12, Message(b"p0/0")) == ["after end"]


def test_a_second_number_and_a_strange_message_are_noticed(ledger: Ledger) -> None:
    found(ledger, 0.0, Message(b"p0/0"))
    assert found(ledger, 1e-9, Message(b"p0/0", "2"), Message(b"p9/9")) == ["doubled", "strange"]
    assert found(ledger, 0.0, Message(b"p0/4"))[-1] == "strange", "of another queue"


def test_a_message_of_a_queue_that_it_was_moved_from_is_noticed(ledger: Ledger) -> None:
    ledger.begin_push(MORTAL, b"p0/2")
    ledger.note_pushed(b"p0/2")
    assert found(ledger, 0.0, Message(b"p0/2"), queue=MORTAL) == []
    assert found(ledger, 0.0, Message(b"p0/2", "7"), queue=DEAD) == []
    assert found(ledger, 0.0, Message(b"p0/2"), queue=MORTAL) == ["doubled"]


def test_a_message_before_the_one_before_it_is_noticed(ledger: Ledger) -> None:
    assert found(ledger, 0.0, Message(b"p0/9"), queue=FIFO) == ["order"]
    ledger.begin_commit(b"p0/4")
    assert found(ledger, 0.0, Message(b"p0/9"), queue=FIFO) == ["order"], "no further one"


def test_a_lost_message_is_noticed(ledger: Ledger) -> None:
    ledger.begin_push(QUEUES[0], b"p0/15")  # not acknowledged: it may be there or not
    for body in (b"p0/4", b"p0/9"):
        ledger.begin_commit(body)
    ledger.look_for_lost()
    assert [problem.partition(",")[0] for problem in ledger.verdict.problems] == ["lost: b'p0/0' of b'q0'"]

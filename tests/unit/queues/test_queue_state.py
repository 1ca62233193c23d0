"""The state of a queue against a list: who gets which message, and when, from seeds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from columnar.queues import queue_state
from columnar.queues.keys import LeaseCell, Settings, Subqueue
from columnar.queues.lease_ends import following
from columnar.queues.queue_state import QueueState, Touched, refill_rows

LEASE_MS = 50


@dataclass
class Row:
    """A message of the model."""

    n: int
    subqueue: Subqueue
    until_ms: int = 0  # held or delayed until then
    lease: int = 0
    attempts: int = 0


class Model:
    """A queue as a list of all its messages, beside the state with its bounded memory."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.fifo = self.rng.random() < 0.4
        self.attempts = self.rng.choice((0, 3))
        self.rows: dict[int, Row] = {}
        self.dead: list[int] = []
        self.now_ms = 1_000
        self.last = 0
        self.state = self.fresh()

    def fresh(self) -> QueueState:
        """Return the state as a desk makes it from rows."""
        state = QueueState(Settings(LEASE_MS, self.attempts, self.fifo))
        for row in self.rows.values():
            if row.attempts or row.until_ms:
                state.load_lease(row.n, LeaseCell(row.until_ms, row.attempts, row.lease, row.subqueue))
        for subqueue in sorted({row.subqueue for row in self.rows.values()}):
            state.list_subqueue(subqueue)
        state.is_listed = True
        return state

    def next(self) -> int:
        self.last += 1
        return self.last

    def fill(self) -> None:
        for subqueue in self.state.subqueues_to_refill():
            while subqueue.is_dry:
                behind = sorted(n for n, row in self.rows.items() if row.subqueue == subqueue.key and n > subqueue.last)
                most = refill_rows(self.state)
                self.state.refill(subqueue, behind[:most], has_more=len(behind) > most)

    def pass_time(self) -> None:
        self.now_ms += self.rng.choice((0, 1, 30, 60))
        for touched in self.state.end_waits(self.now_ms):
            assert self.attempts
            assert self.rows[touched.n].attempts >= self.attempts
            self.state.forget_message(touched)
            self.dead.append(touched.n)
            del self.rows[touched.n]

    def ready(self) -> list[Row]:
        """Return the messages that may be given out."""
        waiting = {row.subqueue.group for row in self.rows.values() if row.until_ms > self.now_ms}
        free = [row for row in self.rows.values() if row.until_ms <= self.now_ms]
        if not self.fifo:
            return free
        heads: dict[Subqueue, Row] = {}
        for row in sorted(free, key=lambda one: one.n):
            if row.subqueue.group not in waiting:
                heads.setdefault(row.subqueue, row)
        return list(heads.values())

    def push(self) -> None:
        rank = 255 if self.fifo else self.rng.choice((0, 200, 255))
        row = Row(self.next(), Subqueue(rank, self.rng.choice((b"", b"a", b"b", b"c"))))
        self.rows[row.n] = row
        if not self.fifo and self.rng.random() < 0.2:
            row.until_ms = self.now_ms + 40
            self.state.load_lease(row.n, LeaseCell(row.until_ms, 0, 0, row.subqueue))
        else:
            self.state.push(row.subqueue, row.n)

    def pop(self) -> Touched | None:
        self.fill()
        allowed = self.ready()
        lease = self.next()
        found = self.state.pop(lease, self.now_ms + LEASE_MS)
        if found is None:
            assert not allowed
            return None
        row = self.rows[found.n]
        assert row in allowed
        assert row.subqueue.rank == min(one.subqueue.rank for one in allowed)
        assert row.n == min(one.n for one in allowed if one.subqueue == row.subqueue)
        row.attempts, row.lease, row.until_ms = row.attempts + 1, lease, self.now_ms + LEASE_MS
        assert (found.attempts, found.subqueue) == (row.attempts, row.subqueue)
        return found

    def settle(self) -> None:
        row = self.rng.choice(list(self.rows.values()))
        lease = self.rng.choice((row.lease, row.lease - 1))
        what = self.rng.choice(("commit", "rollback", "put off", "extend"))
        found = self.state.find_leased(row.n, lease, self.now_ms, may_have_ended=what == "commit")
        is_given = 0 < row.lease == lease
        assert (found is not None) == (is_given and (what == "commit" or row.until_ms > self.now_ms))
        if found is None:
            return
        if what == "commit":
            self.state.forget_message(found)
            del self.rows[row.n]
        elif what == "extend":
            row.until_ms = self.now_ms + 90
            self.state.extend(found, row.until_ms)
        else:
            row.until_ms, row.lease = self.now_ms + self.rng.choice((0, 20)), 0
            row.attempts -= what == "put off"
            self.state.end_lease(found, following(found.cell, what, row.until_ms, b"e"))

    def step(self) -> None:
        kind = self.rng.random()
        if kind < 0.35:
            self.push()
        elif kind < 0.65:
            self.pop()
        elif kind < 0.95 and self.rows:
            self.settle()
        elif kind > 0.98:
            self.state = self.fresh()
        self.pass_time()
        self.state.check_invariants()


@pytest.mark.parametrize("seed", range(150))
def test_the_state_gives_out_what_a_list_allows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_state, "SUBQUEUE_CACHED", 2)
    monkeypatch.setattr(queue_state, "QUEUE_CACHED", 12)
    monkeypatch.setattr(queue_state, "REFILL_ROWS", 3)
    model = Model(seed)
    for _ in range(300):
        model.step()
    for row in model.rows.values():
        row.until_ms = min(row.until_ms, model.now_ms)
    model.state = model.fresh()
    model.pass_time()
    left = set(model.rows)
    while (found := model.pop()) is not None:
        model.state.forget_message(found)
        del model.rows[found.n]
        left.discard(found.n)
    assert not model.rows


def test_groups_take_turns_beside_a_large_one() -> None:
    state = QueueState(Settings())
    state.is_listed = True
    for n in range(1, 1_001):
        state.push(Subqueue(255, b"large"), n)
    state.push(Subqueue(255, b"small"), 1_001)
    taken = [state.pop(n, 10) for n in range(2_000, 2_003)]
    assert [one.subqueue.group for one in taken if one is not None] == [b"large", b"small", b"large"]


def test_a_full_memory_keeps_the_first_message_of_each_subqueue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_state, "QUEUE_CACHED", 50)
    state = QueueState(Settings())
    state.is_listed = True
    for n in range(1, 1_001):
        state.push(Subqueue(255, b"%d" % (n % 20)), n)
    state.check_invariants()
    counts = Counter(state.pop(5_000 + n, 10).subqueue.group for n in range(20))  # type: ignore[union-attr]
    assert set(counts.values()) == {1}


def test_no_more_leases_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_state, "QUEUE_LEASES", 3)
    state = QueueState(Settings())
    state.is_listed = True
    for n in range(1, 6):
        state.push(Subqueue(255, b""), n)
    taken = [state.pop(10 + n, 100) for n in range(4)]
    assert taken[3] is None
    assert taken[0] is not None
    state.end_lease(taken[0], following(taken[0].cell, "rollback", 50, b""))
    assert state.end_waits(50) == []
    again = state.pop(20, 100)
    assert again is not None
    assert (again.n, again.attempts) == (1, 2)

"""Operations on one row, and on a group of rows, are linearizable: each takes effect between its call and its answer.

Clients put, delete, check, count, append and read a few rows, by each method of the API, and note the moments of calls
and answers and the answers.  In a table with groups of rows (``grouped``) they also change and read several rows of a
group, and make transactions; the object that is judged is the group then, so half of a step has no place in any order.
After each window of WINDOW_CALLS calls all clients stop, every object is read once more, and its history is judged
(``linearizability``).  The next window begins with the objects as they are, so a run of any length needs the memory of
one window.

A call that was cut off by a kill may have been done or not, but not after the next process serves.  The
first window begins with empty rows; a window knows that its rows are what the last one left, so what a
restart loses or brings back between two windows is seen as well.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from columnar.client import Append, Delete, Expect, Increment, Put
from tests.proofs.asking import AnyCall, Asking, Lost, Refused, until_answered
from tests.proofs.crew import work_together
from tests.proofs.linearizability import NO_ANSWER, Event, Judgement, Step, judge
from tests.proofs.row_semantics import EMPTY, Call, Change, Operation, Read, step
from tests.proofs.verdict import Plan, Tell, Verdict

TABLE: Final = b"linearizable"
FAMILIES: Final = {"f": {"max_versions": 1}, "g": {"max_versions": 3}}
ROWS: Final = tuple(b"row-%02d" % n for n in range(24))
FEWEST_ROWS: Final = 3
CLIENTS_OF_ROW: Final = 3  # on average: what judging a history costs grows exponentially with it
VALUES: Final = (b"f:a", b"g:b")
COUNTERS: Final = (b"f:n", b"g:n")
LOG: Final = b"g:log"
DIFFERENT: Final = 4  # values of a column: few, so that checks often hold
WINDOW_CALLS: Final = 120  # of each client
WINDOW_S: Final = 30.0  # at most, where a kill comes between
SHOWN: Final = 12  # calls of a history that is wrong


def split_row(rng: random.Random) -> bytes:
    return rng.choice(ROWS[:FEWEST_ROWS])


def random_call(rng: random.Random, token: bytes) -> Call:
    """Return a random call; ``token`` is unique and goes into appends."""
    chance = rng.random()
    column, value = rng.choice(VALUES), b"v%d" % rng.randrange(DIFFERENT)
    if chance < 0.35:
        return _random_read(rng)
    if chance < 0.50:
        columns = VALUES if rng.random() < 0.5 else (column,)
        return Change(tuple(Put(one, value) for one in columns), way=rng.choice(("put", "put", "mutateRows")))
    if chance < 0.60:
        return Change((Increment(rng.choice(COUNTERS), rng.choice((1, 1, 1, 5, -2))),), way="atomicIncrement")
    if chance < 0.65:
        return Change((Append(LOG, token),), way="append")
    if chance < 0.72:
        return Change((Delete(rng.choice((*VALUES, *COUNTERS, LOG, LOG))),), way="delete")
    if chance < 0.75:
        return Change((Delete(b"f"), Delete(b"g")), way="deleteAllRow")
    if chance < 0.87:
        expected = Expect.absent(column) if rng.random() < 0.3 else Expect(column, b"v%d" % rng.randrange(DIFFERENT))
        return Change((Put(rng.choice(VALUES), value),), (expected,), way="checkAndPut")
    return _random_check(rng, column, value)


def _random_read(rng: random.Random) -> Read:
    way = rng.choice(("row", "row", "rows", "scan", "cells"))
    if way == "cells":
        return Read((rng.choice((*VALUES, *COUNTERS, LOG)),), way)
    return Read((), way) if rng.random() < 0.5 else Read(tuple(rng.sample((*VALUES, *COUNTERS, LOG), 2)), way)


def _random_check(rng: random.Random, column: bytes, value: bytes) -> Change:
    conditions = [Expect(column, b"v%d" % rng.randrange(DIFFERENT), rng.choice(("=", "!=")))]
    if rng.random() < 0.3:
        conditions.append(Expect(rng.choice(COUNTERS), None, rng.choice(("exists", "absent"))))
    operations: list[Operation] = [Put(column, value)]
    if rng.random() < 0.5:
        operations.append(Increment(rng.choice(COUNTERS)))
    if rng.random() < 0.3:
        operations.insert(0, Delete(rng.choice((b"f", b"g:b", LOG))))
    return Change(tuple(operations), tuple(conditions), way="checkAndMutate")


@dataclass(frozen=True, slots=True)
class Game:
    """What clients do with each object, a row or a group of rows, and what it means."""

    name: str
    objects: tuple[bytes, ...]
    random_call: Callable[[random.Random, bytes, bytes], AnyCall]  # on an object, with a token that is unique
    step: Step
    read_all: Callable[[], AnyCall]


def _call_on_row(rng: random.Random, _row: bytes, token: bytes) -> Call:
    return random_call(rng, token)


ROWS_GAME: Final = Game("linearizability", ROWS, _call_on_row, step, Read)


class Clock:
    """A counter shared by all threads, because ``next`` of a count is one step of the interpreter."""

    def __init__(self) -> None:
        self._count = itertools.count()

    def tick(self) -> int:
        return next(self._count)


@dataclass
class RowClient:
    """A client that makes calls and notes them; ``noted`` has the calls of the current window."""

    asking: Asking
    number: int
    rng: random.Random
    clock: Clock
    rows: tuple[bytes, ...] = ROWS[:FEWEST_ROWS]
    game: Game = ROWS_GAME
    noted: list[tuple[bytes, Event]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def window(self, stop: threading.Event) -> None:
        for _ in range(WINDOW_CALLS):
            if stop.is_set():
                return
            row = self.rng.choice(self.rows)
            self.one(row, self.game.random_call(self.rng, row, b"%d.%d " % (self.number, self.rng.randrange(1000))))

    def one(self, row: bytes, call: AnyCall) -> None:
        began = self.clock.tick()
        try:
            answer: object = self.asking.perform(row, call)
        except Lost:
            answer = NO_ANSWER
        except Refused:
            self.counts["refused"] += 1
            return
        event = Event(began, self.clock.tick(), call, answer, f"client {self.number}")
        self.counts["cut off by a kill" if answer is NO_ANSWER else call.way] += 1
        if answer is not NO_ANSWER or call.changes:
            self.noted.append((row, event))


@dataclass
class Windows:
    """The judge of all rows, window after window; ``starts`` has the possible states at the next window's beginning."""

    verdict: Verdict
    starts: dict[bytes, Iterable[Hashable]]
    step: Step = step
    judged: int = 0
    windows: int = 0
    longest_s: float = 0.0

    def judge(self, noted: list[tuple[bytes, Event]]) -> None:
        self.windows += 1
        for row, starts in list(self.starts.items()):
            history = [event for held, event in noted if held == row]
            begun = time.monotonic()
            found = judge(history, self.step, starts)
            self.longest_s = max(self.longest_s, time.monotonic() - begun)
            self.judged += len(history)
            if found.is_linearizable:
                self.starts[row] = found.final_states
            else:
                self.verdict.add(told(row, self.windows, history, found))
                # Whatever it is now: the last read of the window says so, and the next window is judged by itself.
                self.starts[row] = (max(history, key=lambda event: event.ended).answer,)


def told(row: bytes, window: int, history: list[Event], found: Judgement) -> str:
    stuck = found.stuck_at
    assert stuck is not None, "it is wrong somewhere"
    if not found.is_decided:
        return f"{row.decode()}, window {window}: too many calls at once to decide, at {stuck}"
    before = sorted((event for event in history if event.ended <= stuck.ended), key=lambda event: event.ended)
    lines = [f"{row.decode()}, window {window}: nothing explains {stuck}"]
    lines += [f"  possible before its end: {dict(state)}" for state in list(found.states)[:SHOWN]]  # type: ignore[call-overload]
    lines += [f"  under way: {event}" for event in found.under_way if event != stuck]
    lines += [f"  before: {event}" for event in before[-SHOWN - 1 : -1]]
    return "\n".join(lines)


def prove(connect: Callable[[], Asking], plan: Plan, tell: Tell, game: Game = ROWS_GAME) -> Verdict:
    verdict, clock = Verdict(game.name, needed=("calls judged",)), Clock()
    rows = game.objects[: max(FEWEST_ROWS, plan.writers // CLIENTS_OF_ROW)]
    seeds = [random.Random(f"row client {plan.seed} {n}") for n in range(plan.writers)]
    clients = [RowClient(connect(), n, rng, clock, rows, game) for n, rng in enumerate(seeds)]
    windows = Windows(verdict, dict.fromkeys(rows, (EMPTY,)), game.step)
    begun = time.monotonic()
    try:
        while True:
            left_s = plan.seconds - (time.monotonic() - begun)
            if left_s <= 0:
                break
            work_together([client.window for client in clients], min(WINDOW_S, left_s), lambda: None)
            for row in rows:
                until_answered(lambda row=row: _read_all(clients[0], row))
            windows.judge([noted for client in clients for noted in client.noted])
            for client in clients:
                client.noted.clear()
            tell(f"{windows.judged:,} calls judged in {windows.windows:,} windows")
    finally:
        for client in clients:
            client.asking.close()
    verdict.done, verdict.seconds = windows.judged, time.monotonic() - begun
    counts = sum((client.counts for client in clients), Counter[str]())
    verdict.counts = {
        "calls judged": windows.judged,
        "windows": windows.windows,
        "longest judgement, ms": round(1_000 * windows.longest_s),
        **dict(sorted(counts.items())),
        "histories that nothing explains": len(verdict.problems) + verdict.more_problems,
    }
    return verdict


def _read_all(client: RowClient, row: bytes) -> None:
    """Read the row until an answer comes, and note the read as the window's last call on the row."""
    noted = len(client.noted)
    client.one(row, client.game.read_all())
    if len(client.noted) == noted:
        raise Lost("not answered")

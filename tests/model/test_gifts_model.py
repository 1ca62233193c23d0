"""Contributions of changes to totals, over random yields, checkpoints, barriers and kills: totals equal the yields.

The worker's side is the real code (with slices cut at random), and so are the cursor, the conversion of effects into
mutations and the arithmetic of members.  A kill comes at any write of a slice, between the writes and the checkpoint,
or after the checkpoint and before the cursor is saved; the saved cursor may be old.  Writes of a run that is over may
arrive late.  Each history is made from one seed, which it prints.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from columnar.flows.delivery_cursor import Cursor, pack_cursor, unpack_cursor
from columnar.flows.delivery_state import LONGEST_PAUSE_S, Delivery, DeliveryState
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.flows.effects import writes_of
from columnar.model import contribution
from columnar.model.contribution import Member, differences, follow, pack, unpack
from columnar.model.effect import Barrier, Checkpoint, Contribute, Effect, Put, Tally
from columnar.model.mutation import Contribute as Contribution
from columnar.model.mutation import RowMutation
from columnar.regions.log.change_record import Sequence
from columnar.triggers import slices
from columnar.triggers.api import Later
from columnar.triggers.slices import Call, Function
from tests.support.seeds import seed

SEED = seed(20261125)
HISTORIES = 400
TARGETS = (b"x", b"y")
SOURCE_ROWS = (b"p", b"q")
MOST_KILLS = 12
Step = Effect | str  # "later", "fails": at the first time that a run comes there


class Killed(Exception):
    pass


class Stored:
    """The rows of totals, as the store keeps them."""

    def __init__(self) -> None:
        self.members: dict[tuple[bytes, bytes, bytes], bytes] = {}
        self.totals: Counter[tuple[bytes, bytes]] = Counter()

    def apply(self, mutation: RowMutation) -> None:
        (said,) = mutation.operations
        if not isinstance(said, Contribution):
            return
        place = (mutation.row, said.family, said.source)
        held = unpack(self.members[place]) if place in self.members else None
        member = follow(held, said, 1)
        if member is not None:
            for total, difference in differences(held, member):
                self.totals[mutation.row, total] += difference
            self.members[place] = pack(member)

    def shown(self) -> dict[tuple[bytes, bytes], int]:
        return {place: total for place, total in self.totals.items() if total}


class World:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.steps: dict[Sequence, list[Step]] = {}
        self.rows: dict[Sequence, bytes] = {}
        self.stored = Stored()
        self.state = DeliveryState(None)
        self.saved: list[bytes] = []
        self.met: set[tuple[Sequence, int]] = set()  # troubles that a run had: they come once
        self.late: list[list[RowMutation]] = []  # of runs that were killed, in the order of each
        self.kills = 0
        self.seen: Counter[str] = Counter()
        for number in range(1, rng.randrange(2, 5)):
            sequence = Sequence(7, 1, number)
            self.rows[sequence] = rng.choice(SOURCE_ROWS)
            self.steps[sequence] = [self._step(at) for at in range(rng.randrange(14))]

    def _step(self, at: int) -> Step:
        row, rng = self.rng.choice(TARGETS), self.rng
        kind = rng.random()
        if kind < 0.35:
            return Tally("t", row, {rng.choice([b"n:a", b"n:b"]): rng.randrange(-2, 5)})
        if kind < 0.5:
            amounts = None if rng.random() < 0.3 else {rng.choice([b"n:c", b"n:d"]): rng.randrange(1, 9)}
            return Contribute("t", row, amounts, source=b"of " + row)
        if kind < 0.6:
            return Put("t", row, {b"f:v": b"1"})
        if kind < 0.8:
            return Checkpoint(b"%d" % (at + 1))
        return Barrier() if kind < 0.93 else rng.choice(["later", "fails", Checkpoint(b"")])

    def function(self, sequence: Sequence, progress: bytes) -> Iterator[Effect]:
        for at, step in enumerate(self.steps[sequence]):
            if at < int(progress or b"0"):
                continue
            if isinstance(step, Effect):
                yield step
            elif (sequence, at) not in self.met:
                self.met.add((sequence, at))
                self.seen[step] += 1
                raise Later(0) if step == "later" else ValueError("as told")

    # --- the store ---------------------------------------------------------------------------------

    def deliver(self, one: Delivery) -> None:
        """Run the change, slice by slice.  Raises Killed."""
        token = one.sequence.token
        change = [b"s", one.row, 7, token, [], None, None, 1, False, 5, 0, None, None, False]
        call = Call([1, "t", "m:f", 8, [change], [one.progress, one.part] if one.progress else None, False, ""])
        self.seen["behind a part"] += one.part > 0
        function = Function(lambda asked: self.function(one.sequence, asked.progress), wants_client=False)
        giver = Giver("t")
        what = "more"
        while what == "more":
            _, what, effects, _, _, checkpoint, *_ = call.run(lambda _: function, lambda: None)  # type: ignore[arg-type, return-value]
            plain = [list(effect) for effect in effects]
            writes = writes_of(plain, 7, 0, lambda: ChangeContributions(giver, one.row, one.sequence))
            self.write([mutation for _, mutation in writes])
            if checkpoint is not None:
                self.state.came_to(one.sequence, *checkpoint)
            self.perhaps_save()
            self.perhaps_killed("behind a slice")
        if what == "done":
            self.state.done(one.sequence)
        elif what == "later":
            self.state.put_off([one.sequence], 0.0)
        else:
            assert not self.state.fail_change(one.sequence, "as told", 0.0, 1_000)

    def write(self, mutations: list[RowMutation]) -> None:
        for at, mutation in enumerate(mutations):
            try:
                self.perhaps_killed("within a slice")
            except Killed:
                self.late.append(mutations[at:])
                raise
            self.stored.apply(mutation)
        if mutations and self.rng.random() < 0.1:
            self.late.append(mutations)  # an outcome was unknown: they were written again

    def perhaps_killed(self, where: str) -> None:
        if self.kills < MOST_KILLS and self.rng.random() < 0.08:
            self.kills += 1
            self.seen[where] += 1
            raise Killed

    def perhaps_save(self) -> None:
        if self.rng.random() < 0.5:
            self.saved.append(pack_cursor(self.state.cursor()))

    def come_late(self) -> None:
        if self.late and self.rng.random() < 0.5:
            for mutation in self.late.pop(self.rng.randrange(len(self.late))):
                self.stored.apply(mutation)

    def restart(self, one: Delivery) -> None:
        """Restart from the last saved cursor after a kill of the store; a kill of the worker alone keeps the state."""
        if self.rng.random() < 0.3:
            self.state.requeue_changes([one.sequence])
            return
        cursor = unpack_cursor(self.saved[-1]) if self.saved else Cursor(None, ())
        self.state = DeliveryState(cursor.read_to)
        held = {one.sequence: one for one in cursor.progress}
        for sequence, attempts in cursor.open:
            _, state, part = held.get(sequence, (sequence, b"", 0))
            self.state.read_change(sequence, self.rows[sequence], attempts, state, part)

    def play(self) -> None:
        while True:
            for sequence, row in self.rows.items():
                if self.state.read_to is None or sequence > self.state.read_to:
                    self.state.read_change(sequence, row)
            one = self.state.take(LONGEST_PAUSE_S + 1)
            if one is None:
                break
            try:
                self.deliver(one)
            except Killed:
                self.restart(one)
            self.perhaps_save()
            self.come_late()
        while self.late:
            self.come_late()

    def expected(self) -> dict[tuple[bytes, bytes], int]:
        """Return the expected totals: tallies of each change, and the last contribution of each source."""
        found: Counter[tuple[bytes, bytes]] = Counter()
        for step in (step for steps in self.steps.values() for step in steps):
            if isinstance(step, Tally):
                found.update({(step[2], total): amount for total, amount in step[3].items()})
        for row in TARGETS:
            found.update({(row, total): amount for total, amount in (self._last(row) or {}).items()})
        return {place: total for place, total in found.items() if total}

    def _last(self, row: bytes) -> dict[bytes, int] | None:
        """Return the amounts that count: all changed rows give from one source here, so the last change wins."""
        last: dict[bytes, int] | None = None
        for steps in self.steps.values():
            of_part: list[Any] = []
            for step in (*steps, Checkpoint(b"end")):
                if isinstance(step, Contribute) and step[2] == row:
                    of_part.append(step[3])
                elif isinstance(step, Barrier) or (isinstance(step, Checkpoint) and step.state):
                    last = next((one for one in of_part if one is not None), None) if of_part else last
                    of_part = []
        return last


def is_refused(steps: list[Step]) -> bool:
    """Return whether the steps are refused, because two Contributes of one part give different amounts."""
    given: dict[bytes, Any] = {}
    for step in steps:
        if isinstance(step, Contribute) and step[3] is not None:
            if given.setdefault(step[2], step[3]) != step[3]:
                return True
        elif isinstance(step, Barrier) or (isinstance(step, Checkpoint) and step.state):
            given = {}
    return False


def history(number: int) -> World:
    print(f"seed {number}")
    rng = random.Random(number)
    world = World(rng)
    for sequence, steps in world.steps.items():
        while is_refused(steps):
            steps.pop()
        world.steps[sequence] = steps
    world.play()
    return world


@pytest.fixture(autouse=True)
def _cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make slices end at random."""
    rng = random.Random(SEED)
    monkeypatch.setattr(slices, "perf_counter", lambda: rng.random() * 0.05)


def test_totals_are_what_was_yielded_whatever_is_killed() -> None:
    seen: Counter[str] = Counter()
    for number in range(SEED, SEED + HISTORIES):
        world = history(number)
        assert world.stored.shown() == world.expected(), f"seed {number}: {world.steps}"
        seen.update(world.seen)
    kinds = ("behind a part", "within a slice", "behind a slice", "later", "fails")
    assert min(seen[kind] for kind in kinds) > 50, seen


def test_without_parts_totals_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(held: Member | None, said: Contribution, now_ms: int) -> Member | None:
        return contribution.follow(held, Contribution(*said.fields[:-1]), now_ms)

    monkeypatch.setattr("tests.model.test_gifts_model.follow", without)
    wrong = [
        number for number in range(SEED, SEED + 30) if (world := history(number)).stored.shown() != world.expected()
    ]
    assert wrong

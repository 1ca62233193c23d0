"""Batches over random histories: whatever is halved, named, lost or repeated, derived cells follow from the rows.

Changes of a few rows have times in any order, so that stamps of different rows are independent.  A function takes
batches and derives from each change its own cell.  Runs fail for poisonous changes, workers die, cursors go back to the
last that was saved, effects of runs whose outcome is lost may be written later.  Each history is made from one seed,
which it prints.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from columnar.flows.delivery_cursor import pack_cursor, unpack_cursor
from columnar.flows.delivery_state import LONGEST_PAUSE_S, Delivery, DeliveryState
from columnar.regions.log.change_record import Sequence
from tests.support.seeds import seed

SEED = seed(20261124)
HISTORIES = 300
ATTEMPTS = 3
MOST = 8


@dataclass(frozen=True)
class Logged:
    row: bytes
    stamp: int
    value: int
    is_poison: bool


class World:
    """A log, its delivery state, a table derived from it, and a function that fails for poisonous changes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now_s = rng, 0.0
        self.log: dict[Sequence, Logged] = {}
        self.derived: dict[bytes, tuple[int, int]] = {}  # stamp and value
        self.dead: set[Sequence] = set()
        self.late: list[Sequence] = []  # effects of runs that were lost: they are written at any time, or never
        self.state = DeliveryState(None, bound=64)
        self.saved = b""
        self.batches: list[list[Delivery]] = []  # in flight
        self.seen: Counter[str] = Counter()

    def write(self) -> None:
        row = b"row-%d" % self.rng.randrange(5)
        earlier = max((one.stamp for one in self.log.values() if one.row == row), default=0)
        stamp = max(earlier + 1, self.rng.randrange(1_000))  # rises within a row, and jumps ahead of the others
        number = len(self.log) + 1
        self.log[Sequence(1, 1, number)] = Logged(row, stamp, number, self.rng.random() < 0.05)

    def fill(self) -> None:
        for sequence, one in self.log.items():
            if self.state.room > 0 and (self.state.read_to is None or sequence > self.state.read_to):
                self.state.read_change(sequence, one.row)

    def take(self) -> None:
        found = self.state.take_batch(self.now_s, self.rng.choice((1, 3, MOST)))
        if not found:
            return
        self.seen["batches"] += len(found) > 1
        rows: dict[bytes, list[Sequence]] = {}
        for one in found:
            rows.setdefault(one.row, []).append(one.sequence)
        for row, sequences in rows.items():
            self.seen["several of a row"] += len(sequences) > 1
            still_open = [s for s, _ in self.state.cursor().open if self.log[s].row == row]
            assert sequences == still_open[: len(sequences)], "the oldest open changes of the row, in order"
            assert row not in {other.row for batch in self.batches for other in batch}, "a row is in one batch"
        self.batches.append(found)

    def end(self) -> None:
        """Let a worker answer for one of its batches."""
        if not self.batches:
            return
        batch = self.batches.pop(self.rng.randrange(len(self.batches)))
        sequences = [one.sequence for one in batch]
        poison = [one for one in batch if self.log[one.sequence].is_poison]
        if self.rng.random() < 0.1:  # it was in a worker that died
            self.late += [] if poison else sequences
            self.state.requeue_changes(sequences)
        elif self.rng.random() < 0.05:
            self.state.put_off(sequences, self.now_s + 0.5)
        elif not poison:
            for sequence in sequences:
                self.apply(sequence)
                self.state.done(sequence)
        elif len(batch) == 1:
            self.failed(batch[0], "alone")
        elif self.rng.random() < 0.5:
            self.seen["named"] += 1
            by_sequence = {one.sequence: one for one in batch}
            for sequence, why in self.state.named(sequences, {one.sequence: "named" for one in poison}):
                self.failed(by_sequence[sequence], why)
        else:
            self.seen["halved"] += 1
            self.state.halved(sequences)

    def failed(self, one: Delivery, why: str) -> None:
        assert self.log[one.sequence].is_poison, "nobody else is blamed"
        self.seen[why] += 1
        if self.state.fail_change(one.sequence, why, self.now_s, ATTEMPTS):
            assert one.attempt == ATTEMPTS
            self.dead.add(one.sequence)
            self.state.given_up(one.sequence)

    def apply(self, sequence: Sequence) -> None:
        """Apply an effect, which bears the stamp of its own change."""
        one = self.log[sequence]
        if one.stamp >= self.derived.get(one.row, (0, 0))[0]:
            self.derived[one.row] = one.stamp, one.value

    def come_late(self) -> None:
        if self.late:
            self.apply(self.late.pop(self.rng.randrange(len(self.late))))

    def save(self) -> None:
        self.saved = pack_cursor(self.state.cursor())

    def crash(self) -> None:
        """Restart from the last saved cursor, or none, with its attempts and batch sizes."""
        for batch in self.batches:
            sequences = [one.sequence for one in batch]
            self.late += [] if any(self.log[sequence].is_poison for sequence in sequences) else sequences
        self.batches.clear()
        if not self.saved:
            self.state = DeliveryState(None, bound=64)
            return
        cursor = unpack_cursor(self.saved)
        self.state = DeliveryState(cursor.read_to, bound=64)
        for sequence, attempts in cursor.open:
            self.state.read_change(sequence, self.log[sequence].row, attempts)

    def drain(self) -> None:
        for _ in range(40 * len(self.log) + 200):
            self.fill()
            self.now_s += LONGEST_PAUSE_S + 1
            self.take()
            self.end()
            self.state.check_invariants()
            if not self.state.open_count and self.state.read_to == max(self.log, default=None):
                return
        raise AssertionError("it goes on for ever")


def expected(world: World) -> dict[bytes, tuple[int, int]]:
    """Return the last change of each row that is not poisonous."""
    good = [one for one in world.log.values() if not one.is_poison]
    return {one.row: (one.stamp, one.value) for one in sorted(good, key=lambda one: one.stamp)}


def history(number: int) -> World:
    print(f"seed {number}")
    rng = random.Random(number)
    world = World(rng)
    steps = [world.write] * 8 + [world.fill] * 2 + [world.take] * 4 + [world.end] * 4
    steps += [world.save, world.come_late, world.crash]
    for _ in range(150):
        if rng.random() < 0.1:
            world.now_s += rng.choice((0.05, 0.3, 1.0))
        rng.choice(steps)()
        world.state.check_invariants()
    world.drain()
    while world.late:
        world.come_late()
    return world


def test_derived_cells_are_what_the_rows_say() -> None:
    seen: Counter[str] = Counter()
    for number in range(SEED, SEED + HISTORIES):
        world = history(number)
        assert world.derived == expected(world)
        seen.update(world.seen)
    assert min(seen[kind] for kind in ("batches", "several of a row", "halved", "named", "alone")) > 100, seen


def test_one_stamp_for_a_whole_batch_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest stamp of a batch is of a different row, so a later change of this row would count as older."""

    def with_the_highest(world: World, sequence: Sequence) -> None:
        one, stamp = world.log[sequence], max(world.log[other].stamp for other in list(world.log)[: sequence.n])
        if stamp >= world.derived.get(one.row, (0, 0))[0]:
            world.derived[one.row] = stamp, one.value

    monkeypatch.setattr(World, "apply", with_the_highest)
    wrong = 0
    for number in range(SEED, SEED + 20):
        world = history(number)
        wrong += {row: value for row, (_, value) in world.derived.items()} != {
            row: value for row, (_, value) in expected(world).items()
        }
    assert wrong


@pytest.mark.parametrize("size", [2, 3, 100, 1_000])
def test_a_poisonous_change_ends_alone_after_few_runs(size: int) -> None:
    state = DeliveryState(None)
    for number in range(1, size + 1):
        state.read_change(Sequence(1, 1, number), b"%04d" % number)
    runs, others = 0, size - 1
    while others:
        batch = state.take_batch(0.0, size)
        runs += 1
        sequences = [one.sequence for one in batch]
        if Sequence(1, 1, 2) not in sequences:
            for sequence in sequences:
                state.done(sequence)
            others -= len(sequences)
        elif len(batch) > 1:
            state.halved(sequences)
        else:
            assert batch[0].attempt == 1, "no attempt was counted before"
            assert not state.fail_change(sequences[0], "poison", 0.0, 2)
    assert runs <= 2 * size.bit_length() + 3
    assert state.open_count == 1

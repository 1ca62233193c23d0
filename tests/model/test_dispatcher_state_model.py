"""The dispatcher's state under random events: every change ends once, in the order of its row.

Workers answer, hang, fall silent and die; effects are refused; triggers, regions and modules pause; an exception may
interrupt any event.  At the end no more faults happen, and every change must end.  Each run is made from one seed.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from columnar.errors import HostError, IllegalArgument
from columnar.flows.delivery_state import Delivery, DeliveryState
from columnar.flows.figures import Figures
from columnar.model.trigger_registration import Registration
from columnar.regions.log.change_record import Sequence, SequenceRange
from columnar.triggers.delivery_source import DeliverySource
from columnar.triggers.dispatcher_state import DONE, MORE, DispatcherState
from columnar.triggers.instructions import Outcome
from columnar.triggers.pool_state import Pool
from columnar.triggers.worker_state import RUNNING, Call, CallChanges, Origin, WorkerSlot
from tests.support.deep import seeds
from tests.support.seeds import seed

SEEDS = range(seeds("seeds of the dispatcher", deep=40, short=12))
STEPS = 1_500
ROWS = [b"%d" % n for n in range(12)]
REGISTRATIONS = [
    Registration("plain", "t", "m:f", ("f",), attempts=3),
    Registration("alone", "t", "m:f", ("f",), attempts=2, side_by_side=1),
    Registration("batch", "t", "n:f", ("f",), attempts=3, batch=5, within_ms=20),
    Registration("own", "t", "o:f", ("f",), attempts=4, process="own", rate="200/s"),
]


class World:
    def __init__(self, number: int) -> None:
        self.rng = random.Random(number)
        self.now_s = 100.0
        self.state = DispatcherState(Figures())
        self.state.pool_of("")
        self.up: set[WorkerSlot] = set()
        self.resting: dict[int, Call] = {}
        self.is_kind = False  # nothing more goes wrong
        self.count = 0
        self.written: dict[tuple[DeliverySource, Sequence], bytes] = {}
        self.ended: dict[tuple[DeliverySource, Sequence], str] = {}
        self.sources = [DeliverySource(one, DeliveryState(None, bound=200)) for one in REGISTRATIONS for _ in range(2)]

    # --- the shell -----------------------------------------------------------------------------------

    def write(self) -> None:
        source = self.rng.choice(self.sources)
        if source.state.room > 0:
            self.count += 1
            sequence, row = Sequence(1, 1, self.count), self.rng.choice(ROWS)
            self.written[source, sequence] = row
            source.state.read_change(sequence, row)
            source.note_read(1, self.now_s)
            self.advance(source)

    def advance(self, source: DeliverySource) -> None:
        if not self.state.pauses.cover(source):
            self.state.queue(source, self.now_s)

    def deliver(self) -> None:
        for pool in list(self.state.pools.values()):
            while (
                pool.main in self.up and pool.main.has_room and (turn := pool.fair.take_slice(self.now_s)) is not None
            ):
                if turn.begins:
                    call = pool.begin_call(turn, self.now_s)
                    if call is not None:
                        self.send(pool, call)
                    assert isinstance(turn.key, DeliverySource)
                    if not self.state.line_up_again(turn.key, self.now_s):
                        self.advance(turn.key)
                else:
                    assert isinstance(turn.key, Call)
                    pool.begin_slice(turn.key, self.now_s)
            if pool.suspects and not pool.quarantine.calls and pool.quarantine in self.up:
                suspect = pool.begin_suspect()
                if suspect is not None:
                    self.send(pool, suspect)
            pool.plan_timers(self.now_s)

    def send(self, pool: Pool, call: Call) -> None:
        deliveries = call.open_deliveries
        for delivery in deliveries:
            self.check_order(call.source, delivery, deliveries)
        changes = CallChanges([], [], [], [], 0, [])
        for at, delivery in enumerate(deliveries):
            fate = 1.0 if self.is_kind else self.rng.random()
            if fate < 0.01:
                changes.damaged.append((delivery, "damaged"))
            elif fate < 0.02:
                changes.rest.extend(deliveries[at:])
                break
            else:
                changes.kept.append(delivery)
                changes.origins.append(Origin(at, 0))
        if changes.rest and not changes.kept:
            changes.kept.append(changes.rest.pop(0))
            changes.origins.append(Origin(0, 0))
        if not self.is_kind and self.rng.random() < 0.02:
            self.state.refuse_call(call, "it cannot be read", self.now_s)
            return
        admitted = self.state.admit_call(call, changes._replace(size_bytes=10 * len(changes.kept)), self.now_s)
        if admitted is not None:
            pool.send_call(admitted, self.now_s)

    def check_order(self, source: DeliverySource, delivery: Delivery, together: list[Delivery]) -> None:
        """Check that every earlier change of the row has ended, or precedes the change in the same batch."""
        assert (source, delivery.sequence) not in self.ended
        earlier = [one for (whose, one), row in self.written.items()
                   if whose is source and row == delivery.row and one < delivery.sequence]  # fmt: skip
        batch = [one.sequence for one in together]
        for one in earlier:
            assert (source, one) in self.ended or one in batch[: batch.index(delivery.sequence)]

    def carry_out(self) -> None:
        todo = self.state.instructions
        todo.lines.clear()
        todo.failures.clear()
        for slot, kind, number in todo.slices:
            assert slot.calls[number].stage == RUNNING
            assert kind == ("drop" if slot.calls[number].is_abandoned else "go")
        todo.slices.clear()
        for slot, _ in todo.ending:
            if slot in self.up:
                self.die(slot)
        todo.ending.clear()
        todo.given_up.clear()
        for module, why in todo.imports:
            self.state.pauses.untrusted[module] = why
        todo.imports.clear()
        for source, _ in todo.take_moved():
            self.note_ends(source)
            self.advance(source)

    def note_ends(self, source: DeliverySource) -> None:
        for whose, sequence in self.written:
            one = SequenceRange(sequence, sequence)
            if whose is source and (source, sequence) not in self.ended and source.state.is_delivered(one):
                self.ended[source, sequence] = "done"

    # --- events --------------------------------------------------------------------------------------

    def die(self, slot: WorkerSlot) -> None:
        self.up.discard(slot)
        self.state.worker_gone(slot, "ended by SIGKILL", self.now_s)

    def start(self) -> None:
        self.up.update(slot for pool in self.state.pools.values() for slot in pool.slots)

    def answer(self) -> None:
        calls = [(slot, call) for slot in self.up for call in slot.calls.values() if call.stage == RUNNING]
        if not calls:
            return
        slot, call = self.rng.choice(calls)
        open_count = len(call.open_deliveries)
        if call.is_run and self.rng.random() < 0.7:
            count = self.rng.randint(1, open_count)
            while any(one is None for one in call.deliveries[call.first : call.first + count]):
                count -= 1
            over = self.state.run_over(slot, call.number, count, count * 1e-5, 0.0, self.now_s)
            for one, first, changes, _ in over:
                deliveries = [each for each in one.deliveries[first : first + changes] if each is not None]
                self.state.retries.apply_effects(Outcome(one, deliveries, DONE, None, "", None))
            return
        whats = [DONE, DONE, MORE, "later"] if self.is_kind else [DONE, MORE, "later", "failed", "blocked", "named"]
        what = self.rng.choice(whats)
        if (what == "named" and not call.source.registration.batch) or (what == MORE and call.used_s > 1.0):
            what = DONE
        used_s = 1.5 if what == MORE else 1e-5
        number = call.number
        ended = self.state.slice_over(slot, number, what, used_s, 0.0, self.now_s)
        if ended is not None:
            errors: dict[str, Any] = {"later": 0.05, "failed": "no", "blocked": "closed", "named": [[0, "no"]]}
            error = errors.get(what)
            checkpoint = [b"half", 0] if what == MORE and not ended.source.registration.batch else None
            taken = Outcome(ended, ended.open_deliveries, what, error, "", checkpoint)
            self.state.retries.apply_effects(taken)
        if slot.is_quarantine:
            self.state.pools[slot.label].end_quarantine()

    def began(self) -> None:
        for slot in self.up:
            for call in list(slot.calls.values()):
                if call.stage == RUNNING and self.rng.random() < 0.3:
                    number = call.number + self.rng.randrange(len(call.deliveries)) if call.is_run else call.number
                    self.state.began(slot, [number], self.now_s)

    def settle(self) -> None:
        applying = list(self.state.retries.applying)
        if applying:
            fate = 1.0 if self.is_kind else self.rng.random()
            error = IllegalArgument("no") if fate < 0.05 else HostError("the disk is full") if fate < 0.1 else None
            outcome = self.rng.choice(applying)
            if error is not None and len(outcome.deliveries) > 1 and not outcome.source.registration.batch:
                self.state.retries.applying.pop(outcome)
                for part in outcome.parts():  # as the shell divides them
                    self.state.retries.apply_effects(part)
                return
            self.state.settle(outcome, error, self.now_s, 1e12 + self.now_s * 1_000)

    def bury(self) -> None:
        letters = self.state.instructions.letters
        if letters:
            letter = letters.pop(0)
            self.ended[letter.source, letter.delivery.sequence] = "dead"
            self.state.retries.end_letter(letter)

    def pass_time(self) -> None:
        self.now_s += self.rng.choice([0.001, 0.05, 1.0, 8.0])
        while (due := self.state.take_due(self.now_s)) is not None:
            due[1]()

    def change_pauses(self) -> None:
        pauses, source = self.state.pauses, self.rng.choice(self.sources)
        match self.rng.randrange(6):
            case 0:
                pauses.triggers.add(source.registration.name)
            case 1:
                self.state.withdraw(source)
            case 2:
                self.state.fail_read(source, "it cannot be read", self.now_s)
            case 3:
                self.state.retries.fill_effects(source.registration.name)
            case _:
                self.end_pauses()

    def end_pauses(self) -> None:
        self.state.pauses.triggers.clear()
        self.state.pauses.untrusted.clear()
        for name in list(self.state.retries.full):
            self.state.retries.free_effects(name)
        for source in self.sources:
            source.resume_region()
            self.advance(source)

    def fault(self) -> None:
        """Let an exception interrupt an event, after which only the sources know the state."""
        label = self.rng.choice(list(self.state.pools))
        self.state.recover(self.state.pools[label], "a fault", self.now_s)

    def step(self) -> None:
        events = [(self.write, 30), (self.deliver, 30), (self.answer, 40), (self.settle, 40), (self.bury, 10),
                  (self.pass_time, 4)]  # fmt: skip
        if not self.is_kind:
            events += [(self.began, 5), (self.change_pauses, 6), (self.start, 5), (self.fault, 1)]
            if self.up:
                events.append((lambda: self.die(self.rng.choice(sorted(self.up, key=id))), 2))
        kinds, weights = zip(*events, strict=True)
        self.rng.choices(kinds, weights)[0]()
        self.carry_out()
        self.state.check_invariants()

    def end_well(self) -> None:
        self.is_kind = True
        for _ in range(20_000):
            if len(self.ended) == len(self.written):
                return
            self.end_pauses()
            self.start()
            for event in (self.deliver, self.answer, self.settle, self.bury, self.pass_time):
                event()
                self.carry_out()
                self.state.check_invariants()
        left = [(whose.registration.name, one) for whose, one in self.written if (whose, one) not in self.ended]
        raise AssertionError(f"these never end: {left}")


@pytest.mark.parametrize("number", SEEDS)
def test_every_change_ends_once_and_in_order(number: int) -> None:
    number += seed(0)
    print(f"seed {number}")
    world = World(number)
    for _ in range(STEPS):
        world.step()
    world.end_well()
    assert world.written
    for pool in world.state.pools.values():
        assert pool.fair.running_count == 0
        assert not pool.main.calls
    for source in world.sources:
        assert source.state.open_count == 0
        assert source.in_flight() == []


def test_all_fates_are_met() -> None:
    ends = set[str]()
    for number in range(5):
        world = World(number)
        for _ in range(STEPS):
            world.step()
        ends |= set(world.ended.values())
    assert ends == {"done", "dead"}

"""(pure) The triggers of a store: what the catalogue has of them, and what an owner of regions works by.

    none --adding--> adding --started--> running <--with_state--> paused
      ^                 |                   |                        |
      '-----------------'------without------'------------------------'

    adding      owners log for it and mark in their regions where it begins; it is delivered nothing
    running     every owner has marked: each change from now on is delivered
    paused      changes wait in the logs

Invariants:
    I1. A trigger is there from the moment its number is given, and goes together with the record that its number is
        removed: the values before and after are one write of the catalogue apart.
    I2. A trigger that cannot be used rests: its name and number stay taken until it is removed.

Knows nothing of who keeps it, and of what a registration asks for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from columnar.errors import TriggerError
from columnar.model.follower_numbers import Numbers
from columnar.model.trigger_registration import Registration

BEGINNING: Final = 0  # of a replay: every row, as one that starts from the beginning is shown them

START: Final = 1

State = Literal["adding", "running", "paused"]
STATES: Final[dict[str, State]] = {"adding": "adding", "running": "running", "paused": "paused"}


@dataclass(frozen=True, slots=True)
class Replay:
    """The operator's request that a trigger sees changes again: each region replays once (``triggers.replaying``)."""

    number: int  # rises with each wish for the trigger; START: it is where a trigger that starts at a time begins
    from_ms: int  # since the epoch, or BEGINNING


@dataclass(frozen=True, slots=True)
class Trigger:
    registration: Registration  # but for its name empty where it cannot be read
    state: State = "running"
    number: int = 0  # 0: of an earlier version
    unusable_reason: str = ""  # why it cannot be used (I2)
    data: bytes = b""  # of a registration that cannot be read, as it is on disk
    replay: Replay | None = None  # the last one

    @property
    def name(self) -> str:
        return self.registration.name

    @property
    def starts(self) -> bool:
        """Its replay is where it begins: what it is shown was never delivered."""
        return self.replay is not None and self.replay.number == START and self.registration.start_ms is not None

    @property
    def is_in_use(self) -> bool:
        return self.state != "adding" and not self.unusable_reason


@dataclass(frozen=True, slots=True)
class Triggers:
    """Constant; a change makes another."""

    all: tuple[Trigger, ...] = ()  # by name, ascending
    numbers: Numbers | None = field(default_factory=Numbers)  # None: the record cannot be read
    numbers_data: bytes = b""  # of a record that cannot be read, as it is on disk

    # --- status ------------------------------------------------------------------------------------

    def find(self, name: str) -> Trigger | None:
        """O(triggers), as all that follows."""
        return next((one for one in self.all if one.name == name), None)

    def known(self, name: str) -> Trigger:
        """A trigger that is in use.  TriggerError: there is none, or it rests."""
        held = self.find(name)
        if held is not None and held.unusable_reason:
            raise TriggerError(f"trigger {name} rests: {held.unusable_reason}; columnar trigger remove {name}")
        if held is None or not held.is_in_use:
            raise TriggerError(f"there is no trigger {name}; columnar trigger list shows those there are")
        return held

    def in_use(self) -> list[Trigger]:
        return [one for one in self.all if one.is_in_use]

    def of_table(self, table: str) -> list[Trigger]:
        """Triggers for the table's changes, those that are being added among them."""
        return [one for one in self.all if one.registration.table == table and not one.unusable_reason]

    def half_made(self) -> list[str]:
        return [one.name for one in self.all if one.state == "adding"]

    def is_removed(self, name: str, number: int) -> bool:
        """Whether the removal of the trigger that began a cursor is recorded (``flows.follower.Kind``)."""
        if number:
            return self.numbers is not None and self.numbers.is_removed(number)
        return self.find(name) is None  # earlier versions recorded nothing else

    # --- changes -----------------------------------------------------------------------------------

    def adding(self, registration: Registration) -> Triggers:
        """With a trigger that is to be; one of its name that rests goes.  TriggerError: no number can be given."""
        freed = self.without([registration.name])
        numbers = freed._readable().with_next()
        start_ms = registration.start_ms
        wish = None if start_ms is None else Replay(START, start_ms)
        return freed._with(Trigger(registration, "adding", numbers.given, replay=wish), numbers)

    def with_registration(self, registration: Registration) -> Triggers:
        held = self.find(registration.name)
        assert held is not None, "only a trigger that is there has settings"
        return self._with(replace(held, registration=registration), self.numbers)

    def with_replay(self, name: str, from_ms: int) -> Triggers:
        held = self.find(name)
        assert held is not None, "only a trigger that is there is shown changes again"
        number = held.replay.number + 1 if held.replay is not None else 1
        return self._with(replace(held, replay=Replay(number, from_ms)), self.numbers)

    def with_state(self, name: str, state: State) -> Triggers:
        held = self.find(name)
        assert held is not None, "only a trigger that is there has a state"
        return self._with(replace(held, state=state), self.numbers)

    def without(self, names: Collection[str]) -> Triggers:
        """TriggerError: their removal cannot be recorded."""
        numbers = self.numbers
        for one in self.all:
            if one.name in names and one.number:
                numbers = (numbers or self._readable()).with_removed(one.number)
        return replace(self, all=tuple(one for one in self.all if one.name not in names), numbers=numbers)

    def _with(self, trigger: Trigger, numbers: Numbers | None) -> Triggers:
        others = (one for one in self.all if one.name != trigger.name)
        return replace(self, all=tuple(sorted((*others, trigger), key=_name)), numbers=numbers)

    def _readable(self) -> Numbers:
        if self.numbers is None:
            raise TriggerError("the record of numbers of triggers cannot be read; restore the store from a backup")
        return self.numbers

    def check(self) -> None:
        """The invariants of the fields, for tests."""
        names = [one.name for one in self.all]
        assert names == sorted(set(names))
        numbers = [one.number for one in self.all if one.number]
        assert len(set(numbers)) == len(numbers)
        if self.numbers is not None:
            self.numbers.check()
            assert all(number <= self.numbers.given for number in numbers)
            assert not any(self.numbers.is_removed(number) for number in numbers)


def _name(trigger: Trigger) -> str:
    return trigger.name

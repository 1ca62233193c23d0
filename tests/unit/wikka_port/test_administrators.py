"""At least one administrator remains: two who end each other at once, at every step, and in whatever way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.support.memory_rows import MemoryRows
from wikka_port.accounts.directory import LEASE_MS, Directory, LastAdministrator, LeaseTaken
from wikka_port.accounts.records import Account

WAYS: dict[str, Callable[[Directory, Account], None]] = {
    "rights": lambda directory, one: directory.set_administrator(one, False),
    "ban": lambda directory, one: directory.set_status(one, "banned"),
    "end": lambda directory, one: directory.erase(one),
}
STEPS = 12  # of the store, in the longest of them


class Killed(BaseException):
    pass


@dataclass
class House:
    now: int = 1_000_000
    steps: int = 0
    at: dict[int, Callable[[], None]] = field(default_factory=dict)
    looks: int = 0  # at the clock
    at_look: dict[int, Callable[[], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = MemoryRows(self._asked)
        self.directory = Directory(self.rows, self._clock)  # type: ignore[arg-type]
        for name in ("Ada", "Bob", "Eve"):
            self.directory.make(name, status="active", admin=name != "Eve")
        self.steps = 0

    def _clock(self) -> int:
        self.looks += 1
        act = self.at_look.pop(self.looks, None)
        if act is not None:
            act()
        return self.now

    def _asked(self, _what: str) -> None:
        self.steps += 1
        act = self.at.pop(self.steps, None)
        if act is not None:
            act()

    def account(self, name: str) -> Account:
        found = self.directory.account(name)
        assert found is not None
        return found

    def administrators(self) -> list[bytes]:
        return sorted(self.directory.administrators.rows_of_all())


def tried(way: str, directory: Directory, account: Account) -> bool:
    try:
        WAYS[way](directory, account)
    except (LastAdministrator, LeaseTaken):
        return False
    return True


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_of_two_who_end_each_other_one_remains(first: str, second: str) -> None:
    done = set()
    for step in range(1, STEPS + 1):
        house = House()
        ada, bob = house.account("Ada"), house.account("Bob")
        house.steps, outcomes = 0, []

        def end_ada(house: House = house, ada: Account = ada, outcomes: list[bool] = outcomes) -> None:
            outcomes.append(tried(second, house.directory, ada))

        house.at = {step: end_ada}
        outcomes.append(tried(first, house.directory, bob))
        assert len(house.administrators()) >= 1, step
        done.add(tuple(outcomes))
    assert (True,) in done, "it has fewer steps than STEPS"
    assert {(False, True), (True, False)} & done


def test_the_last_one_cannot_be_ended_and_others_can() -> None:
    house = House()
    for way in WAYS.values():
        way(house.directory, house.account("Eve"))
    house.directory.set_administrator(house.account("Bob"), False)
    for way in WAYS.values():
        with pytest.raises(LastAdministrator):
            way(house.directory, house.account("Ada"))
    assert house.administrators() == [b"ada"]
    house.directory.set_administrator(house.account("Bob"), True)
    house.directory.set_administrator(house.account("Ada"), False)
    assert house.administrators() == [b"bob"]


@pytest.mark.parametrize("step", range(1, STEPS))
def test_who_is_killed_keeps_the_turn_for_a_bounded_time(step: int) -> None:
    house = House()
    ada, bob = house.account("Ada"), house.account("Bob")

    def kill() -> None:
        house.rows.asked = fail
        raise Killed

    def fail(_what: str) -> None:
        raise Killed

    house.steps, house.at = 0, {step: kill}
    try:
        house.directory.set_administrator(bob, False)
    except Killed:
        house.rows.asked = lambda what: None
    house.at = {}
    house.now += LEASE_MS
    tried("rights", house.directory, ada)
    assert len(house.administrators()) == 1


def test_who_stood_still_writes_nothing() -> None:
    """The other one is ended between the look for others and the write, when the lease is over."""
    house = House()
    ada, bob = house.account("Ada"), house.account("Bob")

    def stand_still() -> None:
        house.now += LEASE_MS
        assert tried("rights", house.directory, ada)

    house.looks, house.at_look = 0, {2: stand_still}  # it looks at the clock for the lease, and before the write
    assert not tried("rights", house.directory, bob)
    assert house.administrators() == [b"bob"]

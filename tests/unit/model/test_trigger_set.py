"""Triggers through any history, written and read back: numbers are given once, and stay removed."""

from __future__ import annotations

import random

import pytest

from columnar.errors import TriggerError
from columnar.master import derivation_rows
from columnar.model.derivations import Triggers
from columnar.model.mutation import Put, RowMutation
from columnar.model.trigger_registration import Registration

NAMES = ("a", "b", "c", "d")


class Disk:
    """The rows, as the catalogue keeps them."""

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[bytes, bytes]] = {}

    def write(self, mutations: list[RowMutation]) -> None:
        for mutation in mutations:
            for operation in mutation.operations:
                if isinstance(operation, Put):
                    self.rows.setdefault(mutation.row, {})[b"info:" + operation.qualifier] = operation.value
                elif operation.qualifier is None:
                    self.rows.pop(mutation.row)
                else:
                    del self.rows[mutation.row][b"info:" + operation.qualifier]

    def read(self) -> Triggers:
        return derivation_rows.sets_from(self.rows.items(), {"t"})[Triggers]  # type: ignore[return-value]  # of its kind


@pytest.mark.parametrize("seed", range(30))
def test_against_a_model(seed: int) -> None:
    rng = random.Random(seed)
    disk, held = Disk(), Triggers()
    alive: dict[str, tuple[str, int]] = {}  # name to state and number
    removed, given = set[int](), 0
    for _ in range(80):
        name = rng.choice(NAMES)
        was = alive.get(name)
        if was is None:
            given += 1
            alive[name] = ("adding", given)
            changed = held.adding(Registration(name, "t", "m:f", ("f",)))
        elif rng.random() < 0.4:
            removed.add(alive.pop(name)[1])
            changed = held.without([name])
        else:
            state = rng.choice(("running", "paused"))
            alive[name] = (state, was[1])
            changed = held.with_state(name, state)  # type: ignore[arg-type]
        disk.write(derivation_rows.changes(held, changed))
        held = changed
        held.check_invariants()
        assert disk.read() == held
        assert {one.name: (one.state, one.number) for one in held.all} == alive
        assert {n for n in range(1, given + 2) if held.is_removed("x", n)} == removed
        assert {one.name for one in held.in_use()} == {n for n, (state, _) in alive.items() if state != "adding"}
        assert held.half_made() == sorted(n for n, (state, _) in alive.items() if state == "adding")


def test_what_cannot_be_read_stays_until_it_is_removed() -> None:
    disk = Disk()
    good = Triggers().adding(Registration("a", "t", "m:f", ("f",))).with_state("a", "paused")
    disk.write(derivation_rows.changes(Triggers(), good))
    disk.rows[b"tr/a"][b"info:registration"] = b"{"
    held = disk.read()
    assert derivation_rows.rows_of(held) == disk.rows
    with pytest.raises(TriggerError, match=r"trigger a rests: .*columnar trigger remove a"):
        held.known("a")
    assert not held.is_removed("a", 1)
    again = held.adding(Registration("a", "t", "m:g", ("f",)))
    disk.write(derivation_rows.changes(held, again))
    assert disk.read() == again
    assert again.is_removed("a", 1)
    assert again.all[0].number == 2


def test_a_row_with_the_registration_of_another_rests() -> None:
    disk = Disk()
    good = Triggers().adding(Registration("a", "t", "m:f", ("f",)))
    disk.write(derivation_rows.changes(Triggers(), good))
    disk.rows[b"tr/b"] = disk.rows.pop(b"tr/a")
    (one,) = disk.read().all
    assert one.name == "b"
    assert "another's, a" in one.unusable_reason


def test_a_trigger_of_a_table_that_is_gone_rests() -> None:
    disk = Disk()
    disk.write(derivation_rows.changes(Triggers(), Triggers().adding(Registration("a", "gone", "m:f", ("f",)))))
    (one,) = disk.read().all
    assert one.unusable_reason == "there is no table gone"
    assert disk.read().of_table("gone") == []


def test_unreadable_numbers_forbid_changes_that_need_them() -> None:
    disk = Disk()
    disk.write(derivation_rows.changes(Triggers(), Triggers().adding(Registration("a", "t", "m:f", ("f",)))))
    disk.rows[b"tr/#numbers"][b"info:numbers"] = b"{"
    held = disk.read()
    for change in (lambda: held.without(["a"]), lambda: held.adding(Registration("b", "t", "m:f", ("f",)))):
        with pytest.raises(TriggerError, match="numbers"):
            change()
    disk.write(derivation_rows.changes(held, held.with_state("a", "paused")))
    assert disk.rows[b"tr/#numbers"] == {b"info:numbers": b"{"}


def test_a_trigger_that_is_being_added_is_not_there_yet() -> None:
    held = Triggers().adding(Registration("a", "t", "m:f", ("f",)))
    with pytest.raises(TriggerError, match="there is no trigger a"):
        held.known("a")
    assert [one.name for one in held.of_table("t")] == ["a"], "the table's rows matter to it already"

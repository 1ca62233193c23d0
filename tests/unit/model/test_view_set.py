"""Views through any history, written and read back: numbers are given once, and stay removed."""

from __future__ import annotations

import random

import pytest

from columnar.errors import ViewError
from columnar.master import derivation_rows
from columnar.model.derivations import KeptView, Reads, ViewSet
from tests.unit.model.test_trigger_set import Disk

NAMES = ("a", "b", "c")
TABLES = ("t", *NAMES)
NEXT = {"adding": "building", "building": "live"}


def view(name: str) -> KeptView:
    return KeptView(name, b"{}", (Reads("t", ("f",)),))


def written(disk: Disk, held: ViewSet, changed: ViewSet) -> ViewSet:
    disk.write(derivation_rows.changes(held, changed))
    return changed


@pytest.mark.parametrize("seed", range(20))
def test_against_a_model(seed: int) -> None:
    rng = random.Random(seed)
    disk, held = Disk(), ViewSet()
    alive: dict[str, tuple[str, int]] = {}
    removed, given = set[int](), 0
    for _ in range(60):
        name = rng.choice(NAMES)
        state, number = alive.get(name, ("", 0))
        if not state:
            given += 1
            alive[name] = ("adding", given)
            changed = held.adding(view(name))
        elif state == "live" or rng.random() < 0.3:
            removed.add(number)
            del alive[name]
            changed = held.without([name])
        else:
            alive[name] = (NEXT[state], number)
            changed = held.with_state(name, NEXT[state])  # type: ignore[arg-type]
        held = written(disk, held, changed)
        held.check_invariants()
        assert derivation_rows.sets_from(disk.rows.items(), TABLES)[ViewSet] == held
        assert {one.name: (one.state, one.number) for one in held.all} == alive
        assert {n for n in range(1, given + 2) if held.is_removed("x", n)} == removed
        assert held.half_made() == sorted(n for n, (state, _) in alive.items() if state == "adding")
        assert {one.name for one in held.building()} == {n for n, (state, _) in alive.items() if state == "building"}


def test_what_cannot_be_read_stays_until_it_is_dropped() -> None:
    disk = Disk()
    good = written(disk, ViewSet(), ViewSet().adding(view("a")).with_state("a", "building"))
    assert good.known("a").generation == 1
    for column, value, why in (
        (b"info:reads", b"{", "sources of a view"),
        (b"info:reads", b'[["gone", []]]', "there is no table gone"),
        (b"info:state", b"replaced", "a state that this version does not know"),
    ):
        before = dict(disk.rows[b"vw/a"])
        disk.rows[b"vw/a"][column] = value
        held = derivation_rows.sets_from(disk.rows.items(), TABLES)[ViewSet]
        assert derivation_rows.rows_of(held) == disk.rows
        with pytest.raises(ViewError, match=rf"view a rests: .*{why}.*columnar view drop a"):
            held.known("a")
        assert not held.in_use()
        assert not held.is_removed("a", 1)
        assert held.without(["a"]).is_removed("a", 1)
        disk.rows[b"vw/a"] = before


def test_numbers_that_cannot_be_read_stay() -> None:
    disk = Disk()
    written(disk, ViewSet(), ViewSet().adding(view("a")))
    disk.rows[b"vw/#numbers"][b"info:numbers"] = b"{"
    held = derivation_rows.sets_from(disk.rows.items(), TABLES)[ViewSet]
    assert derivation_rows.rows_of(held) == disk.rows
    assert not held.is_removed("a", 1)
    for change in (lambda: held.without(["a"]), lambda: held.adding(view("b"))):
        with pytest.raises(ViewError, match="record of numbers of views cannot be read"):
            change()


def test_a_generation_is_the_number_at_the_end() -> None:
    assert [KeptView(name).generation for name in ("v", "v.2", "ns:v.17", "v.x")] == [1, 2, 17, 1]

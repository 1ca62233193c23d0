"""A further kind of derivation is a subclass and an entry: set, rows, write, call-off and an owner's steps."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from columnar.errors import ColumnarError, HostError, ViewError
from columnar.master import derivation_rows
from columnar.master.catalogue import Catalogue
from columnar.master.catalogue_rows import Cells
from columnar.master.derivation_changes import DerivationChanges
from columnar.master.derivation_rows import PREFIXES
from columnar.model import region_messages as messages
from columnar.model.derivations import DerivationSet, Numbers, RowCells, Triggers
from columnar.model.region_messages import Message
from tests.unit.model.test_trigger_set import Disk


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    state: str = "live"
    number: int = 0
    unusable_reason: str = ""
    row_cells: RowCells = ()

    @property
    def is_in_use(self) -> bool:
        return self.state != "adding" and not self.unusable_reason


@dataclass(frozen=True, slots=True)
class Queues(DerivationSet[Queue]):
    noun: ClassVar[str] = "queue"
    removal: ClassVar[str] = "drop"
    error: ClassVar[type[ColumnarError]] = ViewError

    all: tuple[Queue, ...] = ()

    def adding(self, name: str) -> Queues:
        numbers = self.next_numbers()
        return Queues(self.all, numbers).put_one(Queue(name, "adding", numbers.given))


def parse(name: str, cells: Cells, _tables: Collection[str]) -> Queue:
    state = cells[b"info:state"].decode()
    why = "" if state in ("adding", "live") else "a state that is not known"
    return Queue(name, state, int(cells[b"info:number"]), why, tuple(cells.items()) if why else ())


def cells_of(queue: Queue) -> dict[bytes, bytes]:
    return {b"info:state": queue.state.encode(), b"info:number": b"%d" % queue.number}


class QueueChanges(DerivationChanges[Queues]):
    @property
    def derivations(self) -> Queues:
        queues = self._catalogue.derivations._sets[Queues]
        assert isinstance(queues, Queues)
        return queues

    def publication(self) -> Message[None]:
        return messages.ReloadFunctions()  # any message

    async def forget_derivations(self, names: Sequence[str]) -> None:
        await self._catalogue.derivations.write_derivations(self.derivations.without(names))
        await self.publish()

    async def add(self, name: str) -> None:
        async with self.lock:
            await self.settle()
            await self._catalogue.derivations.write_derivations(self.derivations.adding(name))
            await self.take_up([name], "live")


class Owner:
    def __init__(self) -> None:
        self.is_ill = False
        self.heard = 0

    async def request_peer(self, _message: Message[Any]) -> Any:
        self.heard += 1
        if self.is_ill:
            self.is_ill = False
            raise HostError("no")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    kinds: Any = {**derivation_rows.KINDS, Queues: derivation_rows._Kind(b"qu/", parse, cells_of)}
    monkeypatch.setattr(derivation_rows, "KINDS", kinds)
    monkeypatch.setattr(derivation_rows, "PREFIXES", (*PREFIXES, b"qu/"))
    return Disk()


def catalogue_on(disk: Disk) -> Catalogue:
    async def write(mutations: list[Any]) -> None:
        disk.write(mutations)

    return Catalogue(list(disk.rows.items()), write)


def test_a_further_kind_is_added_called_off_and_read_again(disk: Disk) -> None:
    async def scenario() -> None:
        owner = Owner()
        changes = QueueChanges(catalogue_on(disk), owner, asyncio.Lock())  # type: ignore[arg-type]  # a peer
        await changes.add("a")
        assert disk.rows[b"qu/a"] == {b"info:state": b"live", b"info:number": b"1"}
        owner.is_ill = True
        with pytest.raises(HostError):
            await changes.add("b")
        assert b"qu/b" not in disk.rows, "called off"
        again = QueueChanges(catalogue_on(disk), owner, asyncio.Lock())  # type: ignore[arg-type]
        assert again.derivations == Queues((Queue("a", "live", 1),), Numbers(2, ((2, 2),)))
        again.derivations.check_invariants()
        assert again.derivations.is_removed("b", 2)
        assert again._catalogue.derivations.triggers == Triggers()

    asyncio.run(scenario())


def test_a_row_of_a_further_kind_that_cannot_be_used_stays(disk: Disk) -> None:
    async def scenario() -> None:
        changes = QueueChanges(catalogue_on(disk), Owner(), asyncio.Lock())  # type: ignore[arg-type]
        await changes.add("a")
        disk.rows[b"qu/a"][b"info:state"] = b"strange"
        again = QueueChanges(catalogue_on(disk), Owner(), asyncio.Lock())  # type: ignore[arg-type]
        with pytest.raises(ViewError, match="queue a rests: a state that is not known; columnar queue drop a"):
            again.derivations.known("a")
        await again.add("c")
        assert disk.rows[b"qu/a"][b"info:state"] == b"strange"
        await again.forget_derivations(["a"])
        assert sorted(disk.rows) == [b"qu/#numbers", b"qu/c"]

    asyncio.run(scenario())


def test_an_owner_tells_a_derivation_from_a_removed_one_of_its_name() -> None:
    before = Queues((Queue("a", "live", 1), Queue("b", "adding", 2), Queue("c", "live", 3)))
    after = Queues((Queue("a", "live", 4), Queue("b", "live", 2), Queue("c", "live", 3), Queue("d", "adding", 5)))
    steps = after.steps_from(before)
    assert steps.gone == [Queue("a", "live", 1)]
    followed = [(one.name, one.number, held and held.state) for one, held in steps.followed]
    assert followed == [("a", 4, None), ("b", 2, "adding"), ("c", 3, "live")]
    assert [one.name for one in steps.begun] == ["d"]

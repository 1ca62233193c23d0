"""(pure) The views of a store: what the catalogue has of them, and what an owner of regions works by.

    none --adding--> adding --started--> building --built--> live
      ^                 |                   |                  |
      '-----------------'------without------'------------------'

    adding      its table is there; owners log the sources, and mark in their regions where the view begins
    building    every owner has marked: changes are followed, and the view is backfilled with the present rows
    live        every row of every source is backfilled: with no lag the view equals its recomputation

A view stands under the name of its table.  A name that ends with a dot and a number is a later generation's.

Invariants:
    I1. A view is there from the moment its number is given, and goes together with the record that its number is
        removed: the values before and after are one write of the catalogue apart, and so are those with and without
        its table.
    I2. A view that cannot be used rests: its name and number stay taken until it is dropped.
    I3. A state follows only upon the one before it.

Knows nothing of who keeps a view, and of what a definition says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from columnar.errors import IllegalArgument, ViewError
from columnar.model.flow_graph import Flow, Place
from columnar.model.follower_numbers import Numbers
from columnar.model.schema import Table
from columnar.model.view_generations import Swap, aliases_of, base_of, generation_of, live_of, without_tables

KIND: Final = "view"  # of followers and flows
UNBOUNDED: Final = (b"m", b"o")  # which have a cell for each member of a group
FAMILIES: Final = ("v", "m", "o")  # of a view's table (``view_definition``, which a store without views need not load)
State = Literal["adding", "building", "live"]
STATES: Final[dict[str, State]] = {"adding": "adding", "building": "building", "live": "live"}
_NEXT: Final[dict[State, State]] = {"adding": "building", "building": "live"}


@dataclass(frozen=True, slots=True)
class Reads:
    """A source, and the families of it of which a view reads something."""

    table: str
    families: tuple[str, ...]  # latin-1 of the bytes, ascending


@dataclass(frozen=True, slots=True)
class KeptView:
    name: str  # of its table, too
    definition: bytes = b""  # JSON (``model.view_definition``), its sources bound
    reads: tuple[Reads, ...] = ()  # by table, ascending, each once
    state: State = "live"
    number: int = 0
    unusable_reason: str = ""  # why it cannot be used (I2)

    @property
    def is_in_use(self) -> bool:
        return self.state != "adding" and not self.unusable_reason

    @property
    def generation(self) -> int:
        return generation_of(self.name)

    @property
    def flow(self) -> Flow:
        """Its part of the graph of flows."""
        reads = tuple(Place(read.table, family) for read in self.reads for family in read.families)
        writes = tuple(Place(self.name, family) for family in FAMILIES)
        return Flow(KIND, self.name, reads, writes)

    def families_of(self, table: str) -> frozenset[str]:
        return frozenset(family for one in self.reads if one.table == table for family in one.families)


@dataclass(frozen=True, slots=True)
class ViewSet:
    """Constant; a change makes another."""

    all: tuple[KeptView, ...] = ()  # by name, ascending
    numbers: Numbers | None = field(default_factory=Numbers)  # None: the record cannot be read
    numbers_data: bytes = b""  # of a record that cannot be read, as it is on disk
    swaps: tuple[Swap, ...] = ()  # of views of which another generation than the first is live, or one is kept

    # --- status ------------------------------------------------------------------------------------

    def find(self, name: str) -> KeptView | None:
        """O(views), as all that follows."""
        return next((one for one in self.all if one.name == name), None)

    def known(self, name: str) -> KeptView:
        """A view that is in use.  ViewError: there is none, or it rests."""
        held = self.find(name)
        if held is not None and held.unusable_reason:
            raise ViewError(f"view {name} rests: {held.unusable_reason}; columnar view drop {name}")
        if held is None or not held.is_in_use:
            raise ViewError(f"there is no view {name}; columnar view list shows those there are")
        return held

    def generations(self, name: str) -> list[KeptView]:
        """The generations of a view, ascending."""
        return sorted((one for one in self.all if base_of(one.name) == name), key=lambda one: one.generation)

    def live_table(self, name: str) -> str:
        """The table that readers of the name see."""
        return live_of(name, self.swaps)

    def swap_of(self, name: str) -> Swap | None:
        return next((one for one in self.swaps if one.name == name), None)

    def aliases(self) -> dict[str, str]:
        """The tables that clients mean by names that are not their own."""
        return aliases_of([one.name for one in self.all], self.swaps)

    def in_use(self) -> list[KeptView]:
        return [one for one in self.all if one.is_in_use]

    def readers(self, table: str) -> list[KeptView]:
        """The views of which the table is a source, those that are being added and those that rest among them."""
        return [one for one in self.all if any(read.table == table for read in one.reads)]

    def half_made(self) -> list[str]:
        return [one.name for one in self.all if one.state == "adding"]

    def building(self) -> list[KeptView]:
        return [one for one in self.all if one.state == "building" and not one.unusable_reason]

    def is_removed(self, number: int) -> bool:
        """Whether the removal of the view that began a cursor is recorded (``flows.follower.Kind``)."""
        return self.numbers is not None and self.numbers.is_removed(number)

    # --- changes -----------------------------------------------------------------------------------

    def adding(self, view: KeptView) -> ViewSet:
        """With a view that is to be.  ViewError: no number can be given."""
        assert self.find(view.name) is None, "its name is free"
        numbers = self._readable().with_next()
        fresh = replace(view, state="adding", number=numbers.given)
        return replace(self, all=tuple(sorted((*self.all, fresh), key=_name)), numbers=numbers)

    def with_state(self, name: str, state: State) -> ViewSet:
        held = self.find(name)
        assert held is not None, "only a view that is there has a state"
        assert _NEXT.get(held.state) == state, "I3"
        others = tuple(replace(one, state=state) if one.name == name else one for one in self.all)
        return replace(self, all=others)

    def without(self, names: Collection[str]) -> ViewSet:
        """ViewError: their removal cannot be recorded."""
        numbers = self.numbers
        for one in self.all:
            if one.name in names and one.number:
                numbers = (numbers or self._readable()).with_removed(one.number)
        left = tuple(one for one in self.all if one.name not in names)
        return replace(self, all=left, numbers=numbers, swaps=without_tables(self.swaps, names))

    def swapped(self, swap: Swap) -> ViewSet:
        assert self.find(swap.live) is not None, "a generation that is there"
        others = (one for one in self.swaps if one.name != swap.name)
        return replace(self, swaps=tuple(sorted((*others, swap), key=lambda one: one.name)))

    def _readable(self) -> Numbers:
        if self.numbers is None:
            raise ViewError("the record of numbers of views cannot be read; restore the store from a backup")
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


def check_bounded(table: Table, whole: Iterable[bytes], who: str) -> None:
    """IllegalArgument: ``who`` reads one of these families as a whole with each change, and it has no bound.

    A row that has more there than an image holds takes no more writes (``regions.row_images``): a view would stop at a
    large group, and then writers of its sources.
    """
    unbounded = sorted(family for family in whole if table.kept_by and family in UNBOUNDED)
    if unbounded:
        family = unbounded[0].decode()
        raise IllegalArgument(
            f"{who} would read all of family {family} of view {table.name} with each change, and a group has any "
            "number of members: read its totals (family v), or name columns"
        )


def _name(view: KeptView) -> str:
    return view.name

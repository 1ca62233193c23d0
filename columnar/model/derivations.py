"""(pure) Derivations of a store, triggers and views: what the catalogue has of them, and what an owner works by.

    trigger   none --adding--> adding --started--> running <--with_state--> paused
    view      none --adding--> adding --started--> building --built--> live

    adding      owners log for it and mark in their regions where it begins; it is delivered nothing
    running     every owner has marked: each change from now on is delivered
    paused      changes wait in the logs
    building    every owner has marked: changes are followed, and the view is backfilled with the present rows
    live        every row of every source is backfilled: with no lag the view equals its recomputation

Each kind is a set of its own, a ``DerivationSet``; a further kind is a further subclass, its rows in
``master.derivation_rows``.  A view stands under the name of its table.  A name that ends with a dot and a number is a
later generation's.

    numbers := JSON {"given": highest, "removed": [[first, last], ...]}      of a kind, in the catalogue

Invariants:
    I1. A derivation is there from the moment its number is given, and goes together with the record that its number is
        removed: the values before and after are one write of the catalogue apart, and so are those with and without
        the table of a view.
    I2. A derivation that cannot be used rests: its name and number stay taken until it is removed, and its row stays as
        it is on disk.
    I3. A state of a view follows only upon the one before it.
    I4. A number is written as given before a region bears it, so no number is given twice.
    I5. A cursor goes only when its number is recorded as removed.  The absence of a registration proves nothing: it
        may be unreadable.

Knows nothing of who keeps a derivation, of cursors and disks, and of what a registration or a definition says.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, Self, TypeVar

from columnar.errors import ColumnarError, DamagedData, IllegalArgument, TriggerError, ViewError
from columnar.model.flow_graph import Flow, Place
from columnar.model.schema import Table
from columnar.model.trigger_registration import Registration
from columnar.model.view_generations import Swap, aliases_of, base_of, generation_of, live_of, without_tables

RowCells = tuple[tuple[bytes, bytes], ...]  # column, value


# --- numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of followers: each derivation gets one, no number is given twice, removed ones are recorded."""

    given: int = 0  # the highest
    removed: tuple[tuple[int, int], ...] = ()  # spans, first and last inclusive, ascending, never adjacent

    def with_next(self) -> Numbers:
        """Give the next number, which is ``given`` then."""
        return Numbers(self.given + 1, self.removed)

    def with_removed(self, number: int) -> Numbers:
        assert 0 < number <= self.given, "only given numbers are removed"
        if self.is_removed(number):
            return self
        spans: list[tuple[int, int]] = []
        for first, last in sorted((*self.removed, (number, number))):
            if spans and first == spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
        return Numbers(self.given, tuple(spans))

    def is_removed(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.removed)

    def check_invariants(self) -> None:
        """The invariants of the fields, for tests."""
        ends = [end for span in self.removed for end in span]
        assert ends == sorted(ends)
        assert all(0 < first <= last <= self.given for first, last in self.removed)
        assert all(end + 1 < start for (_, end), (start, _) in zip(self.removed, self.removed[1:], strict=False))


def numbers_to_json(numbers: Numbers) -> bytes:
    return json.dumps({"given": numbers.given, "removed": numbers.removed}, sort_keys=True).encode()


def numbers_from_json(data: bytes) -> Numbers:
    """DamagedData when the bytes are none of ours."""
    try:
        held: dict[str, Any] = json.loads(data)
        spans = tuple((int(first), int(last)) for first, last in held["removed"])
        return Numbers(int(held["given"]), spans)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"numbers of followers: {error}") from error


# --- sets --------------------------------------------------------------------------------------------


class Derivation(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def unusable_reason(self) -> str: ...

    @property
    def is_in_use(self) -> bool: ...


D = TypeVar("D", bound=Derivation)


@dataclass(frozen=True, slots=True)
class Steps(Generic[D]):
    """The steps by which an owner of regions takes up another set."""

    gone: list[D]
    followed: list[tuple[D, D | None]]  # in use, and what stood there before
    begun: list[D]  # being added


@dataclass(frozen=True, slots=True)
class DerivationSet(Generic[D]):
    """All derivations of a kind.  Constant; a change makes another."""

    noun: ClassVar[str]
    removal: ClassVar[str]  # the command's verb
    error: ClassVar[type[ColumnarError]]

    all: tuple[D, ...] = ()  # by name, ascending
    numbers: Numbers | None = field(default_factory=Numbers)  # None: the record cannot be read
    numbers_data: bytes = b""  # of a record that cannot be read, as it is on disk

    def find(self, name: str) -> D | None:
        """O(derivations), as all that follows."""
        return next((one for one in self.all if one.name == name), None)

    def known(self, name: str) -> D:
        """A derivation that is in use.  TriggerError, ViewError: there is none, or it rests."""
        held, noun = self.find(name), self.noun
        if held is not None and held.unusable_reason:
            raise self.error(f"{noun} {name} rests: {held.unusable_reason}; columnar {noun} {self.removal} {name}")
        if held is None or not held.is_in_use:
            raise self.error(f"there is no {noun} {name}; columnar {noun} list shows those there are")
        return held

    def usable(self) -> list[D]:
        return [one for one in self.all if not one.unusable_reason]

    def in_use(self) -> list[D]:
        return [one for one in self.all if one.is_in_use]

    def half_made(self) -> list[str]:
        return [one.name for one in self.all if one.state == "adding"]

    def is_removed(self, _name: str, number: int) -> bool:
        """Whether the removal of the derivation that began a cursor is recorded (``flows.follower.Kind``)."""
        return self.numbers is not None and self.numbers.is_removed(number)

    def steps_from(self, before: Self) -> Steps[D]:
        """The number tells a derivation from a removed one of its name."""
        then, now = ({(one.name, one.number): one for one in some.usable()} for some in (before, self))
        return Steps(
            [one for key, one in then.items() if key not in now],
            [(one, then.get(key)) for key, one in now.items() if one.is_in_use],
            [one for key, one in now.items() if not one.is_in_use and key not in then],
        )

    # --- changes -----------------------------------------------------------------------------------

    def next_numbers(self) -> Numbers:
        """The record that gives the next number.  TriggerError, ViewError: no number can be given."""
        return self._readable().with_next()

    def put(self, one: D) -> Self:
        """With another value of a derivation, or with one more."""
        others = (other for other in self.all if other.name != one.name)
        return replace(self, all=tuple(sorted((*others, one), key=_name)))

    def with_state(self, name: str, state: str) -> Self:
        return self.put(replace(self.there(name), state=state))  # type: ignore[type-var]  # each kind is a dataclass

    def there(self, name: str) -> D:
        held = self.find(name)
        assert held is not None, "only a derivation that is there is changed"
        return held

    def without(self, names: Collection[str]) -> Self:
        """TriggerError, ViewError: their removal cannot be recorded."""
        numbers = self.numbers
        for one in self.all:
            if one.name in names and one.number:
                numbers = (numbers or self._readable()).with_removed(one.number)
        return replace(self, all=tuple(one for one in self.all if one.name not in names), numbers=numbers)

    def _readable(self) -> Numbers:
        if self.numbers is None:
            raise self.error(f"the record of numbers of {self.noun}s cannot be read; restore the store from a backup")
        return self.numbers

    def check_invariants(self) -> None:
        """The invariants of the fields, for tests."""
        names = [one.name for one in self.all]
        assert names == sorted(set(names))
        numbers = [one.number for one in self.all if one.number]
        assert len(set(numbers)) == len(numbers)
        if self.numbers is not None:
            self.numbers.check_invariants()
            assert all(number <= self.numbers.given for number in numbers)
            assert not any(self.numbers.is_removed(number) for number in numbers)


def _name(one: Derivation) -> str:
    return one.name


# --- triggers ----------------------------------------------------------------------------------------

BEGINNING: Final = 0  # of a replay: every row, as one that starts from the beginning is shown them
START: Final = 1
_TriggerState = Literal["adding", "running", "paused"]
TRIGGER_STATES: Final[dict[str, _TriggerState]] = {"adding": "adding", "running": "running", "paused": "paused"}


@dataclass(frozen=True, slots=True)
class Replay:
    """The operator's request that a trigger sees changes again: each region replays once (``triggers.replaying``)."""

    number: int  # rises with each wish for the trigger; START: it is where a trigger that starts at a time begins
    from_ms: int  # since the epoch, or BEGINNING


@dataclass(frozen=True, slots=True)
class Trigger:
    registration: Registration  # but for its name empty where it cannot be read
    state: _TriggerState = "running"
    number: int = 0  # 0: of an earlier version
    unusable_reason: str = ""  # why it cannot be used (I2)
    row_cells: RowCells = ()  # of an unusable one: its row as it is on disk
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
class Triggers(DerivationSet[Trigger]):
    noun: ClassVar[str] = "trigger"
    removal: ClassVar[str] = "remove"
    error: ClassVar[type[ColumnarError]] = TriggerError

    all: tuple[Trigger, ...] = ()

    def of_table(self, table: str) -> list[Trigger]:
        """Triggers for the table's changes, those that are being added among them."""
        return [one for one in self.usable() if one.registration.table == table]

    def is_removed(self, name: str, number: int) -> bool:
        if number:
            return DerivationSet.is_removed(self, name, number)
        return self.find(name) is None  # earlier versions recorded nothing else

    def adding(self, registration: Registration) -> Triggers:
        """With a trigger that is to be; one of its name that rests goes.  TriggerError: no number can be given."""
        freed = self.without([registration.name])
        numbers = freed.next_numbers()
        start_ms = registration.start_ms
        replay = None if start_ms is None else Replay(START, start_ms)
        return replace(freed, numbers=numbers).put(Trigger(registration, "adding", numbers.given, replay=replay))

    def with_registration(self, registration: Registration) -> Triggers:
        return self.put(replace(self.there(registration.name), registration=registration))

    def with_replay(self, name: str, from_ms: int) -> Triggers:
        held = self.there(name)
        number = held.replay.number + 1 if held.replay is not None else START
        return self.put(replace(held, replay=Replay(number, from_ms)))


# --- views -------------------------------------------------------------------------------------------

VIEW: Final = "view"  # the kind of its followers and flows
UNBOUNDED: Final = (b"m", b"o")  # which have a cell for each member of a group
FAMILIES: Final = ("v", "m", "o")  # of a view's table (``view_definition``, which a store without views need not load)
_ViewState = Literal["adding", "building", "live"]
VIEW_STATES: Final[dict[str, _ViewState]] = {"adding": "adding", "building": "building", "live": "live"}
_NEXT: Final[dict[_ViewState, _ViewState]] = {"adding": "building", "building": "live"}


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
    state: _ViewState = "live"
    number: int = 0
    unusable_reason: str = ""  # why it cannot be used (I2)
    row_cells: RowCells = ()  # of an unusable one: its row as it is on disk

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
        return Flow(VIEW, self.name, reads, writes)

    def families_of(self, table: str) -> frozenset[str]:
        return frozenset(family for one in self.reads if one.table == table for family in one.families)


@dataclass(frozen=True, slots=True)
class ViewSet(DerivationSet[KeptView]):
    noun: ClassVar[str] = VIEW
    removal: ClassVar[str] = "drop"
    error: ClassVar[type[ColumnarError]] = ViewError

    all: tuple[KeptView, ...] = ()
    swaps: tuple[Swap, ...] = ()  # of views of which another generation than the first is live, or one is kept

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

    def readers(self, table: str) -> list[KeptView]:
        """The views of which the table is a source, those that are being added and those that rest among them."""
        return [one for one in self.all if any(read.table == table for read in one.reads)]

    def building(self) -> list[KeptView]:
        return [one for one in self.usable() if one.state == "building"]

    def adding(self, view: KeptView) -> ViewSet:
        """With a view that is to be.  ViewError: no number can be given."""
        assert self.find(view.name) is None, "its name is free"
        numbers = self.next_numbers()
        return replace(self, numbers=numbers).put(replace(view, state="adding", number=numbers.given))

    def with_state(self, name: str, state: str) -> ViewSet:
        assert _NEXT.get(self.there(name).state) == state, "I3"
        return DerivationSet.with_state(self, name, state)

    def without(self, names: Collection[str]) -> ViewSet:
        return replace(DerivationSet.without(self, names), swaps=without_tables(self.swaps, names))

    def swapped(self, swap: Swap) -> ViewSet:
        assert self.find(swap.live) is not None, "a generation that is there"
        others = (one for one in self.swaps if one.name != swap.name)
        return replace(self, swaps=tuple(sorted((*others, swap), key=lambda one: one.name)))


def check_bounded(table: Table, whole: Iterable[bytes], who: str) -> None:
    """IllegalArgument: ``who`` reads one of these families as a whole with each change, and it has no bound.

    A row that has more there than an image holds takes no more writes (``regions.log.change_logging``): a view would
    stop at a large group, and then writers of its sources.
    """
    unbounded = sorted(family for family in whole if table.kept_by and family in UNBOUNDED)
    if unbounded:
        family = unbounded[0].decode()
        raise IllegalArgument(
            f"{who} would read all of family {family} of view {table.name} with each change, and a group has any "
            "number of members: read its totals (family v), or name columns"
        )

"""(pure) Derivations of a store, which are triggers and views: the catalogue's records, from which owners work.

    trigger   none --adding--> adding --started--> running <--with_state--> paused
    view      none --adding--> adding --started--> building --built--> live

    adding      owners log changes for it and mark its beginning in their regions; nothing is delivered yet
    running     every owner has marked: each change from now on is delivered
    paused      changes wait in the logs
    building    every owner has marked: changes are followed, and the view is backfilled with the present rows
    live        every row of every source is backfilled: with no lag the view equals its recomputation

Each kind has its own set, a subclass of ``DerivationSet``; a new kind needs a new subclass, and rows in
``master.derivation_rows``.  A view has the name of its table.  A name that ends with a dot and a number denotes a later
generation of the view.

    numbers := JSON {"given": highest, "removed": [[first, last], ...]}      one record per kind, in the catalogue

Invariants:
    I1. A single write to the catalogue creates a derivation and gives its number; a single write removes the derivation
        and records the number as removed.  A view's table is created and removed by the same writes.
    I2. An unusable derivation rests: its name and number stay taken until it is removed, and its row stays unchanged
        on disk.
    I3. A view passes through its states in the order above and skips none.
    I4. A number is written as given before it is used in any region, so no number is given twice.
    I5. A cursor is removed only if its number is recorded as removed.  A missing registration proves nothing, because
        the registration may be unreadable.

Knows nothing of who keeps a derivation up to date, of cursors and disks, and of the contents of registrations and
definitions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, Self, TypeVar

from columnar.errors import ColumnarError, DamagedData, IllegalArgument, TriggerError, ViewError
from columnar.model.flow_graph import Flow, Place
from columnar.model.schema import Table
from columnar.model.trigger_registration import QUEUE_PREFIX, Registration
from columnar.model.view_generations import Swap, aliases_of, base_of, generation_of, live_of, without_tables

RowCells = tuple[tuple[bytes, bytes], ...]  # column, value


# --- numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of followers: each derivation gets one, no number is given twice, removed numbers are recorded."""

    given: int = 0  # the highest
    removed: tuple[tuple[int, int], ...] = ()  # spans, first and last inclusive, ascending, never adjacent

    def with_next(self) -> Numbers:
        """Return the record after giving the next number, which is the result's ``given``."""
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
        """Assert the invariants of the fields; for tests."""
        ends = [end for span in self.removed for end in span]
        assert ends == sorted(ends)
        assert all(0 < first <= last <= self.given for first, last in self.removed)
        assert all(end + 1 < start for (_, end), (start, _) in zip(self.removed, self.removed[1:], strict=False))


def numbers_to_json(numbers: Numbers) -> bytes:
    return json.dumps({"given": numbers.given, "removed": numbers.removed}, sort_keys=True).encode()


def numbers_from_json(data: bytes) -> Numbers:
    """Decode a record of numbers.  Raises DamagedData if the bytes are no such record."""
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
    """The changes for an owner of regions when one set of derivations replaces another."""

    gone: list[D]
    followed: list[tuple[D, D | None]]  # a derivation in use, and its previous value
    begun: list[D]  # being added


@dataclass(frozen=True, slots=True)
class DerivationSet(Generic[D]):
    """All derivations of a kind.  Constant: a change returns a new set."""

    noun: ClassVar[str]
    removal: ClassVar[str]  # the command's verb
    error: ClassVar[type[ColumnarError]]

    all: tuple[D, ...] = ()  # by name, ascending
    numbers: Numbers | None = field(default_factory=Numbers)  # None: the record cannot be read
    numbers_data: bytes = b""  # an unreadable record's bytes, as they are on disk

    def find(self, name: str) -> D | None:
        """Return the derivation with this name, or None.  As all other methods, this takes O(derivations)."""
        return next((one for one in self.all if one.name == name), None)

    def known(self, name: str) -> D:
        """Return the derivation, which is in use.  Raises TriggerError or ViewError if none is, or it rests (I2)."""
        held, noun = self.find(name), self.noun
        if held is not None and held.unusable_reason:
            raise self.error(f"{noun} {name} rests: {held.unusable_reason}; columnar {noun} {self.removal} {name}")
        if held is None or not held.is_in_use:
            raise self.error(f"there is no {noun} {name}; columnar {noun} list shows those there are")
        return held

    def named(self, name: str) -> str | None:
        """Return the name if it is of a derivation; None if it is not.  Raises as ``known`` if that is not in use."""
        return None if self.find(name) is None else self.known(name).name

    def usable(self) -> list[D]:
        return [one for one in self.all if not one.unusable_reason]

    def in_use(self) -> list[D]:
        return [one for one in self.all if one.is_in_use]

    def half_made(self) -> list[str]:
        return [one.name for one in self.all if one.state == "adding"]

    def is_removed(self, _name: str, number: int) -> bool:
        """Tell whether the derivation that began a cursor is recorded as removed (``flows.follower.Kind``)."""
        return self.numbers is not None and self.numbers.is_removed(number)

    def steps_from(self, before: Self) -> Steps[D]:
        """Return the steps from the set ``before`` to this one.

        Derivations are compared by name and number: a new derivation may have the name of a removed one.
        """
        then, now = ({(one.name, one.number): one for one in some.usable()} for some in (before, self))
        return Steps(
            [one for key, one in then.items() if key not in now],
            [(one, then.get(key)) for key, one in now.items() if one.is_in_use],
            [one for key, one in now.items() if not one.is_in_use and key not in then],
        )

    # --- changes -----------------------------------------------------------------------------------

    def next_numbers(self) -> Numbers:
        """Return the record after giving the next number.

        Raises TriggerError or ViewError if the present record is unreadable, so no number can be given.
        """
        return self._readable().with_next()

    def put_one(self, one: D) -> Self:
        """Return the set with ``one``, which replaces the derivation of the same name if there is one."""
        others = (other for other in self.all if other.name != one.name)
        return replace(self, all=tuple(sorted((*others, one), key=_name)))

    def with_state(self, name: str, state: str) -> Self:
        return self.put_one(replace(self.there(name), state=state))  # type: ignore[type-var]  # each kind is a dataclass

    def there(self, name: str) -> D:
        held = self.find(name)
        assert held is not None, "only a derivation that is there is changed"
        return held

    def without(self, names: Collection[str]) -> Self:
        """Return the set without these derivations, their numbers recorded as removed.

        Raises TriggerError or ViewError if the removal cannot be recorded.
        """
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
        """Assert the invariants of the fields; for tests."""
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

BEGINNING: Final = 0  # a replay from here shows every row, as a trigger that starts from the beginning sees them
START: Final = 1
_TriggerState = Literal["adding", "running", "paused"]
TRIGGER_STATES: Final[dict[str, _TriggerState]] = {"adding": "adding", "running": "running", "paused": "paused"}


@dataclass(frozen=True, slots=True)
class Replay:
    """A request to repeat changes for a trigger; each region replays them once (``triggers.replaying``)."""

    number: int  # rises with each request for the trigger; START for the replay of a trigger that starts at a time
    from_ms: int  # since the epoch, or BEGINNING


@dataclass(frozen=True, slots=True)
class Trigger:
    registration: Registration  # if it cannot be read, all fields except the name are empty
    state: _TriggerState = "running"
    number: int = 0  # 0 if an earlier version of the program registered it
    unusable_reason: str = ""  # why it cannot be used (I2)
    row_cells: RowCells = ()  # of an unusable trigger: its row as it is on disk
    replay: Replay | None = None  # the last one

    @property
    def name(self) -> str:
        return self.registration.name

    @property
    def starts(self) -> bool:
        """Whether the trigger begins with its replay, which then shows changes that were never delivered before."""
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

    def known(self, name: str) -> Trigger:
        """Return the trigger or served queue, which is in use.  Raises TriggerError."""
        queue = name.removeprefix(QUEUE_PREFIX)
        if queue == name:
            return DerivationSet.known(self, name)
        held = self.find(name)
        if held is None or (not held.is_in_use and not held.unusable_reason):
            raise TriggerError(f"queue {queue} is not served; columnar queue served shows those that are")
        if held.unusable_reason:
            raise TriggerError(f"queue {queue} rests: {held.unusable_reason}; columnar queue unserve {queue}")
        return held

    def awaited_tables(self, name: str) -> list[str]:
        """Return the table of a trigger, or the tables of all triggers if ``name`` is empty.  Raises TriggerError."""
        if not name:
            return sorted({one.registration.table for one in self.in_use() if not one.registration.queue})
        return [self.known(name).registration.table]

    def of_table(self, table: str) -> list[Trigger]:
        """Return the usable triggers for the table's changes, including triggers that are being added."""
        return [one for one in self.usable() if one.registration.table == table]

    def is_removed(self, name: str, number: int) -> bool:
        if number:
            return DerivationSet.is_removed(self, name, number)
        return self.find(name) is None  # earlier versions gave no number, so only the name can tell

    def adding(self, registration: Registration) -> Triggers:
        """Return the set with a new trigger in state "adding"; it replaces a resting trigger of its name.

        Raises TriggerError if no number can be given.
        """
        freed = self.without([registration.name])
        numbers = freed.next_numbers()
        start_ms = registration.start_ms
        replay = None if start_ms is None else Replay(START, start_ms)
        return replace(freed, numbers=numbers).put_one(Trigger(registration, "adding", numbers.given, replay=replay))

    def with_registration(self, registration: Registration) -> Triggers:
        return self.put_one(replace(self.there(registration.name), registration=registration))

    def with_replay(self, name: str, from_ms: int) -> Triggers:
        held = self.there(name)
        number = held.replay.number + 1 if held.replay is not None else START
        return self.put_one(replace(held, replay=Replay(number, from_ms)))


# --- views -------------------------------------------------------------------------------------------

VIEW: Final = "view"  # the kind of its followers and flows
UNBOUNDED: Final = (b"m", b"o")  # families with a cell for each member of a group
FAMILIES: Final = ("v", "m", "o")  # of a view's table; here, as a store without views need not load ``view_definition``
_ViewState = Literal["adding", "building", "live"]
VIEW_STATES: Final[dict[str, _ViewState]] = {"adding": "adding", "building": "building", "live": "live"}
_NEXT: Final[dict[_ViewState, _ViewState]] = {"adding": "building", "building": "live"}


@dataclass(frozen=True, slots=True)
class Reads:
    """A source of a view: its table, and the families from which the view reads anything."""

    table: str
    families: tuple[str, ...]  # latin-1 of the bytes, ascending


@dataclass(frozen=True, slots=True)
class KeptView:
    name: str  # its table has the same name
    definition: bytes = b""  # JSON (``model.view_definition``), its sources bound
    reads: tuple[Reads, ...] = ()  # by table, ascending, each once
    state: _ViewState = "live"
    number: int = 0
    unusable_reason: str = ""  # why it cannot be used (I2)
    row_cells: RowCells = ()  # of an unusable view: its row as it is on disk

    @property
    def is_in_use(self) -> bool:
        return self.state != "adding" and not self.unusable_reason

    @property
    def generation(self) -> int:
        return generation_of(self.name)

    @property
    def flow(self) -> Flow:
        """The view's part of the graph of flows."""
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
    swaps: tuple[Swap, ...] = ()  # of views whose live generation is not the first, or that keep an old one

    def generations(self, name: str) -> list[KeptView]:
        """Return the generations of a view, ascending."""
        return sorted((one for one in self.all if base_of(one.name) == name), key=lambda one: one.generation)

    def live_table(self, name: str) -> str:
        """Return the table from which the view ``name`` is read."""
        return live_of(name, self.swaps)

    def swap_of(self, name: str) -> Swap | None:
        return next((one for one in self.swaps if one.name == name), None)

    def aliases(self) -> dict[str, str]:
        """Return the aliases, which map names that clients use to the tables that they mean."""
        return aliases_of([one.name for one in self.all], self.swaps)

    def readers(self, table: str) -> list[KeptView]:
        """Return the views that have the table as a source, including views that are being added or that rest."""
        return [one for one in self.all if any(read.table == table for read in one.reads)]

    def building(self) -> list[KeptView]:
        return [one for one in self.usable() if one.state == "building"]

    def adding(self, view: KeptView) -> ViewSet:
        """Return the set with a new view in state "adding".  Raises ViewError if no number can be given."""
        assert self.find(view.name) is None, "its name is free"
        numbers = self.next_numbers()
        return replace(self, numbers=numbers).put_one(replace(view, state="adding", number=numbers.given))

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
    """Raise IllegalArgument if a family in ``whole`` is unbounded: ``who`` reads these in full with each change.

    A row that has more in such a family than an image may hold accepts no more writes
    (``regions.log.change_logging``).  So a large group would stop the view, and then the writers of its sources.
    """
    unbounded = sorted(family for family in whole if table.kept_by and family in UNBOUNDED)
    if unbounded:
        family = unbounded[0].decode()
        raise IllegalArgument(
            f"{who} would read all of family {family} of view {table.name} with each change, and a group has any "
            "number of members: read its totals (family v), or name columns"
        )

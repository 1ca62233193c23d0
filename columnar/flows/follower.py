"""Followers of changes: a kind, a subscription to a table, and the subscription's follower on each open region.

A new kind of follower needs a subclass of ``Follower`` and a call of ``Hub.register`` with its ``Kind``.  ``Follower``
is compiled, and a compiled class can have compiled subclasses only.  So list the subclass's module in ``compiled.HOT``.

The follower reads its region's log into a ``DeliveryState`` and saves its cursor; its subclass decides what to do with
a change.  Owned by the loop.  Steps are short: after FILL_RECORDS records of the log the loop runs other work.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Final

from columnar.flows.at_hand import AtHand
from columnar.flows.delivery_cursor import Cursor, Progress, pack_cursor, unpack_cursor
from columnar.flows.delivery_state import OPEN_CHANGES, DeliveryState
from columnar.flows.follower_name import FollowerName
from columnar.flows.logged_failure import LoggedFailure
from columnar.limits import LONGEST_LATER_S
from columnar.model.flow_graph import Flow
from columnar.model.flow_status import RUNNING
from columnar.regions.log.change_log import ChangeLog
from columnar.regions.log.change_record import ChangeRecord, Images, Sequence, SequenceRange, pack_key
from columnar.regions.log.log_cursors import CURSOR
from columnar.regions.region import Region

FILL_RECORDS: Final = 256
LAG_MARKS: Final = 512  # moments remembered for the lag in seconds
LAG_MARK_S: Final = 0.2
LAG_COUNTED: Final = 10_000


def _runs(_name: str) -> tuple[str, int]:
    return RUNNING, 0


def _none(_name: str) -> None:
    return None


def _no_tables(_name: str) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Kind:
    """All followers of one kind."""

    name: str
    promises: bool  # the log keeps the records that such a follower needs, and slows writers if there are too many
    is_removed: Callable[[str, int], bool]  # whether the registration with this name and number is known to be removed
    marks: tuple[bytes, ...] = ()  # prefixes of keys in ``meta`` that belong to a cursor; the name follows
    flows: Callable[[], Iterable[Flow]] = tuple  # the kind's registrations as parts of the flow graph
    stands: Callable[[str], tuple[str, int]] = _runs  # a follower's state, and its dead letters that this server knows
    named: Callable[[str], str | None] = _none  # the registration that a client means by a name; raises if it rests
    awaited: Callable[[str], list[str]] = _no_tables  # the tables of a registration; raises if it cannot be waited for


@dataclass(frozen=True, slots=True)
class Subscription:
    """A registration: its follower's name, its table, the data logged for it, and how to make a region's follower."""

    name: FollowerName
    number: int  # of the registration; 0: of an earlier version
    table: str
    families: frozenset[bytes]  # their entries are recorded
    before: frozenset[bytes]  # a subset of ``families``: their cells before the change are recorded
    follow: Callable[[Region, DeliveryState], Follower]
    images: Images = field(default_factory=dict)  # columns of ``families`` whose cells before and after are recorded
    prepare: Callable[[Region], None] | None = None  # called before a region's follower reads its cursor
    in_order: bool = True  # changes of a row are delivered one after the other
    open_changes: int = OPEN_CHANGES  # at a time, of a region
    lasting: Images = field(default_factory=dict)  # columns that refuse puts that expire: the log records no expiry
    sends: bool = False  # the sends of changes are recorded


class Lag:
    """How far a follower is behind the log of its region: in changes, and in seconds."""

    __slots__ = ("_log", "_marks", "_since_s", "_state")

    def __init__(self, state: DeliveryState, log: ChangeLog) -> None:
        self._state = state  # of the follower
        self._log = log
        self._marks: deque[tuple[Sequence, float]] = deque()  # at most LAG_MARKS: ends of the log, with their times
        self._since_s = time.monotonic()

    def note_durable(self) -> None:
        """Remember the present end of the log, which has become longer, with the time."""
        now_s = time.monotonic()
        last = self._log.last_logged
        if last is None or (self._marks and now_s - self._marks[-1][1] < LAG_MARK_S):
            return
        self._forget_passed()
        if len(self._marks) >= LAG_MARKS:  # a long lag is reported more coarsely; its first mark is kept
            self._marks = deque(islice(self._marks, 0, None, 2))
        self._marks.append((last, now_s))

    def _forget_passed(self) -> None:
        while len(self._marks) > 1 and self._state.is_delivered_up_to(self._marks[0][0]):
            self._marks.popleft()

    @property
    def changes(self) -> int:
        """The number of open and unread changes, also those only for other followers; exact up to LAG_COUNTED."""
        return self._state.open_count + self._log.count_after(self._state.read_to, LAG_COUNTED)

    @property
    def seconds(self) -> float:
        if self._state.open_count == 0 and self._log.count_after(self._state.read_to, 1) == 0:
            self._marks.clear()
            return 0.0
        if not self._marks:
            return time.monotonic() - self._since_s  # the changes left by an earlier process
        self._forget_passed()
        return time.monotonic() - self._marks[0][1]


class Follower(ABC):
    """A subscription on one open region."""

    in_order: ClassVar[bool] = True  # as in its subscription
    leaves_out: Callable[[Sequence, ChangeRecord], bool] | None = None  # whether to skip a record that it wants

    def __init__(self, name: FollowerName, region: Region, families: frozenset[bytes], state: DeliveryState) -> None:
        """``state`` is the state that the follower's cursor holds (``restored``)."""
        self.name = name
        self.region = region
        self.families = families.intersection(region.views)  # ``&`` with keys would give a set, not a frozenset
        self.dirty = False  # the cursor has moved since it was saved
        self.state = state
        self.lag = Lag(state, region.log)
        self.at_hand = AtHand()
        self.logged_failure = LoggedFailure()  # to read the region, or of the kind's own work

    @property
    def key(self) -> tuple[FollowerName, int]:
        return self.name, self.region.info.region_id

    # --- what a kind decides -------------------------------------------------------------------------

    @abstractmethod
    def step(self) -> float | None:
        """Do a bounded part of the work; return the seconds until the next step, or None to wait for changes."""

    def pause_intake(self) -> None:  # noqa: B027 - most kinds have nothing under way between two steps
        """Read no more changes: the region is about to be replaced.  ``step`` is called again if the region stays."""

    def dropped(self) -> None:  # noqa: B027
        """End, because the region closes or the subscription is removed; do not touch the region after this call."""

    def preparing(self) -> Future[None] | None:
        """Return a future that ends when every row that the follower begins with is in the log; None if it is."""
        return None

    @property
    def is_prepared(self) -> bool:
        """Whether every row that the follower begins with is in the log."""
        return True

    def obstacle(self) -> str:
        """Return a text for operators: why the follower lags, and what to do."""
        return f"{self.name} is behind{self.failure}; try again later"

    @property
    def failure(self) -> str:
        error = self.state.last_error.strip()
        return f" (its last error: {error.rpartition(chr(10))[2]})" if error and self.state.open_count else ""

    # --- reading the log -----------------------------------------------------------------------------

    def fill(self) -> bool:
        """Read the log for one step; return whether there is more to read, and room for it."""
        state, log = self.state, self.region.log
        count = min(FILL_RECORDS, state.room)
        if count <= 0:
            return False
        seen, leaves_out = 0, self.leaves_out
        for sequence, record in islice(log.read_records(state.read_to), count):
            seen += 1
            if self.wants(record) and (leaves_out is None or not leaves_out(sequence, record)):
                state.read_change(sequence, record.row if self.in_order else pack_key(sequence))
                self.at_hand.keep(sequence, record)
            else:
                state.passed(sequence)
        if seen:
            self.dirty = True
        if seen < count:
            self._note_log_end()
        return seen == count and state.room > 0

    def record_at(self, sequence: Sequence) -> ChangeRecord | None:
        """Return the record of a change that is delivered now; None if it is gone.

        The first delivery need not read the log again.  Raises DamagedData if the record cannot be read.
        """
        record = self.at_hand.take_record(sequence)
        return self.region.log.record_at(sequence) if record is None else record

    def _note_log_end(self) -> None:
        """Note that the log was read to its durable end: entries up to there that were not read are no changes."""
        durable = self.region.log.durable
        if self.state.read_to is None or durable > self.state.read_to:
            self.state.passed(durable)

    def wants(self, record: ChangeRecord) -> bool:
        """Return whether the record is for this follower; a log inherited at a split has the sister's rows, too."""
        if not self.region.info.contains_row(record.row):
            return False
        if record.only_for is not None:
            return record.only_for == self.name.key
        return any(entry.family in self.families for entry in record.entries)

    # --- the cursor ----------------------------------------------------------------------------------

    def save(self) -> None:
        if self.dirty:
            self.region.log.cursors.save_cursor(self.name.key, self._cursor())
            self.dirty = False  # only after success: the log below the cursor is trimmed next

    def save_durably(self) -> Future[None]:
        """Save the cursor; the future ends after the fsync."""
        return self.region.log_records([], {CURSOR + self.name.key.encode(): self._cursor()})

    def _cursor(self) -> bytes:
        return pack_cursor(self.state.cursor()._replace(kept=self.kept()))

    def kept(self) -> bytes:
        """Return the kind's own bytes for the cursor; ``DeliveryState.kept`` has them when the follower is restored."""
        return b""

    def carried(self, all_of_it: Several[Follower], region_id: int) -> bytes:
        """Return ``kept`` for the region that replaces the regions of ``all_of_it``; this follower is one of these."""
        return b""

    def needed_from(self) -> Sequence | None:
        """Return the oldest record that this follower may still read; None if it may read all."""
        return self.state.oldest_open() or self.state.read_to

    def still_open(self, most: int) -> list[tuple[Sequence, int]]:
        """Return the changes still to be delivered, with their failed attempts, reading at most ``most`` of the log.

        Call this when the log is on disk to its end.
        """
        fresh = islice(self.region.log.read_records(self.state.read_to), most)
        return [*self.state.cursor().open, *((sequence, 0) for sequence, record in fresh if self.wants(record))]

    # --- how far it is -------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether no change is open and none is left to read."""
        return (
            self.state.open_count == 0 and self.is_prepared and self.region.log.count_after(self.state.read_to, 1) == 0
        )

    def has_delivered(self, changes: SequenceRange) -> bool:
        """Return whether each of the changes is delivered, or was not for this follower at all."""
        return self.state.is_delivered(changes)

    @property
    def is_quiescent(self) -> bool:
        """Whether no change is in flight."""
        return not self.state.in_flight_count

    def has_passed(self, target: Sequence) -> bool:
        """Return whether every change up to ``target`` is delivered, as is every row that the follower begins with."""
        return self.is_prepared and self.state.is_delivered_up_to(target)


def restored(region: Region, subscription: Subscription) -> DeliveryState:
    """Return the state that the follower's cursor on the region holds."""
    saved = region.log.cursors.cursor(subscription.name.key)
    if saved is None:
        return DeliveryState(None, bound=subscription.open_changes)
    cursor = unpack_cursor(saved)
    state = DeliveryState(cursor.read_to, bound=subscription.open_changes)
    state.kept = cursor.kept
    progress = {one.sequence: one for one in cursor.progress}
    due = _due(cursor)
    for sequence, attempts in cursor.open:
        record = region.log.record_at(sequence)
        if record is not None and region.info.contains_row(record.row):  # a sister after a split delivers other rows
            order = record.row if subscription.in_order else pack_key(sequence)
            checkpoint = progress.get(sequence) or Progress(sequence, b"")
            state.read_change(sequence, order, attempts, checkpoint.state, checkpoint.part, due.get(sequence))
    return state


def _due(cursor: Cursor) -> dict[Sequence, tuple[float, int]]:
    """Return the changes that requested a later delivery, with its time by the loop's clock and in ms since 1970."""
    if not cursor.due:
        return {}
    now_s, now_ms = get_running_loop().time(), time.time() * 1_000
    longest_s = LONGEST_LATER_S  # however the machine's clock was set
    return {one: (now_s + min(longest_s, max(0.0, (at_ms - now_ms) / 1_000)), at_ms) for one, at_ms in cursor.due}


def mark_beginning(region: Region, name: FollowerName, number: int) -> None:
    """Write a cursor for a new follower, which begins after the present end of the log.

    The cursor is on disk before any later change of the region, because the engine's log keeps the order of writes.
    """
    if not region.log.cursors.cursor_names():
        region.log.keep_all()  # no follower needs the earlier records
    region.log.cursors.begin_cursor(name.key, pack_cursor(Cursor(region.log.written_to, ())), number)


def begin_after(region: Region, name: FollowerName, number: int) -> Future[None]:
    """Do ``mark_beginning``; the future ends after the fsync."""
    mark_beginning(region, name, number)
    return region.log_records([], {})


def undelivered(region: Region, name: FollowerName) -> int:
    """Count the changes that a removed follower had not received yet; exact up to LAG_COUNTED."""
    saved = region.log.cursors.cursor(name.key)
    if saved is None:
        return 0
    cursor = unpack_cursor(saved)
    found = [region.log.record_at(sequence) for sequence, _ in cursor.open]
    found += [record for _, record in islice(region.log.read_records(cursor.read_to), LAG_COUNTED)]
    return sum(1 for record in found if record is not None and region.info.contains_row(record.row))

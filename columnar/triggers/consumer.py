"""One trigger on one region: reads the log into a ``DeliveryState``, saves its cursor, backfills.

The shell around ``delivery_state``; owned by the loop.  Steps are short: FILL_RECORDS of the log, or
BACKFILL_ROWS of the table, then the loop is given back.
"""

from __future__ import annotations

import time
from asyncio import Future
from collections import deque
from itertools import islice
from typing import Any, Final

from columnar.flows.delivery_state import Cursor, Delivery, DeliveryState, pack_cursor, unpack_cursor
from columnar.model.read import Projection, ReadSpec
from columnar.regions.change_record import ChangeRecord, Sequence
from columnar.regions.region import Region
from columnar.regions.row_reader import RowCursor, latest_timestamp
from columnar.storage.layout import range_start
from columnar.triggers.registration import Registration

FILL_RECORDS: Final = 256
BACKFILL_ROWS: Final = 500
LAG_MARKS: Final = 512  # moments remembered for telling the lag in seconds
LAG_MARK_S: Final = 0.2
LAG_COUNTED: Final = 10_000
_BACKFILL: Final = b"backfill/"
_BACKFILL_DONE: Final = b"done"


class Consumer:
    def __init__(self, registration: Registration, region: Region) -> None:
        self.registration = registration
        self.region = region
        self.dirty = False  # the cursor has moved since it was saved
        self.suspects: set[Sequence] = set()  # changes that ran when their worker died or had to be ended
        self.failed_reads = 0  # of the region, since a change was delivered
        families = sorted(registration.family_bytes & region.views.keys())
        self._spec = ReadSpec(Projection(tuple((family, None) for family in families)))
        self._families = frozenset(families)
        self._marks: deque[tuple[Sequence, float]] = deque()  # at most LAG_MARKS
        self._since = time.monotonic()
        self.state = self._restored()

    def _restored(self) -> DeliveryState:
        saved = self.region.log.cursors().get(self.registration.name)
        if saved is None:
            return DeliveryState(None)
        cursor = unpack_cursor(saved)
        state = DeliveryState(cursor.read_to)
        for sequence, attempts in cursor.open:
            record = self.region.log.record_at(sequence)
            if record is not None and self.region.info.holds(record.row):  # else a sister of a split delivers it
                state.read(sequence, record.row, attempts)
        return state

    # --- reading the log ---------------------------------------------------------------------------

    def fill(self) -> bool:
        """Read one step of the log; True when there is more to read and room for it."""
        state, log = self.state, self.region.log
        count = min(FILL_RECORDS, state.room)
        if count <= 0:
            return False
        seen = 0
        for sequence, record in islice(log.read(state.read_to), count):
            seen += 1
            if self.is_mine(record):
                state.read(sequence, record.row)
            else:
                state.passed(sequence)
        if seen:
            self.dirty = True
        if seen < count:
            self._reached_end()
        return seen == count and state.room > 0

    def _reached_end(self) -> None:
        """Nothing more is durable: what lies between is no change of the log."""
        durable = self.region.log.durable
        if self.state.read_to is None or durable > self.state.read_to:
            self.state.passed(durable)

    def is_mine(self, record: ChangeRecord) -> bool:
        """A log inherited from a split holds changes of the sister's rows too."""
        if not self.region.info.holds(record.row):
            return False
        if record.only_for is not None:
            return record.only_for == self.registration.name
        return any(entry.family in self._families for entry in record.entries)

    def change_of(self, delivery: Delivery) -> list[Any] | None:
        """The change as a frame carries it, with the row as it is now; None when its record is gone."""
        record = self.region.log.record_at(delivery.sequence)
        if record is None:
            return None
        cells = self.region.get_row(record.row, self._spec)
        return [
            self.registration.table.encode(),
            record.row,
            record.stamp,
            delivery.sequence.token,
            [
                [entry.kind, _column(entry.family, entry.qualifier, entry.kind), entry.timestamp, entry.value]
                for entry in record.entries
                if entry.family in self._families
            ],
            {column: value for column, value, _ in cells},
            {
                entry.family + b":" + entry.qualifier: entry.value
                for entry in (record.before if self.registration.before else ())
                if entry.family in self._families
            },
            delivery.attempt,
            record.only_for is not None,
            record.timestamp,
        ]

    # --- the cursor --------------------------------------------------------------------------------

    def save(self) -> None:
        if self.dirty:
            self.dirty = False
            self.region.log.save_cursor(self.registration.name, pack_cursor(self.state.cursor()))

    def needed_from(self) -> Sequence | None:
        """The oldest record this consumer may still read; None: all of them."""
        return self.state.oldest_open() or self.state.read_to

    # --- backfill ----------------------------------------------------------------------------------

    @property
    def needs_backfill(self) -> bool:
        if self.registration.from_where != "beginning":
            return False
        return self.region.mark(_backfill_key(self.registration.name)) != _BACKFILL_DONE

    def backfill_step(self) -> Future[None] | None:
        """Log one step of the rows that are there as changes for this trigger; a future, None at the end."""
        region = self.region
        key = _backfill_key(self.registration.name)
        mark = region.mark(key)
        start = max(mark[1:] if mark else b"", range_start(region.info.start))  # the mark may be of before a split
        stop = range_start(region.info.end) if region.info.end else None
        cursor = RowCursor(region.store, region.views, self._spec.projection, start, stop, reverse=False)
        records: list[ChangeRecord] = []
        last = b""
        while len(records) < BACKFILL_ROWS and (found := cursor.next_row()) is not None:
            row, raw_row = found
            newest = latest_timestamp(raw_row, region.now_ms)
            last = row
            if newest is not None:
                records.append(ChangeRecord(row, newest, (), (), self.registration.name))
        if not last:
            region.log_records([], {key: _BACKFILL_DONE})
            return None
        return region.log_records(records, {key: b"@" + range_start(last + b"\x00")})

    # --- lag ---------------------------------------------------------------------------------------

    def note_durable(self) -> None:
        """The log has become longer: remember when."""
        now = time.monotonic()
        last = self.region.log.last_logged
        if last is None or (self._marks and now - self._marks[-1][1] < LAG_MARK_S):
            return
        while len(self._marks) > 1 and self.state.is_past(self._marks[0][0]):
            self._marks.popleft()
        if len(self._marks) >= LAG_MARKS:  # a long lag is told more coarsely; where it began is kept
            self._marks = deque(islice(self._marks, 0, None, 2))
        self._marks.append((last, now))

    @property
    def is_idle(self) -> bool:
        """Nothing is open, nothing is left to read."""
        log = self.region.log
        return self.state.open_count == 0 and not self.needs_backfill and log.count_after(self.state.read_to, 1) == 0

    @property
    def lag_changes(self) -> int:
        """Open changes and those not yet read, others' among them; exact up to LAG_COUNTED."""
        return self.state.open_count + self.region.log.count_after(self.state.read_to, LAG_COUNTED)

    @property
    def lag_seconds(self) -> float:
        if self.lag_changes == 0:
            self._marks.clear()
            return 0.0
        if not self._marks:
            return time.monotonic() - self._since  # what was left by an earlier run
        while len(self._marks) > 1 and self.state.is_past(self._marks[0][0]):
            self._marks.popleft()
        return time.monotonic() - self._marks[0][1]


def begin_after(region: Region, trigger: str, number: int) -> Future[None]:
    """A new trigger starts after what is in the log now, and after nothing that an earlier one of its name left.

    The future resolves after the fsync.
    """
    forget(region, trigger)
    if not region.log.cursors():
        region.log.keep_all()  # nobody needs what is there
    region.log.begin_cursor(trigger, pack_cursor(Cursor(region.log.written_to, ())), number)
    return region.log_records([], {})


def forget(region: Region, trigger: str) -> None:
    region.log.drop_cursor(trigger, _backfill_key(trigger))


def undelivered(region: Region, trigger: str) -> int:
    """How many changes a trigger that is no more had still to see; exact up to LAG_COUNTED.  Forgets it."""
    saved = region.log.cursors().get(trigger)
    if saved is None:
        return 0
    cursor = unpack_cursor(saved)
    found = [region.log.record_at(sequence) for sequence, _ in cursor.open]
    found += [record for _, record in islice(region.log.read(cursor.read_to), LAG_COUNTED)]
    forget(region, trigger)
    return sum(1 for record in found if record is not None and region.info.holds(record.row))


def _backfill_key(trigger: str) -> bytes:
    return _BACKFILL + trigger.encode()


def _column(family: bytes, qualifier: bytes, kind: int) -> bytes:
    return family if kind == 3 else family + b":" + qualifier

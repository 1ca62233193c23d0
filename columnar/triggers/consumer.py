"""A trigger on one region: the changes that its function is called with, and its backfill.

Backfill: a trigger that starts from the beginning gets every row.  The rows are logged as changes for this trigger
alone, BACKFILL_ROWS at a time, and the region's ``meta`` keeps the progress:

    backfill/NAME -> "@" and the cell key to continue from, or "done"

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio import Future
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol

from columnar.errors import ColumnarError, DamagedData, ProgramFault
from columnar.flows.backpressure import LONGEST_DELAY_S
from columnar.flows.delivery_state import Delivery, DeliveryState, pause_s
from columnar.flows.follower import Follower
from columnar.flows.follower_name import trigger
from columnar.flows.logged_failure import LoggedFailure
from columnar.model.read import Projection, ReadSpec
from columnar.model.trigger_registration import Registration
from columnar.model.trigger_scope import Scope
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_record import ChangeRecord, Entry, Kind, Sequence
from columnar.regions.read.region_reads import get_whole_row
from columnar.regions.read.row_reader import RowCursor, latest_timestamp
from columnar.regions.region import Region
from columnar.regions.write.images import images_of
from columnar.runtime.faults import FAULTS
from columnar.storage.layout import range_start
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.delivery_source import DeliverySource
from columnar.triggers.frames import BATCH_BYTES, CHANGE_BYTES, HOPS, IS_BACKFILL, size_of
from columnar.triggers.lookup_prefetch import LookupPrefetch
from columnar.triggers.worker_state import CallChanges, Origin

_log = logging.getLogger(__name__)

READY_ROWS: Final = 512  # no more changes are read while this many rows can be delivered
BACKFILL_ROWS: Final = 500
BACKFILL: Final = b"backfill/"
BEGIN: Final = b"@"  # of a mark: the key to continue from follows
_DONE: Final = b"done"

_TOO_LARGE: Final = (
    f"its change has {{}} bytes with its images, at most {CHANGE_BYTES} are sent to a function: name fewer columns, or "
    "leave out before"
)
_GAVE: Final = "it has given to totals, or may have: a retry is a change of its own, and adds its tallies again\n"

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class ConsumerEvents(Protocol):
    """The dispatcher, as a consumer sees it."""

    def advance_consumer(self, consumer: Consumer) -> None: ...

    def pause_consumer_intake(self, consumer: Consumer) -> None: ...

    def drop_consumer(self, consumer: Consumer) -> None: ...

    def is_paused(self, name: str) -> bool: ...


class Consumer(Follower):
    def __init__(
        self,
        registration: Registration,
        region: Region,
        state: DeliveryState,
        dispatcher: ConsumerEvents,
        spawn: Spawn,
        lookup_prefetch: LookupPrefetch | None = None,
        repeats_to: Sequence | None = None,
        repeats_from_ms: int = 0,
    ) -> None:
        """``lookup_prefetch`` is given if the registration has lookups.

        A replay repeats the changes up to ``repeats_to`` that were written at ``repeats_from_ms`` or later.  Raises
        IllegalArgument if the registration cannot be read.
        """
        self.registration = registration
        self.scope = registration.scope()
        self._lookup_prefetch = lookup_prefetch
        self.source = DeliverySource(registration, state)
        self._dispatcher = dispatcher
        self._spawn = spawn
        self._backfill: asyncio.Task[None] | None = None
        self._is_prepared = False  # as far as is known
        self._repeats_to, self._repeats_from_ms = repeats_to, repeats_from_ms
        if repeats_to is not None and repeats_from_ms:
            self.leaves_out = self._is_older
        self._enough = max(READY_ROWS, 2 * registration.batch)
        super().__init__(trigger(registration.name), region, registration.family_bytes, state)
        self._spec = ReadSpec(Projection(tuple((family, None) for family in sorted(self.families))))

    # --- flows.follower.Follower ---------------------------------------------------------------------

    def step(self) -> None:
        if self._backfill is None and not self.is_prepared:
            self._backfill = self._spawn(self._log_all())
        self.source.resume_region()
        self._dispatcher.advance_consumer(self)

    def pause_intake(self) -> None:
        self._end_backfill()
        self._dispatcher.pause_consumer_intake(self)

    def dropped(self) -> None:
        self._end_backfill()
        self._dispatcher.drop_consumer(self)

    def preparing(self) -> Future[None] | None:
        return self._backfill if self._backfill is not None and not self._backfill.done() else None

    @property
    def is_prepared(self) -> bool:
        if not self._is_prepared:
            mark = self.region.mark(self._mark)
            self._is_prepared = mark == _DONE if mark is not None else self.registration.from_where != "beginning"
        return self._is_prepared

    def obstacle(self) -> str:
        name = self.registration.name
        if self._dispatcher.is_paused(name):
            return f"trigger {name} is paused{self.failure}; columnar trigger resume {name}, or remove it"
        return super().obstacle()

    def wants(self, record: ChangeRecord) -> bool:
        """Return whether the registration requests the change; other changes are skipped without a call."""
        if not self.region.info.contains_row(record.row):
            return False
        if record.only_for is not None:
            return record.only_for == self.name.key
        scope = self.scope
        if not any(scope.touches(entry.family, _qualifier(entry)) for entry in record.entries):
            return False
        if not scope.conditions:
            return True
        images = images_of(record, scope.tested)
        return images is None or scope.matches_row(images.after)  # without images ``change_of`` tests the present row

    # --- scheduling ----------------------------------------------------------------------------------

    def fill(self) -> bool:
        before = self.state.open_count
        if self.state.ready_count >= self._enough:
            return True
        more = super().fill()
        self.source.note_read(self.state.open_count - before, asyncio.get_running_loop().time())
        return more

    # --- calls ---------------------------------------------------------------------------------------

    def note_delivered(self, count: int) -> None:
        """Note that ``count`` changes were delivered, so that the cursor must be saved again."""
        self.dirty = True
        self.region.deliveries += count
        if count and self.logged_failure.has_ended():
            _log.info("%s reads region %s again", self.name, self.region.info.encoded)

    def log_failed_read(self, error: ColumnarError) -> None:
        """Log that the region cannot be read now, unless the log has it already."""
        if self.logged_failure.is_news(error.text):
            place = self.region.info.encoded
            _log.warning("%s cannot read region %s, and tries again after pauses: %s", self.name, place, error.text)

    def barriers(self, deliveries: list[Delivery], changes: list[Any]) -> list[Future[None]]:
        """Return the fsyncs that a call must wait for if it read rows as they are now."""
        found: dict[int, Future[None]] = {}
        for delivery, change in zip(deliveries, changes, strict=True):
            if self.registration.row or change[IS_BACKFILL]:
                barrier = self.region.syncs.barrier(delivery.row)
                if barrier is not None:
                    found[id(barrier)] = barrier
        return list(found.values())

    def read_changes(self, deliveries: list[Delivery]) -> tuple[list[Any], CallChanges]:
        """Read a call's changes as a frame carries them.  Raises ColumnarError if the region cannot be read now."""
        changes: list[Any] = []
        found = CallChanges([], [], [], [], 0, [])
        size_bytes = 0
        for at, delivery in enumerate(deliveries):
            try:
                change = self.change_of(delivery)
            except DamagedData as error:
                found.damaged.append((delivery, f"its change cannot be read: {error.wire_message}"))
                continue
            if change is None:
                found.gone.append(delivery)
                continue
            change_bytes = size_of(change)
            if change_bytes > CHANGE_BYTES:
                found.damaged.append((delivery, _TOO_LARGE.format(change_bytes)))
                continue
            changes.append(change)
            found.kept.append(delivery)
            found.origins.append(Origin(change[2], change[HOPS]))
            size_bytes += change_bytes
            if size_bytes >= BATCH_BYTES:
                found.rest.extend(deliveries[at + 1 :])
                break
        return changes, found._replace(size_bytes=size_bytes)

    def letter_of(self, delivery: Delivery, error: str, output: str) -> DeadLetter:
        """Return the dead letter of a change that has used up its attempts."""
        registration = self.registration
        return DeadLetter(
            registration.name,
            registration.table,
            delivery.row,
            delivery.sequence.token,
            delivery.attempt,
            _GAVE + error if self.state.has_given(delivery.sequence) else error,
            output,
            int(time.time() * 1000),
            self._record_for_letter(delivery),
        )

    def _record_for_letter(self, delivery: Delivery) -> ChangeRecord | None:
        """Return the change for the letter; None if its record cannot be read, or an operator removed it."""
        try:
            return self.region.log.record_at(delivery.sequence)
        except ColumnarError as error:
            _log.warning("a dead letter of %s lacks its change: %s", self.name, error.text)
            return None

    def change_of(self, delivery: Delivery) -> list[Any] | None:
        """Return the change as a frame carries it, with the row as it is now; None if no call is needed.

        No call is needed if the change's record is removed, or if its row does not meet the conditions.
        """
        record = self.record_at(delivery.sequence)
        if record is None:
            return None
        scope = self.scope
        images = change_images_of(self.region, record, scope) if scope.images else None
        is_letter = record.only_for is not None and not record.stands_for_row  # it met the conditions then
        if images is not None and not is_letter and not scope.matches_row(images.after):
            return None
        cells = get_whole_row(self.region, record.row, self._spec) if self.registration.row else None
        return [
            self.registration.table.encode(),
            record.row,
            record.stamp,
            delivery.sequence.token,
            [
                [entry.kind, _column(entry.family, entry.qualifier, entry.kind), entry.timestamp, entry.value]
                for entry in record.entries
                if scope.touches(entry.family, _qualifier(entry))
            ],
            None if cells is None else {column: value for column, value, _ in cells},
            self._before(record, images),
            delivery.attempt,
            record.stands_for_row or (images is not None and not images.is_exact),
            record.timestamp,
            record.hops,
            images.after if images is not None and self.registration.images else None,
            self._prefetch_lookups(record.row, images),
            bool(record.entries) and (record.only_for is not None or self._is_repeat(delivery.sequence)),
        ]

    def _is_older(self, sequence: Sequence, record: ChangeRecord) -> bool:
        """Return whether the change was delivered before, and is older than the time at which the replay begins.

        A replay begins at a time mark of the log.  Time marks are coarse, and a mark of a merged region stands before
        records of both its predecessors, so records after the mark may be older than the requested time.
        """
        return self._is_repeat(sequence) and record.stamp < self._repeats_from_ms

    def _is_repeat(self, sequence: Sequence) -> bool:
        return self._repeats_to is not None and sequence <= self._repeats_to

    def _before(self, record: ChangeRecord, images: ChangeImages | None) -> dict[bytes, bytes] | None:
        """Return the image before the change, or if the registration has no images the touched cells.

        Returns None if the registration has images but does not request this one.  Columns that do not count are left
        out: other followers have them recorded, and the trigger's owner need not have the right to read them.
        """
        if self.registration.images:
            return images.before if images is not None and self.registration.before else None
        return {
            entry.family + b":" + entry.qualifier: entry.value
            for entry in (record.touched_before if self.registration.before else ())
            if self.scope.touches(entry.family, entry.qualifier)
        }

    def _prefetch_lookups(self, row: bytes, images: ChangeImages | None) -> dict[str, list[Any]] | None:
        if self._lookup_prefetch is None or not self.scope.lookups:
            return None
        image = images.after if images is not None else {}
        return {lookup.name: self._lookup_prefetch.prefetch_row(lookup, row, image) for lookup in self.scope.lookups}

    # --- backfill ------------------------------------------------------------------------------------

    @property
    def _mark(self) -> bytes:
        return BACKFILL + self.name.key.encode()

    def _end_backfill(self) -> None:
        if self._backfill is not None:
            self._backfill.cancel()  # the next one begins where its mark stands
            self._backfill = None

    async def _log_all(self) -> None:
        """Log all rows.  Retries after a growing pause if the region cannot be read or written: no other task would."""
        tries, failure = 0, LoggedFailure()
        while self.region.is_open:
            try:
                waiting = await retry_until_ready(self.backfill_step)
                if waiting is None:
                    _log.info("%s: backfill of %s is logged", self.name, self.region.info.encoded)
                    return
                await asyncio.shield(waiting)
                tries = 0
                if failure.has_ended():
                    _log.info("%s: backfill of %s goes on", self.name, self.region.info.encoded)
            except ColumnarError as error:
                tries += 1
                self.state.note_error(error.wire_message)
                if failure.is_news(error.text):
                    place = self.region.info.encoded
                    _log.warning("%s: backfill of %s is tried again after pauses: %s", self.name, place, error.text)
                await asyncio.sleep(pause_s(tries))
            except Exception as fault:  # noqa: BLE001 - its rows would never be delivered
                tries += 1
                FAULTS.met("the backfills of triggers", fault)
                self.state.note_error(ProgramFault(fault).wire_message)
                await asyncio.sleep(pause_s(tries))
            await self._feel_backpressure()

    async def _feel_backpressure(self) -> None:
        """Wait under backpressure as every writer does: the log may be long already."""
        region = self.region
        if region.write_delay_s > 0:
            await asyncio.sleep(region.write_delay_s)
        while region.refuses_writes and region.is_open:  # noqa: ASYNC110 - as a writer that is asked to try later
            await asyncio.sleep(LONGEST_DELAY_S)

    def backfill_step(self) -> Future[None] | None:
        """Log the next BACKFILL_ROWS rows as changes for this trigger.

        Returns a future that is done when they are durable, or None if no row is left.
        """
        region, mark = self.region, self.region.mark(self._mark)
        start = max(mark[1:] if mark else b"", range_start(region.info.start))  # the mark may be older than a split
        stop = range_start(region.info.end) if region.info.end else None
        cursor = RowCursor.over(region.store, region.views, self._spec.projection, start, stop, reverse=False)
        records: list[ChangeRecord] = []
        last = b""
        while len(records) < BACKFILL_ROWS and (found := cursor.next_row()) is not None:
            row, raw_row = found
            newest = latest_timestamp(region.store, row, raw_row, region.now_ms)
            last = row
            if newest is not None:
                records.append(ChangeRecord(row, newest, (), (), self.name.key))
        if not last:
            region.log_records([], {self._mark: _DONE})
            return None
        return region.log_records(records, {self._mark: BEGIN + range_start(last + b"\x00")})


def _qualifier(entry: Entry) -> bytes | None:
    """Return the entry's qualifier; None if it deletes the whole family."""
    return None if entry.kind == Kind.DELETE_FAMILY else entry.qualifier


def _column(family: bytes, qualifier: bytes, kind: int) -> bytes:
    return family if kind == 3 else family + b":" + qualifier


class ChangeImages(NamedTuple):
    """A row before and after a change, with the cells that its trigger requested.

    The images are exact if the change's record has them (``regions.write.images``).  A record has no images if it was
    written before the trigger requested them, or if it stands for no change (a row of a backfill, or a dead letter that
    is retried as its row is now).  Then ``after`` is the row as it is now, and ``before`` is the cells that the record
    has, mostly none.
    """

    before: dict[bytes, bytes]
    after: dict[bytes, bytes]
    is_exact: bool


def change_images_of(region: Region, record: ChangeRecord, scope: Scope) -> ChangeImages:
    recorded = images_of(record, scope.images)
    if recorded is not None:
        return ChangeImages(recorded.before, recorded.after, is_exact=True)
    families = [
        (family, None if qualifiers is None else tuple(sorted(qualifiers)))
        for family, qualifiers in sorted(scope.images.items())
        if family in region.views
    ]
    cells = get_whole_row(region, record.row, ReadSpec(Projection(tuple(families))))
    before = {entry.family + b":" + entry.qualifier: entry.value for entry in record.before}
    return ChangeImages(
        {column: value for column, value in before.items() if scope.has_image_of(column)},
        {column: value for column, value, _ in cells},
        is_exact=False,
    )

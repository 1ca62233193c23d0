"""Reads the changes of one region for a change stream, and the rows of its snapshot, from a position on.

A snapshot joins the changes without gap or repeat, without a pause of the writers (``flows.position``).  A chunk of
rows is read in one step of the loop, at the log's last sequence W.  It is sent only after every change up to W of the
rows that were read before, and when W is durable.  From there on the changes of the chunk's rows are wanted, too.

Invariants:
    I1. Every event is durable before it leaves.
    I2. Each wanted change behind the position is sent, or is in a row that was read after it; otherwise ChangesGone is
        raised, or the rows are forgotten and read again (``StreamSpec.begins_again``).  A position that the log never
        gave has no changes behind it: of a former timeline (``lost_changes``), or beyond the log's end.
    I3. The ranges that are returned count exactly the events of the reply.
    I4. A reply ends after the event with which it is full, or after the chunk of rows with which it is full.

Steps of the log end at round sequences, and a reply that is nearly full ends with its step.  So readers that are behind
come to the same positions, wherever they began, and share their replies from then on (``SharedReplies``).

Owned by the loop; steps are short, and between two of them other work runs.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from columnar.errors import ChangesGone, NotAllowed, RegionNotLocal, abbreviate
from columnar.flows.position import SKIPPED, Range
from columnar.limits import STEP_BYTES
from columnar.model.change_stream import BEGINNING, NOW
from columnar.model.read import ReadSpec, projection
from columnar.regions.log.change_record import Sequence
from columnar.regions.log.log_coverage import Segment, clipped
from columnar.regions.read.found_rows import size_of
from columnar.regions.read.row_reader import STEP_COST, RowCursor, RowIsWide, WireCell, visible_cells
from columnar.regions.read.wide_row import ReadingEnded, WideRow
from columnar.regions.region import Region
from columnar.storage.layout import range_start
from columnar.streams.change_filter import ChangeFilter
from columnar.streams.consolidation import Consolidation

STEP_RECORDS: Final = 256  # of the log, some 3 ms; a step ends at a multiple of it
NEARLY_FULL: Final = 0.75  # of a reply
STEP_S: Final = 0.02  # a step of large records or rows ends after the one that passes it
READ_STEPS: Final = 64  # of one read, whose client may have gone meanwhile; also its chunks of rows
CONSOLIDATED_STEPS: Final = 256  # 65,536 records
CHUNK_ROWS: Final = 128  # of a snapshot, and at most CHUNK_BYTES or one row
CHUNK_BYTES: Final = 256 * 1024
SNAPSHOT_ROW_BYTES: Final = 32 * 1024 * 1024  # of one row's cells, which are one event


class Reply:
    """The events that a reply has so far."""

    __slots__ = ("_nearly_bytes", "bound_bytes", "events", "size_bytes")

    def __init__(self, bound_bytes: int) -> None:
        self.bound_bytes = self._nearly_bytes = bound_bytes
        self.events: list[bytes] = []
        self.size_bytes = 0

    def add_event(self, event: bytes) -> None:
        self.events.append(event)
        self.size_bytes += len(event)

    def allow_bytes(self, room: int) -> None:
        """Let the reply grow by ``room`` from here on."""
        self.bound_bytes = self.size_bytes + room
        self._nearly_bytes = self.size_bytes + int(room * NEARLY_FULL)

    def remove_after(self, count: int) -> None:
        """Remove all events but the first ``count``."""
        self.size_bytes -= sum(map(len, self.events[count:]))
        del self.events[count:]

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= self.bound_bytes

    @property
    def is_nearly_full(self) -> bool:
        return self.size_bytes >= self._nearly_bytes


class RegionReader:
    """A read of one region."""

    def __init__(
        self, region: Region, wanted: ChangeFilter, reply: Reply, end: Sequence, wide_rows: asyncio.Lock
    ) -> None:
        """``end``: up to where the log is read, at or below its durable end.

        ``wide_rows``: of the server, held while a row of up to SNAPSHOT_ROW_BYTES is gathered in memory.
        """
        self._region = region
        self._end = end
        self._wide_rows = wide_rows
        self._filter = wanted
        self._reply = reply
        self._merger = Consolidation() if wanted.spec.consolidates else None
        self.taken_s = 0.0  # processor time of the steps so far
        self.read_up_to_ms = 0  # after ``read_changes``: every change with a lower stamp was read; 0: unknown

    async def read_changes(self, ranges: tuple[Range, ...], start: str) -> tuple[tuple[Range, ...], bool]:
        """Add events to the reply; return the ranges after them, and whether nothing more is to be read now.

        ``ranges`` cover the region's rows; if they are empty, the stream begins here, at ``start``: ``now``,
        ``beginning``, or a time in ms since 1970.  Raises ChangesGone, and RegionNotLocal if the region is closed
        meanwhile.
        """
        ranges = self._with_coverage(ranges or self._begun(start))
        if self._reply.is_full:
            return ranges, False
        region = self._region
        for _ in range(READ_STEPS):
            last = self._end
            # later records get a stamp of the clock, or a higher one
            self.read_up_to_ms = region.now_ms if last == region.log.written_to else 0
            ranges, is_at_end = await self._read_log(ranges, last)
            if not is_at_end or self._reply.is_full:
                return ranges, False
            unread = next((at for at, one in enumerate(ranges) if one.x is not None), None)
            if unread is None:
                return ranges, True
            ranges = await self._read_chunk(ranges, unread)
            if self._reply.is_full:
                return ranges, False
            await asyncio.sleep(0)  # chunks without a wanted row wait for nothing else
            self._check_open()
        return ranges, False

    # --- where it begins --------------------------------------------------------------------------------

    def _begun(self, start: str) -> tuple[Range, ...]:
        info, log = self._region.info, self._region.log
        if start == BEGINNING:
            return (Range(info.start, None, info.start),)
        if start == NOW:
            return (Range(info.start, log.durable, None),)
        place = log.retention.before(int(start))
        if place is None:
            raise self._gone(f"do not reach back to {_format_time(int(start))}")
        segments = clipped(log.coverage.segments(), info.start, info.end)
        return tuple([Range(one.start, max(place, one.after), None) for one in segments])

    def _with_coverage(self, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        """Return the ranges cut at the segments of the log's coverage; what is not covered begins again (I2)."""
        info = self._region.info
        segments = clipped(self._region.log.coverage.segments(), info.start, info.end)
        if not segments:
            raise NotAllowed(
                f"table {info.table} keeps no changes for readers; say for how many seconds it keeps them: "
                f"columnar alter {info.table} --set CHANGE_LOG=86400 (those from then on)"
            )
        cut = _cut(ranges, segments)
        found: list[Range] = []
        for at, one in enumerate(cut):
            after = segments[_index(segments, one.start)].after
            stop = cut[at + 1].start if at + 1 < len(cut) else info.end
            is_foreign = one.p is not None and not self._gave(one.p)
            is_covered = _is_unread(one) or (one.p is not None and one.p >= after and not is_foreign)
            if is_covered or not self._filter.spec.overlaps(one.start, stop):  # of a region that had no wanted rows
                found.append(one)
                continue
            if not self._filter.spec.begins_again:
                raise self._restored() if is_foreign else self._gone("after the position are no longer kept")
            self._reply.add_event(self._filter.forget_event(one.start, stop))
            found.append(Range(one.start, None, one.start))
        return tuple(found)

    def _gave(self, place: Sequence) -> bool:
        """Return whether the log may have given the position; SKIPPED stands for rows that the reader leaves out."""
        log = self._region.log
        return place == SKIPPED or (place <= log.written_to and not log.is_lost(place))

    def _restored(self) -> ChangesGone:
        info = self._region.info
        return ChangesGone(
            f"the position in region {info.encoded} of table {info.table} is not of this store's history: the store "
            "was restored from a copy, and lacks what was written after the copy; begin again with a snapshot "
            "(snapshot, or --snapshot)"
        )

    def _gone(self, what: str) -> ChangesGone:
        info = self._region.info
        reach = self._region.log.retention.earliest_whole_time()
        since = f"; they reach back to {_format_time(reach)}" if reach is not None else ""
        return ChangesGone(
            f"changes of table {info.table} in region {info.encoded} {what}{since}; begin again with a snapshot "
            "(snapshot, or --snapshot), and let CHANGE_LOG and CHANGE_LOG_BYTES of the table keep more"
        )

    # --- changes -----------------------------------------------------------------------------------------

    async def _read_log(self, ranges: tuple[Range, ...], last: Sequence) -> tuple[tuple[Range, ...], bool]:
        """Add the wanted changes up to ``last``, which is durable; return whether the log was read so far."""
        places = [one.p for one in ranges if one.p is not None and not _is_unread(one)]
        if not places:
            return ranges, True
        place = min(places)
        steps, most = 0, READ_STEPS if self._merger is None else CONSOLIDATED_STEPS
        while place < last:
            begun_s = time.thread_time()
            place, is_at_end = self._read_step(ranges, place, last)
            self.taken_s += time.thread_time() - begun_s
            steps += 1
            if is_at_end or self._ends_at(place) or steps == most:
                break
            await asyncio.sleep(0)
            self._check_open()
        if self._merger is not None:
            for change in self._merger.take_changes():
                self._reply.add_event(self._filter.change_event(change))
        moved = [
            one if one.p is None or _is_unread(one) else Range(one.start, max(one.p, place), one.x) for one in ranges
        ]
        return tuple(moved), place >= last

    def _is_full(self) -> bool:
        merger = self._merger
        if merger is None:
            return self._reply.is_full
        # a step of several rows is not cut, so that nothing is consolidated across its end
        return not merger.is_in_step and self._reply.size_bytes + merger.size_bytes >= self._reply.bound_bytes

    def _ends_at(self, place: Sequence) -> bool:
        """Return whether the reply ends at ``place``, to which a step has read."""
        is_round = self._merger is None and place.n % STEP_RECORDS == 0
        return self._is_full() or (is_round and self._reply.is_nearly_full)

    def _read_step(self, ranges: tuple[Range, ...], place: Sequence, last: Sequence) -> tuple[Sequence, bool]:
        """Read to the next multiple of STEP_RECORDS, or as far as STEP_S allows.

        Returns the last sequence read (``last`` at the end), and whether it is the end.
        """
        info, wanted, reply, merger = self._region.info, self._filter, self._reply, self._merger
        single = ranges[0] if len(ranges) == 1 else None
        count, until_s = 0, time.monotonic() + STEP_S
        for sequence, record in islice(self._region.log.read_records(place), STEP_RECORDS):
            if sequence > last:
                return last, True
            if count and time.monotonic() > until_s:
                return place, False
            count += 1
            place = sequence
            row = record.row
            is_mine = info.contains_row(row) and wanted.has_row(row)
            if is_mine and (single or ranges[_index(ranges, row)]).wants(row, sequence):
                is_added = merger is not None and wanted.is_whole and merger.add_record(sequence, record)
                change = None if is_added else wanted.change_of(sequence, record)
                if change is not None and merger is None:
                    reply.add_event(wanted.change_event(change))
                elif change is not None and merger is not None:
                    merger.add_change(change)
            if self._is_full() or sequence.n % STEP_RECORDS == 0:
                return place, False
        return (last, True) if count < STEP_RECORDS else (place, False)

    # --- rows of a snapshot ------------------------------------------------------------------------------

    async def _read_chunk(self, ranges: tuple[Range, ...], at: int) -> tuple[Range, ...]:
        """Read the next rows of range ``at``, whose log was read to its durable end."""
        one, log = ranges[at], self._region.log
        stop = ranges[at + 1].start if at + 1 < len(ranges) else self._region.info.end
        last = log.written_to
        begun_s = time.thread_time()
        try:
            events, x = self._read_rows(one, stop, last)
        except RowIsWide as wide:
            async with self._wide_rows:
                self._check_open()
                last = log.written_to
                events, x = await self._read_wide_row(wide.row, last)
        else:
            self.taken_s += time.thread_time() - begun_s
        await self._until_durable(last)
        ranges, is_at_end = await self._read_log(ranges, last)
        if not is_at_end or self._reply.is_full:  # the chunk is read again, later
            return ranges
        for event in events:
            self._reply.add_event(event)
        # Numbers above the durable end that no group waits for are of writes that were refused: a crash may give them
        # again.
        return (*ranges[:at], Range(one.start, min(last, log.durable), x), *ranges[at + 1 :])

    def _read_rows(self, one: Range, stop: bytes, last: Sequence) -> tuple[list[bytes], bytes | None]:
        """Return the events of the next rows as of ``last``, and the row up to which rows were read (None: all).

        Raises RowIsWide if the next row cannot be read in one step.
        """
        region, spec = self._region, self._filter.spec
        assert one.x is not None, "not all rows were read"
        first = max(one.start, one.x, spec.start_row)
        if spec.stop_row and (not stop or spec.stop_row < stop):
            stop = spec.stop_row
        if stop and first >= stop:
            return [], None
        read = self._read_spec
        high = range_start(stop) if stop else None
        cursor = RowCursor.over(
            region.store, region.views, read.projection, range_start(first), high, reverse=False, cost=STEP_BYTES
        )
        events: list[bytes] = []
        x: bytes | None = None
        size = count = 0
        room = min(CHUNK_BYTES, max(1, self._reply.bound_bytes - self._reply.size_bytes))
        until_s = time.monotonic() + STEP_S
        while count < CHUNK_ROWS and size < room and (not count or time.monotonic() < until_s):
            try:
                found = cursor.next_row()
            except RowIsWide:
                if not count:
                    raise
                return events, x
            if found is None:
                return events, None
            row, raw_row = found
            count += 1
            x = row + b"\x00"
            if not self._filter.has_row(row):
                continue
            cells = visible_cells(region.store, row, raw_row, read, region.now_ms)
            event = self._filter.row_event(row, last, cells)
            if event is not None:
                events.append(event)
                size += len(event)
        return events, x

    @property
    def _read_spec(self) -> ReadSpec:
        return ReadSpec(projection(self._region.table, self._filter.read_columns))

    async def _read_wide_row(self, row: bytes, last: Sequence) -> tuple[list[bytes], bytes]:
        """Return the event of a row that takes several steps to read, as of ``last``, and the row behind it.

        Call it in the step in which ``last`` is the log's last sequence: the store's iterators show that moment.
        """
        after = row + b"\x00"
        if not self._filter.has_row(row):
            return [], after
        info, cells, size = self._region.info, list[WireCell](), 0
        reading = WideRow.begun(self._region, row, self._read_spec, all_versions=False)
        try:
            while not reading.is_done:
                begun_s = time.thread_time()
                found = reading.take(STEP_COST)
                self.taken_s += time.thread_time() - begun_s
                cells += found
                size += size_of((row, found))
                if size > SNAPSHOT_ROW_BYTES:
                    raise NotAllowed(
                        f"row {abbreviate(row)} of {info.table} has more than {SNAPSHOT_ROW_BYTES >> 20} MiB, which is "
                        "more than an event of a stream may have: leave out the row (rows) or its families (columns), "
                        "or begin at now"
                    )
                await asyncio.sleep(0)
        except ReadingEnded:
            raise RegionNotLocal(info.table, info.encoded) from None
        finally:
            reading.end()
        event = self._filter.row_event(row, last, cells)
        return [] if event is None else [event], after

    async def _until_durable(self, last: Sequence) -> None:
        region = self._region
        if region.log.durable >= last:
            return
        region.syncs.sync_async_writes()
        barrier = region.syncs.barrier_any()
        if barrier is not None:
            await asyncio.shield(barrier)
            self._check_open()

    def _check_open(self) -> None:
        if not self._region.is_open:
            raise RegionNotLocal(self._region.info.table, self._region.info.encoded)


def _cut(ranges: tuple[Range, ...], segments: tuple[Segment, ...]) -> list[Range]:
    """Return the ranges cut at the starts of the segments."""
    starts = sorted({*(one.start for one in ranges), *(one.start for one in segments)})
    found = []
    for start in starts:
        one = ranges[_index(ranges, start)]
        unread = one.x is not None and one.x <= start
        found.append(one if one.start == start else Range(start, one.p, start if unread else one.x))
    return found


def _is_unread(one: Range) -> bool:
    """Return whether no row of the range was read: no change of it is wanted yet."""
    return one.x is not None and one.x <= one.start


def _index(several: tuple[Range, ...] | tuple[Segment, ...], row: bytes) -> int:
    """Return the index of the range or segment that has the row; the first one also has all rows before it."""
    low, high = 0, len(several) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if several[middle].start <= row:
            low = middle
        else:
            high = middle - 1
    return low


def _format_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

"""Reads of rows by name: one row at once, several rows in steps, between which other requests are served.

A reply never holds writes that a crash could lose: it waits for the fsync of each of its rows.

Invariant: a reply of several rows has at most ``limits.ROWS_BYTES``, and all such replies together at most the bytes
that ``regions.read.reply_memory`` allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from columnar.cluster.row_forms import THRIFT1, ReplyForm
from columnar.errors import RegionNotLocal, RegionUnavailable, RequestTooBig
from columnar.limits import ROWS_BYTES, STEP_BYTES, STEP_CELLS
from columnar.model.read import Projection, ReadSpec, cut_by_family
from columnar.operations.access import Caller, TableAccess, after, after_all, joined
from columnar.operations.packing import reply_form
from columnar.operations.wide_reads import First, Packed, PackedValues, Sink, read_wide
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.found_rows import CELL_OVERHEAD_BYTES, ScanRow, size_of
from columnar.regions.read.region_reads import get_column, get_family, get_row, get_slice
from columnar.regions.read.row_reader import Cells, RowIsWide
from columnar.regions.tables import ServedTable
from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.storage.stored_cells import PackedRows
from columnar.wire import detect
from columnar.wire.codec_replies import compact_packed_cells, packed_cells

RowAnswer = Callable[[bytes, Cells], Any]  # from a row and its cells (none for a missing row) to the reply
Filtered = Callable[[ServedTable, bytes, ReadSpec, bytes, IsDisconnected], Awaitable[Cells]]  # ``Scans.one_row``
FoundRow = ScanRow | PackedRows  # packed: a wide row, or a row of a different server
RowsAnswer = Callable[[list[FoundRow]], Any]
S = TypeVar("S", bound=Sink)


class PackedAnswer(NamedTuple):
    """The form of a service's answer with a row that was read in pieces."""

    service: int  # ``THRIFT1`` or THRIFT2
    of: Callable[[PackedRows | None], Any]  # None: the row has no cells


LATEST: Final = ReadSpec(Projection(()))  # the newest version; the column is passed separately
SEEK_CELLS: Final = 50  # the cost of finding a row, counted in cells


class RowQuery:
    """The rows that one call requests, in its order, each with its read specification."""

    __slots__ = ("cuts", "filters", "keeps_absent", "rows", "service", "specs", "wanted")

    def __init__(
        self,
        rows: list[bytes],
        specs: list[ReadSpec],
        *,
        keeps_absent: bool = False,
        filters: list[bytes | None] | None = None,
        cuts: Sequence[tuple[int, int] | None] | None = None,
        service: int = THRIFT1,
        wanted: int = -1,
    ) -> None:
        """With ``keeps_absent`` the answer has rows without cells, too.

        ``filters`` and ``cuts`` have an element for each row if they are given; a cut is as for ``cut_by_family``.
        ``service`` is the caller's.  ``wanted`` is the number of cells of each family that other servers need to send,
        -1 for all.
        """
        self.rows = rows
        self.specs = specs
        self.keeps_absent = keeps_absent
        self.filters = filters or []
        self.cuts = cuts
        self.service = service
        self.wanted = wanted


class _Reading:
    """The progress of a query's rows into one reply."""

    __slots__ = ("at", "barriers", "found", "is_wide", "max_bytes", "not_local_rows", "query", "size_bytes")

    def __init__(self, query: RowQuery, max_bytes: int = ROWS_BYTES + 1) -> None:
        self.query = query
        self.at = 0  # the number of the row to be read next
        self.found: list[FoundRow] = []
        self.barriers: list[Any] = []
        self.size_bytes = 0
        self.max_bytes = max_bytes  # reading ends early after the row by which the reply exceeds it
        self.not_local_rows: list[int] = []  # numbers of skipped rows, whose regions are not local
        self.is_wide = False  # the next row costs more than a step

    @property
    def is_done(self) -> bool:
        return self.at == len(self.query.rows) or self.size_bytes > self.max_bytes

    def note_wide(self, is_wide: bool) -> None:
        self.is_wide = is_wide

    def pass_over(self) -> None:
        """Skip the next row, because a different server owns its region."""
        self.is_wide = False
        self.not_local_rows.append(self.at)
        self.found.append((self.query.rows[self.at], []))
        self.at += 1

    @property
    def next_filter(self) -> bytes | None:
        """The filter of the next row."""
        filters = self.query.filters
        return filters[self.at] if filters else None

    def take_cells(self, cells: Cells) -> int:
        """Take the cells of the next row; return the bytes that they add to the reply.  Raises RequestTooBig."""
        query, number = self.query, self.at
        self.at += 1
        cut = query.cuts[number] if query.cuts is not None else None
        if cut is not None:
            cells = cut_by_family(cells, *cut)
        if not cells and not query.keeps_absent:
            return 0
        row = (query.rows[number], cells)
        return self._add(row, size_of(row))

    def take_packed(self, packed: PackedRows | None) -> int:
        """Take the next row as ``take_cells`` does, if it was read in pieces; None stands for a row without cells."""
        if packed is None:
            return self.take_cells([])
        self.at += 1
        return self._add(packed, len(packed.data))

    def _add(self, row: FoundRow, size: int) -> int:
        self.found.append(row)
        self.size_bytes += size
        if self.size_bytes > ROWS_BYTES:
            raise RequestTooBig(f"the rows asked for have over {ROWS_BYTES} bytes; ask for fewer, or scan")
        return size


class RowReads:
    def __init__(self, access: TableAccess) -> None:
        self._access = access

    # --- one row -----------------------------------------------------------------------------------

    def column(
        self,
        caller: Caller,
        served: ServedTable,
        row: bytes,
        family: bytes,
        qualifier: bytes,
        spec: ReadSpec = LATEST,
    ) -> Any:
        """Return (value, timestamp) of each version of one column, the newest first."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        try:
            cells = get_column(region, row, family, qualifier, spec)
        except RowIsWide:
            named = replace(spec, projection=Projection(((family, (qualifier,)),)))
            return self._wide(caller.has_gone, served, row, named, _values_of(caller, row), PackedValues.result)
        if served.is_throttled:
            self._access.charge(served, 1, _bytes_of(row, cells, len(family) + len(qualifier)), writes=False)
        return after(region.syncs.barrier(row), cells)

    def family(self, caller: Caller, served: ServedTable, row: bytes, family: bytes, spec: ReadSpec) -> Any:
        """Return (value, timestamp) of every version of every column of a family, in the order of columns."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        try:
            cells = get_family(region, row, family, spec)
        except RowIsWide:
            return self._wide(caller.has_gone, served, row, spec, _values_of(caller, row), PackedValues.result)
        if served.is_throttled:
            self._access.charge(served, 1, _bytes_of(row, cells, len(family)), writes=False)
        return after(region.syncs.barrier(row), cells)

    def read_row(
        self,
        caller: Caller,
        served: ServedTable,
        row: bytes,
        spec: ReadSpec,
        answer: RowAnswer,
        packed: PackedAnswer,
        cut: tuple[int, int] | None = None,
    ) -> Any:
        """Return what ``answer`` makes from the row's cells, or ``packed`` from a wide row, cut as ``cut`` says."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        try:
            cells = get_row(region, row, spec)
        except RowIsWide:
            sink = Packed(row, reply_form(packed.service, caller.protocol), cut)
            return self._wide(caller.has_gone, served, row, spec, sink, lambda sink: packed.of(sink.result()))
        if served.is_throttled:
            self._access.charge(served, 1, size_of((row, cells)), writes=False)
        return after(region.syncs.barrier(row), answer(row, cells))

    async def _wide(
        self,
        is_disconnected: IsDisconnected,
        served: ServedTable,
        row: bytes,
        spec: ReadSpec,
        sink: S,
        answer: Callable[[S], Any],
    ) -> Any:
        """Read a row that costs more than a step into ``sink``; return ``answer`` of the sink."""
        reply_memory, table = self._access.reply_memory, served.schema.name.encode()
        ticket = reply_memory.begin_call(0, is_disconnected)
        try:
            barrier = await read_wide(self._access, table, row, spec, sink, ticket, is_disconnected)
        finally:
            reply_memory.end(ticket)
        if barrier is not None:
            await asyncio.shield(barrier)
        if served.is_throttled:
            self._access.charge(served, 1, sink.size_bytes, writes=False)
        return answer(sink)

    def has_cells(self, served: ServedTable, row: bytes, spec: ReadSpec) -> Any:
        """Return whether a reader sees any cell of the row."""
        region = self._access.region_for(served, row)
        try:
            return after(region.syncs.barrier(row), bool(get_row(region, row, spec)))
        except RowIsWide:
            return self._wide(never_disconnected, served, row, spec, First(), lambda sink: bool(sink.cells))

    def slice(
        self,
        served: ServedTable,
        row: bytes,
        family: bytes,
        span: tuple[bytes, bytes],
        limit: int,
        answer: RowAnswer,
        *,
        reverse: bool,
    ) -> Any:
        """Return ``answer`` of the cells of ``get_slice``; ``span`` is the first qualifier and the end."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, row)
        cells = get_slice(region, row, family, *span, limit, reverse=reverse)
        if served.is_throttled:
            self._access.charge(served, 1, size_of((row, cells)), writes=False)
        return after(region.syncs.barrier(row), answer(row, cells))

    # --- several -----------------------------------------------------------------------------------

    def rows(
        self,
        caller: Caller,
        served: ServedTable,
        query: RowQuery,
        answer: RowsAnswer,
        filtered: Filtered | None = None,
    ) -> Any:
        """Read the rows in the order of the query, at once if they take one step and no row has a filter."""
        reading = _Reading(query)
        if served.is_throttled:
            self._access.admit(served, writes=False)
        if not self._access.reply_memory.is_full:
            try:
                if self._step(served, reading, False):
                    return after_all(reading.barriers, answer(reading.found))
            except RegionUnavailable:
                pass  # the rest is read from the row whose region is unavailable
            except RegionNotLocal as error:
                return self._access.remote(error).rows(caller, served, query, answer)
        return self._read_rest(caller, served, reading, answer, filtered)

    async def rows_owned(
        self, served: ServedTable, query: RowQuery, filtered: Filtered, max_bytes: int, form: ReplyForm
    ) -> tuple[list[FoundRow], list[int]]:
        """Return (rows in the order of the query, numbers of skipped rows), up to the row that exceeds ``max_bytes``.

        Rows whose regions a different server owns are skipped.  Missing rows and skipped rows have no cells.
        """
        assert query.keeps_absent, "numbers count all rows"
        if served.is_throttled:
            self._access.admit(served, writes=False)
        reading = _Reading(query, max_bytes)
        await self._gather(served, reading, filtered, never_disconnected, lambda: form, passes_over=True)
        return reading.found, reading.not_local_rows

    def _step(self, served: ServedTable, reading: _Reading, has_waited: bool) -> bool:
        """Read for one step, or up to a row with a filter; return whether all rows are read."""
        if not served.is_throttled:
            return self._read_step(served, reading, has_waited)
        at, size_bytes = reading.at, reading.size_bytes
        try:
            return self._read_step(served, reading, has_waited)
        finally:  # the rows of an answer that became too large were read, too
            self._access.charge(served, reading.at - at, reading.size_bytes - size_bytes, writes=False)

    def _step_again(self, served: ServedTable, reading: _Reading) -> bool:
        """Do ``_step`` on the table as it is by now."""
        return self._step(self._access.again(served), reading, True)

    def _read_step(self, served: ServedTable, reading: _Reading, has_waited: bool) -> bool:
        query = reading.query
        rows, specs, filters = query.rows, query.specs, query.filters
        cells_left, bytes_left = STEP_CELLS, min(STEP_BYTES, reading.max_bytes)
        checked: ReadSpec | None = None
        while cells_left > 0 and bytes_left > 0:
            number = reading.at
            if number == len(rows):
                return True
            if filters and filters[number] is not None:
                return False
            row, spec = rows[number], specs[number]
            if has_waited and spec is not checked:
                check_families(served, spec)
                checked = spec
            region = self._access.region_for(served, row)
            try:
                cells = get_row(region, row, spec)
            except RowIsWide:
                reading.note_wide(True)
                return False
            barrier = region.syncs.barrier(row)
            if barrier is not None:
                reading.barriers.append(barrier)
            cells_left -= len(cells) + SEEK_CELLS
            bytes_left -= reading.take_cells(cells)
        return reading.is_done

    async def _read_rest(
        self,
        caller: Caller,
        served: ServedTable,
        reading: _Reading,
        answer: RowsAnswer,
        filtered: Filtered | None,
    ) -> Any:
        try:
            form = partial(reply_form, reading.query.service, caller.protocol)
            await self._gather(served, reading, filtered, caller.has_gone, form)
        except RegionNotLocal as error:
            return await self._access.remote(error).rows(caller, served, reading.query, answer)
        return answer(reading.found)

    async def _gather(
        self,
        served: ServedTable,
        reading: _Reading,
        filtered: Filtered | None,
        is_disconnected: IsDisconnected,
        form: Callable[[], ReplyForm],
        *,
        passes_over: bool = False,
    ) -> None:
        """Read all rows, step by step, and wait for the fsyncs of the rows read."""
        access, reply_memory = self._access, self._access.reply_memory
        ticket = reply_memory.begin_call(reading.size_bytes, is_disconnected)
        try:
            while not reading.is_done:
                await reply_memory.reserve_step(ticket, reading.size_bytes)
                served = access.again(served)
                try:
                    if reading.is_wide:
                        await self._take_wide(served, reading, form(), ticket, is_disconnected)
                        continue
                    if reading.next_filter is None:
                        await retry_until_ready(partial(self._step_again, served, reading), is_disconnected)
                        continue
                    reply_memory.end(
                        ticket
                    )  # the scan has a ticket of its own: two in one call would wait for each other
                    try:
                        await self._take_filtered(served, reading, filtered, is_disconnected)
                    finally:
                        ticket = reply_memory.begin_call(reading.size_bytes, is_disconnected)
                except RegionNotLocal:
                    if not passes_over:
                        raise
                    reading.pass_over()
            waiting = joined(reading.barriers)
            if waiting is not None:
                await asyncio.shield(waiting)
        finally:
            reply_memory.end(ticket)

    async def _take_wide(
        self, served: ServedTable, reading: _Reading, form: ReplyForm, ticket: int, is_disconnected: IsDisconnected
    ) -> None:
        """Read the next row, which is wide, in packed form; if one cell is wanted, read only that cell."""
        query, number = reading.query, reading.at
        row, spec = query.rows[number], query.specs[number]
        cut = query.cuts[number] if query.cuts is not None else None
        sink: Packed | First = First() if query.wanted == 1 and cut is None else Packed(row, form, cut, ROWS_BYTES)
        table = served.schema.name.encode()
        barrier = await read_wide(
            self._access, table, row, spec, sink, ticket, is_disconnected, before_bytes=reading.size_bytes
        )
        reading.note_wide(False)
        if barrier is not None:
            reading.barriers.append(barrier)
        if isinstance(sink, First):
            size_bytes = reading.take_cells(sink.cells)
        else:
            size_bytes = reading.take_packed(sink.result())
        if served.is_throttled:
            self._access.charge(served, 1, size_bytes, writes=False)

    async def _take_filtered(
        self, served: ServedTable, reading: _Reading, filtered: Filtered | None, is_disconnected: IsDisconnected
    ) -> None:
        query, number, filter_string = reading.query, reading.at, reading.next_filter
        assert filtered is not None, "given where a row has a filter"
        assert filter_string is not None, "the row has one"
        row, spec = query.rows[number], query.specs[number]
        check_families(served, spec)
        size_bytes = reading.take_cells(await filtered(served, row, spec, filter_string, is_disconnected))
        if served.is_throttled:
            self._access.charge(served, 1, size_bytes, writes=False)


def _values_of(caller: Caller, row: bytes) -> PackedValues:
    is_binary = caller.protocol is detect.Protocol.BINARY
    return PackedValues(row, packed_cells if is_binary else compact_packed_cells)


def _bytes_of(row: bytes, cells: list[tuple[bytes, int]], column_bytes: int) -> int:
    """Return ``size_of`` for values that are answered without their columns."""
    return len(row) + sum(column_bytes + len(value) + CELL_OVERHEAD_BYTES for value, _ in cells)


def check_families(served: ServedTable, spec: ReadSpec) -> None:
    """Raise NoSuchColumnFamily if the table was recreated without a family that ``spec`` names."""
    for family, _ in spec.projection.families:
        served.schema.family(family)

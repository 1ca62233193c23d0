"""Calls about one group of rows (ROW_GROUP): a read as of one moment, and a write of several rows as one step.

The rows of a group are in one region, so a call is done in one step of the loop at the region's owner, without locks:
what was read before is compared, the conditions are checked, and one batch is written, with one fsync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from columnar.errors import IllegalArgument, NotServingRegion, RequestTooBig, abbreviate
from columnar.limits import ROW_GROUP_BYTES, ROW_GROUP_CELLS
from columnar.model.mutation import RowMutation
from columnar.model.read import ReadSpec
from columnar.operations.access import Caller, TableAccess, after
from columnar.operations.row_plan import size_of
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_record import Sequence as LogSequence
from columnar.regions.read.found_rows import size_of as size_of_found
from columnar.regions.read.group_reads import FoundGroup, GroupRead, GroupReader
from columnar.regions.region import Region
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied, GroupApplied
from columnar.storage.api import StoreBusy
from columnar.wire.service import Later


class Span(NamedTuple):
    """A group: its first row, and the first row above all of its rows (empty: the table's end)."""

    group: bytes
    end: bytes


@dataclass(frozen=True, slots=True)
class GroupWrite:
    """The rows of a call; ``check_group`` has found them to be of the group."""

    span: Span
    mutations: list[RowMutation]
    reads: list[GroupRead]


class GroupOutcome(NamedTuple):
    written: GroupApplied
    failed_read: int | None  # number of the first read that finds something else now; nothing was written


def span_of(served: ServedTable, row: bytes) -> Span:
    """Return the group of the row.  Raises IllegalArgument if the table has no groups."""
    groups = served.schema.row_groups
    if groups is None:
        name = served.schema.name
        raise IllegalArgument(
            f"table {name} has no groups of rows: set ROW_GROUP first, for example with "
            f"columnar alter {name} --set ROW_GROUP=until:/"
        )
    group = groups.group_of(row)
    return Span(group, groups.end_of(group))


def check_group(served: ServedTable, span: Span, rows: Sequence[bytes]) -> None:
    """Raise IllegalArgument if a row is of another group, or is named twice."""
    groups = served.schema.row_groups
    for row in rows:
        if groups is not None and groups.group_of(row) != span.group:
            raise IllegalArgument(
                f"row {abbreviate(row)} is of the group {abbreviate(groups.group_of(row))}, not of the group "
                f"{abbreviate(span.group)} of the call (ROW_GROUP={groups}); a step has rows of one group"
            )
    if len(set(rows)) < len(rows):
        raise IllegalArgument("a call about a group of rows names each row once")


class GroupCalls:
    def __init__(self, access: TableAccess) -> None:
        self._access = access

    def read_group(
        self,
        served: ServedTable,
        span: Span,
        rows: Sequence[bytes],
        spec: ReadSpec,
        answer: Callable[[FoundGroup], Any],
    ) -> Any:
        """Return ``answer`` of the group's rows, or of those of ``rows``, which ascend, as of one moment."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        region = self._access.region_for(served, span.group)
        _check_whole(region, span)
        found = GroupReader(region, *span).read_rows(rows, spec)
        if served.is_throttled:
            self._access.charge(served, len(found), sum(map(size_of_found, found)), writes=False)
        return after(region.syncs.barrier_between(*span), answer(found))

    def write_group(
        self, caller: Caller, served: ServedTable, write: GroupWrite, answer: Callable[[GroupOutcome], Any]
    ) -> Any:
        """Write all rows as one step, if every read and condition holds; else nothing."""
        if served.schema.kept_by:
            served.schema.check_written_by()
        _check_size(write)
        if served.is_throttled:
            self._access.admit(served, writes=True)
        try:
            return self._write(served, write, answer)
        except StoreBusy:
            return self._write_when_ready(caller, served, write, answer)

    async def _write_when_ready(
        self, caller: Caller, served: ServedTable, write: GroupWrite, answer: Callable[[GroupOutcome], Any]
    ) -> Any:
        def again() -> Any:
            return self._write(self._access.again(served), write, answer)

        result = await retry_until_ready(again, caller.has_gone)
        if type(result) is not Later:
            return result
        await asyncio.shield(result.future)  # others wait for it, too
        return result.result

    def _write(self, served: ServedTable, write: GroupWrite, answer: Callable[[GroupOutcome], Any]) -> Any:
        region = self._access.writable(served, write.span.group)
        _check_whole(region, write.span)
        failed_read = GroupReader(region, *write.span).first_changed(write.reads) if write.reads else None
        if failed_read is not None:
            waiting = region.syncs.barrier_between(*write.span)  # the answer tells of what may not be on disk yet
            stale = Applied(LogSequence(0, 0, 0), 0, (), -1, waiting)
            return after(waiting, answer(GroupOutcome(GroupApplied(stale, [], None), failed_read)))
        written = region.apply_group(write.mutations)
        if served.is_throttled and written.steps:
            self._access.charge_writes(served, write.mutations)
        return after(self._access.acknowledgement(region, written.applied), answer(GroupOutcome(written, None)))


def _check_whole(region: Region, span: Span) -> None:
    """Raise NotServingRegion if the region lacks rows of the group: the table's ROW_GROUP was just changed."""
    info = region.info
    if not info.contains_row(span.group) or (info.end and (not span.end or span.end > info.end)):
        raise NotServingRegion(
            f"group {abbreviate(span.group)} is not in one region now: ROW_GROUP was changed; try again"
        )


def check_count(count: int) -> None:
    """Raise RequestTooBig if a call names more rows, operations and conditions than a step may have.

    Call it before the call's structs are translated: a million of them would hold the loop.
    """
    if count > ROW_GROUP_CELLS:
        raise RequestTooBig(
            f"{count} rows, operations and conditions of a group as one step, at most {ROW_GROUP_CELLS} are allowed; "
            "nothing was done, name fewer rows"
        )


def _check_size(write: GroupWrite) -> None:
    """Raise RequestTooBig if the call has more bytes than one step may write."""
    size_bytes = sum(map(size_of, write.mutations))
    if size_bytes > ROW_GROUP_BYTES:
        raise RequestTooBig(
            f"some {size_bytes} bytes into the group {abbreviate(write.span.group)} as one step, at most "
            f"{ROW_GROUP_BYTES} are allowed; nothing was stored, write fewer rows as one step"
        )

"""Our methods on change streams and groups of readers.  Loaded at first use."""

from __future__ import annotations

from typing import Any

from columnar.errors import IllegalArgument
from columnar.model.change_stream import NOW, StreamSpec
from columnar.model.reader_groups import GroupStatus
from columnar.streams.change_streams import ChangeStreams, StreamRequest
from columnar.streams.group_reads import GroupReads
from columnar.wire.idl import columnar


class StreamMethods:
    def __init__(self, streams: ChangeStreams, groups: GroupReads) -> None:
        self._streams = streams
        self._groups = groups

    async def columnarChanges(self, ctx: Any, table: bytes, request: Any) -> Any:
        """Answer with the next events of a change stream; waits up to ``waitMs``."""
        if request is None:
            raise IllegalArgument("columnarChanges needs a request, which may be empty")
        asked = _request_of(request)
        if not request.group and not request.member:
            reply = await self._streams.read_stream(table, asked, ctx.has_gone)
            return columnar.ChangesReply(events=reply.events, position=reply.position, upToMs=reply.up_to_ms)
        found = await self._groups.pull(table, asked, request.group or "", request.member or "", ctx.has_gone)
        reply = found.stream
        return columnar.ChangesReply(
            events=reply.events,
            position=reply.position,
            upToMs=reply.up_to_ms,
            ranges=found.ranges,
            hasChanged=found.has_changed,
        )

    async def columnarCommit(self, ctx: Any, table: bytes, request: Any) -> Any:
        if request is None:
            raise IllegalArgument("columnarCommit needs a request")
        refused = await self._groups.commit(
            table,
            request.group or "",
            request.member or "",
            request.position or b"",
            more=bool(request.more),
            leaves=bool(request.leaves),
        )
        return columnar.CommitReply(refused=refused)

    async def columnarReaderGroups(self, ctx: Any, table: bytes) -> list[Any]:
        return [_wire_group(one) for one in await self._groups.statuses(table)]

    async def columnarDropReaderGroup(self, ctx: Any, table: bytes, group: str) -> bool:
        return await self._groups.drop_group(table, group or "")


def _wire_group(one: GroupStatus) -> Any:
    members = [
        columnar.ReaderGroupMember(member=member.name, leftMs=member.left_ms, ranges=member.ranges)
        for member in one.members
    ]
    ranges = [
        columnar.ReaderGroupRange(
            startRow=held.start,
            stopRow=held.stop,
            member=held.owner,
            epoch=held.epoch,
            ageMs=held.age_ms,
            moves=held.moves,
        )
        for held in one.ranges
    ]
    return columnar.ReaderGroup(group=one.name, members=members, ranges=ranges)


def _request_of(given: Any) -> StreamRequest:
    spec = StreamSpec(
        columns=tuple(column or b"" for column in given.columns or ()),
        where=tuple(condition or "" for condition in given.where or ()),
        start_row=given.startRow or b"",
        stop_row=given.stopRow or b"",
        part=given.part or 0,
        parts=1 if given.parts is None else given.parts,
        before=bool(given.before),
        after=bool(given.after),
        begins_again=bool(given.beginsAgain),
        consolidates=bool(given.consolidate),
    )
    return StreamRequest(given.position or b"", given.start or NOW, spec, given.maxBytes or 0, given.waitMs or 0)

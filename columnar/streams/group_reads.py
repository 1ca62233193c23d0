"""Calls of the members of a group of readers: pulls of the ranges that a member owns, commits; and of operators.

A pull decides which ranges the member reads (``groups``), and reads them as any stream.  While it waits, it ends as
soon as its ranges change: at once if this server changed the group, else when the group is loaded again after RELOAD_S.

Any server answers any call: the state of a group is in its row (``group_rows``), the member's place in its position.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar.cluster.scatter_gather import Owners
from columnar.errors import IllegalArgument, NotAllowed
from columnar.flows import position
from columnar.flows.position import Position, Range
from columnar.model.change_stream import BEGINNING, checked_spec, spec_digest
from columnar.model.reader_groups import GROUP_WAIT_MS, GROUPS_OF_TABLE, GroupStatus, checked_name
from columnar.operations.access import TableAccess
from columnar.streams import groups
from columnar.streams.change_streams import ChangeStreams, StreamReply, StreamRequest
from columnar.streams.group_bytes import pack_progress, unpack_progress
from columnar.streams.group_rows import GroupRows
from columnar.streams.groups import Group, Progress

RELOAD_S: Final = 2.0  # of a waiting pull, for changes of its group by other servers
_LATEST_S: Final = 0.05  # least pause before the group is loaded again at a deadline


@dataclass(frozen=True, slots=True)
class MemberReply:
    stream: StreamReply
    ranges: int  # that the member has
    has_changed: bool  # its ranges changed meanwhile, so the reply has no events


class GroupReads:
    def __init__(
        self,
        access: TableAccess,
        streams: ChangeStreams,
        rows: GroupRows,
        owners: Callable[[], Owners | None],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """``owners`` returns None if this process has all regions."""
        self._access = access
        self._streams = streams
        self._rows = rows
        self._owners = owners
        self._now_ms = now_ms

    async def pull(
        self, table: bytes, request: StreamRequest, group: str, member: str, has_gone: Callable[[], bool]
    ) -> MemberReply:
        """Return the next events of the member's ranges, or none within ``wait_ms`` or when its ranges have changed.

        Raises what ``read_stream`` raises, and NotAllowed if the group reads different changes.
        """
        checked_name(group, "group")
        checked_name(member, "member")
        spec = checked_spec(request.spec)
        if spec.parts > 1:
            raise IllegalArgument("a group shares the rows among its members itself: leave out the part")
        name = self._access.meant(table).schema.name
        pull = _Pull(name, group, member, request, unpack_progress(request.position, name))
        deadline_ms = self._now_ms() + max(0, min(request.wait_ms, GROUP_WAIT_MS))
        state = await self._joined(pull, has_gone)
        view = groups.view_of(state, member)
        pull = replace(pull, progress=groups.progress_of(state, member, pull.progress))
        wait_ms = max(0, deadline_ms - self._now_ms())
        place = position.pack(groups.place_to_read(state, member, pull.progress), name)
        reading = replace(request, position=place, wait_ms=wait_ms)
        read = asyncio.ensure_future(self._streams.read_stream(name.encode(), reading, has_gone))
        try:
            if not await self._finished(read, pull, view, state):
                return MemberReply(StreamReply(b"", pack_progress(pull.progress, name), 0), len(view), True)
            reply = read.result()
        finally:
            if not read.done():
                read.cancel()
        after = self._place_after(reply.position)
        held = groups.progress_after(state, member, pull.progress, after, has_events=bool(reply.events))
        if reply.events and groups.view_of(await self._again(pull), member) != view:  # the lease began anew with it
            return MemberReply(StreamReply(b"", pack_progress(pull.progress, name), 0), len(view), True)
        return MemberReply(replace(reply, position=pack_progress(held, name)), len(view), False)

    @staticmethod
    def _place_after(data: bytes) -> Position:
        return position.unpack(data)[0]

    async def _finished(
        self, read: asyncio.Future[StreamReply], pull: _Pull, view: list[tuple[bytes, int, bool]], state: Group
    ) -> bool:
        """Wait until the read has ended; return False if the member's ranges changed before."""
        while not read.done():
            changed = self._rows.next_change(pull.table, pull.group)
            events: list[asyncio.Future[Any]] = [read, changed]
            try:
                await asyncio.wait(
                    events, timeout=self._pause_s(state, pull.member), return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                self._rows.forget(pull.table, pull.group, changed)
            if read.done():
                break
            state = await self._again(pull)
            if groups.view_of(state, pull.member) != view:
                return False
        return True

    def _pause_s(self, state: Group, member: str) -> float | None:
        """Return how long a pull waits before it looks at its group again; None: until this server changes it."""
        deadline_ms = state.next_deadline_ms(member)
        until_s = None if deadline_ms is None else max(_LATEST_S, (deadline_ms - self._now_ms()) / 1_000)
        if self._owners() is None:
            return until_s
        return RELOAD_S if until_s is None else min(RELOAD_S, until_s)

    async def _joined(self, pull: _Pull, has_gone: Callable[[], bool]) -> Group:
        """Return the group after the member's pull; the first pull of all begins it."""
        if await self._rows.load(pull.table, pull.group) is not None:
            return await self._again(pull)
        if len(await self._rows.groups(pull.table)) >= GROUPS_OF_TABLE:
            raise NotAllowed(
                f"table {pull.table} has {GROUPS_OF_TABLE} groups of readers; drop some: "
                f"columnar readers drop GROUP {pull.table}"
            )
        begun = await self._begun(pull, has_gone)
        return await self._again(pull, begun)

    async def _begun(self, pull: _Pull, has_gone: Callable[[], bool]) -> Group:
        served, start = self._access.table(pull.table.encode()), pull.request.start
        starts = [info.start for info in served.regions]
        if start == BEGINNING:
            place = Position(tuple([Range(one, None, one) for one in starts]))
            await self._streams.begin_at(pull.table, start, has_gone)  # refuses a table that keeps no changes
        else:
            place = await self._streams.begin_at(pull.table, start, has_gone)
        return groups.begin(place, starts, spec_digest(pull.request.spec), self._now_ms())

    async def _again(self, pull: _Pull, begun: Group | None = None) -> Group:
        def event(group: Group | None) -> tuple[Group | None, Group]:
            group = group or begun
            if group is None:
                raise NotAllowed(f"group {pull.group} of table {pull.table} was dropped; the next pull begins it anew")
            if group.wanted != spec_digest(pull.request.spec):
                raise NotAllowed(
                    f"group {pull.group} of table {pull.table} reads other columns, conditions or rows: all members of "
                    "a group read the same changes, as its first member did (and need the right to read them); take "
                    "another name, or drop the group"
                )
            pulled = groups.pull(group, pull.member, pull.progress, self._now_ms())
            return pulled, pulled

        return await self._rows.change(pull.table, pull.group, event)

    async def commit(
        self, table: bytes, group: str, member: str, place: bytes, *, more: bool, leaves: bool
    ) -> list[bytes]:
        """Commit the member's place, and free its ranges if it leaves; return the ranges for which it did not count.

        An empty place commits nothing, and renews the lease of a member that works longer on its changes.  Returns when
        the commit is durable.
        """
        checked_name(group, "group")
        checked_name(member, "member")
        name = self._access.meant(table).schema.name
        held = unpack_progress(place, name)

        def event(state: Group | None) -> tuple[Group | None, list[bytes]]:
            if state is None:
                return None, [one.start for one in held]
            refused: list[bytes] = []
            if held:
                state, refused = groups.commit(state, member, held, self._now_ms(), more=more and not leaves)
            elif not leaves:
                state = groups.renew(state, member, self._now_ms())
            return groups.leave(state, member, self._now_ms()) if leaves else state, refused

        return await self._rows.change(name, group, event)

    # --- for operators ------------------------------------------------------------------------------------

    async def statuses(self, table: bytes) -> list[GroupStatus]:
        name, now_ms = self._access.meant(table).schema.name, self._now_ms()
        return [groups.status_of(state, group, now_ms) for group, state in await self._rows.groups(name)]

    async def drop_group(self, table: bytes, group: str) -> bool:
        """Forget the group with its positions; return False if there is none."""
        name = self._access.meant(table).schema.name
        return await self._rows.change(name, checked_name(group, "group"), lambda state: (None, state is not None))


@dataclass(frozen=True, slots=True)
class _Pull:
    """A pull under way."""

    table: str
    group: str
    member: str
    request: StreamRequest
    progress: list[Progress]

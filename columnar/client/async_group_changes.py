"""A member of a group of readers in an asyncio program; ``group_changes`` has the same for other programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from columnar.client.async_changes import AsyncChanges
from columnar.client.changes import StreamEvent
from columnar.client.group_changes import new_member
from columnar.client.group_cursor import GROUP_POLL_MS, GroupCursor, cursor_of_member

if TYPE_CHECKING:
    from columnar.client.aio import AsyncConnection


class AsyncGroupChanges(AsyncChanges):
    """The changes of a member's ranges, for one task at a time.

    Leave the group at the end: ``async with`` does, and else others wait for 30 s.  After a cancelled ``commit`` it is
    unknown whether the store has it; another one commits the same.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        table: bytes,
        cursor: GroupCursor,
        *,
        follow: bool,
        heartbeats: bool,
        poll_ms: int,
    ) -> None:
        super().__init__(
            connection, table, cursor, follow=follow, heartbeats=heartbeats, poll_ms=min(poll_ms, GROUP_POLL_MS)
        )
        self._member = cursor

    @property
    def group(self) -> str:
        return self._member.group

    @property
    def member(self) -> str:
        """The member's name, which no other member has."""
        return self._member.member

    @property
    def ranges(self) -> int:
        """How many ranges of rows the member has, as of the last reply."""
        return self._member.ranges

    async def __aexit__(self, *_error: object) -> None:
        try:
            if not self._is_closed:
                await self.leave_group()
        finally:
            self.close()

    async def __anext__(self) -> StreamEvent:
        event = await super().__anext__()
        self._member.hand_out(event, has_more=bool(self._waiting))
        return event

    async def commit(self) -> None:
        """Commit what was handed out, as ``GroupChanges.commit`` does.  Raises CommitRefused."""
        request = self._member.commit_request(has_more=bool(self._waiting))
        if request is None:
            return
        with self._calling():
            reply = await self._call("columnarCommit", (self._table, request))
        self._member.accept_commit(reply)

    async def renew_lease(self, timeout_s: float) -> None:
        """Renew the member's lease over another link, also while the stream's own is in use.  Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            link = await self._connection.lend_link()
            try:
                await link.call_method("columnarCommit", (self._table, self._member.renewal_request()), timeout_s)
            finally:
                if link.is_open:
                    self._connection.return_link(link)

    async def leave_group(self) -> None:
        """Leave the group: others get this member's rows at once, from the last commit on."""
        self._waiting.clear()
        with self._calling():
            await self._call("columnarCommit", (self._table, self._member.leaving_request()))
        self._end_link()


def open_async_member(
    connection: AsyncConnection,
    table: bytes,
    *,
    group: str,
    follow: bool,
    heartbeats: bool,
    poll_ms: int,
    **wanted: Any,
) -> AsyncGroupChanges:
    """Return the iterator of a new member; calls no server.  Raises WrongArgument."""
    cursor = cursor_of_member(group, new_member(), **wanted)
    return AsyncGroupChanges(connection, table, cursor, follow=follow, heartbeats=heartbeats, poll_ms=poll_ms)

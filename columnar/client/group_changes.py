"""A member of a group of readers: an iterator of the changes that the group gives it, and commits of what is done.

A group shares the rows of a table among its members, in ranges.  It remembers how far each range was committed, so a
member that ends, dies or hangs is replaced by the others, which go on there.  Changes come again only if a member died,
or did not call for half a minute, before it committed them.  ``group_cursor`` has the rules, ``async_group_changes``
the same for asyncio programs.
"""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING, Any, Final, Self

from columnar.client.changes import Changes, StreamEvent, longest_wait_ms
from columnar.client.group_cursor import GROUP_POLL_MS, CommitRefused, GroupCursor, cursor_of_member
from columnar.model.reader_groups import GroupStatus, MemberStatus, RangeStatus

if TYPE_CHECKING:
    from columnar.client.connection import Connection

__all__ = ["CommitRefused", "GroupChanges", "list_groups", "new_member", "open_member"]

_HOST_CHARACTERS: Final = 60


class GroupChanges(Changes):
    """The changes of a member's ranges.  Leave the group at the end: ``with`` does, and else others wait for 30 s.

    Not safe for threads, as the connection is not.
    """

    def __init__(
        self,
        connection: Connection,
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.leave_group()

    def __next__(self) -> StreamEvent:
        event = super().__next__()
        self._member.hand_out(event, has_more=bool(self._waiting))
        return event

    def commit(self) -> None:
        """Commit what was handed out, reply by reply: the events of a reply are committed when its last one was.

        All events of a ``poll`` count as handed out.  Returns when the commit is durable.  Raises CommitRefused if some
        of it went to others.
        """
        request = self._member.commit_request(has_more=bool(self._waiting))
        if request is not None:
            self._member.accept_commit(self._connection.call("columnarCommit", self._table, request))

    def renew_lease(self, connection: Connection) -> None:
        """Renew the member's lease, over another connection if a thread beside the member's calls it."""
        connection.call("columnarCommit", self._table, self._member.renewal_request())

    def leave_group(self, connection: Connection | None = None) -> None:
        """Leave the group: others get this member's rows at once, from the last commit on.

        ``connection``: another one, after an interrupt that left an answer under way on the member's.
        """
        self._waiting.clear()
        (connection or self._connection).call("columnarCommit", self._table, self._member.leaving_request())


def open_member(
    connection: Connection,
    table: bytes,
    *,
    group: str,
    follow: bool,
    heartbeats: bool,
    poll_ms: int,
    **wanted: Any,
) -> GroupChanges:
    """Return the iterator of a new member; calls no server.  Raises WrongArgument."""
    cursor = cursor_of_member(group, new_member(), **wanted)
    longest_ms = longest_wait_ms(poll_ms, connection.timeout)
    return GroupChanges(connection, table, cursor, follow=follow, heartbeats=heartbeats, poll_ms=longest_ms)


def list_groups(connection: Connection, table: bytes) -> list[GroupStatus]:
    """Return the groups of the table's readers, by name."""
    return [
        GroupStatus(
            _text(one.group),
            tuple([MemberStatus(_text(held.member), held.leftMs, held.ranges) for held in one.members]),
            tuple(
                [
                    RangeStatus(part.startRow, part.stopRow, _text(part.member), part.epoch, part.ageMs, part.moves)
                    for part in one.ranges
                ]
            ),
        )
        for one in connection.call("columnarReaderGroups", table)
    ]


def _text(name: bytes | str) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def new_member() -> str:
    """Return a name that no other member has: host, process and a random number."""
    return f"{_host()}-{os.getpid()}-{secrets.token_hex(4)}"


def _host() -> str:
    """Return the machine's name as a part of a member's name, which operators read."""
    plain = [one if one.isascii() and (one.isalnum() or one in ".-_") else "-" for one in socket.gethostname()]
    return "".join(plain).strip(".-_")[:_HOST_CHARACTERS] or "client"

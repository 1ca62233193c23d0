"""(pure) How far a member of a group of readers was handed changes, its commits, and when these were refused.

The position of a group moves reply by reply: a commit names the position behind the last reply all of whose events were
handed out.  The store answers which ranges of it others have by now.

Knows nothing of links, threads and tasks: ``group_changes`` sends the requests, and ``async_group_changes`` in asyncio
programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from columnar.client.changes import Idle, StreamCursor, StreamEvent, request_of
from columnar.client.errors import WrongArgument
from columnar.wire.idl import columnar

GROUP_POLL_MS: Final = 10_000  # the store's bound is 15 s


class CommitRefused(Exception):
    """Some changes of a commit went to other members meanwhile, which get them again; the rest was committed.

    The member had not called for half a minute, or longer than that after its rows were to move.
    """

    def __init__(self, group: str, starts: list[bytes]) -> None:
        rows = ", ".join(repr(one)[1:] for one in starts[:3]) + (", ..." if len(starts) > 3 else "")
        super().__init__(
            f"group {group} has given {len(starts)} of this member's ranges to others (rows from {rows}), because the "
            "member had not called for too long: their changes come again, to others"
        )
        self.starts = starts


class GroupCursor(StreamCursor):
    """A cursor over the changes of a member's ranges, which also makes the member's commits."""

    def __init__(self, request: Mapping[str, Any], group: str, member: str) -> None:
        """``request``: the fields of the IDL's ChangesRequest, without those of groups."""
        super().__init__({**request, "group": group, "member": member})
        self.group = group  # constant, as is the next
        self.member = member
        self.ranges = 0  # how many ranges of rows the member has, as of the last reply
        self._before = b""  # the position before the last reply
        self._done = b""  # the position behind the last reply all of whose events were handed out
        self._is_uncommitted = False

    def accept_reply(self, reply: Any) -> list[StreamEvent]:
        """Return the events of the reply, and count them all as handed out."""
        self._before = self.position
        events = super().accept_reply(reply)
        self.ranges = reply.ranges or 0
        self.is_at_end = self.is_at_end and not reply.hasChanged  # empty because the ranges changed
        self._done = self.position
        self._is_uncommitted |= bool(events)
        return events

    def hand_out(self, event: StreamEvent, *, has_more: bool) -> None:
        """Note that an event of the last reply is handed out now; ``has_more``: the reply has later ones."""
        if has_more:
            self._done = self._before
        else:
            self._done = self.position
            self._is_uncommitted |= not isinstance(event, Idle)

    def commit_request(self, *, has_more: bool) -> Any:
        """Return the CommitRequest for what was handed out; None if there is nothing to commit."""
        if not self._is_uncommitted or not self._done:
            return None
        return columnar.CommitRequest(group=self.group, member=self.member, position=self._done, more=has_more)

    def accept_commit(self, reply: Any) -> None:
        """Note that the store has carried out the commit.  Raises CommitRefused if some of it went to others."""
        self._is_uncommitted = False
        if reply.refused:
            raise CommitRefused(self.group, list(reply.refused))

    def renewal_request(self) -> Any:
        """Return the CommitRequest that renews the member's lease, and commits nothing."""
        return columnar.CommitRequest(group=self.group, member=self.member, position=b"", more=True)

    def leaving_request(self) -> Any:
        """Return the CommitRequest by which the member leaves: others get its rows, from the last commit on."""
        return columnar.CommitRequest(group=self.group, member=self.member, position=b"", leaves=True)


def cursor_of_member(group: str, member: str, **wanted: Any) -> GroupCursor:
    """Return the cursor of a new member; ``wanted`` are the arguments of ``request_of``.  Raises WrongArgument."""
    request = request_of(**wanted)
    if request["position"] or wanted["part"] is not None:
        raise WrongArgument("a group keeps its positions and shares the rows itself: leave out position and part")
    return GroupCursor(request, group, member)

"""Change streams by a client: follow the changes of a table, with or without the rows that are there.

``connection.changes(...)`` is an iterator of events:

    Change   one row mutation: its entries, and images of the row if requested
    Row      a row of the snapshot (``start="beginning"``, or after ``Forget``)
    Forget   the log did not reach back: forget these rows, which follow as they are now
    Idle     with ``heartbeats``: nothing came for a while

The position is the reader's own: a reader that keeps ``event.position`` goes on from there, at any server, also after
a restart.  Each change comes at least once, and those of one row in their order.  After a restart at most one reply
comes again, because an event bears the position before its reply unless it is the reply's last.  Before the first reply
that is where the stream began: its ``start`` as bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from columnar.client.errors import StoreIllegalArgument, StoreIOError, WrongArgument, hbase_class
from columnar.model.change_events import KINDS, ChangeEvent, Event, ForgetEvent, RowEvent, unpack_events
from columnar.model.change_stream import BEGINNING, NOW
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

POLL_MS: Final = 20_000  # how long a request waits for changes
_GONE: Final = "ChangesGoneException"
Start = str | bytes | datetime  # now, beginning, a position, or a time


class ChangesGone(StoreIllegalArgument):
    """The log no longer has the changes after the position; begin again with ``snapshot=True``."""


@dataclass(frozen=True, slots=True)
class Entry:
    kind: str  # put, delete, delete family, delete version
    column: bytes  # ``family:qualifier``, or the family
    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Change:
    row: bytes
    entries: tuple[Entry, ...]
    before: Mapping[bytes, bytes] | None  # the row's cells before the change; None: not requested, or not in the log
    after: Mapping[bytes, bytes] | None
    stamp: int  # ms since 1970; rises with each change of the row
    sequence: str  # as the token of a write
    more: bool  # the next record of the same atomic step follows
    position: bytes


@dataclass(frozen=True, slots=True)
class Row:
    row: bytes
    cells: Mapping[bytes, tuple[bytes, int]]  # column -> value and timestamp
    sequence: str
    position: bytes


@dataclass(frozen=True, slots=True)
class Forget:
    start: bytes
    stop: bytes  # empty: to the last row
    position: bytes


@dataclass(frozen=True, slots=True)
class Idle:
    up_to_ms: int  # every change with a lower stamp was sent; 0: not known
    position: bytes


StreamEvent = Change | Row | Forget | Idle
C = TypeVar("C")  # the kind of connection


class StreamCursor:
    """How far a stream was read: makes the requests, and the events of their replies.  Knows nothing of links."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """``request``: the fields of the IDL's ChangesRequest."""
        self._request = dict(request)
        self.position: bytes = self._request.pop("position")  # of the last reply; empty before the first
        self.is_at_end = False  # the last reply was empty, and the log had no more

    @property
    def begins_now(self) -> bool:
        """Whether the stream has no position yet, and begins at the log's end.

        Then a first request without a wait gets its position: a reader that goes on from an event amid the first
        reply could not say where that reply had begun.
        """
        return not self.position and self._request["start"] == NOW

    def make_request(self, wait_ms: int) -> Any:
        return columnar.ChangesRequest(**self._request, position=self.position, waitMs=wait_ms)

    def accept_reply(self, reply: Any) -> list[StreamEvent]:
        """Return the events of the reply to the last request, and go on behind them."""
        before = self.position or self._request["start"].encode()
        found = list(unpack_events(reply.events))
        # An empty reply may end amid the log, where many changes are none of this reader's.
        self.is_at_end = not found and bool(reply.upToMs or reply.position == before)
        self.position = reply.position
        events = [_event(one, before) for one in found[:-1]]
        return events + [_event(one, reply.position) for one in found[-1:]]


def refusal_of(error: Any) -> Exception:
    """Return ChangesGone if the error of the store means it; else return the error."""
    found: Exception = ChangesGone(error.message) if hbase_class(error) == _GONE else error
    return found


class ChangeStream(Generic[C]):
    """The state of an iterator of a table's changes, over a connection of any kind."""

    def __init__(
        self,
        connection: C,
        table: bytes,
        cursor: StreamCursor,
        *,
        follow: bool,
        heartbeats: bool,
        poll_ms: int,
    ) -> None:
        self._connection = connection
        self._table = table
        self._cursor = cursor
        self._follow = follow
        self._heartbeats = heartbeats
        self._poll_ms = poll_ms
        self._waiting: deque[StreamEvent] = deque()

    @property
    def position(self) -> bytes:
        """The position after the last reply; empty before the first."""
        return self._cursor.position

    @property
    def is_at_end(self) -> bool:
        """Whether the last poll found no event, and the log had no more."""
        return self._cursor.is_at_end

    def _keep_wanted(self, events: Iterable[StreamEvent]) -> None:
        """Have the iterator give these events, without heartbeats that nobody wants."""
        self._waiting.extend(one for one in events if self._heartbeats or not isinstance(one, Idle))


class Changes(ChangeStream["Connection"]):
    """An iterator of a table's changes.  After an error of the store or the network it goes on where it was.

    Not safe for threads, as the connection is not.
    """

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        """Return the next event; blocks until there is one, or with ``follow=False`` ends with the log's end."""
        while not self._waiting:
            events = self.poll(self._poll_ms if self._follow else 0)
            if not self._follow and self.is_at_end:
                raise StopIteration
            self._keep_wanted(events)
        return self._waiting.popleft()

    def poll(self, wait_ms: int = POLL_MS) -> list[StreamEvent]:
        """Return the next events; with ``wait_ms`` a list with one Idle if nothing came in time, else an empty list.

        Raises ChangesGone.
        """
        if wait_ms and self._cursor.begins_now:
            events = self._cursor.accept_reply(self._request(0))
            if events:
                return events
        reply = self._request(wait_ms)
        events = self._cursor.accept_reply(reply)
        return events or ([Idle(reply.upToMs or 0, reply.position)] if wait_ms else [])

    def _request(self, wait_ms: int) -> Any:
        try:
            return self._connection.call("columnarChanges", self._table, self._cursor.make_request(wait_ms))
        except (StoreIOError, StoreIllegalArgument) as error:
            raise refusal_of(error) from None


def open_changes(
    connection: Connection, table: bytes, *, follow: bool, heartbeats: bool, poll_ms: int, **wanted: Any
) -> Changes:
    """Return the iterator that ``Connection.changes`` describes.  Raises WrongArgument; calls no server."""
    longest_ms = longest_wait_ms(poll_ms, connection.timeout)
    cursor = StreamCursor(request_of(**wanted))
    return Changes(connection, table, cursor, follow=follow, heartbeats=heartbeats, poll_ms=longest_ms)


def longest_wait_ms(poll_ms: int, timeout_ms: int | None) -> int:
    """Return how long a request may wait for changes, with a client that waits ``timeout_ms`` for an answer."""
    return poll_ms if timeout_ms is None else min(poll_ms, max(1, timeout_ms // 2))


def request_of(
    *,
    start: Start,
    columns: Sequence[bytes | str],
    where: Sequence[str],
    rows: tuple[bytes | str, bytes | str] | None,
    part: tuple[int, int] | None,
    before: bool,
    after: bool,
    snapshot: bool,
    consolidate: bool,
    max_bytes: int,
) -> dict[str, Any]:
    """Return the fields of the IDL's ChangesRequest for these arguments.  Raises WrongArgument."""
    position, word = _begin_of(start)
    number, parts = part or (0, 1)
    first, stop = rows or (b"", b"")
    return {
        "position": position,
        "start": word,
        "columns": [_bytes(one) for one in columns],
        "where": list(where),
        "startRow": _bytes(first),
        "stopRow": _bytes(stop),
        "part": number,
        "parts": parts,
        "before": before,
        "after": after,
        "beginsAgain": snapshot,
        "consolidate": consolidate,
        "maxBytes": max_bytes,
    }


def _begin_of(start: Start) -> tuple[bytes, str]:
    if isinstance(start, bytes):
        if not start:
            raise WrongArgument("start: the position is empty; begin at 'now' or 'beginning'")
        # of an event in the first reply
        return (b"", start.decode()) if start == BEGINNING.encode() or start.isdigit() else (start, NOW)
    if isinstance(start, datetime):
        if start.tzinfo is None:
            raise WrongArgument("start: a time needs its zone, as datetime.now(UTC) has it")
        return b"", str(max(0, int(start.timestamp() * 1_000)))
    if start not in (NOW, BEGINNING):
        raise WrongArgument(f"start is 'now', 'beginning', a position (bytes) or a datetime, not {start!r}")
    return b"", start


def _event(one: Event, position: bytes) -> StreamEvent:
    if isinstance(one, ChangeEvent):
        entries = tuple([Entry(KINDS[e.kind], e.column, e.timestamp, e.value) for e in one.entries])
        token = "-".join(map(str, one.sequence))
        return Change(one.row, entries, one.before, one.after, one.stamp, token, one.more, position)
    if isinstance(one, RowEvent):
        cells = {column: (value, timestamp) for column, timestamp, value in one.cells}
        return Row(one.row, cells, "-".join(map(str, one.sequence)), position)
    assert isinstance(one, ForgetEvent), "there is no other kind"
    return Forget(one.start, one.stop, position)


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text

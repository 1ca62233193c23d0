"""The stream of an asyncio program: an asynchronous iterator of a table's changes, over a link of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from columnar.client.changes import POLL_MS, ChangeStream, Idle, StreamCursor, StreamEvent, refusal_of, request_of
from columnar.client.errors import StoreIllegalArgument, StoreIOError

if TYPE_CHECKING:
    from columnar.client.aio import AsyncConnection
    from columnar.client.async_link import AsyncLink


class AsyncChanges(ChangeStream["AsyncConnection"]):
    """An asynchronous iterator of a table's changes, for one task at a time.

    After an error of the store or the network, and after a cancellation, it goes on where it was.
    """

    _link: AsyncLink | None = None
    _is_calling = False
    _is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        """Return the next event, or with ``follow=False`` end with the log's end."""
        while not self._waiting:
            events = await self.poll(self._poll_ms if self._follow else 0)
            if not self._follow and self.is_at_end:
                self._end_link()
                raise StopAsyncIteration
            self._keep_wanted(events)
        return self._waiting.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the stream's link; the stream ends with a RuntimeError."""
        self._is_closed = True
        if self._link is not None:
            self._link.close()

    def _end_link(self) -> None:
        link, self._link = self._link, None
        if link is not None and link.is_open:
            self._connection.return_link(link)

    async def poll(self, wait_ms: int = POLL_MS) -> list[StreamEvent]:
        """Return the next events; with ``wait_ms`` a list with one Idle if nothing came in time, else an empty list.

        Raises ChangesGone.
        """
        with self._calling():
            if wait_ms and self._cursor.begins_now:
                events = self._cursor.accept_reply(await self._request(0))
                if events:
                    return events
            reply = await self._request(wait_ms)
        # no await from here on: what was taken from the reply is given
        events = self._cursor.accept_reply(reply)
        return events or ([Idle(reply.upToMs or 0, reply.position)] if wait_ms else [])

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Hold the stream for the calls of one task.  Raises RuntimeError if another has it, or it is closed."""
        if self._is_calling or self._is_closed:
            raise RuntimeError("the stream is closed" if self._is_closed else "another task waits for this stream")
        self._is_calling = True
        try:
            yield
        finally:
            self._is_calling = False

    async def _request(self, wait_ms: int) -> Any:
        try:
            return await self._call("columnarChanges", (self._table, self._cursor.make_request(wait_ms)), wait_ms)
        except (StoreIOError, StoreIllegalArgument) as error:
            raise refusal_of(error) from None

    async def _call(self, method: str, arguments: Sequence[Any], wait_ms: int = 0) -> Any:
        if self._link is None or not self._link.is_open:
            self._link = await self._connection.lend_link()
        return await self._link.call_method(method, arguments, (wait_ms + self._connection.timeout_ms) / 1_000)


def open_async_changes(
    connection: AsyncConnection, table: bytes, *, follow: bool, heartbeats: bool, poll_ms: int, **wanted: Any
) -> AsyncChanges:
    """Return the iterator that ``AsyncConnection.changes`` describes.  Raises WrongArgument; calls no server."""
    cursor = StreamCursor(request_of(**wanted))
    return AsyncChanges(connection, table, cursor, follow=follow, heartbeats=heartbeats, poll_ms=poll_ms)

"""A client connection of an HTTP port: requests in, handlers' responses out, one after the other.

States (a connection may be in several; it serves only when in none of them):

    busy      a handler's awaitable is not done, or a body is being sent in chunks; the next request waits
    resting   its time slice on the loop is used up
    blocked   more than ``output_bytes`` are unsent: the client does not read; or the lease does not hold
    closing   no further request is served; unsent responses are still sent

A request that is half received is given up with 408 if its head takes over HEAD_S, or if no byte of its body comes for
BODY_PAUSE_S.  Between requests there is no timeout, as at the Thrift ports: clients keep connections for days.

A handler that has begun is carried out, also if the client goes; ``Request.has_gone`` tells it.  A body in chunks is
then given up, and a request that has not begun is dropped, as at the Thrift ports: with TCP a client that closes looks
like one that only ends its sending side.

An error within a body in chunks cannot be an answer any more: the connection is aborted, and the missing last chunk
shows the client that the body is not whole.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from time import perf_counter
from typing import TYPE_CHECKING, Final

from columnar.errors import ColumnarError
from columnar.limits import SMALL_REQUEST_BYTES
from columnar.runtime.loop_budget import LoopBudget
from columnar.wire.http.answers import LAST_CHUNK, HttpRefused, answer_head, chunk, refused
from columnar.wire.http.exchange import Client, Request, Response
from columnar.wire.http.incoming_request import Message
from columnar.wire.http.request_parser import RequestParser
from columnar.wire.served_connection import ServedConnection

if TYPE_CHECKING:
    from columnar.wire.http.server import HttpServer

HEAD_S: Final = 30.0  # from the first byte of a head to its last
BODY_PAUSE_S: Final = 60.0  # without a byte of a body
SLICE_S: Final = 0.002  # time slice of a connection on the loop
SLICE_BYTES: Final = 256 * 1024  # of responses buffered for one write
_WITHOUT_BODY: Final = (204, 304)


class _Arrival:
    """The times of the bytes of a request that is half received."""

    def __init__(self) -> None:
        self._began_s: float | None = None  # None: no request is half received
        self._last_s = 0.0

    def add_bytes(self, now_s: float) -> None:
        self._last_s = now_s

    def begin_request(self) -> None:
        """Note that the last bytes were not the end of a request."""
        if self._began_s is None:
            self._began_s = self._last_s

    def end_request(self) -> None:
        self._began_s = None

    def is_late(self, now_s: float, *, is_in_head: bool) -> bool:
        if self._began_s is None:
            return False
        return now_s - self._began_s > HEAD_S if is_in_head else now_s - self._last_s > BODY_PAUSE_S


class PieceSender:
    """Sends the body of a response in pieces, as the client reads them and in slices of the loop's time."""

    def __init__(self, connection: HttpConnection, budget: LoopBudget) -> None:
        self._connection = connection
        self._budget = budget
        self._room: asyncio.Future[None] | None = None  # for which a piece waits

    async def send_pieces(self, body: AsyncIterator[bytes], *, in_chunks: bool) -> None:
        """Send the pieces until the client goes.  Raises what their iterator raises."""
        connection, ends = self._connection, perf_counter() + SLICE_S
        output = connection.output
        try:
            async for piece in body:
                if connection.has_gone():
                    return
                if piece:
                    output.add_parts(chunk(piece) if in_chunks else [piece])
                    output.send_replies(connection)
                while output.is_paused and output.is_over and not connection.has_gone():
                    await self._wait_for_room()
                if perf_counter() >= ends:
                    await self._budget.wait_for_budget()
                    ends = perf_counter() + SLICE_S
        finally:
            close = getattr(body, "aclose", None)  # of a generator
            if close is not None:
                await close()
        if in_chunks:
            output.add_parts([LAST_CHUNK])

    async def _wait_for_room(self) -> None:
        self._room = asyncio.get_running_loop().create_future()
        await self._room

    def wake(self) -> None:
        """Check again whether there is room, or whether the client has gone."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)


class HttpConnection(ServedConnection):
    _server: HttpServer
    log = logging.getLogger("columnar.http")

    def __init__(self, server: HttpServer) -> None:
        super().__init__(server)
        limits = server.table.limits
        self._parser = RequestParser(limits.message_bytes, limits.drained_bytes, server.check_head)
        self._client = Client()  # another one from connection_made on
        self._task: asyncio.Task[None] | None = None  # the connection is busy
        self._serving_bytes = 0  # of the request that is served
        self._pieces = PieceSender(self, server.loop_budget)
        self._is_expensive = True  # used up its last slice, or has had none: shares the slices of expensive ones
        self._resting = False
        self._arrival = _Arrival()

    # --- what the loop calls ---------------------------------------------------------------------------

    def _connected(self, transport: asyncio.BaseTransport) -> None:
        self._client = self._server.client_of(transport)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._parser.feed(data)
        self._arrival.add_bytes(asyncio.get_running_loop().time())
        if self._task is None and not self._resting:
            if not self._is_expensive or self._server.loop_budget.has_room:
                self._serve()
                return
            self.rest()
        self._count()

    def eof_received(self) -> bool:
        """Note that the client sends no more bytes.  A request that has begun is still answered."""
        self._has_gone = self._closing = True
        if self._task is None:
            self.output.close()
        return self._task is not None or self.output.is_paused

    def resume_writing(self) -> None:
        self.output.resume_writing()
        self._pieces.wake()
        if self._task is None and not (self._resting or self._closing):
            self.rest()

    def _drop_input(self) -> None:
        self._pieces.wake()
        self._parser.stop()

    # --- what table and server call --------------------------------------------------------------------

    def begin_close(self) -> None:
        self._closing = True
        if self._task is None:
            self.output.close()

    def close_between(self) -> None:
        """Close the connection of a server that leaves, unless a request has begun: its answer is then the last."""
        if self._task is None and not self._resting and self._parser.is_between:
            self.begin_close()

    def shed_input(self, error: ColumnarError) -> bool:
        if self._parser.shed(error.wire_message):
            self._count()
            self.log.warning("%s: half-received request dropped: %s", self._peer, error)
            return True
        self.input.spare()
        if self._task is not None or self._resting or self._closing:
            return False
        self._server.table.output_changed(-self.abort(f"half the head of a request is here, and {error}"))
        return True

    def rest(self, ahead: bool = False) -> None:
        if not self._resting:
            self._resting = True
            self._server.loop_budget.soon(self._resume, ahead=ahead)

    def check_time(self, now_s: float) -> None:
        """Give up a request that comes too slowly."""
        is_waiting = self._task is None and not (self._resting or self._closing)
        if is_waiting and self._arrival.is_late(now_s, is_in_head=self._parser.is_in_head):
            self._hang_up(refused(408, "the request did not come in time; send it faster"))

    # --- serving ---------------------------------------------------------------------------------------

    def _resume(self) -> None:
        self._resting = False
        if self._task is not None:
            self._pieces.wake()  # its body in chunks may have waited for the lease
        elif self._closing:
            self.output.send_replies(self)
            self.output.close()
        else:
            self._serve()

    def _serve(self) -> None:
        """Serve received requests until a response is pending or the time slice is over."""
        output, begun = self.output, perf_counter()
        done = begun
        try:
            while not (self._closing or (output.is_paused and output.is_over)):
                message = self._parser.next_message()
                if message is None:
                    self._wait_for_bytes()
                    break
                self._begin(message)
                done = perf_counter()
                if self._task is not None:
                    break
                if done - begun >= SLICE_S or output.size_bytes >= SLICE_BYTES:
                    self.rest()
                    break
        except HttpRefused as fault:
            self._hang_up(fault)
            return
        if done > begun:
            self._is_expensive = done - begun >= SLICE_S or output.size_bytes >= SLICE_BYTES
            if self._is_expensive:
                self._server.loop_budget.spend(done - begun)
        output.send_replies(self)
        self._count()
        if self._closing and self._task is None:
            output.close()

    def _wait_for_bytes(self) -> None:
        parser = self._parser
        self._closing = parser.has_ended
        if parser.has_yielded:
            self.rest()
        elif interim := parser.take_interim():
            self.output.add_parts([interim])
        if parser.is_within_message:
            self._arrival.begin_request()
        else:
            self._arrival.end_request()

    def _begin(self, message: Message) -> None:
        """Answer a request, or begin the task that does."""
        self._arrival.end_request()
        server, client, size_bytes = self._server, self._client, len(message.body)
        answer: Response | Awaitable[Response]
        request = client.request(message, self.has_gone)
        try:
            if size_bytes > SMALL_REQUEST_BYTES and not server.table.has_room(size_bytes - self.input.counted_bytes):
                raise server.table.full()
            answer = server.respond(request, client)
        except Exception as error:  # noqa: BLE001 - the server's loop: every fault is answered
            answer = server.failed(request, error)
        if isinstance(answer, Response) and isinstance(answer.body, bytes):
            self._answer(message, answer, answer.body)
            return
        self._serving_bytes = size_bytes
        self._task = server.run(self._carry_out(message, request, answer))
        self._task.add_done_callback(self._carried_out)

    async def _carry_out(self, message: Message, request: Request, answer: Response | Awaitable[Response]) -> None:
        try:
            response = answer if isinstance(answer, Response) else await answer
        except Exception as error:  # noqa: BLE001 - as in _begin
            response = self._server.failed(request, error)
        if isinstance(response.body, bytes):
            self._answer(message, response, response.body)
            return
        self._send_head(message, response, None)
        if _has_body(message, response):
            await self._pieces.send_pieces(response.body, in_chunks=message.version == "1.1")

    def _carried_out(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._serving_bytes = 0
        if self._fd < 0:  # the table has forgotten the connection
            if not task.cancelled() and (error := task.exception()) is not None:
                self.log.error("%s: the body of a response failed", self._peer, exc_info=error)
            return
        if task.cancelled():
            self.abort("the server stopped before the request was done")
        elif (error := task.exception()) is not None:
            self.log.error("%s: the body of a response failed", self._peer, exc_info=error)
            self.abort("the rest of a response's body cannot be had")
        elif self._closing:
            self.output.send_replies(self)
            self.output.close()
            self._count()
        else:
            self._serve()

    # --- responses -------------------------------------------------------------------------------------

    def _answer(self, message: Message, response: Response, body: bytes) -> None:
        self._send_head(message, response, len(body))
        if body and _has_body(message, response):
            self.output.add_parts([body])

    def _send_head(self, message: Message, response: Response, size_bytes: int | None) -> None:
        """Add the head of a response, whose body has ``size_bytes``; None: it comes in pieces."""
        server = self._server
        is_last = message.is_last or self._closing or server.is_leaving
        headers = [*response.headers, *server.headers_for(message)]
        if response.status not in _WITHOUT_BODY:
            if size_bytes is not None:
                headers.append(("Content-Length", str(size_bytes)))
            elif message.version == "1.1":
                headers.append(("Transfer-Encoding", "chunked"))
        if is_last:
            headers.append(("Connection", "close"))
        self.output.add_parts([answer_head(response.status, headers)])
        self._parser.answered(is_last=is_last)
        self._closing = is_last

    # --- bounds ----------------------------------------------------------------------------------------

    def _count(self) -> None:
        """Report what is buffered, and read on if there is room."""
        table, output = self._server.table, self.output
        self.input.count_input(self._parser.buffered_bytes, self._serving_bytes)
        is_blocked = self._closing or (output.is_paused and output.is_over)
        is_waiting = self._task is not None or self._resting
        self.input.pause_reading(is_blocked or (is_waiting and self.input.buffered_bytes > table.read_ahead_bytes))

    def _hang_up(self, fault: HttpRefused) -> None:
        self.log.warning("%s: closed: %s", self._peer, fault.why)
        self._closing = True
        self.output.add_parts([fault.answer])
        self.output.send_replies(self)
        self._parser.stop()
        self._count()
        self.output.close()


def _has_body(message: Message, response: Response) -> bool:
    return message.method != "HEAD" and response.status not in _WITHOUT_BODY

"""A client connection: receives bytes, runs calls in order and sends replies, with bounded memory and time slices.

States (a connection may be in several; it serves only when in none of them):

    busy      a handler's awaitable is not done; the next request waits, because replies keep the order of requests
    resting   its time slice on the loop is used up; it continues after the slices of other connections
    blocked   more than ``output_bytes`` are unsent: the client does not read; or the lease of the process does not hold
              (``coordination.lease_gate``): at most the replies of one time slice and of a busy call are withheld
    closing   no further request is served; unsent replies are still sent

With TCP, a client that closes its socket looks the same as a client that only ends its sending side.  A call that has
already begun is carried out and answered, except that a call of several steps ends before its next step (``has_gone``).
A call that has not begun is dropped.

Reading from the socket stops while blocked, and while busy or resting with more than ``read_ahead_bytes`` read ahead.
There is no idle timeout: pools keep connections for days (keepalive finds the dead ones).  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from columnar.errors import ColumnarError
from columnar.wire.caller import SLICE_S, Caller, Message
from columnar.wire.codec import ONEWAY, Request
from columnar.wire.connection_buffers import ConnectionInput, ConnectionOutput
from columnar.wire.detect import Protocol
from columnar.wire.framing import Hangup, RequestStream, Whole, YieldLoop
from columnar.wire.service import Awaited, CallContext, Later
from columnar.wire.sockets import has_ended, name_of_peer, tune

if TYPE_CHECKING:
    from columnar.wire.server import WireServer

log = logging.getLogger("columnar.wire")

SLICE_BYTES: Final = 256 * 1024  # of replies buffered for one write
_UNKNOWN: Final = "unknown"  # in metrics: names that clients invent do not become labels


class Connection(Caller):
    """An ``asyncio.Protocol`` in all but name.

    The class does not inherit from asyncio's, so that it compiles to plain fields and direct calls.
    """

    def __init__(self, server: WireServer, connection_id: int, read: bytes | None = None, counts: int = 1) -> None:
        """Pass as ``read`` what another server read of the next request, or None if this server accepted the client.

        ``counts`` is 0 for background work of the store.
        """
        super().__init__(server, CallContext(connection_id, "?"), counts=counts, forwards=True)
        self._table = server.table
        limits = server.table.limits
        self._stream = RequestStream(server.codec, limits.message_bytes, limits.drained_bytes, server.visitors)
        self._stream.feed(read or b"")
        self.input = ConnectionInput(server.table)
        self.output = ConnectionOutput(server.table)
        self.was_brought = read is not None  # constant, as is the next one
        self.number = connection_id
        self._fd = -1
        self._resting = False
        self._is_new = True  # no request was answered yet
        self._closing = False
        self._is_read_out = False  # all that the client sent before it ended its side was read

    # --- what the loop calls ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        channel = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._ctx = CallContext(self.number, name_of_peer(transport), Protocol.BINARY, self.has_gone)
        self.input.begin_reading(channel)
        self.output.begin_writing(channel)
        if not self._server.admit(self):
            self.abort(f"{self._server.connections} connections are open, which is the limit")
            return
        sock = transport.get_extra_info("socket")
        self._fd = sock.fileno()
        tune(sock)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self._is_new and self.has_gone():  # it may have ended before we accepted it
            self._close_quietly()
            return
        self._stream.feed(data)
        if not (self._busy or self._resting):
            if not self._is_expensive or self._server.loop_budget.has_room:
                self._serve()
                return
            self.rest(self._is_new)
        self.input.count_input(self._stream.buffered_bytes, self.serving_bytes)
        self._regulate_reading()

    def eof_received(self) -> bool:
        """Note that the client sends no more bytes.  A call that has begun is still answered before we close."""
        self._is_read_out = True
        self._leave()
        if self._closing:
            return self._busy or self.output.withheld_bytes > 0
        return self._busy or self.output.is_paused

    def pause_writing(self) -> None:
        self.output.pause_writing()

    def resume_writing(self) -> None:
        self.output.resume_writing()
        if not (self._busy or self._resting or self._closing):
            self.rest()

    def connection_lost(self, exc: Exception | None) -> None:
        by_us, self._closing = self._closing, True
        self.output.leave_gate()
        self._fd = -1
        self._leave()
        if self._forwarded is not None:
            self._forwarded.client_left()
            self._forwarded = None
        ctx = self._ctx  # it refers to us; the new one does not
        self._ctx = CallContext(self.number, ctx.peer, ctx.protocol, user=ctx.user)
        if not self._table.forget_connection(self):
            return  # it was never admitted
        if exc is not None and not by_us:  # else the reason was logged then
            log.info("%s: connection lost: %s", self._ctx.peer, exc)
        elif self._stream.is_within_message and not (self._busy or by_us):
            log.info("%s: closed by the client within a message", self._ctx.peer)
        self._stream.stop()
        self._server.service.connection_closed(self.number)

    # --- what the server calls ---------------------------------------------------------------------------

    def begin_close(self) -> None:
        """Finish the call in flight, answer it, close."""
        self._closing = True
        if not self._busy:
            self.output.close()

    def begun(self, most_bytes: int) -> bytes | None:
        """Return the received bytes of the next request; None if a request is being served or too much was received."""
        if self._busy or self._resting or self._closing or self.has_gone():
            return None
        return self._stream.begun(most_bytes)

    def send_all(self) -> None:
        """Stop reading until every reply is sent; then the server's ``leaving`` checks the connection again."""
        self.input.pause_reading(True)
        self.output.notify_when_sent()

    def let_go(self) -> int:
        """Detach this server from the connection; returns a descriptor of the open connection, which the caller owns.

        Raises OSError if no file descriptor is free.
        """
        descriptor = os.dup(self._fd)
        self._closing = True
        self.output.abort()
        return descriptor

    def abort(self, why: str) -> int:
        """End the connection; returns the number of unsent bytes, as ``ConnectionOutput.abort`` does."""
        log.warning("%s: closed: %s", self._ctx.peer, why)
        self._closing = True
        return self.output.abort()

    def has_gone(self) -> bool:
        """Return whether the client has ended the connection or its sending side.

        Asks the kernel, which knows before the loop has read the end.
        """
        if not self._has_gone and (self._fd < 0 or has_ended(self._fd)):
            self._leave()
        return self._has_gone

    def _leave(self) -> None:
        self._has_gone = True
        if self._aside is not None:
            self._aside.drop_message()
        if self._server.large_calls.forget(self.large):
            self._end_wait()

    def shed_input(self, error: ColumnarError) -> bool:
        """Refuse the first waiting request, or close the connection.

        Returns False if that request is refused already.
        """
        ahead = self._busy or self._resting
        if not self._stream.shed(error):
            self.input.spare()
            if ahead or self._closing or (self.output.is_paused and self.output.is_over):
                return False
            self._table.output_changed(-self.abort(f"half the head of a request is here, and {error}"))
            return True
        self.input.count_input(self._stream.buffered_bytes, self.serving_bytes)
        log.warning("%s: half-received message dropped: %s", self._ctx.peer, error)
        if not ahead:
            self.rest()
        return True

    # --- serving -----------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Serve received requests until a reply is pending or the time slice is over."""
        begun, output = perf_counter(), self.output
        turn_ends, done = begun + SLICE_S, 0.0
        try:
            while not (self._closing or (output.is_paused and output.is_over)):
                sign_in = self.http_sign_in
                message = self._stream.next() if sign_in is None else sign_in.next_message(self._stream, self.set_user)
                if message is None:
                    self._closing = self._stream.waits(output.parts)
                    break
                if isinstance(message, YieldLoop):
                    self.rest()
                    break
                ctx = self._ctx
                if ctx.protocol is not self._stream.protocol:
                    protocol = self._stream.protocol
                    self._ctx = CallContext(ctx.connection_id, ctx.peer, protocol, self.has_gone, ctx.user)
                if isinstance(message, Whole):
                    self._decode_aside(message)
                    break
                answered = self._answer(message)
                if answered is None:
                    break
                done = answered
                if done >= turn_ends or output.size_bytes >= SLICE_BYTES:
                    self.rest()
                    break
        except Hangup as hangup:
            self._hang_up(hangup)
            return
        if done:  # something was answered
            self._is_expensive = done >= turn_ends or output.size_bytes >= SLICE_BYTES
            if self._is_expensive:
                self._server.loop_budget.spend(done - begun)
        output.send_replies(self)
        self.input.count_input(self._stream.buffered_bytes, self.serving_bytes)
        if self._closing and not self._busy:
            self.output.close()
        self._regulate_reading()
        if self._server.leaving is not None:
            self._server.leaving.check_connection(self)

    def _is_over(self) -> bool:
        if not (self._closing or self.has_gone()):
            return False
        self._close_quietly()
        return True

    def _has_room(self, size_bytes: int) -> bool:
        return self._table.has_room(size_bytes - self.input.counted_bytes)

    def _close_quietly(self) -> None:
        """Send the answers, read all bytes that the client sent before it ended its side, then close.

        If a socket is closed while it has unread bytes, TCP resets the connection, and the client may lose sent
        answers.  The kernel's buffer bounds the number of unread bytes.
        """
        self._closing = True
        self.output.send_replies(self)
        if self._fd >= 0:
            self.input.count_input(self._stream.buffered_bytes, self.serving_bytes)
        if self._is_read_out or not self._has_gone:
            self.output.close()
        else:
            self.input.pause_reading(False)

    def resume(self, request: Request, future: Awaited, started: float, later: Later | None) -> None:
        self._end_wait()
        if self._settle(request, future, started, later) is None:
            return  # it waits for something else now
        if self._closing or self._has_gone or (self._stream.is_within_message and self.has_gone()):
            self._close_quietly()
        else:
            self._serve()

    def _done(
        self, message: Message, reply: bytes | memoryview, error: str | None, started: float, result: Any
    ) -> float:
        now = perf_counter()
        self._is_new = False
        server = self._server
        server.answers[self.counts] += 1
        reply = b"" if message.kind == ONEWAY else reply
        self.output.add_reply(reply, self._stream.http, self._stream.is_framed)
        took = now - started
        method = message.method
        name = method.name if method is not None else _UNKNOWN
        server.observer.request_done(name, took, error, message.size_bytes, len(reply))
        if took >= server.slow_after_s and isinstance(message, Request) and method is not None:
            http = self._stream.http
            trace_parent = http.trace_parent if http is not None else ""
            time = self.time_of(started, now, len(reply), error, trace_parent)
            server.service.was_slow(self._ctx, name, message.args, time, result)
        return now

    # --- time slices, backpressure -----------------------------------------------------------------------

    def rest(self, ahead: bool = False) -> None:
        self._resting = True
        self._server.loop_budget.soon(self._resume_serving, ahead=ahead)

    def _resume_serving(self) -> None:
        self._resting = False
        if not self._busy and not self._is_over():
            self._serve()

    def _regulate_reading(self) -> None:
        output = self.output
        is_blocked = self._closing or (output.is_paused and output.is_over)
        is_ahead = (self._busy or self._resting) and self.input.buffered_bytes > self._table.read_ahead_bytes
        self.input.pause_reading(is_blocked or is_ahead)

    def _hang_up(self, hangup: Hangup) -> None:
        log.warning("%s: closed: %s", self._ctx.peer, hangup.why)
        self._closing = True
        if hangup.answer:
            self.output.parts.append(hangup.answer)
        self.output.send_replies(self)
        self.output.close()

"""A client connection: bytes in, calls made in order, replies out, all within bounds.

States (a connection may be in several; it serves only when in none of them):
    busy      a handler's awaitable is not done; replies keep the order of requests, so the next request waits
    resting   its time slice on the loop is used up; it continues after the slices of other connections
    blocked   more than ``output_bytes`` are unsent: the client does not read
    closing   no further request is served; unsent replies are still sent

TCP does not distinguish a client that closes its socket from one that only ends its side.  A call that has begun by
then is carried out and answered, but for further steps, which end (``has_gone``); a call that has not begun is dropped.

Reading from the socket stops while blocked, and while busy or resting with more than ``read_ahead_bytes`` read ahead.
There is no idle timeout: pools keep connections for days (keepalive finds the dead ones).  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from struct import Struct
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from columnar.errors import ColumnarError, OutcomeUnknown, RegionUnavailable
from columnar.limits import SMALL_REQUEST_BYTES
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.wire.codec import CALL, ONEWAY, Request
from columnar.wire.codec_replies import RowList
from columnar.wire.detect import Protocol
from columnar.wire.framing import Hangup, Refusal, RequestStream, Whole, YieldLoop
from columnar.wire.large_calls import Aside, LargeCaller
from columnar.wire.service import Awaited, CallContext, ForwardedReply, Later, Raw, Waiting
from columnar.wire.sockets import has_ended, name_of_peer, tune

if TYPE_CHECKING:
    from columnar.wire.server import WireServer

log = logging.getLogger("columnar.wire")

SLICE_S: Final = 0.002  # time slice of a connection on the loop
SLICE_BYTES: Final = 256 * 1024  # of replies buffered for one write
UNTRACKED_OUTPUT_BYTES: Final = 16 * 1024  # the server does not count less unsent output: 160 MB for 10,000
JOINED_BYTES: Final = 64 * 1024  # more bytes of replies are sent piece by piece: a join would copy them
LARGE_BYTES: Final = 64 * 1024  # the arguments of a larger request are not kept while its answer waits

Message = Request | Refusal
_FRAME: Final = Struct(">I").pack
_DIRECT: Final = frozenset({list, RowList, type(None), bool, int, str, bytes, dict})
_UNKNOWN: Final = "unknown"  # in metrics: names that clients invent do not become labels


class Connection:
    """An ``asyncio.Protocol`` in all but name: a class without foreign bases compiles to plain fields and calls."""

    def __init__(self, server: WireServer, connection_id: int, read: bytes | None = None, counts: int = 1) -> None:
        """``read``: bytes of its request read by another server; None: accepted locally.  ``counts``: 0: background."""
        self._server = server  # constant, as are the next three
        self._loop = asyncio.get_running_loop()
        limits = server.limits
        self._stream = RequestStream(server.codec, limits.message_bytes, limits.drained_bytes, server.visitors)
        self._stream.feed(read or b"")
        self.was_brought = read is not None  # constant, as is the next one
        self.number = connection_id
        self._ctx = CallContext(connection_id, "?")
        self._fd = -1
        self._aside: Aside | None = None  # the large message that a thread decodes
        self.large = LargeCaller()
        self._transport: asyncio.Transport | None = None
        self.counts = counts  # constant
        self._busy = self._resting = False
        self._is_new = True  # no request was answered yet
        self._is_expensive = True  # used up its last slice, or has had none: shares the slices of expensive ones
        self._write_paused = False
        self._reading_paused = False
        self._closing = False
        self._has_gone = False  # the connection has ended, or the client sends no more
        self._is_read_out = False  # all that the client sent before it ended its side was read
        self._forwarded: ForwardedReply | None = None  # the call that another server answers
        self._out: list[bytes | memoryview] = []  # replies of this time slice
        self._out_bytes = 0
        self.buffered_bytes = 0  # of input that waits and may be refused: half a message, or requests read ahead
        self.serving_bytes = 0  # of the request whose reply is pending
        self.counted_bytes = 0  # the sum of the two, as last reported to the server
        self.unsent_bytes = 0  # of output, as last reported to the server

    # --- what the loop calls ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._ctx = CallContext(self.number, name_of_peer(transport), Protocol.BINARY, self.has_gone)
        if not self._server.admit(self):
            self.abort(f"{self._server.connections} connections are open, which is the limit")
            return
        self._transport.set_write_buffer_limits(high=UNTRACKED_OUTPUT_BYTES)
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
            self._rest(self._is_new)
        self._account_input()
        self._regulate_reading()

    def eof_received(self) -> bool:
        """Note that the client sends no more; a call that has begun is still answered before we close."""
        self._is_read_out = True
        self._leave()
        return self._busy or (self._write_paused and not self._closing)

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._account_output(0)
        if not (self._busy or self._resting or self._closing):
            self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        by_us, self._closing = self._closing, True
        self._fd = -1
        self._leave()
        if self._forwarded is not None:
            self._forwarded.client_left()
            self._forwarded = None
        self._ctx = CallContext(self.number, self._ctx.peer, self._ctx.protocol)  # the old one refers to us
        if self._transport is None or not self._server.forget_connection(self):
            return  # it was never admitted
        if exc is not None and not by_us:  # else the reason was logged then
            log.info("%s: connection lost: %s", self._ctx.peer, exc)
        elif self._stream.is_within_message and not (self._busy or by_us):
            log.info("%s: closed by the client within a message", self._ctx.peer)
        self._server.service.connection_closed(self.number)

    # --- what the server calls ---------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        return self._ctx.peer

    def begin_close(self) -> None:
        """Finish the call in flight, answer it, close."""
        self._closing = True
        if not self._busy:
            self._close()

    def begun(self, most_bytes: int) -> bytes | None:
        """Return the bytes read of the next request; None: a request is being served, or too much was read."""
        if self._busy or self._resting or self._closing or self.has_gone():
            return None
        return self._stream.begun(most_bytes)

    def send_all(self) -> None:
        """Stop reading until every reply is sent; the server's ``leaving`` checks the connection again then."""
        self._pause_reading(True)
        cast(asyncio.Transport, self._transport).set_write_buffer_limits(
            high=0
        )  # so that the loop notifies when no byte is left

    def let_go(self) -> int:
        """End this side only; returns a descriptor of the connection, owned by the caller.  OSError: none is left."""
        descriptor = os.dup(self._fd)
        self._closing = True
        cast(asyncio.Transport, self._transport).abort()
        return descriptor

    def abort(self, why: str) -> None:
        log.warning("%s: closed: %s", self._ctx.peer, why)
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def has_gone(self) -> bool:
        """Tell whether the client has ended the connection or its side of it; the kernel may know before we read it."""
        if not self._has_gone and (self._fd < 0 or has_ended(self._fd)):
            self._leave()
        return self._has_gone

    def _leave(self) -> None:
        self._has_gone = True
        if self._aside is not None:
            self._aside.whole = None
        if self._server.large_calls.forget(self.large):
            self._busy = False

    def shed_input(self, error: ColumnarError) -> bool:
        """Refuse the first waiting request, or close; False: it is refused already, after requests in progress."""
        ahead = self._busy or self._resting
        if not self._stream.shed(error):
            self.buffered_bytes = 0  # not chosen again before it is served, or read
            if ahead or self._blocked():
                return False
            self.abort(f"half the head of a request is here, and {error}")
            return True
        self._account_input()
        log.warning("%s: half-received message dropped: %s", self._ctx.peer, error)
        if not ahead:
            self._rest()
        return True

    def unsent_now(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # --- serving -----------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Serve received requests until a reply is pending or the time slice is over."""
        begun = perf_counter()
        turn_ends, done = begun + SLICE_S, 0.0
        try:
            while not self._blocked():
                message = self._stream.next()
                if message is None:
                    self._closing = self._stream.waits(self._out)
                    break
                if isinstance(message, YieldLoop):
                    self._rest()
                    break
                if isinstance(message, Whole):
                    self._decode_aside(message)
                    break
                answered = self._answer(message)
                if answered is None:
                    break
                done = answered
                if done >= turn_ends or self._out_bytes >= SLICE_BYTES:
                    self._rest()
                    break
        except Hangup as hangup:
            self._hang_up(hangup)
            return
        if done:  # something was answered
            self._is_expensive = done >= turn_ends or self._out_bytes >= SLICE_BYTES
            if self._is_expensive:
                self._server.loop_budget.spend(done - begun)
        self._flush()
        self._account_input()
        if self._closing and not self._busy:
            self._close()
        self._regulate_reading()
        if self._server.leaving is not None:
            self._server.leaving.check_connection(self)

    def _serve_unless(self, is_over: bool) -> None:
        if is_over:
            self._close_quietly()
        else:
            self._serve()

    def _decode_aside(self, whole: Whole) -> None:
        """Decode a large message in a thread: it would block the loop for up to seconds."""
        self._busy = True
        self.serving_bytes = len(whole.body)
        server, self._aside = self._server, Aside(whole)
        decoded = self._loop.run_in_executor(server.decoder, self._aside.decoded, server.codec_aside)
        decoded.add_done_callback(self._decoded)

    def _decoded(self, future: asyncio.Future[Request | Refusal]) -> None:
        self._aside = None
        if self._has_gone:
            future.exception()  # seen: no caller waits for it
            self._busy = False
            self._close_quietly()
        else:
            self._server.large_calls.soon(self.large, self.serving_bytes, partial(self._answer_large, future))

    def _answer_large(self, future: asyncio.Future[Request | Refusal]) -> None:
        self._busy = False
        if self._closing or self.has_gone():
            self._close_quietly()
            return
        try:
            message = future.result()
        except Hangup as hangup:
            self._hang_up(hangup)
            return
        if self._answer(message) is not None:
            self._serve()

    def _close_quietly(self) -> None:
        """Send the answers and close, once all is read that a client sent before it ended its side.

        A socket closed over unread bytes is reset, and the reset overtakes answers.  The kernel's buffer bounds them.
        """
        self._closing = True
        self._flush()
        if self._fd >= 0:
            self._account_input()
        if self._is_read_out or not self._has_gone:
            self._close()
        else:
            self._pause_reading(False)

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _answer(self, message: Message) -> float | None:
        """Serve a message; returns the time at which it was answered, or None if its reply is pending."""
        started, server = perf_counter(), self._server
        if isinstance(message, Refusal):
            reply = server.errors.refused(self._ctx.peer, message, self._stream.protocol)
            return self._done(message, reply, type(message.error).__name__, started)
        method = message.method
        handler = server.handlers.get(method.name) if method is not None else None
        if method is None or handler is None or message.kind not in (CALL, ONEWAY):
            reply = server.errors.not_served(message, self._stream.protocol)
            return self._done(message, reply, "TApplicationException", started)
        if message.size_bytes > SMALL_REQUEST_BYTES and not server.has_room(message.size_bytes - self.counted_bytes):
            return self._failed(message, server.full(), started)
        try:
            ctx = self._ctx
            if ctx.protocol is not self._stream.protocol:
                ctx = self._ctx = CallContext(ctx.connection_id, ctx.peer, self._stream.protocol, self.has_gone)
            if server.ahead is not None and (forward_after_error := server.ahead(ctx, message)) is not None:
                return self._hand_on(message, forward_after_error, started)
            result = handler(ctx, *message.args)
            if type(result) not in _DIRECT:
                if type(result) is Later:
                    return self._pending(message, result.future, started, result)
                if hasattr(result, "__await__"):
                    return self._pending(message, result, started, None)
            reply = method.reply(self._stream.protocol, message.seqid, result)
        except Exception as error:  # noqa: BLE001 - the server's loop: every fault is answered
            return self._retry_or_forward(message, error, started)
        return self._done(message, reply, None, started, result)

    def _pending(self, request: Request, waiting: Any, started: float, later: Later | None) -> float | None:
        shared = isinstance(waiting, ImmediateFuture) or (later is not None and isinstance(waiting, asyncio.Future))
        future = waiting if shared else asyncio.ensure_future(waiting, loop=self._loop)
        if future.done():
            return self._settle(request, future, started, later)
        self._busy = True
        self.serving_bytes = request.size_bytes
        if request.size_bytes > LARGE_BYTES:  # the handler keeps the rows that it still needs; the slow log counts rows
            request.args = [[None] * len(one) if isinstance(one, list) else one for one in request.args]
        if shared or request.method is None or not self._server.service.may_be_forwarded(request.method.name):
            request.buffer = b""
        if shared:
            self._is_expensive = perf_counter() - started >= SLICE_S  # waiting for an fsync does not make it expensive
            self._server.pending.resume_after(future, Waiting(self, request, started, later))
        else:
            self._server.pending.began(future)
            future.add_done_callback(Waiting(self, request, started, later).resume)
        return None

    def _retry_or_forward(self, request: Request, error: Exception, started: float) -> float | None:
        """Retry a call without effect so far, or forward it to its owner; else answer with ``error``."""
        method, server = request.method, self._server
        assert method is not None, "it was begun"
        again = server.service.retry_or_forward(server.handlers[method.name], self._ctx, request, error)
        if again is None:
            return self._failed(request, error, started)
        if isinstance(again, ForwardedReply):
            return self._hand_on(request, again, started)
        return self._pending(request, again, started, None)

    def _hand_on(self, request: Request, forward_after_error: ForwardedReply, started: float) -> float | None:
        """Wait for the answer of another server."""
        if forward_after_error.done():
            return self._settle(request, forward_after_error, started, None)
        self._busy = True
        self.serving_bytes = request.size_bytes
        self._forwarded = forward_after_error
        request.buffer = b""  # the forwarder has the message
        if request.size_bytes > LARGE_BYTES:
            request.args = []
        forward_after_error.add_callback(Waiting(self, request, started, None).resume)
        return None

    def resume(self, request: Request, future: Awaited, started: float, later: Later | None) -> None:
        """Answer ``request``: the future that it waited for is done."""
        self._busy = False
        self._forwarded = None
        if self._settle(request, future, started, later) is not None:  # else it waits for something else now
            self._serve_unless(self._closing or self._has_gone or (self._stream.is_within_message and self.has_gone()))

    def _settle(self, request: Request, future: Awaited, started: float, later: Later | None) -> float | None:
        assert request.method is not None
        try:
            outcome = future.result()
            result = outcome if later is None else later.result
            if type(result) is Raw:
                return self._done(request, result.message, None, started)
            reply = request.method.reply(self._stream.protocol, request.seqid, result)
        except asyncio.CancelledError:
            stopped = OutcomeUnknown("the server stopped before this was done; read before you repeat it")
            return self._failed(request, stopped, started)
        except Exception as error:  # noqa: BLE001 - as in _answer
            if later is None and request.buffer and not self._has_gone and not isinstance(error, RegionUnavailable):
                return self._retry_or_forward(request, error, started)  # RegionUnavailable has been waited for
            return self._failed(request, error, started)
        return self._done(request, reply, None, started, result)

    def _failed(self, request: Request, error: Exception, started: float) -> float:
        reply = self._server.errors.failed(self._ctx.peer, request, self._stream.protocol, error)
        return self._done(request, reply, type(error).__name__, started)

    def _done(
        self, message: Message, reply: bytes | memoryview, error: str | None, started: float, result: Any = None
    ) -> float:
        now = perf_counter()
        self._is_new = False
        server = self._server
        server.answered += self.counts
        http = self._stream.http
        reply = b"" if message.kind == ONEWAY else reply
        self._out_bytes += len(reply)
        if http is not None:
            self._out += http.answer(reply)
        elif reply:
            if self._stream.is_framed:
                self._out.append(_FRAME(len(reply)))
            self._out.append(reply)
        took = now - started
        method = message.method
        name = method.name if method is not None else _UNKNOWN
        server.observer.request_done(name, took, error, message.size_bytes, len(reply))
        if took >= server.slow_after_s and isinstance(message, Request) and method is not None:
            server.service.was_slow(self._ctx, name, message.args, took, result)
        return now

    # --- time slices, backpressure, accounting -------------------------------------------------------------

    def _rest(self, ahead: bool = False) -> None:
        self._resting = True
        self._server.loop_budget.soon(self._resume_serving, ahead=ahead)

    def _resume_serving(self) -> None:
        self._resting = False
        if not self._busy:
            self._serve_unless(self._closing or self.has_gone())

    def _flush(self) -> None:
        transport, out = self._transport, self._out
        if transport is None or not out:
            return
        self._out = []
        size, self._out_bytes = self._out_bytes, 0
        if transport.is_closing():
            return  # the client does not read any more
        if size > JOINED_BYTES:
            transport.writelines(out)
        else:
            transport.write(out[0] if len(out) == 1 else b"".join(out))
        if self._write_paused:
            self._account_output(transport.get_write_buffer_size())

    def _blocked(self) -> bool:
        return self._closing or (
            self._write_paused and self.unsent_now() + self._out_bytes > self._server.limits.output_bytes
        )

    def _regulate_reading(self) -> None:
        ahead = self._busy or self._resting
        self._pause_reading(self._blocked() or (ahead and self._stream.buffered_bytes > self._server.read_ahead_bytes))

    def _pause_reading(self, pause: bool) -> None:
        transport = cast(asyncio.Transport, self._transport)
        if pause == self._reading_paused or transport.is_closing():
            return
        self._reading_paused = pause
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _account_input(self) -> None:
        self.buffered_bytes = self._stream.buffered_bytes
        if not self._busy:
            self.serving_bytes = 0
        total = self.buffered_bytes + self.serving_bytes
        if total != self.counted_bytes:
            before, self.counted_bytes = self.counted_bytes, total
            self._server.input_changed(total - before)

    def _account_output(self, unsent: int) -> None:
        before, self.unsent_bytes = self.unsent_bytes, unsent
        self._server.output_changed(self, unsent - before)

    def _hang_up(self, hangup: Hangup) -> None:
        log.warning("%s: closed: %s", self._ctx.peer, hangup.why)
        self._closing = True
        if hangup.answer:
            self._out.append(hangup.answer)
        self._flush()
        self._close()

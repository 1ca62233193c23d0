"""Calls that come as raw messages, without a connection: decoded, made and answered as those of a connection are.

A call ends once (``RawCaller``): with its reply, which may be an error of the method; with the news that another server
owns its region, and then it had no effect; or broken, if no reply can be made.

A call is not forwarded again.  It waits for a region that is briefly unavailable.

Owned by the loop; a message over ``framing.INLINE_BYTES`` is decoded by the server's own thread.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final, Protocol

from columnar.errors import ColumnarError, OutcomeUnknown, RegionNotLocal, RegionUnavailable
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.wire import detect
from columnar.wire.codec import CALL, ONEWAY, Request
from columnar.wire.connection import LARGE_BYTES
from columnar.wire.detect import Speech
from columnar.wire.framing import INLINE_BYTES, Hangup, Refusal, Whole, decode_message
from columnar.wire.large_calls import Aside, LargeCaller
from columnar.wire.server import WireServer
from columnar.wire.service import Awaited, CallContext, ForwardedReply, Later, Waiter

_BINARY: Final = Speech(framed=False, protocol=detect.Protocol.BINARY)
_COMPACT: Final = Speech(framed=False, protocol=detect.Protocol.COMPACT)


class Unreadable(ColumnarError):
    """This server does not understand the message; it had no effect."""


class RawCaller(Protocol):
    """The caller's side; one of the three is called, once, at once or later."""

    def replied(self, reply: bytes) -> None:
        """The whole reply, in the call's protocol and with its seqid."""

    def not_local(self, error: RegionNotLocal, request: Request) -> None:
        """End a call without effect; the request's arguments may be dropped, but for names of table and row."""

    def broken(self, error: Exception) -> None: ...


class _Pending(Waiter):
    """A call whose reply is pending."""

    __slots__ = ("caller", "calls", "ctx", "later", "request")

    def __init__(self, calls: RawCalls, ctx: CallContext, request: Request, caller: RawCaller) -> None:
        self.calls = calls
        self.ctx = ctx
        self.request = request
        self.caller = caller
        self.later: Later | None = None

    def resume(self, done: Awaited) -> None:
        self.calls.settle(self, done)


class RawCalls:
    def __init__(self, server: WireServer) -> None:
        """``server``: whose service and codecs are used; it need not listen."""
        self._server = server
        self._loop = asyncio.get_running_loop()

    def begin_call(self, ctx: CallContext, buffer: bytes, start: int, end: int, caller: RawCaller) -> None:
        """Begin the call of the message ``buffer[start:end]``, in the protocol of ``ctx``; the buffer is not kept.

        The caller gets the end before this returns if the call can be answered at once.
        """
        if end - start > INLINE_BYTES:
            self._decode_aside(ctx, buffer[start:end], caller)
            return
        try:
            message = decode_message(self._server.codec, _speech_of(ctx), buffer, start, end)
        except Hangup as hangup:
            caller.broken(Unreadable(hangup.why))
            return
        self._answer(ctx, message, caller)

    def _decode_aside(self, ctx: CallContext, message: bytes, caller: RawCaller) -> None:
        server, aside = self._server, Aside(Whole(_speech_of(ctx), message))
        decoded = self._loop.run_in_executor(server.decoder, aside.decoded, server.codec_aside)
        decoded.add_done_callback(partial(self._decoded, ctx, len(message), caller))

    def _decoded(
        self, ctx: CallContext, size_bytes: int, caller: RawCaller, done: asyncio.Future[Request | Refusal]
    ) -> None:
        """Each call is a client of its own for the queue of large calls: a link carries those of many."""
        self._server.large_calls.soon(LargeCaller(), size_bytes, partial(self._answer_large, ctx, done, caller))

    def _answer_large(self, ctx: CallContext, done: asyncio.Future[Request | Refusal], caller: RawCaller) -> None:
        try:
            message = done.result()
        except Hangup as hangup:
            caller.broken(Unreadable(hangup.why))
            return
        self._answer(ctx, message, caller)

    def _answer(self, ctx: CallContext, message: Request | Refusal, caller: RawCaller) -> None:
        server = self._server
        if isinstance(message, Refusal):
            self._reply(caller, server.errors.refused(ctx.peer, message, ctx.protocol))
            return
        method = message.method
        handler = server.handlers.get(method.name) if method is not None else None
        if method is None or handler is None or message.kind not in (CALL, ONEWAY):
            self._reply(caller, server.errors.not_served(message, ctx.protocol))
            return
        message.buffer = b""
        try:
            result = handler(ctx, *message.args)
            if type(result) is Later:
                self._wait(_Pending(self, ctx, message, caller), result.future, result)
                return
            if hasattr(result, "__await__"):
                self._wait(_Pending(self, ctx, message, caller), result, None)
                return
            reply = method.reply(ctx.protocol, message.seqid, result)
        except RegionNotLocal as error:
            caller.not_local(error, message)
            return
        except RegionUnavailable as error:
            again = server.service.retry_or_forward(handler, ctx, message, error)
            assert not isinstance(again, ForwardedReply), "it is waited for here"
            if again is not None:
                self._wait(_Pending(self, ctx, message, caller), again, None)
                return
            reply = server.errors.failed(ctx.peer, message, ctx.protocol, error)
        except Exception as error:  # noqa: BLE001 - the server's loop: every fault is answered
            reply = server.errors.failed(ctx.peer, message, ctx.protocol, error)
        self._reply(caller, reply)

    def _wait(self, pending: _Pending, waiting: Any, later: Later | None) -> None:
        pending.later = later
        server, request = self._server, pending.request
        shared = isinstance(waiting, ImmediateFuture) or (later is not None and isinstance(waiting, asyncio.Future))
        future = waiting if shared else asyncio.ensure_future(waiting, loop=self._loop)
        if future.done():
            self.settle(pending, future)
            return
        if request.size_bytes > LARGE_BYTES:  # the handler keeps the rows that it still needs
            request.args = [None if isinstance(one, list) else one for one in request.args]
        if shared:
            server.pending.resume_after(future, pending)
        else:
            server.pending.began(future)
            future.add_done_callback(pending.resume)

    def settle(self, pending: _Pending, future: Awaited) -> None:
        """The future that the call waited for is done."""
        ctx, request, caller = pending.ctx, pending.request, pending.caller
        method, errors = request.method, self._server.errors
        assert method is not None, "it was begun"
        try:
            outcome = future.result()
            result = outcome if pending.later is None else pending.later.result
            reply = method.reply(ctx.protocol, request.seqid, result)
        except asyncio.CancelledError:
            stopped = OutcomeUnknown("the server stopped before this was done; read before you repeat it")
            reply = errors.failed(ctx.peer, request, ctx.protocol, stopped)
        except RegionNotLocal as error:
            caller.not_local(error, request)
            return
        except Exception as error:  # noqa: BLE001 - as in ``_answer``
            reply = errors.failed(ctx.peer, request, ctx.protocol, error)
        self._reply(caller, reply)

    def _reply(self, caller: RawCaller, reply: bytes) -> None:
        """Answer the call.  It counts for background work, which yields to it: clients of other servers wait for it."""
        self._server.answered += 1
        caller.replied(reply)


def _speech_of(ctx: CallContext) -> Speech:
    return _BINARY if ctx.protocol is detect.Protocol.BINARY else _COMPACT

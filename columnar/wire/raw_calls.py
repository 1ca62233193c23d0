"""Calls that arrive as raw messages, without a connection: decoded, run and answered like calls of a connection.

A call ends exactly once, in one of three ways (``RawCaller``): with its reply, which may be an error of the method;
without effect, because another server owns its region; or broken, if no reply can be made.

A forwarded call is not forwarded again; it waits for a region that is briefly unavailable.

Owned by the loop; a message over ``framing.INLINE_BYTES`` is decoded by the server's decoder thread.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from columnar.errors import ColumnarError, RegionNotLocal, RegionUnavailable
from columnar.wire import detect
from columnar.wire.caller import Caller, Message
from columnar.wire.codec import Request
from columnar.wire.detect import Speech
from columnar.wire.framing import INLINE_BYTES, Hangup, Whole, decode_message
from columnar.wire.server import WireServer
from columnar.wire.service import CallContext, Keep

_BINARY: Final = Speech(framed=False, protocol=detect.Protocol.BINARY)
_COMPACT: Final = Speech(framed=False, protocol=detect.Protocol.COMPACT)


class Unreadable(ColumnarError):
    """This server does not understand the message, which had no effect."""


class RawCaller(Protocol):
    """The sender of a raw call; exactly one of the three methods is called, once, immediately or later."""

    def replied(self, reply: bytes) -> None:
        """Take the whole reply, in the call's protocol and with the call's seqid."""

    def not_local(self, error: RegionNotLocal, request: Request) -> None:
        """End a call that had no effect.  The request may have lost its arguments except the names of table and row."""

    def broken(self, error: Exception) -> None: ...


class RawCall(Caller):
    """The call of one message.

    The queue of large calls treats each RawCall as a separate client, because a link carries calls of many clients.
    """

    def __init__(self, server: WireServer, ctx: CallContext, caller: RawCaller) -> None:
        """Pass the server whose service and codecs the call uses; it need not listen."""
        super().__init__(server, ctx, counts=1, forwards=False)
        self._caller = caller

    def begin_call(self, buffer: bytes, start: int, end: int) -> None:
        """Begin the call of the message ``buffer[start:end]``, in the protocol of the context, without keeping the
        buffer.

        If the call can be answered immediately, the caller's method is called before this method returns.
        """
        speech = _BINARY if self._ctx.protocol is detect.Protocol.BINARY else _COMPACT
        if end - start > INLINE_BYTES:
            self._decode_aside(Whole(speech, buffer[start:end]))
            return
        try:
            message = decode_message(self._server.codec, speech, buffer, start, end)
        except Hangup as hangup:
            self._hang_up(hangup)
            return
        if isinstance(message, Request):
            message.drop_message()
        self._answer(message)

    def _hang_up(self, hangup: Hangup) -> None:
        self._caller.broken(Unreadable(hangup.why))

    def _retry_or_forward(
        self, request: Request, error: Exception, started: float, keep: Keep | None = None
    ) -> float | None:
        if isinstance(error, RegionUnavailable):
            return super()._retry_or_forward(request, error, started, keep)
        return self._failed(request, error, started)

    def _failed(self, request: Request, error: Exception, started: float) -> float:
        if isinstance(error, RegionNotLocal):
            self._caller.not_local(error, request)
            return started
        return super()._failed(request, error, started)

    def _done(
        self, message: Message, reply: bytes | memoryview, error: str | None, started: float, result: Any
    ) -> float:
        """Answer the call, and count it.  Background work yields to counted calls, and a client waits for this one."""
        self._server.answers[1] += 1
        self._caller.replied(bytes(reply))
        return started

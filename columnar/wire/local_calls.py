"""Calls of a service by another port of this process: what an HTTP port asks of the store goes the way of any call.

A local call is checked, forwarded to the owner of its row, retried and counted like the call of a Thrift client, so a
port on top of the service needs no path of its own through a cluster.  The arguments are packed and the reply is
unpacked, because a forwarded call travels as bytes.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from columnar.wire import codec_binary, detect, idl
from columnar.wire.caller import Caller, Message
from columnar.wire.codec import EXCEPTION, Request, read_message_begin
from columnar.wire.detect import Speech
from columnar.wire.framing import INLINE_BYTES, Hangup, Whole, decode_message
from columnar.wire.service import CallContext

if TYPE_CHECKING:
    from columnar.wire.server import WireServer

_BINARY: Final = Speech(framed=False, protocol=detect.Protocol.BINARY)
_SEQID: Final = 0


class CallFailed(Exception):
    """The error of a call: ``kind`` is HBase's class of it, "" for a fault of the program."""

    def __init__(self, kind: str, text: str, *, can_retry: bool = False) -> None:
        super().__init__(f"{kind}: {text}" if kind else text)
        self.kind = kind
        self.text = text
        self.can_retry = can_retry


class LocalCall(Caller):
    def __init__(self, server: WireServer, ctx: CallContext) -> None:
        super().__init__(server, ctx, counts=1, forwards=True)
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def begin_call(self, message: bytes) -> None:
        """Begin the call of a packed message; ``reply`` gets the packed answer."""
        if len(message) > INLINE_BYTES:
            self._decode_aside(Whole(_BINARY, message))
            return
        try:
            request = decode_message(self._server.codec, _BINARY, message, 0, len(message))
        except Hangup as hangup:
            self._hang_up(hangup)
            return
        self._answer(request)

    def _hang_up(self, hangup: Hangup) -> None:
        if not self.reply.done():
            self.reply.set_exception(CallFailed("", hangup.why))

    def _done(
        self, message: Message, reply: bytes | memoryview, error: str | None, started: float, result: Any
    ) -> float:
        now, server, method = perf_counter(), self._server, message.method
        server.answers[self.counts] += 1
        name = method.name if method is not None else ""
        server.observer.request_done(name, now - started, error, message.size_bytes, len(reply))
        if now - started >= server.slow_after_s and isinstance(message, Request) and method is not None:
            time = self.time_of(started, now, len(reply), error, "")
            server.service.was_slow(self._ctx, name, message.args, time, result)
        if not self.reply.done():  # cancelled: nobody waits any more
            self.reply.set_result(bytes(reply))
        return now


class LocalService:
    """The Thrift 1 service of this process, by its method names."""

    def __init__(self, server: WireServer, connection_id: int) -> None:
        """Pass an id that no connection has."""
        self._server = server
        self._connection_id = connection_id
        self._readers: dict[str, codec_binary.Reader] = {}
        self._budget = codec_binary.Budget(None)

    async def call_method(self, peer: str, user: str, has_gone: Callable[[], bool], method: str, *args: Any) -> Any:
        """Return the result of a call for the client ``peer``.  Raises CallFailed."""
        ctx = CallContext(self._connection_id, peer, detect.Protocol.BINARY, has_gone, user)
        call = LocalCall(self._server, ctx)
        call.begin_call(self._server.codec.methods[method].call_message(detect.Protocol.BINARY, _SEQID, args))
        return self._result(method, await call.reply)

    def _result(self, method: str, reply: bytes) -> Any:
        _, kind, _, at = read_message_begin(detect.Protocol.BINARY, reply, 0, len(reply))
        self._budget.renew()
        if kind == EXCEPTION:
            raise CallFailed("", "the store could not do this; its log says why")
        signature = idl.SERVICE.signatures[method]
        reader = self._readers.get(method)
        if reader is None:
            reader = codec_binary.fields_reader(signature.result, signature.result_defaults, self._budget)
            self._readers[method] = reader
        values, _ = reader(reply, at, len(reply))
        names = [name for name, _ in signature.result_defaults]
        for name, value in zip(names, values, strict=True):
            if name != "success" and value is not None:
                raise _failure(value)
        return values[names.index("success")] if "success" in names else None


def _failure(error: Any) -> CallFailed:
    """Return the error that a method declares as one of a local call."""
    message = error.message.decode(errors="replace") if isinstance(error.message, bytes) else str(error.message)
    kind, separator, text = message.partition(": ")
    if not separator or " " in kind:
        return CallFailed("IOException", message)
    return CallFailed(kind.rpartition(".")[2], text, can_retry=bool(getattr(error, "canRetry", False)))

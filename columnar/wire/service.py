"""The interfaces of the services and metrics that the wire calls, and the calls whose answers are pending.

The services implement ``Service``, the metrics ``Observer``; ``connection`` calls both on the
loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.wire import detect
from columnar.wire.codec import Request

if TYPE_CHECKING:
    from columnar.wire.caller import Caller


@dataclass(frozen=True, slots=True)
class CallContext:
    """The client of a call and its protocol; the same object for all calls of a connection in the same protocol."""

    connection_id: int  # never used twice while the server lives
    peer: str  # "host:port", for log lines
    protocol: detect.Protocol = detect.Protocol.BINARY  # of this call
    # Whether the connection has ended.  Called before each step of a call that waits: some 2 us.
    has_gone: IsDisconnected = never_disconnected


Handler = Callable[..., Any]
Sent = bytes | None  # an argument as sent: a client can omit it, even if the IDL requires it
SentNumber = int | None
NO_ERROR: Final = object()  # of ``Service.translate``: the call is answered as if it had returned None


class Later:
    """A handler's answer that is ready but must wait: ``result``, once ``future`` has resolved.

    The future may be shared by many answers (a group commit); no task is made for it.  Its
    failure is the answer's failure.
    """

    __slots__ = ("future", "result")  # no named tuple: plain fields cost a compiled caller almost nothing

    def __init__(self, future: Awaitable[Any], result: Any) -> None:
        self.future = future
        self.result = result


class Raw:
    """A reply as it goes to the client: a whole message in the client's protocol, with its seqid."""

    __slots__ = ("message",)

    def __init__(self, message: bytes | memoryview) -> None:
        self.message = message


Ended = Callable[[Any], object]  # called with the ForwardedReply
# Forwards a call before its handler is called, if it is known that another server owns its region; None: it is not.
Ahead = Callable[[CallContext, Request], "ForwardedReply | None"]


class ForwardedReply:
    """A call that another server answers: the part of a future's interface that a connection needs; it ends once.

    It is not a future of the loop: an answer goes to the client within the loop iteration in which it came.
    """

    __slots__ = ("_ended", "_failure", "_is_done", "_reply")

    def __init__(self) -> None:
        self._ended: Ended | None = None
        self._failure: Exception | None = None
        self._is_done = False
        self._reply: Raw | None = None

    def done(self) -> bool:
        return self._is_done

    def result(self) -> Raw:
        """Return the reply, or raise the error of the call."""
        if self._failure is not None:
            raise self._failure
        assert self._reply is not None, "it has not ended yet"
        return self._reply

    def add_callback(self, ended: Ended) -> None:
        """Call ``ended`` at the end of the call, as the last step; the call must not have ended yet."""
        self._ended = ended

    def succeed(self, reply: bytes | memoryview) -> None:
        self._reply = Raw(reply)
        self._end()

    def fail(self, failure: Exception) -> None:
        self._failure = failure
        self._end()

    def _end(self) -> None:
        self._is_done = True
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(self)

    def client_left(self) -> None:
        """Drop the callback: the client's connection has ended, so no caller waits for the answer."""
        self._ended = None


class Service(Protocol):
    """Answers calls.  No method may block: the loop's thread is waiting."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Method name -> ``handler(ctx, *args)``, args in the order of the IDL.

        A handler returns its result, or ``Later``, or an awaitable of it: a future (cheaper:
        no task is made for it) or a coroutine.  The next request of the connection begins after it.
        ``columnar.wire.codec`` states the forms of results.  Methods that are not in the
        mapping are unknown to the client.
        """

    def translate(self, method: str, error: Exception) -> Any | None:
        """Translate ``error`` to one of the exceptions that ``method`` declares, a struct of the IDL.

        NO_ERROR for an error that is none to clients, of a method without a result.  None for an error that we do
        not raise on purpose: the client gets INTERNAL_ERROR and the log has the traceback.  Also called for
        the wire's own refusals (RequestTooBig, CallQueueTooBig), with methods that have not been called.
        """

    def retry_or_forward(
        self, handler: Handler, ctx: CallContext, request: Request, error: Exception
    ) -> Awaitable[Any] | ForwardedReply | None:
        """Retry a call whose region is briefly unavailable, or forward it to its owner; returns the pending result.

        None: ``error`` is final.  An awaitable may fail with an error for which this is to be called again.
        """

    def may_be_forwarded(self, method: str) -> bool:
        """Tell whether a pending call may still be forwarded to another server: its message is kept until then."""

    @property
    def slow_after_s(self) -> float:
        """The time from which ``was_slow`` is called for a request."""

    def was_slow(self, ctx: CallContext, method: str, args: list[Any], took_s: float, result: Any) -> None:
        """Note a request that took ``slow_after_s`` or longer, waits included; ``result`` is None if it failed."""

    def connection_closed(self, connection_id: int) -> None:
        """Note that the connection is closed: its open resources may be freed sooner."""


class Observer(Protocol):
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        """Note an answered request; ``error`` is the class of its error, None if it succeeded."""


class NoObserver:
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        pass


Awaited = asyncio.Future[Any] | ForwardedReply  # what a pending reply waits for


class Waiter:
    """A call whose answer waits for a future, perhaps together with other calls."""

    __slots__ = ()

    @property
    def is_background(self) -> bool:
        """Whether a trigger's worker sent the call."""
        return False

    def resume(self, done: Awaited) -> None:
        raise NotImplementedError


class Waiting(Waiter):
    """A request whose reply is pending."""

    __slots__ = ("caller", "later", "request", "started")

    def __init__(self, caller: Caller, request: Request, started: float, later: Later | None) -> None:
        self.caller = caller
        self.request = request
        self.started = started
        self.later = later

    @property
    def is_background(self) -> bool:
        return self.caller.counts == 0

    def resume(self, done: Awaited) -> None:
        self.caller.resume(self.request, done, self.started, self.later)

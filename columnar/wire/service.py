"""The interfaces of services and metrics that the wire calls, and the classes of pending answers.

The services implement ``Service``, the metrics ``Observer``; ``caller`` calls both on the
loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from columnar.model.measures import RequestTime
from columnar.runtime.loop_budget import IsDisconnected, never_disconnected
from columnar.wire import detect
from columnar.wire.codec import Request

if TYPE_CHECKING:
    from columnar.security.sign_in import SignIn
    from columnar.wire.caller import Caller


@dataclass(frozen=True, slots=True)
class CallContext:
    """The client of a call and its protocol; the same object while a connection keeps its protocol and its user."""

    connection_id: int  # never used twice while the server lives
    peer: str  # "host:port", for log lines
    protocol: detect.Protocol = detect.Protocol.BINARY  # of this call
    # Returns whether the connection has ended.  Called before each step of a call that waits; takes some 2 us.
    has_gone: IsDisconnected = never_disconnected
    user: str = ""  # who signed in; "": nobody.  Of one call over HTTP, else of the connection


Handler = Callable[..., Any]
Sent = bytes | None  # an argument as sent: a client can omit it even if the IDL requires it
SentNumber = int | None
NO_ERROR: Final = object()  # of ``Service.translate``: the call is answered as if it had returned None


class Later:
    """A handler's answer that is ready but must wait: the call is answered with ``result`` once ``future`` is done.

    Many answers may share the future (a group commit); no task is made for it.  If the future fails, the call fails
    with its exception.
    """

    __slots__ = ("future", "result")  # no named tuple: plain fields cost a compiled caller almost nothing

    def __init__(self, future: Awaitable[Any], result: Any) -> None:
        self.future = future
        self.result = result


class Raw:
    """A reply that goes to the client unchanged: a whole message in the client's protocol, with the call's seqid."""

    __slots__ = ("message",)

    def __init__(self, message: bytes | memoryview) -> None:
        self.message = message


Ended = Callable[[Any], object]  # called with the ForwardedReply
# Forwards a call, without calling its handler, if another server is known to own its region; else returns None.
Ahead = Callable[[CallContext, Request], "ForwardedReply | None"]


class ForwardedReply:
    """A call that another server answers; has the part of a future's interface that a connection needs.  Ends once.

    This class is not a future of the loop, so that an answer goes to the client in the loop iteration in which it
    arrives.
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
        """Have ``ended`` called as the last step of the call's end.  The call must not have ended yet."""
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
        """Drop the callback, because the client's connection has ended and nothing waits for the answer."""
        self._ended = None


class Service(Protocol):
    """The service that answers calls.  No method may block, because the loop's thread calls it."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The handlers by method name: ``handler(ctx, *args)``, with args in the order of the IDL.

        A handler returns its result, a ``Later``, or an awaitable of the result: a future (cheaper, as no task is made
        for it) or a coroutine.  The connection's next request begins when the result is known.  ``columnar.wire.codec``
        states the forms of results.  A method that is not in the mapping is answered as unknown.
        """

    def translate(self, method: str, error: Exception) -> Any | None:
        """Translate ``error`` to one of the exceptions that ``method`` declares, a struct of the IDL.

        Returns NO_ERROR, for a method without a result, if the client must not see an error.  Returns None
        for an error that we do not raise on purpose; then the client gets INTERNAL_ERROR and the log has the traceback.
        Also called for the wire's own refusals (RequestTooBig, CallQueueTooBig), whose methods have not been called.
        """

    def retry_or_forward(
        self, handler: Handler, ctx: CallContext, request: Request, error: Exception
    ) -> Awaitable[Any] | ForwardedReply | None:
        """Retry a call whose region is briefly unavailable, or forward it to its owner; returns the pending result.

        Returns None if ``error`` is final.  If the awaitable fails, this method must be called again with the new
        error.
        """

    def may_be_forwarded(self, method: str) -> bool:
        """Return whether a pending call may still be forwarded to another server, so that its message must be kept."""

    @property
    def slow_after_s(self) -> float:
        """The duration from which a request is reported to ``was_slow``; 0 if each is, for its span."""

    def was_slow(self, ctx: CallContext, method: str, args: list[Any], time: RequestTime, result: Any) -> None:
        """Note a request that took ``slow_after_s`` or longer, waits included; ``result`` is None if it failed."""

    def connection_closed(self, connection_id: int) -> None:
        """Note that the connection is closed, so that its resources can be freed early."""


Keep = Callable[[Any], Any]  # takes from an answer what the user may not see


class Rights(Protocol):
    """The check of a service's calls (``rights.rights_check``)."""

    @property
    def sign_in(self) -> SignIn | None:
        """The sign-in of clients; None for a service without clients."""

    def check(self, ctx: CallContext, request: Request) -> Keep | None:
        """Check a call before it is begun.  Raises AccessDenied; the arguments of a read may be narrowed."""

    def list_filter(self, ctx: CallContext, method: str) -> Keep | None:
        """Return what the answer must pass, for a call that was checked elsewhere."""


class Observer(Protocol):
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        """Note an answered request; ``error`` is the class name of its error, None if it succeeded."""


class NoObserver:
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        pass


Awaited = asyncio.Future[Any] | ForwardedReply  # a pending reply waits for one of these


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

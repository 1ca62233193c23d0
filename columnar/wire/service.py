"""(pure) The interfaces of the services and metrics that the wire calls; no code.

The services implement ``Service``, the metrics ``Observer``; ``connection`` calls both on the
loop's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from columnar.turns import HasGone, stays
from columnar.wire import detect


@dataclass(frozen=True, slots=True)
class CallContext:
    """The client of a call and its protocol; the same object for all calls of a connection in the same protocol."""

    connection_id: int  # never used twice while the server lives
    peer: str  # "host:port", for log lines
    protocol: detect.Protocol = detect.Protocol.BINARY  # of this call
    # Whether the connection has ended.  Called before each step of a call that waits: some 2 us.
    has_gone: HasGone = stays


Handler = Callable[..., Any]
Sent = bytes | None  # an argument as sent: a client can omit it, even if the IDL requires it
SentNumber = int | None


class Later:
    """A handler's answer that is ready but must wait: ``result``, once ``future`` has resolved.

    The future may be shared by many answers (a group commit); no task is made for it.  Its
    failure is the answer's failure.
    """

    __slots__ = ("future", "result")  # no named tuple: plain fields cost a compiled caller almost nothing

    def __init__(self, future: Awaitable[Any], result: Any) -> None:
        self.future = future
        self.result = result


class Service(Protocol):
    """Answers calls.  Nothing here may block: the loop's thread is waiting."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Method name -> ``handler(ctx, *args)``, args in the order of the IDL.

        A handler returns its result, or ``Later``, or an awaitable of it: a future (cheaper:
        no task is made for it) or a coroutine.  The next request of the connection begins after it.
        ``columnar.wire.codec`` states the forms of results.  Methods that are not in the
        mapping are unknown to the client.
        """

    def translate(self, method: str, error: Exception) -> Any | None:
        """``error`` as one of the exceptions that ``method`` declares, a struct of the IDL.

        None for an error that we do not raise on purpose: the client gets INTERNAL_ERROR and
        the log has the traceback.  Also called for the wire's own refusals (RequestTooBig,
        CallQueueTooBig), with methods that have not been called.
        """

    def asked_again(
        self, handler: Handler, ctx: CallContext, args: list[Any], error: Exception
    ) -> Awaitable[Any] | None:
        """Retry a call whose region is unavailable for a moment; its result, later.  None: ``error`` is final."""

    @property
    def slow_after_s(self) -> float:
        """The time from which ``was_slow`` is called for a request."""

    def was_slow(self, ctx: CallContext, method: str, args: list[Any], took_s: float, result: Any) -> None:
        """A request took at least ``slow_after_s``, with its wait for the fsync; ``result`` is None if it failed."""

    def connection_closed(self, connection_id: int) -> None:
        """The connection is closed: resources that it held open may be freed sooner."""


class Observer(Protocol):
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        """A request was answered; ``error`` is the class of its error, None if it succeeded."""


class NoObserver:
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        pass

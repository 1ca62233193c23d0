"""(pure) What stands behind the wire, as the wire sees it: interfaces, no code.

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
    """Who asks, and how; the same object for all calls of one connection that come in one protocol."""

    connection_id: int  # never used twice while the server lives
    peer: str  # "host:port", for log lines
    protocol: detect.Protocol = detect.Protocol.BINARY  # of this call
    # Whether the connection has ended.  Asked before each step of a call that waits: some 2 us.
    has_gone: HasGone = stays


Handler = Callable[..., Any]
Sent = bytes | None  # an argument as it came: whatever the IDL says, a client can leave it out
SentNumber = int | None


class Later:
    """A handler's answer that is ready but must wait: ``result``, once ``future`` has resolved.

    The future may be shared by many answers (a group commit); no task is made for it.  Its
    failure is the answer's failure.
    """

    __slots__ = ("future", "result")  # no named tuple: as plain fields it costs a compiled caller next to nothing

    def __init__(self, future: Awaitable[Any], result: Any) -> None:
        self.future = future
        self.result = result


class Service(Protocol):
    """Answers calls.  Nothing here may block: the loop's thread is waiting."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Method name -> ``handler(ctx, *args)``, args in the order of the IDL.

        A handler returns its result, or ``Later``, or an awaitable of it: a future (cheaper:
        no task is made for it) or a coroutine.  The next request of the connection is not begun before.
        See ``columnar.wire.codec`` for the forms of results.  Methods that are not in the
        mapping are unknown to the client.
        """

    def translate(self, method: str, error: Exception) -> Any | None:
        """``error`` as one of the exceptions that ``method`` declares, a struct of the IDL.

        None where it is no error that we raise on purpose: the client hears INTERNAL_ERROR and
        the log has the traceback.  Also asked for the wire's own refusals (RequestTooBig,
        CallQueueTooBig), with methods that have not been called.
        """

    def asked_again(
        self, handler: Handler, ctx: CallContext, args: list[Any], error: Exception
    ) -> Awaitable[Any] | None:
        """Where what the call wants is away for a moment: its result, once that is back.  None: ``error`` stands."""

    @property
    def slow_after_s(self) -> float:
        """From when on ``was_slow`` wants to hear of a request."""

    def was_slow(self, ctx: CallContext, method: str, args: list[Any], took_s: float, result: Any) -> None:
        """A request took at least ``slow_after_s``, its wait for the fsync included; None where it failed."""

    def connection_closed(self, connection_id: int) -> None:
        """The connection is gone: what it held open may be freed sooner."""


class Observer(Protocol):
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        """A request was answered; ``error`` is the class of what went wrong, None where nothing did."""


class NoObserver:
    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        pass

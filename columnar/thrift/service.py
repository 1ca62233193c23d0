"""The service on a port, its methods by name: HBase's Thrift 1 and ours, or Thrift 2 (``thrift2``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from columnar.errors import ForwardToMaster, NotSent, RegionUnavailable
from columnar.operations.retries import retried
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.slow_log import SlowLog
from columnar.thrift import errors
from columnar.thrift.sibling_hint import SiblingHint
from columnar.thrift.slow_calls import SlowCalls
from columnar.wire.codec import Request
from columnar.wire.definitions import ServiceDefinition
from columnar.wire.idl import SERVICE
from columnar.wire.service import CallContext, ForwardedReply, Handler

if TYPE_CHECKING:  # a process without other servers does not need these modules, half a megabyte
    from columnar.cluster.request_forwarder import RequestForwarder


class ThriftService:
    """The service that ``columnar.wire`` calls; see ``columnar.wire.service.Service``."""

    def __init__(
        self,
        scanners: ScannerTable,
        slow_log: SlowLog,
        *parts: object,
        definition: ServiceDefinition = SERVICE,
        to_wire: Callable[[str, Exception], Any | None] = errors.to_wire,
        other_door: SiblingHint | None = None,
        of_master: frozenset[str] = frozenset(),
    ) -> None:
        """``of_master``: methods that go to the master, whatever the parts have for them."""
        self._scanners = scanners
        self.slow_after_s = slow_log.limit_s
        self.was_slow = SlowCalls(slow_log, definition).was_slow
        self._names = definition.signatures
        self._to_wire = to_wire
        self._sibling_hint = other_door
        self.request_forwarder: RequestForwarder | None = (
            None  # to other servers, where there are any; set once, before the first call
        )
        found = {}
        for name in self._names:
            for part in parts:
                handler = getattr(part, name, None)
                if handler is not None:
                    found[name] = handler if name not in of_master else partial(_goes_to_master, name)
        self.handlers: Mapping[str, Callable[..., Any]] = found

    def missing(self) -> list[str]:
        return [name for name in self._names if name not in self.handlers]

    def translate(self, method: str, error: Exception) -> Any | None:
        if isinstance(error, NotSent) and self._sibling_hint is not None:
            error = NotSent(error.text + self._sibling_hint.hint(method))
        return self._to_wire(method, error)

    def retry_or_forward(
        self, handler: Handler, ctx: CallContext, request: Request, error: Exception
    ) -> Awaitable[Any] | ForwardedReply | None:
        if isinstance(error, RegionUnavailable):
            return retried(partial(handler, ctx, *request.args), error, ctx.has_gone)
        return (
            self.request_forwarder.forward_after_error(ctx, request, error)
            if self.request_forwarder is not None
            else None
        )

    def may_be_forwarded(self, method: str) -> bool:
        return self.request_forwarder is not None and self.request_forwarder.leads_from(method)

    def connection_closed(self, connection_id: int) -> None:
        self._scanners.connection_closed(connection_id)


def _goes_to_master(method: str, _ctx: CallContext, *_args: Any) -> Any:
    raise ForwardToMaster(method)

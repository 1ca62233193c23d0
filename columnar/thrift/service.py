"""The service of a port, with its methods by name: HBase's Thrift 1 and our extension, or Thrift 2 (``thrift2``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import (
    CallerError,
    ColumnarError,
    ForwardToMaster,
    IllegalArgument,
    NotSent,
    RegionUnavailable,
    TableExists,
)
from columnar.model.measures import RequestTime
from columnar.model.schema import table_name_text
from columnar.operations.access import retried
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.slow_log import SlowLog, Subject
from columnar.storage.stored_cells import PackedRows
from columnar.wire.codec import Request
from columnar.wire.codec_replies import RowList
from columnar.wire.codec_results import Results
from columnar.wire.definitions import ServiceDefinition
from columnar.wire.idl import SERVICE, hbase
from columnar.wire.service import CallContext, ForwardedReply, Handler

if TYPE_CHECKING:  # a process without other servers does not need these modules, half a megabyte
    from opentelemetry.trace import Tracer

    from columnar.cluster.request_forwarder import RequestForwarder
    from columnar.thrift.request_spans import OnTrace, RequestSpans


# --- errors ------------------------------------------------------------------------------------------


def _declared(method: str) -> frozenset[str]:
    """Return the names of the exceptions that ``method`` declares."""
    spec = SERVICE.signatures[method].result
    return frozenset(field[2].__name__ for number, field in spec.items() if number > 0)


_DECLARED: Final[dict[str, frozenset[str]]] = {method: _declared(method) for method in SERVICE.signatures}


def to_wire(method: str, error: Exception) -> Any | None:
    """Return the Thrift 1 struct with which to answer ``error``; None if we do not raise such errors on purpose.

    An IllegalArgument is sent as such if the method declares it and as IOError otherwise.  ``canRetry`` is false for
    errors that the caller must correct.
    """
    if not isinstance(error, ColumnarError):
        return None
    declared = _DECLARED.get(method, frozenset())
    message = error.wire_message.encode()
    if isinstance(error, TableExists) and "AlreadyExists" in declared:
        return hbase.AlreadyExists(message=message)
    if isinstance(error, IllegalArgument) and "IllegalArgument" in declared:
        return hbase.IllegalArgument(message=message)
    if "IOError" in declared:
        return hbase.IOError(message=message, canRetry=not isinstance(error, CallerError))
    return None


# --- the service -------------------------------------------------------------------------------------


class ThriftService:
    """The service that ``columnar.wire`` calls; see ``columnar.wire.service.Service``."""

    def __init__(
        self,
        scanners: ScannerTable,
        slow_log: SlowLog,
        *parts: object,
        definition: ServiceDefinition = SERVICE,
        to_wire: Callable[[str, Exception], Any | None] = to_wire,
        other_door: SiblingHint | None = None,
        of_master: frozenset[str] = frozenset(),
        routing: set[int] | None = None,
    ) -> None:
        """Pass as ``of_master`` the methods that go to the master, even if ``parts`` have a handler for them.

        ``routing`` is the set of ids of connections whose clients call owners themselves; an id is removed from it when
        its connection closes.
        """
        self._scanners = scanners
        self._calls = SlowCalls(slow_log, definition)
        self._spans: RequestSpans | None = None
        self.was_slow = self._calls.was_slow
        self._names = definition.signatures
        self._to_wire = to_wire
        self._sibling_hint = other_door
        self.routing: set[int] = routing if routing is not None else set()
        self.request_forwarder: RequestForwarder | None = (
            None  # routes to other servers, if there are any; set once, before the first call
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

    @property
    def slow_after_s(self) -> float:
        return self._calls.limit_s if self._spans is None else 0.0

    def trace_requests(self, tracer: Tracer, on_trace: OnTrace) -> None:
        """Have the port report each request, and make a span of it.  Call before the first request."""
        from columnar.thrift.request_spans import RequestSpans

        self._spans = RequestSpans(tracer, self._calls, on_trace)
        self.was_slow = self._spans.was_slow

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
        self.routing.discard(connection_id)


def _goes_to_master(method: str, _ctx: CallContext, *_args: Any) -> Any:
    raise ForwardToMaster(method)


# --- slow calls --------------------------------------------------------------------------------------


LONG_BY_INTENT: Final = frozenset(
    {
        "columnarWait",
        "columnarTriggerWait",
        "columnarChanges",
        "columnarLease",
        "columnarQueuePop",
        "columnarConsumerGroup",
        "columnarPartitionWait",
        "columnarTopicWait",
        "majorCompact",
        "columnarSplit",
        "columnarMerge",
    }
)
_LISTS: Final = ("mutations", "rowBatches", "operations", "rows")


class SlowCalls:
    def __init__(self, log: SlowLog, definition: ServiceDefinition = SERVICE) -> None:
        self._log = log
        self._arguments = {name: _argument_names(definition, name) for name in definition.thrift_services}

    def was_slow(self, ctx: CallContext, method: str, args: Sequence[Any], time: RequestTime, result: Any) -> None:
        if method not in LONG_BY_INTENT:
            self._log.note(method, ctx.peer, time, partial(self._subject, method, args, result))

    @property
    def limit_s(self) -> float:
        return self._log.limit_s

    def about(self, method: str, args: Sequence[Any], result: Any) -> tuple[str, int | None]:
        """Return the request's table, if it names one, and the number of rows of its answer, if it has rows."""
        subject = self._subject(method, args, result)
        table = self._log.table_of(subject)
        name = "" if table is None else table_name_text(table)
        return name, None if subject.answered is None else subject.answered[0]

    def _subject(self, method: str, args: Sequence[Any], result: Any) -> Subject:
        named = dict(zip(self._arguments[method], args, strict=False))
        scanner_id = next((named[name] for name in ("id", "scannerId") if name in named), None)
        struct = next((value for value in named.values() if hasattr(value, "row")), None)
        table = named.get("table", named.get("tableName", getattr(struct, "table", None)))
        row = named.get("row", named.get("group", getattr(struct, "row", None)))
        scan = next((value for value in named.values() if hasattr(value, "filterString")), None)
        answered = None
        if isinstance(result, RowList):
            answered = result.size()
        elif isinstance(result, Results):
            answered = RowList(
                [one if isinstance(one, PackedRows) else (one.row, one.cells) for one in result.results]
            ).size()
        return Subject(
            table=table if isinstance(table, bytes) else None,
            row=row if isinstance(row, bytes) else None,
            scanner_id=scanner_id if "Close" not in method else None,
            answered=answered,
            filter_string=getattr(scan, "filterString", None),
            counts=tuple((name, len(named[name])) for name in _LISTS if isinstance(named.get(name), list)),
        )


def _argument_names(definition: ServiceDefinition, method: str) -> tuple[str, ...]:
    spec = definition.signatures[method].args
    return tuple(spec[number][1] for number in sorted(spec))


class SiblingHint:
    """The text of an error that names the other service (Thrift 1 or 2) for a method unknown to this one."""

    def __init__(self, definition: Callable[[], Any], title: str, port: Callable[[], int | None]) -> None:
        """Pass functions that describe the other service.

        ``definition`` is called at the first unknown method.  ``port`` is called each time, and returns None if the
        other service is not served.
        """
        self._definition = definition
        self._title = title
        self._port = port
        self._methods: frozenset[str] | None = None

    def _has(self, method: str) -> bool:
        if self._methods is None:
            self._methods = frozenset(self._definition().thrift_services)
        return method in self._methods

    def where_is(self, method: str) -> str:
        """Return the text after "unknown method": the port that serves the method, or an empty string if none does."""
        if not self._has(method):
            return ""
        port = self._port()
        if port is None:
            return f"it belongs to the {self._title} service, which is not served here: start with --thrift2-port"
        return f"it belongs to the {self._title} service, which is at port {port}"

    def hint(self, method: str) -> str:
        """Return the text after "was not sent" if the other service is served and has the method; else empty."""
        port = self._port()
        if port is None or not self._has(method):
            return ""
        return f"; a client of the {self._title} service belongs at port {port}"

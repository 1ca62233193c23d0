"""Traces by OpenTelemetry: a span for each request of a port, if the environment asks for them.

    OTEL_TRACES_EXPORTER=otlp    a span for each answered request; needs the extra: pip install 'columnar[otel]'
    unset, none                  no span, and OpenTelemetry is not imported

The SDK reads all else from the standard variables: where spans go (OTEL_EXPORTER_OTLP_ENDPOINT, in HTTP), which ones
(OTEL_TRACES_SAMPLER), how many wait (OTEL_BSP_MAX_QUEUE_SIZE).  A thread of the SDK exports them in batches from a
queue that drops spans when it is full.  So a collector that is slow or away delays no request.

A span is made when its request is answered, by the interface that reports slow requests: ``wire`` reports each request
then, and a port without traces has no code for them.  The span's parent is the ``traceparent`` of an HTTP client (W3C
Trace Context).  A call that another server answers has one span, at the server to which the client is connected.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import time_ns
from typing import TYPE_CHECKING, Any, Final

from columnar.model.measures import RequestTime
from columnar.runtime.faults import surviving
from columnar.version import VERSION
from columnar.wire.service import CallContext

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

    from columnar.thrift.service import SlowCalls

_log = logging.getLogger(__name__)

EXPORTER: Final = "OTEL_TRACES_EXPORTER"
SERVICE: Final = "OTEL_SERVICE_NAME"
OTLP: Final = "otlp"
LOOP: Final = "the spans of requests"
END_S: Final = 2.0  # for the last batch, at the end of the process
NAME_CHARACTERS: Final = 200  # of a table in a span: a client may send any name


OnTrace = Callable[[str, str, float, float], None]  # method, trace, seconds, when it was answered since 1970


@cache  # a process has one queue of spans for all its ports
def tracer_of_process() -> Tracer | None:
    """Return the tracer that the environment asks for, or None.  A value that cannot be used is a line of the log."""
    wanted = os.environ.get(EXPORTER, "").strip().lower()
    if wanted in ("", "none") or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if wanted != OTLP:
        _log.warning("%s=%s: requests are not traced; write %s, or none", EXPORTER, wanted, OTLP)
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return make_tracer(OTLPSpanExporter(), os.environ)
    except ImportError as error:
        _log.warning("requests are not traced (%s); install the extra: pip install 'columnar[otel]'", error)
    except Exception:  # noqa: BLE001 - a variable that the SDK cannot use keeps no store from serving
        _log.exception("requests are not traced: the variables OTEL_* cannot be used")
    return None


def make_tracer(exporter: SpanExporter, environment: Mapping[str, str]) -> Tracer:
    """Return a tracer whose spans go to ``exporter`` in batches."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {} if environment.get(SERVICE) else {"service.name": "columnar"}
    resource = Resource.create({**named, "service.version": VERSION})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))

    def end() -> None:  # a collector that is away must not keep a store from its end
        ending = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(END_S)

    atexit.register(end)
    return provider.get_tracer("columnar", VERSION)


class RequestSpans:
    """Makes the spans of a service, and passes slow requests on.  Owned by the loop."""

    def __init__(self, tracer: Tracer, calls: SlowCalls, on_trace: OnTrace) -> None:
        """``on_trace`` is called with each trace that is sampled."""
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = tracer
        self._calls = calls
        self._on_trace = on_trace
        self._trace = trace
        self._propagator = TraceContextTextMapPropagator()

    def was_slow(self, ctx: CallContext, method: str, args: Sequence[Any], time: RequestTime, result: Any) -> None:
        """Make the span of an answered request, and note the request if it was slow."""
        with surviving(LOOP):  # a fault here must not be a fault of the request, whose answer is on its way
            self._make_span(ctx, method, args, time, result)
        if time.took_s >= self._calls.limit_s:
            self._calls.was_slow(ctx, method, args, time, result)

    def _make_span(self, ctx: CallContext, method: str, args: Sequence[Any], time: RequestTime, result: Any) -> None:
        ended_ns = time_ns()
        table, rows = self._calls.about(method, args, result)
        attributes: dict[str, str | int] = {
            "db.system.name": "columnar",
            "db.operation.name": method,
            "client.address": ctx.peer,
        }
        if table:
            attributes["db.collection.name"] = table[:NAME_CHARACTERS]
        if rows is not None:
            attributes["db.response.returned_rows"] = rows
        if ctx.user:
            attributes["enduser.id"] = ctx.user
        if time.waited_for:
            attributes["request.waited_for"] = time.waited_for
            attributes["request.waited_us"] = round(time.waited_s * 1e6)
        parent = self._propagator.extract({"traceparent": time.trace_parent}) if time.trace_parent else None
        span = self._tracer.start_span(
            f"{method} {table[:NAME_CHARACTERS]}" if table else method,
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            attributes=attributes,
            start_time=ended_ns - round(time.took_s * 1e9),
        )
        if time.error:
            span.set_attribute("error.type", time.error)
            span.set_status(self._trace.StatusCode.ERROR, time.error)
        span.end(ended_ns)
        context = span.get_span_context()
        if context.trace_flags.sampled:
            self._on_trace(method, f"{context.trace_id:032x}", time.took_s, ended_ns / 1e9)

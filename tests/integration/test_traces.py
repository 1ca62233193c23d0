"""Traces by OpenTelemetry: a span for each request, exported by OTLP, and requests that no exporter harms."""

from __future__ import annotations

import http.client
import http.server
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TMemoryBuffer
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from columnar.client.errors import IOError as Refused
from columnar.runtime.faults import FAULTS
from columnar.thrift import request_spans
from columnar.webui.metrics import accepts_open_metrics, answer, registry_of
from columnar.webui.status import gather
from columnar.wire.idl import SERVICE
from tests.support.serving import Serving

PROMETHEUS = (  # what it sends by default
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Traced:
    """A store whose spans go to an exporter."""

    def __init__(self, folder: Path, exporter: SpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(request_spans.EXPORTER, "otlp")
        self.tracer = request_spans.make_tracer(exporter, {})
        monkeypatch.setattr(request_spans, "tracer_of_process", lambda: self.tracer)
        self.serving = Serving(folder, thrift2_port=0).start()

    def flush(self) -> None:
        assert self.tracer.span_processor.force_flush(10_000)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traced(tmp_path: Path, exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    store = Traced(tmp_path / "data", exporter, monkeypatch)
    yield store
    store.serving.stop()


def post(port: int, method: str, *args: Any, **headers: str) -> None:
    """Send a call over HTTP."""
    buffer = TMemoryBuffer()
    client = TClient(SERVICE, TBinaryProtocol(TMemoryBuffer()), TBinaryProtocol(buffer))
    client._send(method, **dict(zip(("tableName", "row", "column", "attributes"), args, strict=False)))
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("POST", "/", buffer.getvalue(), {"Content-Type": "application/x-thrift", **headers})
    assert link.getresponse().status == 200
    link.close()


def spans_of(exporter: InMemorySpanExporter, method: str) -> list[Any]:
    return [one for one in exporter.get_finished_spans() if one.attributes["db.operation.name"] == method]


def test_each_request_has_a_span_with_its_table_rows_and_outcome(
    traced: Traced, exporter: InMemorySpanExporter
) -> None:
    connection = traced.serving.connect()
    connection.create_table("pages", {"text": {}})
    table = connection.table("pages")
    for _ in range(2):  # the first one may wait for its region to open
        table.put(b"a", {b"text:b": b"1"})
    assert len(list(table.scan())) == 1
    with pytest.raises(Refused):
        table.put(b"a", {b"nothing:b": b"1"})
    traced.flush()
    _, put, refused = spans_of(exporter, "mutateRows")
    assert (put.name, put.kind, put.status.status_code) == ("mutateRows pages", SpanKind.SERVER, StatusCode.UNSET)
    assert put.attributes["db.collection.name"] == "pages"
    assert put.attributes["client.address"].startswith("127.0.0.1:")
    assert put.attributes["request.waited_for"] == "fsync"
    assert put.parent is None
    assert 0 < put.end_time - put.start_time < 60e9
    assert refused.status.status_code is StatusCode.ERROR
    assert refused.attributes["error.type"] == refused.status.description == "NoSuchColumnFamily"
    (rows,) = [one for one in spans_of(exporter, "scannerGetList") if one.attributes["db.response.returned_rows"]]
    assert (rows.name, rows.attributes["db.response.returned_rows"]) == ("scannerGetList pages", 1)


def test_a_span_continues_the_trace_of_an_http_client_and_of_no_other(
    traced: Traced, exporter: InMemorySpanExporter
) -> None:
    traced.serving.connect().create_table("pages", {"text": {}})
    port = traced.serving.store.port
    post(port, "get", b"pages", b"a", b"text:b", {}, traceparent=f"00-{TRACE}-{PARENT}-01")
    post(port, "get", b"pages", b"a", b"text:b", {}, traceparent="00-nonsense")
    post(port, "get", b"pages", b"a", b"text:b", {})
    traced.flush()
    continued, *fresh = spans_of(exporter, "get")
    assert f"{continued.context.trace_id:032x}" == TRACE
    assert f"{continued.parent.span_id:016x}" == PARENT
    assert [one.parent for one in fresh] == [None, None]
    post(port, "get", b"pages", b"a", b"text:b", {}, traceparent=f"00-{TRACE}-{PARENT}-00")
    traced.flush()
    assert len(spans_of(exporter, "get")) == 3, "its caller has not sampled the trace"


def test_slow_requests_are_noted_as_before(traced: Traced, caplog: pytest.LogCaptureFixture) -> None:
    connection = traced.serving.connect()
    connection.create_table("pages", {"text": {}})
    with caplog.at_level(logging.WARNING, "columnar.slow"):
        connection.table("pages").put(b"a", {b"text:b": b"1"})
        assert "slow request" not in caplog.text
        traced.serving.do(lambda: setattr(traced.serving.store.ports.slow_log, "limit_s", 0.0))
        connection.table("pages").put(b"a", {b"text:b": b"1"})
    assert "slow request: mutateRows" in caplog.text


def test_no_fault_of_a_span_or_of_its_exporter_is_a_fault_of_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    class Failing(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            asked.set()
            raise OSError("the collector is away")

    store = Traced(tmp_path / "data", Failing(), monkeypatch)
    try:
        connection = store.serving.connect()
        connection.create_table("pages", {"text": {}})
        store.tracer.span_processor.force_flush(10_000)
        assert asked.wait(10)
        monkeypatch.setattr(store.tracer, "start_span", lambda *_given, **_options: 1 / 0)
        connection.table("pages").put(b"a", {b"text:b": b"1"})
        assert connection.table("pages").row(b"a") == {b"text:b": b"1"}
        assert [name for name, _ in FAULTS.counts()] == [request_spans.LOOP], "it is a fault of the log and the metrics"
        FAULTS.forget()
    finally:
        store.serving.stop()


def test_spans_go_to_the_collector_that_the_variables_name(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[ExportTraceServiceRequest] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        monkeypatch.setenv(request_spans.EXPORTER, "otlp")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        tracer: Any = request_spans.tracer_of_process.__wrapped__()
        tracer.start_span("get pages").end()
        assert tracer.span_processor.force_flush(10_000)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    (resource,) = received[0].resource_spans
    attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert (attributes["service.name"], attributes["deployment.environment.name"]) == ("columnar", "test")
    assert [one.name for one in resource.scope_spans[0].spans] == ["get pages"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, ""),
        ({"OTEL_TRACES_EXPORTER": "none"}, ""),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "write otlp, or none"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "variables OTEL_* cannot be used"),
    ],
)
def test_without_a_usable_exporter_nothing_is_traced(
    variables: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert request_spans.tracer_of_process.__wrapped__() is None
    assert said in caplog.text
    assert bool(said) == bool(caplog.records)


def test_a_store_without_the_extra_serves_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(request_spans.EXPORTER, "otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert request_spans.tracer_of_process.__wrapped__() is None
    assert "pip install 'columnar[otel]'" in caplog.text


def test_a_store_without_traces_reports_slow_requests_alone(tmp_path: Path) -> None:
    """Tracing that is off costs a request nothing: the port has no code for it."""
    serving = Serving(tmp_path / "data", slow_request_ms=7).start()
    try:
        assert {wire.slow_after_s for wire in serving.store.ports.wires.values()} == {0.007}
    finally:
        serving.stop()


def test_a_bucket_of_latencies_names_the_trace_of_its_last_request(
    traced: Traced, exporter: InMemorySpanExporter
) -> None:
    traced.serving.connect().create_table("pages", {"text": {}})
    port = traced.serving.store.port
    post(port, "get", b"pages", b"a", b"text:b", {}, traceparent=f"00-{TRACE}-{PARENT}-01")
    unsampled = TRACE.replace("4", "5")
    post(port, "get", b"pages", b"a", b"text:b", {}, traceparent=f"00-{unsampled}-{PARENT}-00")
    status = traced.serving.do(lambda: gather(traced.serving.store.pages()))
    registry = registry_of(lambda: status)
    plain = answer(registry, Request(EnvironBuilder().get_environ()))
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert TRACE not in plain.get_data(as_text=True)
    opened = answer(registry, Request(EnvironBuilder(headers={"Accept": PROMETHEUS}).get_environ()))
    assert opened.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    found = {one.name: one for one in text_string_to_metric_families(opened.get_data(as_text=True))}
    samples = [one for one in found["columnar_request_seconds"].samples if one.labels["method"] == "get"]
    exemplars = {one.labels["le"]: one.exemplar for one in samples if one.exemplar is not None}
    (bound,) = exemplars
    assert exemplars[bound].labels == {"trace_id": TRACE}, "the second one has not been sampled"
    assert 0 < exemplars[bound].value <= float(bound)
    assert found.keys() == {one.name for one in plain_families(plain.get_data(as_text=True))}, (
        "both forms have all metrics"
    )


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (PROMETHEUS, True),
        ("application/openmetrics-text", True),
        ("Application/OpenMetrics-Text; Version=1.0.0", True),
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4", False),
        ("application/openmetrics-text; version=9", False),
        ("application/openmetrics-text; version=abc", False),
        ("application/openmetrics-text;q=0", False),
        (";;,=,;=", False),
    ],
)
def test_open_metrics_are_for_those_who_accept_them(accept: str, is_open: bool) -> None:
    assert accepts_open_metrics(accept) is is_open

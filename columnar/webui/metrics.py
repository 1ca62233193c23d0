"""``/metrics``: metric families in Prometheus' text form, or in OpenMetrics' where the reader asks for it.

Each server has its own registry, so that the metrics of two servers in one process do not mix.  Nothing is counted
here: the hot path updates plain lists (``counters``), and each scrape converts them to families.

OpenMetrics has exemplars: a bucket of the latencies names the trace of its last request (``thrift.request_spans``), in
a standalone process that traces.  Servers of a cluster send their families as numbers, which have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics import exposition as open_metrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample
from werkzeug.wrappers import Request, Response

from columnar.model.histogram import BOUNDS_S
from columnar.model.measures import COUNTER, GAUGE, Family
from columnar.webui import families
from columnar.webui.counters import Trace
from columnar.webui.host import of_disk, sizes_of
from columnar.webui.status import Status, TableLine

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text"
OPEN_VERSION: Final = "1.0.0"
LATENCIES: Final = "columnar_request_seconds"
TRACE_ID: Final = "trace_id"  # the label of an exemplar
SERVER: Final = "server"  # the label of the families of one server
_BOUNDS: Final = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")


class FamilyCollector(Collector):
    """A collector that calls ``found`` at each scrape."""

    def __init__(self, found: Callable[[], Iterable[Metric]]) -> None:
        self._found = found

    def describe(self) -> list[Metric]:
        return []  # without it the registry would scrape once only to learn the names

    def collect(self) -> Iterable[Metric]:
        return self._found()


def registry_of(status: Callable[[], Status]) -> CollectorRegistry:
    """Return the registry of a standalone process."""
    registry = CollectorRegistry()
    registry.register(FamilyCollector(lambda: _metrics_of_one(status())))
    ProcessCollector(registry=registry)  # process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds
    return registry


def _metrics_of_one(status: Status) -> Iterator[Metric]:
    for metric in map(metric_of, _of_one(status)):
        if metric.name == LATENCIES and any(one.traces for one in status.methods):
            traces = {one.name: one.traces for one in status.methods}
            metric.samples[:] = list(_with_exemplars(metric.samples, traces))
        yield metric


def _with_exemplars(samples: Iterable[Sample], traces: Mapping[str, Sequence[Trace | None]]) -> Iterator[Sample]:
    for sample in samples:
        its = traces.get(sample.labels["method"], ())
        at = _BOUNDS.index(sample.labels["le"]) if its and "le" in sample.labels else None
        trace = its[at] if at is not None else None
        if trace is None:
            yield sample
        else:
            yield sample._replace(exemplar=Exemplar({TRACE_ID: trace.trace_id}, trace.seconds, trace.at_s))


def _of_one(status: Status) -> Iterator[Family]:
    yield from families.of_process(status)
    yield from of_disk(status.data_folder)
    yield from families.of_tables(status, _size_of)
    yield from families.of_triggers(status)
    yield from families.of_flows(status)
    yield from families.of_views(status)
    yield from families.of_streams(status)


def _size_of(table: TableLine) -> int:
    return sum(sizes_of(table))


def answer(registry: CollectorRegistry, request: Request) -> Response:
    """Return the metrics in the form that the request accepts."""
    if accepts_open_metrics(request.headers.get("Accept", "")):
        kind = f"{OPEN_METRICS}; version={OPEN_VERSION}; charset=utf-8"
        text: bytes = open_metrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return Response(text, content_type=kind)
    return Response(generate_latest(registry), content_type=CONTENT_TYPE)


def accepts_open_metrics(accept: str) -> bool:
    """Return whether a header ``Accept`` names OpenMetrics, in our version or in any.

    The function of the library raises at versions that are no numbers.
    """
    for said in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in said.split(";"))
        values = dict(one.partition("=")[::2] for one in parameters)
        if kind == OPEN_METRICS and values.get("version", OPEN_VERSION) == OPEN_VERSION:
            return values.get("q", "1") not in ("0", "0.0", "0.00", "0.000")
    return False


def metric_of(family: Family) -> Metric:
    made = _empty(family.name, family.kind, family.about, family.labels)
    _fill(made, family, ())
    return made


def merged(own: Iterable[Metric], of_servers: Mapping[str, Iterable[Family]]) -> list[Metric]:
    """Return a master's metrics with its servers' families, which get an additional label ``server``.

    Each name of a metric occurs once.
    """
    found = {metric.name: metric for metric in own}
    with_server: dict[str, Metric] = {}
    for server, its in sorted(of_servers.items()):
        for family in its:
            made = with_server.get(family.name)
            if made is None:
                labels = (*family.labels, SERVER)
                made = with_server[family.name] = _empty(family.name, family.kind, family.about, labels)
            _fill(made, family, (server,))
    for name, made in with_server.items():
        if name in found:
            found[name].samples.extend(made.samples)
        else:
            found[name] = made
    return list(found.values())


def _empty(name: str, kind: str, about: str, labels: tuple[str, ...]) -> Metric:
    if kind == COUNTER:
        return CounterMetricFamily(name, about, labels=labels)
    if kind == GAUGE:
        return GaugeMetricFamily(name, about, labels=labels)
    return HistogramMetricFamily(name, about, labels=labels)


def _fill(made: Metric, family: Family, more: tuple[str, ...]) -> None:
    for labels, numbers in family.samples:
        values = [*labels, *more]
        if isinstance(made, HistogramMetricFamily):
            cumulative = list(zip(_BOUNDS, accumulate(numbers[:-1]), strict=True))
            made.add_metric(values, cumulative, numbers[-1])
        else:
            assert isinstance(made, CounterMetricFamily | GaugeMetricFamily), family.kind
            made.add_metric(values, numbers[0])

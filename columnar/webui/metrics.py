"""``/metrics``: metric families in Prometheus' text form.

Each server has its own registry, so that the metrics of two servers in one process do not mix.  Nothing is counted
here: the hot path updates plain lists (``counters``), and each scrape converts them to families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from columnar.model.histogram import BOUNDS_S
from columnar.model.measures import COUNTER, GAUGE, Family
from columnar.webui import families
from columnar.webui.host import of_disk, sizes_of
from columnar.webui.status import Status, TableLine

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
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
    registry.register(FamilyCollector(lambda: map(metric_of, _of_one(status()))))
    ProcessCollector(registry=registry)  # process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds
    return registry


def _of_one(status: Status) -> Iterator[Family]:
    yield from families.of_process(status)
    yield from of_disk(status.data_folder)
    yield from families.of_tables(status, _size_of)
    yield from families.of_triggers(status)
    yield from families.of_flows(status)
    yield from families.of_views(status)


def _size_of(table: TableLine) -> int:
    return sum(sizes_of(table))


def exposition(registry: CollectorRegistry) -> bytes:
    return generate_latest(registry)


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

"""``/metrics``: one ``Status`` in Prometheus' text form.

A registry of its own, so that two servers in one process do not mix.  Nothing is counted here: the
hot path fills plain lists (``counters``) and each scrape turns them into families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from columnar.webui.counters import BOUNDS_S
from columnar.webui.host import sizes_of
from columnar.webui.status import Status

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS: Final = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")


class StatusCollector(Collector):
    """Calls ``status`` at each scrape."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def describe(self) -> list[Metric]:
        return []  # else the registry would scrape once just to learn the names

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        yield from _gauges(status)
        yield from _requests(status)
        yield from _tables(status)
        yield from _triggers(status)


def registry_of(status: Callable[[], Status]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(StatusCollector(status))
    ProcessCollector(registry=registry)  # process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    return generate_latest(registry)


def _gauges(status: Status) -> Iterator[Metric]:
    info = GaugeMetricFamily("columnar_info", "Always 1; says the version.", labels=["version"])
    info.add_metric([status.version], 1)
    yield info
    yield GaugeMetricFamily("columnar_uptime_seconds", "Since the start.", value=status.uptime_s)
    yield GaugeMetricFamily("columnar_connections", "Clients connected now.", value=status.connections)
    yield GaugeMetricFamily("columnar_open_regions", "Regions whose store is open.", value=status.open_regions)
    yield GaugeMetricFamily("columnar_open_scanners", "Scanners not yet closed.", value=status.open_scanners)
    held = GaugeMetricFamily(
        "columnar_held_bytes", "Of requests half received, replies unsent or in the making, scanners.", labels=["what"]
    )
    for what, size in status.held:
        held.add_metric([what], size)
    yield held
    yield CounterMetricFamily("columnar_commits", "Group commits: fsyncs of the log.", value=status.commits)
    yield CounterMetricFamily("columnar_slow_requests", "Requests slower than --slow-ms.", value=status.slow_requests)


def _requests(status: Status) -> Iterator[Metric]:
    calls = CounterMetricFamily(
        "columnar_requests", "Requests answered, by method and outcome.", labels=["method", "outcome"]
    )
    latency = HistogramMetricFamily(
        "columnar_request_seconds", "From the decoded request to its reply.", labels=["method"]
    )
    received = CounterMetricFamily("columnar_received_bytes", "Bytes of requests.", labels=["method"])
    sent = CounterMetricFamily("columnar_sent_bytes", "Bytes of replies.", labels=["method"])
    for method in status.methods:
        calls.add_metric([method.name, "ok"], method.calls - method.failed)
        for outcome, count in method.errors:
            calls.add_metric([method.name, outcome], count)
        cumulative = zip(_BOUNDS, accumulate(method.buckets), strict=True)
        latency.add_metric([method.name], [(bound, float(count)) for bound, count in cumulative], method.seconds)
        received.add_metric([method.name], method.bytes_in)
        sent.add_metric([method.name], method.bytes_out)
    yield from (calls, latency, received, sent)


def _tables(status: Status) -> Iterator[Metric]:
    regions = GaugeMetricFamily("columnar_table_regions", "Regions of the table.", labels=["table"])
    opened = GaugeMetricFamily("columnar_table_open_regions", "Regions whose store is open.", labels=["table"])
    size = GaugeMetricFamily("columnar_table_bytes", "Bytes on disk and in memtables, roughly.", labels=["table"])
    enabled = GaugeMetricFamily("columnar_table_enabled", "1 where requests are served.", labels=["table"])
    for table in status.tables:
        regions.add_metric([table.name], len(table.regions))
        opened.add_metric([table.name], table.open_regions)
        size.add_metric([table.name], sum(sizes_of(table)))
        enabled.add_metric([table.name], float(table.enabled))
    yield from (regions, opened, size, enabled)


def _triggers(status: Status) -> Iterator[Metric]:
    labels = ["trigger", "table"]
    changes = GaugeMetricFamily("columnar_trigger_lag_changes", "Durable changes not yet delivered.", labels=labels)
    seconds = GaugeMetricFamily("columnar_trigger_lag_seconds", "Age of the oldest of them.", labels=labels)
    parked = GaugeMetricFamily("columnar_trigger_parked_rows", "Rows that wait for another attempt.", labels=labels)
    dead = GaugeMetricFamily("columnar_trigger_dead_letters", "Rows given up after the last attempt.", labels=labels)
    running = GaugeMetricFamily("columnar_trigger_running", "0 where it is paused or blocked.", labels=labels)
    for trigger in status.triggers:
        names = [trigger.name, trigger.table]
        changes.add_metric(names, trigger.lag_changes)
        seconds.add_metric(names, trigger.lag_seconds)
        parked.add_metric(names, trigger.parked_rows)
        dead.add_metric(names, trigger.dead_letters)
        running.add_metric(names, float(trigger.state == "running"))
    yield from (changes, seconds, parked, dead, running)

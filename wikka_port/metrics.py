"""``/metrics`` of a wiki, at a port of its own: what Prometheus reads.

The port is bound by the parent and shared by all workers: any of them answers, with the sums over all.  A scrape is
answered in a thread of its own, so it waits for no visitor.  The wiki's public port has no such page: a proxy that
passes every path on to the wiki shows nobody its numbers.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from wikka_port.counters import BOUNDS_S, FAMILIES, PLACES, Family
from wikka_port.hosts import Hosts

_log = logging.getLogger(__name__)

PATH: Final = "/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_S: Final = 5.0  # for each read of a request: one scrape at a time
_FOREVER_S: Final = 3_600.0  # between looks whether the thread is to end, which it never is
_BOUNDS: Final = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")


def exposition(numbers: Sequence[float]) -> bytes:
    """Return ``numbers``, as a slab has them, in Prometheus' text form."""
    registry = CollectorRegistry()
    registry.register(_Numbers(numbers))
    return generate_latest(registry)


class _Numbers(Collector):
    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        return (_metric_of(family, self._numbers) for family in FAMILIES)


def _metric_of(family: Family, numbers: Sequence[float]) -> Metric:
    made: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
    if family.kind == "histogram":
        made = HistogramMetricFamily(family.name, family.about, labels=family.labels)
    elif family.kind == "gauge":
        made = GaugeMetricFamily(family.name, family.about, labels=family.labels)
    else:
        made = CounterMetricFamily(family.name, family.about, labels=family.labels)
    for sample in family.samples:
        place = PLACES[family.name, sample]
        its = numbers[place : place + family.size]
        if not isinstance(made, HistogramMetricFamily):
            made.add_metric(sample, its[0])
        elif any(its):  # a route that nobody has asked for would be fifteen lines of zeros
            made.add_metric(sample, list(zip(_BOUNDS, accumulate(its[:-1]), strict=True)), its[-1])
    return made


class MetricsPort:
    """The port, bound by the caller.  Call ``start`` in each process that is to answer; it answers until it ends."""

    def __init__(self, bound: socket.socket, sums: Callable[[], Sequence[float]]) -> None:
        self._bound = bound
        self._sums = sums

    def start(self) -> None:
        threading.Thread(target=self._serve, name="metrics", daemon=True).start()

    def _serve(self) -> None:
        hosts = Hosts.of(self._bound.getsockname()[0], ())
        sums = self._sums

        class Handler(_Handler):
            def page(self) -> tuple[int, bytes]:
                refusal = hosts.refusal(self.headers.get("Host"))
                if refusal:
                    return 403, f"{refusal}\n".encode()
                if self.path.partition("?")[0] != PATH:
                    return 404, f"There is {PATH}.\n".encode()
                return 200, exposition(sums())

        _Server(self._bound, Handler).serve_forever(poll_interval=_FOREVER_S)


class _Server(HTTPServer):
    def __init__(self, bound: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(bound.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        bound.setblocking(False)  # another worker may have taken the connection
        self.socket = bound

    def handle_error(self, request: object, client_address: object) -> None:
        _log.warning("a scrape by %s was not answered", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S
    server_version, sys_version = "wikka", ""

    def page(self) -> tuple[int, bytes]:
        raise NotImplementedError

    def do_GET(self) -> None:
        status, text = self.page()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE if status == 200 else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, text: str, *values: object) -> None:
        _log.debug(text, *values)

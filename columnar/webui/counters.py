"""(pure) Counters of a port's requests by method and outcome, of their durations and of their bytes.

``RequestCounters`` is the wire's ``Observer``.  The Observer is called once for each request, so it only updates plain
lists and integers (0.3 microseconds a call); ``metrics`` converts them to Prometheus' form at each scrape.

Owned by the loop: read it there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from itertools import pairwise
from typing import Final

from columnar.model.histogram import BOUNDS_S

HISTORY_S: Final = 120  # of requests per second, one sample a second


class Trace:
    """The trace of a request."""

    __slots__ = ("at_s", "seconds", "trace_id")

    def __init__(self, trace_id: str, seconds: float, at_s: float) -> None:
        self.trace_id = trace_id  # in hexadecimal digits
        self.seconds = seconds  # that the request took
        self.at_s = at_s  # when it was answered, since 1970


class MethodCounters:
    """A method's totals since the start."""

    __slots__ = ("buckets", "bytes_in", "bytes_out", "errors", "seconds", "traces")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS_S) + 1)  # calls by latency, up to each bound; the last bucket has the rest
        self.seconds = 0.0
        self.bytes_in = 0
        self.bytes_out = 0
        self.errors: dict[str, int] = {}  # by class of error
        self.traces: list[Trace | None] = []  # the last of each bucket; empty if requests are not traced

    def add_request(self, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        self.seconds += seconds
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out
        if error is not None:
            self.errors[error] = self.errors.get(error, 0) + 1

    def add_trace(self, trace: Trace) -> None:
        if not self.traces:
            self.traces = [None] * len(self.buckets)
        self.traces[bisect_left(BOUNDS_S, trace.seconds)] = trace

    @property
    def calls(self) -> int:
        return sum(self.buckets)

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def quantile_s(self, share: float) -> float:
        """Return the latency within which ``share`` of the calls stayed; infinite over all bounds, 0 without calls."""
        wanted = share * self.calls
        seen = 0
        for bound, count in zip((*BOUNDS_S, float("inf")), self.buckets, strict=True):
            seen += count
            if seen >= wanted:
                return bound if self.calls else 0.0
        return float("inf")


class RequestCounters:
    def __init__(self) -> None:
        self.by_method: dict[str, MethodCounters] = {}
        self._samples: deque[tuple[float, int]] = deque(maxlen=HISTORY_S + 1)  # (monotonic seconds, requests so far)

    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        counters = self.by_method.get(method)
        if counters is None:
            counters = self.by_method[method] = MethodCounters()
        counters.add_request(seconds, error, bytes_in, bytes_out)

    def trace_done(self, method: str, trace_id: str, seconds: float, at_s: float) -> None:
        """Note the trace of a request that ``request_done`` has counted."""
        counters = self.by_method.get(method)
        if counters is not None:
            counters.add_trace(Trace(trace_id, seconds, at_s))

    def total(self) -> int:
        return sum(counters.calls for counters in self.by_method.values())

    def calls(self) -> dict[str, int]:
        """Return the number of calls by method, for ``columnarStatus``."""
        return {method: counters.calls for method, counters in self.by_method.items()}

    def of_service(self, prefix: str) -> ServiceCounters:
        """Return an Observer that counts here under names with ``prefix``, because services share method names."""
        return ServiceCounters(self, prefix)

    # --- requests per second -------------------------------------------------------------------------

    def sample(self, now_s: float) -> None:
        """Record the number of requests so far.  Call once a second."""
        self._samples.append((now_s, self.total()))

    def rates(self) -> tuple[float, ...]:
        """Return the requests per second between consecutive samples, oldest first."""
        samples = list(self._samples)
        return tuple((late[1] - early[1]) / max(late[0] - early[0], 1e-9) for early, late in pairwise(samples))

    def rate(self, seconds: int = 10) -> float:
        """Return the requests per second over the last ``seconds`` samples."""
        samples = list(self._samples)[-seconds - 1 :]
        if len(samples) < 2:
            return 0.0
        return (samples[-1][1] - samples[0][1]) / max(samples[-1][0] - samples[0][0], 1e-9)


class ServiceCounters:
    """A service's share of ``RequestCounters``: the ``Observer`` of its port."""

    def __init__(self, counters: RequestCounters, prefix: str) -> None:
        self._counters = counters
        self._prefix = prefix
        self._names: dict[str, str] = {}  # full names by method; bounded by the service's methods

    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        name = self._names.get(method)
        if name is None:
            name = self._names[method] = self._prefix + method
        self._counters.request_done(name, seconds, error, bytes_in, bytes_out)

    def trace_done(self, method: str, trace_id: str, seconds: float, at_s: float) -> None:
        self._counters.trace_done(self._prefix + method, trace_id, seconds, at_s)

"""``/requests``: calls, failures, rates and latencies by method over all servers, and the last slow requests.

The figures come from the families of ``/metrics``, so page and metrics never differ.  A rate is the average since the
page's previous visit, at least a second earlier.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from werkzeug.wrappers import Request, Response

from columnar.model.histogram import BOUNDS_S
from columnar.model.measures import Family, SlowRequest
from columnar.webui.cluster_status import PageStatus

MAX_LISTED_SLOW: Final = 100
RATED_AFTER_S: Final = 1.0
_OK: Final = "ok"

Measured = tuple[Mapping[str, Sequence[Family]], Sequence[str]]  # by server; names of silent servers
Slow = tuple[Sequence[SlowRequest], Sequence[str]]


@dataclass(frozen=True, slots=True)
class MethodFigures:
    name: str
    calls: int
    failed: int
    median_s: float
    p99_s: float
    rate_per_s: float | None = None  # None at the first visit of the page


def method_figures(families: Iterable[Family]) -> list[MethodFigures]:
    """Sum the families of all servers, by method."""
    calls, failed = Counter[str](), Counter[str]()
    buckets: dict[str, list[float]] = {}
    for family in families:
        if family.name == "columnar_requests":
            for (method, outcome), (count,) in family.samples:
                calls[method] += int(count)
                failed[method] += int(count) if outcome != _OK else 0
        elif family.name == "columnar_request_seconds":
            for (method,), numbers in family.samples:
                counts = numbers[: len(BOUNDS_S) + 1]
                total = buckets.setdefault(method, [0.0] * len(counts))
                buckets[method] = [one + more for one, more in zip(total, counts, strict=True)]
    return [
        MethodFigures(name, calls[name], failed[name], *(_under(buckets.get(name, []), share) for share in (0.5, 0.99)))
        for name in sorted(calls)
    ]


def _under(buckets: Sequence[float], share: float) -> float:
    """Return the latency within which ``share`` of the calls stayed; infinite beyond all bounds, 0 without calls."""
    wanted, seen = share * sum(buckets), 0.0
    for bound, count in zip((*BOUNDS_S, float("inf")), buckets, strict=False):
        seen += count
        if seen and seen >= wanted:
            return bound
    return 0.0


class RequestPage:
    """The page ``/requests``.

    Several web threads may call it; a lock guards its state, the number of calls at the last visits.
    """

    def __init__(
        self,
        measures: Callable[[], Measured],
        slow: Callable[[], Slow],
        status: Callable[[], PageStatus],
        page: Callable[..., Response],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Pass functions that are called in the web thread; ``measures``, ``slow`` and ``status`` call the loop."""
        self._measures = measures
        self._slow = slow
        self._status = status
        self._page = page
        self._now_s = now_s
        self._lock = threading.Lock()
        self._visits: list[tuple[float, dict[str, int]]] = []  # at most two: the older one is RATED_AFTER_S old

    def answer(self, request: Request) -> Response:
        if request.args.get("form") == "json":
            return self._slow_as_json()
        measures, silent = self._measures()
        slow, silent_too = self._slow()
        figures = self._rated(method_figures(family for its in measures.values() for family in its))
        newest = sorted(slow, key=lambda one: one.at_ms, reverse=True)[:MAX_LISTED_SLOW]
        return self._page(
            "requests.html", self._status(), methods=figures, slow=newest, silent=sorted({*silent, *silent_too})
        )

    def _slow_as_json(self) -> Response:
        """Return the last slow requests, the newest first, for programs."""
        slow, _silent = self._slow()
        newest = sorted(slow, key=lambda one: one.at_ms, reverse=True)[:MAX_LISTED_SLOW]
        return Response(json.dumps([asdict(one) for one in newest]), mimetype="application/json")

    def _rated(self, figures: list[MethodFigures]) -> list[MethodFigures]:
        now_s = self._now_s()
        with self._lock:
            before = next((one for one in reversed(self._visits) if now_s - one[0] >= RATED_AFTER_S), None)
            kept = [before] if before is not None else self._visits[:1]
            self._visits = [*kept, (now_s, {one.name: one.calls for one in figures})]
        if before is None:
            return figures
        passed_s, calls = now_s - before[0], before[1]
        return [replace(one, rate_per_s=max(0, one.calls - calls.get(one.name, 0)) / passed_s) for one in figures]

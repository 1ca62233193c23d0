"""(pure) The figures of a running replay, as a page and Prometheus want them: snapshots in, JSON and text out.

    event := {"whole": bool, "state": running | the ending, "now_s", "planned_s", "open", "headline", "tiles",
              "kinds": rows, "curves": points by name, "interval_s", "intervals": rows as in a report, no histograms,
              "search": of a search, in whole events}
    search := {"title": of the try, "answer": sentences, "tries": rows,
               "bounds": {"low", "answer", "high": requests per second}}

An event that is not whole has the intervals that changed since the one before.  The figures of a search are those of
the try under way; the first event of a try is whole.

Knows nothing of sockets; the order of calls is that of the snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gauge.histogram import Histogram
from wikibench.latency import Recorder
from wikibench.live import Snapshot
from wikibench.outcome import FAILED, Kind, Outcome
from wikibench.summary import Json, distribution, interval_figures, milliseconds, times

from .pages import COLUMNS, RESPONSE, SERVICE
from .pages import milliseconds as written

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Running:
    """The figures of a running replay so far.  Owned by the thread that has the snapshots."""

    def __init__(self) -> None:
        self._rows: dict[int, Json] = {}
        self._now: Snapshot | None = None
        self._counted = Recorder(0)
        self._search: Json = {}
        self._is_new_try = False

    def begin_try(self, search: Json) -> Json:
        """Begin the figures of a try of a search anew; return the whole event."""
        self._rows, self._now, self._counted, self._is_new_try = {}, None, Recorder(0), True
        return self.end_try(search)

    def end_try(self, search: Json) -> Json:
        """Take what the search says of itself, and leave the figures; return the whole event."""
        self._search = search
        return self.whole()

    def take_snapshot(self, now: Snapshot) -> Json:
        """Return the event of this snapshot."""
        self._now = now
        self._counted = Recorder(now.planned_s)
        self._counted.pairs.update(now.pairs)
        changed = []
        for index, interval in sorted(now.rows.items()):
            row = interval_figures(index * now.interval_s, interval)
            if self._rows.get(index) != row:
                self._rows[index] = row
                changed.append(row)
        if self._is_new_try:
            self._is_new_try = False
            return self.whole()
        return self._event(now, changed, whole=False)

    def whole(self, state: str = "running") -> Json:
        """Return an event with all intervals; an empty one before the first snapshot."""
        if self._now is None:
            return {"whole": True, "state": state, "intervals": [], **self._of_search()}
        return self._event(self._now, [self._rows[index] for index in sorted(self._rows)], whole=True, state=state)

    def _event(self, now: Snapshot, rows: Sequence[Json], *, whole: bool, state: str = "running") -> Json:
        counted = self._counted
        found = times(counted.response())
        last = self._last_whole_row()
        p95 = "" if found["p95_ms"] is None else f", 95 % within {written(found['p95_ms'])} ms"
        return {
            "whole": whole,
            "state": state,
            "now_s": round(now.now_s, 1),
            "planned_s": round(now.planned_s, 1),
            "is_warming_up": now.now_s < now.warm_up_s,
            "headline": f"{last[1]:.4g} of {last[0]:.4g} requests per second{p95}",
            "tiles": [
                (f"{counted.count():,}", "requests counted"),
                (f"{now.failed:,}", "failed"),
                (f"{counted.count(outcomes=[Outcome.CONFLICT]):,}", "edit conflicts"),
                (f"{now.open:,}", "open now"),
                *((f"{written(found[f'{name}_ms'])} ms", f"{name} response") for name in ("p50", "p95", "p99")),
                (f"{written(milliseconds(now.own_lateness, 99.0))} ms", "own lateness, p99"),
            ],
            "kinds": [self._of_kind(kind) for kind in Kind if counted.count(kind)],
            "curves": {RESPONSE: _points(counted.response()), SERVICE: _points(counted.service())},
            "interval_s": now.interval_s,
            "intervals": list(rows),
            **(self._of_search() if whole else {}),
        }

    def _of_search(self) -> Json:
        return {"search": self._search} if self._search else {}

    def _of_kind(self, kind: Kind) -> list[str]:
        found = times(self._counted.response(kind))
        counts = f"{self._counted.count(kind):,}", f"{self._counted.failed(kind):,}"
        return [str(kind), *counts, *(written(found[name]) for name in COLUMNS)]

    def _last_whole_row(self) -> tuple[float, float]:
        """Return the rates, planned and got, of the last interval that has gone by."""
        if self._now is None or not self._rows:
            return 0.0, 0.0
        done = [index for index in self._rows if (index + 1) * self._now.interval_s <= self._now.now_s]
        row = self._rows[max(done, default=min(self._rows))]
        return row["asked"] / self._now.interval_s, row["answered"] / self._now.interval_s

    def metrics(self) -> str:
        """Return the figures in Prometheus' text format."""
        counts = (
            (f'kind="{kind}",outcome="{outcome}"', pair.response.count)
            for (kind, outcome), pair in sorted(self._counted.pairs.items())
        )
        lines = ["# TYPE wikibench_requests_total counter"]
        lines += [f"wikibench_requests_total{{{labels}}} {count}" for labels, count in counts]
        lines += ["# TYPE wikibench_failed_requests_total counter"]
        lines += [f"wikibench_failed_requests_total {self._counted.count(outcomes=FAILED)}"]
        lines += ["# TYPE wikibench_response_seconds histogram"]
        for kind in Kind:
            if self._counted.count(kind):
                lines += _histogram_lines("wikibench_response_seconds", f'kind="{kind}"', self._counted.response(kind))
        if self._now is not None:
            lines += ["# TYPE wikibench_own_lateness_seconds histogram"]
            lines += _histogram_lines("wikibench_own_lateness_seconds", "", self._now.own_lateness)
            gauges = (
                ("wikibench_open_requests", self._now.open),
                ("wikibench_planned_requests_per_second", self._last_whole_row()[0]),
                ("wikibench_running_seconds", self._now.now_s),
            )
            for name, value in gauges:
                lines += [f"# TYPE {name} gauge", f"{name} {value:.6g}"]
        if self._search:
            lines += ["# TYPE wikibench_search_tries gauge", f"wikibench_search_tries {len(self._search['tries'])}"]
            lines += ["# TYPE wikibench_search_requests_per_second gauge"]
            for bound, value in self._search["bounds"].items():
                lines += [f'wikibench_search_requests_per_second{{bound="{bound}"}} {value:.6g}']
        return "\n".join(lines) + "\n"


def _points(histogram: Histogram) -> list[tuple[float, float]]:
    return [(round(inverse, 4), round(ms, 4)) for inverse, ms in distribution(histogram)]


def _histogram_lines(name: str, labels: str, histogram: Histogram) -> Iterable[str]:
    """Yield the lines of a histogram; a bucket of ours is counted where its highest value lies."""
    tops = sorted((histogram.top_of(value) / 1e6, count) for value, count in histogram.counts.items())
    comma = "," if labels else ""
    for bound_s in BOUNDS_S:
        below = sum(count for top_s, count in tops if top_s <= bound_s)
        yield f'{name}_bucket{{{labels}{comma}le="{bound_s:g}"}} {below}'
    yield f'{name}_bucket{{{labels}{comma}le="+Inf"}} {histogram.count}'
    braces = f"{{{labels}}}" if labels else ""
    yield f"{name}_sum{braces} {histogram.mean() * histogram.count / 1e6:.6f}"
    yield f"{name}_count{braces} {histogram.count}"

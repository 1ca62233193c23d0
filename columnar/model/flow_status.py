"""(pure) The status of flows: of a server's own regions, and merged over all servers.

Knows nothing of requests, followers and pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from columnar.model.flow_graph import Flow, Graph, Measure, place_of
from columnar.model.histogram import BOUNDS_S, Histogram

RUNNING: Final = "running"
NEVER_S: Final = -1.0


@dataclass(frozen=True, slots=True)
class FlowStatus:
    kind: str
    name: str
    reads: tuple[str, ...]  # places, as ``flow_graph`` writes them
    writes: tuple[str, ...]
    seen: tuple[str, ...] = ()  # places that it wrote undeclared
    state: str = RUNNING
    lag_changes: int = 0
    lag_seconds: float = 0.0  # of the oldest change
    rate_per_s: float = 0.0  # deliveries, in the last minute
    delivered: int = 0  # changes, since its servers began
    failed: int = 0  # attempts
    parked: int = 0  # rows
    dead: int = 0  # letters
    runs: tuple[float, ...] = ()  # a sample of a histogram (``model.measures``)
    idle_s: float = NEVER_S  # since the last delivery
    error: str = ""

    @property
    def flow(self) -> Flow:
        reads, writes, seen = (tuple(map(place_of, places)) for places in (self.reads, self.writes, self.seen))
        return Flow(self.kind, self.name, reads, writes, seen)

    @property
    def measure(self) -> Measure:
        notes = [self.state] if self.state != RUNNING else []
        notes += [f"{self.parked} retrying"] if self.parked else []
        notes += [f"{self.dead} dead"] if self.dead else []
        return Measure(self.rate_per_s, self.lag_changes, self.lag_seconds, ", ".join(notes))

    def run_s(self, share: float) -> float:
        """The time within which that share of the runs ended, as a bound of the histogram; 0: there was none."""
        counts = self.runs[: len(BOUNDS_S) + 1]
        wanted, seen = share * sum(counts), 0.0
        if not wanted:
            return 0.0
        for bound, count in zip((*BOUNDS_S, float("inf")), counts, strict=True):
            seen += count
            if seen >= wanted:
                return bound
        return float("inf")


def merged(looks: Iterable[FlowStatus]) -> list[FlowStatus]:
    """Merge them into one for each flow, by kind and name.  Numbers are summed, but for ages."""
    found: dict[tuple[str, str], FlowStatus] = {}
    for look in looks:
        held = found.get((look.kind, look.name))
        found[look.kind, look.name] = look if held is None else _both(held, look)
    return [found[name] for name in sorted(found)]


def _both(one: FlowStatus, other: FlowStatus) -> FlowStatus:
    idle = [look.idle_s for look in (one, other) if look.idle_s != NEVER_S]
    runs = tuple(a + b for a, b in zip(one.runs, other.runs, strict=True)) if one.runs and other.runs else ()
    return replace(
        one,
        seen=tuple(sorted({*one.seen, *other.seen})),
        state=one.state if one.state != RUNNING else other.state,
        lag_changes=one.lag_changes + other.lag_changes,
        lag_seconds=max(one.lag_seconds, other.lag_seconds),
        rate_per_s=one.rate_per_s + other.rate_per_s,
        delivered=one.delivered + other.delivered,
        failed=one.failed + other.failed,
        parked=one.parked + other.parked,
        dead=one.dead + other.dead,
        runs=runs or one.runs or other.runs,
        idle_s=min(idle, default=NEVER_S),
        error=one.error or other.error,
    )


def graph_of(looks: Iterable[FlowStatus]) -> Graph:
    return Graph(look.flow for look in looks)


def drawing_of(looks: Sequence[FlowStatus]) -> str:
    """Draw them for a terminal."""
    return graph_of(looks).drawing({(look.kind, look.name): look.measure for look in looks})


def to_json(looks: Sequence[FlowStatus], silent: Sequence[str]) -> str:
    return json.dumps({"flows": [_plain(look) for look in looks], "silent_servers": list(silent)}, sort_keys=True)


def _plain(status: FlowStatus) -> dict[str, Any]:
    return {**asdict(status), "run_p50_s": _finite(status.run_s(0.5)), "run_p99_s": _finite(status.run_s(0.99))}


def _finite(seconds: float) -> float | None:
    """JSON has no infinity: None is over the last bound."""
    return None if seconds == float("inf") else seconds


def from_json(text: str) -> tuple[list[FlowStatus], list[str]]:
    """Return the status and the silent servers.  A newer server may send more."""
    import msgspec  # 2 MB, needed by clients alone

    held = json.loads(text)
    return msgspec.convert(held["flows"], list[FlowStatus]), list(held["silent_servers"])


assert len(Histogram().numbers) == len(BOUNDS_S) + 2

"""(pure) The status of flows, triggers and views: of a server's own regions, and merged over all servers.

Servers send each other FlowStatus, TriggerStatus and the first fields of ViewStatus, up to ``last_error``.  A gateway
adds for its client what it knows itself: it makes a ListedTrigger, and fills in the other fields of ViewStatus. Clients
receive these records whole (``record_codec``), and flows as JSON.

Knows nothing of requests, followers and pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from columnar.errors import DamagedData
from columnar.model.flow_graph import Flow, Graph, Measure, place_of
from columnar.model.histogram import BOUNDS_S, Histogram
from columnar.model.trigger_registration import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT_MS, Registration, settings_of
from columnar.model.view_generations import base_of

S = TypeVar("S", "FlowStatus", "TriggerStatus", "ViewStatus")

RUNNING: Final = "running"
QUEUE: Final = "queue"  # the kind of a queue with its consumers
PUSH: Final = "push"  # the kind of a queue's delivery to the function or URL that serves it
TOPIC: Final = "topic"  # the kind of a topic, whose readers the store does not count
FEED: Final = "feed"  # the kind of a table's feed into a topic
GROUP: Final = "group"  # the kind of a group of consumers in a topic
READERS: Final = "readers"  # the kind of a group of readers of a table's changes
NEVER_S: Final = -1.0
_PARKED: Final = {QUEUE: "out or delayed", PUSH: "running"}


@dataclass(frozen=True, slots=True)
class FlowStatus:
    kind: str
    name: str
    reads: tuple[str, ...]  # places, as ``flow_graph`` writes them
    writes: tuple[str, ...]
    seen: tuple[str, ...] = ()  # places that it wrote without declaring them
    state: str = RUNNING
    lag_changes: int = 0
    lag_seconds: float = 0.0  # of the oldest change
    rate_per_s: float = 0.0  # deliveries, in the last minute
    delivered: int = 0  # changes, since its servers started
    failed: int = 0  # attempts
    parked: int = 0  # rows; of a queue messages that are out or delayed, of its delivery those that the target has
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
        notes += [f"{self.parked} {_PARKED.get(self.kind, 'retrying')}"] if self.parked else []
        notes += [f"{self.dead} dead"] if self.dead else []
        return Measure(self.rate_per_s, self.lag_changes, self.lag_seconds, ", ".join(notes))

    def run_s(self, share: float) -> float:
        """Return the bound of the histogram within which the given share of the runs ended; 0 if there was no run."""
        counts = self.runs[: len(BOUNDS_S) + 1]
        wanted, seen = share * sum(counts), 0.0
        if not wanted:
            return 0.0
        for bound, count in zip((*BOUNDS_S, float("inf")), counts, strict=True):
            seen += count
            if seen >= wanted:
                return bound
        return float("inf")


# --- several servers ---------------------------------------------------------------------------------

_SUMMED: Final = (
    "lag_changes", "rate_per_s", "delivered", "failed", "parked", "dead", "parked_rows", "dead_letters",
    "rejected_rows", "built_rows",
)  # fmt: skip


def merged(statuses: Iterable[S]) -> list[S]:
    """Merge the status of several servers into one for each derivation, in the order of first occurrence.

    Counts and rates are summed; the lag in seconds is the longest, the idle time the shortest.  A state other than
    running takes precedence.
    """
    found: dict[tuple[str, str], S] = {}
    for status in statuses:
        key = getattr(status, "kind", ""), getattr(status, "table", "") or status.name
        held = found.get(key)
        found[key] = status if held is None else _both(held, status)
    return list(found.values())


def _both(one: S, other: S) -> S:
    names = {field.name for field in fields(one)}
    both: dict[str, Any] = {name: getattr(one, name) + getattr(other, name) for name in names.intersection(_SUMMED)}
    both["state"] = one.state if one.state != RUNNING else other.state
    both["lag_seconds"] = max(one.lag_seconds, other.lag_seconds)
    for name in names.intersection(("error", "last_error")):
        both[name] = getattr(one, name) or getattr(other, name)
    if isinstance(one, FlowStatus):
        idle = [status.idle_s for status in (one, other) if status.idle_s != NEVER_S]
        runs = tuple(a + b for a, b in zip(one.runs, other.runs, strict=True)) if one.runs and other.runs else ()
        both["runs"] = runs or one.runs or other.runs
        both["idle_s"] = min(idle, default=NEVER_S)
        both["seen"] = tuple(sorted({*one.seen, *other.seen}))
    return replace(one, **both)


def merged_flows(statuses: Iterable[FlowStatus]) -> list[FlowStatus]:
    """Merge the status of several servers into one for each flow, by kind and name."""
    return sorted(merged(statuses), key=lambda one: (one.kind, one.name))


def graph_of(looks: Iterable[FlowStatus]) -> Graph:
    return Graph(look.flow for look in looks)


def drawing_of(looks: Sequence[FlowStatus]) -> str:
    """Draw the graph of these flows for a terminal."""
    return graph_of(looks).drawing({(look.kind, look.name): look.measure for look in looks})


def to_json(looks: Sequence[FlowStatus], silent: Sequence[str]) -> str:
    return json.dumps({"flows": [_plain(look) for look in looks], "silent_servers": list(silent)}, sort_keys=True)


def _plain(status: FlowStatus) -> dict[str, Any]:
    return {**asdict(status), "run_p50_s": _finite(status.run_s(0.5)), "run_p99_s": _finite(status.run_s(0.99))}


def _finite(seconds: float) -> float | None:
    """Return None for infinity, which JSON lacks: None means over the last bound."""
    return None if seconds == float("inf") else seconds


def from_json(text: str) -> tuple[list[FlowStatus], list[str]]:
    """Return the status of the flows and the silent servers.  Fields that only a newer server sends are ignored."""
    import msgspec  # 2 MB, needed by clients alone

    held = json.loads(text)
    return msgspec.convert(held["flows"], list[FlowStatus]), list(held["silent_servers"])


assert len(Histogram().numbers) == len(BOUNDS_S) + 2


# --- triggers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    name: str
    table_name: str
    function: str
    state: str = RUNNING  # running, paused, blocked or unreadable
    lag_changes: int = 0
    lag_seconds: float = 0.0  # of the oldest change
    parked_rows: int = 0  # of a served queue: messages that its target has
    dead_letters: int = 0
    last_error: str = ""
    rate_per_s: float = 0.0  # deliveries, in the last minute
    share: int = 0  # of the workers' time, relative to other triggers; 0: unreadable
    process: str = ""  # label of its worker process; empty: the common process
    settings: str = ""  # of pace (``trigger_registration.settings_of``)
    allows_cycle: bool = False  # it may follow its own changes
    failed: int = 0  # attempts; of a served queue alone


@dataclass(frozen=True, slots=True)
class ListedTrigger(TriggerStatus):
    """The status of a trigger that a gateway sends to its client."""

    registration: Registration | None = None  # None: it cannot be read
    silent_servers: tuple[str, ...] = ()  # servers whose part is missing in the numbers, with the cause

    @property
    def table(self) -> bytes:
        return self.table_name.encode()

    @property
    def families(self) -> tuple[bytes, ...]:
        return () if self.registration is None else tuple(sorted(self.registration.family_bytes))

    @property
    def owner(self) -> str:
        return "" if self.registration is None else self.registration.owner

    @property
    def attempts(self) -> int:
        return DEFAULT_ATTEMPTS if self.registration is None else self.registration.attempts

    @property
    def timeout_ms(self) -> int:
        return DEFAULT_TIMEOUT_MS if self.registration is None else self.registration.timeout_ms


def listed(status: TriggerStatus, registration: Registration | None, silent_servers: Iterable[str]) -> ListedTrigger:
    known = {one.name: getattr(status, one.name) for one in fields(TriggerStatus)}
    return ListedTrigger(**known, registration=registration, silent_servers=tuple(silent_servers))


def status_of(registration: Registration) -> TriggerStatus:
    """Return the status of a trigger that has nothing to deliver."""
    return TriggerStatus(
        registration.name,
        registration.table,
        registration.function,
        share=registration.share,
        process=registration.process,
        settings=settings_of(registration),
        allows_cycle=registration.allow_cycle,
    )


# --- views -------------------------------------------------------------------------------------------


if TYPE_CHECKING:  # a store without views need not load it
    from columnar.model.view_definition import View


@dataclass(frozen=True, slots=True)
class ViewStatus:
    table: str  # of its generation
    lag_changes: int = 0
    lag_seconds: float = 0.0  # of the oldest change
    rejected_rows: int = 0  # rows of the sources that the definition cannot read; they are in no group
    built_rows: int = 0  # rows that are older than the view and have been backfilled
    last_error: str = ""
    definition_json: bytes = b""
    state: str = ""  # adding, building, live (built) or unreadable
    generation: int = 1  # 1 at first; the next one with each rebuild
    role: str = "live"  # which generation it is: live, next (not swapped in) or kept (for a rollback)
    silent_servers: tuple[str, ...] = ()  # servers whose part is missing in the numbers

    @property
    def name(self) -> str:
        """The name of the view, which all its generations share."""
        return base_of(self.table)

    @property
    def definition(self) -> View | None:
        """The definition; None if it is missing, or of a newer version."""
        from columnar.model.view_definition import from_json

        try:
            return from_json(self.definition_json)
        except DamagedData:
            return None


# --- checks ------------------------------------------------------------------------------------------


MOST_FINDINGS: Final = 100  # findings of a report; more are counted


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str  # row or group
    table: str  # of the row
    row: bytes
    text: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    view: str
    source_rows: int
    rejected: int  # source rows that the view's definition cannot read; they are in no group
    groups: int
    members: int
    findings: tuple[Finding, ...]  # the first MOST_FINDINGS
    wrong: int  # all findings
    unsure: int  # rows that changed during every look, so they could not be judged
    repaired: int


# --- silent servers ----------------------------------------------------------------------------------


def silent_entry(server: str, why: str) -> str:
    """Return ``s2.7``, or with a cause ``s2.7 (its link has ended)``; ``why`` is empty if no answer came in time."""
    return f"{server} ({' '.join(why.split())})" if why else server


def silent_remark(found: str) -> str:
    """Return a sentence for people about an entry of ``silent_entry``."""
    server, _, why = found.partition(" (")
    said = f"did not answer ({why.removesuffix(')')})" if why else "did not answer in time"
    return f"{server} {said}: its part is not in the numbers"

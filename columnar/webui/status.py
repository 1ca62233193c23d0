"""The content of the page and the metrics, as values: collected on the loop, rendered in a different thread.

All numbers of one status are of the same moment.  Sizes of open regions come from their engine.  For a closed region
the status only has the ``folder``; the thread that renders the page reads the size, because the disk is slow and the
loop must not wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from columnar.cluster.row_forms import RegionState
from columnar.memory_plan import MemoryPart
from columnar.model.flow_status import FEED
from columnar.operations.descriptions import Descriptions
from columnar.operations.scanner_table import ScannerTable
from columnar.regions.tables import ServedTable
from columnar.runtime.faults import FAULTS
from columnar.version import full
from columnar.webui.counters import RequestCounters, Trace

if TYPE_CHECKING:  # 0.15 MB that only pages about servers need
    from columnar.model.change_stream import StreamCounts
    from columnar.model.cluster_status_records import (
        ClusterStatus,
        DecisionStatus,
        RegionStatus,
        RowStatus,
        TableStatus,
        TransitionStatus,
    )
    from columnar.model.flow_status import FlowStatus, TriggerStatus, ViewStatus
    from columnar.operations.slow_log import SlowLog

T = TypeVar("T")
LIVE_PATHS: Final = ("/livez", "/live")  # the first as probes usually name it, the second since before
READY_PATHS: Final = ("/readyz", "/ready")
OLDER_PATHS: Final = frozenset({LIVE_PATHS[1], READY_PATHS[1]})
NOTES: Final = 20  # of one answer of /health
LOOP_TIMEOUT_S: Final = 2.0  # if the loop does not answer in this time, /health answers 503


class NotAnswering(Exception):
    """The store's loop did not answer in time, or is about to end; the text gives the reason in one line."""


class LoopRunner(Protocol):
    """Run a function on the store's loop and return its answer, or raise NotAnswering."""

    def __call__(self, question: Callable[[], T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class RegionLine:
    encoded: str
    start: bytes
    end: bytes
    is_open: bool
    reads: int  # since the region was opened
    writes: int
    size_bytes: int  # 0 for a closed region: see ``folder``
    folder: str


@dataclass(frozen=True, slots=True)
class TableLine:
    name: str
    families: tuple[str, ...]
    enabled: bool
    is_system: bool
    attributes: tuple[tuple[str, str], ...]
    regions: tuple[RegionLine, ...]

    @property
    def open_regions(self) -> int:
        return sum(region.is_open for region in self.regions)


@dataclass(frozen=True, slots=True)
class MethodLine:
    name: str
    calls: int
    errors: tuple[tuple[str, int], ...]  # by class of error
    buckets: tuple[int, ...]  # calls by latency, with the bounds ``counters.BOUNDS_S``
    seconds: float
    bytes_in: int
    bytes_out: int
    median_s: float
    p99_s: float
    traces: tuple[Trace | None, ...] = ()  # the last trace of each bucket; empty if requests are not traced

    @property
    def failed(self) -> int:
        return sum(count for _, count in self.errors)


@dataclass(frozen=True, slots=True)
class Status:
    version: str  # ``version.full``
    address: str
    data_folder: str
    uptime_s: float
    requests_per_second: float
    rates: tuple[float, ...]  # requests per second, oldest second first
    connections: int
    open_regions: int
    open_scanners: int
    commits: int  # fsyncs
    slow_requests: int
    tables: tuple[TableLine, ...]  # by name
    methods: tuple[MethodLine, ...]  # by name
    triggers: tuple[TriggerStatus, ...]
    views: tuple[ViewStatus, ...] = ()  # by name
    memory: tuple[MemoryPart, ...] = ()  # of the memory plan
    hot_modules: str = ""  # text: how the hot modules run
    flows: tuple[FlowStatus, ...] = ()  # of every kind
    faults: tuple[str, ...] = ()  # faults that an operator must end
    unwritable_regions: int = 0  # regions that refuse writes
    loop_faults: tuple[tuple[str, int], ...] = ()  # unexpected exceptions that loops survived, by loop
    streams: StreamCounts | None = None  # None: no reader has come


class ClusterStatusSource(Protocol):
    """The interface of ``thrift.cluster_methods.SingleServer`` and ``master.cluster_control``; called on the loop."""

    def cluster_status(self) -> ClusterStatus: ...

    def tables(self) -> Sequence[TableStatus]: ...

    def regions(self, table: str) -> Sequence[RegionStatus]: ...

    def server_regions(self, server: str) -> Sequence[RegionStatus]: ...

    def locate_row(self, table: str, row: bytes) -> RowStatus: ...

    def transitions(self) -> Sequence[TransitionStatus]: ...

    def decisions(self) -> Sequence[DecisionStatus]: ...


def _no_streams() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Sources:
    """The functions that supply a status.  Each is called on the loop and must not block."""

    address: str
    data_folder: str
    started_s: float  # time.time()
    descriptions: Descriptions
    scanners: ScannerTable
    counters: RequestCounters
    connections: Callable[[], int]
    commits: Callable[[], int]
    slow_log: SlowLog
    triggers: Callable[[], list[TriggerStatus]]
    views: Callable[[], Iterable[ViewStatus]] = tuple
    memory: Callable[[], tuple[MemoryPart, ...]] = tuple
    hot_modules: Callable[[], str] = str
    flows: Callable[[], Sequence[FlowStatus]] = tuple
    streams: Callable[[], StreamCounts | None] = _no_streams
    cluster_source: Callable[[], ClusterStatusSource] | None = (
        None  # for pages of servers, tables and rows; called at their first visit
    )

    def obstacles(self) -> Sequence[str]:
        """Return why the store cannot take clients: nothing, because a full disk keeps no reader waiting."""
        return ()


def notes_of(flows: Iterable[FlowStatus]) -> list[str]:
    """Return why feeds stand still, for ``/health``: the store serves, but a topic lacks changes."""
    found = (f"feed {one.name}: {one.error}" for one in flows if one.kind == FEED and one.error)
    return list(islice(found, NOTES))


def gather(sources: Sources) -> Status:
    """Gather the status.  Must be called on the loop.  O(regions), some 20 microseconds per open region."""
    descriptions = sources.descriptions
    tables = descriptions.all()
    states = iter(descriptions.states_of(tables))
    return Status(
        version=full(),
        address=sources.address,
        data_folder=sources.data_folder,
        uptime_s=time.time() - sources.started_s,
        requests_per_second=sources.counters.rate(),
        rates=sources.counters.rates(),
        connections=sources.connections(),
        open_regions=descriptions.open_count(),
        open_scanners=len(sources.scanners),
        commits=sources.commits(),
        slow_requests=sources.slow_log.count,
        tables=tuple(_table(served, list(islice(states, len(served.regions)))) for served in tables),
        methods=_methods(sources.counters),
        triggers=tuple(sources.triggers()),
        views=tuple(sources.views()),
        memory=sources.memory(),
        hot_modules=sources.hot_modules(),
        flows=tuple(sources.flows()),
        faults=descriptions.faults(),
        unwritable_regions=descriptions.unwritable_count(),
        loop_faults=tuple(FAULTS.counts()),
        streams=sources.streams(),
    )


def _table(served: ServedTable, states: list[RegionState]) -> TableLine:
    schema = served.schema
    return TableLine(
        name=schema.name,
        families=tuple(family.name for family in schema.families),
        enabled=served.enabled,
        is_system=schema.is_system,
        attributes=tuple(sorted(schema.attributes.items())),
        regions=tuple(_region(state) for state in states),
    )


def _region(state: RegionState) -> RegionLine:
    return RegionLine(
        encoded=state.info.encoded,
        start=state.info.start,
        end=state.info.end,
        is_open=state.is_open,
        reads=state.reads,
        writes=state.writes,
        size_bytes=state.size_bytes,
        folder=state.folder,
    )


def _methods(counters: RequestCounters) -> tuple[MethodLine, ...]:
    return tuple(
        MethodLine(
            name=name,
            calls=counted.calls,
            errors=tuple(sorted(counted.errors.items())),
            buckets=tuple(counted.buckets),
            seconds=counted.seconds,
            bytes_in=counted.bytes_in,
            bytes_out=counted.bytes_out,
            median_s=counted.quantile_s(0.5),
            p99_s=counted.quantile_s(0.99),
            traces=tuple(counted.traces),
        )
        for name, counted in sorted(counters.by_method.items())
    )

"""The content of the page and the metrics, as values: collected on the loop, shown in another thread.

Numbers of one status belong to one moment.  Sizes of regions that are open come from their
engine; those of closed ones are left out here (``folder``) and looked up by the thread that shows
them, for the disk is slow and the loop must not wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from columnar.cluster.row_forms import RegionState
from columnar.operations.descriptions import Descriptions
from columnar.operations.scanner_table import ScannerTable
from columnar.regions.tables import ServedTable
from columnar.runtime import log_lines
from columnar.runtime.faults import FAULTS
from columnar.webui.counters import RequestCounters

if TYPE_CHECKING:  # 0.15 MB that a process needs for pages of servers alone
    from columnar.model.cluster_status_records import (
        ClusterStatus,
        DecisionStatus,
        RegionStatus,
        RowStatus,
        TableStatus,
        TransitionStatus,
    )
    from columnar.model.flow_status import FlowStatus, TriggerStatus, ViewStatus
    from columnar.model.measures import SlowRequest

LOOP_TIMEOUT_S: Final = 2.0  # a loop that does not answer within it is ill: /health says 503


class NotAnswering(Exception):
    """The store's loop did not answer in time, or is about to end; the text says which in one line."""


@dataclass(frozen=True, slots=True)
class RegionLine:
    encoded: str
    start: bytes
    end: bytes
    is_open: bool
    reads: int  # since it was opened
    writes: int
    size_bytes: int  # 0 if it is closed: see ``folder``
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
    buckets: tuple[int, ...]  # as ``counters.BOUNDS_S``
    seconds: float
    bytes_in: int
    bytes_out: int
    median_s: float
    p99_s: float

    @property
    def failed(self) -> int:
        return sum(count for _, count in self.errors)


@dataclass(frozen=True, slots=True)
class Status:
    version: str
    address: str
    data_folder: str
    uptime_s: float
    requests_per_second: float
    rates: tuple[float, ...]  # oldest first, one a second
    connections: int
    open_regions: int
    open_scanners: int
    commits: int  # fsyncs
    slow_requests: int
    tables: tuple[TableLine, ...]  # by name
    methods: tuple[MethodLine, ...]  # by name
    triggers: tuple[TriggerStatus, ...]
    views: tuple[ViewStatus, ...] = ()  # by name
    buffered_bytes: tuple[tuple[str, int], ...] = ()  # bytes of what is bounded in ``limits``, by name
    hot_modules: str = ""  # how they run, in words
    flows: tuple[FlowStatus, ...] = ()  # of every kind
    faults: tuple[str, ...] = ()  # what an operator must end
    unwritable_regions: int = 0  # they cannot be written
    log_lines_dropped: int = 0
    loop_faults: tuple[tuple[str, int], ...] = ()  # unexpected exceptions that loops outlived, by loop


class ClusterStatusSource(Protocol):
    """``thrift.cluster_methods``, or a master's ``cluster_control``; each is called on the loop."""

    def cluster_status(self) -> ClusterStatus: ...

    def tables(self) -> Sequence[TableStatus]: ...

    def regions(self, table: str) -> Sequence[RegionStatus]: ...

    def server_regions(self, server: str) -> Sequence[RegionStatus]: ...

    def locate_row(self, table: str, row: bytes) -> RowStatus: ...

    def transitions(self) -> Sequence[TransitionStatus]: ...

    def decisions(self) -> Sequence[DecisionStatus]: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a status; each is called on the loop and must return at once."""

    version: str
    address: str
    data_folder: str
    started_s: float  # time.time()
    descriptions: Descriptions
    scanners: ScannerTable
    counters: RequestCounters
    connections: Callable[[], int]
    commits: Callable[[], int]
    slow_requests: Callable[[], int]
    triggers: Callable[[], list[TriggerStatus]]
    views: Callable[[], Iterable[ViewStatus]] = tuple
    buffered_bytes: Callable[[], Mapping[str, int]] = dict
    hot_modules: Callable[[], str] = str
    flows: Callable[[], Sequence[FlowStatus]] = tuple
    slow: Callable[[], Iterable[SlowRequest]] = tuple  # the last slow requests
    cluster_source: Callable[[], ClusterStatusSource] | None = (
        None  # for the pages of servers, tables and rows: made for the first of them
    )


def gather(sources: Sources) -> Status:
    """On the loop only.  O(regions): some 20 microseconds for each open one."""
    descriptions = sources.descriptions
    tables = descriptions.all()
    states = iter(descriptions.states_of(tables))
    return Status(
        version=sources.version,
        address=sources.address,
        data_folder=sources.data_folder,
        uptime_s=time.time() - sources.started_s,
        requests_per_second=sources.counters.rate(),
        rates=sources.counters.rates(),
        connections=sources.connections(),
        open_regions=descriptions.open_count(),
        open_scanners=len(sources.scanners),
        commits=sources.commits(),
        slow_requests=sources.slow_requests(),
        log_lines_dropped=log_lines.dropped(),
        tables=tuple(_table(served, list(islice(states, len(served.regions)))) for served in tables),
        methods=_methods(sources.counters),
        triggers=tuple(sources.triggers()),
        views=tuple(sources.views()),
        buffered_bytes=tuple(sources.buffered_bytes().items()),
        hot_modules=sources.hot_modules(),
        flows=tuple(sources.flows()),
        faults=descriptions.faults(),
        unwritable_regions=descriptions.unwritable_count(),
        loop_faults=tuple(FAULTS.counts()),
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
        )
        for name, counted in sorted(counters.by_method.items())
    )

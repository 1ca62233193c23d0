"""The status of a cluster, as values: every page and the metrics have it; gathered on the master's loop."""

from __future__ import annotations

from dataclasses import dataclass

from columnar.model.cluster_status_records import ClusterStatus, TableStatus


@dataclass(frozen=True, slots=True)
class PageStatus:
    version: str
    address: str
    data_folder: str
    uptime_s: float
    cluster: ClusterStatus
    kinds: tuple[tuple[str, int], ...] = ()  # transitions under way, by what they are
    fenced: int = 0  # servers that died or were killed, since the start
    tables: tuple[TableStatus, ...] = ()
    disabled: frozenset[str] = frozenset()  # names of tables
    moves: tuple[tuple[str, int], ...] = ()  # that are done since the start, by why
    pauses: tuple[tuple[str, tuple[float, ...]], ...] = ()  # of these regions, by why: samples of a histogram
    hot_modules: str = ""  # how they run, in words
    has_triggers_page: bool = False  # a process that is alone shows its triggers on its first page
    log_lines_dropped: int = 0  # of the master's own process
    planning: tuple[float, ...] = ()  # rounds of the planner: the sample of a histogram

    @property
    def up(self) -> int:
        return sum(server.state == "up" for server in self.cluster.servers)

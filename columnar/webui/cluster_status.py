"""The status of a cluster as values, which all pages and the metrics contain; gathered on the master's loop."""

from __future__ import annotations

from dataclasses import dataclass

from columnar.model.cluster_status_records import ClusterStatus, TableStatus


@dataclass(frozen=True, slots=True)
class PageStatus:
    version: str  # ``version.full``
    address: str
    data_folder: str
    uptime_s: float
    cluster: ClusterStatus
    kinds: tuple[tuple[str, int], ...] = ()  # number of transitions under way, by kind
    fenced: int = 0  # servers that died or were killed, since the start
    tables: tuple[TableStatus, ...] = ()
    disabled: frozenset[str] = frozenset()  # names of tables
    moves: tuple[tuple[str, int], ...] = ()  # completed since the start, by reason
    pauses: tuple[tuple[str, tuple[float, ...]], ...] = ()  # of the moved regions, by reason: samples of a histogram
    hot_modules: str = ""  # text: how the hot modules run
    has_triggers_page: bool = False  # False for a standalone process, whose first page shows triggers
    log_lines_dropped: int = 0  # of the master's own process
    planning: tuple[float, ...] = ()  # durations of the planner's rounds: the sample of a histogram

    @property
    def up(self) -> int:
        return sum(server.state == "up" for server in self.cluster.servers)

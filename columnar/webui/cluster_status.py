"""The status of a cluster, as values: every page and the metrics have it; gathered on the master's loop."""

from __future__ import annotations

from dataclasses import dataclass

from columnar.model.cluster_look import ClusterLook


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    version: str
    address: str
    data_folder: str
    uptime_s: float
    look: ClusterLook
    kinds: tuple[tuple[str, int], ...] = ()  # transitions under way, by what they are
    fenced: int = 0  # servers that died or were killed, since the start

    @property
    def up(self) -> int:
        return sum(server.state == "up" for server in self.look.servers)

"""The figures that the pages of a cluster show, as values; gathered on the master's loop, shown in another thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerLine:
    name: str  # with the number of its start, as s2.17; without where it was never started
    state: str
    since_s: float  # it has been in that state
    regions: int
    load: float
    pid: int | None
    address: str  # of its own port; "": not known
    connections: int  # that were handed to it


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    version: str
    address: str
    data_folder: str
    uptime_s: float
    servers: tuple[ServerLine, ...]  # by name
    regions: int
    unassigned: int  # without an owner
    under_way: int  # transitions
    remarks: Sequence[str]  # what cannot be done
    fenced: int  # servers that died or were killed, since the start

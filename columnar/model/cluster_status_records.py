"""(pure) The status of a cluster: values that commands and pages print without computing anything.

    ClusterStatus     all servers, and the state of the cluster as a whole
    TableStatus       a table, in sums
    RegionStatus      a region: its server, its state in HBase's words, the reason, the load
    RowStatus         the region of a row, and the obstacles to its requests
    TransitionStatus  a region's transition in progress
    DecisionStatus    an instruction of the master, with its reason
    Change            the effect of an operator's instruction, or of a dry run

Times are ages, so a reader need not know the master's clock.  An empty server name means that there is no server.

Knows nothing of how a status is made: ``master.cluster_control`` makes the status of a cluster,
``thrift.cluster_methods`` the status of a standalone process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from columnar.model.region_info import RegionInfo

UNKNOWN_MS: Final = -1  # an unknown age

OPENING: Final = "OPENING"
OPEN: Final = "OPEN"
CLOSING: Final = "CLOSING"
SPLITTING: Final = "SPLITTING"
MERGING: Final = "MERGING"
OFFLINE: Final = "OFFLINE"
FAILED_OPEN: Final = "FAILED_OPEN"

BEING_CHANGED: Final = "it is being stopped or restarted"  # a note of a server
CHANGE_FAILED: Final = "its last stop or restart failed"  # the beginning of another one


@dataclass(frozen=True, slots=True)
class ServerStatus:
    name: str
    state: str  # starting, up, fencing, down
    incarnation: int = 0  # the number of its start; 0: never started
    is_drained: bool = False
    state_ms: int = UNKNOWN_MS  # how long it has been in that state
    regions: int = 0
    load: float = 0.0
    requests_per_s: float = 0.0
    moves: int = 0  # regions moving from or to it now
    version: str = ""
    address: str = ""  # of its own port
    pid: int = 0
    connections: int = 0
    notes: tuple[str, ...] = ()  # anything out of the ordinary
    busy_ms: int = 0  # how long it has been in one step, without answers; 0: it is not busy
    last_lines: tuple[str, ...] = ()  # of the log of the start that died last, newest line last


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    servers: tuple[ServerStatus, ...]  # by name
    regions: int
    unassigned: int  # regions that should be served and have no owner
    transitions: int
    is_balancing: bool = False  # the operator setting
    is_splitting: bool = True  # the operator setting
    is_writable: bool = True  # whether the catalogue can be written
    remarks: tuple[str, ...] = ()  # operations that are impossible now
    zones: Mapping[str, str] = field(default_factory=dict)  # by server, of those whose nodes have one
    nodes: Mapping[str, str] = field(default_factory=dict)  # by server, the node that had it last; empty on one machine
    living_nodes: tuple[str, ...] = ()  # the leader first; empty on one machine
    faults: tuple[str, ...] = ()  # the remarks about regions whose requests fail; with one the store is unhealthy


@dataclass(frozen=True, slots=True)
class RegionStatus:
    info: RegionInfo
    state: str  # OPENING, OPEN, ...
    state_ms: int = UNKNOWN_MS
    server: str = ""
    incarnation: int = 0
    address: str = ""  # of the server's own port
    epoch: int = 0
    source: str = ""  # the server that has not closed it yet
    home: str = ""  # the server on which it should be
    why: str = ""  # why it is on that server
    load: float = 0.0
    reads_per_s: float = 0.0
    writes_per_s: float = 0.0
    deliveries_per_s: float = 0.0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TableStatus:
    name: str
    regions: int
    servers: int  # those that own at least one of its regions
    load: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TransitionStatus:
    kind: str  # open, move, close, split, merge; waiting: for a server; failed: until a person assigns it
    info: RegionInfo
    state: str  # OPENING, ...
    source: str
    target: str
    state_ms: int
    why: str


@dataclass(frozen=True, slots=True)
class DecisionStatus:
    ago_ms: int
    kind: str  # give, prefer, close, split, merge, fence
    regions: tuple[str, ...]  # encoded names; for a region that no longer exists, its number
    server: str
    why: str
    text: str  # the whole decision as a sentence
    at_ms: int = 0  # of the Unix epoch; 0: unknown


@dataclass(frozen=True, slots=True)
class RowStatus:
    region: RegionStatus
    server: ServerStatus | None
    remarks: tuple[str, ...]  # why a request may wait, with the next step; empty: no obstacle
    decisions: tuple[DecisionStatus, ...]  # about the region, newest first


@dataclass(frozen=True, slots=True)
class PlannedMove:
    info: RegionInfo
    source: str
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    text: str  # a sentence
    is_done: bool = True  # False for a dry run, or if the change has only begun
    moves: tuple[PlannedMove, ...] = ()
    remarks: tuple[str, ...] = ()
    left: int = 0  # regions that a drained server or node still has
    is_resigning: bool = False  # the drained node leads, and resigns when it is empty


@dataclass(frozen=True, slots=True)
class MaintenanceStatus:
    """The holder of the maintenance lock, who may empty or end servers; times are as the leader counts them."""

    holder: str  # empty: nobody
    what: str  # the node that is emptied or ended; empty: no single one
    age_ms: int
    silent_ms: int  # since the holder's last renewal, as far as this leader has seen
    is_own: bool = False  # the holder is whoever requested this status


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``; an empty address gives an empty host and port 0."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port or 0)


def busy_words(busy_ms: int) -> str:
    """Return the part of a sentence about a server that has been busy in one step for ``busy_ms``."""
    return f"busy in one step for {busy_ms // 1_000} s: its requests wait, and it is killed if the step does not end"


def busy_remark(server: ServerStatus) -> str:
    return f"server {server.name}.{server.incarnation} is {busy_words(server.busy_ms)}"

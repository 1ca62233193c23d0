"""(pure) The status of a node, for its pages and metrics."""

from __future__ import annotations

from dataclasses import dataclass

from columnar.model.node_messages import NamedFacts


@dataclass(frozen=True, slots=True)
class LeaderStatus:
    """The leader that a node follows."""

    address: str = ""  # empty: no leader is known
    epoch: int = 0
    web: str = ""  # the URL of its pages; empty if unknown
    is_own: bool = False  # this node leads, and has its catalogue open


@dataclass(frozen=True, slots=True)
class LeaseStatus:
    """The lease of a node beside others, and its clock beside theirs."""

    left_s: float  # below 0: the lease does not hold
    clock_offset_s: float  # from this machine's clock to the fastest node's; 0: this one is the fastest


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The status of a node; the fields of ``cluster_status.PageStatus`` that the frame of a page shows come first."""

    version: str  # ``version.full``
    address: str
    data_folder: str
    uptime_s: float
    node: str  # the incarnation
    leader: LeaderStatus
    lease: LeaseStatus | None  # None: the only node of its folder needs none
    servers: tuple[NamedFacts, ...]
    ready: int  # how many of them take connections
    faults: tuple[str, ...] = ()  # sentences
    obstacles: tuple[str, ...] = ()  # why the node is not ready, the first one first; none if it is ready
    hot_modules: str = ""
    has_triggers_page: bool = False

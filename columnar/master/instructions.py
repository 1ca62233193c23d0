"""(pure) Instructions of a master: the values that a plan consists of, and the requests of operators to a master.

    plan -> cluster state   Give, Prefer, Close, Split, Merge, Say
    cluster state -> owner  Open, Close, Renumber
    cluster state -> shell  Split, Merge, Fence; Write, NotifyServer, RemoveLog, Answer, Wake

Every instruction has a reason, which the shell shows as it is (``Decision``).  A region is named by its id, a server
by its name, and by its incarnation if only one start of a server is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from columnar.master.catalogue_rows import OperatorSettings
from columnar.model.owner import Incarnation, Owner
from columnar.model.owner_messages import Segments
from columnar.model.region_info import RegionInfo

DECISIONS_KEPT: Final = 200
REQUESTED: Final = "asked for"  # the reason of a split or merge that a person requested


# --- planned -----------------------------------------------------------------------------------------


class Reason(Enum):
    """The kind of a reason, for counting; each name is a label."""

    NEW = "new"
    START = "start"
    RETURNED = "back"  # to the server that had not closed it yet
    ASSIGNED = "assigned"
    REQUESTED = "asked"
    MERGE = "merge"
    DRAIN = "drain"
    HOME = "home"
    BALANCE = "balance"
    DEATH = "death"
    FAILURE = "failure"  # to open it

    @property
    def is_move(self) -> bool:
        """Return whether a region that was served goes to another server, or to another start of its server."""
        return self not in (Reason.NEW, Reason.START, Reason.RETURNED, Reason.ASSIGNED)


@dataclass(frozen=True, slots=True)
class Give:
    """The region's next owner is the living incarnation of ``server``."""

    region: int
    server: str
    why: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Prefer:
    """The region's ideal server is ``server`` from now on; a later plan moves the region there."""

    region: int
    server: str
    why: str


@dataclass(frozen=True, slots=True)
class Split:
    region: int
    row: bytes | None  # None: in the middle
    why: str

    @property
    def is_requested(self) -> bool:
        return self.why == REQUESTED


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge two neighbours that have the same owner."""

    regions: tuple[int, int]
    why: str

    @property
    def is_requested(self) -> bool:
        return self.why == REQUESTED


@dataclass(frozen=True, slots=True)
class Say:
    text: str


# --- requests to owners ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """Serve the region at the owner's epoch, after the logs in ``owner.unreplayed_logs`` are replayed into its store.

    ``is_doubted``: the store could not be opened last time; the server reports ``opened`` only when the store is open.
    """

    region: int
    owner: Owner
    why: str
    is_doubted: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Give the region up at ``epoch`` for ever."""

    region: int
    epoch: int
    why: str


@dataclass(frozen=True, slots=True)
class Renumber:
    """Continue to serve the region at the owner's epoch; open it if an earlier Close was carried out already."""

    region: int
    owner: Owner
    why: str


@dataclass(frozen=True, slots=True)
class Fence:
    """Make certain that the incarnation answers nothing any more, then report it as fenced."""

    server: Incarnation
    why: str


# --- done by the shell -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Write:
    """Write these rows of the catalogue in one batch, and report its number.

    Writes are carried out in the order of their numbers.  Owner rows of regions that the catalogue does not have are
    left out.
    """

    number: int
    owners: tuple[tuple[RegionInfo, Owner], ...]
    sealed: tuple[tuple[Incarnation, Segments], ...]
    forgotten: tuple[Incarnation, ...]  # their ``s/`` rows are erased
    operator_settings: OperatorSettings | None


@dataclass(frozen=True, slots=True)
class NotifyServer:
    server: Incarnation
    request: OwnerRequest


@dataclass(frozen=True, slots=True)
class RemoveLog:
    """Remove the incarnation's folder: no row names the incarnation any more."""

    server: Incarnation


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request; ``error`` is None if the request was carried out."""

    request: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Wake:
    """Report a tick at this time, or earlier."""

    at_ms: int


Instruction: TypeAlias = Give | Prefer | Close | Split | Merge | Say
OwnerRequest: TypeAlias = Open | Close | Renumber
Output: TypeAlias = Write | NotifyServer | Fence | Split | Merge | RemoveLog | Answer | Wake


# --- requests of operators ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MoveRegion:
    region: int
    server: str | None  # None: the planner chooses
    why: str = "asked for"


@dataclass(frozen=True, slots=True)
class AssignRegion:
    region: int


@dataclass(frozen=True, slots=True)
class UnassignRegion:
    """Close the region and leave it closed until ``AssignRegion``."""

    region: int


@dataclass(frozen=True, slots=True)
class SplitRegion:
    region: int
    row: bytes | None = None


@dataclass(frozen=True, slots=True)
class MergeRegions:
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class DrainServer:
    """Keep the server empty if ``on``; otherwise let it get regions again."""

    server: str
    on: bool = True


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Drain all servers of a node at once, so that none of them gets the regions of another.

    ``until_restart``: the incarnations after which the drain ends; a server that an operator had drained before stays
    drained.
    """

    servers: tuple[str, ...]
    on: bool = True
    until_restart: tuple[Incarnation, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchSetting:
    setting: Literal["balancer", "auto_split"]  # a field of ``OperatorSettings``
    on: bool


@dataclass(frozen=True, slots=True)
class BalanceNow:
    pass


@dataclass(frozen=True, slots=True)
class EvacuateServer:
    """Empty a server before it stops if ``on``; otherwise let it get regions again.  Lost when the master restarts."""

    server: str
    on: bool


RegionRequest: TypeAlias = MoveRegion | AssignRegion | UnassignRegion | SplitRegion | MergeRegions
OperatorSettingRequest: TypeAlias = DrainServer | DrainNode | SwitchSetting
Request: TypeAlias = RegionRequest | OperatorSettingRequest | BalanceNow | EvacuateServer


# --- what a plan is made from, and what it is ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Throttles:
    """Limits of the moves, splits and merges under way."""

    moves_per_server: int = 2  # as source or as target
    moves: int = 8
    moves_per_drained: int = 4  # of a drained server, as source
    changes_per_server: int = 1  # splits and merges
    changes: int = 8


@dataclass(frozen=True, slots=True)
class Plan:
    instructions: tuple[Instruction, ...]
    remarks: tuple[str, ...]  # what cannot be done, for operators
    wake_at_ms: int | None  # the plan may change then, without any event
    has_balanced: bool = False  # a round of balancing was due


@dataclass(frozen=True, slots=True)
class Decision:
    """An instruction that was carried out, for people."""

    at_ms: int
    what: Instruction | Fence

"""(pure) Messages between a master and the owners of regions: values.

A message is a frozen value, and so is its answer; in one process they are handed over as they are, in a cluster
they travel.  Each is answered by an error, too, and an error leaves things as they were, unless it says that the
outcome is unknown.

    master -> owner    tables     Publish, Withdraw, CloseTable, CloseRegions, FollowSchema, PrepareRegions
                       triggers   PublishTriggers, CheckFunction, CheckSource, ReloadFunctions, Undelivered, LogReach
                       views      PublishViews, BackfilledRegions
                       copies     PauseDeliveries, ReleaseDeliveries, CopyRegion
                       changes    MiddleRow, BeginChange, FinishChange, CallOffChange, SettleChange, ReclaimSpace
                                  Loads
    owner -> master    Commit, Backfilled

Knows nothing of who answers, nor of how a message gets there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from columnar.model.derivations import Triggers, ViewSet
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table

R = TypeVar("R")


class Message(Generic[R]):
    """Its answer is an ``R``."""

    __slots__ = ()


class Peer(Protocol):
    """An owner of regions, or the master: it answers messages."""

    async def request_peer(self, message: Message[R]) -> R: ...


# --- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publish(Message[None]):
    """Serve the table by this schema, in this state and in these regions from now on."""

    table: Table
    is_enabled: bool
    regions: tuple[RegionInfo, ...]  # ascending


@dataclass(frozen=True, slots=True)
class Withdraw(Message[None]):
    """There is no such table any more."""

    table: str


@dataclass(frozen=True, slots=True)
class CloseTable(Message[None]):
    """Answered when no region of the table is open any more; requests for it are refused already."""

    table: str


@dataclass(frozen=True, slots=True)
class CloseRegions(Message[None]):
    """Answered when none of these, which no table has any more, is open."""

    regions: tuple[RegionInfo, ...]


@dataclass(frozen=True, slots=True)
class FollowSchema(Message[None]):
    """Answered when every open region of the table serves by its schema."""

    table: str


@dataclass(frozen=True, slots=True)
class PrepareRegions(Message[None]):
    """Make the stores of regions that are not served yet, so that their first requests need not wait for it."""

    table: Table
    regions: tuple[RegionInfo, ...]


# --- triggers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublishTriggers(Message[None]):
    """To every owner: work by these triggers from now on, all that there are.

    Answered when the owner does so.  For a trigger that is being added: its table logs in every region that is open
    here, and where the trigger begins is on disk in each of them; a region that opens later gets that at its opening.
    An owner that could not do so goes on as before, and is told what becomes of the trigger.
    """

    triggers: Triggers


@dataclass(frozen=True, slots=True)
class CheckFunction(Message[str | None]):
    """To one owner: have a worker import the function; what is wrong with it, None: it can be a trigger's."""

    function: str  # ``module:function``


@dataclass(frozen=True, slots=True)
class CheckSource(Message[str | None]):
    """To one owner: a process that ends afterwards imports functions as their source is on disk; as ``CheckFunction``.

    Workers go on with what they have: ``ReloadFunctions`` follows if nothing is wrong.
    """

    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReloadFunctions(Message[None]):
    """To every owner: workers run the source of functions as it is on disk now, from the next call on."""


@dataclass(frozen=True, slots=True)
class Undelivered(Message[dict[str, int]]):
    """To every owner, of a table that is dropped: how many changes each of its triggers had still to see here."""

    table: str
    triggers: tuple[str, ...]


NOWHERE: Final = 1 << 62  # the log of some region keeps no changes


@dataclass(frozen=True, slots=True)
class LogReach(Message[int]):
    """To every owner: the time (ms) from which on the logs of a table are whole; 0: no region is here, or NOWHERE."""

    table: str


@dataclass(frozen=True, slots=True)
class PublishViews(Message[None]):
    """To every owner: keep these views from now on, all that there are.  As ``PublishTriggers``.

    Answered when the owner does so.  For a view that is being added: its sources log in every region that is open
    here, and where the view begins is on disk in each of them; a region that opens later gets that at its opening.
    """

    views: ViewSet


@dataclass(frozen=True, slots=True)
class BackfilledRegions(Message[dict[str, list[int]]]):
    """To every owner: for each of these views, the ids of the sources' regions of this owner that are backfilled.

    A region that is backfilled stays so for ever, and so do its successors.  For each further backfilled region of
    a view that is being built the owner sends ``Backfilled``.
    """

    views: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PauseDeliveries(Message[None]):
    """No trigger runs, no view changes and no cursor moves on disk until ``ReleaseDeliveries``.  RetryLater.

    Then every copy of a table that triggers write holds what was derived from changes that are in the copy of
    their source, and of changes that the cursors have not passed: those come again.
    """


@dataclass(frozen=True, slots=True)
class ReleaseDeliveries(Message[None]):
    pass


# --- copies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyRegion(Message[None]):
    """The region's store as it is now, log and cursors and all, at ``path``; the region serves meanwhile."""

    region: RegionInfo
    path: str


# --- replacement of regions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegionChange:
    """A split or a merge: ``fresh`` hold together exactly the rows of ``gone``."""

    gone: tuple[RegionInfo, ...]
    fresh: tuple[RegionInfo, ...]  # announced: their folders may be made
    epoch: int  # the highest of ``gone`` at the owner that carries it out


@dataclass(frozen=True, slots=True)
class MiddleRow(Message[bytes | None]):
    """The row at which the region falls in two halves; None: it has fewer than two rows."""

    region: RegionInfo


@dataclass(frozen=True, slots=True)
class BeginChange(Message[None]):
    """All that can be done while the old regions serve: the successors' stores, but for the last few rows."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class FinishChange(Message[float]):
    """Let requests wait, bring the rest over, ask for ``Commit``, serve the successors.  Answer: the pause in seconds.

    OutcomeUnknown: neither old nor new regions are served until ``SettleChange``, or a restart.
    """

    change: RegionChange


@dataclass(frozen=True, slots=True)
class CallOffChange(Message[None]):
    """The old regions serve on, and nothing is left of the new ones.  Does nothing where it is over already."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class SettleChange(Message[None]):
    """After an unknown outcome: the catalogue names the old regions, which serve again."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class ReclaimSpace(Message[None]):
    """Rewrite those files of a new region that hold rows outside its range."""

    region: RegionInfo


@dataclass(frozen=True, slots=True)
class RegionLoad:
    """The size of an open region, and its bound."""

    info: RegionInfo
    size_bytes: int
    limit_bytes: int  # of its table


@dataclass(frozen=True, slots=True)
class Loads(Message[tuple[RegionLoad, ...]]):
    """Ask for the loads of open regions of users' tables that may be split; a closed region does not grow."""


@dataclass(frozen=True, slots=True)
class Commit(Message[None]):
    """To the master: write the catalogue, which is the change's commit.  OutcomeUnknown; else nothing was written."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class Backfilled(Message[None]):
    """To the master: one more region of this owner is backfilled for this view; ``BackfilledRegions`` lists them."""

    view: str

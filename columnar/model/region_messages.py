"""(pure) The messages between a master and the owners of regions, as values.

A message and its answer are frozen values, which are passed as objects within one process and sent in a cluster.  Any
message may be answered by an error.  An error means that nothing changed, unless it says that the outcome is
unknown.

    master -> owner    tables     Publish, Withdraw, CloseTable, CloseRegions, FollowSchema, PrepareRegions
                       triggers   PublishTriggers, CheckFunction, CheckSource, ReloadFunctions, Undelivered, LogReach
                       users      PublishRights
                       views      PublishViews, BackfilledRegions
                       feeds      PublishFeeds
                       copies     PauseDeliveries, ReleaseDeliveries, CopyRegion
                       changes    MiddleRow, BeginChange, FinishChange, CallOffChange, SettleChange, ReclaimSpace
                                  Loads
    owner -> master    Commit, Backfilled

Knows nothing of the receivers, nor of the transport.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from columnar.model.accounts import Account
from columnar.model.derivations import Triggers, ViewSet
from columnar.model.feeds import FeedSet
from columnar.model.region_info import RegionInfo
from columnar.model.rights import Grant, RightsRecord
from columnar.model.schema import Table

R = TypeVar("R")


class Message(Generic[R]):
    """A message whose answer is an ``R``."""

    __slots__ = ()


class Peer(Protocol):
    """An owner of regions or the master, which answers messages."""

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
    """The table no longer exists."""

    table: str


@dataclass(frozen=True, slots=True)
class CloseTable(Message[None]):
    """Close the regions of a table whose requests are refused already.  Answered when none of the regions is open."""

    table: str


@dataclass(frozen=True, slots=True)
class CloseRegions(Message[None]):
    """Close these regions, which no table has any more.  Answered when none of the regions is open."""

    regions: tuple[RegionInfo, ...]


@dataclass(frozen=True, slots=True)
class FollowSchema(Message[None]):
    """Apply the table's published schema.  Answered when every open region of the table serves by that schema."""

    table: str


@dataclass(frozen=True, slots=True)
class PrepareRegions(Message[None]):
    """Create the stores of regions that are not served yet, so that their first requests need not wait for that."""

    table: Table
    regions: tuple[RegionInfo, ...]


# --- triggers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublishTriggers(Message[None]):
    """To every owner: work with this set of triggers, which is complete, from now on.

    Answered when the owner does so.  If a trigger is being added, every region of its table that is open here must log
    changes, and must have recorded on disk where the trigger begins.  A region that opens later does both when it
    opens.  An owner that fails to do so continues as before, and learns later what becomes of the trigger.
    """

    triggers: Triggers


@dataclass(frozen=True, slots=True)
class PublishRights(Message[None]):
    """To every owner: decide by these users and rights, which are complete, from the next call on."""

    grants: tuple[Grant, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]  # name, members
    accounts: tuple[Account, ...]
    unknown_key: str = field(default="", repr=False)

    @property
    def record(self) -> RightsRecord:
        accounts = {one.name: one for one in self.accounts}
        return RightsRecord(self.grants, dict(self.groups), accounts, self.unknown_key)


@dataclass(frozen=True, slots=True)
class CheckFunction(Message[str | None]):
    """To one owner: have a worker import the function.  The answer is the fault, or None if there is none."""

    function: str  # ``module:function``


@dataclass(frozen=True, slots=True)
class CheckSource(Message[str | None]):
    """To one owner: have a new process import the functions from their present source on disk, and end.

    The answer is that of ``CheckFunction``.  Workers continue with the source that they have loaded; the master sends
    ``ReloadFunctions`` if nothing is wrong.
    """

    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReloadFunctions(Message[None]):
    """To every owner: workers reload the source of functions from disk and use it from the next call on."""


@dataclass(frozen=True, slots=True)
class Undelivered(Message[dict[str, int]]):
    """To every owner, for a dropped table: request how many changes each of its triggers had not received here."""

    table: str
    triggers: tuple[str, ...]


NOWHERE: Final = 1 << 62  # at least one region's log keeps no changes


@dataclass(frozen=True, slots=True)
class LogReach(Message[int]):
    """To every owner: request the time (ms) from which on the logs of a table are complete.

    The answer is 0 if the owner has no region of the table, and NOWHERE if the log of one of its regions keeps no
    changes.
    """

    table: str


@dataclass(frozen=True, slots=True)
class PublishViews(Message[None]):
    """To every owner: maintain this set of views, which is complete, from now on.  As ``PublishTriggers``.

    Answered when the owner does so.  If a view is being added, every region of its sources that is open here must log
    changes, and must have recorded on disk where the view begins.  A region that opens later does both when it opens.
    """

    views: ViewSet


@dataclass(frozen=True, slots=True)
class PublishFeeds(Message[None]):
    """To every owner: follow this set of feeds, which is complete, from now on.  As ``PublishTriggers``.

    Not sent while the store never had a feed.
    """

    feeds: FeedSet


@dataclass(frozen=True, slots=True)
class BackfilledRegions(Message[dict[str, list[int]]]):
    """To every owner: request, for each view, the ids of this owner's backfilled regions of the view's sources.

    A backfilled region stays backfilled for ever, and its successors are backfilled too.  For each further backfilled
    region of a view that is being built the owner sends ``Backfilled``.
    """

    views: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PauseDeliveries(Message[None]):
    """Run no trigger, change no view and move no cursor on disk until ``ReleaseDeliveries``.  May raise RetryLater.

    Regions can then be copied consistently.  Every effect in the copy of a table that triggers write then comes from a
    change in the copy of its source, or from a change that the cursors have not passed, which is delivered again.
    """


@dataclass(frozen=True, slots=True)
class ReleaseDeliveries(Message[None]):
    pass


# --- copies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyRegion(Message[None]):
    """Copy the region's store with its log and cursors to ``path``, as it is now; the region serves meanwhile."""

    region: RegionInfo
    path: str  # relative to the data folder


# --- replacement of regions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegionChange:
    """A split or a merge: the regions in ``fresh`` together hold exactly the rows of the regions in ``gone``."""

    gone: tuple[RegionInfo, ...]
    fresh: tuple[RegionInfo, ...]  # announced in the catalogue, so their folders may be made
    epoch: int  # the highest of ``gone`` at the owner that carries it out


@dataclass(frozen=True, slots=True)
class MiddleRow(Message[bytes | None]):
    """Request the row that divides the region into halves; the answer is None if it has fewer than two rows."""

    region: RegionInfo


@dataclass(frozen=True, slots=True)
class BeginChange(Message[None]):
    """Fill the successors' stores while the old regions serve, so that only the last few rows are missing there."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class FinishChange(Message[float]):
    """Make requests wait, copy the remaining rows, request ``Commit`` from the master, and serve the successors.

    The answer is the pause in seconds.  After OutcomeUnknown neither old nor new regions are served until
    ``SettleChange`` or a restart.
    """

    change: RegionChange


@dataclass(frozen=True, slots=True)
class CallOffChange(Message[None]):
    """Undo the change: the old regions continue to serve, the new ones are removed.  Ignored once it has ended."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class SettleChange(Message[None]):
    """End a change with unknown outcome: the catalogue names the old regions, so they serve again."""

    change: RegionChange


@dataclass(frozen=True, slots=True)
class ReclaimSpace(Message[None]):
    """Rewrite the files of a new region that hold rows outside its range."""

    region: RegionInfo


@dataclass(frozen=True, slots=True)
class RegionLoad:
    """The size of an open region, and its bound."""

    info: RegionInfo
    size_bytes: int
    limit_bytes: int  # of its table


@dataclass(frozen=True, slots=True)
class Loads(Message[tuple[RegionLoad, ...]]):
    """Request the loads of the open regions of users' tables that may be split; a closed region does not grow."""


@dataclass(frozen=True, slots=True)
class Commit(Message[None]):
    """To the master: write the catalogue, which commits the change.

    After an error other than OutcomeUnknown nothing was written.
    """

    change: RegionChange


@dataclass(frozen=True, slots=True)
class Backfilled(Message[None]):
    """To the master: a further region of this owner is backfilled for the view; ``BackfilledRegions`` lists all."""

    view: str

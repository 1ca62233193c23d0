"""(pure) The regions that a master assigned to a server: the master's requests in, instructions and reports out.

    stage       a region                                                             its epoch
    RECOVERING  has unreplayed logs, to be replayed into its store, or is doubted    owned, not served yet
    SERVING     may be served; its store is opened for a request, or before          owned
    LEAVING     is served until its store is closed; then the next owner may open it given up
    LEFT        was closed locally, could not be opened, or was never owned          given up

    request     RECOVERING             SERVING                     LEAVING                 LEFT, or never assigned
    open        leaves, then opens     leaves, then opens          opens when it has left  RECOVERING or SERVING
    renumber    leaves, then opens     its epoch rises in place    opens when it has left  as open
    close       LEAVING                LEAVING                     waits                   closed

A region that is to leave while it is RECOVERING has its opening called off: its next owner would open it once more.

Each line is about a later epoch than the region's; a close also about the same.  A repeated request is answered again
without further effect; to open at an older epoch is refused, and to close at one is done already.

Invariants (``check``, and the model in tests/model/test_told_regions_model.py):
    T1. A region is owned at an epoch that a master assigned, once, and at no epoch at or below one that was given up
        (C2).
    T2. ``ReportOpened`` comes only when no log is unreplayed (C4), ``ReportClosed`` only when no store of the region
        is open, and the epoch is refused for ever.
    T3. Each request is answered: by a report of its epoch, or by ``Refuse``.
    T4. A leader with a lower epoch than the last one is refused.

Knows nothing of stores, links, futures and time, nor of clients' requests: ``hosting_state`` knows which store is open
and which regions are owned (``owns``).  The shell keeps the unanswered requests, by region and epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.regions.life.hosting_state import Event, HostingState, State


class Stage(Enum):
    RECOVERING = auto()
    SERVING = auto()
    LEAVING = auto()
    LEFT = auto()


class Why(Enum):
    """The reason of a ``Refuse``."""

    OLD_LEADER = auto()  # another master leads by now; this says nothing about the region
    OLD_EPOCH = auto()  # the region was owned, or is owned, at a later epoch
    GIVEN_UP = auto()  # this server will not serve the region at that epoch
    STOPPING = auto()  # the server is stopping; it will not serve the region at that epoch


# --- instructions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BringIn:
    """Open the region's store with ``owner.unreplayed_logs``; report ``opened`` or ``not_opened``."""

    region: int
    owner: Owner


@dataclass(frozen=True, slots=True)
class CallOff:
    """Report ``not_opened`` now if the opening for a ``BringIn`` has not begun; else its end is reported as ever."""

    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class MayServe:
    """No log is unreplayed: the first request may open the region, or the shell opens it before if there is room."""

    region: int
    owner: Owner


@dataclass(frozen=True, slots=True)
class RaiseEpoch:
    """Have the region's store, if one is open, write its records at ``epoch`` from now on."""

    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Flush while serving, block, quiesce, close; report ``closed``."""

    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ReportOpened:
    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ReportClosed:
    region: int
    epoch: int
    has_unreplayed_log: bool


@dataclass(frozen=True, slots=True)
class ReportFailed:
    region: int
    epoch: int
    why: str
    is_damaged: bool


@dataclass(frozen=True, slots=True)
class Refuse:
    """The answer to requests to open or renumber at ``epoch``; to every request about it if the leader is old."""

    region: int
    epoch: int
    why: Why


AssignmentOutput: TypeAlias = (
    BringIn | CallOff | MayServe | RaiseEpoch | Leave | ReportOpened | ReportClosed | ReportFailed | Refuse
)


@dataclass(slots=True)
class _AssignedRegion:
    owner: Owner
    first: int  # the epoch at which ownership began; the owner's is above it after a renumbering in place
    stage: Stage
    has_unreplayed_log: bool  # once LEFT, or while RECOVERING: this server's log may have writes that the store lacks
    unanswered_closes: tuple[int, ...] = ()  # epochs of the closes that are not answered
    next: Owner | None = None  # to be opened when it has left


class AssignedRegions:
    """Owned by the loop.  Each event returns what is to be done, in this order."""

    def __init__(self, local_server: Incarnation, hosting: HostingState) -> None:
        assert hosting.epoch is None, "a standalone is told nothing"
        self.leader = 0  # the highest epoch of a leader so far
        self._local_server = local_server
        self._hosting = hosting
        self._regions: dict[int, _AssignedRegion] = {}
        self._doubted: dict[int, int] = {}  # region -> the epoch at which it is SERVING only with its store open

    # --- requests of a master ----------------------------------------------------------------------

    def doubt(self, region: int, epoch: int) -> None:
        """Make the region RECOVERING first, even without unreplayed logs.  Before ``on_open_region`` at that epoch."""
        self._doubted[region] = epoch

    def on_open_region(self, region: int, owner: Owner, leader: int) -> tuple[AssignmentOutput, ...]:
        """Handle a request to open.  ``owner``: the row on disk, which names this server and the unreplayed logs."""
        if not self._is_led_by(leader):
            return (Refuse(region, owner.epoch, Why.OLD_LEADER),)
        assigned = self._regions.get(region)
        if assigned is None or assigned.stage is Stage.LEFT:
            return self._begin(region, owner, assigned is not None and assigned.has_unreplayed_log)
        if assigned.stage is Stage.LEAVING:
            return self._opens_after(region, assigned, owner)
        if owner.epoch < assigned.owner.epoch:
            return (Refuse(region, owner.epoch, Why.OLD_EPOCH),)
        if owner.epoch > assigned.owner.epoch:
            assigned.next = owner
            return self._leave(region, assigned)
        return (ReportOpened(region, owner.epoch),) if assigned.stage is Stage.SERVING else ()

    def on_renumber_region(self, region: int, owner: Owner, leader: int) -> tuple[AssignmentOutput, ...]:
        """Handle a request to raise the epoch.

        A region that is served had every log of ``owner.unreplayed_logs`` but this server's own replayed before.
        """
        assigned = self._regions.get(region)
        if assigned is None or assigned.stage is not Stage.SERVING or owner.epoch <= assigned.owner.epoch:
            return self.on_open_region(region, owner, leader)
        if not self._is_led_by(leader):
            return (Refuse(region, owner.epoch, Why.OLD_LEADER),)
        self._own(region, owner.epoch)
        assigned.owner = owner
        return (RaiseEpoch(region, owner.epoch), ReportOpened(region, owner.epoch))

    def on_close_region(self, region: int, epoch: int, leader: int) -> tuple[AssignmentOutput, ...]:
        if not self._is_led_by(leader):
            return (Refuse(region, epoch, Why.OLD_LEADER),)
        assigned = self._regions.get(region)
        if assigned is None:
            assigned = self._regions[region] = _AssignedRegion(
                Owner(self._local_server, epoch), epoch, Stage.LEFT, has_unreplayed_log=False
            )
            self._give_up_unseen(region, epoch)
        if assigned.stage is Stage.LEFT:
            if epoch > assigned.owner.epoch:
                self._give_up_unseen(region, epoch)
                assigned.owner, assigned.first = Owner(self._local_server, epoch), epoch
            return (ReportClosed(region, epoch, assigned.has_unreplayed_log),)
        if epoch < assigned.owner.epoch:
            # Perhaps renumbered in place since: its writes may be in the log only.
            return (ReportClosed(region, epoch, has_unreplayed_log=True),)
        if epoch not in assigned.unanswered_closes:
            assigned.unanswered_closes = (*assigned.unanswered_closes, epoch)
        refused: tuple[AssignmentOutput, ...] = ()
        if assigned.next is not None and assigned.next.epoch <= epoch:
            refused = (Refuse(region, assigned.next.epoch, Why.GIVEN_UP),)
            assigned.next = None
        return refused if assigned.stage is Stage.LEAVING else refused + self._leave(region, assigned)

    # --- reports of the shell ----------------------------------------------------------------------

    def opened(self, region: int, epoch: int) -> tuple[AssignmentOutput, ...]:
        """Handle the success of BringIn: the store has every record of the unreplayed logs, on disk."""
        assigned = self._regions[region]
        assert assigned.owner.epoch == epoch, "it was told once"
        if assigned.stage is Stage.LEAVING:
            return (Leave(region, epoch),)
        assert assigned.stage is Stage.RECOVERING, assigned.stage
        assigned.stage = Stage.SERVING
        return (ReportOpened(region, epoch),)

    def not_opened(self, region: int, epoch: int, why: str, *, is_damaged: bool) -> tuple[AssignmentOutput, ...]:
        """Handle the failure of BringIn: the region is refused at that epoch for ever."""
        assigned = self._regions[region]
        assert assigned.owner.epoch == epoch, "it was told once"
        if assigned.stage is Stage.LEAVING:
            return self._left(region, assigned)
        assert assigned.stage is Stage.RECOVERING, assigned.stage
        assigned.stage = Stage.LEFT
        self._hosting.apply_event(region, Event.GIVEN_UP)
        return (ReportFailed(region, epoch, why, is_damaged),)

    def closed(self, region: int, epoch: int, *, has_unreplayed_log: bool) -> tuple[AssignmentOutput, ...]:
        """Handle the end of Leave: no store of the region is open.

        ``has_unreplayed_log``: not every acknowledged write is on disk in its store.
        """
        assigned = self._regions[region]
        assert assigned.stage is Stage.LEAVING, assigned.stage
        assert assigned.owner.epoch == epoch, "it was told once"
        assigned.has_unreplayed_log = has_unreplayed_log
        return self._left(region, assigned)

    # --- splits and merges -------------------------------------------------------------------------

    def made(self, region: int, owner: Owner) -> None:
        """Own a new region of a split or merge that this server committed: no master requests its opening."""
        assert region not in self._regions, "a new region"
        self._own(region, owner.epoch)
        self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.SERVING, has_unreplayed_log=False)

    def forget(self, regions: Iterable[int]) -> None:
        """Forget regions that no table has any more; none of their stores is open."""
        for region in regions:
            self._regions.pop(region, None)
            self._doubted.pop(region, None)
            self._hosting.forget(region)

    # --- status ------------------------------------------------------------------------------------

    def owner_of(self, region: int) -> Owner | None:
        """Return the assigned row, or None if the region is not owned."""
        assigned = self._regions.get(region)
        return assigned.owner if assigned is not None and assigned.stage is not Stage.LEFT else None

    def had(self) -> list[int]:
        """Return the regions that no other server may own."""
        return [region for region, assigned in self._regions.items() if assigned.stage is not Stage.LEFT]

    def epochs_of(self, region: int) -> range:
        """Return the epochs of the current, unbroken ownership period.

        A store that failed is opened again with this server's own records of these epochs.  Records of an earlier
        ownership period must not be replayed again: another server wrote to the store since.
        """
        assigned = self._regions.get(region)
        if assigned is None or assigned.stage is Stage.LEFT:
            return range(0)
        return range(assigned.first, assigned.owner.epoch + 1)

    def stage_of(self, region: int) -> Stage | None:
        assigned = self._regions.get(region)
        return assigned.stage if assigned is not None else None

    def serving(self) -> dict[int, int]:
        """Return the epochs of the regions in SERVING, for a hello."""
        return {
            region: assigned.owner.epoch
            for region, assigned in self._regions.items()
            if assigned.stage is Stage.SERVING
        }

    def given_up(self) -> dict[int, tuple[int, bool]]:
        """Return the last refused epoch and whether the store may lack writes of it, by region, for a hello."""
        left = ((region, assigned) for region, assigned in self._regions.items() if assigned.stage is Stage.LEFT)
        return {region: (assigned.owner.epoch, assigned.has_unreplayed_log) for region, assigned in left}

    # --- rules -------------------------------------------------------------------------------------

    def _is_led_by(self, leader: int) -> bool:
        """Tell whether the leader is the newest one so far (T4)."""
        self.leader = max(leader, self.leader)
        return leader == self.leader

    def _own(self, region: int, epoch: int) -> None:
        is_taken = self._hosting.own(region, epoch)
        assert is_taken, f"T1: region {region} is told at {epoch}, after {self._hosting.epoch_of(region)}"

    def _give_up_unseen(self, region: int, epoch: int) -> None:
        """Give up the region at an epoch at which it was never owned."""
        self._own(region, epoch)
        self._hosting.apply_event(region, Event.GIVEN_UP)

    def _begin(self, region: int, owner: Owner, has_unreplayed_log: bool) -> tuple[AssignmentOutput, ...]:
        if not self._hosting.own(region, owner.epoch):
            return (Refuse(region, owner.epoch, Why.GIVEN_UP),)
        if self._hosting.is_stopping:
            self._hosting.apply_event(region, Event.GIVEN_UP)
            self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.LEFT, has_unreplayed_log)
            return (Refuse(region, owner.epoch, Why.STOPPING),)
        if not owner.unreplayed_logs and self._doubted.pop(region, 0) != owner.epoch:
            self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.SERVING, has_unreplayed_log=False)
            return (MayServe(region, owner), ReportOpened(region, owner.epoch))
        self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.RECOVERING, self._names_local_server(owner))
        return (BringIn(region, owner),)

    def _names_local_server(self, owner: Owner) -> bool:
        return any(period.server == self._local_server for period in owner.unreplayed_logs)

    def _opens_after(self, region: int, assigned: _AssignedRegion, owner: Owner) -> tuple[AssignmentOutput, ...]:
        """Handle a request to open a region that is leaving."""
        lowest = max(assigned.owner.epoch, *assigned.unanswered_closes, 0)
        if owner.epoch <= lowest:
            return (Refuse(region, owner.epoch, Why.GIVEN_UP),)
        before, assigned.next = assigned.next, owner
        if before is None or before.epoch == owner.epoch:
            return ()
        if before.epoch > owner.epoch:
            assigned.next = before
        return (Refuse(region, min(before.epoch, owner.epoch), Why.OLD_EPOCH),)

    def _leave(self, region: int, assigned: _AssignedRegion) -> tuple[AssignmentOutput, ...]:
        was_bringing, assigned.stage = assigned.stage is Stage.RECOVERING, Stage.LEAVING
        epoch = assigned.owner.epoch
        self._hosting.give_up(region)
        if was_bringing:
            return (Refuse(region, epoch, Why.GIVEN_UP), CallOff(region, epoch))
        return (Leave(region, epoch),)

    def _left(self, region: int, assigned: _AssignedRegion) -> tuple[AssignmentOutput, ...]:
        closes, after = assigned.unanswered_closes, assigned.next
        if after is not None and assigned.has_unreplayed_log and not self._names_local_server(after):
            # The master sent the request before it could know that the store lacks records of this server's log.
            own = (
                OwnershipPeriod(self._local_server, epoch) for epoch in range(assigned.first, assigned.owner.epoch + 1)
            )
            after = replace(after, unreplayed_logs=(*after.unreplayed_logs, *own))
        self._hosting.apply_event(region, Event.GIVEN_UP)
        assigned.stage, assigned.unanswered_closes, assigned.next = Stage.LEFT, (), None
        last = max((assigned.owner.epoch, *closes))
        if last > assigned.owner.epoch:
            self._give_up_unseen(region, last)
            assigned.owner, assigned.first = Owner(self._local_server, last), last
        reports = tuple(ReportClosed(region, epoch, assigned.has_unreplayed_log) for epoch in sorted(closes))
        return reports if after is None else reports + self._begin(region, after, assigned.has_unreplayed_log)

    def check(self) -> None:
        self._hosting.check()
        for region, assigned in self._regions.items():
            state, is_owned = self._hosting.state(region), self._hosting.owns(region)
            assert assigned.first <= assigned.owner.epoch == self._hosting.epoch_of(region), "T1"
            assert is_owned == (assigned.stage in (Stage.RECOVERING, Stage.SERVING)), "T1"
            assert (state is State.CLOSED) == (assigned.stage is Stage.LEFT), "T2"
            assert assigned.stage is Stage.LEAVING or not (assigned.unanswered_closes or assigned.next), "T3"
            assert assigned.next is None or assigned.next.epoch > max(
                (assigned.owner.epoch, *assigned.unanswered_closes)
            ), "T1"

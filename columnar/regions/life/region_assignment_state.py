"""(pure) The regions that a master told a server to own: what it told in, instructions and reports out.

    stage       a region                                                             its epoch
    BRINGING    has logs behind it, which are brought into its store, or is doubted  owned, not served yet
    SERVING     may be served; its store is opened for a request, or before          owned
    LEAVING     is served until its store is closed; then the next owner may have it given up
    LEFT        was closed here, could not be opened, or was never had               given up

    told        BRINGING               SERVING                     LEAVING                 LEFT, or never told
    open        leaves, then opens     leaves, then opens          opens when it has left  BRINGING or SERVING
    renumber    leaves, then opens     its epoch rises in place    opens when it has left  as open
    close       LEAVING                LEAVING                     waits                   closed

A region that is to leave while it is BRINGING has its opening called off: its next owner would open it once more.

Each line is about a later epoch than the region's; a close also about the same.  An ask that comes again is answered
again, and nothing is done again; to open at an older epoch is refused, and to close at one is done already.

Invariants (``check``, and the model in tests/model/test_told_regions_model.py):
    T1. A region is had at an epoch that a master told, once, and at no epoch at or below one that was given up (C2).
    T2. ``ReportOpened`` comes only when nothing is behind any more (C4), ``ReportClosed`` only when no store of the
        region is open, and the epoch is refused for ever.
    T3. Each ask is answered: by a report of its epoch, or by ``Refuse``.
    T4. A leader with a lower epoch than the last one is refused.

Knows nothing of stores, links, futures and time, nor of requests: ``hosting_state`` knows which store is open, and
asks ``owns``.  The shell keeps the asks that were not answered, by region and epoch.
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

    OLD_LEADER = auto()  # another master leads by now; it says nothing about the region
    OLD_EPOCH = auto()  # the region was had, or is had, at a later epoch
    GIVEN_UP = auto()  # this server will not serve the region at that epoch
    STOPPING = auto()  # nor this: it stops


# --- instructions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BringIn:
    """Open the region's store with the logs in ``owner.behind``; report ``opened`` or ``not_opened``."""

    region: int
    owner: Owner


@dataclass(frozen=True, slots=True)
class CallOff:
    """Report ``not_opened`` now if the opening for a ``BringIn`` has not begun; else its end is reported as ever."""

    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class MayServe:
    """Nothing is behind: the first request may open the region, or there is room to open it before."""

    region: int
    owner: Owner


@dataclass(frozen=True, slots=True)
class RaiseEpoch:
    """Have the region's store, if one is open, write its records at ``epoch`` from now on."""

    region: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Flush while serving, shut, quiesce, close; report ``closed``."""

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
    """The answer to asks to open, or to renumber, at ``epoch``; to all asks about it, where the leader is old."""

    region: int
    epoch: int
    why: Why


AssignmentOutput: TypeAlias = (
    BringIn | CallOff | MayServe | RaiseEpoch | Leave | ReportOpened | ReportClosed | ReportFailed | Refuse
)


@dataclass(slots=True)
class _AssignedRegion:
    owner: Owner
    first: int  # the epoch at which it began to be had; the owner's is above it after a renumbering in place
    stage: Stage
    has_unreplayed_log: bool  # once LEFT, or while BRINGING: this server's log may hold writes that the store lacks
    unanswered_closes: tuple[int, ...] = ()  # epochs of the closes that are not answered
    next: Owner | None = None  # to be opened when it has left


class AssignedRegions:
    """Owned by the loop.  Each event returns what is to be done, in this order."""

    def __init__(self, here: Incarnation, hosting: HostingState) -> None:
        assert hosting.epoch is None, "a standalone is told nothing"
        self.leader = 0  # the highest epoch of a leader that was heard
        self._local_server = here
        self._hosting = hosting
        self._regions: dict[int, _AssignedRegion] = {}
        self._doubted: dict[int, int] = {}  # region -> the epoch at which it is SERVING only with its store open

    # --- told by a master --------------------------------------------------------------------------

    def doubt(self, region: int, epoch: int) -> None:
        """Before ``told_open`` at that epoch: the region is BRINGING first, also if nothing is behind."""
        self._doubted[region] = epoch

    def on_open_region(self, region: int, owner: Owner, leader: int) -> tuple[AssignmentOutput, ...]:
        """``owner``: the row, on disk, which names this server and what is behind."""
        if not self._is_led_by(leader):
            return (Refuse(region, owner.epoch, Why.OLD_LEADER),)
        held = self._regions.get(region)
        if held is None or held.stage is Stage.LEFT:
            return self._begin(region, owner, held is not None and held.has_unreplayed_log)
        if held.stage is Stage.LEAVING:
            return self._opens_after(region, held, owner)
        if owner.epoch < held.owner.epoch:
            return (Refuse(region, owner.epoch, Why.OLD_EPOCH),)
        if owner.epoch > held.owner.epoch:
            held.next = owner
            return self._leave(region, held)
        return (ReportOpened(region, owner.epoch),) if held.stage is Stage.SERVING else ()

    def on_renumber_region(self, region: int, owner: Owner, leader: int) -> tuple[AssignmentOutput, ...]:
        """A region that is served had all that ``owner.behind`` names, beside this server, brought in before."""
        held = self._regions.get(region)
        if held is None or held.stage is not Stage.SERVING or owner.epoch <= held.owner.epoch:
            return self.on_open_region(region, owner, leader)
        if not self._is_led_by(leader):
            return (Refuse(region, owner.epoch, Why.OLD_LEADER),)
        self._own(region, owner.epoch)
        held.owner = owner
        return (RaiseEpoch(region, owner.epoch), ReportOpened(region, owner.epoch))

    def on_close_region(self, region: int, epoch: int, leader: int) -> tuple[AssignmentOutput, ...]:
        if not self._is_led_by(leader):
            return (Refuse(region, epoch, Why.OLD_LEADER),)
        held = self._regions.get(region)
        if held is None:
            held = self._regions[region] = _AssignedRegion(
                Owner(self._local_server, epoch), epoch, Stage.LEFT, has_unreplayed_log=False
            )
            self._give_up_unseen(region, epoch)
        if held.stage is Stage.LEFT:
            if epoch > held.owner.epoch:
                self._give_up_unseen(region, epoch)
                held.owner, held.first = Owner(self._local_server, epoch), epoch
            return (ReportClosed(region, epoch, held.has_unreplayed_log),)
        if epoch < held.owner.epoch:
            # Renumbered in place since, perhaps: its writes may stand in the log alone.
            return (ReportClosed(region, epoch, has_unreplayed_log=True),)
        if epoch not in held.unanswered_closes:
            held.unanswered_closes = (*held.unanswered_closes, epoch)
        refused: tuple[AssignmentOutput, ...] = ()
        if held.next is not None and held.next.epoch <= epoch:
            refused = (Refuse(region, held.next.epoch, Why.GIVEN_UP),)
            held.next = None
        return refused if held.stage is Stage.LEAVING else refused + self._leave(region, held)

    # --- reports of the shell ----------------------------------------------------------------------

    def opened(self, region: int, epoch: int) -> tuple[AssignmentOutput, ...]:
        """After BringIn: the store has all that was behind, and that is on disk."""
        held = self._regions[region]
        assert held.owner.epoch == epoch, "it was told once"
        if held.stage is Stage.LEAVING:
            return (Leave(region, epoch),)
        assert held.stage is Stage.RECOVERING, held.stage
        held.stage = Stage.SERVING
        return (ReportOpened(region, epoch),)

    def not_opened(self, region: int, epoch: int, why: str, *, is_damaged: bool) -> tuple[AssignmentOutput, ...]:
        """After BringIn: the region is refused at that epoch for ever."""
        held = self._regions[region]
        assert held.owner.epoch == epoch, "it was told once"
        if held.stage is Stage.LEAVING:
            return self._left(region, held)
        assert held.stage is Stage.RECOVERING, held.stage
        held.stage = Stage.LEFT
        self._hosting.apply_event(region, Event.GIVEN_UP)
        return (ReportFailed(region, epoch, why, is_damaged),)

    def closed(self, region: int, epoch: int, *, is_behind: bool) -> tuple[AssignmentOutput, ...]:
        """After Leave: no store of it is open.  ``is_behind``: not all that was acknowledged is on disk there."""
        held = self._regions[region]
        assert held.stage is Stage.LEAVING, held.stage
        assert held.owner.epoch == epoch, "it was told once"
        held.has_unreplayed_log = is_behind
        return self._left(region, held)

    # --- splits and merges -------------------------------------------------------------------------

    def made(self, region: int, owner: Owner) -> None:
        """A split or merge here is committed, and this server owns the new region: nobody tells it to open it."""
        assert region not in self._regions, "a new region"
        self._own(region, owner.epoch)
        self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.SERVING, has_unreplayed_log=False)

    def forget(self, regions: Iterable[int]) -> None:
        """No table has them any more, and none of their stores is open."""
        for region in regions:
            self._regions.pop(region, None)
            self._doubted.pop(region, None)
            self._hosting.forget(region)

    # --- looks -------------------------------------------------------------------------------------

    def owner_of(self, region: int) -> Owner | None:
        """The row as it was told, while the region is had."""
        held = self._regions.get(region)
        return held.owner if held is not None and held.stage is not Stage.LEFT else None

    def had(self) -> list[int]:
        """The regions that nobody else may have."""
        return [region for region, held in self._regions.items() if held.stage is not Stage.LEFT]

    def epochs_of(self, region: int) -> range:
        """The epochs of the unbroken tenure in which the region is had.

        A store that failed is opened again with this server's own records of these epochs.  Records of an earlier
        tenure must not come again: another server wrote to the store since.
        """
        held = self._regions.get(region)
        if held is None or held.stage is Stage.LEFT:
            return range(0)
        return range(held.first, held.owner.epoch + 1)

    def stage_of(self, region: int) -> Stage | None:
        held = self._regions.get(region)
        return held.stage if held is not None else None

    def serving(self) -> dict[int, int]:
        """Epochs by region, for a hello."""
        return {region: held.owner.epoch for region, held in self._regions.items() if held.stage is Stage.SERVING}

    def given_up(self) -> dict[int, tuple[int, bool]]:
        """The last epoch that is refused, and whether the store may lack writes of it, for a hello."""
        left = ((region, held) for region, held in self._regions.items() if held.stage is Stage.LEFT)
        return {region: (held.owner.epoch, held.has_unreplayed_log) for region, held in left}

    # --- rules -------------------------------------------------------------------------------------

    def _is_led_by(self, leader: int) -> bool:
        """T4."""
        self.leader = max(leader, self.leader)
        return leader == self.leader

    def _own(self, region: int, epoch: int) -> None:
        is_taken = self._hosting.own(region, epoch)
        assert is_taken, f"T1: region {region} is told at {epoch}, after {self._hosting.epoch_of(region)}"

    def _give_up_unseen(self, region: int, epoch: int) -> None:
        """At an epoch at which it was never had."""
        self._own(region, epoch)
        self._hosting.apply_event(region, Event.GIVEN_UP)

    def _begin(self, region: int, owner: Owner, is_behind: bool) -> tuple[AssignmentOutput, ...]:
        if not self._hosting.own(region, owner.epoch):
            return (Refuse(region, owner.epoch, Why.GIVEN_UP),)
        if self._hosting.is_stopping:
            self._hosting.apply_event(region, Event.GIVEN_UP)
            self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.LEFT, is_behind)
            return (Refuse(region, owner.epoch, Why.STOPPING),)
        if not owner.unreplayed_logs and self._doubted.pop(region, 0) != owner.epoch:
            self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.SERVING, has_unreplayed_log=False)
            return (MayServe(region, owner), ReportOpened(region, owner.epoch))
        self._regions[region] = _AssignedRegion(owner, owner.epoch, Stage.RECOVERING, self._names_local_server(owner))
        return (BringIn(region, owner),)

    def _names_local_server(self, owner: Owner) -> bool:
        return any(tenure.server == self._local_server for tenure in owner.unreplayed_logs)

    def _opens_after(self, region: int, held: _AssignedRegion, owner: Owner) -> tuple[AssignmentOutput, ...]:
        """Told to open what is leaving."""
        lowest = max(held.owner.epoch, *held.unanswered_closes, 0)
        if owner.epoch <= lowest:
            return (Refuse(region, owner.epoch, Why.GIVEN_UP),)
        before, held.next = held.next, owner
        if before is None or before.epoch == owner.epoch:
            return ()
        if before.epoch > owner.epoch:
            held.next = before
        return (Refuse(region, min(before.epoch, owner.epoch), Why.OLD_EPOCH),)

    def _leave(self, region: int, held: _AssignedRegion) -> tuple[AssignmentOutput, ...]:
        was_bringing, held.stage = held.stage is Stage.RECOVERING, Stage.LEAVING
        epoch = held.owner.epoch
        self._hosting.give_up(region)
        if was_bringing:
            return (Refuse(region, epoch, Why.GIVEN_UP), CallOff(region, epoch))
        return (Leave(region, epoch),)

    def _left(self, region: int, held: _AssignedRegion) -> tuple[AssignmentOutput, ...]:
        asked, after = held.unanswered_closes, held.next
        if after is not None and held.has_unreplayed_log and not self._names_local_server(after):
            # The master told it before it could hear that the store lacks what this server's log has.
            own = (OwnershipPeriod(self._local_server, epoch) for epoch in range(held.first, held.owner.epoch + 1))
            after = replace(after, unreplayed_logs=(*after.unreplayed_logs, *own))
        self._hosting.apply_event(region, Event.GIVEN_UP)
        held.stage, held.unanswered_closes, held.next = Stage.LEFT, (), None
        last = max((held.owner.epoch, *asked))
        if last > held.owner.epoch:
            self._give_up_unseen(region, last)
            held.owner, held.first = Owner(self._local_server, last), last
        reports = tuple(ReportClosed(region, epoch, held.has_unreplayed_log) for epoch in sorted(asked))
        return reports if after is None else reports + self._begin(region, after, held.has_unreplayed_log)

    def check(self) -> None:
        self._hosting.check()
        for region, held in self._regions.items():
            state, is_owned = self._hosting.state(region), self._hosting.owns(region)
            assert held.first <= held.owner.epoch == self._hosting.epoch_of(region), "T1"
            assert is_owned == (held.stage in (Stage.RECOVERING, Stage.SERVING)), "T1"
            assert (state is State.CLOSED) == (held.stage is Stage.LEFT), "T2"
            assert held.stage is Stage.LEAVING or not (held.unanswered_closes or held.next), "T3"
            assert held.next is None or held.next.epoch > max((held.owner.epoch, *held.unanswered_closes)), "T1"

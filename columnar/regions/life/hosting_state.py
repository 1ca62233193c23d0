"""(pure) The regions of a server, by id: each has its state machine (``region_state``).

A standalone owns every region at its epoch; a server of a cluster owns the regions that a master assigned.

Invariants (``check_invariants``): those of ``region_state``.
"""

from __future__ import annotations

from columnar.model.owner import Owner
from columnar.model.owner_messages import Holdings
from columnar.regions.life.region_state import AssignmentOutput, Do, Event, LocalRegion, Refuse, State, Why


class HostingState:
    """The states of all regions at one server.

    ``epoch`` is the epoch at which the server owns every region that no master named since the server's start.  None
    means that it owns no such region.
    """

    def __init__(self, epoch: int | None) -> None:
        self.epoch = epoch
        self.leader = 0  # the highest epoch of a leader so far
        self.is_stopping = False
        self._regions: dict[int, LocalRegion] = {}  # I1

    def find(self, region_id: int) -> LocalRegion:
        """Return the region.  Callers only read it: a region that is not remembered is made anew for each call."""
        return self._regions.get(region_id) or LocalRegion(region_id, self.epoch or 0)

    def state(self, region_id: int) -> State:
        found = self._regions.get(region_id)
        return found.state if found is not None else State.NONE

    def in_states(self, wanted: frozenset[State]) -> list[int]:
        return [region_id for region_id, region in self._regions.items() if region.state in wanted]

    def apply_event(self, region_id: int, event: Event) -> tuple[Do, ...]:
        """Apply an event of the store.  Returns instructions, in the order to carry them out.  Raises OutOfPlace."""
        region = self.find(region_id)
        doing = region.apply_event(event, is_stopping=self.is_stopping)
        if region.state is State.NONE and region.epoch == self.epoch and not region.given_up:
            self._regions.pop(region_id, None)
        else:
            self._regions[region_id] = region
        return doing

    # --- owners ------------------------------------------------------------------------------------

    def epoch_of(self, region_id: int) -> int:
        """Return the epoch at which this server owns the region or owned it last; 0 if it never did."""
        return self.find(region_id).epoch

    def owns(self, region_id: int) -> bool:
        """Tell whether this server owns the region and may open it; otherwise another server serves it."""
        found = self._regions.get(region_id)
        return found.is_owned if found is not None else self.epoch is not None

    def is_not_local(self, region_id: int) -> bool:
        """Tell whether another server serves requests for the region: here they are not served, delayed or refused."""
        is_closed = self.state(region_id) in (State.NONE, State.CLOSED)
        return is_closed and not self.is_stopping and not self.owns(region_id)

    def own(self, region_id: int, epoch: int) -> bool:
        """Own the region at a master's epoch.  Returns False if ``epoch`` is below the present one or was given up."""
        return self._remembered(region_id).own(epoch)

    def give_up(self, region_id: int) -> None:
        """Never open the region at its present epoch again.  The region may stay open until the event GIVEN_UP."""
        self._remembered(region_id).give_up()

    def made(self, region_id: int, epoch: int) -> None:
        """Own a new region of a split or merge that this server committed: no master requests its opening."""
        region = self._remembered(region_id)
        assert region.epoch < epoch, "a new region"
        self._regions[region_id] = LocalRegion(region_id, epoch, region.state, first=epoch)

    def forget_region(self, region_id: int) -> None:
        """Forget a region that no table has any more.  Ids are assigned once, so its id never comes again."""
        assert self.state(region_id) in (State.NONE, State.CLOSED), "it is held"
        self._regions.pop(region_id, None)

    def serving(self) -> dict[int, int]:
        """Return the epochs of the assigned regions that may be served."""
        return {region_id: region.epoch for region_id, region in self._regions.items() if region.may_serve}

    def holdings(self, leader: int) -> Holdings | None:
        """Return the assigned regions for a leader that begins; None for a leader that was replaced.

        A recovering region is in no list: it is neither served nor closed.
        """
        if not self._is_led_by(leader):
            return None
        regions = self._regions.items()
        return Holdings(
            serving=tuple((region_id, region.epoch) for region_id, region in regions if region.may_serve),
            leaving=tuple((region_id, region.epoch) for region_id, region in regions if region.is_leaving),
            closed=tuple(
                (region_id, region.given_up, region.has_unreplayed_log)
                for region_id, region in regions
                if region.state is State.CLOSED
            ),
        )

    def stop(self) -> None:
        """Stop the server: no region is opened from now on, at any epoch."""
        self.is_stopping = True

    # --- requests of a master, and reports of the assigner ---------------------------------------------

    def on_open_region(
        self, region: int, owner: Owner, leader: int, *, is_doubted: bool = False
    ) -> tuple[AssignmentOutput, ...]:
        if not self._is_led_by(leader):
            return (Refuse(region, owner.epoch, Why.OLD_LEADER),)
        return self._remembered(region).on_open(owner, is_doubted=is_doubted, is_stopping=self.is_stopping)

    def on_renumber_region(self, region: int, owner: Owner, leader: int) -> tuple[AssignmentOutput, ...]:
        if not self._is_led_by(leader):
            return (Refuse(region, owner.epoch, Why.OLD_LEADER),)
        return self._remembered(region).on_renumber(owner, is_stopping=self.is_stopping)

    def on_close_region(self, region: int, epoch: int, leader: int) -> tuple[AssignmentOutput, ...]:
        if not self._is_led_by(leader):
            return (Refuse(region, epoch, Why.OLD_LEADER),)
        return self._remembered(region).on_close(epoch)

    def on_recovered(self, region: int, epoch: int) -> tuple[AssignmentOutput, ...]:
        return self._regions[region].on_recovered(epoch)

    def on_not_recovered(self, region: int, epoch: int) -> tuple[AssignmentOutput, ...]:
        return self._regions[region].on_not_recovered(epoch, is_stopping=self.is_stopping)

    def on_closed(self, region: int, epoch: int, *, has_unreplayed_log: bool) -> tuple[AssignmentOutput, ...]:
        return self._regions[region].on_closed(
            epoch, has_unreplayed_log=has_unreplayed_log, is_stopping=self.is_stopping
        )

    def _is_led_by(self, leader: int) -> bool:
        """Tell whether the leader is the newest one so far (T4)."""
        self.leader = max(leader, self.leader)
        return leader == self.leader

    def _remembered(self, region_id: int) -> LocalRegion:
        return self._regions.setdefault(region_id, LocalRegion(region_id, self.epoch or 0))

    def check_invariants(self) -> None:
        for region in self._regions.values():
            region.check_invariants()

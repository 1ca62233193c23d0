"""Deliberate faults, each a switch of the simulated world: the checks must find every one of them.

Those of leases run in a world of several machines; on one machine the fence by ``waitpid`` is the lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from columnar.master.cluster_state import ClusterState
from columnar.model.owner import Owner, OwnershipPeriod
from columnar.regions.life.hosting_state import HostingState
from columnar.regions.life.region_state import AssignmentOutput

if TYPE_CHECKING:
    from tests.simulation.world import World

FAULTS = {
    "reads unchecked": "a server answers reads of regions that it does not have any more",
    "answers unchecked": "an answer leaves after the fsync, though the region was closed meanwhile",
    "fence unwaited": "the regions of a server are given to others before its process is reaped",
    "no complete": "a store does not say whose logs it has",
    "behind forgotten": "the rows of the regions of a dead server do not name its log",
    "no epochs": "all that a log has of a region is brought in, of whatever epoch",
    "seal ignored": "a log is read beyond the length at which it was sealed",
    "leader unchecked": "a master that was replaced is obeyed",
    "closed forgotten": "a server opens a region at an epoch that it has given up",
    "unclaimed": "an owner with nothing to bring in does not say in its store that it has all",
    "told early": "owners are told of rows that are not on disk",
    "extents kept": "the log of a server that lives is read as far as it was told first, though it has grown since",
    "last rows uncopied": "a split or merge is committed before the new stores have the last rows of the old ones",
    "daughters unsynced": "a split or merge is committed before the new stores are on disk",
    "complete inherited": "a new store says of its own region's logs what the old store said of others",
    "unsure served": "the old regions serve on while nobody knows whether the catalogue names the new ones",
}

FAULTS_OF_LEASES = {
    "holdings unasked": "a new leader believes that each server serves the regions whose rows name it",
    "hellos unwaited": "a new leader takes servers for ended that have not said hello",
    "write unchecked": "a leader whose lease ended during a write of the catalogue acts upon it",
    "late leader obeyed": "a server obeys a leader although it has heard of a newer one",
    "generation kept": "the next owner opens the folder in which a server may write on that ended by time",
    "linked logs": "a folder that is taken over has the log of the one before, not a copy",
    "log in place": "the log of a server that ended by time keeps its name, by which its process removes segments",
    "bound relinked": "a server whose link ended amid a split or merge links again before it is ended",
    "lease unchecked": "answers leave a process after the end of its lease",
}
FAULTS |= FAULTS_OF_LEASES
# A seed that found the fault, where the first few do not; after a change of the world another one may.
FOUND_BY = {
    "no epochs": 6,
    "seal ignored": 8,
    "unclaimed": 4,
    "unsure served": 9,
    "holdings unasked": 12,
    "generation kept": 6,
    "linked logs": 22,
    "log in place": 68,
    "bound relinked": 29,
    "lease unchecked": 11,
}


class _Forgetful(HostingState):
    """A server that opens a region at an epoch that was given up, but refuses an older one."""

    def on_open_region(
        self, region: int, owner: Owner, leader: int, *, is_doubted: bool = False
    ) -> tuple[AssignmentOutput, ...]:
        if region in self._regions and not self._regions[region].is_assigned:
            self._regions[region].given_up = 0
        return super().on_open_region(region, owner, leader, is_doubted=is_doubted)


class _Obedient(HostingState):
    def on_open_region(
        self, region: int, owner: Owner, leader: int, *, is_doubted: bool = False
    ) -> tuple[AssignmentOutput, ...]:
        return super().on_open_region(region, owner, max(leader, self.leader), is_doubted=is_doubted)

    def on_renumber_region(self, region: int, owner: Owner, leader: int) -> tuple[AssignmentOutput, ...]:
        return super().on_renumber_region(region, owner, max(leader, self.leader))

    def on_close_region(self, region: int, epoch: int, leader: int) -> tuple[AssignmentOutput, ...]:
        return super().on_close_region(region, epoch, max(leader, self.leader))


def hosting_of(world: World) -> HostingState:
    if world.has("leader unchecked") or world.has("late leader obeyed"):
        return _Obedient(None)
    return _Forgetful(None) if world.has("closed forgotten") else HostingState(None)


def lead_astray(world: World, state: ClusterState) -> None:
    if world.has("behind forgotten"):

        def in_log(_region: int, _tenure: OwnershipPeriod) -> bool:
            return False

        state.ledger.in_log = in_log  # type: ignore[assignment,method-assign]

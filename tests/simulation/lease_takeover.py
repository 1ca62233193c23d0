"""The takeover of a region, as a small model: the log of an owner whose lease is over, its seal, the next owner's copy.

An owner appends a number to its log and syncs it before it acknowledges.  When its node has ended,

    the leader seals the log: it notes the length, which the file system shows whole
    the next owner copies the log into its own folder; a stale cache may show it less than the sealed length, and then
    it reads again
    the next owner opens its copy a moment later, and has what stands in it then

A stopped owner may wake at any time and append to its own file, because no lease keeps bytes out.  Its acknowledgements
are the lease's affair.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.agenda import MS

if TYPE_CHECKING:
    from tests.simulation.lease_nodes import SimulatedNode
    from tests.simulation.lease_world import LeaseWorld

STALE = 0.3  # of reads by a machine whose cache knows a part of the log


class HolderLog:
    """The file: the moments at which its records were appended."""

    def __init__(self) -> None:
        self.appended_us: list[int] = []
        self.acknowledged = 0  # records; the last of them and all before it

    def append(self, now_us: int) -> int:
        """Append and sync a record; returns the number of records."""
        self.appended_us.append(now_us)
        return len(self.appended_us)

    def acknowledge(self, number: int) -> None:
        self.acknowledged = max(self.acknowledged, number)


class Takeovers:
    def __init__(self, world: LeaseWorld) -> None:
        self._world = world
        self._begun: set[HolderLog] = set()

    def begin(self, node: SimulatedNode) -> None:
        """Seal the log of an owner that has ended, and go on with its takeover."""
        if node.log in self._begun:  # a leader before this one has begun it
            return
        self._begun.add(node.log)
        self._world.seen["takeovers"] += 1
        self._later(5, 100, partial(self._copy, node.log, len(node.log.appended_us)))

    def _copy(self, log: HolderLog, sealed: int) -> None:
        world = self._world
        length = len(log.appended_us)
        if sealed and world.rng.random() < STALE:
            length = world.rng.randrange(sealed)
        if length < sealed and world.fault != "short-read":
            world.seen["short reads"] += 1
            self._later(50, 200, partial(self._copy, log, sealed))
            return
        copied = log.appended_us if world.fault == "linked-logs" else log.appended_us[:length]
        self._later(5, 800, partial(self._open, log, copied, world.agenda.now_us))

    def _open(self, log: HolderLog, copied: list[int], copied_us: int) -> None:
        late = len([at_us for at_us in copied if at_us > copied_us])
        assert not late, f"the next owner has {late} records that were written after it took over"
        lost = log.acknowledged - len(copied)
        assert lost <= 0, f"the next owner lacks {lost} acknowledged records"

    def _later(self, low_ms: int, high_ms: int, step: partial[None]) -> None:
        agenda = self._world.agenda
        agenda.later(None, agenda.drawn(low_ms * MS, high_ms * MS), step)

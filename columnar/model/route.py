"""(pure) Routes: the owner of each region.  A master sends routes to servers as numbered changes.

Each change of the catalogue has a number, one above that of the previous change, even if it concerns no route.  A
server whose copy of the routes misses a change requests the changes after its own number, or all routes again.

    number := epoch of the master, times 2^32, plus the count of its changes

Knows nothing of the copies (``columnar.cluster.routes``) and of the sender.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message

CHANGES_BITS: Final = 32  # of a change's number: a master makes fewer changes


def first_of(leader: int) -> int:
    """Return the number below all changes of the master of this epoch, and above those of earlier masters."""
    return leader << CHANGES_BITS


def leader_of(number: int) -> int:
    """Return the epoch of the master that made the change; 0 for a copy without any."""
    return number >> CHANGES_BITS


@dataclass(frozen=True, slots=True)
class Route:
    """The owner of a region, without the fields that are needed only to open the region."""

    region: RegionInfo
    server: Incarnation
    epoch: int
    source: OwnershipPeriod | None = None  # the previous owner, which serves until it has closed or is fenced
    blocked_reason: str = (
        ""  # a sentence why no server serves it until an operator assigns it; empty: one does, or will
    )

    @property
    def ownership_period(self) -> OwnershipPeriod:
        return OwnershipPeriod(self.server, self.epoch)


def route_to(region: RegionInfo, owner: Owner) -> Route:
    return Route(region, owner.server, owner.epoch, owner.source)


@dataclass(frozen=True, slots=True)
class RoutesVersion:
    """The state of a server's copy after a change; a ``number`` below the change's means that it was refused."""

    number: int  # of the last change in the copy; the server needs the changes after it
    needs_all: bool = False  # the changes do not fit the copy; the server needs all routes


@dataclass(frozen=True, slots=True)
class ChangeRoutes(Message[RoutesVersion]):
    """To each server: the part of the catalogue's change ``number`` that concerns routes."""

    number: int
    gone: tuple[RegionInfo, ...] = ()  # regions that no table has any more
    routes: tuple[Route, ...] = ()  # of new regions, and of regions whose owner changed


@dataclass(frozen=True, slots=True)
class ReplaceRoutes(Message[RoutesVersion]):
    """To a server whose copy is empty or misses changes: all routes as of the change ``number``."""

    number: int
    routes: tuple[Route, ...]

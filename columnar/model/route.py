"""(pure) Routes: the owner of each region, as a master sends them to servers, by numbered changes.

Each change of the catalogue has a number, one above the change before, also a change that concerns no route.  A copy
that misses a change requests the changes after its own number, or all routes again.

Knows nothing of the copies (``columnar.cluster.routes``) and of the sender.
"""

from __future__ import annotations

from dataclasses import dataclass

from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message


@dataclass(frozen=True, slots=True)
class Route:
    """The owner of a region, without what only its opening needs."""

    region: RegionInfo
    server: Incarnation
    epoch: int
    source: OwnershipPeriod | None = None  # the owner before, until it has said "closed" or is fenced: it still answers
    blocked_reason: str = (
        ""  # why nobody serves it before a person assigns it, as a sentence; empty: somebody does, or will
    )

    @property
    def ownership_period(self) -> OwnershipPeriod:
        return OwnershipPeriod(self.server, self.epoch)


def route_to(region: RegionInfo, owner: Owner) -> Route:
    return Route(region, owner.server, owner.epoch, owner.source)


@dataclass(frozen=True, slots=True)
class RoutesVersion:
    """The state of a copy after a change was offered: a ``number`` below the change's says that it was refused."""

    number: int  # of the last change in the copy: the changes after it are wanted
    needs_all: bool = False  # the changes do not fit the copy: all routes are wanted


@dataclass(frozen=True, slots=True)
class ChangeRoutes(Message[RoutesVersion]):
    """To each server: the change ``number`` of the catalogue, as far as it concerns routes."""

    number: int
    gone: tuple[RegionInfo, ...] = ()  # no table has them any more
    routes: tuple[Route, ...] = ()  # of regions that come, and of regions whose owner changed


@dataclass(frozen=True, slots=True)
class ReplaceRoutes(Message[RoutesVersion]):
    """To a server whose copy is empty or misses changes: all routes as of the change ``number``."""

    number: int
    routes: tuple[Route, ...]

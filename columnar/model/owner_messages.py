"""(pure) Messages between the master of a cluster and one server, about the regions that the server owns: values.

    master -> server    OpenRegion, CloseRegion, RenumberRegion, Rates

The answer to ``OpenRegion`` is the server's word that it serves, to ``CloseRegion`` that it never will at that epoch;
either may take long.  A message that is sent twice is answered twice, and nothing is done twice.  An error in answer
to ``OpenRegion`` or ``RenumberRegion`` says that the server has refused the region at that epoch for ever.

Knows nothing of who answers, nor of how a message gets there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message

Segments: TypeAlias = tuple[tuple[str, int], ...]  # names and lengths of a log that is sealed


@dataclass(frozen=True, slots=True)
class OpenRegion(Message[None]):
    """Serve the region at the owner's epoch, once everything in ``owner.behind`` is in its store.

    ``sealed``: the extents of the logs in ``owner.behind``.  The answer comes at once where nothing is behind; then the
    store is opened when a request first needs it, or before.
    """

    region: RegionInfo
    owner: Owner
    sealed: tuple[tuple[Incarnation, Segments], ...] = ()


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The server refuses the region for ever at ``epoch`` and below."""

    epoch: int
    is_behind: bool  # its log may hold acknowledged writes that the store lacks


@dataclass(frozen=True, slots=True)
class CloseRegion(Message[GivenUp]):
    """Give the region up at ``epoch``: answered when no request is served any more and its store is closed."""

    region: RegionInfo
    epoch: int


@dataclass(frozen=True, slots=True)
class RenumberRegion(Message[None]):
    """Go on serving the region at the owner's epoch; where it is closed already, open it as ``OpenRegion`` does."""

    region: RegionInfo
    owner: Owner
    sealed: tuple[tuple[Incarnation, Segments], ...] = ()


@dataclass(frozen=True, slots=True)
class RegionRates:
    """The report of an owner about a region that it serves."""

    region: int
    reads_per_s: float
    writes_per_s: float
    deliveries_per_s: float
    size_bytes: int
    limit_bytes: int  # of its table: over it the region is split


@dataclass(frozen=True, slots=True)
class Rates(Message[tuple[RegionRates, ...]]):
    """The rates of all regions that the server owns, since it was asked last."""

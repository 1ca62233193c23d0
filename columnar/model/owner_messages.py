"""(pure) Messages between the master of a cluster and one server, about the regions that the server owns: values.

    master -> server    OpenRegion, CloseRegion, RenumberRegion, Rates, Measures, Addresses, HandOver
    server -> master    Listening, CannotOpen

The answer to ``OpenRegion`` is the server's word that it serves, to ``CloseRegion`` that it never will at that epoch;
either may take long.  A message that is sent twice is answered twice, and carried out once.  An error in answer
to ``OpenRegion`` or ``RenumberRegion`` says that the server has refused the region at that epoch for ever.

Knows nothing of the receivers and the transport of messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from columnar.model.measures import Family, SlowRequest
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message

Segments: TypeAlias = tuple[tuple[str, int], ...]  # names and lengths of a log that is sealed


@dataclass(frozen=True, slots=True)
class OpenRegion(Message[None]):
    """Serve the region at the owner's epoch, once ``owner.unreplayed_logs`` are replayed into its store.

    ``sealed``: the extents of these logs.  The answer comes at once if there are none; then the
    store is opened when a request first needs it, or before.  ``is_doubted``: the store could not be opened last time,
    so the answer comes when it is open.
    """

    region: RegionInfo
    owner: Owner
    sealed: tuple[tuple[Incarnation, Segments], ...] = ()
    is_doubted: bool = False


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The server refuses the region for ever at ``epoch`` and below."""

    epoch: int
    has_unreplayed_log: bool  # its log may have acknowledged writes that the store lacks


@dataclass(frozen=True, slots=True)
class CloseRegion(Message[GivenUp]):
    """Give the region up at ``epoch``: answered when no request is served any more and its store is closed."""

    region: RegionInfo
    epoch: int


@dataclass(frozen=True, slots=True)
class RenumberRegion(Message[None]):
    """Continue to serve the region at the owner's epoch; if it is closed already, open it as ``OpenRegion`` does."""

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
    write_fault: str = ""  # why it cannot be written


@dataclass(frozen=True, slots=True)
class Rates(Message[tuple[RegionRates, ...]]):
    """The rates of all regions that the server owns, since the previous request."""


# --- what a server counts --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measures(Message[tuple[Family, ...]]):
    """The server's own families of ``/metrics``, as of now."""


@dataclass(frozen=True, slots=True)
class SlowRequests(Message[tuple[SlowRequest, ...]]):
    """The last slow requests of the server's clients, oldest first."""


# --- where servers are ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listening(Message[None]):
    """The server's own ports are open: clients may connect to it directly."""

    host: str
    port: int
    thrift2_port: int = -1  # -1: that service is not served


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server as clients learn it from ``getTableRegions``."""

    server: Incarnation
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Addresses(Message[None]):
    """The addresses of all living servers, in the place of what was said before."""

    servers: tuple[Address, ...]


# --- clients of a server that leaves -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandoverResult:
    """The clients of a server, at the end of its hand-over."""

    given: int  # connections that went to other servers
    closed: int  # between two requests, where the port speaks TLS
    lost: int  # connections that are left: within a request, or their client does not read its replies
    scanners: int  # open still: their next step fails


@dataclass(frozen=True, slots=True)
class HandOver(Message[HandoverResult]):
    """Return every connection of a client, between two of its requests, and wait for the open scanners.

    Answered when none is left, after ``within_ms`` in any case.  The server takes no further connection, and answers
    calls of other servers until it stops.
    """

    within_ms: int


@dataclass(frozen=True, slots=True)
class ReturnConnections(Message[int]):
    """Return up to ``connections`` idle connections to the supervisor for rebalancing.  Answer: the number returned.

    Answered when they are returned, after ``within_ms`` in any case.  Connections of the server's own ports stay, as
    their clients chose it; so do those with open scanners, and TLS, whose keys cannot be passed on.
    """

    connections: int
    within_ms: int


# --- regions that fail ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CannotOpen(Message[None]):
    """The store of a region that the server owns cannot be opened; said once, until it was opened.

    The answer to ``OpenRegion`` was sent before, as the region has no unreplayed logs.  The server continues to own it:
    each request for it tries to open it again, and gets the reason, until the master has it closed.
    """

    region: RegionInfo
    epoch: int
    why: str
    is_damaged: bool  # its data, so another server would fail too

"""(pure) The messages between the master of a cluster and one server about the server's regions, as values.

    master -> server    Holding, OpenRegion, CloseRegion, RenumberRegion, Rates, Measures, Addresses, HandOver
    server -> master    Listening, CannotOpen

The answer to ``OpenRegion`` promises that the server serves the region; the answer to ``CloseRegion`` promises that it
never will at that epoch.  Both answers may take long.  A message that is sent twice is answered twice and carried out
once.  An error in answer to ``OpenRegion`` or ``RenumberRegion`` means that the server refuses the region at that epoch
for ever.

Knows nothing of the receivers and the transport of messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from columnar.model.measures import Family, SlowRequest
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message

Segments: TypeAlias = tuple[tuple[str, int], ...]  # names and lengths of a sealed log's segments


@dataclass(frozen=True, slots=True)
class Holdings:
    """The regions of a server at one moment: (id, epoch) of each.  A region in no list is being opened, or unknown."""

    serving: tuple[tuple[int, int], ...]
    leaving: tuple[tuple[int, int], ...]  # given up at that epoch; their stores are not closed yet
    closed: tuple[tuple[int, int, bool], ...]  # ... the last epoch that was given up, and ``has_unreplayed_log``
    tables: tuple[str, ...] = ()  # the tables that the server knows
    has_routes: bool = False  # from an earlier master, or an earlier link to this one
    clock_ms: int = 0  # the reading of its clock, for the next owners of closed regions; 0 from an older server


@dataclass(frozen=True, slots=True)
class Holding(Message[Holdings]):
    """Say which regions the server has since the time of an earlier master, and which it has closed.

    From this message on the server refuses requests of leaders with a lower epoch.
    """


@dataclass(frozen=True, slots=True)
class OpenRegion(Message[None]):
    """Serve the region at the owner's epoch, once ``owner.unreplayed_logs`` are replayed into its store.

    ``sealed`` has the extents of these logs.  Without such logs the answer comes at once, and the store is opened when
    a request first needs it, or before.  ``is_doubted`` says that the store could not be opened last time; then the
    answer comes only when the store is open.  ``clock_ms`` is the reading of the master's clock, which is above every
    timestamp of the region's earlier owners; 0 from an older master.
    """

    region: RegionInfo
    owner: Owner
    sealed: tuple[tuple[Incarnation, Segments], ...] = ()
    is_doubted: bool = False
    clock_ms: int = 0


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The server refuses the region for ever at ``epoch`` and below."""

    epoch: int
    has_unreplayed_log: bool  # its log may have acknowledged writes that the store lacks
    clock_ms: int = 0  # the reading of its clock after the close; 0 from an older server


@dataclass(frozen=True, slots=True)
class CloseRegion(Message[GivenUp]):
    """Give the region up at ``epoch``.  Answered when the server serves no request for it and its store is closed."""

    region: RegionInfo
    epoch: int


@dataclass(frozen=True, slots=True)
class RenumberRegion(Message[None]):
    """Continue to serve the region at the owner's epoch; if it is closed already, open it as ``OpenRegion`` does."""

    region: RegionInfo
    owner: Owner
    sealed: tuple[tuple[Incarnation, Segments], ...] = ()
    clock_ms: int = 0


@dataclass(frozen=True, slots=True)
class RegionRates:
    """The report of an owner about a region that it serves."""

    region: int
    reads_per_s: float
    writes_per_s: float
    deliveries_per_s: float
    size_bytes: int
    limit_bytes: int  # the table's bound, over which the region is split
    write_fault: str = ""  # why the region cannot be written


@dataclass(frozen=True, slots=True)
class Rates(Message[tuple[RegionRates, ...]]):
    """Request the rates of all regions that the server owns, since the previous message of this kind."""


# --- what a server counts --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measures(Message[tuple[Family, ...]]):
    """Request the server's current measures, its own families of ``/metrics``."""


@dataclass(frozen=True, slots=True)
class SlowRequests(Message[tuple[SlowRequest, ...]]):
    """Request the last slow requests of the server's clients, oldest first."""


# --- where servers are ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listening(Message[None]):
    """The server's own ports are open: clients may connect to it directly."""

    host: str
    port: int
    thrift2_port: int = -1  # -1: the server does not offer Thrift 2
    peer: str = ""  # the address for links of other servers; text of ``cluster.peer_address``


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server that clients learn from ``getTableRegions``, and that of its links."""

    server: Incarnation
    host: str
    port: int
    peer: str = ""  # as in ``Listening``


@dataclass(frozen=True, slots=True)
class Addresses(Message[None]):
    """The addresses of all living servers, which replace those of the previous message."""

    servers: tuple[Address, ...]
    ended: tuple[Incarnation, ...] = ()  # the servers that ended last: links to them end, if they still hang open


# --- clients of a server that leaves -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HandoverResult:
    """The numbers of a server's connections and scanners at the end of its hand-over."""

    given: int  # connections that went to other servers
    closed: int  # TLS connections, closed between two requests
    lost: int  # connections that are left: within a request, or their client does not read its replies
    scanners: int  # scanners still open, whose next step fails


@dataclass(frozen=True, slots=True)
class HandOver(Message[HandoverResult]):
    """Return every connection of a client, between two of its requests, and wait for the open scanners.

    Answered when no connection and no scanner is left, and after ``within_ms`` at the latest.  The server accepts no
    further connection, and answers calls of other servers until it stops.
    """

    within_ms: int


@dataclass(frozen=True, slots=True)
class ReturnConnections(Message[int]):
    """Return up to ``connections`` idle connections to the supervisor for rebalancing.

    The answer is the number of returned connections; it is sent when all are, and after ``within_ms`` at the latest.
    Connections to the server's own ports stay, because their clients chose this server.  Connections with open scanners
    stay too, and TLS connections, whose keys cannot be passed on.
    """

    connections: int
    within_ms: int


# --- regions that fail ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CannotOpen(Message[None]):
    """The server cannot open the store of a region that it owns.  Sent once, until the store has been opened.

    The answer to ``OpenRegion`` was sent before, because the region has no unreplayed logs.  The server continues to
    own the region until the master has the region closed.  Meanwhile each request for the region tries to open the
    store again, and receives the reason of the failure.
    """

    region: RegionInfo
    epoch: int
    why: str
    is_damaged: bool  # the data is damaged, so any other server would fail too

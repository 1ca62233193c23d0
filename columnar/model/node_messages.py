"""(pure) The messages between a node, its own servers, and the leader of the cluster, as values.

    node -> its server      FollowLeader, LiveSettings, JudgeVisitor, ChangeLogLevels; of ``owner_messages`` HandOver
                            and ReturnConnections
    server -> its node      TakesConnections
    leader -> other node    KillServer, StopServer, StartServer, DescribeServers, ChangeLogLevels
    other node -> leader    AwaitRegions

A node is the parent process of the region servers of a machine.  The leader is the node that has the catalogue.  The
leader calls its own node directly.

Knows nothing of the receivers and the transport of messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message


@dataclass(frozen=True, slots=True)
class FollowLeader(Message[None]):
    """Obey the leader of ``epoch`` at ``address`` (text of ``cluster.peer_address``); an older epoch is ignored."""

    epoch: int
    address: str


@dataclass(frozen=True, slots=True)
class LiveSettings(Message[None]):
    """Take these settings, which change while a store serves, and read the certificate again if the ports speak TLS.

    ``config.StandaloneConfig`` and ``config.NodeConfig`` say what each is.
    """

    log_level: str
    slow_request_ms: int
    allow_origins: tuple[str, ...]
    tls_cert: str
    tls_key: str
    log_levels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether somebody may see pages and metrics: 200, or the status of HTTP and the reason of the refusal."""

    status: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgeVisitor(Message[Verdict]):
    """Decide whether a request for a page of the node is answered: a node knows no accounts and rights."""

    authorization: str = field(repr=False)  # the header, which has a secret
    host: str  # of the client


@dataclass(frozen=True, slots=True)
class ProcessLevels:
    process: str  # a node, or a server with its trigger workers
    levels: str  # LOGGER=LEVEL of each logger with a level of its own, with spaces; a sentence if it has not answered


@dataclass(frozen=True, slots=True)
class ChangeLogLevels(Message[tuple[ProcessLevels, ...]]):
    """Change levels of loggers until a restart, or a reading of the settings; answered with the levels in force.

    A node has its servers do the same.  Without ``changes`` it is answered only.
    """

    changes: tuple[str, ...] = ()  # as ``runtime.log_settings.parse_changes`` takes them


@dataclass(frozen=True, slots=True)
class TakesConnections(Message[None]):
    """The server knows the routes of all regions, so that it can serve connections of clients."""

    version: str = ""  # the server's own ``version.full``, which may be newer than its node's


@dataclass(frozen=True, slots=True)
class AwaitRegions(Message[None]):
    """Answered once every region has a server or a reason for having none: the cluster can take clients."""


@dataclass(frozen=True, slots=True)
class KillServer(Message[None]):
    """End the server's process at once.  Answered when it was reaped, or is unknown to the node: it answers nothing."""

    server: Incarnation
    why: str


@dataclass(frozen=True, slots=True)
class StopServer(Message[None]):
    """Stop the server in order, and do not start it again.  Answered when it has ended."""

    server: Incarnation


@dataclass(frozen=True, slots=True)
class StartServer(Message[None]):
    """Start a server that was stopped, or waits for its next start.  Answered when its process was started."""

    name: str


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The process of an incarnation, as its node knows it."""

    version: str = ""  # as the server says it; empty until it takes connections
    address: str = ""  # of the server's own port; the leader knows it
    pid: int = 0
    connections: int = 0
    busy_ms: int = 0  # for this long it has been in one step, and its clients wait
    last_death: str = ""  # of the start before, if recent: "s2.3 died 12 s ago, by SIGKILL"
    last_lines: tuple[str, ...] = ()  # of the log of the start that died


@dataclass(frozen=True, slots=True)
class NamedFacts:
    server: str  # its name
    facts: ServerFacts


@dataclass(frozen=True, slots=True)
class DescribeServers(Message[tuple[NamedFacts, ...]]):
    """Request the facts of all servers of the node, also of those that are stopped."""

    is_leaving: bool = False  # the node is drained until its next start, so balancers should leave it
    delay: str = ""  # a sentence on what the leader waits for, and regions with it; empty: for nothing

"""Settings of each role: one frozen dataclass, read once at the start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar import limits
from columnar.coordination.service_access import NO_ACCESS, ServiceAccess
from columnar.memory_plan import ALONE, QUARTER, MemoryPlan, planned
from columnar.runtime.log_settings import DEFAULT_LOG, LogSettings
from columnar.runtime.memory_limit import memory_limit

_TUPLES: Final = ("trigger_modules", "allow_origins")  # lists in JSON
# Settings that a serving store takes at SIGHUP, by their flags (``model.node_messages.LiveSettings``).
LIVE: Final = frozenset({"log-level", "log-levels", "slow-ms", "allow-origin", "tls-cert", "tls-key"})


@dataclass(frozen=True, slots=True)
class MemorySettings:
    size_bytes: int = 0  # of all processes of the store on this machine; 0: as the machine allows
    open_regions: int = limits.OPEN_REGIONS  # fewer if the memory or the system's descriptors are for fewer

    def plan(self, servers: int = ALONE, *, has_triggers: bool = False) -> MemoryPlan:
        """Return the bounds of each server of a node, or of a process ALONE.  Raises HostError if it is too little."""
        size = self.size_bytes or memory_limit().size_bytes // QUARTER
        return planned(size, servers, has_triggers=has_triggers, is_ordered=self.size_bytes > 0)


@dataclass(frozen=True, slots=True)
class ChangeLogSettings:
    records: int = limits.LOG_RECORDS  # of one region that a trigger still needs; nearing the bound slows writers
    size_bytes: int = limits.LOG_BYTES


@dataclass(frozen=True, slots=True)
class RightsSettings:
    is_on: bool = False  # False: whoever reaches a port may do everything
    socket: str = ""  # path of a Unix socket for clients, whose users the kernel names; "": none
    superusers: tuple[str, ...] = ()  # users and @groups with all rights; root over the Unix socket is always one

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> RightsSettings:
        """Return the settings that JSON has kept."""
        return cls(bool(settings.get("is_on")), settings.get("socket", ""), tuple(settings.get("superusers", ())))


RIGHTS_OFF: Final = RightsSettings()


@dataclass(frozen=True, slots=True)
class ProtocolSettings:
    """Ports for clients of other systems."""

    sqs_port: int = -1  # of queues by the protocol of Amazon SQS; 0: any free port, -1: not served
    kafka_port: int = -1  # of topics by the protocol of Kafka; 0: any free port, -1: not served
    kafka_advertise: str = ""  # HOST:PORT that Kafka's clients are told; "": the address that they have connected to
    kafka_partitions: int = 1  # of a topic whose maker does not say how many

    @property
    def served(self) -> int:
        """The number of ports."""
        return (self.sqs_port >= 0) + (self.kafka_port >= 0)

    def on_free_ports(self) -> ProtocolSettings:
        """Return the settings with any free port in place of each that is served."""
        return replace(self, sqs_port=min(self.sqs_port, 0), kafka_port=min(self.kafka_port, 0))


@dataclass(frozen=True, slots=True)
class StandaloneConfig:
    """Settings of one process that is master, catalogue and region server, with its trigger worker."""

    data: str  # the folder with all data; created if it is missing
    host: str = "127.0.0.1"  # beyond loopback only the network protects the store
    port: int = 9090  # 0: any free port
    web_port: int = 9095  # 0: any free port; -1: no web page
    trigger_modules: tuple[str, ...] = ()  # modules that triggers may name; no others are imported
    slow_request_ms: int = limits.SLOW_REQUEST_MS
    memory: MemorySettings = MemorySettings()
    region_bytes: int = limits.REGION_BYTES  # larger regions split; the table attribute MAX_FILESIZE has priority
    change_log: ChangeLogSettings = ChangeLogSettings()
    thrift2_port: int = -1  # of the Thrift 2 service; 0: any free port, -1: not served
    tls_cert: str = ""  # PEM file of the certificate, with which all ports speak only TLS; "": plain text
    tls_key: str = ""  # PEM file of the certificate's key; a process that can read it can impersonate the store
    allow_origins: tuple[str, ...] = ()  # of web pages that may use the ports by HTTP, without restrictions
    tls_client_ca: str = ""  # authority that must have signed clients' certificates; "": clients need none
    rights: RightsSettings = RIGHTS_OFF
    protocols: ProtocolSettings = ProtocolSettings()

    def memory_plan(self, servers: int = ALONE) -> MemoryPlan:
        """Return the bounds of each server of a node, or of a process ALONE.  Raises HostError if it is too little."""
        return self.memory.plan(servers, has_triggers=bool(self.trigger_modules))

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> StandaloneConfig:
        """Return the settings that JSON has kept.  Raises TypeError if they are none of this version."""
        kept: dict[str, Any] = dict(settings)
        for name in _TUPLES:
            kept[name] = tuple(kept.get(name, ()))
        kept["memory"] = MemorySettings(**kept.get("memory", {}))
        kept["change_log"] = ChangeLogSettings(**kept.get("change_log", {}))
        kept["protocols"] = ProtocolSettings(**kept.get("protocols", {}))
        kept["rights"] = RightsSettings.of_settings(kept.get("rights", {}))
        return cls(**kept)


AHEAD: Final = "ahead"  # argument of a standby region server process, which waits to replace a dead server


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """Settings of a node: the parent process of the region servers of a machine."""

    servers: int  # 0: it may only lead, and has no port for clients
    log: LogSettings = DEFAULT_LOG
    name: str = ""  # unique among the nodes of a cluster; "" for the only node of its folder
    coordination: str = ""  # URL of the service that has the nodes' leases; "" for the only node of its folder
    access: ServiceAccess = NO_ACCESS  # user and certificates for that service
    peer_port: int = 0  # at which servers and nodes reach this node while it leads; 0: any free port
    lease_s: float = 1.5
    may_lead: bool = True
    fence_command: str = ""  # run before others get the regions of a node that ended by time; "": none
    zone: str = ""  # part of the site that may fail as a whole: regions of a table are spread over zones
    probes_folder: bool = True  # at the start; a folder that nodes cannot share is refused

    def server_name(self, number: int) -> str:
        return f"{self.name}-s{number}" if self.name else f"s{number}"


@dataclass(frozen=True, slots=True)
class RegionServerConfig:
    """Settings of a region server beside others on a machine, as its node sends them."""

    name: str  # s1 .. sN, after the name of the node if there are several nodes
    number: int  # of this start of the server; never reused
    data: str
    cluster_id: str
    run_folder: str  # folder of the sockets between servers; must be short, as paths of sockets are
    servers: int  # number of servers that share the machine's memory
    log: LogSettings
    config: StandaloneConfig  # settings of the whole store; its ports belong to the node
    clock_ms: int = 0  # reading of the node's clock; all timestamps are above it
    # Host at which other nodes' servers and clients reach this server; "": its socket in ``run_folder``, and ``host``.
    peer_host: str = ""
    secret: str = ""  # of the cluster, in hexadecimal; "" without other nodes

    @property
    def named_host(self) -> str:
        """The host that clients are told.  On nodes not 0.0.0.0, which is another machine for each client."""
        return self.peer_host or self.config.host

    @classmethod
    def from_json(cls, text: str | bytes) -> RegionServerConfig:
        """Read the settings.  Raises ValueError or TypeError if ``text`` is not of a supervisor of this version."""
        fields: dict[str, Any] = json.loads(text)
        log = LogSettings.of_settings(fields.pop("log"))
        return cls(config=StandaloneConfig.of_settings(fields.pop("config")), log=log, **fields)

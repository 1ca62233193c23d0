"""Settings of each role: one frozen dataclass, read once at the edge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from columnar import limits

_TUPLES: Final = ("trigger_modules", "allow_origins")  # lists in JSON


@dataclass(frozen=True, slots=True)
class StandaloneConfig:
    """Settings of one process that is master, catalogue and region server, with its trigger worker."""

    data: str  # the folder that holds everything; made when it is not there
    host: str = "127.0.0.1"  # wider than loopback there is no protection but the network's own
    port: int = 9090  # 0: any free one
    web_port: int = 9095  # 0: any free one; -1: no web page
    trigger_modules: tuple[str, ...] = ()  # modules that triggers may name; no other is ever imported
    slow_request_ms: int = limits.SLOW_REQUEST_MS
    open_regions: int = limits.OPEN_REGIONS  # fewer if the system grants fewer descriptors, 12 for each
    region_bytes: int = limits.REGION_BYTES  # larger regions split; the table attribute MAX_FILESIZE has priority
    scanner_lease_s: float = limits.SCANNER_LEASE_S
    log_records: int = limits.LOG_RECORDS  # that a trigger needs of one region; nearing it slows its writers
    log_bytes: int = limits.LOG_BYTES
    thrift2_port: int = -1  # of the Thrift 2 service; 0: any free one, -1: not served
    tls_cert: str = ""  # PEM file of the certificate: every port speaks TLS and nothing else; "": plain text
    tls_key: str = ""  # its key; any process that can read that file can impersonate the store
    allow_origins: tuple[str, ...] = ()  # of web pages that may use the ports by HTTP: each may do everything
    tls_client_ca: str = ""  # clients must show a certificate that this authority signed; "": they need none


AHEAD: Final = "ahead"  # an argument of a region server's process that waits for the next death of another


@dataclass(frozen=True, slots=True)
class RegionServerConfig:
    """Settings of a server among several of a machine, as its supervisor sends them."""

    name: str  # s1 .. sN
    number: int  # of this start of it, never given before
    data: str
    cluster_id: str
    leader_epoch: int  # of the supervisor: a master with a lower one is refused
    run_folder: str  # of the sockets by which servers reach each other; short, for a socket's path is
    servers: int  # number of servers that share the machine's memory
    log_level: str
    config: StandaloneConfig  # of the whole store; its ports are the supervisor's
    clock_ms: int = 0  # the reading of the supervisor's clock: no timestamp is given below it

    @classmethod
    def from_json(cls, text: str | bytes) -> RegionServerConfig:
        """ValueError, TypeError for what no supervisor of this version writes."""
        fields: dict[str, Any] = json.loads(text)
        config = fields.pop("config")
        for name in _TUPLES:
            if name in config:
                config[name] = tuple(config[name])
        return cls(config=StandaloneConfig(**config), **fields)

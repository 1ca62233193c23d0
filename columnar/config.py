"""Settings of each role: one frozen dataclass, read once at the edge."""

from __future__ import annotations

from dataclasses import dataclass

from columnar import limits


@dataclass(frozen=True, slots=True)
class StandaloneConfig:
    """One process that is master, catalogue and region server, with its trigger worker beside it."""

    data: str  # the folder that holds everything; made when it is not there
    host: str = "127.0.0.1"  # wider than loopback there is no protection but the network's own
    port: int = 9090  # 0: any free one
    web_port: int = 9095  # 0: any free one; -1: no web page
    trigger_modules: tuple[str, ...] = ()  # what triggers may name; nothing else is ever imported
    slow_request_ms: int = limits.SLOW_REQUEST_MS
    open_regions: int = limits.OPEN_REGIONS  # fewer where the system grants fewer descriptors, 12 for each
    region_bytes: int = limits.REGION_BYTES  # larger regions split; the table attribute MAX_FILESIZE goes before it
    scanner_lease_s: float = limits.SCANNER_LEASE_S
    log_records: int = limits.LOG_RECORDS  # that a trigger needs of one region; nearing it slows its writers
    log_bytes: int = limits.LOG_BYTES
    thrift2_port: int = -1  # of the Thrift 2 service; 0: any free one, -1: not served
    tls_cert: str = ""  # PEM file of the certificate: every port speaks TLS and nothing else; "": plain text
    tls_key: str = ""  # its key; whoever can read that file can stand in for the store
    allow_origins: tuple[str, ...] = ()  # of web pages that may use the ports by HTTP: each may do everything
    tls_client_ca: str = ""  # clients must show a certificate that this authority signed; "": they need none

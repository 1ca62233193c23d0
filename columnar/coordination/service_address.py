"""The address of a coordination service, as an operator writes it, and the clients that it stands for.

    etcd://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...]/NAME          etcds:// with TLS
    zookeeper://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...]/NAME     zookeepers:// with TLS

NAME is the prefix of the cluster's keys, so that several clusters can share a service.  It may have slashes.  The port
may be missing: 2379 for etcd, 2181 for ZooKeeper.  Reserved characters of user and password are percent-encoded.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from columnar.coordination.cas import CasStore
from columnar.coordination.cas_etcd import CasEtcd, EtcdAccount
from columnar.errors import IllegalArgument

TIMEOUT_SHARE: Final = 0.4  # of the lease: it survives two calls without an answer
TIMEOUT_S: Final = 2.0  # at most, so that a start hears of a wrong address soon
_PORTS: Final = {"etcd": 2379, "zookeeper": 2181}
_URL: Final = re.compile(
    r"(?P<kind>etcd|zookeeper)(?P<tls>s?)://((?P<user>[^:@/]*):(?P<password>[^@/]*)@)?(?P<hosts>[^@/]+)/(?P<name>.+)"
)
_HOST: Final = re.compile(r"(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.%]+\])(:(?P<port>\d{1,5}))?")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


class BadServiceAddress(IllegalArgument):
    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; a coordination service is etcd://HOST:PORT,HOST:PORT/NAME or zookeeper://HOST:PORT,HOST:PORT/NAME"
        )


@dataclass(frozen=True, slots=True)
class ServiceTls:
    """PEM files: the authority of the servers, and this client's certificate and key if the servers require them."""

    ca_file: str
    cert_file: str | None = None
    key_file: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    kind: str  # etcd or zookeeper
    hosts: tuple[str, ...]  # HOST:PORT
    name: str
    is_tls: bool = False
    user: str | None = None
    password: str = ""

    @classmethod
    def parse(cls, url: str) -> ServiceAddress:
        """Raises BadServiceAddress, whose text has no password."""
        found = _URL.fullmatch(url.rstrip("/"))
        if found is None:
            raise BadServiceAddress(f"{_without_password(url)!r} is no address")
        kind, name, user = found["kind"], found["name"], found["user"]
        if not _NAME.fullmatch(name):
            raise BadServiceAddress(f"{name!r} is no name: letters, digits and . _ - / are")
        hosts = tuple(_host(text, _PORTS[kind]) for text in found["hosts"].split(","))
        account = (None, "") if user is None else (unquote(user), unquote(found["password"]))
        return cls(kind, hosts, name, bool(found["tls"]), *account)

    def __str__(self) -> str:
        """Return the address without user and password, for files and messages."""
        return f"{self.kind}{'s' if self.is_tls else ''}://{','.join(self.hosts)}/{self.name}"

    def connector(self, lease_s: float, tls: ServiceTls | None = None) -> Callable[[], CasStore]:
        """Return a function that makes a client.  Reads the files of ``tls``; raises OSError."""
        timeout_s = min(TIMEOUT_S, lease_s * TIMEOUT_SHARE)
        return self._etcd(timeout_s, tls) if self.kind == "etcd" else self._zookeeper(timeout_s, tls)

    def find_local_address(self) -> str:
        """Return the IP address of this machine on its route to the service; sends nothing but a look-up of the name.

        Raises OSError if no host of the service can be looked up, or none has a route.
        """
        for last, text in enumerate(self.hosts, 1):
            host, _, port = text.rpartition(":")
            try:
                return _address_towards(host.strip("[]"), int(port))
            except OSError:
                if last == len(self.hosts):
                    raise
        raise AssertionError("an address has a host")

    def _etcd(self, timeout_s: float, tls: ServiceTls | None) -> Callable[[], CasStore]:
        urls = [f"{'https' if self.is_tls else 'http'}://{host}" for host in self.hosts]
        account = None if self.user is None else EtcdAccount(self.user, self.password)
        context = None
        if self.is_tls:
            context = ssl.create_default_context(cafile=None if tls is None else tls.ca_file)
            if tls is not None and tls.cert_file is not None:
                context.load_cert_chain(tls.cert_file, tls.key_file)
        return lambda: CasEtcd(urls, self.name, timeout_s=timeout_s, account=account, tls=context)

    def _zookeeper(self, timeout_s: float, tls: ServiceTls | None) -> Callable[[], CasStore]:
        from columnar.coordination.cas_zookeeper import SESSION_S, CasZookeeper, ZookeeperAccount, ZookeeperTls

        if self.is_tls and tls is None:
            raise BadServiceAddress(f"{self} needs the file of its certificate authority")
        files = ZookeeperTls(tls.ca_file, tls.cert_file, tls.key_file) if self.is_tls and tls is not None else None
        account = None if self.user is None else ZookeeperAccount(self.user, self.password)
        session_s = max(SESSION_S, timeout_s)
        return lambda: CasZookeeper.connect(
            self.hosts, self.name, timeout_s=timeout_s, session_s=session_s, account=account, tls=files
        )


def _host(text: str, default_port: int) -> str:
    found = _HOST.fullmatch(text)
    port = default_port if found is None or found["port"] is None else int(found["port"])
    if found is None or not 0 < port < 65_536:
        raise BadServiceAddress(f"{text!r} is no HOST:PORT")
    return f"{found['host']}:{port}"


def _address_towards(host: str, port: int) -> str:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as towards:
        towards.connect(address)
        return str(towards.getsockname()[0])


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    kind, form, _ = head.partition("://")
    return f"{kind if form else ''}://...@{tail}" if at else url

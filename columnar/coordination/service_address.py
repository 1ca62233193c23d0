"""The address of a coordination service, as an operator writes it, and the clients that it stands for.

    etcd://HOST:PORT[,HOST:PORT...]/NAME          etcds:// with TLS
    zookeeper://HOST:PORT[,HOST:PORT...]/NAME     zookeepers:// with TLS

NAME is the prefix of the cluster's keys, so that several clusters can share a service.  It may have slashes.  The port
may be missing: 2379 for etcd, 2181 for ZooKeeper.  An address has no user and no password (``service_access``).

Certificates are read again by the first connection after a file has changed, so a renewed certificate needs no restart.
If the new files are broken, the old context stays in use.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from columnar.coordination.cas import CasStore
from columnar.coordination.cas_etcd import CasEtcd, EtcdAccount
from columnar.coordination.service_access import PASSWORD, PASSWORD_FILE, ServiceAccess
from columnar.errors import HostError, IllegalArgument
from columnar.runtime.pem_files import load_authorities, load_certificate

TIMEOUT_SHARE: Final = 0.4  # of the lease: it survives two calls without an answer
TIMEOUT_S: Final = 2.0  # at most, so that a start hears of a wrong address soon
CA: Final = "--coordination-ca"
CERT: Final = "--coordination-cert"
KEY: Final = "--coordination-key"
_PORTS: Final = {"etcd": 2379, "zookeeper": 2181}
_URL: Final = re.compile(r"(?P<kind>etcd|zookeeper)(?P<tls>s?)://(?P<hosts>[^@/]+)/(?P<name>.+)")
_HOST: Final = re.compile(r"(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.%]+\])(:(?P<port>\d{1,5}))?")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


_log = logging.getLogger(__name__)
_Stamps = tuple[tuple[int, int, int] | None, ...]  # of each file: inode, size, time of its last change


class BadServiceAddress(IllegalArgument):
    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; a coordination service is etcd://HOST:PORT,HOST:PORT/NAME or zookeeper://HOST:PORT,HOST:PORT/NAME"
        )


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    kind: str  # etcd or zookeeper
    hosts: tuple[str, ...]  # HOST:PORT
    name: str
    is_tls: bool = False

    @classmethod
    def parse(cls, url: str) -> ServiceAddress:
        """Raises BadServiceAddress, whose text has no password."""
        if "@" in url:
            raise BadServiceAddress(
                f"an address has no user and no password: give --coordination-user, and {PASSWORD_FILE} or the "
                f"variable {PASSWORD}"
            )
        found = _URL.fullmatch(url.rstrip("/"))
        if found is None:
            raise BadServiceAddress(f"{url!r} is no address")
        kind, name = found["kind"], found["name"]
        if not _NAME.fullmatch(name):
            raise BadServiceAddress(f"{name!r} is no name: letters, digits and . _ - / are")
        hosts = tuple(_host(text, _PORTS[kind]) for text in found["hosts"].split(","))
        return cls(kind, hosts, name, bool(found["tls"]))

    def __str__(self) -> str:
        return f"{self.kind}{'s' if self.is_tls else ''}://{','.join(self.hosts)}/{self.name}"

    def connector(self, lease_s: float, access: ServiceAccess) -> Callable[[], CasStore]:
        """Return a function that makes a client.

        Reads the password and the certificates.  Raises HostError if they cannot be used, or kazoo is not installed.
        """
        timeout_s = min(TIMEOUT_S, lease_s * TIMEOUT_SHARE)
        password = access.read_password()
        tls = ServiceTls.of_files(access) if self.is_tls else None
        if self.kind == "etcd":
            return self._etcd(timeout_s, access.user, password, tls)
        return self._zookeeper(timeout_s, access.user, password, tls)

    def find_local_address(self) -> str:
        """Return the IP address of this machine on its route to the service; sends nothing but a look-up of the name.

        A host of the service on this machine has the route of no other machine, so loopback is the answer only if all
        hosts are there.  Raises OSError if no host of the service can be looked up, or none has a route.
        """
        found, failure = "", OSError("no host")
        for text in self.hosts:
            host, _, port = text.rpartition(":")
            try:
                towards = _address_towards(host.strip("[]"), int(port))
            except OSError as error:
                failure = error
                continue
            if not ipaddress.ip_address(towards.partition("%")[0]).is_loopback:
                return towards
            found = found or towards
        if not found:
            raise failure
        return found

    def _etcd(self, timeout_s: float, user: str, password: str, tls: ServiceTls | None) -> Callable[[], CasStore]:
        urls = [f"{'https' if self.is_tls else 'http'}://{host}" for host in self.hosts]
        account = EtcdAccount(user, password) if user else None
        context = tls.context if tls is not None else None
        return lambda: CasEtcd(urls, self.name, timeout_s=timeout_s, account=account, tls=context)

    def _zookeeper(self, timeout_s: float, user: str, password: str, tls: ServiceTls | None) -> Callable[[], CasStore]:
        try:
            from columnar.coordination.cas_zookeeper import SESSION_S, CasZookeeper, ZookeeperAccount
        except ModuleNotFoundError as error:
            raise HostError(f"{self} needs the package kazoo: pip install kazoo") from error

        account = ZookeeperAccount(user, password) if user else None
        context = tls.context if tls is not None else None
        session_s = max(SESSION_S, timeout_s)
        return lambda: CasZookeeper.connect(
            self.hosts, self.name, timeout_s=timeout_s, session_s=session_s, account=account, tls=context
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


class ServiceTls:
    """The TLS context of connections to the service.  The server's certificate and the name in it are verified.

    Any thread may call ``context``.  Two threads that find a changed file at the same time both read it.
    """

    def __init__(self, access: ServiceAccess, stamps: _Stamps, context: ssl.SSLContext) -> None:
        """Pass the context that was made of the files, and the stamps that the files had before."""
        self._access = access
        self._made = (stamps, context)  # replaced as a whole

    @classmethod
    def of_files(cls, access: ServiceAccess) -> ServiceTls:
        """Read the files.  Raises HostError if they cannot be used."""
        stamps = _stamps(access)
        return cls(access, stamps, _context(access))

    def context(self) -> ssl.SSLContext:
        """Return the context for a new connection.  Blocks for one look at each file."""
        stamps, context = self._made
        found = _stamps(self._access)
        if found == stamps:
            return context
        try:
            context = _context(self._access)
            _log.info("the certificates of the coordination service were read again")
        except HostError as error:
            _log.error("connections to the coordination service keep the certificates in use: %s", error.text)
        self._made = (found, context)
        return context


def _context(access: ServiceAccess) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it verifies certificate and name; TLS 1.2 or later
    if access.ca_file:
        load_authorities(context, access.ca_file, CA)
    else:
        context.load_default_certs()
    if access.cert_file:
        load_certificate(context, access.cert_file, access.key_file, CERT, KEY)
    return context


def _stamps(access: ServiceAccess) -> _Stamps:
    return tuple(_stamp(path) for path in (access.ca_file, access.cert_file, access.key_file) if path)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None  # a file that is being replaced
    return found.st_ino, found.st_size, found.st_mtime_ns

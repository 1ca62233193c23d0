"""etcd and ZooKeeper with TLS, client certificates and a user who may touch one cluster's keys alone."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from columnar.coordination.cas import CasStore
from columnar.coordination.service_access import ServiceAccess
from columnar.coordination.service_address import ServiceAddress
from tests.support.certificates import Authority
from tests.support.coordination_services import Service, etcd, need, started, zookeeper

USER: Final = "columnar"
PASSWORD: Final = "right-for-7f31"
PATIENT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Secured:
    """A running service, and what a node needs for it."""

    service: Service
    authority: Authority
    url: str
    access: ServiceAccess

    def flags(self) -> tuple[str, ...]:
        """Return the options of ``columnar node``."""
        access = self.access
        return (
            *("--coordination-user", access.user, "--coordination-password-file", access.password_file),
            *("--coordination-ca", access.ca_file, "--coordination-cert", access.cert_file),
            *("--coordination-key", access.key_file),
        )

    def connector(self, access: ServiceAccess | None = None, under: str = "") -> Callable[[], CasStore]:
        """Return what makes clients, of all keys or those ``under`` a name of the cluster's."""
        return ServiceAddress.parse(self.url + under).connector(
            4 * PATIENT_S, self.access if access is None else access
        )


@contextmanager
def secured(kind: str, folder: Path, count: int = 1, *, host: str = "127.0.0.1") -> Iterator[Secured]:
    """Start the service; its address has the name ``columnar``, and its certificate is that of ``host``."""
    need(kind)
    authority = Authority(folder, "ours")
    own, server = authority.sign("node", field="O"), authority.sign("server", host=host)
    password = folder / "password"
    password.write_text(f"{PASSWORD}\n")
    access = ServiceAccess(
        user=USER, password_file=str(password), ca_file=authority.ca, cert_file=own.cert, key_file=own.key
    )
    context = ssl.create_default_context(cafile=authority.ca)
    context.load_cert_chain(own.cert, own.key)
    context.check_hostname = host == "127.0.0.1"
    if kind == "etcd":
        options = ("--cert-file", server.cert, "--key-file", server.key)
        options += ("--client-cert-auth", "--trusted-ca-file", authority.ca)
        service = etcd(folder, count, options, is_quick=True, tls=context)
    else:
        service = zookeeper(folder, count, is_quick=True, server=server, tls=lambda: context, ca=authority.ca)
    hosts = ",".join(address.rpartition("/")[2] for address in service.addresses)
    with started(service):
        if kind == "etcd":
            _add_user(service.addresses[0], context)
        yield Secured(service, authority, f"{kind}s://{hosts}/columnar", access)


def _add_user(url: str, context: ssl.SSLContext) -> None:
    """Turn authentication on.  The user ``columnar`` may read and write keys that begin with ``columnar/``."""
    from base64 import b64encode

    begin, end = (b64encode(key).decode() for key in (b"columnar/", b"columnar0"))
    for path, body in (
        ("user/add", {"name": "root", "password": "root"}),
        ("user/grant", {"user": "root", "role": "root"}),
        ("role/add", {"name": "columnar"}),
        ("role/grant", {"name": "columnar", "perm": {"permType": "READWRITE", "key": begin, "range_end": end}}),
        ("user/add", {"name": USER, "password": PASSWORD}),
        ("user/grant", {"user": USER, "role": "columnar"}),
        ("enable", {}),
    ):
        request = urllib.request.Request(f"{url}/v3/auth/{path}", json.dumps(body).encode())
        urllib.request.urlopen(request, timeout=PATIENT_S, context=context).close()

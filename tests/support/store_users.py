"""A store with rights, and clients of its users, who sign in as a certificate would name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from thriftpy2.rpc import make_client

from columnar.wire.idl import SERVICE, columnar, hbase
from columnar.wire.sign_in_protocol import SignInProtocol
from tests.support.serving import Serving
from tests.support.thrift2_client import H

DENIED = b"org.apache.hadoop.hbase.security.AccessDeniedException"


class Users:
    """A store with rights, and clients of its users."""

    def __init__(self, serving: Serving, patch: pytest.MonkeyPatch) -> None:
        self._serving = serving
        self._patch = patch

    @contextmanager
    def user(self, user: str, service: Any = SERVICE) -> Iterator[Any]:
        """Yield a client of the service for which the user has signed in."""

        self._patch.setattr(SignInProtocol, "_by_certificate", lambda _self, _transport: user)
        ports = self._serving.store.ports
        port = ports.port if service is SERVICE else ports.thrift2_port
        client = make_client(service, "127.0.0.1", port, timeout=20_000)
        client_ready = client.getThriftServerType if user else lambda: None
        client_ready()  # the connection has its user before another one signs in
        yield client
        client.close()


def grant(client: Any, grantee: str, rights: str, table: bytes = b"", family: bytes = b"", **more: Any) -> None:
    client.columnarGrant(columnar.RightsGrant(grantee=grantee, rights=rights, table=table, family=family, **more))


def revoke(client: Any, grantee: str, rights: str, table: bytes = b"", family: bytes = b"", **more: Any) -> None:
    client.columnarRevoke(columnar.RightsGrant(grantee=grantee, rights=rights, table=table, family=family, **more))


@contextmanager
def refused() -> Iterator[None]:
    with pytest.raises((hbase.IOError, hbase.IllegalArgument, H.TIOError)) as caught:
        yield
    message = caught.value.message
    assert (message if isinstance(message, bytes) else message.encode()).startswith(DENIED), message

"""Thrift 2, HTTP and TLS at a cluster: each server answers for rows of another one, whatever door it is asked at.

One cluster is plain, one speaks TLS on every port.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest
from thriftpy2.rpc import make_client

from columnar.bench.calls import FRAME_HEAD, call, puts
from columnar.client import ClientTls, ClusterAdmin, Connection
from tests.support.certificates import Authority
from tests.support.cluster_process import ClusterProcess
from tests.support.standalone_store import WAIT_S
from tests.support.thrift2_client import H, cell, put
from tests.support.thrift_replies import unpacked

TABLE = b"doors"
SPLITS = [b"d", b"h", b"m", b"r", b"v"]
ROWS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]


@dataclass
class Cluster:
    """``ports``: of each server, its own; each owns some of the rows."""

    store: ClusterProcess
    tls: ClientTls | None
    ports: dict[str, int]

    def context(self) -> ssl.SSLContext | None:
        return self.tls.context() if self.tls is not None else None


def connected(port: int, tls: ClientTls | None) -> Connection:
    return Connection("127.0.0.1", port, timeout=int(1_000 * WAIT_S), tls=tls)


@pytest.fixture(scope="module", params=["plain", "TLS"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder, tls, flags = tmp_path_factory.mktemp("doors"), None, []
    if request.param == "TLS":
        authority = Authority(folder, "ours")
        server, tls = authority.sign("store"), authority.client()
        flags = ["--tls-cert", server.cert, "--tls-key", server.key]
    with ClusterProcess(folder / "data", 2, "--thrift2-port", "0", *flags) as store:
        connection = connected(store.port, tls)
        connection.create_table(TABLE, {"f": {}}, splits=SPLITS)
        admin = ClusterAdmin(connection)
        ports = {one.name: int(one.address.rpartition(":")[2]) for one in admin.servers().servers}
        assert {region.server for region in admin.locations(TABLE)} == set(ports), "each owns some"
        connection.close()
        yield Cluster(store, tls, ports)


def test_thrift_1_at_each_servers_own_port(cluster: Cluster) -> None:
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(closing(connected(port, cluster.tls))).table(TABLE) for port in cluster.ports.values()
        )
        for row in ROWS:
            one.put(row, {b"f:own": row})
        assert {row: other.row(row) for row in ROWS} == {row: {b"f:own": row} for row in ROWS}


def over_http(cluster: Cluster, port: int) -> http.client.HTTPConnection:
    if (context := cluster.context()) is not None:
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=WAIT_S, context=context)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)


def asked(web: http.client.HTTPConnection, method: str, *args: Any) -> Any:
    web.request("POST", "/", call(method, *args)[FRAME_HEAD:], {"Content-Type": "application/x-thrift"})
    return unpacked(method, web.getresponse().read())


def test_http_at_each_servers_own_port(cluster: Cluster) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(over_http(cluster, port))) for port in cluster.ports.values())
        for row in ROWS:
            asked(one, "mutateRow", TABLE, row, puts([(b"f:http", row)]))
        for row in ROWS:
            assert [found.value for found in asked(other, "get", TABLE, row, b"f:http")] == [row]


def test_thrift_2_at_each_server(cluster: Cluster) -> None:
    """Two connections to the port that they share are at two servers."""
    one, other = (
        make_client(
            H.THBaseService,
            "127.0.0.1",
            cluster.store.thrift2_port,
            timeout=int(1_000 * WAIT_S),
            ssl_context=cluster.context(),
        )
        for _ in range(2)
    )
    for row in ROWS:
        one.put(TABLE, put(row, cell(b"f", b"two", row)))
    for row in ROWS:
        found = other.get(TABLE, H.TGet(row=row, columns=[H.TColumn(family=b"f", qualifier=b"two")]))
        assert [one.value for one in found.columnValues] == [row]
    one.close()
    other.close()

"""Rights over several servers: whichever server a client reaches, it decides alike, also for rows of other servers."""

from __future__ import annotations

import itertools
import os
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TFramedTransport, TSocket

from columnar.client import Connection
from columnar.security.credentials import hash_of, new_token
from columnar.wire.idl import SERVICE, columnar, hbase
from columnar.wire.sasl import COMPLETE, OK, PLAIN, START, sasl_message
from tests.support.cluster_process import ClusterProcess

TOKENS = {name: new_token(lambda _bytes, name=name: name * 12) for name in ("ann", "bob", "chief")}  # type: ignore[misc]
ROWS = [b"%d" % n for n in range(10)]
SPLITS = [b"2", b"4", b"6", b"8"]
CLIENTS = 6  # of a user: they reach both servers


class _SignedIn(TSocket):  # type: ignore[misc]
    token = ""

    def open(self) -> None:
        super().open()
        name = next(name for name, token in TOKENS.items() if token == self.token)
        self.write(sasl_message(START, PLAIN) + sasl_message(OK, f"\0{name}\0{self.token}".encode()))
        assert self.sock.recv(5, socket.MSG_WAITALL) == sasl_message(COMPLETE)


@contextmanager
def clients(port: int, user: str) -> Iterator[list[Any]]:
    found = []
    for _ in range(CLIENTS):
        sock = _SignedIn("127.0.0.1", port)
        sock.token = TOKENS[user]
        sock.set_timeout(20_000)
        transport = TFramedTransport(sock)
        transport.open()
        found.append(TClient(SERVICE, TBinaryProtocol(transport, decode_response=False)))
    yield found
    for client in found:
        client._iprot.trans.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    folder = tmp_path_factory.mktemp("rights") / "data"
    made = ClusterProcess(folder, 2)
    with made:
        connection = Connection("127.0.0.1", made.port)
        connection.admin.create_table("t", {"a": {}, "b": {}}, splits=SPLITS)
        connection.admin.create_table("other", {"a": {}})
        for row in ROWS:
            connection.table("t").put(row, {b"a:1": b"seen", b"a:2": b"secret", b"b:1": b"secret"})
        for name, token in TOKENS.items():
            connection.call("columnarAddToken", name, "test", hash_of(token))
        grant = columnar.RightsGrant(grantee="ann", rights="R", table=b"t", family=b"a", qualifier=b"1")
        connection.call("columnarGrant", grant)
        connection.close()
        made.stop()
    flags = ("--rights", "on", "--superuser", "chief", "--socket", str(folder.parent / "clients"), "--web-port", "0")
    with ClusterProcess(folder, 2, *flags, port=made.port) as running:
        yield running


def _rows(found: Any) -> dict[bytes, dict[bytes, bytes]]:
    return {one.row: {column: cell.value for column, cell in one.columns.items()} for one in found}


def _refused(call: Any) -> bool:
    with suppress(hbase.IOError, hbase.IllegalArgument):
        call()
        return False
    return True


def test_every_server_narrows_reads_of_rows_of_every_server(cluster: ClusterProcess) -> None:
    seen = {row: {b"a:1": b"seen"} for row in ROWS}
    with clients(cluster.port, "ann") as of_ann:
        for ann in of_ann:
            assert {row: _rows(ann.getRow(b"t", row, {}))[row] for row in ROWS} == seen
            assert _rows(ann.getRows(b"t", ROWS, {})) == seen
            opened = ann.scannerOpenWithScan(b"t", hbase.TScan(), {})
            assert _rows(ann.scannerGetList(opened, 100)) == seen
            assert all(_refused(lambda row=row, ann=ann: ann.get(b"t", row, b"b:1", {})) for row in ROWS)  # type: ignore[misc]
            assert ann.getTableNames() == [b"t"]
            assert list(ann.columnarListNamespaceTables(b"default")) == [b"t"]


def test_a_scanner_is_its_users_at_every_server(cluster: ClusterProcess) -> None:
    with clients(cluster.port, "chief") as of_chief, clients(cluster.port, "ann") as of_ann:
        opened = of_chief[0].scannerOpenWithScan(b"t", hbase.TScan(), {})
        assert all(_refused(lambda ann=ann: ann.scannerGetList(opened, 1)) for ann in of_ann)  # type: ignore[misc]
        for chief in of_chief:
            assert len(chief.scannerGetList(opened, 1)) == 1


def test_a_change_of_rights_is_in_force_at_every_server_when_it_is_answered(cluster: ClusterProcess) -> None:
    grant = columnar.RightsGrant(grantee="bob", rights="RW", table=b"t")
    with clients(cluster.port, "chief") as of_chief, clients(cluster.port, "bob") as of_bob:
        for _ in range(3):
            of_chief[0].columnarGrant(grant)
            for bob in of_bob:
                for row in ROWS:
                    bob.mutateRow(b"t", row, [hbase.Mutation(column=b"a:1", value=b"seen")], {})
            of_chief[1].columnarRevoke(grant)
            assert all(_refused(lambda bob=bob: bob.getRow(b"t", b"1", {})) for bob in of_bob)  # type: ignore[misc]


def test_the_maker_of_a_table_has_it_at_every_server(cluster: ClusterProcess) -> None:
    with clients(cluster.port, "chief") as of_chief, clients(cluster.port, "bob") as of_bob:
        of_chief[0].columnarCreateNamespace(b"team", {})
        of_chief[0].columnarGrant(columnar.RightsGrant(grantee="bob", rights="C", namespaceName="team"))
        of_bob[0].createTable(b"team:x", [hbase.ColumnDescriptor(name=b"a")])
        for bob in of_bob:
            bob.mutateRow(b"team:x", b"r", [hbase.Mutation(column=b"a:1", value=b"1")], {})
        assert [one.user for one in [bob.columnarWhoAmI() for bob in of_bob]] in (["bob"] * CLIENTS, [b"bob"] * CLIENTS)
        assert all(_refused(lambda bob=bob: bob.columnarServers()) for bob in of_bob)  # type: ignore[misc]
        of_bob[1].columnarDropTable(b"team:x")


def _page(cluster: ClusterProcess, path: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(cluster.web + path, headers=headers), timeout=20) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_pages_and_metrics_are_for_users_with_x_or_a(cluster: ClusterProcess) -> None:
    for path in ("/", "/metrics", "/tables/t"):
        assert [_page(cluster, path, token) for token in ("", "clmn_wrong", TOKENS["ann"])] == [401, 401, 403]
    assert (_page(cluster, "/", TOKENS["chief"]), _page(cluster, "/metrics", TOKENS["chief"])) == (200, 200)
    assert _page(cluster, "/livez", "") == 200


def test_the_unix_socket_reaches_every_server(cluster: ClusterProcess) -> None:
    path = str(cluster.folder.parent / "clients")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    opened = [Connection(unix_socket=path, user=user) for user in ("root", "ann") * CLIENTS]
    seen: set[str] = set()
    for one in opened:
        who = one.call("columnarWhoAmI").user.decode()
        rows = dict(one.table(b"t").scan())
        assert len(rows) == len(ROWS)
        assert all(len(cells) == (1 if who == "ann" else 3) for cells in rows.values())
        seen.add(who)
        one.close()
    assert seen == {"root", "ann"}


_HOSTS = itertools.count(1)  # of the addresses that strangers come from


def _salts_of_a_stranger(port: int, user: bytes, count: int = CLIENTS) -> set[bytes]:
    """Return the challenges of SCRAM for a user, without the nonces.

    The connections are open at the same time, so each server has its share of them.  A server counts the attempts that
    do not end as failures of their address, so each connection comes from an address of its own.
    """
    found = set[bytes]()
    with ExitStack() as stack:
        for _ in range(count):
            source = (f"127.0.1.{next(_HOSTS)}", 0)
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20, source))
            first = b"n,,n=%s,r=rOprNGfwEbeRWgbNEkqO" % user
            sock.sendall(sasl_message(START, b"SCRAM-SHA-256") + sasl_message(OK, first))
            status, length = (head := sock.recv(5, socket.MSG_WAITALL))[0], int.from_bytes(head[1:], "big")
            answer = sock.recv(length, socket.MSG_WAITALL)
            assert status == OK, answer
            found.add(answer.partition(b",")[2])
    return found


def test_every_server_and_every_start_shows_the_same_salt_of_a_user_that_does_not_exist(
    cluster: ClusterProcess,
) -> None:
    """Otherwise a stranger would see which users there are: those whose salt stays."""
    before = _salts_of_a_stranger(cluster.port, b"nobody")
    assert len(before) == 1
    assert not _salts_of_a_stranger(cluster.port, b"another", 1) & before
    with clients(cluster.port, "chief") as (chief, *_):
        chief.columnarDropUser("bob")  # the record is written anew
    assert _salts_of_a_stranger(cluster.port, b"nobody") == before
    cluster.stop()
    cluster.start()
    assert _salts_of_a_stranger(cluster.port, b"nobody") == before

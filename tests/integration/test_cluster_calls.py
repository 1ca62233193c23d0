"""Calls that concern several servers, through real servers: scanners of another server, triggers, dead letters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from columnar.client import Connection
from columnar.wire.idl import hbase
from tests.support.cluster_process import ClusterProcess

SPLITS = [b"d", b"h", b"m", b"r", b"v"]
ROWS = [bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"]
MODULE = "tests.support.trigger_functions"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    folder = tmp_path_factory.mktemp("cluster") / "data"
    with ClusterProcess(folder, 2, "--web-port", "-1", "--trigger-modules", MODULE) as store:
        yield store


def made(cluster: ClusterProcess, table: str, family: str = "f") -> Connection:
    connection = cluster.connection()
    connection.create_table(table, {family: {}}, splits=SPLITS)
    return connection


def test_a_scanner_goes_on_through_any_server(cluster: ClusterProcess) -> None:
    made(cluster, "scanned").close()
    one, other = cluster.rows_of_each()
    with one, other:
        for row in ROWS:
            one.put(b"scanned", row, b"v")
        scanner = one.client.scannerOpenWithScan(b"scanned", hbase.TScan(), {})
        found = [found.row for found in one.client.scannerGetList(scanner, 5)]
        while more := other.client.scannerGetList(scanner, 5):
            found += [one.row for one in more]
        assert found == ROWS
        other.client.scannerClose(scanner)
        with pytest.raises(hbase.IllegalArgument):
            one.client.scannerGetList(scanner, 5)


def test_triggers_of_all_servers_deliver_and_bury(cluster: ClusterProcess) -> None:
    connection = made(cluster, "orders")
    made(cluster, "audit", "a").close()
    connection.triggers.add("obeys", b"orders", f"{MODULE}:obey", [b"f"], attempts=1)
    for row in ROWS:
        connection.table("orders").put(row, {b"f:do": b"raise"})
    letters = []
    while len(letters) < len(ROWS):
        letters = connection.triggers.dead_letters("obeys")
    assert sorted(letter.row for letter in letters) == ROWS, "each server buries in the one table"
    connection.close()

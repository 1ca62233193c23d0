"""Scans of a client of several servers: from owner to owner, resumed where they ended, bounded."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.client.client_scans import MOST_SCANNERS
from columnar.client.errors import IllegalArgument, WrongArgument
from columnar.client.store_socket import NotConnected
from columnar.wire.idl import hbase
from tests.support.client_of_fakes import Client, split


def rows_of(client: Client, scan: Any, count: int = 10) -> list[bytes]:
    scanner, found = client("scannerOpenWithScan", b"t", scan, {}), []
    while rows := client("scannerGetList", scanner, count):
        found += [one.row for one in rows]
    client("scannerClose", scanner)
    return found


def filled(**options: Any) -> Client:
    client = Client(**options)
    split(client)
    client.store.cells = {b"%c%d" % (letter, n): 1 for letter in b"abc" for n in range(5)}
    return client


def test_a_scan_goes_from_owner_to_owner() -> None:
    client = filled()
    found = rows_of(client, hbase.TScan(startRow=b"a3", stopRow=b"c2"))
    assert found == [b"a3", b"a4", *[b"b%d" % n for n in range(5)], b"c0", b"c1"]
    assert [server for server, method in client.took() if method == "scannerOpenWithScan"] == [0, 1, 2]
    assert client.store.forwarded == 0
    assert client.store.scanners == {}


def test_a_scan_of_one_region_opens_one_scanner() -> None:
    client = filled()
    assert rows_of(client, hbase.TScan(startRow="b1", stopRow="b3")) == [b"b1", b"b2"]
    assert rows_of(client, hbase.TScan(startRow=b"b1", stopRow=b"c")) == [b"b%d" % n for n in range(1, 5)]
    assert [server for server, method in client.took() if method == "scannerOpenWithScan"] == [1, 1]


@pytest.mark.parametrize("scan", [
    hbase.TScan(reversed=True), hbase.TScan(startRow=b"c3", reversed=True),
    hbase.TScan(startRow=b"c", filterString=b"PageFilter(3)"), hbase.TScan(startRow=b"c", batchSize=2),
    hbase.TScan(startRow=b"c", filterString=b"NoFilter("),
])  # fmt: skip
def test_scans_of_one_piece_go_to_the_owner_of_their_first_row(scan: Any) -> None:
    client = filled()
    rows_of(client, scan)
    assert [server for server, method in client.took() if method == "scannerOpenWithScan"] == [2]


@pytest.mark.parametrize("routing", [True, False])
@pytest.mark.parametrize("fault", ["unsent", "undone", "done"])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_scan_is_resumed_behind_its_last_row(*, fault: str, routing: bool, is_reversed: bool) -> None:
    client = filled(routing=routing, gateways=1 if routing else 2)
    scan = hbase.TScan(reversed=is_reversed)
    scanner = client("scannerOpenWithScan", b"t", scan, {})
    found = [one.row for one in client("scannerGetList", scanner, 2)]
    client.faults(fault)
    while rows := client("scannerGetList", scanner, 2):
        found += [one.row for one in rows]
    assert found == sorted(client.store.cells, reverse=is_reversed)


def test_a_scanner_that_its_server_knows_no_more_is_resumed() -> None:
    client = filled()
    scanner = client("scannerOpenWithScan", b"t", hbase.TScan(), {})
    found = [one.row for one in client("scannerGetList", scanner, 2)]
    client.store.scanners.clear()
    found += [one.row for one in client("scannerGetList", scanner, 3)]
    assert found == [b"a%d" % n for n in range(5)]
    client.store.scanners.clear()
    client("scannerClose", scanner)


def test_a_scan_with_a_memory_is_not_resumed_behind_rows() -> None:
    client = filled()
    scan = hbase.TScan(filterString=b"PageFilter(100)")
    scanner = client("scannerOpenWithScan", b"t", scan, {})
    client.faults("undone")
    assert client("scannerGetList", scanner, 2), "it was not begun"
    client.faults("undone")
    with pytest.raises(NotConnected):
        client("scannerGetList", scanner, 2)
    with pytest.raises(NotConnected, match="the connection of the scanner has ended"):
        client("scannerGetList", scanner, 2)
    scanner = client("scannerOpenWithScan", b"t", scan, {})
    client("scannerGetList", scanner, 2)
    client.store.scanners.clear()
    with pytest.raises(IllegalArgument, match="scanner ID is invalid"):
        client("scannerGetList", scanner, 2)


def test_scanners_are_bounded_and_unknown_ones_refused() -> None:
    client = filled()
    for _ in range(MOST_SCANNERS):
        scanner = client("scannerOpenWithScan", b"t", hbase.TScan(), {})
    with pytest.raises(WrongArgument, match="close some of them"):
        client("scannerOpenWithScan", b"t", hbase.TScan(), {})
    client("scannerClose", scanner)
    for method, args in (("scannerClose", ()), ("scannerGetList", (1,))):
        with pytest.raises(IllegalArgument, match="scanner ID is invalid"):
            client(method, scanner, *args)
    client.calls.close()
    assert len(client.calls._scans) == 0


def test_no_rows_wanted_is_no_end() -> None:
    client = filled()
    scanner = client("scannerOpenWithScan", b"t", hbase.TScan(), {})
    assert client("scannerGetList", scanner, 0) == []
    assert len(client("scannerGetList", scanner, 2)) == 2

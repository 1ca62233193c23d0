"""Scanners of the Thrift 2 service, as HBase's own handler and a running 2.6.1 do them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import Serving
from tests.support.thrift2_client import H, T, cell, cells_of, column, connect, four_versions, put, served, with_table


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("thrift2") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    with with_table(serving) as thrift:
        yield thrift


@pytest.fixture(scope="module")
def scanned(client: Any) -> Any:
    """Ten rows of five columns, each row at a timestamp of its own."""
    cells = [[cell(b"a", b"%d" % q, b"%d-%d" % (n, q), 100 + n) for q in range(5)] for n in range(10)]
    client.putMultiple(T, [put(b"s%d" % n, *row, cell(b"b", b"q", b"", 100 + n)) for n, row in enumerate(cells)])
    return client


def scan(**more: Any) -> Any:
    return H.TScan(**{"startRow": b"s", "stopRow": b"s:", "columns": [column(b"a")], **more})


def rows(results: list[Any]) -> list[bytes]:
    return [result.row for result in results]


ALL = [b"s%d" % n for n in range(10)]


def test_scan(scanned: Any) -> None:
    scanner = scanned.openScanner(T, scan())
    assert rows(scanned.getScannerRows(scanner, 10)) == ALL
    assert scanned.getScannerRows(scanner, 10) == []
    assert scanned.getScannerRows(scanner, 10) == [], "the end may be asked for again"
    scanned.closeScanner(scanner)
    with pytest.raises(H.TIllegalArgument, match="Invalid scanner Id"):
        scanned.getScannerRows(scanner, 10)
    scanned.closeScanner(scanner)


def test_scan_row_by_row(scanned: Any) -> None:
    scanner = scanned.openScanner(T, scan())
    assert rows([scanned.getScannerRows(scanner, 1)[0] for _ in range(10)]) == ALL
    assert scanned.getScannerRows(scanner, 0) == []
    scanned.closeScanner(scanner)


def test_a_scanner_that_is_used_lives_and_one_that_is_not_expires(scanned: Any, serving: Serving) -> None:
    late = [0.0]
    scanners = serving.store.serving.scanners
    clock = scanners._now
    serving.do(lambda: setattr(scanners, "_now", lambda: clock() + late[0]))
    used, unused = scanned.openScanner(T, scan()), scanned.openScanner(T, scan())
    found = []
    for _ in range(5):
        late[0] += 400  # of a lease of 600 s
        found += rows(scanned.getScannerRows(used, 2))
    assert found == ALL
    with pytest.raises(H.TIllegalArgument, match="Invalid scanner Id"):
        scanned.getScannerRows(unused, 2)
    scanned.closeScanner(used)


def test_scanner_ids_work_from_any_connection(scanned: Any, serving: Serving) -> None:
    scanner = scanned.openScanner(T, scan())
    other = connect(serving)
    assert rows(other.getScannerRows(scanner, 10)) == ALL
    other.closeScanner(scanner)
    other.close()


def test_reversed(scanned: Any) -> None:
    backwards = scan(startRow=b"s9", stopRow=b"s4", reversed=True)
    scanner = scanned.openScanner(T, backwards)
    assert rows(scanned.getScannerRows(scanner, 10)) == [b"s9", b"s8", b"s7", b"s6", b"s5"]
    scanned.closeScanner(scanner)


def test_scan_with_a_filter(scanned: Any) -> None:
    results = scanned.getScannerResults(T, scan(filterString=b"KeyOnlyFilter()"), 100)
    assert rows(results) == ALL
    assert {value.value for result in results for value in result.columnValues} == {b""}
    assert rows(scanned.getScannerResults(T, scan(filterString=b"PageFilter(3)"), 100)) == ALL[:3]


def test_time_ranges_of_a_scan(scanned: Any) -> None:
    window = H.TTimeRange(minStamp=103, maxStamp=105)
    assert rows(scanned.getScannerResults(T, scan(timeRange=window), 100)) == [b"s3", b"s4"]
    per_family = scan(columns=None, colFamTimeRangeMap={b"a": window})
    results = scanned.getScannerResults(T, per_family, 100)
    assert rows(results) == ALL, "the other family is not narrowed"
    assert [len(result.columnValues) for result in results] == [1, 1, 1, 6, 6, 1, 1, 1, 1, 1]
    both = scan(timeRange=H.TTimeRange(minStamp=0, maxStamp=101), colFamTimeRangeMap={b"a": window})
    assert rows(scanned.getScannerResults(T, both, 100)) == [b"s3", b"s4"]
    unknown = scan(colFamTimeRangeMap={b"none": window})
    assert rows(scanned.getScannerResults(T, unknown, 100)) == ALL


def test_versions_of_a_scan(scanned: Any) -> None:
    four_versions(scanned, b"t versions")
    versions = H.TScan(startRow=b"t versions", stopRow=b"t versions", columns=[column(b"a", b"q")], maxVersions=2)
    (result,) = scanned.getScannerResults(T, versions, 5)
    assert [at for _, _, at in cells_of(result)] == [40, 30]


def test_batches(scanned: Any) -> None:
    """A row of five columns comes as 2, 2 and 1; all but the last are partial."""
    scanner = scanned.openScanner(T, scan(batchSize=2))
    results = []
    while found := scanned.getScannerRows(scanner, 4):
        results += found
    scanned.closeScanner(scanner)
    assert [(r.row, len(r.columnValues), r.partial) for r in results] == [
        (row, size, size == 2) for row in ALL for size in (2, 2, 1)
    ]


def test_limits(scanned: Any) -> None:
    assert rows(scanned.getScannerResults(T, scan(limit=4), 100)) == ALL[:4]
    assert rows(scanned.getScannerResults(T, scan(limit=2, batchSize=2), 100)) == [b"s0"] * 3 + [b"s1"] * 3
    assert (
        rows(scanned.getScannerResults(T, scan(limit=2, reversed=True, startRow=b"s9", stopRow=b""), 100)) == ALL[:7:-1]
    )
    scanner = scanned.openScanner(T, scan(limit=3))
    assert [rows(scanned.getScannerRows(scanner, 2)) for _ in range(3)] == [ALL[:2], ALL[2:3], []]
    scanned.closeScanner(scanner)


def test_results_without_a_scanner(scanned: Any, serving: Serving) -> None:
    before = len(serving.store.serving.scanners)
    assert rows(scanned.getScannerResults(T, scan(), 3)) == ALL[:3]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s3"), 3)) == ALL[3:6]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s3", stopRow=b"s5"), 100)) == ALL[3:5]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s9", stopRow=b"s7", reversed=True), 100)) == ALL[:7:-1]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s5", stopRow=b"s5"), 100)) == [b"s5"]
    assert scanned.getScannerResults(T, scan(startRow=b"nothing", stopRow=b"nothingz"), 100) == []
    assert len(serving.store.serving.scanners) == before

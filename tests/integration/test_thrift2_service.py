"""The Thrift 2 service, by a client made from its published interface and nothing else.

The behaviours are those that HBase's own handler is held to, and what a running 2.6.1 answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from thriftpy2.http import make_client as make_http_client
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TBufferedTransportFactory, TFramedTransportFactory

from tests.support.serving import Serving

ROOT = Path(__file__).parents[2]
H = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase2.thrift"), module_name="published_hbase2_thrift")
H1 = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase.thrift"), module_name="published_hbase1_thrift")
T = b"thrift2"
DELETE_COLUMN, DELETE_COLUMNS, DELETE_FAMILY, DELETE_FAMILY_VERSION = range(4)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    running = Serving(tmp_path_factory.mktemp("thrift2") / "data", thrift2_port=0).start()
    yield running
    running.stop()


def connect(serving: Serving) -> Any:
    return make_client(H.THBaseService, "127.0.0.1", serving.store.thrift2_port, timeout=30_000)


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    thrift = connect(serving)
    families = [
        H.TColumnFamilyDescriptor(name=b"a", maxVersions=3),
        H.TColumnFamilyDescriptor(name=b"b", maxVersions=2),
    ]
    thrift.createTable(H.TTableDescriptor(tableName=name(T), columns=families), None)
    yield thrift
    thrift.close()


def name(qualifier: bytes, namespace: bytes | None = None) -> Any:
    return H.TTableName(ns=namespace, qualifier=qualifier)


def cell(family: bytes, qualifier: bytes, value: bytes = b"v", timestamp: int | None = None) -> Any:
    return H.TColumnValue(family=family, qualifier=qualifier, value=value, timestamp=timestamp)


def put(row: bytes, *cells: Any, **more: Any) -> Any:
    return H.TPut(row=row, columnValues=list(cells), **more)


def column(family: bytes, qualifier: bytes | None = None, timestamp: int | None = None) -> Any:
    return H.TColumn(family=family, qualifier=qualifier, timestamp=timestamp)


def delete(row: bytes, *columns: Any, **more: Any) -> Any:
    return H.TDelete(row=row, columns=list(columns) or None, **more)


def read(client: Any, row: bytes, **more: Any) -> list[tuple[bytes, bytes, int]]:
    """(family:qualifier, value, timestamp) of a row."""
    return cells_of(client.get(T, H.TGet(row=row, **more)))


def cells_of(result: Any) -> list[tuple[bytes, bytes, int]]:
    return [(v.family + b":" + v.qualifier, v.value, v.timestamp) for v in result.columnValues]


def values(client: Any, row: bytes, **more: Any) -> dict[bytes, bytes]:
    return {column: value for column, value, _ in read(client, row, **more)}


def four_versions(client: Any, row: bytes) -> None:
    """Three stay: the family keeps no more."""
    for stamp in (10, 20, 30, 40):
        client.put(T, put(row, cell(b"a", b"q", b"v%d" % stamp, stamp), cell(b"a", b"z", b"z%d" % stamp, stamp)))


def stamps(client: Any, row: bytes, qualifier: bytes = b"q") -> list[int]:
    return [at for found, _, at in read(client, row, maxVersions=9) if found == b"a:" + qualifier]


# --- gets and puts ---------------------------------------------------------------------------------


def test_exists(client: Any) -> None:
    assert client.exists(T, H.TGet(row=b"exists")) is False
    client.put(T, put(b"exists", cell(b"a", b"q"), cell(b"b", b"q")))
    assert client.exists(T, H.TGet(row=b"exists")) is True
    assert client.exists(T, H.TGet(row=b"exists", columns=[column(b"a", b"other")])) is False


def test_exists_all(client: Any) -> None:
    client.putMultiple(T, [put(b"all1", cell(b"a", b"q")), put(b"all3", cell(b"a", b"q"))])
    assert client.existsAll(T, [H.TGet(row=row) for row in (b"all1", b"all2", b"all3")]) == [True, False, True]
    assert client.existsAll(T, []) == []


def test_put_and_get(client: Any) -> None:
    client.put(T, put(b"one", cell(b"b", b"q", b"2"), cell(b"a", b"q", b"1"), cell(b"a", b"", b"0")))
    result = client.get(T, H.TGet(row=b"one"))
    assert result.row == b"one"
    assert [(v.family, v.qualifier, v.value) for v in result.columnValues] == [
        (b"a", b"", b"0"),
        (b"a", b"q", b"1"),
        (b"b", b"q", b"2"),
    ]
    assert {v.type for v in result.columnValues} == {4}
    assert (result.stale, result.partial) == (False, False)


def test_a_row_that_is_not_there(client: Any) -> None:
    result = client.get(T, H.TGet(row=b"never"))
    assert (result.row, result.columnValues) == (None, [])


def test_put_and_get_several(client: Any) -> None:
    """In the order asked, with an empty result where there is no row."""
    client.putMultiple(T, [put(b"m%d" % n, cell(b"a", b"q", b"%d" % n)) for n in range(3)])
    results = client.getMultiple(T, [H.TGet(row=row) for row in (b"m2", b"none", b"m0", b"m2")])
    assert [result.row for result in results] == [b"m2", None, b"m0", b"m2"]
    assert [len(result.columnValues) for result in results] == [1, 0, 1, 1]


def test_many_rows_are_read_in_steps(client: Any, serving: Serving) -> None:
    client.putMultiple(T, [put(b"step%03d" % n, cell(b"a", b"q", b"%d" % n)) for n in range(300)])
    gets = [
        H.TGet(row=b"step%03d" % (n % 300), filterString=b"KeyOnlyFilter()" if n == 150 else None) for n in range(600)
    ]
    results = client.getMultiple(T, gets)
    assert [result.row for result in results] == [get.row for get in gets]
    assert results[150].columnValues[0].value == b""
    assert results[450].columnValues[0].value == b"150"


def test_which_versions_a_get_sees(client: Any) -> None:
    four_versions(client, b"versions")
    q = [column(b"a", b"q", 10)]  # the column's own timestamp is not looked at
    assert [at for _, _, at in read(client, b"versions", columns=q)] == [40]
    assert [at for _, _, at in read(client, b"versions", columns=q, maxVersions=2)] == [40, 30]
    assert [at for _, _, at in read(client, b"versions", columns=q, timestamp=20)] == [20]
    assert [at for _, _, at in read(client, b"versions", columns=q, timestamp=25)] == []
    window = H.TTimeRange(minStamp=20, maxStamp=40)
    assert [at for _, _, at in read(client, b"versions", columns=q, timeRange=window)] == [30]
    assert [at for _, _, at in read(client, b"versions", columns=q, timeRange=window, maxVersions=9)] == [30, 20]
    assert [at for _, _, at in read(client, b"versions", columns=q, timeRange=window, timestamp=40)] == [40]


def test_store_limit_and_offset(client: Any) -> None:
    four_versions(client, b"limits")
    client.put(T, put(b"limits", cell(b"b", b"1"), cell(b"b", b"2"), cell(b"b", b"3")))
    assert [found for found, _, _ in read(client, b"limits", storeLimit=2)] == [b"a:q", b"a:z", b"b:1", b"b:2"]
    assert [found for found, _, _ in read(client, b"limits", storeLimit=1, storeOffset=1)] == [b"a:z", b"b:2"]
    assert [at for _, _, at in read(client, b"limits", storeLimit=2, maxVersions=3, columns=[column(b"a")])] == [40, 30]


def test_a_get_with_a_filter(client: Any) -> None:
    four_versions(client, b"filtered")
    assert read(client, b"filtered", filterString=b"ValueFilter(=, 'binary:v20')") == [(b"a:q", b"v20", 20)]
    assert read(client, b"filtered", filterString=b"PrefixFilter('other')") == []
    keys = read(client, b"filtered", filterString=b"KeyOnlyFilter()", maxVersions=2)
    assert keys == [(b"a:q", b"", 40), (b"a:q", b"", 30), (b"a:z", b"", 40), (b"a:z", b"", 30)]


def test_timestamps_of_a_put(client: Any) -> None:
    client.put(T, put(b"stamped", cell(b"a", b"1"), cell(b"a", b"2", timestamp=7), timestamp=5))
    assert read(client, b"stamped") == [(b"a:1", b"v", 5), (b"a:2", b"v", 7)]
    before = int(time.time() * 1000)
    client.put(T, put(b"clock", cell(b"a", b"1")))
    assert before <= read(client, b"clock")[0][2] <= int(time.time() * 1000)


def test_time_to_live_of_a_put(client: Any, serving: Serving) -> None:
    client.put(T, put(b"ttl", cell(b"a", b"q"), attributes={b"_ttl": (60_000).to_bytes(8, "big")}))
    client.put(T, put(b"ttl", cell(b"a", b"past", timestamp=1), attributes={b"_ttl": (1).to_bytes(8, "big")}))
    assert list(values(client, b"ttl")) == [b"a:q"]


@pytest.mark.parametrize("durability", [None, 0, 1, 2, 3, 4])
def test_durability(client: Any, durability: int | None) -> None:
    row = f"durable {durability}".encode()
    client.put(T, put(row, cell(b"a", b"q", b"1"), cell(b"b", b"q"), durability=durability))
    client.increment(T, H.TIncrement(row=row, columns=[H.TColumnIncrement(b"a", b"n", 2)], durability=durability))
    client.append(T, H.TAppend(row=row, columns=[cell(b"a", b"q", b"2")], durability=durability))
    client.deleteSingle(T, delete(row, column(b"b", b"q"), durability=durability))
    assert values(client, row) == {b"a:n": (2).to_bytes(8, "big"), b"a:q": b"12"}


def test_attributes_and_hints_are_taken(client: Any) -> None:
    attributes = {b"attr": b"value"}
    client.put(T, put(b"attributes", cell(b"a", b"q"), attributes=attributes))
    more: dict[str, Any] = {"consistency": 2, "targetReplicaId": 0, "cacheBlocks": False, "attributes": attributes}
    assert len(read(client, b"attributes", authorizations=H.TAuthorization(["secret"]), **more)) == 1
    scan = H.TScan(startRow=b"attributes", caching=1, readType=3, **more)
    assert client.getScannerResults(T, scan, 1)[0].row == b"attributes"


# --- deletes ---------------------------------------------------------------------------------------


def test_delete_one_version(client: Any) -> None:
    four_versions(client, b"d1")
    client.deleteSingle(T, delete(b"d1", column(b"a", b"q", 30), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d1") == [40, 20]
    client.deleteSingle(T, delete(b"d1", column(b"a", b"q", 30), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d1") == [40, 20], "there is none at 30 any more"
    client.deleteSingle(T, delete(b"d1", column(b"a", b"q", 40), deleteType=DELETE_COLUMN))
    assert read(client, b"d1")[0] == (b"a:q", b"v20", 20), "the one behind comes to light"
    assert stamps(client, b"d1", b"z") == [40, 30, 20]


def test_delete_the_newest_version(client: Any) -> None:
    four_versions(client, b"d2")
    client.deleteSingle(T, delete(b"d2", column(b"a", b"q"), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d2") == [30, 20], "what the family had dropped does not come back"
    client.deleteSingle(T, delete(b"d2", column(b"a", b"q"), column(b"a", b"q"), deleteType=DELETE_COLUMN))
    assert stamps(client, b"d2") == []


def test_delete_all_versions(client: Any) -> None:
    four_versions(client, b"d3")
    client.deleteSingle(T, delete(b"d3", column(b"a", b"q", 30), deleteType=DELETE_COLUMNS))
    assert stamps(client, b"d3") == [40]
    client.deleteSingle(T, delete(b"d3", column(b"a", b"q")))  # DELETE_COLUMNS is the default
    assert stamps(client, b"d3") == []
    assert stamps(client, b"d3", b"z") == [40, 30, 20]


def test_delete_a_family(client: Any) -> None:
    four_versions(client, b"d4")
    client.put(T, put(b"d4", cell(b"b", b"q")))
    client.deleteSingle(T, delete(b"d4", column(b"a", None, 30), deleteType=DELETE_FAMILY))
    assert (stamps(client, b"d4"), stamps(client, b"d4", b"z")) == ([40], [40])
    client.deleteSingle(T, delete(b"d4", column(b"a"), deleteType=DELETE_FAMILY))
    assert list(values(client, b"d4")) == [b"b:q"]


def test_delete_a_version_of_a_family(client: Any) -> None:
    four_versions(client, b"d5")
    client.put(T, put(b"d5", cell(b"a", b"alone", b"x", 30)))
    client.deleteSingle(T, delete(b"d5", column(b"a", None, 30), deleteType=DELETE_FAMILY_VERSION))
    assert (stamps(client, b"d5"), stamps(client, b"d5", b"z")) == ([40, 20], [40, 20])
    assert stamps(client, b"d5", b"alone") == []


def test_delete_a_row(client: Any) -> None:
    four_versions(client, b"d6")
    client.deleteSingle(T, delete(b"d6", timestamp=30))
    assert stamps(client, b"d6") == [40]
    client.deleteSingle(T, delete(b"d6"))
    assert read(client, b"d6") == []


def test_delete_several(client: Any) -> None:
    """Those that failed are none."""
    client.putMultiple(T, [put(b"ds%d" % n, cell(b"a", b"q"), cell(b"b", b"q")) for n in range(3)])
    assert client.deleteMultiple(T, [delete(b"ds0"), delete(b"ds1", column(b"a", b"q"))]) == []
    assert client.existsAll(T, [H.TGet(row=b"ds%d" % n) for n in range(3)]) == [False, True, True]


# --- counters, appends, checks ---------------------------------------------------------------------


def test_increment(client: Any) -> None:
    client.put(T, put(b"counter", cell(b"a", b"n", (1).to_bytes(8, "big"))))
    columns = [
        H.TColumnIncrement(family=b"b", qualifier=b"n", amount=-5),
        H.TColumnIncrement(family=b"a", qualifier=b"n"),
    ]
    result = client.increment(T, H.TIncrement(row=b"counter", columns=columns))
    found = [(c, int.from_bytes(v, "big", signed=True)) for c, v, _ in cells_of(result)]
    assert (result.row, found) == (b"counter", [(b"a:n", 2), (b"b:n", -5)])
    silent = client.increment(T, H.TIncrement(row=b"counter", columns=columns[1:], returnResults=False))
    assert (silent.row, silent.columnValues) == (None, [])
    assert values(client, b"counter")[b"a:n"] == (3).to_bytes(8, "big")


def test_append(client: Any) -> None:
    client.put(T, put(b"append", cell(b"a", b"q", b"one")))
    result = client.append(T, H.TAppend(row=b"append", columns=[cell(b"b", b"q", b"new"), cell(b"a", b"q", b"+two")]))
    assert [(c, v) for c, v, _ in cells_of(result)] == [(b"a:q", b"one+two"), (b"b:q", b"new")]
    silent = client.append(T, H.TAppend(row=b"append", columns=[cell(b"a", b"q", b"!")], returnResults=False))
    assert silent.columnValues == []
    assert values(client, b"append")[b"a:q"] == b"one+two!"


def test_check_and_put(client: Any) -> None:
    later = put(b"check", cell(b"b", b"q", b"put"))
    assert client.checkAndPut(T, b"check", b"a", b"q", b"v", later) is False
    assert client.exists(T, H.TGet(row=b"check")) is False
    assert client.checkAndPut(T, b"check", b"a", b"q", None, put(b"check", cell(b"a", b"q"))) is True
    assert client.checkAndPut(T, b"check", b"a", b"q", None, later) is False
    assert client.checkAndPut(T, b"check", b"a", b"q", b"v", later) is True
    assert values(client, b"check") == {b"a:q": b"v", b"b:q": b"put"}


def test_check_and_delete(client: Any) -> None:
    client.put(T, put(b"checkd", cell(b"a", b"q"), cell(b"b", b"q")))
    assert client.checkAndDelete(T, b"checkd", b"a", b"q", b"other", delete(b"checkd")) is False
    assert client.checkAndDelete(T, b"checkd", b"a", b"q", b"v", delete(b"checkd", column(b"b", b"q"))) is True
    assert list(values(client, b"checkd")) == [b"a:q"]


LESS, LESS_OR_EQUAL, EQUAL, NOT_EQUAL, GREATER_OR_EQUAL, GREATER = range(6)


@pytest.mark.parametrize(
    ("op", "below", "same", "above", "empty"),
    [
        (LESS, True, False, False, False),
        (LESS_OR_EQUAL, True, True, False, False),
        (EQUAL, False, True, False, False),
        (NOT_EQUAL, True, False, True, True),
        (GREATER_OR_EQUAL, False, True, True, False),
        (GREATER, False, False, True, False),
    ],
)
def test_comparisons(client: Any, op: int, below: bool, same: bool, above: bool, empty: bool) -> None:
    """The given value stands on the left; an absent cell stands in no relation to a value."""
    row = b"compare%d" % op
    client.put(T, put(row, cell(b"a", b"q", b"m")))
    then = H.TRowMutations(row=row, mutations=[H.TMutation(put=put(row, cell(b"b", b"q", b"done")))])

    def check(value: bytes | None, qualifier: bytes = b"q") -> bool:
        return bool(client.checkAndMutate(T, row, b"a", qualifier, op, value, then))

    assert [check(b"a"), check(b"m"), check(b"z"), check(b"")] == [below, same, above, empty]
    assert check(b"x", b"absent") is False
    assert check(None, b"absent") is (op != NOT_EQUAL)


def test_check_and_mutate(client: Any) -> None:
    client.put(T, put(b"cam", cell(b"a", b"q"), cell(b"a", b"gone")))
    puts = H.TMutation(put=put(b"cam", cell(b"b", b"q", b"new")))
    then = H.TRowMutations(
        row=b"cam", mutations=[puts, H.TMutation(deleteSingle=delete(b"cam", column(b"a", b"gone")))]
    )
    assert client.checkAndMutate(T, b"cam", b"a", b"q", EQUAL, b"other", then) is False
    assert list(values(client, b"cam")) == [b"a:gone", b"a:q"]
    assert client.checkAndMutate(T, b"cam", b"a", b"q", EQUAL, b"v", then) is True
    assert values(client, b"cam") == {b"a:q": b"v", b"b:q": b"new"}


def test_mutate_row(client: Any) -> None:
    """Puts and deletes of one row, one after the other, as one step."""
    client.put(T, put(b"mutate", cell(b"a", b"1"), cell(b"a", b"2")))
    mutations = [
        H.TMutation(put=put(b"mutate", cell(b"a", b"3", b"put, then deleted"))),
        H.TMutation(deleteSingle=delete(b"mutate", column(b"a", b"1"), column(b"a", b"3"))),
        H.TMutation(put=put(b"mutate", cell(b"a", b"1", b"deleted, then put"))),
    ]
    client.mutateRow(T, H.TRowMutations(row=b"mutate", mutations=mutations))
    assert values(client, b"mutate") == {b"a:1": b"deleted, then put", b"a:2": b"v"}


# --- scanners --------------------------------------------------------------------------------------


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
    scanners = serving.store.scanners
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
    before = len(serving.store.scanners)
    assert rows(scanned.getScannerResults(T, scan(), 3)) == ALL[:3]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s3"), 3)) == ALL[3:6]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s3", stopRow=b"s5"), 100)) == ALL[3:5]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s9", stopRow=b"s7", reversed=True), 100)) == ALL[:7:-1]
    assert rows(scanned.getScannerResults(T, scan(startRow=b"s5", stopRow=b"s5"), 100)) == [b"s5"]
    assert scanned.getScannerResults(T, scan(startRow=b"nothing", stopRow=b"nothingz"), 100) == []
    assert len(serving.store.scanners) == before


# --- tables, regions, the server -------------------------------------------------------------------


def test_tables(client: Any) -> None:
    table = name(b"ddl", b"default")
    assert client.tableExists(table) is False
    family = H.TColumnFamilyDescriptor(
        name=b"f", maxVersions=4, timeToLive=500, bloomnFilterType=2, compressionType=6, inMemory=True
    )
    plain = H.TColumnFamilyDescriptor(name=b"plain")
    client.createTable(H.TTableDescriptor(tableName=table, columns=[plain, family], durability=2), [b"d", b"m"])
    assert client.tableExists(name(b"ddl"))
    assert (client.isTableEnabled(table), client.isTableDisabled(table), client.isTableAvailable(table)) == (
        True,
        False,
        True,
    )
    assert client.isTableAvailableWithSplit(table, [b"m", b"d"]) is True
    assert client.isTableAvailableWithSplit(table, [b"x"]) is False

    described = client.getTableDescriptor(table)
    assert (described.tableName.ns, described.tableName.qualifier, described.durability) == (b"default", b"ddl", 2)
    f, p = described.columns
    assert (f.name, f.maxVersions, f.timeToLive, f.bloomnFilterType, f.compressionType, f.inMemory) == (
        *(b"f", 4, 500, 2, 6, True),
    )
    assert (p.name, p.maxVersions, p.timeToLive, p.bloomnFilterType, p.compressionType, p.inMemory) == (
        *(b"plain", 1, 2147483647, 1, 2, False),
    )
    assert (p.blockSize, p.minVersions, p.blockCacheEnabled) == (65536, 0, True)
    assert p.attributes[b"VERSIONS"] == b"1"

    locations = client.getAllRegionLocations(b"ddl")
    assert [(one.regionInfo.startKey, one.regionInfo.endKey) for one in locations] == [
        (b"", b"d"),
        (b"d", b"m"),
        (b"m", b""),
    ]
    assert client.getRegionLocation(b"ddl", b"k", False).regionInfo.startKey == b"d"
    assert locations[0].serverName.port > 0

    again = H.TTableDescriptor(tableName=name(b"ddl2"), columns=described.columns, attributes=described.attributes)
    client.createTable(again, None)  # a descriptor that was read makes a table
    assert client.getTableDescriptor(name(b"ddl2")).columns == described.columns

    assert [one.qualifier for one in client.getTableNamesByPattern("ddl.?", False)] == [b"ddl", b"ddl2"]
    assert [one.tableName.qualifier for one in client.getTableDescriptorsByPattern("default:ddl", False)] == [b"ddl"]
    assert b"ddl" in [one.qualifier for one in client.getTableNamesByPattern(None, False)]
    assert len(client.getTableDescriptors([table, name(b"none"), name(b"ddl2")])) == 2

    for gone in (table, name(b"ddl2")):
        client.disableTable(gone)
        assert (client.isTableDisabled(gone), client.isTableAvailable(gone)) == (True, False)
        client.enableTable(gone)
        client.disableTable(gone)
        client.deleteTable(gone)
    assert client.tableExists(table) is False
    assert client.getAllRegionLocations(b"ddl") == []
    assert client.isTableAvailable(table) is False


def test_namespaces(client: Any) -> None:
    assert "default" in client.listNamespaces()
    assert [one.name for one in client.listNamespaceDescriptors()] == client.listNamespaces()
    assert client.getNamespaceDescriptor("default").name == "default"
    assert T in [one.qualifier for one in client.getTableNamesByNamespace("default")]
    assert T in [one.tableName.qualifier for one in client.getTableDescriptorsByNamespace("default")]
    with pytest.raises(H.TIOError, match="NamespaceNotFoundException"):
        client.getNamespaceDescriptor("none")


def test_a_namespace_comes_and_goes(client: Any) -> None:
    client.createNamespace(H.TNamespaceDescriptor(name="shop"))
    with pytest.raises(H.TIOError, match="NamespaceExistException"):
        client.createNamespace(H.TNamespaceDescriptor(name="shop"))
    client.modifyNamespace(H.TNamespaceDescriptor(name="shop"))
    with pytest.raises(H.TIOError, match="configuration"):
        client.modifyNamespace(H.TNamespaceDescriptor(name="shop", configuration={"quota": "1"}))
    table = name(b"orders", b"shop")
    client.createTable(H.TTableDescriptor(tableName=table, columns=[H.TColumnFamilyDescriptor(name=b"f")]), [])
    assert [one.qualifier for one in client.getTableNamesByNamespace("shop")] == [b"orders"]
    with pytest.raises(H.TIOError, match="only empty namespaces"):
        client.deleteNamespace("shop")
    client.disableTable(table)
    client.deleteTable(table)
    client.deleteNamespace("shop")
    assert "shop" not in client.listNamespaces()


def test_a_table_is_altered_and_truncated(client: Any) -> None:
    table = name(b"changing")
    first = H.TColumnFamilyDescriptor(name=b"f", maxVersions=3)
    client.createTable(H.TTableDescriptor(tableName=table, columns=[first]), [b"m"])
    client.addColumnFamily(table, H.TColumnFamilyDescriptor(name=b"g", timeToLive=3_600, minVersions=1))
    client.put(b"changing", H.TPut(row=b"a", columnValues=[H.TColumnValue(family=b"g", qualifier=b"q", value=b"1")]))
    client.modifyColumnFamily(table, H.TColumnFamilyDescriptor(name=b"f", maxVersions=1, blockSize=8_192))
    families = {one.name: one for one in client.getTableDescriptor(table).columns}
    assert (families[b"f"].maxVersions, families[b"f"].blockSize) == (1, 8_192)
    assert (families[b"g"].timeToLive, families[b"g"].minVersions) == (3_600, 1)
    with pytest.raises(H.TIOError, match="NoSuchColumnFamily"):
        client.deleteColumnFamily(table, b"none")

    client.truncateTable(table, True)
    assert not client.exists(b"changing", H.TGet(row=b"a"))
    assert len(client.getAllRegionLocations(b"changing")) == 2
    client.truncateTable(table, False)
    assert len(client.getAllRegionLocations(b"changing")) == 1

    client.deleteColumnFamily(table, b"g")
    client.modifyTable(H.TTableDescriptor(tableName=table, columns=[H.TColumnFamilyDescriptor(name=b"h")]))
    assert [one.name for one in client.getTableDescriptor(table).columns] == [b"h"]


def test_the_server(client: Any, serving: Serving) -> None:
    assert client.getThriftServerType() == 2
    assert client.getClusterId() == serving.store.folder.cluster_id
    assert client.getSlowLogResponses(None, None) == []
    assert client.clearSlowLogResponses(None) == []


def test_metrics(client: Any, serving: Serving) -> None:
    def counted() -> tuple[int, int]:
        found = serving.store.counters.by_method.get("thrift2.getRegionLocation")
        return (found.calls, found.failed) if found is not None else (0, 0)

    before = counted()
    client.getRegionLocation(T, b"x", False)
    with pytest.raises(H.TIOError):
        client.getRegionLocation(b"none", b"x", False)
    assert serving.do(counted) == (before[0] + 2, before[1] + 1)


# --- mistakes --------------------------------------------------------------------------------------

A = cell(b"a", b"q")
MISTAKES: list[tuple[str, tuple[Any, ...], str]] = [
    ("get", (b"none", H.TGet(row=b"r")), "TableNotFoundException: none"),
    ("get", (T, H.TGet(row=b"")), "IllegalArgumentException: row key is empty"),
    ("get", (T, H.TGet(row=b"r" * 40_000)), "row key has 40000 bytes"),
    ("get", (T, H.TGet(row=b"r", columns=[column(b"zz")])), "NoSuchColumnFamilyException"),
    ("get", (T, H.TGet(row=b"r", maxVersions=0)), "versions must be positive"),
    ("get", (T, H.TGet(row=b"r", timestamp=-1)), "timestamp -1 is negative"),
    ("get", (T, H.TGet(row=b"r", timeRange=H.TTimeRange(9, 3))), "the time range 9 to 3"),
    ("get", (T, H.TGet(row=b"r", filterString=b"Nope()")), "filter string, at byte 0"),
    ("get", (T, H.TGet(row=b"r", filterString=b"")), "filter string is empty"),
    ("get", (T, H.TGet(row=b"r", filterBytes=b"x")), "write it as filterString"),
    ("getMultiple", (T, [H.TGet(row=b"r"), H.TGet(row=b"")]), "row key is empty"),
    ("put", (T, put(b"r")), "names no column"),
    ("put", (T, put(b"r", cell(b"zz", b"q"))), "NoSuchColumnFamilyException"),
    ("put", (T, put(b"r", H.TColumnValue(family=b"a", qualifier=b"q"))), "the required value was not sent"),
    ("put", (T, put(b"r", A, attributes={b"_ttl": b"1"})), "attribute _ttl takes eight bytes"),
    ("putMultiple", (T, [put(b"mistaken", A), put(b"r", cell(b"a", b"q", timestamp=-1))]), "is negative"),
    ("deleteSingle", (T, delete(b"r", column(b"zz"))), "NoSuchColumnFamilyException"),
    ("deleteSingle", (T, delete(b"r", column(b"a"), deleteType=3)), "DELETE_FAMILY_VERSION takes a timestamp"),
    ("deleteSingle", (T, delete(b"r", column(b"a"), deleteType=7)), "delete type 7 is none of"),
    ("deleteMultiple", (T, [delete(b"one"), delete(b"r", column(b"zz"))]), "NoSuchColumnFamilyException"),
    ("increment", (T, H.TIncrement(row=b"one", columns=[])), "no column to change"),
    ("increment", (T, H.TIncrement(row=b"one", columns=[H.TColumnIncrement(b"a", b"q")])), "Field is not a long"),
    ("append", (T, H.TAppend(row=b"one", columns=[])), "no column to change"),
    ("checkAndPut", (T, b"r", b"a", b"q", b"v", put(b"other", A)), "row other of a mutation is not the row r"),
    (
        "checkAndMutate",
        (T, b"r", b"a", b"q", 6, b"v", H.TRowMutations(b"r", [H.TMutation(put=put(b"r", A))])),
        "is none of",
    ),
    ("mutateRow", (T, H.TRowMutations(b"r", [])), "no mutations given for row r"),
    ("mutateRow", (T, H.TRowMutations(b"r", [H.TMutation(put=put(b"x", A))])), "row x of a mutation"),
    ("mutateRow", (T, H.TRowMutations(b"r", [H.TMutation()])), "a TMutation is a put or a delete"),
    ("openScanner", (b"none", H.TScan()), "TableNotFoundException"),
    ("openScanner", (T, H.TScan(filterString=b"PageFilter(1)", batchSize=2)), "IncompatibleFilterException"),
    ("getScannerResults", (T, H.TScan(), -1), "must not be negative"),
    ("getTableDescriptor", (name(b"none"),), "TableNotFoundException"),
    ("getTableNamesByPattern", ("(", False), "the pattern"),
    ("createTable", (H.TTableDescriptor(tableName=name(b"x")), None), "at least one column family"),
    ("createTable", (H.TTableDescriptor(name(T), [H.TColumnFamilyDescriptor(b"a")]), None), "TableExistsException"),
    (
        "createTable",
        (H.TTableDescriptor(name(b"x"), [H.TColumnFamilyDescriptor(b"a", scope=1)]), None),
        "scope can only be 0",
    ),
    ("createTable", (H.TTableDescriptor(name(b"x"), [H.TColumnFamilyDescriptor(b"a", compressionType=1)]), None), "GZ"),
    ("deleteTable", (name(T),), "TableNotDisabledException"),
    ("enableTable", (name(T),), "TableNotDisabledException"),
]


@pytest.mark.parametrize(("method", "args", "said"), MISTAKES, ids=[f"{n}-{m[0]}" for n, m in enumerate(MISTAKES)])
def test_mistakes_are_declared_and_change_nothing(client: Any, method: str, args: Any, said: str) -> None:
    client.put(T, put(b"one", cell(b"a", b"q", b"1")))
    with pytest.raises(H.TIOError) as caught:
        getattr(client, method)(*args)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.canRetry is False
    assert values(client, b"one")[b"a:q"] == b"1"
    assert not client.exists(T, H.TGet(row=b"mistaken"))


# --- ways in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("way", ["buffered", "framed", "http"])
def test_every_transport_and_protocol(serving: Serving, client: Any, way: str, compact: bool) -> None:
    protocol = TCompactProtocolFactory() if compact else TBinaryProtocolFactory()
    port = serving.store.thrift2_port
    if way == "http":
        thrift = make_http_client(H.THBaseService, "127.0.0.1", port, proto_factory=protocol, timeout=20_000)
    else:
        transport = TFramedTransportFactory() if way == "framed" else TBufferedTransportFactory()
        thrift = make_client(
            H.THBaseService, "127.0.0.1", port, proto_factory=protocol, trans_factory=transport, timeout=20_000
        )
    row = b"%b%d" % (way.encode(), compact)
    thrift.put(T, put(row, cell(b"a", b"q", b"x" * 300, 2**40), cell(b"b", b"", b"")))
    assert read(thrift, row, columns=[column(b"a")]) == [(b"a:q", b"x" * 300, 2**40)]
    (result,) = thrift.getScannerResults(T, H.TScan(startRow=row, stopRow=row), 2)
    assert [found for found, _, _ in cells_of(result)] == [b"a:q", b"b:"]
    assert thrift.get(T, H.TGet(row=b"never")).row is None
    thrift.close()


def test_both_services_see_the_same_rows(serving: Serving, client: Any) -> None:
    client.put(T, put(b"shared", cell(b"a", b"q", b"by two")))
    connection = serving.connect()
    assert connection.table(T).row(b"shared") == {b"a:q": b"by two"}
    connection.table(T).put(b"shared", {b"a:q": b"by one"})
    assert values(client, b"shared") == {b"a:q": b"by one"}


def test_a_client_of_the_other_service_is_told_where_it_is(serving: Serving, client: Any) -> None:
    port1, port2 = serving.store.port, serving.store.thrift2_port
    one_at_two = make_client(H1.Hbase, "127.0.0.1", port2, timeout=20_000)
    with pytest.raises(TApplicationException, match=f"'getTableNames'; it belongs to the Thrift 1 .* at port {port1}"):
        one_at_two.getTableNames()
    with pytest.raises(H1.IOError, match=f"a client of the Thrift 1 service belongs at port {port1}"):
        one_at_two.get(T, b"r", b"a:q", {})
    assert one_at_two.getThriftServerType() == 2
    one_at_two.close()
    two_at_one = make_client(H.THBaseService, "127.0.0.1", port1, timeout=20_000)
    with pytest.raises(TApplicationException, match=f"'existsAll'; it belongs to the Thrift 2 .* at port {port2}"):
        two_at_one.existsAll(T, [H.TGet(row=b"r")])
    with pytest.raises(H.TIOError, match=f"a client of the Thrift 2 service belongs at port {port2}"):
        two_at_one.get(T, H.TGet(row=b"r"))
    assert two_at_one.getThriftServerType() == 1
    two_at_one.close()


def test_where_only_one_service_is_served(tmp_path: Path) -> None:
    alone = Serving(tmp_path / "data").start()
    thrift = make_client(H.THBaseService, "127.0.0.1", alone.store.port, timeout=20_000)
    with pytest.raises(TApplicationException, match="not served here: start with --thrift2-port"):
        thrift.existsAll(T, [])
    thrift.close()
    alone.stop()

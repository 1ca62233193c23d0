"""Fields that are easily taken and not done: existence only, visibility, tags, replicas, raw scans, both of a union."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import thriftpy2
from thriftpy2.rpc import make_client

from tests.support.serving import Serving
from tests.support.thrift2_client import ROOT, H, T, cell, cells_of, delete, put, served, with_table

H1 = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase.thrift"), module_name="published_hbase1_thrift")
SECRET = H.TCellVisibility(expression="secret")
A = cell(b"a", b"q")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("fields") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    with with_table(serving) as thrift:
        yield thrift


@pytest.fixture(scope="module")
def client1(serving: Serving, client: Any) -> Iterator[Any]:
    """Speak Thrift 1 to the same store, where ``client`` made the table: a test may be the first of its worker."""
    thrift = make_client(H1.Hbase, "127.0.0.1", serving.store.port, timeout=20_000)
    yield thrift
    thrift.close()


def test_existence_only_answers_without_cells(client: Any) -> None:
    """As HBase 2.6.1: its TResult has no place for the answer itself, which ``exists`` gives."""
    client.put(T, put(b"there", cell(b"a", b"q", b"v" * 10)))
    for row in (b"there", b"absent"):
        for more in ({}, {"filterString": b"FirstKeyOnlyFilter()"}, {"storeLimit": 1}):
            found = client.get(T, H.TGet(row=row, existence_only=True, **more))
            assert (found.row, found.columnValues) == (None, [])
    gets = [H.TGet(row=b"there", existence_only=bare) for bare in (False, True, None, True)]
    results = client.getMultiple(T, gets)
    assert [(one.row, len(cells_of(one))) for one in results] == [(b"there", 1), (None, 0), (b"there", 1), (None, 0)]
    assert client.exists(T, H.TGet(row=b"there", existence_only=True))
    assert client.existsAll(T, gets) == [True] * 4
    with pytest.raises(H.TIOError, match="NoSuchColumnFamily"):
        client.get(T, H.TGet(row=b"there", existence_only=True, columns=[H.TColumn(family=b"zz")]))
    with pytest.raises(H.TIOError, match="filter string"):
        client.get(T, H.TGet(row=b"there", existence_only=True, filterString=b"Nope()"))


def java_filter(means: str) -> bytes:
    """As HBase's client serialises it."""
    lines = (ROOT / "tests" / "golden" / "java_filters.txt").read_text().splitlines()
    return next(bytes.fromhex(line.partition("\t")[0]) for line in lines if line.endswith("\t" + means))


def test_filters_of_javas_client(client: Any) -> None:
    for row in (b"row", b"row1", b"row2", b"s"):
        client.put(T, put(row, cell(b"a", b"p"), cell(b"a", b"q")))
    rows = [b"row", b"row1", b"row2"]
    prefix, page = java_filter("PrefixFilter('row')"), java_filter("PageFilter(1)")
    bare = H.TScan(startRow=b"ro", filterBytes=prefix)
    assert [one.row for one in client.getScannerResults(T, bare, 9)] == rows
    scanner = client.openScanner(T, bare)
    assert [one.row for one in client.getScannerRows(scanner, 9)] == rows
    client.closeScanner(scanner)
    both = H.TScan(startRow=b"ro", filterBytes=page)
    assert [one.row for one in client.getScannerResults(T, both, 9)] == rows[:1]
    first = H.TGet(row=b"row", filterBytes=java_filter("ColumnCountGetFilter(0)"))
    assert client.get(T, first).columnValues == []
    one = H.TGet(row=b"row", filterBytes=java_filter("FirstKeyOnlyFilter()"))
    assert [found for found, _, _ in cells_of(client.get(T, one))] == [b"a:p"]
    assert [len(cells_of(found)) for found in client.getMultiple(T, [one, H.TGet(row=b"row")])] == [1, 2]
    assert client.exists(T, H.TGet(row=b"s", filterBytes=prefix)) is False
    assert client.existsAll(T, [H.TGet(row=row, filterBytes=prefix) for row in (b"row", b"s")]) == [True, False]
    with pytest.raises(H.TIOError, match="two filters"):
        client.get(T, H.TGet(row=b"row", filterString=b"PageFilter(1)", filterBytes=page))
    with pytest.raises(H.TIOError, match="RandomRowFilter has no form"):
        client.openScanner(T, H.TScan(filterBytes=java_filter("refused RandomRowFilter")))
    with pytest.raises(H.TIOError, match="IncompatibleFilterException"):
        client.openScanner(T, H.TScan(filterBytes=page, batchSize=2))


def mutation(**parts: Any) -> Any:
    return H.TRowMutations(b"r", [H.TMutation(**parts)])


HIDDEN = put(b"r", A, cellVisibility=SECRET)
LABEL, ACL, TTL = {b"VISIBILITY": b"\n\x06secret"}, {b"acl": b"x"}, {b"_ttl": (1_000).to_bytes(8, "big")}
ONE = H.TColumnIncrement(b"a", b"n", 1)
REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("put", (T, HIDDEN), "cellVisibility"),
    ("putMultiple", (T, [put(b"r", A), HIDDEN]), "cellVisibility"),
    ("checkAndPut", (T, b"r", b"a", b"q", None, HIDDEN), "cellVisibility"),
    ("mutateRow", (T, mutation(put=HIDDEN)), "cellVisibility"),
    ("checkAndMutate", (T, b"r", b"a", b"q", 2, None, mutation(put=HIDDEN)), "cellVisibility"),
    ("increment", (T, H.TIncrement(row=b"r", columns=[ONE], cellVisibility=SECRET)), "cellVisibility"),
    ("append", (T, H.TAppend(row=b"r", columns=[A], cellVisibility=SECRET)), "cellVisibility"),
    ("put", (T, put(b"r", A, attributes=LABEL)), "VISIBILITY"),
    ("put", (T, put(b"r", A, attributes=ACL)), "acl"),
    ("increment", (T, H.TIncrement(row=b"r", columns=[ONE], attributes=LABEL)), "VISIBILITY"),
    ("increment", (T, H.TIncrement(row=b"r", columns=[ONE], attributes=TTL)), "_ttl"),
    ("append", (T, H.TAppend(row=b"r", columns=[A], attributes=ACL)), "acl"),
    ("append", (T, H.TAppend(row=b"r", columns=[A], attributes=TTL)), "_ttl"),
    ("deleteSingle", (T, delete(b"r", attributes=LABEL)), "VISIBILITY"),
    ("put", (T, put(b"r", H.TColumnValue(b"a", b"q", b"v", tags=b"t"))), "tags"),
    ("put", (T, put(b"r", H.TColumnValue(b"a", b"q", b"v", type=8))), "type 8"),
    ("append", (T, H.TAppend(row=b"r", columns=[H.TColumnValue(b"a", b"q", b"v", tags=b"t")])), "tags"),
    ("mutateRow", (T, mutation(put=put(b"r", A), deleteSingle=delete(b"r"))), "not both"),
    ("get", (T, H.TGet(row=b"r", targetReplicaId=1)), "no replicas"),
    ("openScanner", (T, H.TScan(targetReplicaId=1)), "no replicas"),
    ("openScanner", (T, H.TScan(attributes={b"_raw_": b"\xff"})), "_raw_"),
]


@pytest.mark.parametrize(("method", "args", "said"), REFUSED, ids=[f"{n}-{one[0]}" for n, one in enumerate(REFUSED)])
def test_what_is_not_done_is_refused_and_changes_nothing(client: Any, method: str, args: Any, said: str) -> None:
    with pytest.raises(H.TIOError) as caught:
        getattr(client, method)(*args)
    assert said in caught.value.message
    assert caught.value.canRetry is False
    assert not client.exists(T, H.TGet(row=b"r"))


def test_what_has_no_effect_is_taken(client: Any) -> None:
    client.put(T, put(b"plain", H.TColumnValue(b"a", b"q", b"v", type=4, tags=b""), attributes={b"own": b"x"}))
    more: dict[str, Any] = {"authorizations": H.TAuthorization(["secret"]), "targetReplicaId": -1, "consistency": 2}
    (value,) = client.get(T, H.TGet(row=b"plain", cacheBlocks=True, **more)).columnValues
    assert (value.value, value.type) == (b"v", 4)
    scan = H.TScan(startRow=b"plain", caching=3, readType=2, attributes={b"_raw_": b"\x00"}, **more)
    assert client.getScannerResults(T, scan, 1)[0].row == b"plain"


LABELLED: list[tuple[str, tuple[Any, ...]]] = [
    ("mutateRow", (b"r", [H1.Mutation(column=b"a:q", value=b"v")])),
    ("mutateRowTs", (b"r", [H1.Mutation(column=b"a:q", value=b"v")], 5)),
    ("mutateRows", ([H1.BatchMutation(b"r", [H1.Mutation(column=b"a:q", value=b"v")])],)),
    ("mutateRowsTs", ([H1.BatchMutation(b"r", [H1.Mutation(column=b"a:q", value=b"v")])], 5)),
    ("checkAndPut", (b"r", b"a:q", b"", H1.Mutation(column=b"a:q", value=b"v"))),
    ("deleteAll", (b"r", b"a:q")),
    ("deleteAllTs", (b"r", b"a:q", 5)),
    ("deleteAllRow", (b"r",)),
    ("deleteAllRowTs", (b"r", 5)),
]


@pytest.mark.parametrize(("method", "args"), LABELLED, ids=[one[0] for one in LABELLED])
@pytest.mark.parametrize("attributes", [LABEL, ACL], ids=["label", "acl"])
def test_labels_of_thrift_1_are_refused(client1: Any, method: str, args: Any, attributes: Any) -> None:
    with pytest.raises((H1.IOError, H1.IllegalArgument), match="everybody would see"):
        getattr(client1, method)(T, *args, attributes)
    assert client1.getRow(T, b"r", {}) == []


SCANS: list[tuple[str, tuple[Any, ...]]] = [
    ("scannerOpenWithScan", (H1.TScan(),)),
    ("scannerOpen", (b"", [])),
    ("scannerOpenWithStop", (b"", b"z", [])),
    ("scannerOpenWithPrefix", (b"r", [])),
    ("scannerOpenTs", (b"", [], 5)),
    ("scannerOpenWithStopTs", (b"", b"z", [], 5)),
]


@pytest.mark.parametrize(("method", "args"), SCANS, ids=[one[0] for one in SCANS])
def test_raw_scans_of_thrift_1_are_refused(client1: Any, method: str, args: Any) -> None:
    with pytest.raises(H1.IOError, match="no raw scan"):
        getattr(client1, method)(T, *args, {b"_raw_": b"\xff"})
    client1.scannerClose(getattr(client1, method)(T, *args, {b"own": b"x"}))

"""The Thrift 2 service, by a client made from its published interface and nothing else: rows, mistakes, ways in.

The behaviours are those that HBase's own handler is held to, and what a running 2.6.1 answered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from click.testing import CliRunner
from thriftpy2.http import make_client as make_http_client
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.rpc import make_client
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TBufferedTransportFactory, TFramedTransportFactory

from columnar.client import Connection
from tests.support.serving import Serving
from tests.support.shell import Shell
from tests.support.thrift2_client import (
    H,
    T,
    cell,
    cells_of,
    column,
    delete,
    four_versions,
    name,
    put,
    read,
    served,
    values,
    with_table,
)
from wikka_port.cli import main as wikka

ROOT = Path(__file__).parents[2]
H1 = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase.thrift"), module_name="published_hbase1_thrift")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("thrift2") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    with with_table(serving) as thrift:
        yield thrift


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
    (
        "createTable",
        (H.TTableDescriptor(name(b"x"), [H.TColumnFamilyDescriptor(b"a", compressionType=0)]), None),
        "LZO",
    ),
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
    port = serving.store.ports.thrift2_port
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
    port1, port2 = serving.store.port, serving.store.ports.thrift2_port
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


def test_our_own_programs_at_the_other_port_say_so_in_a_line(serving: Serving, client: Any) -> None:
    port1, port2 = serving.store.port, serving.store.ports.thrift2_port
    said = f"'getTableNames'; it belongs to the Thrift 1 service, which is at port {port1}"
    with Connection("127.0.0.1", port2) as connection, pytest.raises(TApplicationException) as caught:
        connection.tables()
    assert said in str(caught.value)  # bytes, of which str() failed
    assert said in Shell(f"127.0.0.1:{port2}").error("tables")
    checked = CliRunner().invoke(wikka, ["check", "--store", f"127.0.0.1:{port2}"])
    assert (checked.exit_code, checked.stdout) == (2, "")
    assert said in checked.stderr


def test_where_only_one_service_is_served(tmp_path: Path) -> None:
    alone = Serving(tmp_path / "data").start()
    thrift = make_client(H.THBaseService, "127.0.0.1", alone.store.port, timeout=20_000)
    with pytest.raises(TApplicationException, match="not served here: start with --thrift2-port"):
        thrift.existsAll(T, [])
    thrift.close()
    alone.stop()

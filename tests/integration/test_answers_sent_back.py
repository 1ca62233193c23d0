"""Whatever a service answers can be sent back to it: descriptors, namespaces, rows, regions, servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from thriftpy2.rpc import make_client

from columnar.client import Connection
from tests.support.serving import Serving
from tests.support.thrift2_client import ROOT, H, T, cell, cells_of, column, connect, name, put, served, with_table

H1 = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase.thrift"), module_name="published_hbase1_thrift")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("sent_back") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    with with_table(serving) as thrift:
        yield thrift


@pytest.fixture(scope="module")
def client1(serving: Serving) -> Iterator[Any]:
    thrift = make_client(H1.Hbase, "127.0.0.1", serving.store.port, timeout=20_000)
    yield thrift
    thrift.close()


# As HBase 2.6's own client writes them into every descriptor, at their defaults and else.
JAVA: list[tuple[bytes, bytes]] = [
    (b"EVICT_BLOCKS_ON_CLOSE", b"false"),
    (b"CACHE_DATA_ON_WRITE", b"false"),
    (b"CACHE_INDEX_ON_WRITE", b"false"),
    (b"CACHE_BLOOMS_ON_WRITE", b"false"),
    (b"COMPRESS_TAGS", b"true"),
    (b"DFS_REPLICATION", b"0"),
    (b"PREFETCH_BLOCKS_ON_OPEN", b"false"),
    (b"NEW_VERSION_BEHAVIOR", b"false"),
    (b"DATA_BLOCK_ENCODING", b"NONE"),
    (b"DATA_BLOCK_ENCODING", b"FAST_DIFF"),
    (b"INDEX_BLOCK_ENCODING", b"NONE"),
    (b"KEEP_DELETED_CELLS", b"FALSE"),
    (b"REPLICATION_SCOPE", b"0"),
    (b"IS_MOB", b"false"),
    (b"MOB_THRESHOLD", b"102400"),
    (b"IN_MEMORY_COMPACTION", b"NONE"),
    (b"VERSIONS", b"1"),
    (b"MIN_VERSIONS", b"0"),
    (b"TTL", b"2147483647"),
    (b"TTL", b"FOREVER"),
    (b"TTL", b"86400 SECONDS (1 DAY)"),
    (b"BLOCKSIZE", b"65536"),
    (b"BLOCKSIZE", b"65536 B (64KB)"),
    (b"COMPRESSION", b"NONE"),
    (b"BLOOMFILTER", b"ROW"),
    (b"BLOOMFILTER", b"ROWPREFIX_FIXED_LENGTH"),
    (b"RowPrefixBloomFilter.prefix_length", b"10"),
    (b"IN_MEMORY", b"false"),
    (b"BLOCKCACHE", b"true"),
    (b"mykey", b"of the application"),
]


@pytest.mark.parametrize(("key", "value"), JAVA)
def test_what_javas_client_sends_back_of_a_family(client: Any, key: bytes, value: bytes) -> None:
    client.modifyColumnFamily(name(T), H.TColumnFamilyDescriptor(name=b"b", attributes={key: value}))
    (family,) = [one for one in client.getTableDescriptor(name(T)).columns if one.name == b"b"]
    client.modifyColumnFamily(name(T), family)
    assert [one for one in client.getTableDescriptor(name(T)).columns if one.name == b"b"] == [family]


def every_family() -> list[Any]:
    return [
        H.TColumnFamilyDescriptor(name=b"plain"),
        *(H.TColumnFamilyDescriptor(name=b"c%d" % n, compressionType=n) for n in (1, 2, 3, 4, 6)),
        *(H.TColumnFamilyDescriptor(name=b"b%d" % n, bloomnFilterType=n) for n in (0, 1, 2)),
        *(H.TColumnFamilyDescriptor(name=b"e%d" % n, dataBlockEncoding=n) for n in (0, 2, 3, 4, 7)),
        H.TColumnFamilyDescriptor(name=b"versions", maxVersions=7, minVersions=2, timeToLive=9),
        H.TColumnFamilyDescriptor(name=b"ever", timeToLive=0),
        H.TColumnFamilyDescriptor(name=b"off", blockCacheEnabled=False, inMemory=True, blockSize=4096),
        H.TColumnFamilyDescriptor(
            name=b"flags",
            cacheBloomsOnWrite=True,
            cacheDataOnWrite=True,
            cacheIndexesOnWrite=True,
            compressTags=False,
            evictBlocksOnClose=True,
            dfsReplication=0,
            keepDeletedCells=0,
            scope=0,
        ),
        H.TColumnFamilyDescriptor(
            name=b"settings",
            configuration={"hbase.hstore.blockingStoreFiles": "20", "own": "x"},
            attributes={b"STORAGE_POLICY": b"ONE_SSD", b"mykey": b"v"},
        ),
    ]


def test_descriptors(client: Any) -> None:
    attributes = {
        b"OWNER": b"anna",
        b"MEMSTORE_FLUSHSIZE": b"1000000",
        b"MAX_FILESIZE": b"10737418240",
        b"hbase.store.file-tracker.impl": b"DEFAULT",
        b"mykey": b"v",
        b"IS_META": b"false",
        b"THROTTLE": b"1000req/s",
        b"CHANGE_LOG": b"60",
    }
    for durability in (None, 0, 2, 3, 4):
        table = H.TTableDescriptor(name(b"first"), every_family(), attributes, durability)
        client.createTable(table, [])
        described = client.getTableDescriptor(name(b"first"))
        assert described.attributes[b"mykey"] == b"v"
        client.modifyTable(described)
        assert client.getTableDescriptor(name(b"first")) == described
        for family in described.columns:
            client.modifyColumnFamily(name(b"first"), family)
        assert client.getTableDescriptor(name(b"first")) == described
        client.deleteColumnFamily(name(b"first"), b"flags")
        client.addColumnFamily(name(b"first"), next(one for one in described.columns if one.name == b"flags"))
        assert client.getTableDescriptor(name(b"first")) == described
        client.disableTable(name(b"first"))
        client.deleteTable(name(b"first"))
        client.createTable(described, [])
        assert client.getTableDescriptor(name(b"first")) == described
        client.disableTable(described.tableName)
        client.deleteTable(described.tableName)


def test_what_another_service_made_keeps_its_meaning(serving: Serving, client: Any, client1: Any) -> None:
    """A descriptor that is read and written back changes nothing of what acts."""
    admin = Connection("127.0.0.1", serving.store.port).admin
    client1.createTable(b"by_one", [H1.ColumnDescriptor(name=b"f:")])  # off, as the interface says unasked
    admin.create_table("by_admin", {"f": {"durability": "ASYNC_WAL", "versions": 3, "ttl": 5}}, {"READONLY": "true"})
    for table in (b"by_one", b"by_admin"):
        before = admin.describe(table)
        described = client.getTableDescriptor(name(table))
        client.modifyTable(described)
        client.modifyColumnFamily(name(table), described.columns[0])
        assert admin.describe(table) == before
        assert client.getTableDescriptor(name(table)) == described


def test_what_our_own_administration_describes(serving: Serving, client: Any) -> None:
    admin = Connection("127.0.0.1", serving.store.port).admin
    client.createTable(
        H.TTableDescriptor(name(b"made_by_two"), every_family(), {b"mykey": b"v", b"OWNER": b"anna"}), []
    )
    described = admin.describe("made_by_two")
    families = {family.name: family.attributes for family in described.families}
    admin.create_table("made_again", families, described.attributes)
    again = admin.describe("made_again")
    assert (again.families, again.attributes) == (described.families, described.attributes)
    admin.alter_table("made_again", change=families, attributes=described.attributes)
    assert admin.describe("made_again") == again


def test_every_table_that_is_listed(client: Any, client1: Any) -> None:
    for listed in client.getTableNamesByPattern(None, True):
        described = client.getTableDescriptor(listed)
        assert client.getTableDescriptors([listed]) == [described]
        assert client.tableExists(listed)
        whole = listed.qualifier if listed.ns in (None, b"default") else listed.ns + b":" + listed.qualifier
        for location in client.getAllRegionLocations(whole):
            info = location.regionInfo
            assert client.getRegionLocation(info.tableName, info.startKey, False) == location
            assert client.clearSlowLogResponses({location.serverName}) == [False]
        copy = H.TTableDescriptor(name(b"copied"), described.columns, described.attributes, described.durability)
        client.createTable(copy, [])
        client.disableTable(name(b"copied"))
        client.deleteTable(name(b"copied"))
    for table in client1.getTableNames():
        families = list(client1.getColumnDescriptors(table).values())
        client1.createTable(b"copied", families)
        assert list(client1.getColumnDescriptors(b"copied").values()) == families
        for region in client1.getTableRegions(table):
            assert client1.getRegionInfo(region.name) == region
            client1.compact(region.name)
            client1.majorCompact(region.name)
        client1.disableTable(b"copied")
        client1.deleteTable(b"copied")


def test_namespaces(client: Any) -> None:
    client.createNamespace(H.TNamespaceDescriptor(name="own", configuration={"owner": "anna", "a b": "ü"}))
    for described in client.listNamespaceDescriptors():
        client.modifyNamespace(described)
        assert client.getNamespaceDescriptor(described.name) == described
    described = client.getNamespaceDescriptor("own")
    assert described.configuration == {"owner": "anna", "a b": "ü"}
    client.deleteNamespace("own")
    client.createNamespace(described)
    assert client.getNamespaceDescriptor("own") == described
    client.deleteNamespace("own")


def test_they_outlive_a_restart(tmp_path: Path) -> None:
    with served(tmp_path / "data") as running, with_table(running) as thrift:
        thrift.createNamespace(H.TNamespaceDescriptor(name="own", configuration={"owner": "anna"}))
        families = every_family()
        thrift.createTable(H.TTableDescriptor(name(b"t", b"own"), families, {b"OWNER": b"anna", b"mykey": b"v"}), [])
        described = thrift.getTableDescriptor(name(b"t", b"own"))
    with served(tmp_path / "data") as running:
        again = connect(running)
        assert again.getTableDescriptor(name(b"t", b"own")) == described
        assert again.getNamespaceDescriptor("own").configuration == {"owner": "anna"}
        again.close()


def test_rows(client: Any, client1: Any) -> None:
    client.put(T, put(b"row", cell(b"a", b"q", b"1", 5), cell(b"a", b"", b"", 6), cell(b"b", b"\xff", b"\x00", 7)))
    result = client.get(T, H.TGet(row=b"row"))
    found = client.getScannerResults(T, H.TScan(startRow=b"row"), 1)
    assert found == [result]
    client.put(T, H.TPut(row=b"copy", columnValues=result.columnValues))
    assert cells_of(client.get(T, H.TGet(row=b"copy"))) == cells_of(result)
    for value in result.columnValues:
        asked = H.TGet(row=b"copy", columns=[column(value.family, value.qualifier)], timestamp=value.timestamp)
        assert cells_of(client.get(T, asked)) == cells_of(H.TResult(columnValues=[value]))
    client.append(T, H.TAppend(row=b"appended", columns=result.columnValues))
    gone = [column(value.family, value.qualifier, value.timestamp) for value in result.columnValues]
    client.deleteSingle(T, H.TDelete(row=b"copy", columns=gone, deleteType=0))
    assert not client.exists(T, H.TGet(row=b"copy"))

    (row,) = client1.getRow(T, b"row", {})
    mutations = [H1.Mutation(column=one, value=each.value) for one, each in row.columns.items()]
    client1.mutateRow(T, b"copy1", mutations, {})
    (copied,) = client1.getRow(T, b"copy1", {})
    assert {one: each.value for one, each in copied.columns.items()} == {
        one: each.value for one, each in row.columns.items()
    }
    for one, each in row.columns.items():
        assert client1.getVerTs(T, b"row", one, each.timestamp + 1, 1, {})[0].value == each.value

"""Tables, namespaces, regions and the server itself by the Thrift 2 service, as HBase's own handler has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import Serving
from tests.support.thrift2_client import H, T, cell, name, put, served, with_table


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with served(tmp_path_factory.mktemp("thrift2") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def client(serving: Serving) -> Iterator[Any]:
    with with_table(serving) as thrift:
        yield thrift


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
    client.modifyNamespace(H.TNamespaceDescriptor(name="shop", configuration={"owner": "anna", "team": "b"}))
    client.modifyNamespace(H.TNamespaceDescriptor(name="shop", configuration={"owner": "anna"}))
    assert client.getNamespaceDescriptor("shop").configuration == {"owner": "anna"}
    with pytest.raises(H.TIOError, match="NamespaceNotFound"):
        client.modifyNamespace(H.TNamespaceDescriptor(name="none", configuration={"owner": "anna"}))
    for text in ("0", "many", "-1"):
        with pytest.raises(H.TIOError, match="maxregions takes a positive whole number"):
            client.modifyNamespace(
                H.TNamespaceDescriptor(name="shop", configuration={"hbase.namespace.quota.maxregions": text})
            )
    assert client.getNamespaceDescriptor("shop").configuration == {"owner": "anna"}
    table = name(b"orders", b"shop")
    client.createTable(H.TTableDescriptor(tableName=table, columns=[H.TColumnFamilyDescriptor(name=b"f")]), [])
    assert [one.qualifier for one in client.getTableNamesByNamespace("shop")] == [b"orders"]
    client.modifyNamespace(H.TNamespaceDescriptor(name="shop", configuration={"hbase.namespace.quota.maxtables": "1"}))
    second = H.TTableDescriptor(tableName=name(b"second", b"shop"), columns=[H.TColumnFamilyDescriptor(name=b"f")])
    with pytest.raises(H.TIOError, match="namespace shop has 1 tables, and takes 1"):
        client.createTable(second, [])
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
    for change in (
        lambda: client.deleteColumnFamily(table, b"none"),
        lambda: client.modifyColumnFamily(table, H.TColumnFamilyDescriptor(name=b"none")),
        lambda: client.addColumnFamily(table, H.TColumnFamilyDescriptor(name=b"g")),
    ):
        with pytest.raises(H.TIOError) as caught:
            change()
        assert caught.value.message.startswith("InvalidFamilyOperationException: ")
    with pytest.raises(H.TIOError, match="TableNotFoundException"):
        client.deleteColumnFamily(name(b"nowhere"), b"f")

    client.truncateTable(table, True)
    assert not client.exists(b"changing", H.TGet(row=b"a"))
    assert len(client.getAllRegionLocations(b"changing")) == 2
    client.truncateTable(table, False)
    assert len(client.getAllRegionLocations(b"changing")) == 1

    client.deleteColumnFamily(table, b"g")
    with pytest.raises(H.TIOError, match="InvalidFamilyOperationException: f is the only column family"):
        client.deleteColumnFamily(table, b"f")
    client.modifyTable(H.TTableDescriptor(tableName=table, columns=[H.TColumnFamilyDescriptor(name=b"h")]))
    assert [one.name for one in client.getTableDescriptor(table).columns] == [b"h"]


@pytest.mark.parametrize("preserve", [True, False])
def test_a_disabled_table_is_enabled_by_its_truncation(client: Any, preserve: bool) -> None:
    """As HBase's TruncateTableProcedure ends."""
    table, row = name(b"emptied"), put(b"r", cell(b"f", b"q"))
    client.createTable(H.TTableDescriptor(table, [H.TColumnFamilyDescriptor(name=b"f")]), [b"m"])
    client.put(b"emptied", row)
    client.disableTable(table)
    client.truncateTable(table, preserve)
    assert (client.isTableEnabled(table), client.isTableDisabled(table), client.isTableAvailable(table)) == (
        True,
        False,
        True,
    )
    assert not client.exists(b"emptied", H.TGet(row=b"r"))
    client.put(b"emptied", row)
    assert client.exists(b"emptied", H.TGet(row=b"r"))
    client.disableTable(table)
    client.deleteTable(table)


def test_the_server(client: Any, serving: Serving) -> None:
    assert client.getThriftServerType() == 2
    assert client.getClusterId() == serving.store.folder.cluster_id
    assert client.getSlowLogResponses(None, None) == []
    assert client.clearSlowLogResponses(None) == []


def test_metrics(client: Any, serving: Serving) -> None:
    def counted() -> tuple[int, int]:
        found = serving.store.ports.counters.by_method.get("thrift2.getRegionLocation")
        return (found.calls, found.failed) if found is not None else (0, 0)

    before = counted()
    client.getRegionLocation(T, b"x", False)
    with pytest.raises(H.TIOError):
        client.getRegionLocation(b"none", b"x", False)
    assert serving.do(counted) == (before[0] + 2, before[1] + 1)

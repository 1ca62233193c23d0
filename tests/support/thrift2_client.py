"""A client of the Thrift 2 service, made from the published interface alone, and a store that serves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import thriftpy2
from thriftpy2.rpc import make_client

from tests.support.serving import Serving

ROOT = Path(__file__).parents[2]
H = thriftpy2.load(str(ROOT / "columnar" / "thrift" / "hbase2.thrift"), module_name="published_hbase2_thrift")
T = b"thrift2"


@contextmanager
def served(folder: Path) -> Iterator[Serving]:
    """Yield a store with both services."""
    running = Serving(folder, thrift2_port=0).start()
    yield running
    running.stop()


def connect(serving: Serving) -> Any:
    return make_client(H.THBaseService, "127.0.0.1", serving.store.ports.thrift2_port, timeout=30_000)


@contextmanager
def with_table(serving: Serving) -> Iterator[Any]:
    """Yield a client with the table ``T``: three versions in the family a, two in b."""
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
    """Return (family:qualifier, value, timestamp) of a row's cells."""
    return cells_of(client.get(T, H.TGet(row=row, **more)))


def cells_of(result: Any) -> list[tuple[bytes, bytes, int]]:
    return [(v.family + b":" + v.qualifier, v.value, v.timestamp) for v in result.columnValues]


def values(client: Any, row: bytes, **more: Any) -> dict[bytes, bytes]:
    return {column: value for column, value, _ in read(client, row, **more)}


def four_versions(client: Any, row: bytes) -> None:
    """Write four versions, of which the family keeps three."""
    for stamp in (10, 20, 30, 40):
        client.put(T, put(row, cell(b"a", b"q", b"v%d" % stamp, stamp), cell(b"a", b"z", b"z%d" % stamp, stamp)))


def stamps(client: Any, row: bytes, qualifier: bytes = b"q") -> list[int]:
    return [at for found, _, at in read(client, row, maxVersions=9) if found == b"a:" + qualifier]

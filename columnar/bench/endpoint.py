"""An endpoint under test: its client, and the tables that the workloads need."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from thriftpy2.rpc import make_client
from thriftpy2.thrift import TClient, TException
from thriftpy2.transport.framed import TCyFramedTransportFactory

from columnar.bench.address import Endpoint
from columnar.bench.calls import batch
from columnar.bench.dataset import TableData
from columnar.bench.faults import failed
from columnar.bench.protocols import WIRES
from columnar.bench.tls_connections import context_of
from columnar.client.tls import TlsSocket
from columnar.wire import idl
from columnar.wire.definitions import WireError

ADMIN_TIMEOUT_S: Final = 120.0  # HBase takes seconds to make or drop a table


@contextmanager
def client_of(endpoint: Endpoint, timeout_s: float = ADMIN_TIMEOUT_S) -> Iterator[Any]:
    """Yield a client of the endpoint's framed protocol.  Raises EndpointFailed for any error of the client."""
    client = None
    try:
        client = _opened(endpoint, int(timeout_s * 1_000))
        yield client
    except (TException, WireError, OSError) as error:
        raise failed(endpoint, error) from error
    finally:
        if client is not None:
            client.close()


def _opened(endpoint: Endpoint, timeout_ms: int) -> Any:
    protocol, framed = WIRES[endpoint.protocol].factory(), TCyFramedTransportFactory()
    if endpoint.tls is None:
        where = {"host": endpoint.host, "port": endpoint.port, "timeout": timeout_ms}
        return make_client(idl.SERVICE, proto_factory=protocol, trans_factory=framed, **where)
    sock = TlsSocket(context_of(endpoint.tls), endpoint.host, endpoint.port, socket_timeout=timeout_ms)
    transport = framed.get_transport(sock)
    transport.open()
    return TClient(idl.SERVICE, protocol.get_protocol(transport))


class Watcher(Protocol):
    """An observer that is notified of the work under way and its progress."""

    def began(self, what: str, total: int) -> None: ...

    def advance(self, count: int) -> None: ...


def prepare(endpoint: Endpoint, tables: Sequence[TableData], rows: int, watcher: Watcher) -> None:
    """Make the tables anew and fill each with ``rows`` rows.  Raises EndpointFailed."""
    with client_of(endpoint) as client:
        for table in tables:
            drop_table(client, table.name)
            client.createTable(table.name, [idl.hbase.ColumnDescriptor(name=table.family + b":", maxVersions=1)])
        fill_tables(client, tables, rows, watcher)


def fill_tables(client: Any, tables: Sequence[TableData], rows: int, watcher: Watcher) -> None:
    """Write the rows of the tables that do not begin empty."""
    for table in tables:
        if table.cells is None:
            continue
        watcher.began(f"fill {table.name.decode()}", rows)
        left = iter(range(rows))
        while chunk := list(itertools.islice(left, table.batch_rows)):
            client.mutateRows(table.name, batch([(table.key(number), table.cells(number)) for number in chunk]), {})
            watcher.advance(len(chunk))


def drop_table(client: Any, table: bytes) -> None:
    if table in client.getTableNames():
        if client.isTableEnabled(table):
            client.disableTable(table)
        client.deleteTable(table)

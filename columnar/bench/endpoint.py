"""An endpoint under test: is it there, and are its tables as the workloads want them?"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from thriftpy2.rpc import make_client
from thriftpy2.thrift import TClient, TException
from thriftpy2.transport.framed import TCyFramedTransportFactory

from columnar.bench import dataset
from columnar.bench.address import Endpoint, EndpointFailed, Misaddressed
from columnar.bench.calls import batch
from columnar.bench.dataset import DataSet
from columnar.bench.faults import failed
from columnar.bench.protocols import WIRES
from columnar.bench.tls_connections import context_of
from columnar.client.tls import TlsSocket
from columnar.wire import idl
from columnar.wire.definitions import WireError

BATCH_ROWS: Final = 100
BATCH_ROWS_SMALL: Final = 1_000
ADMIN_TIMEOUT_S: Final = 120.0  # HBase takes seconds to make or drop a table
_PAUSE_S: Final = 0.02


@contextmanager
def client_of(endpoint: Endpoint, timeout_s: float = ADMIN_TIMEOUT_S) -> Iterator[Any]:
    """A client of its framed protocol; EndpointFailed for whatever goes wrong with it."""
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


def wait_for_answer(endpoint: Endpoint, timeout_s: float, gave_up: Callable[[], str | None]) -> float:
    """Call until the endpoint answers; return the seconds it took.  ``gave_up`` says why to stop earlier, or None."""
    started = time.monotonic()
    while True:
        try:
            with client_of(endpoint, 5.0) as client:
                client.getTableNames()
            return time.monotonic() - started
        except Misaddressed:
            raise
        except EndpointFailed as failure:
            why = gave_up()
            if why is not None or time.monotonic() - started > timeout_s:
                raise EndpointFailed(why or str(failure)) from None
            time.sleep(_PAUSE_S)


def prepare(endpoint: Endpoint, data: DataSet, advance: Callable[[int], None]) -> None:
    """Make the tables anew and fill them; ``advance`` is called with the number of rows of each batch."""
    with client_of(endpoint) as client:
        for table, family in dataset.FAMILIES.items():
            make_table(client, table, family)
        fill_tables(client, data, advance)


def fill_tables(client: Any, data: DataSet, advance: Callable[[int], None]) -> None:
    """Write the rows of the tables that are read."""
    fill(client, dataset.SMALL_TABLE, data.small_cells, range(data.rows), BATCH_ROWS_SMALL, advance)
    fill(client, dataset.ROWS_TABLE, data.wide_cells, range(data.rows), BATCH_ROWS, advance)


def prepare_ycsb(endpoint: Endpoint, data: DataSet, advance: Callable[[int], None]) -> None:
    """The same for the table of YCSB."""
    table = dataset.YCSB_TABLE
    with client_of(endpoint) as client:
        make_table(client, table, dataset.YCSB_FAMILY)
        fill(client, table, dataset.ycsb_cells, range(data.rows), BATCH_ROWS, advance, dataset.ycsb_key)


def fill(
    client: Any,
    table: bytes,
    cells: Callable[[int], list[tuple[bytes, bytes]]],
    numbers: range,
    batch_rows: int,
    advance: Callable[[int], None],
    key: Callable[[int], bytes] = dataset.row_key,
) -> None:
    """Write the rows of ``numbers``."""
    left = iter(numbers)
    while chunk := list(itertools.islice(left, batch_rows)):
        client.mutateRows(table, batch([(key(number), cells(number)) for number in chunk]), {})
        advance(len(chunk))


def make_table(client: Any, table: bytes, family: bytes) -> None:
    drop_table(client, table)
    client.createTable(table, [idl.hbase.ColumnDescriptor(name=family + b":", maxVersions=1)])


def drop_table(client: Any, table: bytes) -> None:
    if table in client.getTableNames():
        if client.isTableEnabled(table):
            client.disableTable(table)
        client.deleteTable(table)


def drop_tables(endpoint: Endpoint) -> None:
    with client_of(endpoint) as client:
        for table in (*dataset.FAMILIES, dataset.YCSB_TABLE):
            drop_table(client, table)

"""Tables of many small rows, made and filled quickly.

A batch of rows is packed once; for the next batches the row keys in its bytes are written anew.  So the
values repeat every ``BATCH_ROWS`` rows, far more than a block of the engine holds.

Rows are written in a scattered order, as users write them.  If rows were written in the order of their keys, the
engine's files would lie side by side, would never be merged and would stay small, and the cost of large files would not
show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import gcd
from typing import Any, Final

from thriftpy2.thrift import TApplicationException

from benchmarks.growth_lines import send_all
from columnar.bench import calls, dataset
from columnar.bench.address import Endpoint
from columnar.bench.calls import Exchange
from columnar.bench.dataset import SMALL_BYTES, SMALL_COLUMN
from columnar.bench.endpoint import client_of, drop_table
from columnar.wire import idl

BATCH_ROWS: Final = 1_000
FAMILY: Final = b"s"
SETTLE_TIMEOUT_S: Final = 900.0  # for the engine to bring a large table in order
_KEY_BYTES: Final = len(dataset.row_key(0))
_GOOD: Final = calls.good_begin("mutateRows", calls.VOID_SUCCESS)


def is_columnar(endpoint: Endpoint) -> bool:
    """Return whether the endpoint has the methods beyond HBase's.  Raises EndpointFailed."""
    with client_of(endpoint) as client:
        try:
            client.columnarStatus()
        except TApplicationException as error:
            if error.type != TApplicationException.UNKNOWN_METHOD:
                raise
            return False
        return True


@contextmanager
def dropped_afterwards(endpoint: Endpoint, tables: Sequence[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        with client_of(endpoint) as client:
            for table in tables:
                drop_table(client, table)


def make_table(client: Any, table: bytes, versions: int = 1) -> None:
    """Make the table anew, with one region."""
    drop_table(client, table)
    client.createTable(table, [idl.hbase.ColumnDescriptor(name=FAMILY + b":", maxVersions=versions)])


def make_split_table(client: Any, table: bytes, splits: Sequence[bytes], family: bytes = FAMILY) -> None:
    """Make the table anew, cut at ``splits``; only with Columnar's extensions."""
    drop_table(client, table)
    options = idl.columnar.FamilyOptions(name=family, maxVersions=1)
    client.columnarCreateTable(table, [options], {}, list(splits))


def splits_for(rows: int, regions: int) -> list[bytes]:
    """Return the row keys that cut ``rows`` rows into ``regions`` equal regions."""
    return [dataset.row_key(rows * number // regions) for number in range(1, regions)]


def fill(endpoint: Endpoint, table: bytes, rows: int, advance: Callable[[int], None]) -> None:
    """Write rows 0 to ``rows``, of one cell of 20 bytes each.  Raises EndpointFailed."""
    send_all(endpoint, batches(table, rows), advance)


def batches(table: bytes, rows: int) -> Iterator[Exchange]:
    """Yield the calls that write rows 0 to ``rows``, in a scattered order."""
    size, step = min(rows, BATCH_ROWS), _stride(rows)
    packed = _packed(table, range(size))
    whole = rows - rows % BATCH_ROWS if rows > BATCH_ROWS else rows
    places = _places(packed)
    for first in range(0, whole, size):  # packed is written and copied within one step
        for number, place in enumerate(places, first):
            packed[place : place + _KEY_BYTES] = dataset.row_key(number * step % rows)
        yield Exchange(bytes(packed), _GOOD, size, 0)
    if whole < rows:
        last = [number * step % rows for number in range(whole, rows)]
        yield Exchange(bytes(_packed(table, last)), _GOOD, rows - whole, 0)


def _stride(rows: int) -> int:
    """Return a step whose multiples modulo ``rows`` visit each row once, neighbours far apart (the golden section)."""
    step = max(1, round(rows * 0.618034))
    while gcd(step, rows) > 1:
        step += 1
    return step


def _packed(table: bytes, numbers: Sequence[int]) -> bytearray:
    rows = [
        (dataset.row_key(number), [(SMALL_COLUMN, dataset.text(b"small %d" % number, SMALL_BYTES))])
        for number in numbers
    ]
    return bytearray(calls.call("mutateRows", table, calls.batch(rows)))


def _places(packed: bytearray) -> list[int]:
    """Return the offsets of the row keys, in their order."""
    found, at = [], packed.find(dataset.row_key(0))
    while at >= 0:
        found.append(at)
        at = packed.find(dataset.row_key(len(found)), at + _KEY_BYTES)
    return found


def settle(endpoint: Endpoint, tables: Sequence[bytes]) -> None:
    """Flush and compact the tables, so that no background work of the filling is left.  Needs Columnar's extensions."""
    with client_of(endpoint, SETTLE_TIMEOUT_S) as client:
        for table in tables:
            client.columnarFlush(table)
            client.columnarCompact(table, False)


def sweep(endpoint: Endpoint, table: bytes) -> None:
    """Run the background sweep now, and rewrite all files.  Needs Columnar's extensions."""
    with client_of(endpoint, SETTLE_TIMEOUT_S) as client:
        client.columnarCompact(table, True)

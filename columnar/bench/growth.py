"""How cost grows: reads as the table gets longer, reads and writes as one cell is overwritten and deleted.

Each step changes the table and then times the same calls, one after the other on one connection; the
median is taken.  What is flat here is flat for the store: nothing is warmed up in between.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import Any, Final

from rich.table import Table

from columnar.bench import calls, dataset
from columnar.bench.calls import FRAME_HEAD, BadReply, Exchange
from columnar.bench.dataset import SMALL_COLUMN, SMALL_TABLE, DataSet
from columnar.bench.endpoint import BATCH_ROWS_SMALL, Endpoint, client_of, drop_table, fill, make_table
from columnar.bench.generator import SILENCE_S, EndpointFailed
from columnar.wire import idl

TIMED: Final = 400  # calls a figure is the median of
SIZES: Final = (1, 5, 20)  # the table's steps, in twentieths of the largest
HISTORIES: Final = (1, 100, 10_000)
_HOT_ROW: Final = b"hot"


@dataclass(frozen=True, slots=True)
class Step:
    what: str
    get_us: float  # one cell, random rows of the table or the hot one
    scan_us: float  # open at one row, read it to the end, close
    put_us: float


def grown(endpoint: Endpoint, rows: int, overwrites: int, began: Callable[[str], None]) -> list[Step]:
    """The steps in their order; the table is dropped afterwards.  EndpointFailed."""
    with client_of(endpoint) as client:
        make_table(client, SMALL_TABLE, dataset.FAMILIES[SMALL_TABLE])
        try:
            return [*_by_rows(endpoint, client, rows, began), *_by_history(endpoint, client, overwrites, began)]
        finally:
            drop_table(client, SMALL_TABLE)


def _by_rows(endpoint: Endpoint, client: Any, rows: int, began: Callable[[str], None]) -> Iterator[Step]:
    data, filled = DataSet(rows), 0
    for size in SIZES:
        wanted = rows * size // SIZES[-1]
        began(f"{wanted:,} rows")
        fill(client, SMALL_TABLE, data.small_cells, range(filled, wanted), BATCH_ROWS_SMALL, lambda _: None)
        filled, rng = wanted, Random(size)
        keys = [dataset.row_key(rng.randrange(wanted)) for _ in range(TIMED)]
        yield _timed(endpoint, f"{wanted:,} rows", keys)


def _by_history(endpoint: Endpoint, client: Any, overwrites: int, began: Callable[[str], None]) -> Iterator[Step]:
    done = 0
    for count in [count for count in HISTORIES if count < overwrites] + [overwrites]:
        began(f"{count:,} overwrites")
        for number in range(done, count):
            client.mutateRow(SMALL_TABLE, _HOT_ROW, [calls.mutation(SMALL_COLUMN, b"%020d" % number)], {})
        done = count
        yield _timed(endpoint, f"one cell, {count:,} overwrites", [_HOT_ROW] * TIMED)
    began(f"{overwrites:,} deletes")
    for number in range(overwrites):
        client.mutateRow(SMALL_TABLE, _HOT_ROW, [calls.mutation(SMALL_COLUMN, b"%020d" % number)], {})
        client.mutateRow(SMALL_TABLE, _HOT_ROW, [idl.hbase.Mutation(isDelete=True, column=SMALL_COLUMN)], {})
    client.mutateRow(SMALL_TABLE, _HOT_ROW, [calls.mutation(SMALL_COLUMN, b"at the end")], {})
    yield _timed(endpoint, f"... and {overwrites:,} deletes", [_HOT_ROW] * TIMED)


def _timed(endpoint: Endpoint, what: str, keys: list[bytes]) -> Step:
    gets = [calls.exchange("get", (SMALL_TABLE, key, SMALL_COLUMN), calls.list_of(1)) for key in keys]
    scan = idl.hbase.TScan(startRow=keys[0], stopRow=keys[0] + b"\xff", caching=100)
    opened = calls.call("scannerOpenWithScan", SMALL_TABLE, scan)
    puts = [
        calls.exchange("mutateRow", (SMALL_TABLE, key, calls.puts([(SMALL_COLUMN, key)])), calls.VOID_SUCCESS)
        for key in keys
    ]
    with _line(endpoint) as sock:
        get_us = median(_took_us(sock, one) for one in gets)
        scan_us = median(_scan_us(sock, opened) for _ in range(TIMED // 4))
        return Step(what, get_us, scan_us, median(_took_us(sock, one) for one in puts))


@contextmanager
def _line(endpoint: Endpoint) -> Iterator[socket.socket]:
    try:
        with socket.create_connection((endpoint.host, endpoint.port), timeout=SILENCE_S) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield sock
    except OSError as error:
        raise EndpointFailed(f"{endpoint}: {error}") from error
    except BadReply as bad:
        raise EndpointFailed(f"{endpoint}: {bad}") from None


def _took_us(sock: socket.socket, one: Exchange) -> float:
    started = time.perf_counter()
    reply = _ask(sock, one.frame)
    took = (time.perf_counter() - started) * 1e6
    if not reply.startswith(one.good, FRAME_HEAD):
        raise BadReply(reply)
    return took


def _scan_us(sock: socket.socket, opened: bytes) -> float:
    """One short scan: the row it begins at, and the end."""
    started = time.perf_counter()
    scanner = calls.number_at(_ask(sock, opened), calls.good_begin("scannerOpenWithScan", calls.I32_SUCCESS))
    found = _ask(sock, calls.call("scannerGetList", scanner, 100))
    _ask(sock, calls.call("scannerClose", scanner))
    took = (time.perf_counter() - started) * 1e6
    if calls.number_at(found, calls.good_begin("scannerGetList", calls.LIST_SUCCESS)) != 1:
        raise BadReply(found)
    return took


def _ask(sock: socket.socket, frame: bytes) -> bytes:
    sock.sendall(frame)
    reply = b""
    while len(reply) < FRAME_HEAD or len(reply) < FRAME_HEAD + int.from_bytes(reply[:FRAME_HEAD], "big"):
        data = sock.recv(1 << 16)
        if not data:
            raise EndpointFailed("the endpoint closed the connection")
        reply += data
    return reply


def growth_table(title: str, steps: list[Step]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("table")
    for name in ("get us", "short scan us", "durable put us"):
        table.add_column(name, justify="right")
    for step in steps:
        table.add_row(step.what, f"{step.get_us:,.0f}", f"{step.scan_us:,.0f}", f"{step.put_us:,.0f}")
    return table

"""Real clients on loopback against a toy service, in the four combinations of transport and protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import happybase
import pytest
import uvloop

from columnar.errors import CallerError, ColumnarError
from columnar.wire import idl
from columnar.wire.codec_replies import RowList
from columnar.wire.server import WireLimits, WireServer


class ToyService:
    """A table in a dictionary; writes are acknowledged by a future, as a commit would."""

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[bytes, tuple[bytes, int]]] = {}
        self.closed: list[int] = []
        self.gate: asyncio.Future[None] | None = None
        self.calls: list[bytes] = []
        self.handlers = {name.removeprefix("on_"): getattr(self, name) for name in dir(self) if name.startswith("on_")}

    def on_get(self, ctx: Any, table: bytes, row: bytes, column: bytes, attributes: Any) -> list[tuple[bytes, int]]:
        self.calls.append(row)
        if row == b"caller":
            raise CallerError("bad row")
        if row == b"bug":
            raise ZeroDivisionError("bug")
        cell = self.rows.get(row, {}).get(column)
        return [cell] if cell else []

    def on_getRowWithColumns(self, ctx: Any, table: bytes, row: bytes, columns: Any, attributes: Any) -> RowList:
        cells = self.rows.get(row)
        if cells is None:
            return RowList([])
        return RowList([(row, [(column, *cell) for column, cell in cells.items()])])

    def on_mutateRows(self, ctx: Any, table: bytes, batches: Any, attributes: Any) -> Any:
        for batch in batches:
            row = self.rows.setdefault(batch.row, {})
            for mutation in batch.mutations:
                row[mutation.column] = (mutation.value, 5)
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(done.set_result, None)
        return done

    async def on_atomicIncrement(self, ctx: Any, table: bytes, row: bytes, column: bytes, amount: int) -> int:
        self.calls.append(row)
        if self.gate is not None:
            await self.gate
        return amount + 1

    def on_scannerOpenWithScan(self, ctx: Any, table: bytes, scan: Any, attributes: Any) -> int:
        self.scan = scan
        self.left = sorted(self.rows)
        return 0

    def on_scannerGetList(self, ctx: Any, scanner: int, count: int) -> RowList:
        taken, self.left = self.left[:count], self.left[count:]
        rows = [(row, [(column, *cell) for column, cell in self.rows[row].items()]) for row in taken]
        return RowList(rows, bool(self.scan.sortColumns))

    def on_scannerClose(self, ctx: Any, scanner: int) -> None:
        return None

    def on_getTableNames(self, ctx: Any) -> list[bytes]:
        return [b"t1", b"t2"]

    def translate(self, method: str, error: Exception) -> Any:
        if isinstance(error, ColumnarError):
            return idl.hbase.IOError(error.wire_message, not isinstance(error, CallerError))
        return None

    def connection_closed(self, connection_id: int) -> None:
        self.closed.append(connection_id)


class Running:
    """A server on a loop in a thread of its own."""

    def __init__(self, limits: WireLimits | None = None) -> None:
        self.service = ToyService()
        self.loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.server = self.call(self._start(limits))
        self.port = self.server.port

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _start(self, limits: WireLimits | None) -> WireServer:
        server = WireServer(self.service, limits=limits)
        await server.start("127.0.0.1", 0)
        return server

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def stop(self) -> None:
        self.call(self.server.close(2))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()


@pytest.fixture
def running() -> Iterator[Running]:
    server = Running()
    yield server
    server.stop()


@pytest.mark.parametrize("transport", ["buffered", "framed"])
@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_happybase_in_all_combinations(running: Running, transport: str, protocol: str) -> None:
    connection = happybase.Connection("127.0.0.1", running.port, transport=transport, protocol=protocol, timeout=10_000)
    table = connection.table("t")
    assert connection.tables() == [b"t1", b"t2"]
    with table.batch() as batch:
        for n in range(300):
            batch.put(b"row%03d" % n, {b"f:a": b"x" * 1000, b"f:b": b"%d" % n})
    assert table.row(b"row007") == {b"f:a": b"x" * 1000, b"f:b": b"7"}
    assert table.row(b"none") == {}
    rows = dict(table.scan(batch_size=100))
    assert len(rows) == 300
    assert rows[b"row299"][b"f:b"] == b"299"
    assert list(dict(table.scan(sorted_columns=True))[b"row000"]) == [b"f:a", b"f:b"]
    assert table.counter_inc(b"r", b"f:c", 41) == 42
    connection.close()

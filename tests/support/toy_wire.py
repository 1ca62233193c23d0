"""A wire server over a toy service, with raw bytes to and from the server."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from typing import Any

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

    slow_after_s = 3_600.0

    def retry_or_forward(self, *_call: Any) -> Any:
        return None

    def may_be_forwarded(self, _method: str) -> bool:
        return False

    def was_slow(self, *_facts: Any) -> None:
        raise AssertionError("nothing here takes an hour")

    def connection_closed(self, connection_id: int) -> None:
        self.closed.append(connection_id)


class Running:
    """A server on a loop in a thread of its own."""

    def __init__(self, limits: WireLimits | None = None) -> None:
        self.service = ToyService()
        self.observed: list[tuple[str, str | None, int, int]] = []
        self.loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.server = self.call(self._start(limits))
        self.port = self.server.port

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _start(self, limits: WireLimits | None) -> WireServer:
        server = WireServer(self.service, observer=self, limits=limits)
        await server.start("127.0.0.1", 0)
        return server

    def request_done(self, method: str, seconds: float, error: str | None, bytes_in: int, bytes_out: int) -> None:
        assert seconds >= 0
        self.observed.append((method, error, bytes_in, bytes_out))

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def stop(self) -> None:
        self.call(self.server.close(2))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()


def call(name: bytes, seqid: int, args: bytes = b"", kind: int = 1) -> bytes:
    return struct.pack(">HBBI", 0x8001, 0, kind, len(name)) + name + struct.pack(">i", seqid) + args + b"\x00"


def text(field: int, value: bytes) -> bytes:
    return struct.pack(">BHI", 11, field, len(value)) + value


def get(seqid: int, row: bytes = b"r", kind: int = 1) -> bytes:
    return call(b"get", seqid, text(1, b"t") + text(2, row) + text(3, b"f:q"), kind)


def increment(seqid: int, row: bytes) -> bytes:
    return call(b"atomicIncrement", seqid, text(1, b"t") + text(2, row) + text(3, b"f:c") + b"\x0a\x00\x04" + b"\0" * 8)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def open_socket(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=10)


def receive(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            break
        data += piece
    return data


def until_closed(sock: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            data += piece
    return data


def reply_of(sock: socket.socket) -> tuple[int, bytes, int, bytes]:
    """Return (kind, name, seqid, rest) of one framed reply."""
    (length,) = struct.unpack(">I", receive(sock, 4))
    body = receive(sock, length)
    (size,) = struct.unpack(">I", body[4:8])
    return body[3], body[8 : 8 + size], struct.unpack(">i", body[8 + size : 12 + size])[0], body[12 + size :]


EMPTY_GET = b"\x80\x01\x00\x02\x00\x00\x00\x03get%b\x0f\x00\x00\x0c\x00\x00\x00\x00\x00"


def serves(running: Running) -> bool:
    with open_socket(running) as sock:
        sock.sendall(get(77))
        return receive(sock, 24) == EMPTY_GET % struct.pack(">i", 77)


async def close_gate(service: ToyService) -> None:
    service.gate = asyncio.get_running_loop().create_future()

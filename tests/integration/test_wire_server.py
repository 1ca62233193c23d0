"""Real clients on loopback against a toy service, in the four combinations of transport and protocol."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
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

    slow_after_s = 3_600.0

    def asked_again(self, *_call: Any) -> None:
        return None

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


# --- raw bytes ---------------------------------------------------------------------------------------


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
    """(kind, name, seqid, rest) of one framed reply."""
    (length,) = struct.unpack(">I", receive(sock, 4))
    body = receive(sock, length)
    (size,) = struct.unpack(">I", body[4:8])
    return body[3], body[8 : 8 + size], struct.unpack(">i", body[8 + size : 12 + size])[0], body[12 + size :]


EMPTY_GET = b"\x80\x01\x00\x02\x00\x00\x00\x03get%b\x0f\x00\x00\x0c\x00\x00\x00\x00\x00"


def serves(running: Running) -> bool:
    with open_socket(running) as sock:
        sock.sendall(get(77))
        return receive(sock, 24) == EMPTY_GET % struct.pack(">i", 77)


def test_pipelined_replies_keep_their_order(running: Running) -> None:
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2, b"after")) + framed(get(3, b"last")))
        assert serves(running)  # others do not wait
        assert running.service.calls == [b"slow", b"r"]
        running.loop.call_soon_threadsafe(running.service.gate.set_result, None)
        assert [reply_of(sock)[2] for _ in range(3)] == [1, 2, 3]
    assert running.service.calls == [b"slow", b"r", b"after", b"last"]


async def close_gate(service: ToyService) -> None:
    service.gate = asyncio.get_running_loop().create_future()


def test_a_call_that_is_cancelled_says_that_nobody_knows_its_outcome(running: Running) -> None:
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2)))
        assert serves(running)
        running.loop.call_soon_threadsafe(running.service.gate.cancel)
        kind, name, seqid, rest = reply_of(sock)[:4]
        assert (kind, name, seqid) == (2, b"atomicIncrement", 1)
        assert b"CallTimeoutException: the server stopped before this was done" in rest
        assert reply_of(sock)[2] == 2


def test_thousands_pipelined(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(b"".join(get(n) for n in range(5000)))
        size = len(EMPTY_GET % b"1234")
        data = receive(sock, 5000 * size)
    assert data == b"".join(EMPTY_GET % struct.pack(">i", n) for n in range(5000))


def test_what_was_asked_before_the_end_is_answered(running: Running) -> None:
    """A client that sends everything, closes its side and then reads."""
    with open_socket(running) as sock:
        sock.sendall(increment(0, b"r") + b"".join(get(n) for n in range(3000)))
        sock.shutdown(socket.SHUT_WR)
        assert until_closed(sock).endswith(EMPTY_GET % struct.pack(">i", 2999))


@pytest.mark.parametrize("kind", [0, 2, 3, 9])
def test_what_is_no_call_is_told_so(running: Running, kind: int) -> None:
    with open_socket(running) as sock:
        sock.sendall(framed(get(4, kind=kind)) + framed(get(5)))
        answer, name, seqid, rest = reply_of(sock)
        assert (answer, name, seqid, rest[-5:]) == (3, b"get", 4, b"\x00\x00\x00\x02\x00")
        assert reply_of(sock)[2] == 5


def test_a_oneway_call_is_served_without_a_reply(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(framed(get(4, b"oneway", kind=4)) + framed(get(5)))
        assert reply_of(sock)[2] == 5
    assert running.service.calls == [b"oneway", b"r"]


def test_errors(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    with open_socket(running) as sock:
        sock.sendall(b"".join(map(framed, [call(b"frob", 1), get(2, b"caller"), get(3, b"bug"), get(4)])))
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (3, b"frob", 1)
        assert b"Invalid method name: 'frob'" in rest
        assert rest.endswith(b"\x08\x00\x02\x00\x00\x00\x01\x00")
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (2, b"get", 2)
        assert b"DoNotRetryIOException: bad row" in rest
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (3, b"get", 3)
        assert rest.endswith(b"\x08\x00\x02\x00\x00\x00\x06\x00")
        assert reply_of(sock)[2] == 4
    assert "ZeroDivisionError" in caplog.text


def test_every_request_is_observed(running: Running) -> None:
    requests = [get(1), get(2, b"caller"), get(3, b"bug"), call(b"frob", 4), increment(5, b"r"), get(6, kind=4), get(7)]
    with open_socket(running) as sock:
        sock.sendall(b"".join(map(framed, requests)))
        for _ in range(6):
            reply_of(sock)
    assert [(method, error) for method, error, _, _ in running.observed] == [
        ("get", None),
        ("get", "CallerError"),
        ("get", "ZeroDivisionError"),
        ("unknown", "TApplicationException"),
        ("atomicIncrement", None),
        ("get", None),
        ("get", None),
    ]
    assert [size for _, _, size, _ in running.observed] == list(map(len, requests))
    assert [size for _, _, _, size in running.observed][-2:] == [0, 24]


def test_a_malformed_argument_is_answered_and_closed(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(framed(call(b"get", 1, b"\x55\x00\x01")))
        kind, name, seqid, rest = reply_of(sock)
        assert (kind, name, seqid) == (3, b"get", 1)
        assert rest.endswith(b"\x08\x00\x02\x00\x00\x00\x07\x00")
        assert until_closed(sock) == b""
    assert serves(running)


def test_http_gets_an_answer_in_http(running: Running) -> None:
    with open_socket(running) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = until_closed(sock)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 405 ")
    assert b"Content-Length: %d" % len(body) in head
    assert b"Thrift" in body


@pytest.mark.parametrize(
    "junk", [b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"\xff" * 64, b"\x7f\xff\xff\xff\x80\x01"]
)
def test_what_is_no_thrift_is_closed_with_one_line(
    running: Running, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with open_socket(running) as sock:
        sock.sendall(junk)
        assert until_closed(sock) == b""
    assert serves(running)
    assert len([record for record in caplog.records if "closed:" in record.getMessage()]) == 1


# --- bounds --------------------------------------------------------------------------------------------

SMALL = WireLimits(
    message_bytes=100_000,
    drained_bytes=1_000_000,
    connections=4,
    input_bytes=50_000,
    output_bytes=200_000,
    server_input_bytes=150_000,
    server_output_bytes=600_000,
)


@pytest.fixture
def small() -> Iterator[Running]:
    server = Running(SMALL)
    yield server
    server.stop()


@pytest.mark.parametrize("frame", [framed, bytes])
def test_an_oversized_message_is_drained_and_answered(small: Running, frame: Any) -> None:
    big = call(b"get", 8, text(1, b"x" * 500_000) + text(2, b"r") + text(3, b"f:q"))
    with open_socket(small) as sock:
        sock.sendall(frame(big) + frame(get(9)))
        data = receive(sock, 4 if frame is framed else 0) and b""
        data += receive(sock, 15)
        assert data[:15] == b"\x80\x01\x00\x02\x00\x00\x00\x03get\x00\x00\x00\x08"
        assert b"RequestTooBigException: a message of 500" in receive(sock, 80)
        sock.shutdown(socket.SHUT_WR)
        assert (EMPTY_GET % struct.pack(">i", 9)) in until_closed(sock)


def test_a_frame_over_the_drained_bound_is_closed(small: Running) -> None:
    with open_socket(small) as sock:
        sock.sendall(struct.pack(">I", 2_000_000) + get(1))
        assert until_closed(sock) == b""
    assert serves(small)


def test_too_many_connections_are_refused(small: Running) -> None:
    held = [open_socket(small) for _ in range(4)]
    for sock in held:
        sock.sendall(get(1))
        receive(sock, 24)
    with open_socket(small) as refused:
        assert until_closed(refused) == b""
    held[0].sendall(get(2))
    assert len(receive(held[0], 20)) == 20
    for sock in held:
        sock.close()


def test_half_sent_messages_do_not_fill_the_server(small: Running) -> None:
    """Three connections hold 80 KB of a message each, 150 KB are allowed: one has to send again."""
    half = framed(call(b"get", 8, text(1, b"x" * 90_000)))
    held = [open_socket(small) for _ in range(3)]
    for sock in held:
        sock.sendall(half[:80_000])
        while sock is held[0] and small.server.input_bytes < 80_000:
            pass
    assert serves(small)
    for sock in held:
        sock.sendall(half[80_000:])
    answers = [reply_of(sock) for sock in held]
    assert sum(b"CallQueueTooBigException" in rest for _, _, _, rest in answers) >= 1
    assert serves(small)
    assert small.server.input_bytes == 0
    for sock in held:
        sock.close()


def test_a_client_that_never_reads_is_held_in_bounds(small: Running) -> None:
    """Asks for 1 GB of rows and reads nothing: the server stops serving it, not the others."""
    small.service.rows[b"big"] = {b"f:q": (b"v" * 100_000, 1)}
    request = get(1, b"big")
    with open_socket(small) as sock:
        sock.settimeout(0.3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 20_000_000:
                sent += sock.send(request * 1000)
        served = len(small.service.calls)
        assert served < 200  # what sockets of the system hold, and 200 KB
        assert small.server.output_bytes <= SMALL.output_bytes + 2 * 256 * 1024 + 100_100
        assert small.server.input_bytes <= SMALL.input_bytes + 512 * 1024
        assert serves(small)
        assert len(small.service.calls) == served + 1
        sock.settimeout(10)
        assert len(receive(sock, 1_000_000)) == 1_000_000  # and goes on once it reads
    assert serves(small)


def test_over_the_total_of_unsent_bytes_one_is_closed(small: Running) -> None:
    small.service.rows[b"big"] = {b"f:q": (b"v" * 450_000, 1)}
    held = [open_socket(small) for _ in range(3)]
    for sock in held:
        sock.sendall(get(1, b"big") * 30)
    assert serves(small)
    assert small.server.output_bytes <= SMALL.server_output_bytes + 450_100
    for sock in held:
        sock.close()


def test_three_hundred_connections(running: Running) -> None:
    held = [open_socket(running) for _ in range(300)]
    for n, sock in enumerate(held):
        sock.sendall(framed(get(n)))
    assert [reply_of(sock)[2] for sock in held] == list(range(300))
    assert running.server.connections == 300
    for sock in held:
        sock.close()
    assert serves(running)


def test_closing_finishes_the_call_in_flight() -> None:
    running = Running()
    running.call(close_gate(running.service))
    with open_socket(running) as sock, open_socket(running) as idle:
        sock.sendall(framed(increment(1, b"slow")) + framed(get(2)))
        idle.sendall(get(1))
        receive(idle, 24)
        closing = asyncio.run_coroutine_threadsafe(running.server.close(5), running.loop)
        until_closed(idle)
        running.loop.call_soon_threadsafe(running.service.gate.set_result, None)
        assert reply_of(sock)[2] == 1
        assert until_closed(sock) == b""
        closing.result(5)
    assert sorted(running.service.closed) == [1, 2]
    running.stop()


def test_the_grace_ends() -> None:
    running = Running()
    running.call(close_gate(running.service))
    with open_socket(running) as sock:
        sock.sendall(framed(increment(1, b"slow")))
        assert serves(running)
        running.call(running.server.close(0.05))
        assert until_closed(sock) == b""
    running.loop.call_soon_threadsafe(running.service.gate.set_result, None)
    running.stop()


@pytest.mark.parametrize("frame", [framed, bytes])
def test_a_large_message_is_decoded_aside(running: Running, frame: Any) -> None:
    big = call(b"get", 8, text(1, b"x" * 3_000_000) + text(2, b"large") + text(3, b"f:q"))
    with open_socket(running) as sock:
        sock.sendall(frame(big) + frame(get(9)))
        sock.shutdown(socket.SHUT_WR)
        assert until_closed(sock) == frame(EMPTY_GET % struct.pack(">i", 8)) + frame(EMPTY_GET % struct.pack(">i", 9))
        assert running.service.calls == [b"large", b"r"]
    with open_socket(running) as sock:
        sock.sendall(framed(call(b"get", 8, text(1, b"x" * 3_000_000) + b"\x55\x00\x01")))
        assert reply_of(sock)[:3] == (3, b"get", 8)
        assert until_closed(sock) == b""
    assert serves(running)
    assert running.server.input_bytes == 0

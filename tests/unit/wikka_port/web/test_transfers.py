"""Uploads that are read as they arrive and large answers: slow, cut and lying clients harm nobody else."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.deep import cases
from tests.support.served_application import answer, ask, connect, length_of, read_all, serving
from tests.support.transfers import PIECE, Transfers, connect_from, content, digest_of, head, received
from wikka_port.body_pipe import BodyPipe, ClientDisconnected
from wikka_port.counters import TRANSFER_BYTES, TRANSFERS
from wikka_port.limits import (
    PIPE_BYTES,
    TRANSFER_OUTPUT_BYTES,
    TRANSFERS_AT_ONCE,
    TRANSFERS_OF_NETWORK,
    TRANSFERS_WAITING_MAX,
    UNREAD_TIMES,
)
from wikka_port.request_queues import TooManyTransfers

SMALL = 65_539  # max_request_bytes of the wikis here
UNREAD = UNREAD_TIMES * (SMALL + 1)
LARGE = 3_000_000
MB = 1 << 20
SHORT = (64 * MB, 16 * MB)
LONG = pytest.param(1024 * MB, 64 * MB, marks=pytest.mark.lasts(60))


@contextmanager
def transfers(**config: int) -> Iterator[tuple[Transfers, int, ExitStack, Callable[[str], float]]]:
    """Yield the application, its port, a stack for connections, and a function that counts transfers."""
    application = Transfers()
    with serving(application, max_text_bytes=1, **config) as (worker, port, _), ExitStack() as stack:
        counters = worker.server.settings.counters
        yield application, port, stack, lambda state: counters.number(TRANSFERS, state)


def upload(connection: socket.socket, size: int) -> None:
    connection.sendall(head(size))
    send_all(connection, size)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what no event says: a number of the server's."""
    pause = threading.Event()
    for _ in range(2_000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it has not come in 20 s")


def send_all(connection: socket.socket, size: int) -> None:
    for piece in content(size):
        connection.sendall(piece)


# --- the pipe ---------------------------------------------------------------------------------------


def test_the_loop_reads_for_a_pipe_that_has_room_and_a_reader() -> None:
    woken: list[str] = []
    pipe = BodyPipe(lambda: woken.append("begun"), lambda: woken.append("woken"))
    pipe.append(b"came with the headers")
    assert not pipe.wants_bytes, "nobody reads yet"
    assert pipe.read(4) == b"came"
    assert woken == ["begun", "woken"]
    assert pipe.wants_bytes
    pipe.append(b"x" * PIPE_BYTES)
    assert not pipe.wants_bytes, "it is full"
    pipe.read(PIPE_BYTES // 4)
    assert pipe.wants_bytes
    assert woken[2:] == [], "the loop is not woken for each read"
    pipe.read(PIPE_BYTES // 2)
    assert woken[2:] == ["woken"]
    pipe.end()
    pipe.break_off()
    assert len(pipe.read()) == PIPE_BYTES // 4 + len(" with the headers")
    assert pipe.read(1) == b""


def test_a_pipe_drops_what_nobody_reads_and_says_when_the_client_has_gone() -> None:
    pipe = BodyPipe(lambda: None, lambda: None)
    pipe.append(b"x" * 10)
    pipe.end_reading()
    for _ in range(100):
        pipe.append(b"x" * PIPE_BYTES)
        assert pipe.wants_bytes
    assert len(pipe._bytes) == 0
    broken = BodyPipe(lambda: None, lambda: None)
    broken.append(b"x")
    broken.break_off()
    assert broken.read(2) == b"x"
    with pytest.raises(ClientDisconnected):
        broken.read(1)


def test_a_reader_that_may_not_begin_reads_nothing() -> None:
    def refuse() -> None:
        raise TooManyTransfers

    pipe = BodyPipe(refuse, lambda: None)
    pipe.append(b"x")
    for _ in range(2):
        with pytest.raises(TooManyTransfers):
            pipe.read(1)
    assert not pipe.wants_bytes


# --- memory -----------------------------------------------------------------------------------------


def peak_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("size", "most"), cases("sizes of transfers", deep=[SHORT, LONG], short=[SHORT]))
def test_a_transfer_takes_little_memory_whatever_its_size(size: int, most: int) -> None:
    words = [sys.executable, "-m", "tests.support.transfers"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with connect(port) as connection:
                connection.settimeout(60)
                ask(connection, "/page")
                assert answer(connection)
                before = peak_bytes(process.pid)
                upload(connection, size)
                assert answer(connection).decode().endswith(digest_of(size))
                ask(connection, f"/down?bytes={size}")
                assert received(connection) == size
                assert peak_bytes(process.pid) - before < most
        finally:
            process.kill()


def test_a_slow_reader_has_two_megabytes_waiting_in_memory() -> None:
    with serving(Transfers(), max_text_bytes=1) as (worker, port, _), connect_from(port, 2, 4_096) as slow:
        ask(slow, f"/down?bytes={20 * LARGE}")
        wait_until(lambda: any(one.total_outbufs_len for one in worker.server.active_channels.values()))
        (channel,) = worker.server.active_channels.values()
        wait_until(lambda: channel.total_outbufs_len > TRANSFER_OUTPUT_BYTES)
        assert channel.total_outbufs_len <= TRANSFER_OUTPUT_BYTES + len(PIECE)
        assert not any(buffer.overflowed for buffer in channel.outbufs), "none of it is in a file"


# --- slow clients -----------------------------------------------------------------------------------


def test_forty_clients_of_a_byte_at_a_time_hold_up_no_page() -> None:
    with transfers() as (application, port, stack, count):
        up = [stack.enter_context(connect_from(port, 2 + number % 10)) for number in range(20)]
        down = [stack.enter_context(connect_from(port, 12 + number % 10, 4_096)) for number in range(20)]
        for connection in up:
            connection.sendall(head(LARGE))
        for connection in down:
            ask(connection, f"/down?bytes={20 * LARGE}")
        page = stack.enter_context(connect(port))
        wait_until(lambda: count("in") + count("out") + count("waiting") == 40)
        assert count("waiting") == TRANSFERS_WAITING_MAX
        slowest = 0.0
        for _ in range(20):
            for connection in up:
                connection.sendall(b"x")
            for connection in down[:TRANSFERS_AT_ONCE]:
                connection.setblocking(False)
                with suppress(BlockingIOError):  # it waits for a thread
                    connection.recv(1)
            began = time.monotonic()
            ask(page, "/page")
            assert answer(page).endswith(b"page /page")
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 1.0
        assert count("in") + count("out") == TRANSFERS_AT_ONCE
        assert application.events.qsize() <= TRANSFERS_AT_ONCE


def test_more_transfers_than_may_wait_get_503() -> None:
    with transfers() as (_, port, stack, count):
        for number in range(TRANSFERS_AT_ONCE + TRANSFERS_WAITING_MAX):
            stack.enter_context(connect_from(port, 2 + number // 3)).sendall(head(LARGE))
        wait_until(lambda: count("in") + count("waiting") == TRANSFERS_AT_ONCE + TRANSFERS_WAITING_MAX)
        for request in (head(LARGE), f"GET /down?bytes={LARGE} HTTP/1.1\r\nHost: x\r\n\r\n".encode()):
            refused = stack.enter_context(connect_from(port, 99))
            refused.sendall(request)
            assert answer(refused).startswith(b"HTTP/1.1 503")


def test_transfers_of_one_network_wait_and_others_pass_them() -> None:
    with transfers() as (application, port, stack, count):
        of_one = [stack.enter_context(connect_from(port, 2)) for _ in range(TRANSFERS_OF_NETWORK + 1)]
        for connection in of_one:
            connection.sendall(head(LARGE))
        application.await_event("up begins", TRANSFERS_OF_NETWORK)
        other = stack.enter_context(connect_from(port, 3))
        upload(other, LARGE)
        assert answer(other).decode().endswith(digest_of(LARGE))
        # the thread of the other transfer ends after its answer
        wait_until(lambda: (count("in"), count("waiting")) == (TRANSFERS_OF_NETWORK, 1))
        of_one[0].close()
        application.await_event("up breaks")
        application.await_event("up begins")


def test_a_network_is_that_of_the_client_and_not_of_the_proxy() -> None:
    with transfers(proxies=1) as (application, port, stack, _):
        for number in range(TRANSFERS_OF_NETWORK + 1):
            connection = stack.enter_context(connect(port))
            connection.sendall(head(LARGE, "/Page/files", f"X-Forwarded-For: 192.0.2.1, 192.0.2.{number}"))
        application.await_event("up begins", TRANSFERS_OF_NETWORK + 1)


def test_the_first_read_of_a_large_body_makes_the_request_a_transfer() -> None:
    threads: list[str] = []

    def reading(environ: Any, start_response: Any) -> list[bytes]:
        threads.append(threading.current_thread().name)
        size = len(environ["wsgi.input"].read())
        start_response("200 OK", [("Content-Length", "7")])
        return [b"%7d" % size]

    with serving(reading, max_text_bytes=1) as (_, port, _thread), connect(port) as connection:
        upload(connection, LARGE)
        assert answer(connection).endswith(b"%7d" % LARGE)
    assert threads == ["quick-0", "transfers-0"]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server cuts off a client that waits for one check."""
    monkeypatch.setattr("wikka_port.http_channel.TRANSFER_STALLED_S", 0.0)
    monkeypatch.setattr("wikka_port.wsgi_worker._CHECK_S", 0.2)
    monkeypatch.setattr("wikka_port.wsgi_worker._POLL_S", 0.02)


@pytest.mark.usefixtures("hasty")
def test_a_client_that_moves_nothing_is_cut_off() -> None:
    with transfers() as (application, port, stack, _):
        up = stack.enter_context(connect(port))
        up.sendall(head(LARGE) + b"begin")
        down = stack.enter_context(connect_from(port, 2, 4_096))
        ask(down, f"/down?bytes={20 * LARGE}")
        ends = {application.events.get(timeout=20) for _ in range(4)}
        assert {"up breaks", "down breaks"} <= ends
        with pytest.raises(ConnectionError):
            send_all(up, 20 * LARGE)


@pytest.mark.usefixtures("hasty")
def test_a_client_is_not_cut_off_while_the_wiki_works(monkeypatch: pytest.MonkeyPatch) -> None:
    with transfers() as (application, port, stack, _):
        application.may_read.clear()
        connection = stack.enter_context(connect(port))
        connection.sendall(head(LARGE))
        application.await_event("up begins")
        other = stack.enter_context(connect_from(port, 2))
        other.sendall(
            b"POST /Page/files HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\nExpect: 100-continue\r\n\r\n"
        )
        application.await_event("up begins")
        stalled = stack.enter_context(connect(port))  # is cut off, so checks were made
        ask(stalled, f"/down?bytes={20 * LARGE}")
        application.await_event("down breaks")
        monkeypatch.setattr("wikka_port.http_channel.TRANSFER_STALLED_S", 60.0)
        application.may_read.set()
        send_all(connection, LARGE)
        assert answer(connection).decode().endswith(digest_of(LARGE))


# --- cut and lying clients ----------------------------------------------------------------------------


def test_a_cut_connection_ends_its_transfer() -> None:
    with transfers() as (application, port, stack, count):
        for _ in range(2 * TRANSFERS_AT_ONCE):
            with connect(port) as up:
                up.sendall(head(LARGE) + b"x" * 100_000)
                application.await_event("up begins")
            application.await_event("up breaks")
            with connect_from(port, 1, 4_096) as down:
                ask(down, f"/down?bytes={20 * LARGE}")
                application.await_event("down begins")
            application.await_event("down breaks")
        wait_until(lambda: count("in") + count("out") + count("waiting") == 0)
        last = stack.enter_context(connect(port))
        upload(last, LARGE)
        assert answer(last).decode().endswith(digest_of(LARGE))


def test_a_body_that_is_longer_than_it_says_is_no_part_of_the_upload() -> None:
    with transfers() as (_, port, stack, _count):
        connection = stack.enter_context(connect(port))
        upload(connection, LARGE)
        connection.sendall(b"and more\r\n\r\n")
        answers = read_all(connection)
        assert digest_of(LARGE).encode() in answers
        assert answers.count(b"HTTP/1.") == 2
        assert b"400 Bad Request" in answers


def test_headers_that_arrive_byte_by_byte_hold_no_thread() -> None:
    with transfers() as (application, port, stack, count):
        connection = stack.enter_context(connect(port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in head(LARGE)[:-1]:
            connection.sendall(bytes([byte]))
        page = stack.enter_context(connect(port))
        ask(page, "/page")
        assert answer(page).endswith(b"page /page")
        assert count("in") == count("waiting") == 0
        connection.sendall(b"\n" + b"".join(content(LARGE)))
        assert answer(connection).decode().endswith(digest_of(LARGE))
        application.await_event("up ends")


# --- one connection, several requests -----------------------------------------------------------------


def test_a_connection_serves_on_after_a_whole_body() -> None:
    with transfers() as (_, port, stack, count):
        connection = stack.enter_context(connect(port))
        for size in (LARGE, SMALL + 1, LARGE + 1):
            upload(connection, size)
            assert answer(connection).decode().endswith(digest_of(size))
            ask(connection, "/page")
            assert answer(connection).endswith(b"page /page")
        ask(connection, f"/down?bytes={LARGE}")
        assert received(connection) == LARGE
        ask(connection, "/page")
        assert answer(connection).endswith(b"page /page")
        wait_until(lambda: count("in") + count("out") + count("waiting") == 0)


def test_a_request_right_behind_a_body_is_answered_after_it() -> None:
    with transfers() as (_, port, stack, _count):
        connection = stack.enter_context(connect(port))
        last = b"GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        connection.sendall(head(SMALL + 1) + b"".join(content(SMALL + 1)) + last)
        answers = read_all(connection)
        assert answers.index(digest_of(SMALL + 1).encode()) < answers.index(b"page /next")


def test_bytes_of_transfers_are_counted() -> None:
    application = Transfers()
    with serving(application, max_text_bytes=1) as (worker, port, _), connect(port) as connection:
        upload(connection, LARGE)
        answer(connection)
        ask(connection, f"/down?bytes={2 * LARGE}")
        received(connection)
        counters = worker.server.settings.counters
        assert LARGE - SMALL <= counters.number(TRANSFER_BYTES, "in") <= LARGE
        wait_until(lambda: counters.number(TRANSFER_BYTES, "out") >= 2 * LARGE)  # counted behind the call that sends
        assert counters.number(TRANSFER_BYTES, "out") <= 2 * LARGE + 2_000


# --- answers before the body is read ------------------------------------------------------------------


def test_an_upload_that_waits_for_continue_is_refused_without_its_body() -> None:
    with transfers() as (_, port, stack, _count):
        connection = stack.enter_context(connect(port))
        connection.sendall(head(LARGE, "/Refused/files", "Expect: 100-continue"))
        refused = read_all(connection)
        assert refused.startswith(b"HTTP/1.1 403")
        assert b"connection: close" in refused.lower()
        assert b"100 Continue" not in refused


def test_continue_is_sent_when_the_body_is_read() -> None:
    with transfers() as (application, port, stack, _):
        application.may_read.clear()
        connection = stack.enter_context(connect(port))
        connection.sendall(head(LARGE, "/Page/files", "Expect: 100-continue"))
        application.await_event("up begins")
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)
        connection.settimeout(20)
        application.may_read.set()
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        send_all(connection, LARGE)
        assert answer(connection).decode().endswith(digest_of(LARGE))


def test_a_refused_body_is_read_up_to_the_bound_and_the_connection_serves_on() -> None:
    with transfers() as (_, port, stack, _count):
        connection = stack.enter_context(connect(port))
        connection.sendall(head(UNREAD, "/Refused/files") + b"x" * UNREAD)
        assert answer(connection).startswith(b"HTTP/1.1 403")
        ask(connection, "/page")
        assert answer(connection).endswith(b"page /page")


def test_a_longer_refused_body_is_cut_behind_the_bound() -> None:
    with transfers() as (_, port, stack, _count):
        connection = stack.enter_context(connect(port))
        connection.sendall(head(50 * LARGE, "/Refused/files"))
        refused = read_all(connection)
        assert refused.startswith(b"HTTP/1.1 403")
        assert b"connection: close" in refused.lower()
        assert length_of(refused) == 7
        connection.sendall(b"x" * UNREAD)  # would fail if the connection were closed
        with pytest.raises(ConnectionError):
            send_all(connection, 50 * LARGE)


def test_a_client_that_has_read_its_refusal_ends_the_connection() -> None:
    application = Transfers()
    with serving(application, max_text_bytes=1) as (worker, port, _):
        with connect(port) as connection:
            connection.sendall(head(50 * LARGE, "/Refused/files"))
            read_all(connection)
            (channel,) = worker.server.active_channels.values()
            wait_until(lambda: not channel.writable())  # else the loop would spin
        wait_until(lambda: not worker.server.active_channels)


@pytest.mark.parametrize(("path", "status"), [("/Page/files", b"411"), ("/other", b"413")])
def test_a_large_body_without_a_length_is_refused(path: str, status: bytes) -> None:
    with transfers() as (_, port, stack, _count):
        connection = stack.enter_context(connect(port))
        start = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        connection.sendall(start + b"5\r\nhello\r\n0\r\n\r\n")
        assert answer(connection).decode().endswith("5 5d41402abc4b2a76b9719d911017c592")
        connection.sendall(start + b"%x\r\n" % (SMALL + 1) + b"x" * (SMALL + 1))
        refused = read_all(connection)
        assert refused.startswith(b"HTTP/1.1 " + status)


# --- the end of the server ----------------------------------------------------------------------------


def test_transfers_break_off_when_draining_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikka_port.wsgi_worker.DRAIN_S", 0.3)
    application = Transfers()
    with (
        serving(application, max_text_bytes=1) as (worker, port, thread),
        connect(port) as up,
        connect_from(port, 2, 4_096) as down,
    ):
        up.sendall(head(LARGE) + b"begin")
        ask(down, f"/down?bytes={20 * LARGE}")
        begun = {application.events.get(timeout=20) for _ in range(2)}
        assert begun == {"up begins", "down begins"}
        worker.stop()
        assert {application.events.get(timeout=20) for _ in range(2)} == {"up breaks", "down breaks"}
        thread.join(5)
        assert not thread.is_alive()


def test_a_transfer_that_ends_while_draining_is_whole() -> None:
    application = Transfers()
    application.may_read.clear()
    with serving(application, max_text_bytes=1) as (worker, port, thread), connect(port) as up:
        up.sendall(head(LARGE))
        application.await_event("up begins")
        worker.stop()
        application.may_read.set()
        send_all(up, LARGE)
        assert answer(up).decode().endswith(digest_of(LARGE))
        thread.join(5)
        assert not thread.is_alive()

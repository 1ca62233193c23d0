"""The serving process: many at once, slow ones beside quick ones, and an end that loses nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from wikka_port.config import WikiConfig
from wikka_port.secret_file import secret_from
from wikka_port.serve import PortTaken, listen
from wikka_port.wsgi_worker import BACKLOG, Worker, make_worker

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def serving(application: Any, threads: int = 2) -> Iterator[tuple[Worker, int, threading.Thread]]:
    listening = listen("127.0.0.1", 0, 1)[0]
    listening.listen(BACKLOG)
    worker = make_worker(application, listening, WikiConfig(threads=threads))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker, listening.getsockname()[1], thread
    finally:
        worker.stop()
        thread.join(15)
        assert not thread.is_alive()


def hello(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def test_half_sent_requests_do_not_keep_others_waiting() -> None:
    with serving(hello) as (_, port, _):
        slow = [connect(port) for _ in range(20)]
        for connection in slow:
            connection.sendall(REQUEST[:20])
        with connect(port) as quick:
            quick.sendall(REQUEST)
            assert quick.recv(1000).startswith(b"HTTP/1.1 200")
        for connection in slow:
            connection.sendall(REQUEST[20:])
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            connection.close()


def test_stopping_answers_what_is_under_way_and_waits_for_nothing_else() -> None:
    began, go_on = threading.Event(), threading.Event()
    size = 3_000_000

    def slow(environ: Any, start_response: Any) -> list[bytes]:
        began.set()
        assert go_on.wait(10)
        start_response("200 OK", [("Content-Length", str(size))])
        return [b"x" * size]

    with serving(slow) as (worker, port, thread), connect(port) as idle, connect(port) as busy, connect(port) as queued:
        busy.sendall(REQUEST)
        assert began.wait(10)
        queued.sendall(REQUEST)
        worker.stop()
        assert idle.recv(10) == b"", "a connection without a request is closed at once"
        with pytest.raises(ConnectionError):
            connect(port).close()
        go_on.set()
        for connection in (busy, queued):
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 200")
            assert len(answer) > size
        thread.join(5)
        assert not thread.is_alive()


def test_a_body_over_the_bound_is_refused_before_it_is_sent() -> None:
    with serving(hello) as (_, port, _), connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_port_in_use_is_said() -> None:
    first = listen("127.0.0.1", 0, 2)
    first[0].listen()
    port = first[0].getsockname()[1]
    with pytest.raises(PortTaken, match=f"cannot use port {port}"):
        listen("127.0.0.1", port, 2)
    for opened in first:
        opened.close()
    with pytest.raises(PortTaken):
        listen("no such host.invalid", 1, 1)


def test_the_secret_is_made_once_and_read_again(tmp_path: Any) -> None:
    path = tmp_path / "secret"
    secret = secret_from(path)
    assert len(secret) == 32
    assert secret_from(path) == secret
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(b"short")
    with pytest.raises(OSError, match="no file of a secret"):
        secret_from(path)

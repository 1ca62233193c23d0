"""A WSGI application behind the wiki's server, on a port of its own in a thread, and a raw client of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wikka_port.config import WikiConfig
from wikka_port.counters import Counters
from wikka_port.serve import listen
from wikka_port.wsgi_worker import BACKLOG, Worker, make_worker

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def serving(application: Any, threads: int = 2, **config: Any) -> Iterator[tuple[Worker, int, threading.Thread]]:
    listening = listen("127.0.0.1", 0, 1)[0]
    listening.listen(BACKLOG)
    worker = make_worker(application, listening, WikiConfig(threads=threads, **config), Counters.of_process())
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker, listening.getsockname()[1], thread
    finally:
        worker.stop()
        thread.join(15)
        assert not thread.is_alive()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def ask(connection: socket.socket, path: str, body: str = "") -> None:
    method = "POST" if body else "GET"
    connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def answer(connection: socket.socket) -> bytes:
    """The whole of one answer."""
    data = b""
    while b"\r\n\r\n" not in data or len(data) < data.index(b"\r\n\r\n") + 4 + length_of(data):
        part = connection.recv(65_536)
        assert part, data
        data += part
    return data


def length_of(data: bytes) -> int:
    return int(data.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])

"""The processor time of a get over HTTP, beside the same get over a plain socket, by turns.

    python -m tests.measure.http_costs [--rounds 7] [--gets 20000] [--connections 64]

A client sends the same message on all connections, then reads all replies, so that the server's loop serves many
requests in each iteration.  The time is the store's, in microseconds a get; ``more`` is the median of the rounds'
differences, of which GOAL_US are allowed.  Compile first (``make compile``).
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from gauge.machine import machine, now
from tests.support.standalone_store import StoreProcess

GOAL_US: Final = 40.0
VALUE: Final = b"v" * 100
HEADERS: Final = (  # what a client of the apache library sends
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:9090\r\nContent-Type: application/x-thrift\r\nAccept: application/x-thrift\r\n"
    b"User-Agent: Java/THttpClient\r\nContent-Length: %d\r\nConnection: keep-alive\r\n\r\n"
)
_TICKS_S: Final = os.sysconf("SC_CLK_TCK")


def text(field: int, value: bytes) -> bytes:
    return struct.pack(">bhi", 11, field, len(value)) + value


GET: Final = b"\x80\x01\x00\x01\x00\x00\x00\x03get\x00\x00\x00\x01" + (
    text(1, b"t") + text(2, b"row") + text(3, b"a:1") + b"\x0d\x00\x04\x0b\x0b\x00\x00\x00\x00\x00"
)
REQUESTS: Final = {
    "socket": GET,
    "HTTP": HEADERS % len(GET) + GET,
}


def used_s(pid: int) -> float:
    """Return the processor time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def reply_bytes(connection: socket.socket, request: bytes) -> int:
    """Return the length of the reply to ``request``, which has the value; later replies are as long."""
    connection.sendall(request)
    whole = b""
    while VALUE not in whole:
        whole += connection.recv(65_536)
    whole += connection.recv(65_536, socket.MSG_DONTWAIT) if not whole.endswith(b"\x00") else b""
    return len(whole)


def received(connection: socket.socket, size_bytes: int) -> None:
    while size_bytes:
        data = connection.recv(size_bytes)
        assert data, "the store closed the connection"
        size_bytes -= len(data)


def microseconds_per_get(pid: int, connections: list[socket.socket], request: bytes, gets: int) -> float:
    sizes = [reply_bytes(one, request) for one in connections]
    turns = gets // len(connections)
    before_s = used_s(pid)
    for _ in range(turns):
        for one in connections:
            one.sendall(request)
        for one, size_bytes in zip(connections, sizes, strict=True):
            received(one, size_bytes)
    return (used_s(pid) - before_s) / (turns * len(connections)) * 1e6


def measured(rounds: int, measure: Callable[[str], float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in REQUESTS}
    for number in range(-1, rounds):  # the first round warms up
        for name in sorted(REQUESTS, reverse=number % 2 == 0):
            us = measure(name)
            if number >= 0:
                found[name].append(us)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="of both kinds")
    parser.add_argument("--gets", type=int, default=20_000, help="in a round, of each kind")
    parser.add_argument("--connections", type=int, default=64, help="of each kind")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="columnar-http-")))
        store = stack.enter_context(StoreProcess(folder / "data", "--log-level", "error", is_forked=False))
        client = store.connection()
        client.create_table("t", {"a": {}})
        client.table("t").put(b"row", {b"a:1": VALUE})
        client.close()
        kinds = {
            name: [
                stack.enter_context(socket.create_connection(("127.0.0.1", store.port)))
                for _ in range(given.connections)
            ]
            for name in REQUESTS
        }
        found = measured(
            given.rounds, lambda name: microseconds_per_get(store.pid, kinds[name], REQUESTS[name], given.gets)
        )
    print(f"{now()}, {machine()}")
    for name, values in found.items():
        print(f"{name:6}  {median(values):6.2f} us a get  ({min(values):.2f} to {max(values):.2f})")
    more = median(one - other for one, other in zip(found["HTTP"], found["socket"], strict=True))
    print(f"more {more:.2f} us; at most {GOAL_US:g}: {'met' if more <= GOAL_US else 'missed'}")


if __name__ == "__main__":
    main()

"""Well-behaved clients, in a process of their own: how long does each request take?

Three connections take turns: a get of one cell, a durable put of 100 bytes, a scan of 50 rows from its opening to
its close.  Between two requests lies a pause, so that they are no load themselves.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from columnar.bench import calls
from columnar.wire import idl

TABLE: Final = b"small"
ROWS: Final = 5_000
PAUSE_S: Final = 0.001
SILENCE_S: Final = 60.0
SCANNED: Final = 50
Latencies = dict[str, list[float]]  # seconds, by kind of request


def key(number: int) -> bytes:
    return b"row%06d" % (number % ROWS)


class Line:
    """One connection of the framed binary protocol."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=SILENCE_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, frame: bytes) -> bytes:
        """The reply, its frame's head before it."""
        self._sock.sendall(frame)
        reply = bytearray()
        while len(reply) < 4 or len(reply) < 4 + int.from_bytes(reply[:4], "big"):
            data = self._sock.recv(1 << 20)
            if not data:
                raise EOFError("the store closed a well-behaved client's connection")
            reply += data
        return bytes(reply)

    def good(self, frame: bytes, begin: bytes) -> bytes:
        reply = self.ask(frame)
        if not reply.startswith(begin, 4):
            raise calls.BadReply(reply)
        return reply

    def close(self) -> None:
        self._sock.close()


def get(line: Line, rng: random.Random) -> None:
    frame = calls.call("get", TABLE, key(rng.randrange(ROWS)), b"a:x")
    line.good(frame, calls.good_begin("get", calls.list_of(1)))


def put(line: Line, rng: random.Random) -> None:
    frame = calls.call("mutateRow", TABLE, key(rng.randrange(ROWS)), calls.puts([(b"a:x", rng.randbytes(100))]))
    line.good(frame, calls.good_begin("mutateRow", calls.VOID_SUCCESS))


def scan(line: Line, rng: random.Random) -> None:
    start = key(rng.randrange(ROWS - SCANNED))
    opened = line.ask(calls.call("scannerOpenWithScan", TABLE, idl.hbase.TScan(startRow=start)))
    scanner = calls.number_at(opened, calls.good_begin("scannerOpenWithScan", calls.I32_SUCCESS))
    begin = calls.good_begin("scannerGetList", calls.list_of(SCANNED))
    line.good(calls.call("scannerGetList", scanner, SCANNED), begin)
    line.good(calls.call("scannerClose", scanner), calls.good_begin("scannerClose", calls.VOID_SUCCESS))


KINDS: Final[dict[str, Callable[[Line, random.Random], None]]] = {"get": get, "put": put, "scan": scan}


def measure(port: int, seconds: float, seed: int) -> Latencies:
    """Runs in a process of its own."""
    os.nice(-5) if os.geteuid() == 0 else None  # else the attackers' share of the machine is measured too
    rng = random.Random(seed)
    lines = {kind: Line(port) for kind in KINDS}
    taken: Latencies = {kind: [] for kind in KINDS}
    pause, ends = threading.Event(), time.monotonic() + seconds
    while time.monotonic() < ends:
        for kind, request in KINDS.items():
            begun = time.perf_counter()
            request(lines[kind], rng)
            taken[kind].append(time.perf_counter() - begun)
            pause.wait(PAUSE_S)
    for line in lines.values():
        line.close()
    return taken


def quantile_ms(latencies: list[float], share: float) -> float:
    ordered = sorted(latencies)
    return 1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

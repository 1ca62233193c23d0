"""Clients that vanish at random moments, each within a call of its own; another writes what they would overwrite.

    python -m tests.overload.vanishing --times 1000 --seed 7

A client sends a whole call or a part of it, waits a moment or not at all, and closes its socket, now and then with a
reset.  Then the witness writes a newer value to the same row and reads it.  However late the server comes to the
client's call, the witness' value must stand at the end; and nothing may go on for clients that have gone.
"""

from __future__ import annotations

import argparse
import random
import socket
import struct
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from columnar.client import Connection
from columnar.wire import idl
from tests.support.store_thread import StoreThread
from tests.support.toy_wire import call, framed, text

H = idl.hbase
WIDE_ROWS = 3_000  # that scans walk: each costs many steps
SETTLE_S = 20.0
LOOK_S = 0.01


@dataclass
class Report:
    seed: int
    vanished: int = 0
    overwritten: list[str] = field(default_factory=list)
    left: int = 0  # calls that still gather, and connections, once all have gone
    settled_s: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)


def _mutations(value: bytes) -> bytes:
    body = b"\x02\x00\x01\x00" + text(2, b"f:q") + text(3, value) + b"\x00"
    return struct.pack(">BI", 12, 1) + body


def _batch(rows: list[bytes], value: bytes) -> bytes:
    listed = b"".join(text(1, row) + b"\x0f\x00\x02" + _mutations(value) + b"\x00" for row in rows)
    return text(1, b"t") + struct.pack(">BHBI", 15, 2, 12, len(rows)) + listed + b"\x0d\x00\x03\x0b\x0b\x00\x00\x00\x00"


def _put(row: bytes, value: bytes) -> bytes:
    args = text(1, b"t") + text(2, row) + b"\x0f\x00\x03" + _mutations(value) + b"\x0d\x00\x04\x0b\x0b\x00\x00\x00\x00"
    return framed(call(b"mutateRow", 1, args))


def _load(row: bytes, value: bytes, rows: int, size: int) -> bytes:
    """Rows of a batch, ``row`` the last."""
    others = [b"load%06d" % number for number in range(rows)]
    return framed(call(b"mutateRows", 1, _batch([*others, row], value + b"." * size)))


def _scan(scanner_id: int) -> bytes:
    return framed(call(b"scannerGetList", 2, struct.pack(">BHiBHi", 8, 1, scanner_id, 8, 2, WIDE_ROWS)))


class _Gone:
    """One client that vanishes."""

    def __init__(self, port: int, connection: Connection, rng: random.Random, row: bytes, value: bytes) -> None:
        self._port = port
        self._connection = connection
        self._rng = rng
        self.row = row
        self._value = value

    def vanish(self) -> str:
        rng = self._rng
        kind = rng.choice(["put", "puts", "load", "large load", "scan", "put behind scan"])
        data = self._bytes_of(kind)
        if rng.random() < 0.25:
            data = data[: rng.randrange(1, len(data))]
        sock = socket.create_connection(("127.0.0.1", self._port), timeout=20)
        with suppress(ConnectionError):
            sock.sendall(data)
        if rng.random() < 0.5:
            threading.Event().wait(rng.random() * 0.02)
        if rng.random() < 0.3:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        return kind

    def _bytes_of(self, kind: str) -> bytes:
        put = _put(self.row, self._value)
        if kind == "put":
            return put
        if kind == "puts":
            return put * self._rng.randrange(2, 40)
        if kind == "load":
            return _load(self.row, self._value, self._rng.randrange(2_000), 10)
        if kind == "large load":
            return _load(self.row, self._value, self._rng.randrange(2_000, 12_000), 300)
        scan = _scan(self._scanner())
        return scan if kind == "scan" else scan + put

    def _scanner(self) -> int:
        """It is expensive: its filter keeps no row."""
        scan = H.TScan(filterString=b"ValueFilter(=, 'substring:nowhere')")
        opened: int = self._connection.client.scannerOpenWithScan(b"wide", scan, {})
        return opened


def vanish(folder: Path, seed: int, times: int) -> Report:
    rng, report = random.Random(seed), Report(seed)
    with StoreThread(folder / "data") as store:
        connection = store.connection()
        connection.create_table("t", {"f": {}})
        connection.create_table("wide", {"f": {}})
        with connection.table("wide").batch(batch_size=500) as batch:
            for number in range(WIDE_ROWS):
                batch.put(b"%06d" % number, {b"f:%d" % column: b"x" * 20 for column in range(5)})
        table, expected = connection.table("t"), {}
        for number in range(times):
            row = b"row%03d" % rng.randrange(40)
            kind = _Gone(store.port, connection, rng, row, b"old%d" % number).vanish()
            report.kinds[kind] = report.kinds.get(kind, 0) + 1
            expected[row] = b"new%d" % number
            table.put(row, {b"f:q": expected[row]})
            _compare(report, number, row, expected[row], table.row(row)[b"f:q"])
            report.vanished += 1
        begun = time.monotonic()
        _settle(store, report)
        report.settled_s = time.monotonic() - begun
        for row, value in expected.items():
            _compare(report, times, row, value, table.row(row)[b"f:q"])
        connection.close()
    return report


def _compare(report: Report, number: int, row: bytes, wanted: bytes, found: Any) -> None:
    if found != wanted:
        report.overwritten.append(f"after {number}: {row!r} is {bytes(found)[:40]!r}, not {wanted!r}")


def _settle(store: StoreThread, report: Report) -> None:
    """Wait until only the witness is there."""
    inside = store.inside
    for _ in range(int(SETTLE_S / LOOK_S)):
        report.left = inside.serving.server.reply_memory.calls + inside.ports.wire.connections - 1
        if report.left == 0:
            return
        threading.Event().wait(LOOK_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = vanish(Path(folder), arguments.seed, arguments.times)
    print(f"{report.vanished} vanished {report.kinds}, settled in {report.settled_s:.2f} s, left {report.left}")
    for line in report.overwritten:
        print(line)
    return 1 if report.overwritten or report.left else 0


if __name__ == "__main__":
    sys.exit(main())

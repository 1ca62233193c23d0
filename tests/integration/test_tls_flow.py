"""Behind TLS the bounds of a connection hold as they do without: nothing unsent is counted nowhere."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.client import ClientTls
from columnar.limits import CONNECTION_OUTPUT_BYTES, MIB
from tests.support.certificates import Authority
from tests.support.serving import Serving

ROW_BYTES = 2 * MIB
ASKED = 100  # times: 200 MiB


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[Serving, ClientTls]]:
    ours = Authority(tmp_path, "ours")
    pair = ours.sign("store")
    made = Serving(tmp_path / "data", tls_cert=pair.cert, tls_key=pair.key).start()
    try:
        yield made, ours.client()
    finally:
        made.stop()


def ask_for(row: bytes) -> bytes:
    text = b"".join(struct.pack(">BHI", 11, n, len(v)) + v for n, v in ((1, b"t"), (2, row), (3, b"a:x")))
    return struct.pack(">HBBI", 0x8001, 0, 1, 3) + b"get" + struct.pack(">i", 1) + text + b"\0"


def test_a_client_that_never_reads_is_held_in_bounds(serving: tuple[Serving, ClientTls]) -> None:
    running, tls = serving
    connection = running.connect(tls=tls)
    connection.create_table("t", {"a": {}})
    connection.table("t").put(b"large", {b"a:x": b"v" * ROW_BYTES})
    wire = running.store.ports.wire
    with socket.create_connection(("127.0.0.1", running.store.port), timeout=20) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        with tls.context().wrap_socket(raw, server_hostname="127.0.0.1") as sock:
            sock.sendall(ask_for(b"large") * ASKED)
            for _ in range(20):  # whoever asks is answered, and the other one is served as far as it may be
                assert connection.table("t").row(b"none") == {}
            unsent = running.do(lambda: wire.output_bytes)
            assert 0 < unsent <= CONNECTION_OUTPUT_BYTES + 2 * ROW_BYTES
            got = 0
            while got < ASKED * ROW_BYTES:  # and goes on once it reads
                got += len(sock.recv(MIB))
    assert connection.table("t").row(b"none") == {}
    assert running.do(lambda: wire.output_bytes) == 0
    assert running.do(lambda: len(running.store.ports.tls.handshakes)) == 0

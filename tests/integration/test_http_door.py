"""Thrift over HTTP on the store's port: a stock client, and what raw sockets may do to it."""

from __future__ import annotations

import http.client
import logging
import socket
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest
from thriftpy2.http import make_client
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.thrift import TApplicationException

from columnar.wire import idl
from tests.support.store_thread import StoreThread

H = idl.hbase


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("http") / "data") as running:
        connection = running.connection()
        connection.create_table("t", {"f": {}})
        connection.close()
        yield running


def client(store: StoreThread, compact: bool = False) -> Any:
    factory = TCompactProtocolFactory() if compact else TBinaryProtocolFactory()
    return make_client(idl.SERVICE, "127.0.0.1", store.port, proto_factory=factory, timeout=20_000)


def call(name: bytes, args: bytes, seqid: int = 1) -> bytes:
    return b"\x80\x01\x00\x01" + struct.pack(">I", len(name)) + name + struct.pack(">i", seqid) + args


TABLES = call(b"getTableNames", b"\x00")


def connected(store: StoreThread) -> socket.socket:
    return socket.create_connection(("127.0.0.1", store.port), timeout=20)


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST /any HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def response(stream: BinaryIO) -> bytes:
    """The body of the next response, which must be a 200."""
    assert stream.readline().startswith(b"HTTP/1.1 200 ")
    headers = dict(iter(lambda: stream.readline().strip().lower().partition(b": ")[::2], (b"", b"")))
    return stream.read(int(headers[b"content-length"]))


def test_the_port_after_a_get(store: StoreThread) -> None:
    """What a browser or a health check hears."""
    web = http.client.HTTPConnection("127.0.0.1", store.port, timeout=20)
    web.request("GET", "/")
    answer = web.getresponse()
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert b"Thrift" in answer.read()
    web.close()


@pytest.mark.parametrize("compact", [False, True])
def test_a_stock_client(store: StoreThread, compact: bool) -> None:
    thrift = client(store, compact)
    row = b"row%d" % compact
    thrift.mutateRow(b"t", row, [H.Mutation(False, b"f:q", b"value", True)], {})
    (cell,) = thrift.get(b"t", row, b"f:q", {})
    assert cell.value == b"value"
    with pytest.raises(H.IOError, match="TableNotFoundException: none"):
        thrift.get(b"none", row, b"f:q", {})
    (cell,) = thrift.get(b"t", row, b"f:q", {})
    assert cell.value == b"value"
    thrift.close()


def test_a_large_message_and_a_large_reply(store: StoreThread) -> None:
    thrift = client(store)
    value = bytes(range(256)) * 20_000
    thrift.mutateRow(b"t", b"large", [H.Mutation(False, b"f:q", value, True)], {})
    assert thrift.get(b"t", b"large", b"f:q", {})[0].value == value
    thrift.close()


def test_an_unknown_method_is_an_exception_within_a_200(store: StoreThread) -> None:
    web = http.client.HTTPConnection("127.0.0.1", store.port, timeout=20)
    for _ in range(2):  # on one connection
        web.request("POST", "/", call(b"noSuchMethod", b"\x00"))
        answer = web.getresponse()
        body = answer.read()
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/x-thrift"
        assert body.startswith(b"\x80\x01\x00\x03")
        assert TApplicationException.UNKNOWN_METHOD.to_bytes(4, "big") in body
    web.close()


def test_pipelined_requests_of_both_protocols_and_forms_in_order(store: StoreThread) -> None:
    compact = b"\x82\x21\x07\x0dgetTableNames\x00"
    chunked = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
        b"1\r\n%c\r\n" % byte for byte in TABLES
    )
    increment = call(
        b"atomicIncrement",
        b"\x0b\x00\x01\x00\x00\x00\x01t\x0b\x00\x02\x00\x00\x00\x01c\x0b\x00\x03\x00\x00\x00\x03f:n"
        b"\x0a\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00",
    )
    with connected(store) as sock:
        sock.sendall(post(increment) + post(compact) + chunked + b"0\r\n\r\n" + post(increment) + post(TABLES))
        with sock.makefile("rb") as stream:
            answers = [response(stream) for _ in range(5)]
    counters = [int.from_bytes(answers[n][-9:-1], "big") for n in (0, 3)]
    assert counters == [1, 2]
    assert answers[1].startswith(b"\x82\x41\x07\x0dgetTableNames")
    assert answers[2] == answers[4]


def test_a_client_that_asks_whether_to_go_on(store: StoreThread) -> None:
    with connected(store) as sock:
        sock.sendall(post(TABLES, "Expect: 100-continue").removesuffix(TABLES))
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(TABLES)
        assert sock.recv(1_000).startswith(b"HTTP/1.1 200 ")


def test_http_1_0_is_answered_and_closed(store: StoreThread) -> None:
    with connected(store) as sock:
        sock.sendall(b"POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(TABLES) + TABLES)
        whole = b""
        while data := sock.recv(10_000):
            whole += data
    assert whole.startswith(b"HTTP/1.1 200 ")
    assert b"getTableNames" in whole


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, b"Thrift message"),
        (b"{}", 400, b"Thrift message"),
        (b"<html><body>hello</body></html>", 400, b"Thrift message"),
        (len(TABLES).to_bytes(4, "big") + TABLES, 400, b"unframed"),
        (TABLES[:10], 400, b"name of its method"),
        (TABLES[:-1], 200, b"malformed arguments"),
        (TABLES + b"x", 200, b"1 bytes behind the arguments"),
    ],
)
def test_a_body_that_is_no_message(store: StoreThread, body: bytes, status: int, said: bytes) -> None:
    web = http.client.HTTPConnection("127.0.0.1", store.port, timeout=20)
    web.request("POST", "/", body)
    answer = web.getresponse()
    assert (answer.status, answer.headers["Connection"]) == (status, "close")
    assert said in answer.read()
    web.close()


def test_a_length_that_lies(store: StoreThread, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "columnar.wire"), connected(store) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\nabc")
        assert sock.recv(1_000).startswith(b"HTTP/1.1 413 ")
    assert "the limit is" in caplog.text


def test_what_is_half_sent_is_counted_and_forgotten(store: StoreThread) -> None:
    wire = store.store.ports.wire  # the server's own account
    before = wire.input_bytes
    with connected(store) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n" + bytes(100_000))
        sock.settimeout(0.01)
        for _ in range(500):
            if wire.input_bytes >= before + 100_000:
                break
            with pytest.raises(TimeoutError):
                sock.recv(1)
        assert wire.input_bytes == before + 100_000
    thrift = client(store)
    for _ in range(100):
        thrift.getTableNames()
        if wire.input_bytes == before:
            break
    thrift.close()
    assert wire.input_bytes == before

"""The bytes of hot requests and replies in both protocols, as recorded in wire_bytes.txt.

Round trips cannot see an encoder and a decoder that change together.  COLUMNAR_REWRITE=1
records them again; look at the difference before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.wire import idl
from columnar.wire.codec import ServiceCodec, application_error
from columnar.wire.codec_replies import RowList
from columnar.wire.detect import Protocol
from columnar.wire.framing import RequestStream

GOLDEN = Path(__file__).with_name("wire_bytes.txt")
CODEC = ServiceCodec(idl.SERVICE)
H = idl.hbase

PUT = H.Mutation(False, b"f:q", b"value", True)
DELETE = H.Mutation(True, b"f", None, False)
COLUMNS = [(b"f:a", b"1", 1), (b"f:b", b"", 2**40)]
REQUESTS: dict[str, list[Any]] = {
    "get": [b"t", b"row", b"f:q", {}],
    "getRow": [b"t", b"row", {}],
    "getRowWithColumns": [b"t", b"row", [b"f", b"g:x"], {}],
    "mutateRow": [b"t", b"row", [PUT, DELETE], {b"_ttl": b"\x00" * 8}],
    "mutateRows": [b"t", [H.BatchMutation(b"r1", [PUT]), H.BatchMutation(b"r2", [DELETE, PUT])], {}],
    "atomicIncrement": [b"t", b"row", b"f:c", -1],
    "scannerOpenWithScan": [
        b"t",
        H.TScan(b"a", b"b", 9, [b"f"], 1000, b"KeyOnlyFilter()", None, True, False, None),
        {},
    ],
    "scannerGetList": [7, 1000],
}
REPLIES: dict[str, Any] = {
    "get": [(b"value", 1700000000000)],
    "getRow": RowList([(b"row", COLUMNS)]),
    "getRowWithColumns": RowList([]),
    "mutateRow": None,
    "mutateRows": None,
    "atomicIncrement": -1,
    "scannerOpenWithScan": 7,
    "scannerGetList": RowList([(b"r1", COLUMNS), (b"r2", [])], True),
}


def sent(protocol: Protocol, name: str, args: list[Any]) -> bytes:
    binary = protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer() if binary else TMemoryBuffer()
    writer = TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)
    writer.write_message_begin(name, 1, 258)
    writer.write_struct(getattr(idl.SERVICE, name + "_args")(*args))
    data: bytes = buffer.getvalue()
    return data


def current() -> dict[str, str]:
    found = {}
    for protocol in Protocol:
        for name, args in REQUESTS.items():
            found[f"{protocol.value} request {name}"] = sent(protocol, name, args).hex()
        for name, result in REPLIES.items():
            found[f"{protocol.value} reply {name}"] = CODEC.methods[name].reply(protocol, 258, result).hex()
        error = H.IOError("TableNotFoundException: t", False)
        found[f"{protocol.value} declared get"] = CODEC.methods["get"].declared_error(protocol, 258, error).hex()
        found[f"{protocol.value} unknown"] = application_error(b"frob", protocol, 258, 1, "Invalid method name").hex()
    return found


def recorded() -> dict[str, str]:
    lines = GOLDEN.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def test_bytes_are_as_recorded() -> None:
    now = current()
    if os.environ.get("COLUMNAR_REWRITE"):
        GOLDEN.write_text("".join(f"{name}: {data}\n" for name, data in now.items()))
    assert recorded() == now


@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize("name", list(REQUESTS))
def test_recorded_requests_are_understood(protocol: Protocol, name: str) -> None:
    stream = RequestStream(CODEC)
    stream.feed(bytes.fromhex(recorded()[f"{protocol.value} request {name}"]))
    request: Any = stream.next()
    assert (request.name, request.seqid, request.args) == (name.encode(), 258, REQUESTS[name])

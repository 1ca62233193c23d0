"""Hand-packed replies of the Thrift 2 service are, byte for byte, what thriftpy2 writes from structs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.wire import idl2
from columnar.wire.codec import ServiceCodec
from columnar.wire.codec_results import Result, Results
from columnar.wire.detect import Protocol

CODEC = ServiceCodec(idl2.SERVICE2)
H = idl2.hbase2

NAMES = st.binary(max_size=40).filter(lambda name: b":" not in name)
CELLS = st.lists(st.tuples(NAMES, st.binary(max_size=40), st.binary(max_size=200), st.integers(0, 2**63 - 1)))
RESULTS = st.lists(st.tuples(st.binary(min_size=1, max_size=200), CELLS, st.booleans()), max_size=20)


def packed(protocol: Protocol, method: str, success: Any) -> bytes:
    """As thriftpy2 writes it."""
    binary = protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer() if binary else TMemoryBuffer()
    writer = TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)
    writer.write_message_begin(method, 2, 7)
    writer.write_struct(getattr(idl2.SERVICE2, method + "_result")(success=success))
    data: bytes = buffer.getvalue()
    return data


def struct_of(row: bytes, cells: Any, partial: bool) -> Any:
    values = [H.TColumnValue(family, qualifier, value, stamp, None, 4) for family, qualifier, value, stamp in cells]
    return H.TResult(row if cells else None, values, False, partial)


def result_of(row: bytes, cells: Any, partial: bool) -> Result:
    return Result(row, [(family + b":" + name, value, stamp) for family, name, value, stamp in cells], partial)


@pytest.mark.parametrize("protocol", list(Protocol))
@settings(max_examples=80)
@given(RESULTS)
def test_lists(protocol: Protocol, rows: Any) -> None:
    reply = CODEC.methods["getScannerRows"].reply(protocol, 7, Results([result_of(*row) for row in rows]))
    assert reply == packed(protocol, "getScannerRows", [struct_of(*row) for row in rows])


@pytest.mark.parametrize("protocol", list(Protocol))
@settings(max_examples=80)
@given(st.binary(min_size=1), CELLS, st.booleans())
def test_single(protocol: Protocol, row: bytes, cells: Any, partial: bool) -> None:
    reply = CODEC.methods["get"].reply(protocol, 7, result_of(row, cells, partial))
    assert reply == packed(protocol, "get", struct_of(row, cells, partial))

"""Every value of the IDLs goes out byte for byte as thriftpy2 writes it, in both protocols."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.wire import idl, idl2
from columnar.wire.codec import ServiceCodec, application_error
from columnar.wire.codec_binary import BINARY, BOOL, BYTE, DOUBLE, I16, I32, I64, LIST, MAP, SET, STRING, spec_of_field
from columnar.wire.codec_structs import binary_field, compact_field
from columnar.wire.definitions import Enumeration, ServiceDefinition
from columnar.wire.detect import Protocol

SERVICES: list[ServiceDefinition] = [idl.SERVICE, idl2.SERVICE2]
# The first method of each type of answer: the bytes of an answer follow from its type alone.
SUCCESSES = {
    spec_of_field(signature.result[0]): (service, name)
    for service in SERVICES
    for name, signature in reversed(service.signatures.items())
    if 0 in signature.result
}
ERRORS = [idl.hbase.IOError, idl.hbase.IllegalArgument, idl.hbase.AlreadyExists, idl2.hbase2.TIOError]
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    BYTE: st.integers(-(2**7), 2**7 - 1),
    I16: st.integers(-(2**15), 2**15 - 1),
    I32: st.integers(-(2**31), 2**31 - 1),
    I64: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False),
    STRING: st.text(max_size=20),
    BINARY: st.binary(max_size=200),
}


@cache
def values(spec: Any, depth: int = 3) -> st.SearchStrategy[Any]:
    if isinstance(spec, int):
        return SCALARS[spec]
    kind, inner = spec
    if kind == LIST:
        return st.lists(values(inner, depth), max_size=20)
    if kind == MAP:
        return st.dictionaries(values(inner[0], depth), values(inner[1], depth), max_size=20)
    if isinstance(inner, type) and issubclass(inner, Enumeration):
        return SCALARS[I32]
    assert kind != SET
    fields = {
        field[1]: st.none() | values(spec_of_field(field), depth - 1) if depth else st.none()
        for field in inner.thrift_spec.values()
    }
    return st.fixed_dictionaries(fields).map(lambda given: inner(**given))


def by_thriftpy2(protocol: Protocol, of: Any) -> bytes:
    binary = protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer() if binary else TMemoryBuffer()
    (TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)).write_struct(of)
    data: bytes = buffer.getvalue()
    return data


def field(protocol: Protocol, number: int, spec: Any, value: Any) -> bytes:
    pack = binary_field if protocol is Protocol.BINARY else compact_field
    return pack(number, spec, value) + b"\x00"


@pytest.mark.parametrize(("service", "name"), SUCCESSES.values(), ids=[name for _, name in SUCCESSES.values()])
@settings(max_examples=30)
@given(st.data())
def test_what_methods_answer(service: ServiceDefinition, name: str, data: st.DataObject) -> None:
    spec = spec_of_field(service.signatures[name].result[0])
    value = data.draw(values(spec))
    answer = getattr(service, name + "_result")(success=value)
    for protocol in Protocol:
        assert field(protocol, 0, spec, value) == by_thriftpy2(protocol, answer), protocol


@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
@settings(max_examples=15)
@given(st.text(), st.none() | st.booleans())
def test_errors(error: Any, protocol: Protocol, message: str, can_retry: bool | None) -> None:
    service = idl2.SERVICE2 if error is idl2.hbase2.TIOError else idl.SERVICE
    method = ServiceCodec(service).methods["createTable"]
    made = error(message)
    if "canRetry" in vars(made):
        made.canRetry = can_retry
    name = next(field[1] for field in service.signatures["createTable"].result.values() if field[2] is error)
    expected = by_thriftpy2(protocol, service.createTable_result(**{name: made}))
    reply = method.declared_error(protocol, 5, made)
    assert reply.endswith(b"createTable" + (b"\0\0\0\5" if protocol is Protocol.BINARY else b"") + expected)


def test_an_application_error_is_text_and_kind() -> None:
    assert application_error(b"a", Protocol.BINARY, 1, 6, "no").endswith(b"\x0b\0\1\0\0\0\2no\x08\0\2\0\0\0\6\0")
    assert application_error(b"a", Protocol.COMPACT, 1, 6, "no").endswith(b"\x18\2no\x15\x0c\0")


@pytest.mark.parametrize("protocol", list(Protocol))
@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        (I32, 2**31),
        (I64, -(2**63) - 1),
        (I64, "1"),
        (BYTE, 128),
        (STRING, 5),
        ((LIST, I32), 7),
        ((MAP, (I32, I32)), [1]),
    ],
)
def test_what_a_spec_does_not_allow_is_refused(protocol: Protocol, spec: Any, wrong: Any) -> None:
    with pytest.raises(Exception, match=r".+"):
        field(protocol, 1, spec, wrong)

"""(pure) The general encoder of values: any value of the IDL, in both protocols, by its spec.

This module encodes replies without a hand-packed form, such as those of administration: a table of 1,000 regions has
7,000 fields.  ``codec_binary`` and ``codec_compact`` state the bytes of the types.  A field that is None is omitted, as
Thrift requires; text and bytes are the same on the wire.

For a value that its spec does not allow, the functions raise TypeError, ValueError, AttributeError, OverflowError or
struct.error, before any byte of the reply is sent.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from columnar.wire.codec_binary import BOOL, BYTE, DOUBLE, I16, I32, I64, LIST, MAP, SET, STRUCT, spec_of_field
from columnar.wire.codec_binary import wire_type_of as binary_type
from columnar.wire.codec_compact import C_FALSE, C_TRUE, compact_type
from columnar.wire.codec_replies import varint

_U32 = Struct(">I").pack
_HEAD = Struct(">BH").pack  # type, field id
_FIXED: Final = {
    BYTE: Struct(">b").pack,
    I16: Struct(">h").pack,
    I32: Struct(">i").pack,
    I64: Struct(">q").pack,
    DOUBLE: Struct(">d").pack,
}
_F64_LITTLE = Struct("<d").pack
_BITS: Final = {I16: 16, I32: 32, I64: 64}


def binary_field(field_id: int, spec: Any, value: Any) -> bytes:
    """Return the bytes of a struct's field, including its header."""
    parts = [_HEAD(binary_type(spec), field_id)]
    _binary(parts, spec, value)
    return b"".join(parts)


def compact_field(field_id: int, spec: Any, value: Any, last: int = 0) -> bytes:
    """Return the bytes of a struct's field, including its header; ``last`` is the id of the previous field."""
    parts: list[bytes] = []
    _compact_field(parts, last, field_id, spec, value)
    return b"".join(parts)


def _kind(spec: Any) -> int:
    kind: int = spec if isinstance(spec, int) else spec[0]
    return kind


def _text(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(f"{type(value).__name__} where text or bytes belong")


# --- binary ------------------------------------------------------------------------------------------


def _binary(parts: list[bytes], spec: Any, value: Any) -> None:
    kind = _kind(spec)
    fixed = _FIXED.get(kind)
    if fixed is not None:
        parts.append(fixed(value))
    elif kind == BOOL:
        parts.append(b"\x01" if value else b"\x00")
    elif kind == STRUCT:
        _binary_struct(parts, value)
    elif kind in (LIST, SET):
        inner = spec[1]
        parts.append(b"%c%b" % (binary_type(inner), _U32(len(value))))
        for element in value:
            _binary(parts, inner, element)
    elif kind == MAP:
        of_key, of_value = spec[1]
        parts.append(b"%c%c%b" % (binary_type(of_key), binary_type(of_value), _U32(len(value))))
        for key, element in value.items():
            _binary(parts, of_key, key)
            _binary(parts, of_value, element)
    else:
        data = _text(value)
        parts.append(_U32(len(data)))
        parts.append(data)


def _binary_struct(parts: list[bytes], value: Any) -> None:
    for field_id, field in value.thrift_spec.items():
        value_of_field = getattr(value, field[1])
        if value_of_field is not None:
            spec = spec_of_field(field)
            parts.append(_HEAD(binary_type(spec), field_id))
            _binary(parts, spec, value_of_field)
    parts.append(b"\x00")


# --- compact -----------------------------------------------------------------------------------------


def _compact(parts: list[bytes], spec: Any, value: Any) -> None:
    """Write an element, or a field that is not a bool."""
    kind = _kind(spec)
    if kind in _BITS:
        parts.append(_zigzag(value, _BITS[kind]))
    elif kind == BOOL:
        parts.append(b"\x01" if value else b"\x02")
    elif kind == BYTE:
        parts.append(_FIXED[BYTE](value))
    elif kind == DOUBLE:
        parts.append(_F64_LITTLE(value))
    elif kind == STRUCT:
        _compact_struct(parts, value)
    elif kind in (LIST, SET):
        _compact_list(parts, spec[1], value)
    elif kind == MAP:
        _compact_map(parts, spec[1], value)
    else:
        data = _text(value)
        parts.append(varint(len(data)))
        parts.append(data)


def _zigzag(value: int, bits: int) -> bytes:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError(f"{value} where {bits} bits belong")
    return varint((value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF)


def _compact_list(parts: list[bytes], inner: Any, value: Any) -> None:
    count, kind = len(value), compact_type(inner)
    parts.append(b"%c" % (count << 4 | kind) if count < 15 else b"%c%b" % (0xF0 | kind, varint(count)))
    for element in value:
        _compact(parts, inner, element)


def _compact_map(parts: list[bytes], inner: tuple[Any, Any], value: Any) -> None:
    if not value:
        parts.append(b"\x00")
        return
    of_key, of_value = inner
    parts.append(b"%b%c" % (varint(len(value)), compact_type(of_key) << 4 | compact_type(of_value)))
    for key, element in value.items():
        _compact(parts, of_key, key)
        _compact(parts, of_value, element)


def _compact_struct(parts: list[bytes], value: Any) -> None:
    last = 0
    for field_id, field in value.thrift_spec.items():
        value_of_field = getattr(value, field[1])
        if value_of_field is not None:
            _compact_field(parts, last, field_id, spec_of_field(field), value_of_field)
            last = field_id
    parts.append(b"\x00")


def _compact_field(parts: list[bytes], last: int, field_id: int, spec: Any, value: Any) -> None:
    is_bool = _kind(spec) == BOOL
    kind = compact_type(spec)
    if is_bool:
        kind = C_TRUE if value else C_FALSE
    delta = field_id - last
    parts.append(b"%c" % (delta << 4 | kind) if 0 < delta < 16 else b"%c%b" % (kind, _zigzag(field_id, 16)))
    if not is_bool:
        _compact(parts, spec, value)

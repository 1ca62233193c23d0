"""(pure) Readers of the compact protocol, with the same interface as the binary readers of ``codec_binary``.

    message := 82 (kind << 5 | 1):u8 seqid:varint name:string struct
    struct  := (delta << 4 | type:u8 value | type:u8 id:zigzag value)* 00
    string  := length:varint byte*       integers zigzag varints, doubles little-endian
    list    := (count << 4 | type):u8, or (F0 | type):u8 count:varint, then the values
    map     := 00, or count:varint (key_type << 4 | value_type):u8 then pairs
    bool    := in a struct the type itself (1 true, 2 false), in a container one byte

As in ``codec_binary``, no length or count is trusted before the bytes have arrived.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from columnar.wire.codec_binary import (
    BINARY,
    BOOL,
    BYTE,
    DEPTH,
    DOUBLE,
    FIELDS,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    NAME_BYTES,
    SET,
    STRING,
    STRUCT,
    Budget,
    Reader,
    spec_of_field,
)
from columnar.wire.faults import Malformed, Short
from columnar.wire.sent_puts import SHAPED_COLUMNS, CompactPutsShape, Mutation

PROTOCOL: Final = 0x82
VERSION: Final = 1
C_TRUE, C_FALSE, C_BYTE, C_I16, C_I32, C_I64, C_DOUBLE = 1, 2, 3, 4, 5, 6, 7
C_BINARY, C_LIST, C_SET, C_MAP, C_STRUCT = 8, 9, 10, 11, 12
_COMPACT: Final = {
    BOOL: C_TRUE,
    BYTE: C_BYTE,
    I16: C_I16,
    I32: C_I32,
    I64: C_I64,
    DOUBLE: C_DOUBLE,
    STRING: C_BINARY,
    BINARY: C_BINARY,
    LIST: C_LIST,
    SET: C_SET,
    MAP: C_MAP,
    STRUCT: C_STRUCT,
}
_FIRST_BOOL: Final = 1 << 4 | C_TRUE  # header of a true bool whose id is one above the previous; false is one more
_SHORT_BINARY: Final = 1 << 4 | C_BINARY
_F64 = struct.Struct("<d").unpack_from


def varint(buf: bytes | bytearray, pos: int, end: int, width: int = 10) -> tuple[int, int]:
    """Return an unsigned integer of at most ``width`` bytes (5 hold 32 bits, 10 hold 64), and the next position."""
    result = shift = 0
    for _ in range(width):
        if pos >= end:
            raise Short
        byte = buf[pos]
        pos += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, pos
        shift += 7
    raise Malformed(f"an integer of more than {width} bytes")


def read_message_begin(buf: bytes, pos: int, end: int) -> tuple[bytes, int, int, int]:
    """Return (method name, kind, seqid, start of the argument struct)."""
    if end - pos < 2:
        raise Short
    if buf[pos] != PROTOCOL or buf[pos + 1] & 0x1F != VERSION:
        raise Malformed(f"a compact message that begins with {buf[pos]:02x} {buf[pos + 1]:02x}")
    kind = buf[pos + 1] >> 5
    seqid, pos = varint(buf, pos + 2, end, 5)
    length, pos = varint(buf, pos, end, 5)
    if length > NAME_BYTES:
        raise Malformed(f"a method name of {length} bytes")
    if length > end - pos:
        raise Short
    return buf[pos : pos + length], kind, seqid & 0xFFFF_FFFF, pos + length


def _binary(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    length, pos = varint(buf, pos, end, 5)
    if length > end - pos:
        raise Short
    return buf[pos : pos + length], pos + length


def _text(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    data, pos = _binary(buf, pos, end)
    try:
        return data.decode(), pos
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8") from None


def _byte(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    if pos >= end:
        raise Short
    return (buf[pos] ^ 0x80) - 0x80, pos + 1


def _element_bool(buf: bytes, pos: int, end: int) -> tuple[bool, int]:
    if pos >= end:
        raise Short
    return buf[pos] == C_TRUE, pos + 1


def _integer(bits: int) -> Reader:
    width = -(-bits // 7)
    half = 1 << (bits - 1)

    def read(buf: bytes, pos: int, end: int) -> tuple[int, int]:
        raw, pos = varint(buf, pos, end, width)
        value = (raw >> 1) ^ -(raw & 1)
        if not -half <= value < half:
            raise Malformed(f"{value} does not fit {bits} bits")
        return value, pos

    return read


def _double(buf: bytes, pos: int, end: int) -> tuple[float, int]:
    if end - pos < 8:
        raise Short
    return _F64(buf, pos)[0], pos + 8


_SCALARS: Final[dict[int, Reader]] = {
    BINARY: _binary,
    STRING: _text,
    BOOL: _element_bool,
    BYTE: _byte,
    I16: _integer(16),
    I32: _integer(32),
    I64: _integer(64),
    DOUBLE: _double,
}


def compact_type(spec: Any) -> int:
    return _COMPACT[spec if isinstance(spec, int) else spec[0]]


def _same(sent: int, wanted: int) -> bool:
    return sent == wanted or (wanted == C_TRUE and sent == C_FALSE)


def list_head(buf: bytes | bytearray, pos: int, end: int) -> tuple[int, int, int]:
    """Return (element type, count, next pos)."""
    if pos >= end:
        raise Short
    head = buf[pos]
    pos += 1
    count = head >> 4
    if count == 15:
        count, pos = varint(buf, pos, end, 5)
    return head & 0x0F, count, pos


def map_head(buf: bytes | bytearray, pos: int, end: int) -> tuple[int, int, int, int]:
    """Return (key type, value type, count, next pos)."""
    count, pos = varint(buf, pos, end, 5)
    if not count:
        return 0, 0, 0, pos
    if pos >= end:
        raise Short
    return buf[pos] >> 4, buf[pos] & 0x0F, count, pos + 1


def _list_begin(buf: bytes, pos: int, end: int, wanted: int, budget: Budget) -> tuple[int, int]:
    """Return (count of elements, start of the first)."""
    sent, count, pos = list_head(buf, pos, end)
    if not count:
        return 0, pos
    if not _same(sent, wanted):
        raise Malformed(f"a list of compact type {sent} where {wanted} belongs")
    if count > end - pos:
        raise Short
    budget.take(count)
    return count, pos


def _mutations_reader(budget: Budget) -> Reader:
    """Return a reader of a list of Mutations, which may return the puts of a bulk load as a ``SentPuts``."""
    read_any = _struct_reader(Mutation, budget)
    shape = CompactPutsShape()

    def read(buf: bytes, pos: int, end: int) -> tuple[Any, int]:
        count, pos = _list_begin(buf, pos, end, C_STRUCT, budget)
        budget.take_row(count)
        if count >= SHAPED_COLUMNS:
            row, pos = shape.take_row(buf, pos, end, count)
            if row is not None:
                return row, pos
        found: list[Any] = []
        for _ in range(count):
            put, pos = _usual_put(buf, pos, end)
            if put is None:
                mutation, pos = read_any(buf, pos, end)
                found.append(mutation)
            else:
                found.append(put)
        if count >= SHAPED_COLUMNS:
            shape.learn(found)
        return found, pos

    return read


def _usual_put(buf: bytes, pos: int, end: int) -> tuple[Mutation | None, int]:
    """Read a Mutation in the form in which clients usually send puts.  Returns None for any other form.

        1 (1|2):u8   18 length:u8 column   18 length:varint value   1 (1|2):u8   00

    All four fields must be present in this order, the column shorter than 128 bytes and the value shorter than 16 KiB.
    """
    if end - pos < 7 or buf[pos + 1] != _SHORT_BINARY or not _FIRST_BOOL <= buf[pos] <= _FIRST_BOOL + 1:
        return None, pos
    column = pos + 3
    at = column + buf[pos + 2]
    if buf[pos + 2] >= 0x80 or at + 4 > end or buf[at] != _SHORT_BINARY:
        return None, pos
    value, length = at + 2, buf[at + 1]
    if length >= 0x80:
        if buf[value] >= 0x80:
            return None, pos
        length = length & 0x7F | buf[value] << 7
        value += 1
    tail = value + length
    if tail + 2 > end or buf[tail + 1] or not _FIRST_BOOL <= buf[tail] <= _FIRST_BOOL + 1:
        return None, pos
    put = Mutation(buf[pos] == _FIRST_BOOL, buf[column:at], buf[value:tail], buf[tail] == _FIRST_BOOL)
    return put, tail + 2


def _list_reader(spec: Any, budget: Budget) -> Reader:
    wanted, read_element = compact_type(spec), reader_of(spec, budget)

    def read(buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        count, pos = _list_begin(buf, pos, end, wanted, budget)
        values = []
        for _ in range(count):
            value, pos = read_element(buf, pos, end)
            values.append(value)
        return values, pos

    return read


def _map_reader(key_spec: Any, value_spec: Any, budget: Budget) -> Reader:
    key_type, read_key = compact_type(key_spec), reader_of(key_spec, budget)
    value_type, read_value = compact_type(value_spec), reader_of(value_spec, budget)

    def read(buf: bytes, pos: int, end: int) -> tuple[dict[Any, Any], int]:
        sent_key, sent_value, count, pos = map_head(buf, pos, end)
        if not count:
            return {}, pos
        if not (_same(sent_key, key_type) and _same(sent_value, value_type)):
            raise Malformed(f"a map of compact types {sent_key}, {sent_value} where {key_type}, {value_type} belong")
        if count > end - pos:
            raise Short
        budget.take(count)
        values = {}
        for _ in range(count):
            key, pos = read_key(buf, pos, end)
            values[key], pos = read_value(buf, pos, end)
        return values, pos

    return read


def _field_head(buf: bytes, pos: int, end: int, last: int) -> tuple[int, int, int]:
    """Return (compact type, field id, next pos); type 0 marks the end of the struct."""
    if pos >= end:
        raise Short
    head = buf[pos]
    pos += 1
    if head >> 4 or not head:
        return head & 0x0F, last + (head >> 4), pos
    raw, pos = varint(buf, pos, end, 3)
    return head & 0x0F, (raw >> 1) ^ -(raw & 1), pos


def fields_reader(thrift_spec: dict[int, Any], defaults: list[tuple[str, Any]], budget: Budget) -> Reader:
    """Return a reader that gives a struct's values as a list in the order of the IDL, as in ``codec_binary``."""
    order = {name: index for index, (name, _) in enumerate(defaults)}
    unset = [default for _, default in defaults]
    known_fields = {
        (fid, compact_type(spec_of_field(field))): (order[field[1]], reader_of(spec_of_field(field), budget))
        for fid, field in thrift_spec.items()
    }

    def read(buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        values = unset.copy()
        fid = 0
        for _ in range(FIELDS):
            kind, fid, pos = _field_head(buf, pos, end, fid)
            if not kind:
                return values, pos
            known = known_fields.get((fid, C_TRUE if kind == C_FALSE else kind))
            if known is None:
                pos = skip_field(buf, pos, end, kind, DEPTH, budget)
            elif kind <= C_FALSE:
                values[known[0]] = kind == C_TRUE
            else:
                values[known[0]], pos = known[1](buf, pos, end)
        raise Malformed(f"a struct of more than {FIELDS} fields")

    return read


def _struct_reader(cls: Any, budget: Budget) -> Reader:
    read_fields = fields_reader(cls.thrift_spec, cls.default_spec, budget)

    def read(buf: bytes, pos: int, end: int) -> tuple[Any, int]:
        values, pos = read_fields(buf, pos, end)
        return cls(*values), pos

    return read


def reader_of(spec: Any, budget: Budget) -> Reader:
    """Return the reader of an element or a field.

    A bool must be an element, because a bool field has no value bytes.
    """
    if isinstance(spec, int):
        return _SCALARS[spec]
    kind, inner = spec
    if kind == LIST and inner == (STRUCT, Mutation):
        return _mutations_reader(budget)
    if kind in (LIST, SET):
        return _list_reader(inner, budget)
    if kind == MAP:
        return _map_reader(inner[0], inner[1], budget)
    if kind == STRUCT:
        return _struct_reader(inner, budget)
    return _SCALARS[kind]


def skip_field(buf: bytes, pos: int, end: int, kind: int, depth: int, budget: Budget) -> int:
    return pos if kind <= C_FALSE else _skip(buf, pos, end, kind, depth, budget)


def _skip(buf: bytes, pos: int, end: int, kind: int, depth: int, budget: Budget) -> int:
    """Return the end position of the element of compact type ``kind`` that begins at ``pos``."""
    if kind <= C_BYTE:
        pos += 1
    elif kind <= C_I64:
        _, pos = varint(buf, pos, end)
    elif kind == C_DOUBLE:
        pos += 8
    elif kind == C_BINARY:
        _, pos = _binary(buf, pos, end)
    elif depth <= 0:
        raise Malformed(f"nested deeper than {DEPTH}")
    elif kind == C_STRUCT:
        pos = _skip_struct(buf, pos, end, depth - 1, budget)
    elif kind in (C_LIST, C_SET):
        element, count, pos = list_head(buf, pos, end)
        pos = _skip_elements(buf, pos, end, (element,), count, depth - 1, budget)
    elif kind == C_MAP:
        key, value, count, pos = map_head(buf, pos, end)
        pos = _skip_elements(buf, pos, end, (key, value), count, depth - 1, budget)
    else:
        raise Malformed(f"unknown compact type {kind}")
    if pos > end:
        raise Short
    return pos


def _skip_struct(buf: bytes, pos: int, end: int, depth: int, budget: Budget) -> int:
    fid = 0
    for _ in range(FIELDS):
        kind, fid, pos = _field_head(buf, pos, end, fid)
        if not kind:
            return pos
        pos = skip_field(buf, pos, end, kind, depth, budget)
    raise Malformed(f"a struct of more than {FIELDS} fields")


def _skip_elements(
    buf: bytes, pos: int, end: int, kinds: tuple[int, ...], count: int, depth: int, budget: Budget
) -> int:
    if not count:
        return pos
    if 0 in kinds:
        raise Malformed("elements of no type")
    if count > end - pos:
        raise Short
    budget.take(count)
    for _ in range(count):
        for kind in kinds:
            pos = _skip(buf, pos, end, kind, depth, budget)
    return pos

"""(pure) Readers of the binary protocol: functions, each made once for a type of the IDL.

    message := 80 01 00 kind:u8  length:u32 name  seqid:u32  struct      (all big-endian)
             |                   length:u32 name  kind:u8  seqid:u32  struct   (before versions)
    struct  := (type:u8 id:u16 value)* 00
    string  := length:u32 byte*        list, set := type:u8 count:u32 value*
    map     := key_type:u8 value_type:u8 count:u32 (key value)*

A reader is ``read(buf, pos, end) -> (value, next pos)``.  ``end`` is the end of the bytes that have
arrived; a reader raises Short instead of reading past it.  A length or count that a message claims is therefore not
trusted, and no memory is allocated for it, before the bytes have arrived.  A list takes at least one byte per element,
so a count above the number of remaining bytes raises Short immediately.

thriftpy2's C codec trusts lengths: a 25-byte message that claims 2 GB or 2^31 elements hangs it, and it fills the
missing bytes of a truncated message with memory of the process.  Before that codec could decode a message, a walker
would have to check all its lengths.  On one core of a 2-core machine, CPython 3.11, not compiled, the header and
arguments of ``get`` take 1.9 us with these readers, 1.5 us with the C codec and 3 us for the walker alone.

Knows nothing of frames, of connections and of the meaning of methods.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from columnar.errors import RequestTooBig
from columnar.limits import MUTATIONS_PER_CALL, ROW_OPERATIONS
from columnar.wire.faults import Malformed, Refused, Short
from columnar.wire.sent_puts import SHAPED_COLUMNS, Mutation, PutsShape

Reader = Callable[[bytes, int, int], tuple[Any, int]]

STOP, BOOL, BYTE, DOUBLE, I16, I32, I64 = 0, 2, 3, 4, 6, 8, 10
STRING, STRUCT, MAP, SET, LIST = 11, 12, 13, 14, 15
BINARY = 18  # thriftpy2's mark for a string that stays bytes; never on the wire
WIDTHS: Final = {BOOL: 1, BYTE: 1, DOUBLE: 8, I16: 2, I32: 4, I64: 8}
DEPTH: Final = 32  # nesting of unknown fields; our own structs nest three deep
VERSION: Final = 0x8001_0000
FIELDS: Final = 64  # in a struct; ours have up to 12
PAUSE_ELEMENTS: Final = 2_000  # of lists, which are decoded in some 1 ms
NAME_BYTES: Final = 256  # of a method; the longest of ours has 33

_U32 = struct.Struct(">I").unpack_from
_I16 = struct.Struct(">h").unpack_from
_I32 = struct.Struct(">i").unpack_from
_I64 = struct.Struct(">q").unpack_from
_F64 = struct.Struct(">d").unpack_from
_LIST = struct.Struct(">BI").unpack_from
_MAP = struct.Struct(">BBI").unpack_from


def read_message_begin(buf: bytes, pos: int, end: int) -> tuple[bytes, int, int, int]:
    """Return (method name, kind, seqid, start of the argument struct)."""
    if end - pos < 4:
        raise Short
    (word,) = _U32(buf, pos)
    versioned = word & 0x8000_0000
    if versioned:
        if word & 0xFFFF_0000 != VERSION:
            raise Malformed(f"version word {word:#010x}")
        pos += 4
        if end - pos < 4:
            raise Short
        (length,) = _U32(buf, pos)
    else:
        length = word
    if length > NAME_BYTES:
        raise Malformed(f"a method name of {length} bytes")
    start = pos + 4
    pos = start + length
    if end - pos < (4 if versioned else 5):
        raise Short
    if versioned:
        return buf[start:pos], word & 0xFF, _I32(buf, pos)[0], pos + 4
    return buf[start:pos], buf[pos], _I32(buf, pos + 1)[0], pos + 5


def _binary(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    if end - pos < 4:
        raise Short
    start = pos + 4
    stop = start + _U32(buf, pos)[0]
    if stop > end:
        raise Short
    return buf[start:stop], stop


def _text(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    data, pos = _binary(buf, pos, end)
    try:
        return data.decode(), pos
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8") from None


def _bool(buf: bytes, pos: int, end: int) -> tuple[bool, int]:
    if pos >= end:
        raise Short
    return buf[pos] != 0, pos + 1


def _byte(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    if pos >= end:
        raise Short
    return (buf[pos] ^ 0x80) - 0x80, pos + 1


def _fixed(unpack: Callable[[bytes, int], tuple[Any, ...]], width: int) -> Reader:
    def read(buf: bytes, pos: int, end: int) -> tuple[Any, int]:
        if end - pos < width:
            raise Short
        return unpack(buf, pos)[0], pos + width

    return read


_SCALARS: Final[dict[int, Reader]] = {
    BINARY: _binary,
    STRING: _text,
    BOOL: _bool,
    BYTE: _byte,
    I16: _fixed(_I16, 2),
    I32: _fixed(_I32, 4),
    I64: _fixed(_I64, 8),
    DOUBLE: _fixed(_F64, 8),
}


class Budget:
    """The number of elements that the remaining lists and maps of a message may have together.

    A bound on bytes alone does not bound memory: one byte on the wire (an empty struct in a list) can become an object
    of 200 bytes.
    """

    __slots__ = ("_pause", "_pauses_at", "left")

    def __init__(self, pause: Callable[[], object] | None = None) -> None:
        """Pass ``pause``, which lets other threads run: compiled code does not release the interpreter lock itself."""
        self._pause = pause
        self.renew()

    def renew(self) -> None:
        """Begin the budget of the next message."""
        self.left = MUTATIONS_PER_CALL
        self._pauses_at = MUTATIONS_PER_CALL - PAUSE_ELEMENTS

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Refused(RequestTooBig(f"more than {MUTATIONS_PER_CALL} elements in the lists of one call"))
        if self._pause is not None and self.left < self._pauses_at:
            self._pauses_at = self.left - PAUSE_ELEMENTS
            self._pause()

    def take_row(self, count: int) -> None:
        """Check the count of a list of Mutations of one row, before its elements are read.  Raises Refused."""
        if count > ROW_OPERATIONS:
            what = f"{count} operations on one row as one step, at most {ROW_OPERATIONS} are allowed"
            raise Refused(RequestTooBig(f"{what}; nothing was stored, send them in several calls"))


def _list_begin(buf: bytes, pos: int, end: int, wire_type: int, budget: Budget) -> tuple[int, int]:
    """Return (count of elements, start of the first)."""
    if end - pos < 5:
        raise Short
    element_type, count = _LIST(buf, pos)
    pos += 5
    if not count:
        return 0, pos
    if element_type != wire_type:
        raise Malformed(f"a list of type {element_type} where {wire_type} belongs")
    if count > end - pos:
        raise Short
    budget.take(count)
    return count, pos


def _list_reader(spec: Any, budget: Budget) -> Reader:
    wire_type, read_element = wire_type_of(spec), reader_of(spec, budget)

    def read(buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        count, pos = _list_begin(buf, pos, end, wire_type, budget)
        values = []
        for _ in range(count):
            value, pos = read_element(buf, pos, end)
            values.append(value)
        return values, pos

    return read


def _map_reader(key_spec: Any, value_spec: Any, budget: Budget) -> Reader:
    key_type, read_key = wire_type_of(key_spec), reader_of(key_spec, budget)
    value_type, read_value = wire_type_of(value_spec), reader_of(value_spec, budget)

    def read(buf: bytes, pos: int, end: int) -> tuple[dict[Any, Any], int]:
        if end - pos < 6:
            raise Short
        sent_key, sent_value, count = _MAP(buf, pos)
        pos += 6
        if not count:
            return {}, pos
        if sent_key != key_type or sent_value != value_type:
            raise Malformed(f"a map of types {sent_key}, {sent_value} where {key_type}, {value_type} belong")
        if count > end - pos:
            raise Short
        budget.take(count)
        values = {}
        for _ in range(count):
            key, pos = read_key(buf, pos, end)
            values[key], pos = read_value(buf, pos, end)
        return values, pos

    return read


def fields_reader(thrift_spec: dict[int, Any], defaults: list[tuple[str, Any]], budget: Budget) -> Reader:
    """Return a reader that gives a struct's values as a list in the order of the IDL.

    A field is looked up by its whole header (type and id).  So a field with an unknown id, or with a known id but a
    different type, is skipped, as Thrift requires, and the order on the wire does not matter.
    """
    order = {name: index for index, (name, _) in enumerate(defaults)}
    unset = [default for _, default in defaults]
    by_header = {
        struct.pack(">BH", wire_type_of(spec_of_field(field)), fid): (
            order[field[1]],
            reader_of(spec_of_field(field), budget),
        )
        for fid, field in thrift_spec.items()
    }
    lookup = by_header.get

    def read(buf: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        values = unset.copy()
        for _ in range(FIELDS):
            known = lookup(buf[pos : pos + 3])
            if known is not None:
                index, read_value = known
                if read_value is _binary:  # the most frequent type, without a call
                    start = pos + 7
                    if start > end:
                        raise Short
                    pos = start + _U32(buf, pos + 3)[0]
                    if pos > end:
                        raise Short
                    values[index] = buf[start:pos]
                else:
                    values[index], pos = read_value(buf, pos + 3, end)
            elif pos >= end:
                raise Short
            elif buf[pos] == STOP:
                return values, pos + 1
            elif end - pos < 3:
                raise Short
            else:
                pos = skip(buf, pos + 3, end, buf[pos], DEPTH, budget)
        raise Malformed(f"a struct of more than {FIELDS} fields")

    return read


def _struct_reader(cls: Any, budget: Budget) -> Reader:
    read_fields = fields_reader(cls.thrift_spec, cls.default_spec, budget)

    def read(buf: bytes, pos: int, end: int) -> tuple[Any, int]:
        values, pos = read_fields(buf, pos, end)
        return cls(*values), pos

    return read


def _mutations_reader(budget: Budget) -> Reader:
    """Return a reader of a list of Mutations, which may return the puts of a bulk load as a ``SentPuts``."""
    read_any = _struct_reader(Mutation, budget)
    shape = PutsShape()

    def read(buf: bytes, pos: int, end: int) -> tuple[Any, int]:
        count, pos = _list_begin(buf, pos, end, STRUCT, budget)
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

        02 0001 bool   0B 0002 length:u32 column   0B 0003 length:u32 value   02 0004 bool   00

    All four fields must be present in this order, and the column shorter than 256 bytes.  This reader takes 0.4 us
    compiled, the general reader 1.6 us.
    """
    if end - pos < 23 or buf[pos] != BOOL or buf[pos + 1] != 0 or buf[pos + 2] != 1:
        return None, pos
    if buf[pos + 4] != STRING or buf[pos + 5] != 0 or buf[pos + 6] != 2:
        return None, pos
    if buf[pos + 7] != 0 or buf[pos + 8] != 0 or buf[pos + 9] != 0:
        return None, pos
    column = pos + 11
    at = column + buf[pos + 10]
    if at + 12 > end or buf[at] != STRING or buf[at + 1] != 0 or buf[at + 2] != 3:
        return None, pos
    value = at + 7
    tail = value + (buf[at + 3] << 24 | buf[at + 4] << 16 | buf[at + 5] << 8 | buf[at + 6])
    if tail + 5 > end or buf[tail] != BOOL or buf[tail + 1] != 0 or buf[tail + 2] != 4 or buf[tail + 4] != STOP:
        return None, pos
    return Mutation(buf[pos + 3] != 0, buf[column:at], buf[value:tail], buf[tail + 3] != 0), tail + 5


def spec_of_field(field: tuple[Any, ...]) -> Any:
    """Return the spec, a type or (type, inner), of thriftpy2's ``field``: (type, name[, inner], required)."""
    return field[0] if len(field) == 3 else (field[0], field[2])


def wire_type_of(spec: Any) -> int:
    kind: int = spec if isinstance(spec, int) else spec[0]
    return STRING if kind == BINARY else kind


def reader_of(spec: Any, budget: Budget) -> Reader:
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
    return _SCALARS[kind]  # an enumeration: its inner spec only names the values


def skip(buf: bytes, pos: int, end: int, kind: int, depth: int, budget: Budget) -> int:
    """Return the end position of the value of type ``kind`` that begins at ``pos``."""
    width = WIDTHS.get(kind)
    if width is not None:
        pos += width
    elif kind == STRING:
        _, pos = _binary(buf, pos, end)
    elif depth <= 0:
        raise Malformed(f"nested deeper than {DEPTH}")
    elif kind == STRUCT:
        pos = _skip_struct(buf, pos, end, depth - 1, budget)
    elif kind in (LIST, SET, MAP):
        pos = _skip_container(buf, pos, end, 6 if kind == MAP else 5, depth - 1, budget)
    else:
        raise Malformed(f"unknown type {kind}")
    if pos > end:
        raise Short
    return pos


def _skip_struct(buf: bytes, pos: int, end: int, depth: int, budget: Budget) -> int:
    for _ in range(FIELDS):
        if pos >= end:
            raise Short
        if buf[pos] == STOP:
            return pos + 1
        pos = skip(buf, pos + 3, end, buf[pos], depth, budget)
    raise Malformed(f"a struct of more than {FIELDS} fields")


def _skip_container(buf: bytes, pos: int, end: int, head: int, depth: int, budget: Budget) -> int:
    if end - pos < head:
        raise Short
    types = buf[pos : pos + head - 4]
    count = int.from_bytes(buf[pos + head - 4 : pos + head], "big")
    pos += head
    if not count:
        return pos
    if count > end - pos:
        raise Short
    widths = [WIDTHS.get(kind) for kind in types]
    if None not in widths:
        return pos + count * sum(width or 0 for width in widths)
    budget.take(count)
    for _ in range(count):
        for kind in types:
            pos = skip(buf, pos, end, kind, depth, budget)
    return pos

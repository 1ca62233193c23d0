"""(pure) The IDL's ``Mutation`` as a handwritten class, and a compact form for the puts of a bulk load's rows.

Bulk loads consist of mutations, and a compiled, handwritten Mutation is only four plain fields.  ``definitions`` uses
this class instead of generating one, as long as the IDL has the same fields; it must behave like a
``definitions.Struct``.

All rows of a bulk load have the same columns in the same order, so the bytes between the values are the same in each
row.  These bytes are only compared with the bytes of earlier rows, and only the values are extracted.  A column costs a
comparison and a slice, 0.25 us, and no object of its own.

    row     := head[0] value[0] head[1] value[1] ... tail
    head[n] := the end of the previous mutation, then mutation n up to the length of its value

Invariants:
    I1. A row is read in this way only if each of its bytes equals ``head`` and ``tail`` or belongs to a value, so the
        result is the same as the general reader's.
    I2. Only one shape is remembered, and it contains columns, never a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, ClassVar, Final

from columnar.limits import KIB
from columnar.wire.codec_replies import varint


class Mutation:
    """A Mutation of the IDL; an omitted field has its default, or None."""

    thrift_spec: ClassVar[dict[int, tuple[Any, ...]]] = {
        1: (2, "isDelete", False),
        2: (18, "column", False),
        3: (18, "value", False),
        4: (2, "writeToWAL", False),
    }
    default_spec: ClassVar[list[tuple[str, Any]]] = [
        ("isDelete", False),
        ("column", None),
        ("value", None),
        ("writeToWAL", True),
    ]

    __slots__ = ("column", "isDelete", "value", "writeToWAL")

    def __init__(
        self,
        isDelete: Any = False,  # noqa: N803 - the IDL's names
        column: Any = None,
        value: Any = None,
        writeToWAL: Any = True,  # noqa: N803
    ) -> None:
        self.isDelete = isDelete
        self.column = column
        self.value = value
        self.writeToWAL = writeToWAL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mutation) and self._fields() == other._fields()

    def __repr__(self) -> str:
        return f"Mutation{self._fields()!r}"

    def _fields(self) -> tuple[Any, Any, Any, Any]:
        return self.isDelete, self.column, self.value, self.writeToWAL

    def read(self, protocol: Any) -> None:
        """Read the fields; called by thriftpy2's clients."""
        protocol.read_struct(self)

    def write(self, protocol: Any) -> None:
        protocol.write_struct(self)


SHAPED_COLUMNS: Final = 4  # a row of fewer columns is not worth a shape
SHAPE_BYTES: Final = 64 * KIB  # the bound on the names of a shape's columns
_U32: Final = Struct(">I")
_BEGIN: Final = b"\x02\x00\x01\x00"  # isDelete: false
_COLUMN: Final = b"\x0b\x00\x02"
_VALUE: Final = b"\x0b\x00\x03"
_TAIL: Final = b"\x02\x00\x04\x01\x00"  # writeToWAL: true, and the end of the struct
_TAIL_BYTES: Final = len(_TAIL)
_LENGTH_BYTES: Final = 4
# The same in the compact protocol, where one byte has a field's type and the difference to the previous field's id.
_COMPACT_BEGIN: Final = b"\x12"  # isDelete: false
_COMPACT_BINARY: Final = b"\x18"  # column, value
_COMPACT_TAIL: Final = b"\x11\x00"  # writeToWAL: true, and the end of the struct
_COMPACT_TAIL_BYTES: Final = len(_COMPACT_TAIL)
_LONGEST_LENGTH: Final = 3  # bytes read for a value's length; an empty value's length and the tail have as many


class SentPuts:
    """A list of Mutations, all puts with writeToWAL.  Stores only columns and values; iterates over Mutations."""

    __slots__ = ("columns", "values")

    def __init__(self, columns: tuple[bytes, ...], values: list[bytes]) -> None:
        self.columns = columns  # shared by all rows of the shape
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Mutation]:
        each = zip(self.columns, self.values, strict=True)
        return iter([Mutation(False, column, value, True) for column, value in each])

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, SentPuts) else other)

    def __repr__(self) -> str:
        return repr(list(self))


class PutsShape:
    """The shape learned from earlier rows, in the binary protocol; not shared between threads."""

    __slots__ = ("_columns", "_heads", "_seen")

    def __init__(self) -> None:
        self._columns: tuple[bytes, ...] = ()
        self._heads: list[bytes] = []
        self._seen: tuple[bytes, ...] = ()  # the columns of the last row that the general reader read

    def take_row(self, buf: bytes, pos: int, end: int, count: int) -> tuple[SentPuts | None, int]:
        """Return the row of ``count`` mutations at ``pos`` and its end; (None, ``pos``) if its shape differs."""
        heads = self._heads
        if count != len(heads):
            return None, pos
        began, values = pos, []
        for head in heads:
            at = pos + len(head)
            value = at + _LENGTH_BYTES
            if value > end or buf[pos:at] != head:
                return None, began
            pos = value + (buf[at] << 24 | buf[at + 1] << 16 | buf[at + 2] << 8 | buf[at + 3])
            values.append(buf[value:pos])
        if pos + _TAIL_BYTES > end or buf[pos : pos + _TAIL_BYTES] != _TAIL:
            return None, began
        return SentPuts(self._columns, values), pos + _TAIL_BYTES

    def learn(self, row: list[Mutation]) -> None:
        """Note a row that the general reader read.  If the previous such row had the same columns, learn these."""
        seen, self._seen = self._seen, tuple([mutation.column or b"" for mutation in row])
        if sum(map(len, self._seen)) > SHAPE_BYTES:
            self._seen = ()
        elif self._seen == seen and seen != self._columns:
            self._columns = seen
            self._heads = [self._head(column, is_first=not number) for number, column in enumerate(seen)]

    def _head(self, column: bytes, *, is_first: bool) -> bytes:
        """Return the bytes from the end of the previous value to the length of the column's value."""
        own = _BEGIN + _COLUMN + _U32.pack(len(column)) + column + _VALUE
        return own if is_first else _TAIL + own


class CompactPutsShape(PutsShape):
    """A ``PutsShape`` of the compact protocol."""

    __slots__ = ()

    def take_row(self, buf: bytes, pos: int, end: int, count: int) -> tuple[SentPuts | None, int]:
        heads = self._heads
        if count != len(heads):
            return None, pos
        began, values = pos, []
        for head in heads:
            at = pos + len(head)
            if at + _LONGEST_LENGTH > end or buf[pos:at] != head:
                return None, began
            length = buf[at]
            value = at + 1
            if length >= 0x80:
                length = length & 0x7F | (buf[value] & 0x7F) << 7
                if buf[value] >= 0x80:
                    if buf[value + 1] >= 0x80:
                        return None, began  # 2 MiB and more
                    length |= buf[value + 1] << 14
                    value += 1
                value += 1
            pos = value + length
            values.append(buf[value:pos])
        if pos + _COMPACT_TAIL_BYTES > end or buf[pos : pos + _COMPACT_TAIL_BYTES] != _COMPACT_TAIL:
            return None, began
        return SentPuts(self._columns, values), pos + _COMPACT_TAIL_BYTES

    def _head(self, column: bytes, *, is_first: bool) -> bytes:
        own = _COMPACT_BEGIN + _COMPACT_BINARY + varint(len(column)) + column + _COMPACT_BINARY
        return own if is_first else _COMPACT_TAIL + own

"""(pure) Kafka's messages: bytes to values and back, as the tables of ``schemas`` say.

    frame     := size:i32 request                                                             big-endian
    request   := api:i16 version:i16 correlation:i32 client:i16-string tags? fields           tags: flexible versions
    answer    := correlation:i32 tags? fields      ApiVersions: without tags, as its client may not know the version
    string    := size:i16 byte*          null: size -1         flexible: uvarint(size + 1) byte*, null: 0
    bytes     := size:i32 byte*          null: size -1         flexible: uvarint(size + 1) byte*, null: 0
    array     := count:i32 element*      null: count -1        flexible: uvarint(count + 1) element*, null: 0
    struct    := field* tags?
    tags      := uvarint(count) (uvarint(tag) uvarint(size) byte*)*
    uvarint   := 7 bits a byte, the lowest first, bit 8: more follow; at most 5 bytes

    00 12 00 00 00 00 00 07 00 01 61      ApiVersions, version 0, correlation 7, of client "a"

Invariants:
    I1. A size or count is not believed: no more is taken than there is, and a count is at most the bytes that are left.
    I2. A message has at most VALUES values, whatever its size.
    I3. Bytes behind the last field are an error: client and server disagree about the fields.

A struct is a dict by field name.  A field that a version lacks has its default when it is read, and is left out when it
is written.  Unknown tags are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from columnar.kafka.schemas import APIS, Api, Array, Field, Kind

VALUES: Final = 200_000  # of one message
CLIENT_CHARACTERS: Final = 1_000  # of a client's name that are kept
_HEAD: Final = Struct(">hhi")
_I32: Final = Struct(">i")
_NUMBERS: Final = {name: Struct(form) for name, form in
                   (("bool", ">?"), ("int8", ">b"), ("int16", ">h"), ("int32", ">i"), ("int64", ">q"))}  # fmt: skip
_UUID_BYTES: Final = 16
_UVARINT_BYTES: Final = 5

Values = dict[str, Any]


class BadMessage(Exception):
    """Bytes that are no message of Kafka's protocol."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a request."""

    api: int
    version: int
    correlation: int
    client: str
    at: int  # where its fields begin


class _Cursor:
    """A place in a message that is read."""

    __slots__ = ("at", "data", "left")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.left = VALUES

    def take_bytes(self, size: int) -> bytes:
        at = self.at
        end = at + size
        if size < 0 or end > len(self.data):
            raise BadMessage(f"{size} bytes are announced at {at}, and {len(self.data) - at} are there")
        self.at = end
        return self.data[at:end]

    def number(self, form: Struct) -> Any:
        at = self.at
        if at + form.size > len(self.data):
            raise BadMessage(f"the message ends within a number at {at}")
        self.at = at + form.size
        return form.unpack_from(self.data, at)[0]

    def uvarint(self) -> int:
        value = shift = 0
        for byte in self.data[self.at : self.at + _UVARINT_BYTES]:
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise BadMessage(f"no number of variable length ends at {self.at}")

    def count(self, count: int) -> int:
        self.left -= count
        if count > len(self.data) - self.at or self.left < 0:
            raise BadMessage(f"an array of {count} elements does not fit the message")
        return count

    def skip_tags(self) -> None:
        for _ in range(self.count(self.uvarint())):
            self.uvarint()
            self.take_bytes(self.uvarint())


_Read = Callable[[_Cursor], Any]
_Write = Callable[[bytearray, Any], None]


# --- requests, as the server sees them -----------------------------------------------------------------------


def read_head(frame: bytes) -> Head:
    """Read the head of a request, whatever its API and version are.  Raises BadMessage."""
    if len(frame) < _HEAD.size:
        raise BadMessage(f"a request has {_HEAD.size} bytes at least, and this one {len(frame)}")
    number, version, correlation = _HEAD.unpack_from(frame)
    cursor = _Cursor(frame, _HEAD.size)
    client = _read_string(cursor, is_flexible=False)
    api = APIS.get(number)
    if api is not None and api.serves(version) and version >= api.flexible:
        cursor.skip_tags()
    return Head(number, version, correlation, (client or "")[:CLIENT_CHARACTERS], cursor.at)


def read_fields(api: Api, version: int, frame: bytes, at: int) -> Values:
    """Read the fields of a request behind its head.  Raises BadMessage."""
    cursor = _Cursor(frame, at)
    values: Values = _struct_reader(api.request, version, version >= api.flexible)(cursor)
    if cursor.at != len(frame):
        raise BadMessage(f"{len(frame) - cursor.at} bytes are left behind the last field")
    return values


def answer_frame(api: Api, version: int, correlation: int, values: Values) -> bytearray:
    """Return the frame of an answer."""
    is_flexible = version >= api.flexible
    out = bytearray(_I32.size) + _I32.pack(correlation)
    if is_flexible and not api.has_plain_head:
        out.append(0)
    _struct_writer(api.response, version, is_flexible)(out, values)
    _I32.pack_into(out, 0, len(out) - _I32.size)
    return out


# --- the other direction, for clients and tests --------------------------------------------------------------


def request_frame(api: Api, version: int, correlation: int, client: str, values: Values) -> bytearray:
    is_flexible = version >= api.flexible
    out = bytearray(_I32.size) + _HEAD.pack(api.number, version, correlation)
    _write_string(out, client, is_flexible=False)
    if is_flexible:
        out.append(0)
    _struct_writer(api.request, version, is_flexible)(out, values)
    _I32.pack_into(out, 0, len(out) - _I32.size)
    return out


def read_answer(api: Api, version: int, answer: bytes) -> tuple[int, Values]:
    """Return correlation and fields of an answer, without its size.  Raises BadMessage."""
    cursor = _Cursor(answer)
    is_flexible = version >= api.flexible
    correlation = cursor.number(_I32)
    if is_flexible and not api.has_plain_head:
        cursor.skip_tags()
    values = _struct_reader(api.response, version, is_flexible)(cursor)
    if cursor.at != len(answer):
        raise BadMessage(f"{len(answer) - cursor.at} bytes are left behind the last field")
    return correlation, values


# --- readers -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)  # every struct and version that there is
def _struct_reader(fields: tuple[Field, ...], version: int, is_flexible: bool) -> _Read:
    present = [(one.name, _reader(one.kind, version, is_flexible, one)) for one in fields if one.is_in(version)]
    absent = {one.name: one.value_without() for one in fields if not one.is_in(version)}

    def read(cursor: _Cursor) -> Values:
        values = dict(absent)
        for name, reader in present:
            values[name] = reader(cursor)
        if is_flexible:
            cursor.skip_tags()
        return values

    return read


def _reader(kind: Kind, version: int, is_flexible: bool, field: Field) -> _Read:
    may_be_null = version >= field.nullable
    if isinstance(kind, Array):
        return _array_reader(_reader(kind.of, version, is_flexible, field.element()), is_flexible, may_be_null)
    if isinstance(kind, tuple):
        return _struct_reader(kind, version, is_flexible)
    if kind == "string":
        return lambda cursor: _not_null(_read_string(cursor, is_flexible=is_flexible), may_be_null, "")
    if kind == "bytes":
        return lambda cursor: _not_null(_read_bytes(cursor, is_flexible=is_flexible), may_be_null, b"")
    if kind == "uuid":
        return lambda cursor: cursor.take_bytes(_UUID_BYTES)
    form = _NUMBERS[kind]
    return lambda cursor: cursor.number(form)


def _array_reader(element: _Read, is_flexible: bool, may_be_null: bool) -> _Read:
    def read(cursor: _Cursor) -> Any:
        count = cursor.uvarint() - 1 if is_flexible else cursor.number(_I32)
        if count < 0:
            return _not_null(None, may_be_null, [])
        return [element(cursor) for _ in range(cursor.count(count))]

    return read


def _read_string(cursor: _Cursor, *, is_flexible: bool) -> str | None:
    size = cursor.uvarint() - 1 if is_flexible else cursor.number(_NUMBERS["int16"])
    if size < 0:
        return None
    try:
        return cursor.take_bytes(size).decode()
    except UnicodeDecodeError as error:
        raise BadMessage(f"a string is not UTF-8: {error.reason}") from None


def _read_bytes(cursor: _Cursor, *, is_flexible: bool) -> bytes | None:
    size = cursor.uvarint() - 1 if is_flexible else cursor.number(_I32)
    return cursor.take_bytes(size) if size >= 0 else None


def _not_null(value: Any, may_be_null: bool, empty: Any) -> Any:
    """Return the value; Kafka's own readers take a null for nothing where a client may not send one."""
    return empty if value is None and not may_be_null else value


# --- writers -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1_000)
def _struct_writer(fields: tuple[Field, ...], version: int, is_flexible: bool) -> _Write:
    present = [
        (one.name, _writer(one.kind, version, is_flexible), one.value_without()) for one in fields if one.is_in(version)
    ]

    def write(out: bytearray, values: Values) -> None:
        for name, writer, absent in present:
            writer(out, values.get(name, absent))
        if is_flexible:
            out.append(0)

    return write


def _writer(kind: Kind, version: int, is_flexible: bool) -> _Write:
    if isinstance(kind, Array):
        return _array_writer(_writer(kind.of, version, is_flexible), is_flexible)
    if isinstance(kind, tuple):
        return _struct_writer(kind, version, is_flexible)
    if kind == "string":
        return lambda out, value: _write_string(out, value, is_flexible=is_flexible)
    if kind == "bytes":
        return lambda out, value: _write_bytes(out, value, is_flexible=is_flexible)
    if kind == "uuid":
        return lambda out, value: out.extend(value)
    form = _NUMBERS[kind]
    return lambda out, value: out.extend(form.pack(value))


def _array_writer(element: _Write, is_flexible: bool) -> _Write:
    def write(out: bytearray, values: Any) -> None:
        count = -1 if values is None else len(values)
        if is_flexible:
            _write_uvarint(out, count + 1)
        else:
            out += _I32.pack(count)
        for value in values or ():
            element(out, value)

    return write


def _write_string(out: bytearray, value: str | None, *, is_flexible: bool) -> None:
    data = value.encode() if value is not None else b""
    size = -1 if value is None else len(data)
    if is_flexible:
        _write_uvarint(out, size + 1)
    else:
        out += _NUMBERS["int16"].pack(size)
    out += data


def _write_bytes(out: bytearray, value: bytes | None, *, is_flexible: bool) -> None:
    size = -1 if value is None else len(value)
    if is_flexible:
        _write_uvarint(out, size + 1)
    else:
        out += _I32.pack(size)
    out += value or b""


def _write_uvarint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)

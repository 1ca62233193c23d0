"""(pure) Keys of groups, made from a row: an extractor makes each part of the key.

    extractor := f:q                     the cell's value
               | row                     the row key
               | row[0:8]                a slice of the row key, as in Python; row[8:] and row[-4:] as well
               | row.split(':', 1)       piece 1 of the row key, split at the separator; 0 is the first, -1 the last
               | each f:                 a group for each column of the family: its qualifier
               | each f:q split ','      a group for each piece of the value
               | hour(f:q) | day(f:q)    of a time in milliseconds (``number_cells``): 2026-11-24T02, 2026-11-24, in UTC
               | key[0]                  if the source is a view: the first part of its group's key
               | 'all'                   a constant: one group for all rows of the source

A row without the cell has no key, and so no group.  A row whose key cannot be read (a part is missing, empty or not a
time) raises ``Unreadable``: the row contributes nothing, and is counted as rejected.
``key_parts`` joins several parts to one key.  An image of a row maps its columns to their values.

Knows nothing of views and of how images are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from math import prod
from typing import Final, Protocol

from columnar.errors import DamagedData, IllegalArgument, abbreviate
from columnar.limits import MIB, ROW_KEY_BYTES
from columnar.model.column_text import COLUMN, QUOTED, bytes_of, column_of, column_text, family_of, unquoted
from columnar.model.key_parts import joined, parted
from columnar.model.number_cells import Number, Unreadable

GROUPS_OF_A_ROW: Final = 10_000  # each is a write into another row
CONSTANT_BYTES: Final = 1_000
PIECES_OF_A_CELL: Final = 100_000  # equal pieces count too
KEYS_BYTES: Final = 16 * MIB  # all keys of a row together
Image = Mapping[bytes, bytes]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Extractor(Protocol):
    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        """Return any number of parts; the row is in a group for each.  Raises Unreadable."""

    @property
    def columns(self) -> tuple[bytes, ...]:
        """The columns that the extractor reads; here ``f:`` means the column with an empty qualifier."""

    @property
    def families(self) -> tuple[bytes, ...]:
        """The families of which the extractor reads every column."""


@dataclass(frozen=True, slots=True)
class _OfRow:
    @property
    def columns(self) -> tuple[bytes, ...]:
        return ()

    @property
    def families(self) -> tuple[bytes, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class _OfCell:
    column: bytes

    @property
    def columns(self) -> tuple[bytes, ...]:
        return (self.column,)

    @property
    def families(self) -> tuple[bytes, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Cell(_OfCell):
    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        value = image.get(self.column)
        if value is None:
            return ()
        return (value or _there(value, column_text(self.column)),)


@dataclass(frozen=True, slots=True)
class Row(_OfRow):
    start: int | None = None
    stop: int | None = None

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        return (_there(row[self.start : self.stop], "the slice of the row key"),)


@dataclass(frozen=True, slots=True)
class RowPiece(_OfRow):
    separator: bytes
    index: int

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        pieces = row.split(self.separator)
        if not -len(pieces) <= self.index < len(pieces):
            raise Unreadable(f"row {abbreviate(row)} has no piece {self.index} between {abbreviate(self.separator)}")
        return (_there(pieces[self.index], "the piece of the row key"),)


@dataclass(frozen=True, slots=True)
class EachColumn:
    family: bytes

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        start = self.family + b":"
        found = [column[len(start) :] for column in image if column.startswith(start)]
        return tuple(_there(qualifier, "a qualifier") for qualifier in sorted(found))

    @property
    def columns(self) -> tuple[bytes, ...]:
        return ()

    @property
    def families(self) -> tuple[bytes, ...]:
        return (self.family,)


@dataclass(frozen=True, slots=True)
class EachPiece(_OfCell):
    separator: bytes

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        value = image.get(self.column, b"")
        if len(value) > PIECES_OF_A_CELL and value.count(self.separator) >= PIECES_OF_A_CELL:
            raise Unreadable(f"{column_text(self.column)} has more than {PIECES_OF_A_CELL} pieces")
        pieces = value.split(self.separator)
        return tuple(sorted({piece for piece in pieces if piece}))


@dataclass(frozen=True, slots=True)
class Time(_OfCell):
    shape: str  # of strftime

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        time_ms = Number(self.column).value(image)
        if time_ms is None:
            return ()
        try:
            moment = _EPOCH + timedelta(milliseconds=time_ms)
        except OverflowError as error:
            raise Unreadable(f"{column_text(self.column)}: {time_ms} is no time in milliseconds") from error
        return (f"{moment.year:04}{moment:{self.shape}}".encode(),)  # %Y has no zeros before the year 1000


@dataclass(frozen=True, slots=True)
class KeyPart(_OfRow):
    index: int
    count: int  # how many parts the keys of the view have

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        try:
            return (_there(parted(row, self.count)[self.index], "the part of the key"),)
        except DamagedData as error:
            raise Unreadable(str(error)) from error


@dataclass(frozen=True, slots=True)
class Constant(_OfRow):
    value: bytes

    def parts(self, row: bytes, image: Image) -> tuple[bytes, ...]:
        return (self.value,)


def _there(part: bytes, what: str) -> bytes:
    if not part:
        raise Unreadable(f"{what} is empty")
    return part


def keys_of(extractors: tuple[Extractor, ...], row: bytes, image: Image, last: tuple[bytes, ...] = ()) -> list[bytes]:
    """Return the keys that the extractors make from a row, each once; every key ends with the parts ``last``.

    Raises Unreadable.
    """
    parts = [extractor.parts(row, image) for extractor in extractors]
    is_plain = len(parts) == 1 and not last
    if (len(parts[0]) if is_plain else prod(map(len, parts))) > GROUPS_OF_A_ROW:
        raise Unreadable(f"row {abbreviate(row)} would be in more than {GROUPS_OF_A_ROW} groups")
    keys: list[bytes] = []
    left = KEYS_BYTES
    for one in parts[0] if is_plain else product(*parts):  # each key is checked when made: all together may be huge
        key = one if isinstance(one, bytes) else joined((*one, *last))
        left -= len(key)
        if len(key) > ROW_KEY_BYTES:
            raise Unreadable(f"row {abbreviate(row)} makes a key of more than {ROW_KEY_BYTES} bytes")
        if left < 0:
            raise Unreadable(f"row {abbreviate(row)} makes keys of more than {KEYS_BYTES} bytes")
        keys.append(key)
    return keys


# --- texts -------------------------------------------------------------------------------------------

_FORMS: Final = (
    "write family:qualifier, row, row[0:8], row.split(':', 1), each family:, each family:qualifier split ',', "
    "hour(family:qualifier), day(family:qualifier), key[0] of a view, or a constant in quotes, as 'all'"
)
_Reader = Callable[[re.Match[str], int], Extractor]
_TIMES: Final = {"hour": "-%m-%dT%H", "day": "-%m-%d"}


def _number(text: str) -> int | None:
    return int(text) if text else None


def _key_part(match: re.Match[str], key_parts: int) -> Extractor:
    index = int(match[1])
    if not key_parts:
        raise IllegalArgument(f"key '{match[0]}': the source is a table, not a view; write row or row.split(':', 0)")
    if index >= key_parts:
        raise IllegalArgument(f"key '{match[0]}': keys of that view have {key_parts} parts, from key[0] on")
    return KeyPart(index, key_parts)


def _piece(match: re.Match[str], key_parts: int) -> Extractor:
    return RowPiece(_separator(match[1]), int(match[2]))


def _constant(match: re.Match[str], _key_parts: int) -> Extractor:
    value = unquoted(match[0])
    if not 0 < len(value) <= CONSTANT_BYTES:
        raise IllegalArgument(f"a constant key has 1 to {CONSTANT_BYTES} bytes, not {len(value)}, as 'all'")
    return Constant(value)


def _separator(quoted: str) -> bytes:
    separator = unquoted(quoted)
    if not separator:
        raise IllegalArgument("a separator of a key has a character at least")
    return separator


_READERS: Final[tuple[tuple[re.Pattern[str], _Reader], ...]] = (
    (re.compile(r"row"), lambda match, _: Row()),
    (re.compile(r"row\[(-?\d*):(-?\d*)\]"), lambda match, _: Row(_number(match[1]), _number(match[2]))),
    (re.compile(rf"row\.split\(\s*({QUOTED})\s*,\s*(-?\d+)\s*\)"), _piece),
    (re.compile(r"key\[(\d+)\]"), _key_part),
    (re.compile(r"""each\s+([^\s:=!<>()\[\]'",]+):"""), lambda match, _: EachColumn(bytes_of(match[1]))),
    (
        re.compile(rf"each\s+({COLUMN})\s+split\s+({QUOTED})"),
        lambda match, _: EachPiece(column_of(match[1]), _separator(match[2])),
    ),
    (
        re.compile(rf"(hour|day)\(\s*({COLUMN})\s*\)"),
        lambda match, _: Time(column_of(match[2]), _TIMES[match[1]]),
    ),
    (re.compile(QUOTED), _constant),
    (re.compile(COLUMN), lambda match, _: Cell(column_of(match[0]))),
)


def extractor_of(text: str, key_parts: int = 0) -> Extractor:
    """Parse an extractor.  ``key_parts`` is the number of parts in the source's keys if it is a view, otherwise 0.

    Raises IllegalArgument, with the correct forms, for any other text.
    """
    for pattern, read in _READERS:
        match = pattern.fullmatch(text.strip())
        if match is not None:
            try:
                return read(match, key_parts)
            except ValueError as error:  # a number of thousands of digits
                raise IllegalArgument(f"key '{text[:100]}': {error}") from error
    raise IllegalArgument(f"key '{text}': {_FORMS}")


def families_read(extractor: Extractor) -> set[bytes]:
    return {*extractor.families, *map(family_of, extractor.columns)}

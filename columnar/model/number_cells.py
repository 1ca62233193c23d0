"""(pure) Numbers in cells, and the order bytes by which the rows of a group are sorted.

    number := f:q | number(f:q)      decimal text of a whole number, or else an 8-byte counter
            | counter(f:q)           an 8-byte counter, as HBase's increments write it
            | decimal(f:q)           decimal text of a whole number
            | decimal(f:q, SCALE)    decimal text; 12.5 with scale 2 is 1250
    order  := number [asc|desc] | text(f:q) [asc|desc]

    order bytes   of a number: eight bytes, big-endian, the sign bit inverted; all bits inverted for desc
                  of a text: its bytes; for desc escaped and ended by 00 01 (``key_parts``), then all bits inverted

``number(f:q)`` would read a counter as text if its eight bytes are all digits.  Such a counter is above 3.4 * 10^18;
``counter(f:q)`` reads it correctly.

Knows nothing of the totals to which the numbers are added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument, abbreviate
from columnar.model.column_text import COLUMN, column_of, column_text
from columnar.model.key_parts import SEPARATOR, escaped, unescaped

HIGHEST_SCALE: Final = 18
ORDER_TEXT_BYTES: Final = 4096
_DECIMAL: Final = re.compile(rb"([+-]?)(\d{1,40})(?:\.(\d{1,40}))?")
_NUMBER: Final = re.compile(rf"(?:(number|counter|decimal)\(\s*)?({COLUMN})(?:\s*,\s*(\d+)\s*)?(\s*\))?")
_TEXT: Final = re.compile(rf"text\(\s*({COLUMN})\s*\)")
_TURNED: Final = bytes(range(255, -1, -1))
_LOWEST: Final = -(1 << 63)
_SHORT_DIGITS: Final = 18  # any number of 18 digits fits into 64 bits


class Unreadable(Exception):
    """A row's cells do not have the form that a definition needs: the row contributes nothing and is counted."""


def decimal_of(value: bytes, scale: int = 0) -> int:
    """Return ``value`` times ten to the ``scale``.

    Raises Unreadable if the value is no decimal number, has more decimal places or does not fit into 64 bits.
    """
    match = _DECIMAL.fullmatch(value)
    if match is None:
        raise Unreadable(f"'{abbreviate(value)}' is no decimal number")
    sign, whole, places = match[1], match[2], (match[3] or b"").rstrip(b"0")
    if len(places) > scale:
        raise Unreadable(f"'{abbreviate(value)}' has more than {scale} decimal places")
    number = int(whole + places.ljust(scale, b"0"))
    return _bounded(-number if sign == b"-" else number)


def _bounded(number: int) -> int:
    if not _LOWEST <= number < -_LOWEST:
        raise Unreadable(f"{number} does not fit into 64 bits")
    return number


@dataclass(frozen=True, slots=True)
class Number:
    column: bytes
    form: str = "number"  # or counter, decimal
    scale: int = 0

    def read(self, value: bytes) -> int:
        """Read a cell's value.  Raises Unreadable if the value is no number of this form."""
        if value.isdigit() and len(value) <= _SHORT_DIGITS and not self.scale and self.form != "counter":
            return int(value)  # the usual case, without the pattern
        is_text = self.form == "decimal" or (self.form == "number" and _DECIMAL.fullmatch(value))
        if is_text:
            return decimal_of(value, self.scale)
        if len(value) != 8:
            raise Unreadable(f"{column_text(self.column)}: '{abbreviate(value)}' is no number")
        return int.from_bytes(value, "big", signed=True)

    def value(self, image: Mapping[bytes, bytes]) -> int | None:
        """Return the number in the row's cell, or None if the row lacks the cell.  Raises Unreadable."""
        held = image.get(self.column)
        return None if held is None else self.read(held)


@dataclass(frozen=True, slots=True)
class Order:
    """The value by which the rows of a group are sorted."""

    by: Number | bytes  # a number, or a column whose text counts
    is_descending: bool = False

    @property
    def column(self) -> bytes:
        return self.by if isinstance(self.by, bytes) else self.by.column

    def key(self, image: Mapping[bytes, bytes]) -> bytes | None:
        """Return the row's order bytes, or None if the row lacks the cell and so has no place in the order."""
        held = image.get(self.column)
        if held is None:
            return None
        if isinstance(self.by, Number):
            plain = (self.by.read(held) - _LOWEST).to_bytes(8, "big")
        elif len(held) > ORDER_TEXT_BYTES:
            raise Unreadable(f"{column_text(self.by)}: a text of {len(held)} bytes orders nothing")
        else:
            plain = escaped(held) + SEPARATOR if self.is_descending else held
        return plain.translate(_TURNED) if self.is_descending else plain

    def number(self, key: bytes) -> int | None:
        """Return the number from which the order bytes were made, or None if this is an order by text."""
        if not isinstance(self.by, Number):
            return None
        return int.from_bytes(key.translate(_TURNED) if self.is_descending else key, "big") + _LOWEST

    def text(self, key: bytes) -> bytes:
        """Return the text from which the order bytes were made."""
        if not self.is_descending:
            return key
        return unescaped(key.translate(_TURNED).removesuffix(SEPARATOR))


def number_of(text: str) -> Number:
    """Parse a number's definition.  Raises IllegalArgument, with the correct form, for any other text."""
    match = _NUMBER.fullmatch(text.strip())
    form = match[1] if match else None
    if match is None or bool(form) != bool(match[4]) or (match[3] is not None and form != "decimal"):
        raise IllegalArgument(
            f"number '{text}': write family:qualifier, counter(family:qualifier) or decimal(family:qualifier, scale)"
        )
    digits = match[3] or "0"
    scale = int(digits) if len(digits) <= _SHORT_DIGITS else HIGHEST_SCALE + 1
    if scale > HIGHEST_SCALE:
        raise IllegalArgument(f"number '{text}': a scale is 0 to {HIGHEST_SCALE}")
    return Number(column_of(match[2]), form or "number", scale)


def order_of(text: str) -> Order:
    """Parse an order's definition.  Raises IllegalArgument, with the correct form, for any other text."""
    bare, _, direction = text.strip().rpartition(" ")
    if direction not in ("asc", "desc"):
        bare, direction = text.strip(), "asc"
    match = _TEXT.fullmatch(bare.strip())
    if match is not None:
        return Order(column_of(match[1]), direction == "desc")
    try:
        return Order(number_of(bare), direction == "desc")
    except IllegalArgument as error:
        raise IllegalArgument(f"order '{text}': write a number or text(family:qualifier), then asc or desc") from error

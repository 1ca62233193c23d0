"""Values as a person types them: text, the bytes of a file (``@FILE``) or of standard input (``-``), numbers, hex.

text      \\xNN is that byte, everything else its UTF-8; a value that begins with @ or is - alone: \\x40, \\x2D
counter   a whole number, stored in the form that increments need: eight bytes, big endian, two's complement
hex       pairs of hexadecimal digits
"""

from __future__ import annotations

import re
import sys
from typing import Final, Literal

from columnar.errors import IllegalArgument
from columnar.limits import CELL_BYTES
from columnar.shell.text import column_and_value, typed

Form = Literal["text", "counter", "hex"]
FORMS: Final = ("text", "counter", "hex")
COUNTER_BYTES: Final = 8


class Values:
    """The values of one command; standard input can be used for one value only."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._has_read = False

    def cell(self, text: str) -> tuple[bytes, bytes]:
        """``FAMILY:QUALIFIER=VALUE``."""
        column, value = column_and_value(text)
        return column, self.value(value)

    def value(self, text: str) -> bytes:
        if self._form == "counter":
            return counter_of(text)
        if self._form == "hex":
            return _hex_of(text)
        if text == "-":
            return self._standard_input()
        return _file(text[1:]) if text.startswith("@") else typed(text)

    def _standard_input(self) -> bytes:
        if self._has_read:
            raise IllegalArgument("standard input is one value: write - once")
        self._has_read = True
        return _bounded(sys.stdin.buffer.read(CELL_BYTES + 1), "standard input")


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return _bounded(file.read(CELL_BYTES + 1), path)
    except OSError as error:
        raise IllegalArgument(
            f"cannot read '{path}': {error.strerror}; a value that begins with @ is typed as \\x40..."
        ) from None


def _bounded(data: bytes, what: str) -> bytes:
    if len(data) > CELL_BYTES:
        raise IllegalArgument(f"{what} holds more than {CELL_BYTES} bytes, which is what a cell takes")
    return data


def counter_of(text: str) -> bytes:
    if re.fullmatch(r"[+-]?\d{1,19}", text, re.ASCII) and -(1 << 63) <= int(text) < 1 << 63:
        return int(text).to_bytes(COUNTER_BYTES, "big", signed=True)
    raise IllegalArgument(f"'{text}' is no counter: write a whole number of 64 bits")


def number_of(value: bytes) -> int | None:
    """Return the number that ``value`` is to an increment; None if the increment would be refused."""
    return int.from_bytes(value, "big", signed=True) if len(value) == COUNTER_BYTES else None


def _hex_of(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise IllegalArgument(f"'{text}' is no hex: write pairs of hexadecimal digits") from None

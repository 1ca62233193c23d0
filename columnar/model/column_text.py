r"""(pure) Columns and values as people write them in definitions of views and triggers.

    column  := family:qualifier      the qualifier may be empty; blanks, quotes, commas, brackets and = ! < > as \xNN
    quoted  := '...'  or "..."       any characters except the quote that encloses them
    \xNN    stands for a byte anywhere; any other character stands for its bytes in UTF-8, as a terminal sends them

Knows nothing of what a column is used for.
"""

from __future__ import annotations

import re
from typing import Final

from columnar.errors import IllegalArgument, printable

COLUMN: Final = r"""[^\s:=!<>()\[\]'",]+:[^\s=!<>()\[\]'",]*"""
QUOTED: Final = r"""'[^']*'|"[^"]*\""""
_COLUMN: Final = re.compile(COLUMN)
_BYTE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def bytes_of(text: str) -> bytes:
    return _BYTE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode(errors="surrogateescape"))


def unquoted(text: str) -> bytes:
    return bytes_of(text[1:-1])


def column_of(text: str) -> bytes:
    """Return the column that ``text`` denotes.  Raises IllegalArgument if the text denotes no column."""
    if not _COLUMN.fullmatch(text):
        raise IllegalArgument(
            rf"column '{text}': write it as family:qualifier, with blanks, quotes, commas, brackets and = ! < > as \xNN"
        )
    return bytes_of(text)


def family_of(column: bytes) -> bytes:
    return column.partition(b":")[0]


def column_text(column: bytes) -> str:
    """Return the text that ``column_of`` reads as this column."""
    plain = printable(column.partition(b":")[2])
    escaped = "".join(f"\\x{ord(c):02X}" if c in " =!<>()[]'\"," else c for c in plain)
    return f"{printable(family_of(column))}:{escaped}"

r"""(pure) Groups of rows: which rows of a table belong together, by the table attribute ROW_GROUP.

    length:8     the group of a row is its first 8 bytes
    until:/      the group of a row is the row up to its first ``/``, with the ``/``

``until`` takes a delimiter of several bytes, too; ``\xNN`` in the attribute's text is one byte.  A row with fewer bytes
than ``length``, or without the delimiter, is a group by itself.

Invariants:
    I1. A group is the first row that it may hold, and the prefix of all its rows, unless it is of one row.
    I2. The rows of a group are neighbours: a row between two rows of a group is of the group.
    I3. A region that begins with a group (``group_of(start) == start``) cuts no group.

Knows nothing of regions, and of the writes that groups are for (``regions.write``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from columnar.errors import IllegalArgument
from columnar.limits import GROUP_DELIMITER_BYTES, ROW_KEY_BYTES

FORM: Final = "length:8 or until:/, what the rows of a group begin with"
_BYTE: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class RowGroups:
    """The rule of one table: a length, or without it (0) a delimiter."""

    length: int
    delimiter: bytes = b""

    def group_of(self, row: bytes) -> bytes:
        """Return the group of the row, which is also the first row that the group may hold (I1)."""
        if self.length:
            return row[: self.length]
        at = row.find(self.delimiter)
        return row if at < 0 else row[: at + len(self.delimiter)]

    def is_one_row(self, group: bytes) -> bool:
        """Tell whether the group can only hold one row: the row is too short, or has no delimiter."""
        return len(group) < self.length if self.length else self.delimiter not in group

    def end_of(self, group: bytes) -> bytes:
        """Return the first row above every row of the group; empty if there is none."""
        if self.is_one_row(group):
            return group + b"\x00"
        bare = group.rstrip(b"\xff")
        return bare[:-1] + bytes((bare[-1] + 1,)) if bare else b""

    def cut_by(self, starts: Iterable[bytes]) -> bytes | None:
        """Return the first of the regions' first rows that cuts a group, or None (I3)."""
        return next((start for start in starts if self.group_of(start) != start), None)

    def __str__(self) -> str:
        """Return the attribute's text in its canonical form."""
        if self.length:
            return f"length:{self.length}"
        return "until:" + "".join(
            chr(byte) if 0x20 < byte < 0x7F and byte != 0x5C else f"\\x{byte:02X}" for byte in self.delimiter
        )


@lru_cache(maxsize=256)
def groups_of(text: str) -> RowGroups:
    """Return the rule that the attribute's text stands for.  Raises IllegalArgument."""
    kind, _, rest = text.partition(":")
    if (
        kind.lower() == "length"
        and rest.isascii()
        and rest.isdigit()
        and len(rest) <= 5
        and 0 < int(rest) <= ROW_KEY_BYTES
    ):
        return RowGroups(int(rest))
    if kind.lower() == "until" and rest:
        delimiter = _BYTE.sub(lambda found: bytes((int(found[1], 16),)), rest.encode("utf-8", "surrogateescape"))
        if len(delimiter) <= GROUP_DELIMITER_BYTES:
            return RowGroups(0, delimiter)
        raise IllegalArgument(f"has a delimiter of {len(delimiter)} bytes, at most {GROUP_DELIMITER_BYTES} go")
    raise IllegalArgument(f"is length:N, with N from 1 to {ROW_KEY_BYTES}, or until:DELIMITER, not '{text[:80]}'")

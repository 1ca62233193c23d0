"""(pure) A cell, and the names of columns and rows.

A column is written ``family:qualifier``, split at the first colon; ``family`` alone means
the whole family and ``family:`` the empty qualifier (HBase's ``CellUtil.parseColumn``).

Knows nothing of the storage (``columnar.storage.layout``) and the transfer of cells.
"""

from __future__ import annotations

from typing import NamedTuple

from columnar.errors import IllegalArgument, NotSent, abbreviate
from columnar.limits import ROW_KEY_BYTES


class Cell(NamedTuple):
    """A version of a column of a row.  The cell does not name its row: the caller knows it."""

    family: bytes
    qualifier: bytes
    timestamp: int  # milliseconds
    value: bytes

    @property
    def column(self) -> bytes:
        return self.family + b":" + self.qualifier


def split_column(name: bytes) -> tuple[bytes, bytes | None]:
    """Return family and qualifier of ``cf``, ``cf:`` or ``cf:q``; for ``cf``, the whole family, the qualifier is None.

    The family may be empty; no table has such a family.
    """
    family, colon, qualifier = name.partition(b":")
    return family, qualifier if colon else None


def parse_column(name: bytes) -> tuple[bytes, bytes | None]:
    """Split a column as ``split_column`` does.  As HBase does for a put, raises IllegalArgument for an empty family."""
    family, qualifier = split_column(name)
    if not family:
        raise IllegalArgument(f"column '{abbreviate(name)}' has no family; write it as family:qualifier")
    return family, qualifier


def checked_row(row: bytes | None) -> bytes:
    """Return the row key.  Raises NotSent if the key is None, IllegalArgument if the key is empty or too long."""
    if not row:
        problem = IllegalArgument if row is not None else NotSent
        raise problem("row key is empty; a row needs at least one byte")
    if len(row) > ROW_KEY_BYTES:
        raise IllegalArgument(f"row key has {len(row)} bytes, at most {ROW_KEY_BYTES} are allowed")
    return row

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
    """A version of a column of a row; the row is known from the cell's place."""

    family: bytes
    qualifier: bytes
    timestamp: int  # milliseconds
    value: bytes

    @property
    def column(self) -> bytes:
        return self.family + b":" + self.qualifier


def split_column(name: bytes) -> tuple[bytes, bytes | None]:
    """Family and qualifier of ``cf`` (no qualifier: the whole family), ``cf:`` or ``cf:q``.

    An empty family is one that no table has.
    """
    family, colon, qualifier = name.partition(b":")
    return family, qualifier if colon else None


def parse_column(name: bytes) -> tuple[bytes, bytes | None]:
    """As ``split_column``; IllegalArgument when the family is empty, as HBase answers a put."""
    family, qualifier = split_column(name)
    if not family:
        raise IllegalArgument(f"column '{abbreviate(name)}' has no family; write it as family:qualifier")
    return family, qualifier


def checked_row(row: bytes | None) -> bytes:
    """A row key as it was sent; NotSent, or IllegalArgument for what can be no row's."""
    if not row:
        problem = IllegalArgument if row is not None else NotSent
        raise problem("row key is empty; a row needs at least one byte")
    if len(row) > ROW_KEY_BYTES:
        raise IllegalArgument(f"row key has {len(row)} bytes, at most {ROW_KEY_BYTES} are allowed")
    return row

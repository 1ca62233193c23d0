"""(pure) A cell, and the names of columns.

A column is written ``family:qualifier``, split at the first colon; ``family`` alone means
the whole family and ``family:`` the empty qualifier (HBase's ``CellUtil.parseColumn``).

Knows nothing of how cells are stored (``columnar.storage.layout``) or sent.
"""

from __future__ import annotations

from typing import NamedTuple

from columnar.errors import IllegalArgument, shown


class Cell(NamedTuple):
    """One version of one column of one row; the row is known from where the cell was found."""

    family: bytes
    qualifier: bytes
    timestamp: int  # milliseconds
    value: bytes

    @property
    def column(self) -> bytes:
        return self.family + b":" + self.qualifier


def parse_column(name: bytes) -> tuple[bytes, bytes | None]:
    """Family and qualifier of ``cf`` (no qualifier: the whole family), ``cf:`` or ``cf:q``.

    IllegalArgument when the family is empty.
    """
    family, colon, qualifier = name.partition(b":")
    if not family:
        raise IllegalArgument(f"column '{shown(name)}' has no family; write it as family:qualifier")
    return family, qualifier if colon else None

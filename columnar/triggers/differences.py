"""(pure) The difference of two images of a row: the keys that a change added, and those that it removed.

    of        b"f:author"                       the cell's value
              b"f:tags", split=b","             the pieces of its value
              b"f:"                             the qualifiers of the family
              "each f:tags split ','", "day(f:time)", ...     any key of ``model.extract``, as text

A row without such a key, or one that cannot be read, has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from columnar.model.extract import Cell, EachColumn, EachPiece, Extractor, extractor_of
from columnar.model.number_cells import Unreadable

Image = Mapping[bytes, bytes]


def added(of: bytes | str, split: bytes | str, row: bytes, old: Image, new: Image) -> tuple[bytes, ...]:
    """Keys that ``new`` has and ``old`` has not, ascending.  IllegalArgument: ``of`` is no key."""
    extractor = _extractor(of, split.encode() if isinstance(split, str) else split)
    return tuple(sorted(_keys(extractor, row, new) - _keys(extractor, row, old)))


@lru_cache(maxsize=256)
def _extractor(of: bytes | str, split: bytes) -> Extractor:
    column = of if isinstance(of, bytes) else b""
    if not column:
        extractor = extractor_of(str(of))
        if not split:
            return extractor
        if not isinstance(extractor, Cell):
            raise ValueError(f"only a column is split, not {of!r}")
        column = extractor.column
    family, _, qualifier = column.partition(b":")
    if split:
        return EachPiece(column, split)
    return Cell(column) if qualifier else EachColumn(family)


def _keys(extractor: Extractor, row: bytes, image: Image) -> set[bytes]:
    try:
        return set(extractor.parts(row, image))
    except Unreadable:
        return set()

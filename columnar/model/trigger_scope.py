"""(pure) The scope of a trigger's registration: the changes that count, and the images that come with them.

    columns    a change counts only if it touches one of these; a family stands for all its columns
    where      ... and only if the row meets all of these conditions after the change
    look       lookups: rows of other tables that are sent with the change; a key is made from the row and its image
    images     the columns that the three above name, as they were after the change, and before it if requested

A registration without columns is for all changes of its families, and its images hold these families as a whole.

Knows nothing of records, and of how rows and images are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument
from columnar.model.column_text import bytes_of
from columnar.model.condition_text import RowCondition, column_tested, condition_of
from columnar.model.extract import Cell, Constant, Extractor, Image, Row, RowPiece, Time, extractor_of
from columnar.model.number_cells import Unreadable

MOST_COLUMNS: Final = 100
MOST_CONDITIONS: Final = 16
MOST_LOOKUPS: Final = 4
LOOKUP_CELLS: Final = 1_000  # of a looked-up row; a function reads further cells in pages
_ONE_ROW: Final = (Cell, Row, RowPiece, Time, Constant)

Images = Mapping[bytes, frozenset[bytes] | None]  # family -> qualifiers; None: the whole family


@dataclass(frozen=True, slots=True)
class Lookup:
    name: str
    table: bytes
    key: Extractor

    def row(self, row: bytes, image: Image) -> bytes:
        """Return the key of the looked-up row; an empty key if it cannot be made from the changed row."""
        try:
            parts = self.key.parts(row, image)
        except Unreadable:
            return b""
        return parts[0] if parts else b""


@dataclass(frozen=True, slots=True)
class Scope:
    """The changes that count for a trigger, and their images.  Constant."""

    touched: Mapping[bytes, frozenset[bytes] | None]  # family -> qualifiers whose changes count; None: all
    conditions: tuple[RowCondition, ...]
    lookups: tuple[Lookup, ...]
    images: Images  # empty: none are requested
    tested: Images  # the part of ``images`` that conditions test

    def touches(self, family: bytes, qualifier: bytes | None) -> bool:
        """Tell whether a change of this column counts; a ``qualifier`` of None means that the family was deleted."""
        if family not in self.touched:
            return False
        wanted = self.touched[family]
        return wanted is None or qualifier is None or qualifier in wanted

    def matches_row(self, after: Image) -> bool:
        return all(condition.matches_cell(after.get(column_tested(condition))) for condition in self.conditions)

    def has_image_of(self, column: bytes) -> bool:
        """Tell whether the images have this column."""
        family, _, qualifier = column.partition(b":")
        wanted = self.images.get(family, frozenset())
        return wanted is None or qualifier in wanted


def scope_of(
    families: Iterable[str],
    columns: Sequence[str],
    where: Sequence[str],
    look: Sequence[tuple[str, str, str]],
    *,
    images: bool,
) -> Scope:
    """Make the scope from the texts of a registration.  Raises IllegalArgument, with the fault and its remedy."""
    named = [bytes_of_latin(text) for text in columns] or [bytes_of_latin(family) for family in families]
    touched = _by_family(map(family_and_qualifier, named))
    conditions = tuple(map(condition_of, where))
    looks = tuple(Lookup(name, table.encode(), _key_of(name, key)) for name, table, key in look)
    if not images and not conditions and not looks:
        return Scope(touched, conditions, looks, {}, {})
    tested = [_column(column_tested(condition)) for condition in conditions]
    read = [_column(column) for one in looks for column in one.key.columns]
    seen = _by_family([*tested, *read, *(map(family_and_qualifier, named) if images else ())])
    return Scope(touched, conditions, looks, seen, _by_family(tested))


def checked_scope(
    families: Sequence[str], columns: Sequence[str], where: Sequence[str], look: Sequence[tuple[str, str, str]]
) -> None:
    """Check the scope of a registration.  Raises IllegalArgument."""
    for what, held, most in (
        ("columns", columns, MOST_COLUMNS), ("conditions", where, MOST_CONDITIONS), ("looks", look, MOST_LOOKUPS),
    ):  # fmt: skip
        if len(held) > most:
            raise IllegalArgument(f"a trigger has at most {most} {what}, not {len(held)}")
    names = [name for name, _, _ in look]
    if len(set(names)) < len(names):
        raise IllegalArgument(f"looks of a trigger have names of their own, not twice {max(names, key=names.count)}")
    scope_of(families, columns, where, look, images=True)
    outside = {column.partition(":")[0] for column in columns} - set(families)
    if columns and outside:
        raise IllegalArgument(f"columns of family {min(outside)}, which is none of the trigger's families")


def families_of(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the families of the named columns, whose changes count."""
    return tuple(sorted({column.partition(":")[0] for column in columns}))


def column_of_latin(text: str) -> str:
    r"""Convert a column or family as people write it (``column_text``, with ``\xNN``) to the form of registrations."""
    return bytes_of(text).decode("latin-1")


def bytes_of_latin(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise IllegalArgument(f"'{text}' has characters that are no bytes: write them as \\xNN") from error


def family_and_qualifier(column: bytes) -> tuple[bytes, bytes | None]:
    """Split a column; the qualifier is None for a whole family.  Raises IllegalArgument if there is no family."""
    family, _, qualifier = column.partition(b":")
    if not family:
        raise IllegalArgument("a column of a trigger is written family:qualifier, or family for all of it")
    return family, qualifier or None


def _column(column: bytes) -> tuple[bytes, bytes | None]:
    family, _, qualifier = column.partition(b":")
    return family, qualifier


def _by_family(columns: Iterable[tuple[bytes, bytes | None]]) -> dict[bytes, frozenset[bytes] | None]:
    found: dict[bytes, frozenset[bytes] | None] = {}
    for family, qualifier in columns:
        held = found.get(family, frozenset())
        found[family] = None if qualifier is None or held is None else held | {qualifier}
    return found


def _key_of(name: str, text: str) -> Extractor:
    if not name.isidentifier():
        raise IllegalArgument(f"look '{name}': name it by letters, digits and '_'")
    extractor = extractor_of(text)
    if not isinstance(extractor, _ONE_ROW):
        raise IllegalArgument(f"look '{name}': '{text}' may give several rows; a look is of one row")
    return extractor

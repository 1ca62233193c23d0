"""(pure) Decodes cells of a view's table to groups and members, as the view's definition says.

    totals    the family v: eight bytes each; a missing total is 0
    members   the family m: the contribution of each source row; a withdrawn member stays for a while and is never shown
    order     the family o: qualifiers of order bytes and source row; first cell, last cell, first k cells

Knows nothing of how cells are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from columnar.client.errors import WrongArgument
from columnar.model.contribution import split_order_qualifier, unpack, unpack_carried, wrapped
from columnar.model.key_parts import SEPARATOR, escaped, joined, parted
from columnar.model.number_cells import Number, Order, number_of, order_of
from columnar.model.view_definition import COUNT, LEFT, RIGHT, Source, View, total_columns

Key = bytes | tuple[bytes, ...]  # of a group: its only part, or a tuple of its parts
Figure = int | Decimal  # a Decimal if the definition names a scale
SIDES: Final = {LEFT: "left", RIGHT: "right", b"": ""}


@dataclass(frozen=True, slots=True)
class Group:
    """The totals of a group.  A group without members has the count 0."""

    key: Key
    count: int = 0
    sums: Mapping[str, Figure] = field(default_factory=dict)
    averages: Mapping[str, float | Decimal | None] = field(default_factory=dict)  # None if no row has the cell
    lowest: Figure | bytes | None = None  # by the view's order; None without one, or if not requested
    highest: Figure | bytes | None = None


@dataclass(frozen=True, slots=True)
class Member:
    row: bytes  # of the source
    side: str = ""  # left or right in a join
    order: Figure | bytes | None = None  # the member's value in the view's order
    columns: Mapping[bytes, bytes] = field(default_factory=dict)  # the columns that it carries
    place: bytes = b""  # its qualifier, after which the next page begins


class Side:
    """A source of a view, which decodes the source's cells.  Constant."""

    def __init__(self, source: Source, letter: bytes) -> None:
        self.letter = letter
        self.name = SIDES[letter]
        self.order: Order | None = order_of(source.order) if source.order else None
        self._numbers = {name: number_of(text) for name, text in (*source.sums.items(), *source.averages.items())}
        self._sums = tuple(source.sums)
        self._averages = tuple(source.averages)
        prefix = letter + b"." if letter else b""
        self._columns = {
            qualifier.removeprefix(prefix).decode(): family + b":" + qualifier
            for family, qualifier in total_columns(source, letter)
        }

    # --- totals ------------------------------------------------------------------------------------

    def group(self, key: Key, rows: Iterable[Mapping[bytes, bytes]]) -> Group:
        """Return the group; ``rows`` are the rows over which it is spread, each with its cells by column."""
        totals = dict.fromkeys(self._columns, 0)
        for cells in rows:
            for name, column in self._columns.items():
                value = cells.get(column)
                if value is not None:
                    totals[name] = wrapped(totals[name] + int.from_bytes(value, "big", signed=True))
        sums = {name: _scaled(totals[name], self._numbers[name]) for name in self._sums}
        averages = {name: self._average(name, totals) for name in self._averages}
        return Group(key, totals[COUNT], sums, averages)

    def _average(self, name: str, totals: Mapping[str, int]) -> float | Decimal | None:
        total, count = _scaled(totals[f"{name}.sum"], self._numbers[name]), totals[f"{name}.count"]
        return total / count if count else None

    # --- members -----------------------------------------------------------------------------------

    def member(self, qualifier: bytes, value: bytes) -> Member | None:
        """Return the member; None if it was withdrawn.  Raises DamagedData."""
        unpacked = unpack(value)
        if unpacked.is_gone:
            return None
        order = self._order_of(unpacked.order) if unpacked.ordered else None
        return Member(qualifier[len(self.letter) :], self.name, order, dict(unpacked.carried), qualifier)

    def ordered(self, qualifier: bytes, value: bytes) -> Member:
        """Return the member of a cell of the order family.  Raises DamagedData."""
        order, member = split_order_qualifier(qualifier)
        row = member[len(self.letter) :]
        return Member(row, self.name, self._order_of(order), dict(unpack_carried(value)), qualifier)

    def _order_of(self, order: bytes) -> Figure | bytes | None:
        by = self.order
        if by is None:
            return None
        plain = order[len(self.letter) :]
        return _scaled(by.number(plain) or 0, by.by) if isinstance(by.by, Number) else by.text(plain)


def sides_of(view: View) -> tuple[Side, ...]:
    letters = (b"",) if view.join is None else (LEFT, RIGHT)
    return tuple(Side(source, letter) for source, letter in zip(view.sources, letters, strict=True))


def _scaled(total: int, number: Number) -> Figure:
    return Decimal(total).scaleb(-number.scale) if number.scale else total


# --- keys ------------------------------------------------------------------------------------------


def rows_of(view: View, key: Key) -> list[bytes]:
    """Return the row keys of the group in the view's table.  Raises IllegalArgument for a wrong number of key parts."""
    parts = (key,) if isinstance(key, bytes) else tuple(key)
    wanted = len(view.source.key)
    if len(parts) != wanted:
        raise WrongArgument(
            f"a key of view {view.name} has {wanted} part{'s' if wanted > 1 else ''}, not {len(parts)}: "
            f"{' and '.join(view.source.key)}"
        )
    if view.spread == 1:
        return [joined(parts)]
    return [joined((*parts, bytes((one,)))) for one in range(view.spread)]


def key_of(view: View, row: bytes) -> Key:
    """Return the group key of a row of the view's table.  Raises DamagedData if ``row`` is not a row of the view."""
    parts = parted(row, view.key_parts)[: len(view.source.key)]
    return parts[0] if len(parts) == 1 else parts


def prefix_of(view: View, prefix: Key) -> bytes:
    """Return the row prefix of groups whose keys begin with ``prefix``, which may cut its last part.

    Raises IllegalArgument.
    """
    parts = (prefix,) if isinstance(prefix, bytes) else tuple(prefix)
    if not 1 <= len(parts) <= len(view.source.key):
        raise WrongArgument(f"a prefix of keys of view {view.name} has 1 to {len(view.source.key)} parts")
    return parts[0] if view.key_parts == 1 else SEPARATOR.join(map(escaped, parts))


def merged(pages: Sequence[Sequence[Member]], limit: int) -> list[Member]:
    """Merge pages of members, one for each row of a group, into the first ``limit`` members of the group."""
    return sorted((one for page in pages for one in page), key=_place)[:limit]


def _place(member: Member) -> bytes:
    return member.place

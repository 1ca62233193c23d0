"""(pure) The contributions of a source row to the groups of a view: the difference of two images of the row.

    old = contributions(before)     new = contributions(after)

    a group in old only             withdrawn, as of this change
    a group in new                  its amounts, as of this change
    equal in both                   no write at all

A change makes at most one share for each group, so an amount that moves within a group cannot collide with itself.  The
code in Slatkin's talk writes two shares, which have the same sequence, so that only one of them would count here.

An image may have more columns than a view reads, or fewer, depending on the other followers.  Only ``columns_read`` and
``families_read`` of the source count, so that a record and a complete row give the same shares.

Invariants:
    I1. Shares are a function of the two images: the order of columns in them, and other columns, change nothing.
    I2. Shares of consecutive changes have the same result as the shares of the last image alone.
    I3. A row that cannot be read contributes to no group.

Knows nothing of totals and disks.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument, abbreviate
from columnar.limits import CELL_BYTES, MIB
from columnar.model.column_text import bytes_of, column_of, family_of
from columnar.model.condition_text import RowCondition, column_tested, condition_of
from columnar.model.extract import Extractor, Image, extractor_of, keys_of
from columnar.model.mutation import Contribute
from columnar.model.number_cells import Number, Order, Unreadable, number_of, order_of
from columnar.model.view_definition import LEFT, MEMBERS, ORDERED, RIGHT, TOTALS, Source, View, total_columns

CARRIED_BYTES: Final = CELL_BYTES - MIB  # a member is one cell, with these bytes, names, amounts and its order
ROW_BYTES: Final = 64 * MIB  # that a row carries into all its groups together; each of its changes writes them
_NOTHING: Final[Image] = {}


class Share:
    """The part of one source row in one group.  Constant.  A plain class, as each change makes several shares."""

    __slots__ = ("amounts", "carry", "group", "member", "order")

    def __init__(
        self,
        group: bytes,
        member: bytes,
        amounts: tuple[int, ...] | None,
        order: bytes | None = None,
        carry: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self.group = group  # the row of the view's table
        self.member = member  # the source row, prefixed by the letter of its side in a join
        self.amounts = amounts  # in the order of ``Rules.totals``; None if withdrawn
        self.order = order  # its order bytes; None if it has no order
        self.carry = carry  # column, value

    def gives_as(self, other: Share) -> bool:
        """Tell whether both shares, of one row in one group, contribute the same."""
        return self.amounts == other.amounts and self.order == other.order and self.carry == other.carry

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Share):
            return False
        return (self.group, self.member) == (other.group, other.member) and self.gives_as(other)

    def __repr__(self) -> str:
        return f"Share{(self.group, self.member, self.amounts, self.order, self.carry)!r}"


class Given:
    __slots__ = ("rejected", "shares")

    def __init__(self, shares: dict[bytes, Share], rejected: str = "") -> None:
        self.shares = shares  # by group
        self.rejected = rejected  # why the row could not be read


class Difference:
    __slots__ = ("rejected", "rejected_more", "shares")

    def __init__(self, shares: tuple[Share, ...], rejected: str = "", rejected_more: int = 0) -> None:
        self.shares = shares  # by group, ascending
        self.rejected = rejected  # why the row cannot be read after the change
        self.rejected_more = rejected_more  # 1: the row became unreadable; -1: it became readable; else 0


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which a view reads one source.  Constant."""

    table: str
    side: bytes  # empty, except in a join
    keys: tuple[Extractor, ...]
    conditions: tuple[tuple[bytes, RowCondition], ...]
    sums: tuple[Number, ...]
    averages: tuple[Number, ...]
    order: Order | None
    include: tuple[bytes, ...]
    spread: int
    totals: tuple[tuple[bytes, bytes], ...]  # family and qualifier
    columns_read: frozenset[bytes]
    families_read: frozenset[bytes]  # of which every column counts

    @property
    def images(self) -> dict[bytes, frozenset[bytes] | None]:
        """The columns whose images a record must have: qualifiers by family, None for a whole family."""
        found: dict[bytes, frozenset[bytes] | None] = dict.fromkeys(self.families_read)
        for column in self.columns_read:
            family = family_of(column)
            columns = found.get(family, frozenset())
            found[family] = None if columns is None else columns | {column[len(family) + 1 :]}
        return found


def rules_of(view: View) -> tuple[Rules, ...]:
    """Make the rules of each source of a checked and bound view.  Raises IllegalArgument if a text is wrong."""
    sides = (b"",) if view.join is None else (LEFT, RIGHT)
    try:
        return tuple(_rules(source, side, view.spread) for source, side in zip(view.sources, sides, strict=True))
    except IllegalArgument as error:
        raise IllegalArgument(f"view {view.name}: {error.text}") from error


def _rules(source: Source, side: bytes, spread: int) -> Rules:
    keys = tuple(extractor_of(text, source.key_parts) for text in source.key)
    conditions = [condition_of(text) for text in source.where]
    sums = tuple(number_of(text) for text in source.sums.values())
    averages = tuple(number_of(text) for text in source.averages.values())
    order = order_of(source.order) if source.order else None
    include = tuple(column_of(text) for text in source.include)
    columns = {column for key in keys for column in key.columns} | {column_tested(one) for one in conditions}
    columns |= {one.column for one in (*sums, *averages)} | set(include) | ({order.column} if order else set())
    families = {family for key in keys for family in key.families} | {bytes_of(one) for one in source.families}
    if source.key_parts:
        families.add(TOTALS)  # a group of a view exists while it has a total
    if not columns and not families:
        raise IllegalArgument(
            f"nothing of {source.table} but row keys is named; say by families=('f',) which cells make a row"
        )
    conditions_by_column = tuple((column_tested(one), one) for one in conditions)
    totals = total_columns(source, side)
    return Rules(
        source.table, side, keys, conditions_by_column, sums, averages, order, include, spread, totals,
        frozenset(columns), frozenset(families),
    )  # fmt: skip


# --- one image ---------------------------------------------------------------------------------------


def contributions(rules: Rules, row: bytes, image: Image) -> Given:
    """Return the shares of a row with this image; a missing row has no shares."""
    seen = _seen(rules, image)
    if not seen:
        return Given({})
    for column, condition in rules.conditions:
        if not condition.matches_cell(seen.get(column)):
            return Given({})
    try:
        groups = _groups(rules, row, seen)
        if not groups:
            return Given({})
        amounts = _amounts(rules, seen)
        order = rules.order.key(seen) if rules.order is not None else None
    except Unreadable as error:
        return Given({}, str(error))
    if order is not None:
        order = rules.side + order
    carry = tuple([(column, seen[column]) for column in rules.include if column in seen]) if rules.include else ()
    carried_bytes = sum([len(column) + len(value) for column, value in carry]) if carry else 0
    if carried_bytes > CARRIED_BYTES:
        return Given({}, f"row {abbreviate(row)} would carry {carried_bytes} bytes, over {CARRIED_BYTES}: include less")
    if carried_bytes * len(groups) > ROW_BYTES:
        where = f"into each of {len(groups)} groups, over {ROW_BYTES} in all"
        return Given({}, f"row {abbreviate(row)} would carry {carried_bytes} bytes {where}: include less")
    member = rules.side + row
    return Given({group: Share(group, member, amounts, order, carry) for group in groups})


def _seen(rules: Rules, image: Image) -> Image:
    """Return the columns of the image that the rules read.  If the rules read no whole family, others may stay."""
    if rules.families_read:
        return {
            column: value
            for column, value in image.items()
            if column in rules.columns_read or family_of(column) in rules.families_read
        }
    for column in rules.columns_read:
        if column in image:
            return image
    return _NOTHING


def _groups(rules: Rules, row: bytes, seen: Image) -> list[bytes]:
    last = (spread_part(row, rules.spread),) if rules.spread > 1 else ()
    return keys_of(rules.keys, row, seen, last)


def spread_part(row: bytes, spread: int) -> bytes:
    """Return the part of the key that says to which row of its group a source row belongs."""
    return bytes((zlib.crc32(row) % spread,))


def _amounts(rules: Rules, seen: Image) -> tuple[int, ...]:
    amounts = [1]
    for one in rules.sums:
        amounts.append(one.value(seen) or 0)
    for one in rules.averages:
        value = one.value(seen)
        amounts += (0, 0) if value is None else (value, 1)
    return tuple(amounts)


# --- two images --------------------------------------------------------------------------------------


def difference(rules: Rules, row: bytes, before: Image, after: Image) -> Difference:
    """Return the shares that a change of the row makes."""
    old = contributions(rules, row, before)
    new = old if after is before else contributions(rules, row, after)
    shares = [Share(group, share.member, None) for group, share in old.shares.items() if group not in new.shares]
    for group, share in new.shares.items():
        former = old.shares.get(group)
        if former is None or not share.gives_as(former):
            shares.append(share)
    if len(shares) > 1:
        shares.sort(key=_group)
    return Difference(tuple(shares), new.rejected, bool(new.rejected) - bool(old.rejected))


def _group(share: Share) -> bytes:
    return share.group


def operation_of(rules: Rules, share: Share, sequence: tuple[int, int, int]) -> Contribute:
    """Return the operation that sets the share as of the sequence."""
    order_family = ORDERED if rules.order is not None else b""
    return Contribute(
        MEMBERS, share.member, sequence, share.amounts, rules.totals, order_family, share.order, share.carry
    )

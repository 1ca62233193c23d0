"""Contributions to many rows, in families that keep one version: one call for each key space reads the present cells.

This module handles rows whose changes are not logged, in tables without delete markers, while no cell lies ahead of the
clock.  A cell that is written then is the newest of its column (invariant I1 of ``drafting``), so the present cell is
replaced or removed unread.  Only members and totals are read, for their values.  The written cells equal those of
``contributions.contribute``, applied one operation after the other; a total that several operations of a row change is
written once.

A call with a single row is handled here, too.  A row with other operations, conditions, or families that keep several
versions is left to ``RowDraft``.

Cost: the engine reads a key for each member and total of the batch, in two calls; no object is made for a cell.
"""

from __future__ import annotations

from typing import Final

from columnar.errors import CellTooBig, DamagedData, NotALong, NotAMember, abbreviate
from columnar.limits import CELL_BYTES
from columnar.model.contribution import (
    Member,
    Names,
    differences,
    follow,
    is_plain_guard,
    names_of,
    order_qualifier,
    pack,
    pack_carried,
    pack_plain_guard,
    plain_sequence,
    unpack,
    wrapped,
)
from columnar.model.mutation import Contribute, RowMutation, RowWrite
from columnar.regions.read.family_view import FamilyView, Views, visible_value
from columnar.regions.write.contributions import expiring
from columnar.storage.api import Batch, Store
from columnar.storage.layout import cell_head, escape, row_prefix

PLAIN_SOURCE_BYTES: Final = CELL_BYTES // 2  # the member of a longer source may be too big a cell
CellsBySpace = dict[str, dict[bytes, bytes | None]]  # by space and key: the stored cell, None if there is none
Totals = tuple[tuple[bytes, bytes], ...]


def begins(mutations: list[RowWrite]) -> bool:
    """Tell by the first row whether all rows are contributions: the rows of a call are of one kind."""
    first = mutations[0]
    return isinstance(first, RowMutation) and bool(first.operations) and type(first.operations[0]) is Contribute


class Choice:
    """Chooses the rows of a call that this module can handle, under one schema."""

    __slots__ = ("_known", "_views")

    def __init__(self, views: Views) -> None:
        self._views = views
        self._known: Contribute | None = None  # the last operation whose families were looked up

    def takes(self, mutation: RowWrite) -> bool:
        """Tell whether this module can handle the row.  Raises NoSuchColumnFamily or NotAllowed."""
        if not isinstance(mutation, RowMutation) or mutation.conditions or mutation.sends:
            return False
        for operation in mutation.operations:
            if type(operation) is not Contribute:
                return False
            if self._known is not None and _names_the_same(self._known, operation):
                continue
            if not self._keeps_one_version(operation):
                return False
            self._known = operation
        return True

    def _keeps_one_version(self, operation: Contribute) -> bool:
        for family in operation.families:
            view = self._views[family]
            if view.ttl_ms is not None:
                raise expiring(self._views.table, family)
            if view.max_versions != 1:
                return False
        return True


def _names_the_same(one: Contribute, other: Contribute) -> bool:
    """Compare names by identity, which is cheap: the operations of a view share one object for each name."""
    return one.totals is other.totals and one.family is other.family and one.order_family is other.order_family


def read(store: Store, views: Views, mutations: list[RowMutation]) -> CellsBySpace:
    """Read the members and totals that the rows name."""
    keys: dict[str, dict[bytes, bytes | None]] = {}
    for mutation in mutations:
        prefix, totals = row_prefix(mutation.row), None  # type: bytes, Totals | None
        for said in mutation.operations:
            assert isinstance(said, Contribute), "looked at before"
            _named(keys, views[said.family].space)[prefix + escape(said.source)] = None
            if said.totals is not totals:
                totals = said.totals
                for family, qualifier in totals:
                    _named(keys, views[family].space)[prefix + escape(qualifier)] = None
    for space, named in keys.items():
        wanted = list(named)
        keys[space] = dict(zip(wanted, store.multi_get(space, wanted), strict=True))
    return keys


def _named(keys: CellsBySpace, space: str) -> dict[bytes, bytes | None]:
    named = keys.get(space)
    if named is None:
        named = keys[space] = {}
    return named


class ContributedRow:
    """The next state of one row.  No key is written before ``emit``."""

    __slots__ = ("_cells", "_now_ms", "_prefix", "_row", "_store", "_stored", "_totals", "_views", "guarded")

    def __init__(self, store: Store, views: Views, stored: CellsBySpace, row: bytes, now_ms: int) -> None:
        self._store = store
        self._views = views
        self._stored = stored
        self._row = row
        self._now_ms = now_ms
        self._prefix = row_prefix(row)
        self._cells: CellsBySpace = {}  # cells to write; None: to remove
        self._totals: dict[bytes, int] = {}  # column -> amount to add
        self.guarded: list[int] = []  # numbers of families in which a member was withdrawn

    def apply(self, mutation: RowMutation) -> bool:
        """Apply the row's contributions.

        Returns False, without effect, if an earlier contribution left cells in a family that keeps several versions.
        Raises NotAMember, NotALong or CellTooBig.
        """
        names: Names | None = None
        totals: Totals | None = None
        for said in mutation.operations:
            assert isinstance(said, Contribute), "looked at before"
            if said.totals is not totals:
                totals = said.totals
                names = names_of(totals)
            view = self._views[said.family]
            key = self._prefix + escape(said.source)
            data = _named(self._cells, view.space).get(key)
            if data is None:
                data = visible_value(self._stored[view.space][key], view, self._now_ms)
            if names is not None and self._contribute_plainly(said, names, view, key, data):
                continue
            if not self._contribute(said, view, key, data):
                return False
        return self._add_up()

    def _contribute_plainly(
        self, said: Contribute, names: Names, view: FamilyView, key: bytes, data: bytes | None
    ) -> bool:
        """Apply a contribution whose member has the plain form before and after, as most do.

        Returns False, without effect, if the member does not have the plain form.
        """
        if said.part or said.relative or said.order is not None or said.carry:
            return False
        before: tuple[int, ...] | None = None
        if data is not None:
            before = names.amounts_in(data)
            if before is None and not is_plain_guard(data):
                return False
            if said.sequence <= plain_sequence(data):
                return True
        if len(said.source) > PLAIN_SOURCE_BYTES:
            return False
        totals = self._totals
        if said.amounts is None:
            if before is not None:
                for total, amount in zip(names.columns, before, strict=True):
                    if amount:
                        totals[total] = totals.get(total, 0) - amount
            self._cells[view.space][key] = pack_plain_guard(said.sequence, self._now_ms)
            self._guard(view)
            return True
        after = names.ordered(said.amounts)
        if before != after:
            for place, total in enumerate(names.columns):
                difference = after[place] - before[place] if before is not None else after[place]
                if difference:
                    totals[total] = totals.get(total, 0) + difference
        self._cells[view.space][key] = names.pack(said.sequence, self._now_ms, after)
        return True

    def _guard(self, view: FamilyView) -> None:
        if not self.guarded or self.guarded[-1] != view.number:
            self.guarded.append(view.number)

    def _contribute(self, said: Contribute, view: FamilyView, key: bytes, data: bytes | None) -> bool:
        previous = self._member(said, data) if data is not None else None
        member = follow(previous, said, self._now_ms)
        if member is None:
            return True
        for total, difference in differences(previous, member):
            self._totals[total] = self._totals.get(total, 0) + difference
        if not self._move(said.source, previous, member):
            return False
        packed = pack(member)
        if len(said.source) + len(packed) > CELL_BYTES:
            raise CellTooBig(f"the member {abbreviate(said.source)}", len(said.source) + len(packed), CELL_BYTES)
        if member.is_gone:
            self._guard(view)
        self._cells[view.space][key] = packed
        return True

    def _member(self, said: Contribute, data: bytes) -> Member:
        try:
            return unpack(data)
        except DamagedData as error:
            raise NotAMember(self._views.table, self._row, said.family + b":" + said.source, error.text) from error

    def _move(self, source: bytes, previous: Member | None, member: Member) -> bool:
        """Move the ordered cell of the source to its new place.

        Returns False if the old family keeps several versions.
        """
        if (
            previous is not None
            and previous.ordered
            and (previous.ordered, previous.order) != (member.ordered, member.order)
        ):
            view = self._views.get(previous.ordered)
            if view is not None:
                if view.max_versions != 1:
                    return False
                _named(self._cells, view.space)[self._ordered_key(previous.order, source)] = None
            previous = None
        if not member.ordered:
            return True
        if previous is None or not previous.ordered or previous.carried != member.carried:
            space = self._views[member.ordered].space
            _named(self._cells, space)[self._ordered_key(member.order, source)] = pack_carried(member.carried)
        return True

    def _ordered_key(self, order: bytes, source: bytes) -> bytes:
        return self._prefix + escape(order_qualifier(order, source))

    def _add_up(self) -> bool:
        """Add the amounts to the totals.  A total of 0 has no cell; totals of a dropped family are skipped."""
        for total, difference in self._totals.items():
            family, _, qualifier = total.partition(b":")
            view = self._views.get(family)
            if view is None:
                continue
            if view.max_versions != 1:
                return False
            space, key = view.space, self._prefix + escape(qualifier)
            cells = self._stored.get(space)
            raw = cells[key] if cells is not None and key in cells else self._store.get(space, key)
            value = visible_value(raw, view, self._now_ms)
            if value is not None and len(value) != 8:
                raise NotALong(len(value))
            old = int.from_bytes(value, "big", signed=True) if value is not None else 0
            new = wrapped(old + difference)
            if new or value is not None:
                _named(self._cells, space)[key] = new.to_bytes(8, "big", signed=True) if new else None
        return True

    def emit(self, batch: Batch, number: int) -> None:
        """Add the row's cells to the batch.  ``number`` is the sequence in the form that cells have."""
        head = cell_head(self._now_ms, number)
        for space, cells in self._cells.items():
            for key, value in cells.items():
                if value is None:
                    batch.delete(space, key)
                else:
                    batch.put(space, key, head + value)

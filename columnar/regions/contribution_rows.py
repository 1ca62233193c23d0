"""Contributions to many rows, in families that keep one version: what stands there is read with one call a key space.

For rows whose changes nobody logs, in tables without delete markers, while no cell lies ahead of the clock.  A cell
that is written then is the newest of its column (invariant I1 of ``drafting``), so it is replaced or removed unread:
members and totals alone are read, for what they hold.  The cells are those that ``contributions.contribute`` comes to,
one operation after the other; a total that several operations of a row change is written once.

A row alone in its call, too.  A row that names other operations, conditions, or families that keep several versions is
left to ``RowDraft``.

Cost: a key of the engine for each member and total of the batch, read in two calls; no object for a cell.
"""

from __future__ import annotations

from columnar.errors import CellTooBig, DamagedData, NotALong, NotAMember, shown
from columnar.limits import CELL_BYTES
from columnar.model.contribution import (
    Member,
    differences,
    follow,
    order_qualifier,
    pack,
    pack_carried,
    unpack,
    wrapped,
)
from columnar.model.mutation import Contribute, RowMutation, RowWrite
from columnar.regions.contributions import expiring
from columnar.regions.family_view import FamilyView, Views, visible_value
from columnar.storage.api import Batch, Store
from columnar.storage.layout import cell_head, escape, row_prefix

Held = dict[tuple[str, bytes], bytes | None]  # by space and key: the cell as it is stored; None: there is none


def begins(mutations: list[RowWrite]) -> bool:
    """The first row says for all whether they are contributions: a call's rows are of one kind."""
    first = mutations[0]
    return isinstance(first, RowMutation) and bool(first.operations) and type(first.operations[0]) is Contribute


def is_contributed(views: Views, mutation: RowWrite) -> bool:
    """Whether the row is for here.  NoSuchColumnFamily, NotAllowed."""
    if not isinstance(mutation, RowMutation) or mutation.conditions:
        return False
    for operation in mutation.operations:
        if type(operation) is not Contribute:
            return False
        for family in operation.families:
            view = views[family]
            if view.ttl_ms is not None:
                raise expiring(views.table, family)
            if view.max_versions != 1:
                return False
    return True


def read(store: Store, views: Views, mutations: list[RowMutation]) -> Held:
    """The members and totals that the rows name."""
    keys: dict[str, dict[bytes, None]] = {}
    for mutation in mutations:
        prefix = row_prefix(mutation.row)
        for said in mutation.operations:
            assert isinstance(said, Contribute), "looked at before"
            _named(keys, views[said.family].space)[prefix + escape(said.source)] = None
            for family, qualifier in said.totals:
                _named(keys, views[family].space)[prefix + escape(qualifier)] = None
    held: Held = {}
    for space, named in keys.items():
        wanted = list(named)
        for key, raw in zip(wanted, store.multi_get(space, wanted), strict=True):
            held[space, key] = raw
    return held


def _named(keys: dict[str, dict[bytes, None]], space: str) -> dict[bytes, None]:
    named = keys.get(space)
    if named is None:
        named = keys[space] = {}
    return named


class ContributedRow:
    """The next state of one row.  Nothing is written before ``emit``."""

    __slots__ = ("_cells", "_held", "_now_ms", "_prefix", "_row", "_store", "_totals", "_views", "guarded")

    def __init__(self, store: Store, views: Views, held: Held, row: bytes, now_ms: int) -> None:
        self._store = store
        self._views = views
        self._held = held
        self._row = row
        self._now_ms = now_ms
        self._prefix = row_prefix(row)
        self._cells: dict[tuple[str, bytes], bytes | None] = {}  # what is written; None: it is removed
        self._totals: dict[bytes, int] = {}  # by column: what is added
        self.guarded: list[int] = []  # numbers of families in which a member was withdrawn

    def apply(self, mutation: RowMutation) -> bool:
        """False: an earlier contribution left something in a family that keeps several versions; nothing is done.

        NotAMember, NotALong, CellTooBig.
        """
        for said in mutation.operations:
            assert isinstance(said, Contribute), "looked at before"
            if not self._contribute(said):
                return False
        return self._add_up()

    def _contribute(self, said: Contribute) -> bool:
        view = self._views[said.family]
        place = view.space, self._prefix + escape(said.source)
        held = self._member(view, place, said)
        member = follow(held, said, self._now_ms)
        if member is None:
            return True
        for total, difference in differences(held, member):
            self._totals[total] = self._totals.get(total, 0) + difference
        if not self._move(said.source, held, member):
            return False
        data = pack(member)
        if len(said.source) + len(data) > CELL_BYTES:
            raise CellTooBig(f"the member {shown(said.source)}", len(said.source) + len(data), CELL_BYTES)
        if member.is_gone:
            self.guarded.append(view.number)
        self._cells[place] = data
        return True

    def _member(self, view: FamilyView, place: tuple[str, bytes], said: Contribute) -> Member | None:
        data = self._cells.get(place)
        if data is None:
            data = visible_value(self._held[place], view, self._now_ms)
        if data is None:
            return None
        try:
            return unpack(data)
        except DamagedData as error:
            raise NotAMember(self._views.table, self._row, said.family + b":" + said.source, error.text) from error

    def _move(self, source: bytes, held: Member | None, member: Member) -> bool:
        """The ordered cell of the source, from its place to the one that it has now."""
        if held is not None and held.ordered and (held.ordered, held.order) != (member.ordered, member.order):
            view = self._views.get(held.ordered)
            if view is not None:
                if view.max_versions != 1:
                    return False
                self._cells[view.space, self._ordered_key(held.order, source)] = None
            held = None
        if not member.ordered:
            return True
        if held is None or not held.ordered or held.carried != member.carried:
            space = self._views[member.ordered].space
            self._cells[space, self._ordered_key(member.order, source)] = pack_carried(member.carried)
        return True

    def _ordered_key(self, order: bytes, source: bytes) -> bytes:
        return self._prefix + escape(order_qualifier(order, source))

    def _add_up(self) -> bool:
        """A total of 0 is no cell; of a family that was dropped no total is left."""
        for total, difference in self._totals.items():
            family, _, qualifier = total.partition(b":")
            view = self._views.get(family)
            if view is None:
                continue
            if view.max_versions != 1:
                return False
            place = view.space, self._prefix + escape(qualifier)
            raw = self._held[place] if place in self._held else self._store.get(*place)
            value = visible_value(raw, view, self._now_ms)
            if value is not None and len(value) != 8:
                raise NotALong(len(value))
            old = int.from_bytes(value, "big", signed=True) if value is not None else 0
            new = wrapped(old + difference)
            if new or value is not None:
                self._cells[place] = new.to_bytes(8, "big", signed=True) if new else None
        return True

    def emit(self, batch: Batch, number: int) -> None:
        """``number``: the sequence as cells have it."""
        head = cell_head(self._now_ms, number)
        for (space, key), value in self._cells.items():
            if value is None:
                batch.delete(space, key)
            else:
                batch.put(space, key, head + value)

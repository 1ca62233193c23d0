"""Reads of a view: groups, their members, and members in the view's order, of the generation that the reader knows.

A view is a table, so any HBase client can read it.  The reader adds up the rows of a spread group, decodes totals as
the definition says, omits withdrawn members, and pages through groups of any size at the cost of a page.

Thread safety is the connection's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from columnar.client.errors import NotYet, WrongArgument
from columnar.client.table import Table
from columnar.client.view_cells import (
    Group,
    Key,
    Member,
    Side,
    key_of,
    merged,
    prefix_of,
    rows_of,
    sides_of,
)
from columnar.limits import SLICE_CELLS
from columnar.model.key_parts import after_prefix
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS, View

if TYPE_CHECKING:
    from columnar.client.connection import Connection

PAGE: Final = 1_000  # members that one call returns
SCANNED_ROWS: Final = 1_000  # of groups
WAIT_MS: Final = 5_000

Kind = Literal["inner", "left", "outer"]
Pair = tuple[Member | None, Member | None]


class ViewReader:
    """The reader of a view, made by ``connection.view(name)``."""

    def __init__(self, connection: Connection, definition: Callable[[], tuple[View, str]]) -> None:
        """Pass ``definition``, which returns the view's present definition and the table name of its generation."""
        self._connection = connection
        self._definition = definition

    # --- groups ------------------------------------------------------------------------------------

    def get(self, group: Key, *, extremes: bool = True, after: str = "", timeout_ms: int = WAIT_MS) -> Group:
        """Return a group's totals; the totals of a missing group are 0.

        With ``extremes`` also ``lowest`` and ``highest``, which cost two more reads if the view has an order. ``after``
        is the token of a write (``CheckResult.sequence``) that the totals must include.  Raises NotYet if the totals do
        not include the write within ``timeout_ms``, and IllegalArgument if the view is a join, whose groups have two
        sides (``sides``).
        """
        view, table = self._at(after, timeout_ms)
        if view.join is not None:
            raise WrongArgument(f"{view.name} is a join: read connection.view('{view.name}').sides(group)")
        return self._group(table, view, sides_of(view)[0], group, extremes=extremes)

    def sides(self, group: Key, *, after: str = "", timeout_ms: int = WAIT_MS) -> tuple[Group, Group]:
        """Return the two sides of a join's group, the left side first."""
        view, table = self._at(after, timeout_ms)
        left, right = self._two_sides(view)
        return self._group(table, view, left, group), self._group(table, view, right, group)

    def groups(
        self,
        prefix: Key = b"",
        limit: int = 100,
        after: Key | None = None,
        *,
        written: str = "",
        timeout_ms: int = WAIT_MS,
    ) -> list[Group]:
        """Return groups whose keys begin with ``prefix``, ascending, after the key ``after``; without extremes.

        Only the last part of a prefix may be incomplete: ``(b"alice", b"")`` matches all groups of ``alice``.  For a
        join the left sides are returned; ``sides`` returns both.  ``written`` is the token of a write that the groups
        must include, as ``after`` of ``get``.
        """
        view, table = self._at(written, timeout_ms)
        side = sides_of(view)[0]
        return [side.group(key, rows) for key, rows in islice(self._by_key(table, view, prefix, after), max(0, limit))]

    def _by_key(
        self, table: Table, view: View, prefix: Key, after: Key | None
    ) -> Iterator[tuple[Key, list[dict[bytes, bytes]]]]:
        begins = prefix_of(view, prefix)
        start = begins if after is None else max(begins, rows_of(view, after)[-1] + b"\0")
        stop = after_prefix(begins) if begins else None
        if stop is not None and start >= stop:
            return
        found = table.scan(row_start=start, row_stop=stop, columns=[TOTALS], batch_size=SCANNED_ROWS)
        current: tuple[Key, list[dict[bytes, bytes]]] | None = None
        for row, cells in found:
            key = key_of(view, row)
            if current is not None and current[0] == key:
                current[1].append(cells)
                continue
            if current is not None:
                yield current
            current = key, [cells]
        if current is not None:
            yield current

    def _group(self, table: Table, view: View, side: Side, key: Key, *, extremes: bool = True) -> Group:
        rows = rows_of(view, key)
        group = side.group(key, [cells for _, cells in table.rows(rows, columns=[TOTALS])])
        if not (extremes and side.order is not None and group.count):
            return group
        first, last = (self._ordered(table, side, rows, 1, reverse=reverse) for reverse in (False, True))
        ends = [page[0].order if page else None for page in (first, last)]
        lowest, highest = reversed(ends) if side.order.is_descending else ends
        return replace(group, lowest=lowest, highest=highest)

    # --- members -----------------------------------------------------------------------------------

    def members(
        self,
        group: Key,
        limit: int = 100,
        after: Member | None = None,
        *,
        side: str = "",
        written: str = "",
        timeout_ms: int = WAIT_MS,
    ) -> list[Member]:
        """Return members by source row, after ``after``, the last member of the previous page.

        ``side`` selects a join's side, ``left`` (the default) or ``right``.  ``written`` is the same as in ``groups``.
        """
        view, table = self._at(written, timeout_ms)
        return self._members(table, self._side(view, side), rows_of(view, group), limit, after)

    def top(
        self,
        group: Key,
        n: int = 10,
        after: Member | None = None,
        *,
        side: str = "",
        written: str = "",
        timeout_ms: int = WAIT_MS,
    ) -> list[Member]:
        """Return the first ``n`` members in the view's order, each with its carried columns.

        Raises IllegalArgument if the view has no order.  ``side``, ``after`` and ``written`` are the same as in
        ``members``.
        """
        view, table = self._at(written, timeout_ms)
        chosen = self._side(view, side)
        if chosen.order is None:
            raise WrongArgument(f"view {view.name} has no order; declare it with order='family:qualifier desc'")
        return self._ordered(table, chosen, rows_of(view, group), n, after.place if after is not None else b"")

    def pairs(
        self, group: Key, kind: Kind = "inner", *, written: str = "", timeout_ms: int = WAIT_MS
    ) -> Iterator[Pair]:
        """Yield each pair of a left and a right member, in the order of their rows.

        With the kind ``left``, a left member is paired with None if there is no right member; with ``outer``, a right
        member without a left member, too.  ``written`` is the same as in ``groups``; the first pair waits for it.
        """
        view, table = self._at(written, timeout_ms)
        left, right = self._two_sides(view)
        if kind not in ("inner", "left", "outer"):
            raise WrongArgument(f"pairs are 'inner', 'left' or 'outer', not '{kind}'")
        rows = rows_of(view, group)
        first = self._members(table, right, rows, PAGE, None)  # in most cases the whole side
        is_alone = True
        for one in self._all_members(table, left, rows, None):
            is_alone = False
            if not first:
                if kind == "inner":
                    return
                yield one, None
                continue
            for other in self._with_rest(table, right, rows, first):
                yield one, other
        if is_alone and kind == "outer":
            for other in self._with_rest(table, right, rows, first):
                yield None, other

    def _with_rest(self, table: Table, side: Side, rows: list[bytes], first: list[Member]) -> Iterator[Member]:
        yield from first
        if len(first) == PAGE:
            yield from self._all_members(table, side, rows, first[-1])

    def _all_members(self, table: Table, side: Side, rows: list[bytes], after: Member | None) -> Iterator[Member]:
        while page := self._members(table, side, rows, PAGE, after):
            yield from page
            after = page[-1]

    def _members(self, table: Table, side: Side, rows: list[bytes], limit: int, after: Member | None) -> list[Member]:
        """Return members of one group's ``rows``; a member's source row determines which of the rows has the member."""
        start = side.letter if after is None else after.place + b"\0"
        return merged([self._page(table, side, row, start, limit) for row in rows], limit)

    def _page(self, table: Table, side: Side, row: bytes, start: bytes, limit: int) -> list[Member]:
        found: list[Member] = []
        stop = after_prefix(side.letter) or b""
        while len(found) < limit:
            wanted = min(limit - len(found), SLICE_CELLS)
            cells = table.slice(row, MEMBERS, start, stop, limit=wanted)
            if not cells:
                break
            found += [one for cell in cells if (one := side.member(*cell)) is not None]
            start = cells[-1][0] + b"\0"
        return found

    def _ordered(
        self, table: Table, side: Side, rows: list[bytes], n: int, after: bytes = b"", *, reverse: bool = False
    ) -> list[Member]:
        start, stop = after + b"\0" if after else side.letter, after_prefix(side.letter) or b""
        pages = [self._ordered_page(table, side, row, start, stop, n, reverse=reverse) for row in rows]
        cells = sorted((cell for page in pages for cell in page), reverse=reverse)
        return [side.ordered(*cell) for cell in cells[: max(0, n)]]

    def _ordered_page(
        self, table: Table, side: Side, row: bytes, start: bytes, stop: bytes, n: int, *, reverse: bool
    ) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        while len(found) < n:
            cells = table.slice(row, ORDERED, start, stop, limit=min(n - len(found), SLICE_CELLS), reverse=reverse)
            if not cells:
                break
            found += cells
            start, stop = (start, cells[-1][0]) if reverse else (cells[-1][0] + b"\0", stop)
        return found

    # --- the view ----------------------------------------------------------------------------------

    def _at(self, token: str, timeout_ms: int) -> tuple[View, Table]:
        view, name = self._definition()
        if token and not self._connection.views.wait(name, token, timeout_ms):
            raise NotYet(view.name, token, timeout_ms)
        return view, self._connection.table(name)

    @staticmethod
    def _two_sides(view: View) -> tuple[Side, Side]:
        sides = sides_of(view)
        if len(sides) != 2:
            raise WrongArgument(f"view {view.name} is no join: it has no sides and no pairs")
        return sides[0], sides[1]

    @staticmethod
    def _side(view: View, name: str) -> Side:
        sides = sides_of(view)
        known: dict[Any, Side] = {one.name: one for one in sides}
        chosen = known.get(name or sides[0].name)
        if chosen is None:
            raise WrongArgument(f"view {view.name} has no side '{name}'; a join has 'left' and 'right'")
        return chosen

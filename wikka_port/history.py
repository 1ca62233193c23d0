"""The stored revisions of a page, read along their chain.

A page's row names its newest revision (number and token), and each revision names its predecessor.
Rows of ``revisions`` that are not on that chain were staged by a save that lost to another save, or that crashed; they
are never shown.  A chain ends with the revision that names no predecessor.  If a link of the chain is
broken (damage), the only row of a number is taken.

Cost: one scan of as many rows as are requested; bodies are read only if requested.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import groupby, islice

from columnar.client import Connection
from wikka_port import schema
from wikka_port.names import page_key
from wikka_port.page_rows import (
    Cells,
    Revision,
    head_of,
    hidden_in,
    is_revision,
    page_cells_of_revision,
    revision_of,
    time_of,
)
from wikka_port.schema import Head
from wikka_port.store import Store

_BATCH_BODIES = 8
_BATCH_META = 500


def revisions_in(
    connection: Connection,
    key: bytes,
    newest: Head,
    start: int,
    *,
    limit: int,
    bodies: bool,
    hidden: Collection[int] = (),
) -> list[Revision]:
    """Return up to ``limit`` revisions from number ``start`` down, without the ``hidden`` ones."""
    found = chain(connection, key, newest, start, bodies=bodies, expected=limit)
    shown = (revision_of(head, cells) for head, cells in found if head.number not in hidden)
    return list(islice(shown, limit))


def revision_at_in(
    connection: Connection, key: bytes, newest: Head, time_ms: int, hidden: Collection[int] = ()
) -> Revision | None:
    """Return the newest revision at or before ``time_ms``, or None.  O(later revisions), without their bodies."""
    for head, cells in chain(connection, key, newest, newest.number, bodies=False, expected=_BATCH_META):
        if time_of(cells) <= time_ms and head.number not in hidden:
            found = revisions_in(connection, key, newest, head.number, limit=1, bodies=True)
            return found[0] if found else None
    return None


def chain(
    connection: Connection,
    key: bytes,
    newest: Head,
    start: int,
    *,
    bodies: bool,
    expected: int = _BATCH_META,
    further: Collection[bytes] = (),
) -> Iterator[tuple[Head, Cells]]:
    """Yield revisions with their cells, from number ``start`` (or the newest) down; ``further`` names more columns."""
    first = min(start, newest.number)
    # The revision above ``first`` names its predecessor: it tells which of several rows of number ``first`` is right.
    for begin in (min(first + 1, newest.number), newest.number):
        found = _rows(connection, newest.place(key), begin, bodies, expected, further)
        rows = groupby(found, lambda row: row[0].number)
        group = next(rows, None)
        if group is None:
            return
        number, candidates = group[0], list(group[1])
        if number == newest.number or len(candidates) == 1:
            break
    token = newest.token if number == newest.number else None
    while True:
        head, cells = next((row for row in candidates if row[0].token == token), candidates[0])
        if number <= first:
            yield replace(head, history=newest.history) if newest.history else head, cells
        if cells.get(schema.PREVIOUS) == b"":
            return
        group = next(rows, None)
        if group is None:
            return
        # Above a gap in the numbers no revision names the token of the one below it.
        token = cells.get(schema.PREVIOUS) if group[0] == number - 1 else None
        number, candidates = group[0], list(group[1])


def _rows(
    connection: Connection, place: bytes, begin: int, bodies: bool, expected: int, further: Collection[bytes]
) -> Iterator[tuple[Head, dict[bytes, bytes]]]:
    batch = min(expected + 2, _BATCH_BODIES if bodies else _BATCH_META)
    found = connection.table(schema.REVISIONS).scan(
        row_start=schema.revisions_from(place, begin),
        row_stop=schema.revisions_end(place),
        columns=[*(schema.CONTENT_FAMILIES if bodies else (b"meta",)), *further],
        batch_size=max(batch, 2),
    )
    for row, cells in found:
        yield schema.parse_revision_row(row)[1], cells


def fresh_cells(connection: Connection, key: bytes, row: Cells) -> Cells:
    """Return ``row`` with the cells of the page's newest revision, if it still has those of an older one."""
    head = head_of(row)
    found = connection.table(schema.REVISIONS).row(
        schema.revision_row(key, head), columns=list(schema.CONTENT_FAMILIES)
    )
    if not found:
        return row
    name = row.get(schema.NAME, found.get(schema.NAME, b""))  # a renamed page has a different name from its revisions
    return {**row, **page_cells_of_revision(head, found), schema.NAME: name}


def source_of(connection: Connection, key: bytes, head: Head) -> str | None:
    """Return the original text of an imported revision.

    Returns None if the revision was written in this wiki, or imported before original texts were kept.
    """
    row = schema.revision_row(key, head)
    value = connection.table(schema.REVISIONS).row(row, columns=[schema.SOURCE]).get(schema.SOURCE)
    return None if value is None else value.decode(errors="replace")


def newest_of(connection: Connection, key: bytes) -> tuple[Head, frozenset[int]]:
    """Return the head of the newest revision, and the numbers of the hidden revisions."""
    cells = connection.table(schema.PAGES).row(key, columns=[schema.VERSIONCOUNT, schema.HIDDEN])
    return head_of(cells), hidden_in(cells)


class Histories:
    """The revisions of pages by name.  Thread-safe.  Every method may raise StoreUnavailable and InvalidName."""

    store: Store

    def revision(self, name: str, number: int, token: str = "") -> Revision | None:
        """Return the revision of this number, if it also has the ``token`` (``is_revision``); else None."""
        found = self.revisions(name, below=number + 1, limit=1, bodies=True)
        return found[0] if found and is_revision(found[0], number, token) else None

    def revision_at(self, name: str, time_ms: int) -> Revision | None:
        """Return the newest revision at or before ``time_ms``."""
        key = page_key(name)

        def work(connection: Connection) -> Revision | None:
            newest, hidden = newest_of(connection, key)
            return revision_at_in(connection, key, newest, time_ms, hidden) if newest.number else None

        return self.store.run(work)

    def revisions(
        self, name: str, *, below: int | None = None, limit: int = 50, bodies: bool = False
    ) -> list[Revision]:
        """Return up to ``limit`` revisions, newest first, from number ``below`` - 1 down."""
        key = page_key(name)

        def work(connection: Connection) -> list[Revision]:
            newest, hidden = newest_of(connection, key)
            start = newest.number if below is None else min(below - 1, newest.number)
            if start < 1 or limit < 1:
                return []
            return revisions_in(connection, key, newest, start, limit=limit, bodies=bodies, hidden=hidden)

        return self.store.run(work)

    def head(self, name: str) -> Head:
        """Return the head of the newest revision, or NO_HEAD if there is no such page."""
        return self.store.run(lambda c: newest_of(c, page_key(name))[0])

    def source(self, name: str, number: int | None = None) -> str | None:
        """Return the original text of an imported revision (the newest without ``number``), or None if none is kept."""
        key = page_key(name)

        def work(connection: Connection) -> str | None:
            newest, hidden = newest_of(connection, key)
            start = newest.number if number is None else number
            if not 0 < start <= newest.number or start in hidden:
                return None
            found = chain(connection, key, newest, start, bodies=False, expected=1)
            head = next((head for head, _ in found), None)
            return source_of(connection, key, head) if head is not None and head.number == start else None

        return self.store.run(work)

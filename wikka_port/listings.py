"""Lists of pages, read from the derived tables in steps of a bounded size.

A list lacks changes that the triggers have not delivered yet (``Wiki.settle``).
Knows nothing of how triggers fill these tables (``triggers``) or whether they are right (``consistency``).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from columnar.client import Connection
from wikka_port import schema
from wikka_port.comments.recent_comments import ListStep, comment_counts, recent_comments
from wikka_port.file_uses import key_of_file, key_of_name
from wikka_port.names import MAX_NAME_BYTES, page_key
from wikka_port.page_languages import LANGUAGES_ROW, listed
from wikka_port.page_rows import Cells, grown_in, is_minor, time_of
from wikka_port.rights.rules import FAMILY, OWN_OWNER, REVISION, page_rights
from wikka_port.schema import parse_head
from wikka_port.search.found_documents import Readable, Rights
from wikka_port.search.nearest import nearest
from wikka_port.search.query import Query
from wikka_port.search.searching import ALL, Results, search
from wikka_port.search.suggesting import HeadingOf, suggested, suggested_headings
from wikka_port.store import Store, rows_in_steps
from wikka_port.wanted import most_wanted, wanted_pages

ROUGHLY: Final = 500  # pages from which the number of all pages is estimated
OTHER_ROWS: Final = 8  # the table of pages has at most so many rows that are no pages
_STEP: Final = 200  # names read together
ChangeKind = Literal["edit", "renamed", "deleted", "restored"]


@dataclass(frozen=True, slots=True)
class RecentChange:
    name: str
    number: int
    time_ms: int
    author: str
    note: str
    is_new: bool  # whether it is the page's first revision
    signed: str = ""  # the kind of the author's name (``schema``)
    minor: bool = False
    grown: int | None = None  # characters more than before; None: unknown
    kind: ChangeKind = "edit"
    former: str = ""  # the name before, of a page that was renamed; "": the reader may not know it


class Listings:
    """The lists of ``pages.Wiki``."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def backlinks(self, name: str, *, after: str = "", limit: int = 500) -> list[str]:
        """Return pages that link to ``name``.

        The list is alphabetical if all pages fit into ``limit``.  Else it is in the order of keys; pass its last name
        as ``after`` to continue.
        """
        key = page_key(name)

        def work(connection: Connection) -> list[str]:
            return [source.decode() for source in _from_cells(connection, key, after, limit).values()]

        found = self.store.run(work)
        return found if after or len(found) >= limit else sorted(found, key=schema.name_row)

    def naming(self, page: str, file: str, *, shared: bool, after: str = "", limit: int) -> list[tuple[str, bool]]:
        """Return pages whose text names a file of ``page``, in the order of keys, from the name ``after`` on.

        With each is told whether its text certainly means this file; others name such a file and no page, and are below
        ``page``, or anywhere if all pages can name its files (``shared``).
        """

        def work(connection: Connection) -> list[tuple[str, bool]]:
            with_page = _from_cells(connection, key_of_file(page, file), after, limit)
            others = _from_cells(connection, key_of_name(file), after, limit, begins="" if shared else f"{page}/")
            found = {column: (name.decode(), False) for column, name in others.items()}
            found |= {column: (name.decode(), True) for column, name in with_page.items()}
            return [found[column] for column in sorted(found)][:limit]

        return self.store.run(work)

    def names(self, *, start: str = "", prefix: str = "", limit: int = 500) -> list[str]:
        """Return names of pages in alphabetical order (``schema.folded``), from ``start`` on, inclusive.

        ``prefix`` is compared without case and accents.
        """
        first = schema.name_row(_cut(start)) if start else b""
        low = schema.name_prefix(_cut(prefix))
        stop = _after_prefix(low)
        return self.store.run(lambda c: list(islice(_names(c, max(first, low), stop, limit), limit)))

    def search_titles(self, text: str, *, limit: int = 100) -> list[str]:
        """Return names that contain ``text``, ignoring case and accents; alphabetical.  Reads every name."""
        needle = schema.folded(" ".join(text.replace("_", " ").split()))
        if not needle:
            return []
        condition = f"RowFilter(=, 'substring:{needle.replace(chr(39), chr(39) * 2)}')"

        def work(connection: Connection) -> list[str]:
            rows = connection.table(schema.NAMES).scan(filter=condition, batch_size=min(limit, 500), limit=limit)
            return [schema.name_of_row(row) for row, _ in rows]

        return self.store.run(work)

    def search(self, query: Query, *, page: int = 1, pages: int = 0, rights: Rights = ALL) -> Results:
        """Return the pages, comments and files that match ``query``, the best first (``search.searching``).

        ``pages`` is the rough number of all pages.  ``rights`` selects what the visitor may read.
        """
        return self.store.run(lambda c: search(c, query, page=page, pages=pages, rights=rights))

    def languages(self) -> list[str]:
        """Return the languages that pages have or had, English first.  One get."""
        return listed(self.store.run(lambda c: c.table(schema.PAGES).row(LANGUAGES_ROW)))

    def suggested(self, typed: str, *, most: int = 8) -> list[str]:
        """Return names of pages that complete the ``typed`` text (``search.suggesting``)."""
        return self.store.run(lambda connection: suggested(connection, typed, most))

    def suggested_headings(self, typed: str, *, most: int, readable: Readable | None = None) -> list[HeadingOf]:
        """Return headings that complete the ``typed`` text, of the ``readable`` pages; with None of all pages."""
        return self.store.run(lambda connection: suggested_headings(connection, typed, most, readable))

    def nearest(self, name: str, *, pages: int) -> list[str]:
        """Return names of pages similar to ``name`` (``search.nearest``); ``pages`` is the rough number of pages."""
        wanted = _cut(name)
        return self.store.run(lambda connection: nearest(connection, wanted, pages))

    def owned(self, owner: str, *, limit: int) -> list[str]:
        """Return names of up to ``limit`` pages that belong to ``owner``, in order.  The store reads every page."""
        quoted = owner.encode(errors="replace").replace(b"'", b"''")
        either = b" OR ".join(
            b"SingleColumnValueFilter('%s', 'owner', =, 'binary:%s', true, true)" % (family, quoted)
            for family in (b"meta", FAMILY)
        )

        def work(connection: Connection) -> list[str]:
            columns = [schema.NAME, schema.OWNER, OWN_OWNER, REVISION]
            rows = connection.table(schema.PAGES).scan(columns=columns, filter=either, batch_size=min(limit, 500))
            owned = (cells for _, cells in rows if page_rights(cells, cells.get(schema.OWNER, b"")).owner == owner)
            return [cells[schema.NAME].decode() for cells in islice(owned, limit) if schema.NAME in cells]

        return sorted(self.store.run(work), key=schema.name_row)

    def count_pages(self) -> int:
        """Count the pages.  Reads every name."""
        work = "FirstKeyOnlyFilter() AND KeyOnlyFilter()"
        return self.store.run(lambda c: sum(1 for _ in c.table(schema.NAMES).scan(filter=work, batch_size=5_000)))

    def count_pages_roughly(self) -> int:
        """Estimate the number of pages from ROUGHLY rows; exact up to ROUGHLY pages, else some 4 % off.

        Keys are spread evenly over all hashes; so the share of the hashes below the last key read is the share of the
        pages read.  Rows of deleted pages count.
        """

        most = ROUGHLY + 1 + OTHER_ROWS

        def work(connection: Connection) -> list[bytes]:
            rows = connection.table(schema.PAGES).scan(
                columns=[schema.VERSIONCOUNT], filter="KeyOnlyFilter()", limit=most, batch_size=most + 1
            )
            return [row for row, _ in rows if len(row) == schema.KEY_BYTES]

        keys = self.store.run(work)
        if len(keys) <= ROUGHLY:
            return len(keys)
        return ROUGHLY * (1 << 4 * schema.KEY_BYTES) // int(keys[ROUGHLY], 16)

    def count_changes(self) -> int:
        """Count the changes.  Reads every change."""
        work = "FirstKeyOnlyFilter() AND KeyOnlyFilter()"
        return self.store.run(lambda c: sum(1 for _ in c.table(schema.CHANGES).scan(filter=work, batch_size=5_000)))

    def some_page(self, key: str) -> str | None:
        """Return the page with the first key at or after ``key`` (hexadecimal), or else with the first key of all."""
        return self.store.run(lambda c: _some_page(c, key.encode()) or _some_page(c, b""))

    def changes(self, *, before: str = "", limit: int = 50) -> tuple[list[RecentChange], str]:
        """Return the newest changes, newest first, and the token with which to continue ("" at the end).

        ``before`` is the token that the preceding call returned.
        """
        token = before.encode(errors="replace")

        def work(connection: Connection) -> list[tuple[bytes, Cells]]:
            ranges = [_salted(connection, salt, token, limit + 1) for salt in schema.CHANGE_SALTS]
            return list(islice(heapq.merge(*ranges, key=lambda entry: entry[0]), limit + 1))

        found = self.store.run(work)
        return [_recent(cells) for _, cells in found[:limit]], found[limit - 1][0].decode() if len(
            found
        ) > limit else ""

    def changes_since(self, place: bytes, *, limit: int) -> tuple[list[tuple[bytes, RecentChange]], bool]:
        """Return the changes after ``place`` with their places, oldest first, and whether there are more.

        ``place`` is that of a change, or one of ``schema.change_place``.  O(limit), however long ago it is.
        """

        def work(connection: Connection) -> list[tuple[bytes, Cells]]:
            ranges = [_salted_since(connection, salt, place, limit + 1) for salt in schema.CHANGE_SALTS]
            return list(islice(heapq.merge(*ranges, key=lambda entry: entry[0], reverse=True), limit + 1))

        found = self.store.run(work)
        return [(at, _recent(cells)) for at, cells in found[:limit]], len(found) > limit

    def recent_comments(self, *, user: str = "", before: str = "", limit: int) -> ListStep:
        """Return the newest comments, or those of an account (``comments.recent_comments``)."""
        return recent_comments(self.store, user=user, before=before, limit=limit)

    def comment_counts(self, *, after: str = "") -> tuple[dict[str, int], str]:
        """Return the number of comments of some pages that have any, and the token to continue with."""
        return comment_counts(self.store, after)

    def wanted(self, *, after: str = "", limit: int = 200) -> list[tuple[str, int]]:
        """Return names that pages link to but no page has, each with the number of these pages.

        Pass the last name as ``after`` to continue.
        """
        start = page_key(after) + b"\x00" if after else b""
        return self.store.run(lambda connection: wanted_pages(connection, start, limit))

    def most_wanted(self, *, limit: int = 200) -> list[tuple[str, int]]:
        """Return wanted names as ``wanted`` does, the names with the most links first.  Reads all wanted names."""
        return self.store.run(lambda connection: most_wanted(connection, limit))

    def initials(self, *, limit: int = 200) -> list[str]:
        """Return the first letters of names, folded, each once; alphabetical.  Costs a short scan for each letter."""
        return self.store.run(lambda connection: list(islice(_initials(connection), limit)))

    def linking(self, names: Collection[str]) -> dict[str, list[str]]:
        """Return by name the pages that link to each of ``names``, in one call.  O(links to all of them)."""
        keys = {page_key(name): name for name in names}
        found = self.store.run(lambda c: list(rows_in_steps(c.table(schema.BACKLINKS), keys, b"from")))
        return {keys[key]: [source.decode() for source in cells.values()] for key, cells in found}

    def orphaned(self, *, after: str = "", limit: int = 200) -> list[str]:
        """Return pages that no other page links to; alphabetical."""
        start = schema.name_row(_cut(after)) + b"\x00" if after else b""
        return self.store.run(lambda connection: list(islice(_orphaned(connection, start), limit)))


def _cut(typed: str) -> str:
    """Cut ``typed``, which may come from an address of any length, to just above the longest name."""
    return typed[: MAX_NAME_BYTES + 1]


def _from_cells(connection: Connection, key: bytes, after: str, limit: int, begins: str = "") -> Cells:
    """Return cells of the sources of a target, after the source ``after``; those whose names begin with ``begins``."""
    first = page_key(after) if after else b""
    filters = f"ColumnRangeFilter('{first.decode()}', false, 'g', false) AND "
    if begins:
        quoted = begins.replace("'", "''")
        filters += f"ValueFilter(=, 'binaryprefix:{quoted}') AND "
    filters += f"ColumnPaginationFilter({limit}, 0)"
    rows = connection.table(schema.BACKLINKS).scan(
        row_start=key, row_stop=key + b"\x00", columns=[b"from"], filter=filters, batch_size=2
    )
    return next((cells for _, cells in rows), {})


def _names(connection: Connection, start: bytes, stop: bytes | None, limit: int) -> Iterator[str]:
    rows = connection.table(schema.NAMES).scan(
        row_start=start, row_stop=stop, columns=[b"meta"], batch_size=min(limit, 1_000), limit=limit
    )
    for row, _ in rows:
        yield schema.name_of_row(row)


def _initials(connection: Connection) -> Iterator[str]:
    start: bytes | None = b""
    while start is not None:
        name = next(_names(connection, start, None, 1), None)
        if name is None:
            return
        initial = schema.folded(name)[:1]
        yield initial
        start = _after_prefix(initial.encode())


def _some_page(connection: Connection, start: bytes) -> str | None:
    rows = connection.table(schema.PAGES).scan(row_start=start, columns=[schema.NAME], batch_size=2, limit=1)
    return next((cells[schema.NAME].decode() for _, cells in rows), None)


def _salted(connection: Connection, salt: bytes, token: bytes, limit: int) -> Iterator[tuple[bytes, Cells]]:
    """Yield the entries of one salt after ``token``, with the salt cut from their rows."""
    rows = connection.table(schema.CHANGES).scan(
        row_start=salt + token + b"\x00" if token else salt,
        row_stop=_after_prefix(salt),
        batch_size=min(limit, 200),
        limit=limit,
    )
    for row, cells in rows:
        yield row[len(salt) :], cells


def _salted_since(connection: Connection, salt: bytes, place: bytes, limit: int) -> Iterator[tuple[bytes, Cells]]:
    """Yield the entries of one salt before ``place``, the oldest first, with the salt cut from their rows."""
    rows = connection.table(schema.CHANGES).scan(
        row_start=salt + place, row_stop=salt, reverse=True, batch_size=min(limit, 200), limit=limit + 1
    )
    for row, cells in rows:
        if row[len(salt) :] != place:  # the first row of a reversed scan may be the one it starts at
            yield row[len(salt) :], cells


def _recent(cells: Cells) -> RecentChange:
    number = parse_head(cells.get(schema.HEAD)).number
    return RecentChange(
        name=cells.get(schema.NAME, b"").decode(),
        number=number,
        time_ms=time_of(cells),
        author=cells.get(schema.REVISION_AUTHOR, b"").decode(),
        note=cells.get(schema.REVISION_NOTE, b"").decode(),
        is_new=number == 1,
        signed=cells.get(schema.SIGNED, b"").decode(),
        minor=is_minor(cells),
        grown=grown_in(cells),
    )


def _orphaned(connection: Connection, start: bytes) -> Iterator[str]:
    backlinks = connection.table(schema.BACKLINKS)
    rows = connection.table(schema.NAMES).scan(row_start=start, columns=[b"meta"], batch_size=_STEP)
    while step := [schema.name_of_row(row) for row, _ in islice(rows, _STEP)]:
        keys = {page_key(name): name for name in step}
        linked = {
            key
            for key, cells in backlinks.rows(list(keys), columns=[b"from"])
            if any(column != schema.FROM + key for column in cells)
        }
        yield from (name for key, name in keys.items() if key not in linked)


def _after_prefix(prefix: bytes) -> bytes | None:
    """Return the first row after all rows that begin with ``prefix``, or None if no row can be after them."""
    bare = prefix.rstrip(b"\xff")
    return bare[:-1] + bytes([bare[-1] + 1]) if bare else None

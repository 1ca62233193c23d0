"""Lists of pages, read from the derived tables; each in pages of a bounded size.

A list may lag behind the last save by what the triggers have not delivered yet (``Wiki.settle``).
Knows nothing of how the tables are kept (``triggers``) or their truth (``consistency``).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.names import MAX_NAME_BYTES, page_key
from wikka_port.page_languages import LANGUAGES_ROW, listed
from wikka_port.page_rows import Cells, is_minor, time_of
from wikka_port.rights.rules import FAMILY, OWN_OWNER, REVISION, page_rights
from wikka_port.schema import parse_head
from wikka_port.search.nearest import nearest
from wikka_port.search.query import Query
from wikka_port.search.searching import Readable, Results, search
from wikka_port.search.suggesting import HeadingOf, suggested, suggested_headings
from wikka_port.store import Store, rows_in_steps
from wikka_port.wanted import most_wanted, wanted_pages

ROUGHLY: Final = 500  # pages from which the number of all is guessed
OTHER_ROWS: Final = 8  # of the table of pages, that are none, at most
_STEP: Final = 200  # names read together


@dataclass(frozen=True, slots=True)
class RecentChange:
    name: str
    number: int
    time_ms: int
    author: str
    note: str
    is_new: bool  # the page began with it
    signed: str = ""  # what the author's name rests on (``schema``)
    minor: bool = False


class Listings:
    """Lists that ``pages.Wiki`` offers beside single pages."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def backlinks(self, name: str, *, after: str = "", limit: int = 500) -> list[str]:
        """Return pages that link to ``name``.

        Alphabetical where all fit into ``limit``; else in an order of their own, to be continued
        by giving the last one as ``after``.
        """
        key = page_key(name)

        def work(connection: Connection) -> list[str]:
            return [source.decode() for source in _from_cells(connection, key, after, limit).values()]

        found = self.store.run(work)
        return found if after or len(found) >= limit else sorted(found, key=schema.name_row)

    def names(self, *, start: str = "", prefix: str = "", limit: int = 500) -> list[str]:
        """Alphabetical (``schema.folded``), from ``start`` on, itself included.

        ``prefix`` is compared without case and accents.
        """
        first = schema.name_row(_cut(start)) if start else b""
        low = schema.name_prefix(_cut(prefix))
        stop = _after_prefix(low)
        return self.store.run(lambda c: list(islice(_names(c, max(first, low), stop, limit), limit)))

    def search_titles(self, text: str, *, limit: int = 100) -> list[str]:
        """Return names with ``text`` in them, without case and accents; alphabetical.  Reads every name."""
        needle = schema.folded(" ".join(text.replace("_", " ").split()))
        if not needle:
            return []
        condition = f"RowFilter(=, 'substring:{needle.replace(chr(39), chr(39) * 2)}')"

        def work(connection: Connection) -> list[str]:
            rows = connection.table(schema.NAMES).scan(filter=condition, batch_size=min(limit, 500), limit=limit)
            return [schema.name_of_row(row) for row, _ in rows]

        return self.store.run(work)

    def search(self, query: Query, *, page: int = 1, pages: int = 0, readable: Readable | None = None) -> Results:
        """Return pages with the words that were requested, the best first (``search.searching``).

        ``pages``: how many the wiki has, roughly; ``readable``: what the visitor may see, None: all.
        """
        return self.store.run(lambda c: search(c, query, page=page, pages=pages, readable=readable))

    def languages(self) -> list[str]:
        """Languages that pages have or had, English first.  One get."""
        return listed(self.store.run(lambda c: c.table(schema.PAGES).row(LANGUAGES_ROW)))

    def suggested(self, typed: str, *, most: int = 8) -> list[str]:
        """Return names that what is being typed may become (``search.suggesting``)."""
        return self.store.run(lambda connection: suggested(connection, typed, most))

    def suggested_headings(self, typed: str, *, most: int, readable: Readable | None = None) -> list[HeadingOf]:
        """Headings that what is being typed may become, of pages that are ``readable``; None: of all."""
        return self.store.run(lambda connection: suggested_headings(connection, typed, most, readable))

    def nearest(self, name: str, *, pages: int) -> list[str]:
        """Names that one without a page may have meant (``search.nearest``); ``pages``: how many there are, roughly."""
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
        """Reads every name."""
        work = "FirstKeyOnlyFilter() AND KeyOnlyFilter()"
        return self.store.run(lambda c: sum(1 for _ in c.table(schema.NAMES).scan(filter=work, batch_size=5_000)))

    def count_pages_roughly(self) -> int:
        """Read ROUGHLY pages, however many there are; some 4 % off where there are more.

        Their keys are spread evenly: as many as lie below the last one seen lie in each other part that is as large.
        Rows of deleted pages count.
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
        """Reads every change."""
        work = "FirstKeyOnlyFilter() AND KeyOnlyFilter()"
        return self.store.run(lambda c: sum(1 for _ in c.table(schema.CHANGES).scan(filter=work, batch_size=5_000)))

    def some_page(self, key: str) -> str | None:
        """Return the page whose key is the first at or after ``key``, hexadecimal; from the beginning where none is."""
        return self.store.run(lambda c: _some_page(c, key.encode()) or _some_page(c, b""))

    def changes(self, *, before: str = "", limit: int = 50) -> tuple[list[RecentChange], str]:
        """Newest first; ``before`` is the token that the call for the page before gave.  "" at the end."""
        token = before.encode(errors="replace")

        def work(connection: Connection) -> list[tuple[bytes, Cells]]:
            ranges = [_salted(connection, salt, token, limit + 1) for salt in schema.CHANGE_SALTS]
            return list(islice(heapq.merge(*ranges, key=lambda entry: entry[0]), limit + 1))

        found = self.store.run(work)
        return [_recent(cells) for _, cells in found[:limit]], found[limit - 1][0].decode() if len(
            found
        ) > limit else ""

    def wanted(self, *, after: str = "", limit: int = 200) -> list[tuple[str, int]]:
        """Names that are linked to and are no pages, with how many want them; continue with the last as ``after``."""
        start = page_key(after) + b"\x00" if after else b""
        return self.store.run(lambda connection: wanted_pages(connection, start, limit))

    def most_wanted(self, *, limit: int = 200) -> list[tuple[str, int]]:
        """As ``wanted``, those first that most pages link to.  Reads all that are wanted."""
        return self.store.run(lambda connection: most_wanted(connection, limit))

    def initials(self, *, limit: int = 200) -> list[str]:
        """Return the first letters of names, folded, each once; alphabetical.  A short scan for each."""
        return self.store.run(lambda connection: list(islice(_initials(connection), limit)))

    def linking(self, names: Collection[str]) -> dict[str, list[str]]:
        """Return the pages that link to each of ``names``, in one call; O(all their links)."""
        keys = {page_key(name): name for name in names}
        found = self.store.run(lambda c: list(rows_in_steps(c.table(schema.BACKLINKS), keys, b"from")))
        return {keys[key]: [source.decode() for source in cells.values()] for key, cells in found}

    def orphaned(self, *, after: str = "", limit: int = 200) -> list[str]:
        """Return pages that no other page links to; alphabetical."""
        start = schema.name_row(_cut(after)) + b"\x00" if after else b""
        return self.store.run(lambda connection: list(islice(_orphaned(connection, start), limit)))


def _cut(typed: str) -> str:
    """``typed`` without what no name has: a row has a bound, and an address has none."""
    return typed[: MAX_NAME_BYTES + 1]


def _from_cells(connection: Connection, key: bytes, after: str, limit: int) -> Cells:
    first = page_key(after) if after else b""
    filters = f"ColumnRangeFilter('{first.decode()}', false, 'g', false) AND ColumnPaginationFilter({limit}, 0)"
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
    """Entries of one salt after ``token``, their rows without the salt."""
    rows = connection.table(schema.CHANGES).scan(
        row_start=salt + token + b"\x00" if token else salt,
        row_stop=_after_prefix(salt),
        batch_size=min(limit, 200),
        limit=limit,
    )
    for row, cells in rows:
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
    """Return the first row after all that begin with ``prefix``; None: there is no end."""
    bare = prefix.rstrip(b"\xff")
    return bare[:-1] + bytes([bare[-1] + 1]) if bare else None

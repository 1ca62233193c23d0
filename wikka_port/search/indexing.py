"""The trigger's function that keeps the index of words, by the rules of ``wikka_port.triggers``.

The cell of a posting follows from one page, and gets the timestamp of that page's change.  A normal delivery writes
the difference between the page before the change and the page now.  A careful one writes all postings of the present
page, and deletes the others that ``docs`` still lists.  ``docs`` must always list at least the stems that ``terms``
has: before the first posting it is put with the stems to be removed, and after the last posting without them.

``Recount`` compares the index with the pages, for ``wikka check``: it computes the postings of each page again, and
reads each posting of ``terms`` once.  Both sides give a sum over a page's postings that does not depend on their order.
So one scan of the pages and one of the terms find the pages whose postings differ, in O(all postings) time and some
hundred bytes of memory for a page.  A page is one difference, however many of its postings are wrong.  A repair scans
the terms once more for each REPAIR_BATCH_PAGES, and writes the postings that the pages should have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from columnar.client import Connection
from columnar.triggers.api import Barrier, Change, Delete, Effect, Put
from wikka_port import schema
from wikka_port.differences import Difference, Kind, cell_differences
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import Cells, autolink_of, is_there, language_of, markup_of, time_of
from wikka_port.search.postings import (
    STEMS,
    Postings,
    column_of,
    key_of,
    of_page,
    pack_stems,
    parse_stems,
    stem_of_row,
    term_row,
)
from wikka_port.store import rows_in_steps

Steps = Iterator[tuple[Change, Effect] | Barrier]
BATCH: Final = 32  # pages: their postings of one stem are written together
FAMILIES: Final = (b"body", b"meta")
REPAIR_BATCH_PAGES: Final = 5_000  # pages in one scan of a repair: some 50 MB of postings
POSTINGS_COLUMN: Final = b""  # in a Difference: all of a page's postings, not one cell
_SCANNED: Final = 50  # rows of terms in a call: each has up to a sixteenth of all pages
_SUMS: Final = 1 << 64

_Sum = tuple[int, int]  # postings, and the sum of their digests
_NONE: Final[_Sum] = (0, 0)


class _PostingsChange(NamedTuple):
    """The difference that a change of a page makes to its postings."""

    change: Change
    put: Postings
    removed: frozenset[str]
    stems: frozenset[str]  # of the present page


def index(batch: Sequence[Change], client: Connection) -> Steps:
    changes = _postings_changes(batch, client)
    for change in changes:
        if change.put or change.removed:
            yield change.change, Put(schema.DOCS, change.change.row, {STEMS: pack_stems(change.stems | change.removed)})
    if any(change.put or change.removed for change in changes):
        yield Barrier()
    for change in changes:
        key, column = change.change.row, column_of(change.change.row)
        for stem, posting in change.put.items():
            yield change.change, Put(schema.TERMS, term_row(stem, key), {column: posting})
        for stem in change.removed:
            yield change.change, Delete(schema.TERMS, term_row(stem, key), [column])
    if any(change.removed for change in changes):
        yield Barrier()
    for change in changes:
        if not change.stems:
            yield change.change, Delete(schema.DOCS, change.change.row, [STEMS])
        elif change.removed:
            yield change.change, Put(schema.DOCS, change.change.row, {STEMS: pack_stems(change.stems)})


def _postings_changes(batch: Sequence[Change], client: Connection) -> list[_PostingsChange]:
    changes = [change for change in batch if _concerns(change)]
    careful = [change.row for change in changes if _is_careful(change)]
    known = dict(rows_in_steps(client.table(schema.DOCS), dict.fromkeys(careful), STEMS)) if careful else {}
    found = []
    for change in changes:
        now = change.now if is_there(change.now) else {}
        after, before = postings_of(now), postings_of(change.before)
        if _is_careful(change):
            ever = parse_stems(known.get(change.row, {}).get(STEMS, b""))
            put, removed = after, frozenset((before.keys() | ever) - after.keys())
        else:
            put = {stem: posting for stem, posting in after.items() if before.get(stem) != posting}
            removed = frozenset(before.keys() - after.keys())
        found.append(_PostingsChange(change, put, removed, frozenset(after)))
    return found


def _is_careful(change: Change) -> bool:
    """Return whether the function may have run for the change before, or the change does not tell what changed."""
    return change.attempt > 1 or not change.changes


def _concerns(change: Change) -> bool:
    """Return whether the change is a revision, or the end of a page."""
    if not change.changes:
        return True
    columns = {cell.column for cell in change.changes}
    put = {cell.column: cell.value for cell in change.changes if cell.kind == "put"}
    has_ended = schema.VERSIONCOUNT in put and not is_there(put)  # deleted, or moved
    return (
        schema.HEAD in columns
        or has_ended
        or any(cell.kind != "put" and cell.column in (schema.VERSIONCOUNT, b"meta") for cell in change.changes)
    )


def postings_of(cells: Cells) -> Postings:
    """Return a page's postings from its row; none if the row is no page."""
    name, body = cells.get(schema.NAME), cells.get(schema.BODY)
    if not name or body is None:
        return {}
    text = body.decode(errors="replace")
    return of_page(
        name.decode(errors="replace"),
        text,
        autolink=autolink_of(cells),
        markup=markup_of(cells),
        language=language_of(cells) or ENGLISH,
    )


# --- the index against the pages ---------------------------------------------------------------


class Recount:
    """A single comparison of index and pages: call ``of_pages`` for all pages, then ``of_tables``."""

    def __init__(self, connection: Connection, at: Callable[[int], int]) -> None:
        """Let ``at`` give the timestamp of a repair from the time of the page."""
        self._docs = connection.table(schema.DOCS)
        self._terms = connection.table(schema.TERMS)
        self._at = at
        self._wanted: dict[bytes, tuple[_Sum, int]] = {}  # by page: its sum, and the timestamp of a repair
        self.postings = 0

    def of_pages(self, pages: Mapping[bytes, Cells]) -> Iterator[Difference]:
        stored = dict(rows_in_steps(self._docs, pages, STEMS, include_timestamp=True))
        for key, cells in pages.items():
            postings = postings_of(cells)
            at_ms = self._at(time_of(cells))
            self.postings += len(postings)
            self._wanted[key] = (_sum_of(key, postings), at_ms)
            expected = {STEMS: pack_stems(postings)} if postings else {}
            yield from cell_differences(schema.DOCS, key, expected, stored.get(key, {}), at_ms)

    def of_tables(self) -> Iterator[Difference]:
        for key, _ in self._docs.scan(batch_size=500):
            if key not in self._wanted:
                yield Difference(Kind.STALE, schema.DOCS, key, STEMS, None, b"", self._at(0))
        stored: dict[bytes, _Sum] = {}
        for row, cells in self._terms.scan(batch_size=_SCANNED):
            stem = stem_of_row(row)
            for column, value in cells.items():
                key = key_of(column)
                count, total = stored.get(key, _NONE)
                stored[key] = (count + 1, (total + _digest(stem, key, value, row)) % _SUMS)
        for key, (wanted, at_ms) in self._wanted.items():
            found = stored.pop(key, _NONE)
            if found != wanted:
                yield _difference(key, wanted, found, at_ms)
        for key, found in stored.items():
            yield _difference(key, _NONE, found, self._at(0))


def _difference(key: bytes, wanted: _Sum, found: _Sum, at_ms: int) -> Difference:
    kind = Kind.DIFFERENT
    if found[0] < wanted[0]:
        kind = Kind.MISSING
    elif not wanted[0]:
        kind = Kind.STALE
    return Difference(kind, schema.TERMS, key, POSTINGS_COLUMN, _format_sum(wanted), _format_sum(found), at_ms)


def _format_sum(one: _Sum) -> bytes:
    return b"%d postings, %016x" % one


def _sum_of(key: bytes, postings: Postings) -> _Sum:
    return len(postings), sum(_digest(stem, key, one, term_row(stem, key)) for stem, one in postings.items()) % _SUMS


def _digest(stem: str, key: bytes, posting: bytes, row: bytes) -> int:
    """Return the digest of a posting; if it lies in a wrong row, the digest differs."""
    place = b"" if row == term_row(stem, key) else row
    return int.from_bytes(blake2b(b"\x00".join((stem.encode(), key, posting, place)), digest_size=8).digest())


# --- repair ------------------------------------------------------------------------------------


def repair_postings(connection: Connection, differences: Iterable[Difference]) -> None:
    """Write the postings that the pages should have, each at the timestamp of its difference."""
    left = iter(differences)
    while some := list(islice(left, REPAIR_BATCH_PAGES)):
        _repair_batch(connection, some)


def _repair_batch(connection: Connection, differences: Sequence[Difference]) -> None:
    times = {one.row: one.at_ms for one in differences}
    terms = connection.table(schema.TERMS)
    wrong: dict[int, list[tuple[bytes, bytes]]] = {}  # by timestamp: cells to be deleted
    wanted: dict[bytes, dict[bytes, dict[bytes, bytes]]] = {}  # by page: rows with their cells
    for key, cells in rows_in_steps(connection.table(schema.PAGES), times, *FAMILIES):
        column = column_of(key)
        wanted[key] = {term_row(stem, key): {column: one} for stem, one in postings_of(cells).items()}
    for row, cells in terms.scan(batch_size=_SCANNED, include_timestamp=True):
        for column, (value, stamp) in cells.items():
            key = key_of(column)
            if key not in times:
                continue
            expected = wanted.get(key, {}).get(row, {}).get(column)
            if expected == value:
                del wanted[key][row]
            elif expected is None:
                wrong.setdefault(stamp, []).append((row, column))
    for key, rows in wanted.items():
        with terms.batch(timestamp=times[key], batch_size=500) as batch:
            for row, cells in rows.items():
                batch.put(row, cells)
    for stamp, stale in wrong.items():
        with terms.batch(timestamp=stamp, batch_size=500) as batch:
            for row, column in stale:
                batch.delete(row, [column])

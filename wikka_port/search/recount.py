"""The index of words against its sources, for ``wikka check``, and its repair.

``Recount`` computes the postings of each page, comment and file again, and reads each posting of ``terms`` once.  Both
sides give a sum over a document's postings that does not depend on their order.  So one scan of the sources and one of
the terms find the documents whose postings differ, in O(all postings) time and some hundred bytes of memory for a
document.  A document is one difference, however many of its postings are wrong.  A repair scans the terms once more for
each REPAIR_BATCH, and writes the postings that the documents should have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.comments.comment_rows import CELLS_FAMILY, COMMENTS
from wikka_port.differences import Difference, Kind, Stamped, cell_differences
from wikka_port.files.file_rows import FILE_FAMILY, FILES, files_in
from wikka_port.page_rows import Cells, is_there, time_of
from wikka_port.search.beside_pages import (
    KINDS,
    key_of_comment,
    key_of_file,
    kind_of,
    page_of_file,
    postings_of_comment,
    postings_of_file,
    row_of_comment,
)
from wikka_port.search.indexing import postings_of
from wikka_port.search.postings import STEMS, Postings, column_of, key_of, pack_stems, stem_of_row, term_row
from wikka_port.store import rows_in_steps

REPAIR_BATCH: Final = 5_000  # documents in one scan of a repair: some 50 MB of postings
POSTINGS_COLUMN: Final = b""  # in a Difference: all of a document's postings, not one cell
_OF_TEXTS: Final = (b"body", b"meta")
_TOGETHER: Final = 200  # comments or files
_SCANNED: Final = 50  # rows of terms in a call: each has up to a sixteenth of all pages
_SUMS: Final = 1 << 64

_Sum = tuple[int, int]  # postings, and the sum of their digests
_NONE: Final[_Sum] = (0, 0)


class Recount:
    """A single comparison: call ``of_pages`` for all pages, then ``beside_pages``, then ``of_tables``."""

    def __init__(self, connection: Connection, at: Callable[[int], int]) -> None:
        """Let ``at`` give the timestamp of a repair from the time of the page."""
        self._connection = connection
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
            yield from self._of_document(key, postings, stored.get(key, {}), at_ms)

    def _of_document(self, key: bytes, postings: Postings, stored: Stamped, at_ms: int) -> Iterator[Difference]:
        self.postings += len(postings)
        self._wanted[key] = (_sum_of(key, postings), at_ms)
        expected = {STEMS: pack_stems(postings)} if postings else {}
        yield from cell_differences(schema.DOCS, key, expected, stored, at_ms)

    def beside_pages(self, now_ms: int) -> Iterator[Difference]:
        """Compare comments and files; a folder that is not prepared for them has none.  O(their texts)."""
        there, at_ms = set(self._connection.tables()), self._at(now_ms)
        found = chain(
            _comments(self._connection) if COMMENTS in there else (),
            _files(self._connection) if FILES in there else (),
        )
        while step := list(islice(found, _TOGETHER)):
            stored = dict(rows_in_steps(self._docs, (key for key, _ in step), STEMS, include_timestamp=True))
            for key, postings in step:
                yield from self._of_document(key, postings, stored.get(key, {}), at_ms)

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


def _comments(connection: Connection) -> Iterator[tuple[bytes, Postings]]:
    for row, cells in connection.table(COMMENTS).scan(columns=[CELLS_FAMILY], batch_size=_TOGETHER):
        yield key_of_comment(row), postings_of_comment(row, cells)


def _files(connection: Connection) -> Iterator[tuple[bytes, Postings]]:
    columns = [FILE_FAMILY, schema.VERSIONCOUNT]
    for row, cells in connection.table(schema.PAGES).scan(columns=columns, batch_size=_TOGETHER):
        for name, current in files_in(cells).items() if is_there(cells) else ():
            if current.is_there:
                yield key_of_file(row, name), postings_of_file(connection, name, current)


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
    while some := list(islice(left, REPAIR_BATCH)):
        _repair_batch(connection, some)


def _postings_by_key(connection: Connection, keys: Collection[bytes]) -> Iterator[tuple[bytes, Postings]]:
    """Yield the postings that documents should have."""
    pages = connection.table(schema.PAGES)
    by_kind = {kind: [key for key in keys if kind_of(key) == kind] for kind in KINDS}
    for key, cells in rows_in_steps(pages, by_kind["page"], *_OF_TEXTS):
        yield key, postings_of(cells)
    comments = {row_of_comment(key): key for key in by_kind["comment"]}
    for row, cells in rows_in_steps(connection.table(COMMENTS), comments, CELLS_FAMILY):
        yield comments[row], postings_of_comment(row, cells)
    wanted = set(by_kind["file"])
    owners = dict.fromkeys(map(page_of_file, by_kind["file"]))
    for row, cells in rows_in_steps(pages, owners, FILE_FAMILY, schema.VERSIONCOUNT):
        for name, current in files_in(cells).items() if is_there(cells) else ():
            key = key_of_file(row, name)
            if key in wanted:
                yield key, postings_of_file(connection, name, current)


def _repair_batch(connection: Connection, differences: Sequence[Difference]) -> None:
    times = {one.row: one.at_ms for one in differences}
    terms = connection.table(schema.TERMS)
    wrong: dict[int, list[tuple[bytes, bytes]]] = {}  # by timestamp: cells to be deleted
    wanted: dict[bytes, dict[bytes, dict[bytes, bytes]]] = {}  # by page: rows with their cells
    for key, postings in _postings_by_key(connection, times):
        column = column_of(key)
        wanted[key] = {term_row(stem, key): {column: one} for stem, one in postings.items()}
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
            for row, put in rows.items():
                batch.put(row, put)
    for stamp, stale in wrong.items():
        with terms.batch(timestamp=stamp, batch_size=500) as batch:
            for row, column in stale:
                batch.delete(row, [column])

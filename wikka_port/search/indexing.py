"""The functions of triggers that keep the index of words, by the rules of ``wikka_port.triggers``.

The cell of a posting follows from one page, and gets the timestamp of that page's change.  A normal delivery writes
the postings that differ between the page before the change and the page now, a careful one all of the present page.
Either deletes the others that ``docs`` lists: a worker that died with the store may have written some of a page that is
older by now, and then nobody knows of that attempt.  ``docs`` must always list at least the stems that ``terms`` has:
before the first posting it is put with the stems to be removed, and after the last posting without them.

A comment and a file are documents as a page is (``beside_pages``).  A change of a file writes all its postings, since
the content that it had before may be gone.  Changes of files are worked on in groups of some TOGETHER postings, so that
a page with many text files takes no more memory than a large page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from columnar.client import Connection
from columnar.triggers.api import Barrier, Change, Delete, Effect, Put
from wikka_port import schema
from wikka_port.comments.comment_rows import is_comment_row
from wikka_port.files.file_rows import FILE, FILE_FAMILY, files_in
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import Cells, autolink_of, is_there, language_of, markup_of
from wikka_port.search.beside_pages import key_of_comment, key_of_file, postings_of_comment, postings_of_file
from wikka_port.search.postings import STEMS, Postings, column_of, of_page, pack_stems, parse_stems, term_row
from wikka_port.store import rows_in_steps

Steps = Iterator[tuple[Change, Effect] | Barrier]
BATCH: Final = 32  # pages: their postings of one stem are written together
FAMILIES: Final = (b"body", FILE_FAMILY, b"meta")
TOGETHER: Final = 20_000  # postings of files that are in memory


class _PostingsChange(NamedTuple):
    """The difference that a change makes to the postings of a document."""

    change: Change
    key: bytes  # of the document
    put: Postings
    removed: frozenset[str]
    stems: frozenset[str]  # of the present document


def index(batch: Sequence[Change], client: Connection) -> Steps:
    """Yield the effects on the words of pages, and of their files."""
    yield from _steps(_postings_changes(batch, client))
    group, size = list[_PostingsChange](), 0
    for one in _of_files(batch, client):
        group.append(one)
        size += len(one.put) + len(one.removed)
        if size >= TOGETHER:
            yield from _steps(group)
            group, size = [], 0
    yield from _steps(group)


def index_comments(batch: Sequence[Change], client: Connection) -> Steps:
    """Yield the effects on the words of comments, of changes of their rows."""
    changes = [change for change in batch if is_comment_row(change.row)]
    known = _known_stems(client, [key_of_comment(change.row) for change in changes])
    found = []
    for change in changes:
        key, row = key_of_comment(change.row), change.row
        after, before = postings_of_comment(row, change.now), postings_of_comment(row, _row_before(change))
        found.append(_difference(change, key, before, after, known[key]))
    yield from _steps(found)


def _row_before(change: Change) -> Cells:
    """Return the row as it was: ``before`` has only the cells that the change touched."""
    touched = {cell.column for cell in change.changes}
    untouched = {column: cell for column, cell in change.now.items() if column not in touched}
    return {**(untouched if change.changes else {}), **change.before}


def _difference(
    change: Change, key: bytes, before: Postings, after: Postings, listed: Collection[str]
) -> _PostingsChange:
    """Return what a change makes of a document; ``listed`` has the stems that the index may have."""
    removed = frozenset((before.keys() | listed) - after.keys())
    if not _is_careful(change):
        put = {stem: posting for stem, posting in after.items() if before.get(stem) != posting}
        return _PostingsChange(change, key, put, removed, frozenset(after))
    return _PostingsChange(change, key, after, removed, frozenset(after))


def _steps(changes: Sequence[_PostingsChange]) -> Steps:
    for change in changes:
        if change.put or change.removed:
            yield change.change, Put(schema.DOCS, change.key, {STEMS: pack_stems(change.stems | change.removed)})
    if any(change.put or change.removed for change in changes):
        yield Barrier()
    for change in changes:
        key, column = change.key, column_of(change.key)
        for stem, posting in change.put.items():
            yield change.change, Put(schema.TERMS, term_row(stem, key), {column: posting})
        for stem in change.removed:
            yield change.change, Delete(schema.TERMS, term_row(stem, key), [column])
    if any(change.removed for change in changes):
        yield Barrier()
    for change in changes:
        if not change.stems:
            yield change.change, Delete(schema.DOCS, change.key, [STEMS])
        elif change.removed:
            yield change.change, Put(schema.DOCS, change.key, {STEMS: pack_stems(change.stems)})


def _postings_changes(batch: Sequence[Change], client: Connection) -> list[_PostingsChange]:
    changes = [change for change in batch if _concerns(change)]
    known = _known_stems(client, [change.row for change in changes])
    found = []
    for change in changes:
        now = change.now if is_there(change.now) else {}
        after, before = postings_of(now), postings_of(change.before)
        found.append(_difference(change, change.row, before, after, known[change.row]))
    return found


def _known_stems(client: Connection, keys: Collection[bytes]) -> dict[bytes, frozenset[str]]:
    """Return the stems that the index may have of documents, by key."""
    found = dict(rows_in_steps(client.table(schema.DOCS), dict.fromkeys(keys), STEMS)) if keys else {}
    return {key: parse_stems(found.get(key, {}).get(STEMS, b"")) for key in keys}


def _of_files(batch: Sequence[Change], client: Connection) -> Iterator[_PostingsChange]:
    """Yield the differences of the files that the changes touched."""
    for change in batch:
        names = _files_touched(change)
        keys = {key_of_file(change.row, name): name for name in names}
        known = _known_stems(client, keys)
        files = files_in(change.now) if is_there(change.now) else {}
        for key, name in keys.items():
            yield _difference(change, key, {}, postings_of_file(client, name, files.get(name)), known[key])


def _files_touched(change: Change) -> list[str]:
    """Return the names of the files that a change touched; of a row that tells no change all that it has."""
    if len(change.row) != schema.KEY_BYTES:
        return []
    columns = {cell.column for cell in change.changes}
    if not change.changes or FILE_FAMILY in columns:
        columns |= change.now.keys() | change.before.keys()
    return sorted(column[len(FILE) :].decode() for column in columns if column.startswith(FILE))


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

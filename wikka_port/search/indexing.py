"""The trigger's function that keeps the index of words, by the rules of ``wikka_port.triggers``.

A posting's cell has one page that it comes from, and bears the stamp of that page's change.  On a normal delivery the
difference between the page before the change and now is written; a careful one writes all that the page says now, and
takes back what ``docs`` still knows of it.  So ``docs`` never knows less than the terms have: it is put with what goes
as well before the first posting, and without it after the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from columnar.client import Connection
from columnar.triggers.api import Barrier, Change, Delete, Effect, Put
from wikka_port import schema
from wikka_port.page_languages import ENGLISH
from wikka_port.page_rows import Cells, autolink_of, is_there, language_of, markup_of
from wikka_port.search.postings import STEMS, Postings, column_of, of_page, pack_stems, parse_stems, term_row
from wikka_port.store import rows_in_steps

Steps = Iterator[tuple[Change, Effect] | Barrier]
BATCH: Final = 32  # pages: their postings of one stem are written together
FAMILIES: Final = (b"body", b"meta")


class _PostingsChange(NamedTuple):
    """The difference that a change makes to its page's postings."""

    change: Change
    put: Postings
    removed: frozenset[str]
    stems: frozenset[str]  # of the page now


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
    """It may have run before, or what changed is unknown."""
    return change.attempt > 1 or not change.changes


def _concerns(change: Change) -> bool:
    """Whether the change is a revision, or the end of a page."""
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
    """Return a page's postings, from its row; empty: there is no page."""
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

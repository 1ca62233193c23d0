"""Signatures of an account, written anew where it ends: wherever they stand, in sight or not.

    revisions   the author of each edit, hidden revisions and those of deleted pages among them
    pages       the author of the newest revision; ``deleted`` as well, and who deleted the page
    changes     the list of changes
    moves       who renamed, deleted or asked for work on many pages

Each table is searched itself, so no index has to be complete but ``changes``, whose own rows are rewritten.  Each cell
is written with the timestamp that it has, so doing it twice is doing it once, and a page with a newer revision is
never touched.  Cost: one scan of each table, on the store's side and without texts, and two or three cells for each
edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from columnar.client import Connection, Put
from wikka_port import schema
from wikka_port.moving.journal import BY, DELETED, GONE_BY, MOVES, SIGNED
from wikka_port.store import Store

_STEP: Final = 200  # rows in one call
# table, cell of the name, cell that says what the name rests on; revisions first: the others are made from them again
_PLACES: Final = (
    (schema.REVISIONS, schema.REVISION_AUTHOR, schema.SIGNED),
    (schema.PAGES, schema.USER, schema.SIGNED),
    (DELETED, schema.USER, schema.SIGNED),
    (DELETED, GONE_BY, b""),  # nobody deletes a page under the name of an account that is not his
    (schema.CHANGES, schema.REVISION_AUTHOR, schema.SIGNED),
    (MOVES, BY, SIGNED),
)
Found = Sequence[tuple[bytes, int]]  # row, and the timestamp of the name in it


def rename_edits(store: Store, name: str, new: str) -> int:
    """Sign ``new`` in place of the account ``name``, wherever it signed; how many edits.  Raises StoreAway.

    No move may be under way, since it carries the cells that it has read.
    """
    there = store.run(lambda c: set(c.tables()))  # an older wiki's folder lacks some before it is prepared
    counts = {
        (table, column): _rename(store, table, column, signed, name, new)
        for table, column, signed in _PLACES
        if table in there
    }
    return counts.get((schema.REVISIONS, schema.REVISION_AUTHOR), 0)


def _rename(store: Store, table: bytes, column: bytes, signed: bytes, name: str, new: str) -> int:
    renamed, start = 0, b""
    while True:
        found = store.run(lambda c, s=start: _signed(c, table, column, signed, name, s))  # type: ignore[misc]
        if found:
            store.run(lambda c, f=found: _put(c, table, column, f, new.encode()))  # type: ignore[misc]
        renamed += len(found)
        if len(found) < _STEP:
            return renamed
        start = found[-1][0] + b"\x00"


def _signed(connection: Connection, table: bytes, column: bytes, signed: bytes, name: str, start: bytes) -> Found:
    """Up to _STEP rows that the account signed."""
    asked = {column: name.encode().replace(b"'", b"''"), **({signed: b"account"} if signed else {})}
    found = connection.table(table).scan(
        row_start=start,
        columns=list(asked),
        filter=b" AND ".join(
            b"SingleColumnValueFilter('%s', '%s', =, 'binary:%s', true, true)" % (*one.split(b":"), value)
            for one, value in asked.items()
        ),
        include_timestamp=True,
        limit=_STEP,
        batch_size=_STEP,
    )
    return [(row, cells[column][1]) for row, cells in found]


def _put(connection: Connection, name: bytes, column: bytes, found: Found, new: bytes) -> None:
    table = connection.table(name)
    if connection.is_columnar:
        table.mutate_rows({row: [Put(column, new, stamp)] for row, stamp in found})
        return
    for row, stamp in found:
        table.put(row, {column: new}, timestamp=stamp)

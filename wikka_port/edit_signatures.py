"""Replace all signatures of an account when it ends, visible or not.

    revisions   the author of each edit, also of hidden revisions and those of deleted pages
    pages       the author of the newest revision; ``deleted`` as well, and who deleted the page
    changes     the list of changes
    moves       who renamed, deleted or requested work on many pages, whose edits such work takes back, and who owned a
                page when it was moved
    comments    the author of each comment
    files       the author of each version of a file, removed and erased ones, too

The owner of pages, of deleted pages and of their revisions is replaced too.  These pages then belong to a neutral name
that nobody can have, so nobody can claim them; an administrator may give them to somebody else.  The same holds for the
owner that work on many pages gave them, and the one whom its undoing would give back.

Each table is scanned itself, so no index needs to be complete except ``changes``, whose own rows are rewritten.  Each
cell is written with the timestamp that it has: a repetition changes nothing, and a page with a newer revision is
never touched.  Cost: one filtered scan of each table in the store, without texts, and two or three cells for each
edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

from columnar.client import Connection, Put
from wikka_port import schema
from wikka_port.comments.comment_rows import AUTHOR as COMMENT_AUTHOR
from wikka_port.comments.comment_rows import COMMENTS
from wikka_port.comments.comment_rows import SIGNED as COMMENT_SIGNED
from wikka_port.files.file_rows import AUTHOR as FILE_AUTHOR
from wikka_port.files.file_rows import ERASED, FILES, cells_of_renamed
from wikka_port.files.file_rows import SIGNED as FILE_SIGNED
from wikka_port.moving.jobs import MASS_RIGHTS, RIGHTS, renamed_owner
from wikka_port.moving.journal import BY, DELETED, GONE_BY, ITEM, KIND, MOVES, OWNER_THEN, REVERTED, SIGNED
from wikka_port.rights.rules import OWN_OWNER
from wikka_port.store import Store

_STEP: Final = 200  # rows in one call
# table, cell of the name, cell that tells an account's name from an unsigned one; revisions first: a repair derives
# the other tables from them
_PLACES: Final = (
    (schema.REVISIONS, schema.REVISION_AUTHOR, schema.SIGNED),
    (schema.PAGES, schema.USER, schema.SIGNED),
    (DELETED, schema.USER, schema.SIGNED),
    (DELETED, GONE_BY, b""),  # no person deletes a page under the name of another account
    (schema.CHANGES, schema.REVISION_AUTHOR, schema.SIGNED),
    (MOVES, BY, SIGNED),
    (MOVES, REVERTED, b""),
    (MOVES, OWNER_THEN, b""),
    (COMMENTS, COMMENT_AUTHOR, COMMENT_SIGNED),
    (FILES, FILE_AUTHOR, FILE_SIGNED),
    (schema.REVISIONS, schema.OWNER, b""),
    *((table, column, b"") for table in (schema.PAGES, DELETED) for column in (schema.OWNER, OWN_OWNER)),
)
_WHOLE: Final = ((b"", b""),)
# A scan that finds nothing returns only at its end, so tables whose keys begin with an MD5 are scanned digit by digit.
_BY_DIGIT: Final = tuple((b"%x" % digit, b"%x~" % digit) for digit in range(16))
_KEYED: Final = frozenset({schema.REVISIONS, schema.PAGES, DELETED, COMMENTS, FILES})
Wanted = Mapping[bytes, Sequence[bytes]]  # possible values by column
Found = Sequence[tuple[bytes, int, Mapping[bytes, bytes]]]  # row, timestamp of the name in it, and the cells to put


def rename_edits(store: Store, name: str, new: str) -> int:
    """Replace the signature ``name`` of an account by ``new``; return the number of edits.  Raises StoreUnavailable.

    No move may be under way: a move writes the cells that it read before.
    """
    there = store.run(lambda c: set(c.tables()))  # an older wiki's folder lacks some before it is prepared
    edits = 0
    for table, column, signed in _PLACES:
        kinds = [kind.encode() for kind in schema.OF_ACCOUNTS]
        wanted = {column: [name.encode()], **({signed: kinds} if signed else {})}
        for start, stop in (_BY_DIGIT if table in _KEYED else _WHOLE) if table in there else ():
            renamed = _rename(store, table, column, wanted, new, start, stop)
            edits += renamed if (table, column) == (schema.REVISIONS, schema.REVISION_AUTHOR) else 0
    if MOVES in there:
        _rename_owners(store, name, new)
    return edits


def _rename_owners(store: Store, name: str, new: str) -> None:
    """Rename the owners in work on the rights of many pages, a job at a time: one has up to JOB_PAGES_MAX cells."""
    start = b""
    while found := store.run(partial(_next_job, start=start)):
        row, stamped = found
        renamed = renamed_owner({column: value for column, (value, _) in stamped.items()}, name, new)
        left = iter([Put(column, value, stamped[column][1]) for column, value in renamed.items()])
        while step := list(islice(left, _STEP)):
            store.run(partial(_put_cells, row=row, puts=step))
        start = row + b"\x00"


def _next_job(connection: Connection, start: bytes) -> tuple[bytes, Mapping[bytes, tuple[bytes, int]]] | None:
    """Return the first job on rights from ``start`` on."""
    found = connection.table(MOVES).scan(
        row_start=start,
        columns=[KIND, RIGHTS, ITEM[:-1]],
        filter=b"SingleColumnValueFilter('m', 'kind', =, 'binary:%s', true, true)" % MASS_RIGHTS.encode(),
        include_timestamp=True,
        limit=1,
        batch_size=1,
    )
    return next(iter(found), None)


def _put_cells(connection: Connection, row: bytes, puts: Sequence[Put]) -> None:
    table = connection.table(MOVES)
    if connection.is_columnar:
        table.mutate_rows({row: list(puts)})
        return
    for put in puts:
        table.put(row, {put.column: put.value}, timestamp=put.timestamp)


def _rename(store: Store, table: bytes, column: bytes, wanted: Wanted, new: str, start: bytes, stop: bytes) -> int:
    renamed = 0
    while True:
        found = _rename_step(store, table, column, wanted, new, start, stop)
        renamed += len(found)
        if len(found) < _STEP:
            return renamed
        start = found[-1][0] + b"\x00"


def _rename_step(
    store: Store, table: bytes, column: bytes, wanted: Wanted, new: str, start: bytes, stop: bytes
) -> Found:
    """Rename the next rows from ``start`` on; return them."""
    found = store.run(lambda c: _signed(c, table, column, wanted, new, start, stop))
    if found:
        store.run(lambda c: _put(c, table, found))
    return found


def _signed(
    connection: Connection, table: bytes, column: bytes, wanted: Wanted, new: str, start: bytes, stop: bytes
) -> Found:
    """Return up to _STEP rows whose cells have one of the values in ``wanted``.

    The author is a part of the token of a file's version, so the row keeps the token that it had.
    """
    clauses = [
        b" OR ".join(
            b"SingleColumnValueFilter('%s', '%s', =, 'binary:%s', true, true)"
            % (*one.split(b":"), value.replace(b"'", b"''"))
            for value in values
        )
        for one, values in wanted.items()
    ]
    found = connection.table(table).scan(
        row_start=start,
        row_stop=stop or None,
        columns=[*wanted, ERASED] if table == FILES else list(wanted),
        filter=b" AND ".join(b"(%s)" % clause for clause in clauses),
        include_timestamp=True,
        limit=_STEP,
        batch_size=_STEP,
    )
    return [
        (
            row,
            cells[column][1],
            {column: new.encode(), **(cells_of_renamed(row) if table == FILES and ERASED not in cells else {})},
        )
        for row, cells in found
    ]


def _put(connection: Connection, name: bytes, found: Found) -> None:
    table = connection.table(name)
    if connection.is_columnar:
        changed = {row: [Put(*cell, stamp) for cell in cells.items()] for row, stamp, cells in found}
        table.mutate_rows(changed)
        return
    for row, stamp, cells in found:
        table.put(row, cells, timestamp=stamp)

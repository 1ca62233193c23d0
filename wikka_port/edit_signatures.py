"""Signatures of edits, written anew where an account ends: in its revision, its page, and the list of changes.

Each cell is written with the timestamp that it has, so doing it twice is doing it once, and a page with a newer
revision is never touched.  The entry in the list of changes comes last: an edit is found by it.  Cost: one scan of
the changes, on the store's side, and three cells for each edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from columnar.client import Connection, Put
from wikka_port import schema
from wikka_port.page_rows import number_in, time_of
from wikka_port.store import Store

_STEP: Final = 200  # edits in one call of each table
_ASKED: Final = (schema.HEAD, schema.TIME, schema.REVISION_AUTHOR, schema.SIGNED)
Stamped = Mapping[bytes, tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class _Edit:
    entry: bytes  # its row in ``changes``
    entry_stamp: int
    page: bytes
    head: schema.Head
    time_ms: int


def rename_edits(store: Store, name: str, new: str) -> int:
    """Edits that the account ``name`` signed are signed ``new``; how many.  Raises StoreAway."""
    renamed, start = 0, b""
    while True:
        found = store.run(lambda c, s=start: _edits(c, s, name))  # type: ignore[misc]
        if found:
            store.run(lambda c, f=found: _rename(c, f, new.encode()))  # type: ignore[misc]
        renamed += len(found)
        if len(found) < _STEP:
            return renamed
        start = found[-1].entry + b"\x00"


def _rename(connection: Connection, edits: list[_Edit], new: bytes) -> None:
    revisions = {
        schema.revision_row(one.page, one.head): Put(schema.REVISION_AUTHOR, new, one.time_ms) for one in edits
    }
    asked = [schema.HEAD, schema.STAMP]
    heads = dict(connection.table(schema.PAGES).rows([one.page for one in edits], columns=asked))
    # a newer revision that is saved at this moment has later stamps: what is put does not reach it
    newest = [one for one in edits if heads.get(one.page, {}).get(schema.HEAD) == one.head.pack()]
    _put(connection, schema.REVISIONS, revisions)
    _put(connection, schema.PAGES, {one.page: Put(schema.USER, new, _stamp(one, heads[one.page])) for one in newest})
    _put(connection, schema.CHANGES, {one.entry: Put(schema.REVISION_AUTHOR, new, one.entry_stamp) for one in edits})


def _stamp(edit: _Edit, row: Mapping[bytes, bytes]) -> int:
    """The stamp of the page's cells: a page that was moved has them from the move."""
    return max(edit.time_ms, number_in(row, schema.STAMP))


def _edits(connection: Connection, start: bytes, name: str) -> list[_Edit]:
    """Up to _STEP edits that the account signed."""
    quoted = name.encode().replace(b"'", b"''")
    found = connection.table(schema.CHANGES).scan(
        row_start=start,
        columns=list(_ASKED),
        filter=b"SingleColumnValueFilter('meta', 'author', =, 'binary:%s', true, true)"
        b" AND SingleColumnValueFilter('meta', 'signed', =, 'binary:account', true, true)" % quoted,
        include_timestamp=True,
        limit=_STEP,
        batch_size=_STEP,
    )
    return [edit for edit in (_edit(row, cells) for row, cells in found) if edit is not None]


def _edit(row: bytes, cells: Stamped) -> _Edit | None:
    page = schema.page_key_of_change_row(row)
    values = {column: value for column, (value, _) in cells.items()}
    head = schema.parse_head(values.get(schema.HEAD))
    if page is None or head == schema.NO_HEAD:
        return None
    return _Edit(row, cells[schema.REVISION_AUTHOR][1], page, head, time_of(values))


def _put(connection: Connection, name: bytes, puts: Mapping[bytes, Put]) -> None:
    table = connection.table(name)
    if connection.is_columnar:
        if puts:
            table.mutate_rows({row: [put] for row, put in puts.items()})
        return
    for row, put in puts.items():
        table.put(row, {put.column: put.value}, timestamp=put.timestamp)

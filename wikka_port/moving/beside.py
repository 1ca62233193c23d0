"""Rows of other tables that belong to a page: drafts, suggestions and networks of edits, under the key of its name.

Over time several pages may have had the same name, and a deleted page may be brought back.  Each row belongs to one
page:

    draft, suggestion    to the page that has the revision from which the text began.  A text that names no revision,
                         such as that of a new page, belongs to the moved page if the page had the name at that time
    network of an edit   to the page that has a revision of this number; if two pages have one, to the existing page

A page that is renamed, or undeleted under a different name, takes its own rows along.  A purge removes the page's own
rows before its revisions, since the revisions identify these rows.

Cost: a few calls for each table and for each _STEP rows, however long the history is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from columnar.client import Connection
from wikka_port import schema
from wikka_port.accounts.tables import NETWORKS
from wikka_port.editing.kept_drafts import BASE, DRAFTS, TIME, TOKEN
from wikka_port.editing.suggestions import FOLLOWED, OWN, REVIEW, SUGGESTIONS, own_row, renamed_review
from wikka_port.moving.journal import RENAME, Move
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, number_in
from wikka_port.schema import Head

_STEP: Final = 200  # rows in one call
Stamped = dict[bytes, tuple[bytes, int]]


def follow(connection: Connection, move: Move) -> None:
    """Move the rows of a renamed page to its new name, with their timestamps."""
    old, new = page_key(move.source), page_key(move.target)
    for name, row, cells in _rows_of_page(connection, move):
        table, there = connection.table(name), new + row[len(old) :]
        values = {column: value for column, (value, _) in cells.items()}
        own = own_row(row, values) if name == SUGGESTIONS else None
        if own is not None:
            stamp = cells[REVIEW][1]
            table.put(own[: -len(row)] + there, {OWN: b"yes"}, timestamp=stamp)
            table.put(there, {FOLLOWED: b"%d" % stamp}, timestamp=stamp)  # before the review, which notifies else
        renamed = renamed_review(values, move.target) if name == SUGGESTIONS else values
        for column, (_, stamp) in cells.items():
            table.put(there, {column: renamed[column]}, timestamp=stamp)
        if own is not None:
            table.delete(own)
        table.delete(row)


def remove(connection: Connection, move: Move) -> None:
    """Remove the rows of a page that is being purged."""
    for name, row, cells in _rows_of_page(connection, move):
        values = {column: value for column, (value, _) in cells.items()}
        own = own_row(row, values) if name == SUGGESTIONS else None
        if own is not None:
            connection.table(name).delete(own)
        connection.table(name).delete(row)


def _rows_of_page(connection: Connection, move: Move) -> Iterator[tuple[bytes, bytes, Stamped]]:
    """Yield table, row and cells of each row that belongs to the page."""
    key = page_key(move.source)
    for name in (DRAFTS, SUGGESTIONS):
        for step in _steps(connection, name, key):
            own = _texts_of_page(connection, move, step)
            yield from ((name, row, cells) for row, cells in step.items() if row in own)
    numbers = _numbers_of_page(connection, move)
    for step in _steps(connection, NETWORKS, key):
        yield from ((NETWORKS, row, cells) for row, cells in step.items() if _number_of(row) in numbers)


def _steps(connection: Connection, name: bytes, key: bytes) -> Iterator[dict[bytes, Stamped]]:
    """Yield the rows of a table that begin with ``key``, in steps; the caller may delete yielded rows meanwhile."""
    table, start, stop = connection.table(name), key, key + b"g"  # after every hexadecimal digit
    while rows := list(
        table.scan(row_start=start, row_stop=stop, include_timestamp=True, limit=_STEP, batch_size=_STEP)
    ):
        yield dict(rows)
        start = rows[-1][0] + b"\x00"


def _texts_of_page(connection: Connection, move: Move, step: dict[bytes, Stamped]) -> set[bytes]:
    """Return those rows of drafts or suggestions that belong to the page."""
    own, began = set[bytes](), dict[bytes, bytes]()
    for row, cells in step.items():
        values = {column: value for column, (value, _) in cells.items()}
        base, token = number_in(values, BASE), values.get(TOKEN, b"")
        if base and token:
            began[row] = schema.revision_row(page_key(move.source), Head(base, token, move.head.history))
        elif number_in(values, TIME) <= _left_ms(move):
            own.add(row)
    wanted = list(set(began.values()))
    found = dict(connection.table(schema.REVISIONS).rows(wanted, columns=[schema.TIME])) if wanted else {}
    return own | {row for row, revision in began.items() if revision in found}


def _left_ms(move: Move) -> int:
    """Return the time at which the page left its name."""
    inverted = move.row[schema.KEY_BYTES :][:13]
    return schema.TIME_MAX_MS - int(inverted) if inverted.isdigit() else move.at_ms


def _numbers_of_page(connection: Connection, move: Move) -> set[int]:
    key = page_key(move.source)
    numbers = _numbers(connection, key, move.head)
    if move.kind != RENAME:  # after a rename the name may have a later page, but with higher numbers
        there = connection.table(schema.PAGES).row(key, columns=[schema.VERSIONCOUNT])
        numbers -= _numbers(connection, key, head_of(there))
    return numbers


def _numbers(connection: Connection, key: bytes, newest: Head) -> set[int]:
    """Return the revision numbers of a history; they have no gaps, so a binary search finds the first."""
    low, high = 1, newest.number + 1
    while low < high:
        middle = (low + high) // 2
        if _has(connection, newest.place(key), middle):
            high = middle
        else:
            low = middle + 1
    return set(range(low, newest.number + 1))


def _has(connection: Connection, place: bytes, number: int) -> bool:
    start = schema.revisions_from(place, number)
    rows = connection.table(schema.REVISIONS).scan(
        row_start=start, row_stop=start + b";", columns=[schema.TIME], limit=1, batch_size=2
    )
    return next(iter(rows), None) is not None


def _number_of(row: bytes) -> int:
    """Return the number of the edit in a row of networks."""
    return schema.parse_revision_row(row + b":")[1].number

"""The steps of a move on one row: each a condition on ``meta:versioncount`` and what is written if it is true.

On Columnar a step is one ``check_and_mutate``.  On a plain HBase a ``checkAndPut`` of that cell decides and the rest
stands around it, in an order in which a reader sees the row before the step or after it:

    arrive   "0:..:ID" reserves the row, which is no page; its cells are put; "N:token:HISTORY:ID" makes it the page
    leave    what a later page has to know is put; the cell says that the page is gone, or names the redirect's
             revision, which was staged; then the row's cells follow

Every step may be repeated, by another process at the same time too: what it writes is the same, at the same stamps.
Cells of rights bear the store's time, as everywhere; the others the stamp of the move.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from columnar.client import Connection, Delete, Expect, Put
from columnar.client.table import Operation
from wikka_port import schema
from wikka_port.history import fresh_cells
from wikka_port.markup.writing import forced_link
from wikka_port.moving.journal import DELETED, GONE_BY, GONE_REASON, GONE_TIME, Move
from wikka_port.names import page_key
from wikka_port.page_rows import Cells, Draft, head_of, is_stale, is_there, page_cells, revision_cells, stamp_of
from wikka_port.schema import Head, revision_token
from wikka_port.store import check_and_put

VERSIONCOUNT = schema.VERSIONCOUNT
_RIGHTS = b"acl:"  # and ``meta:hidden``: cells at the store's time


def read(connection: Connection, place: tuple[bytes, bytes]) -> Cells:
    """Return the row; a page's cells as they are of its newest revision."""
    table, row = place
    cells: Cells = connection.table(table).row(row)
    if table == schema.PAGES and is_there(cells) and is_stale(cells):
        return fresh_cells(connection, row, cells)
    return cells


def _swap(
    connection: Connection, place: tuple[bytes, bytes], before: bytes | None, after: bytes, at_ms: int, plain: bool
) -> bool:
    """Swap the cell alone.  True as well if it says ``after`` already."""
    table, row = place
    if plain:
        if check_and_put(connection, table, row, VERSIONCOUNT, before, after):
            return True
    elif _atomically(connection, place, before, [], [Put(VERSIONCOUNT, after, at_ms)]):
        return True
    return bool(connection.table(table).row(row, columns=[VERSIONCOUNT]).get(VERSIONCOUNT) == after)


def _atomically(
    connection: Connection,
    place: tuple[bytes, bytes],
    before: bytes | None,
    further: Collection[Expect],
    operations: list[Operation],
) -> bool:
    table, row = place
    condition = Expect.absent(VERSIONCOUNT) if before is None else Expect(VERSIONCOUNT, before)
    return connection.table(table).check_and_mutate(row, [condition, *further], operations).applied


def mark(connection: Connection, move: Move, row: Cells, further: Collection[Expect], *, plain: bool) -> bool:
    """Mark the page for the move.  False: it was changed, or ``further`` is not true."""
    before, after = move.head.pack(), move.marked.pack()
    if plain:
        return _swap(connection, move.source_place, before, after, 0, True)
    put: list[Operation] = [Put(VERSIONCOUNT, after, stamp_of(row))]
    if _atomically(connection, move.source_place, before, further, put):
        return True
    table, key = move.source_place
    return bool(connection.table(table).row(key, columns=[VERSIONCOUNT]).get(VERSIONCOUNT) == after)


def let_go(connection: Connection, move: Move, *, plain: bool) -> None:
    """The page stays where it was."""
    row = read(connection, move.source_place)
    if head_of(row) == move.marked:
        _swap(connection, move.source_place, move.marked.pack(), move.head.pack(), stamp_of(row), plain)


# --- arriving ----------------------------------------------------------------------------------


def arriving_head(move: Move) -> Head:
    """As the row that the page comes to names its revision; in ``deleted`` with the key of the history, always."""
    history = move.head.place(move.source_place[1])
    table, key = move.target_place
    is_own = table == schema.PAGES and history == key
    return Head(move.head.number, move.head.token, b"" if is_own else history, move.id)


def _arriving(move: Move, source: Cells) -> dict[bytes, bytes]:
    cells = {column: value for column, value in source.items() if not column.startswith(b"gone:")}
    for column in (schema.WAS, VERSIONCOUNT):
        cells.pop(column, None)
    cells[schema.NAME] = move.target.encode()
    cells[schema.HEAD] = arriving_head(move).unmarked().pack()
    cells[schema.STAMP] = b"%d" % move.at_ms
    return cells


def arrive(connection: Connection, move: Move, source: Cells, *, plain: bool) -> bool:
    """Put the page where it goes to, still marked.  False: a page is there."""
    table, key = move.target_place
    cells, marked = _arriving(move, source), arriving_head(move).pack()
    if table == DELETED:
        gone = {GONE_BY: move.by, GONE_REASON: move.reason, GONE_TIME: str(move.at_ms)}
        cells |= {column: value.encode("utf-8", "replace") for column, value in gone.items()}
        if VERSIONCOUNT not in connection.table(table).row(key, columns=[VERSIONCOUNT]):
            connection.table(table).put(key, {**cells, VERSIONCOUNT: marked}, timestamp=move.at_ms)
        return True
    stored: Cells = connection.table(table).row(key)
    if stored.get(VERSIONCOUNT) == marked:
        return True
    other = head_of(stored)
    if is_there(stored) or other.mark not in (b"", move.id):
        return False
    if not other.mark and stamp_of(stored) >= move.at_ms:  # where the move has reserved it, the stamp may be its own
        return False
    surplus = [column for column in stored if column not in cells and column != VERSIONCOUNT]
    arrived = _arrive_plainly if plain else _arrive_atomically
    return arrived(connection, move, stored, cells, surplus)


def _arrive_atomically(
    connection: Connection, move: Move, stored: Cells, cells: Cells, surplus: Collection[bytes]
) -> bool:
    marked = arriving_head(move).pack()
    operations = _deletes(surplus, move.at_ms) + _puts({**cells, VERSIONCOUNT: marked}, move.at_ms)
    if _atomically(connection, move.target_place, stored.get(VERSIONCOUNT), [], operations):
        return True
    table, key = move.target_place
    return bool(connection.table(table).row(key, columns=[VERSIONCOUNT]).get(VERSIONCOUNT) == marked)


def _arrive_plainly(
    connection: Connection, move: Move, stored: Cells, cells: Cells, surplus: Collection[bytes]
) -> bool:
    reserved, arrived = replace(head_of(stored), mark=move.id).pack(), arriving_head(move).pack()
    if not _swap(connection, move.target_place, stored.get(VERSIONCOUNT), reserved, 0, True):
        table, key = move.target_place
        return bool(connection.table(table).row(key, columns=[VERSIONCOUNT]).get(VERSIONCOUNT) == arrived)
    _remove(connection, move.target_place, surplus, move.at_ms)
    _write(connection, move.target_place, cells, move.at_ms)
    return _swap(connection, move.target_place, reserved, arrived, 0, True)


def settle_down(connection: Connection, move: Move, *, plain: bool) -> None:
    """Remove the mark of the move."""
    head = arriving_head(move)
    _swap(connection, move.target_place, head.pack(), head.unmarked().pack(), move.at_ms, plain)


def remove_arrival(connection: Connection, move: Move, *, plain: bool) -> None:
    """Remove what a move that was given up has brought, or reserved: the row is no page."""
    table, key = move.target_place
    stored: Cells = connection.table(table).row(key)
    if head_of(stored).mark != move.id:
        return
    if table == DELETED:
        connection.table(table).delete(key)
        return
    after = {VERSIONCOUNT: Head(0, move.id).pack(), schema.STAMP: b"%d" % move.at_ms}
    surplus = [column for column in stored if column not in after]
    if not plain:
        operations = _deletes(surplus, move.at_ms) + _puts(after, move.at_ms)
        _atomically(connection, move.target_place, stored[VERSIONCOUNT], [], operations)
    elif _swap(connection, move.target_place, stored[VERSIONCOUNT], after[VERSIONCOUNT], 0, True):
        _remove(connection, move.target_place, surplus, move.at_ms)


# --- leaving -----------------------------------------------------------------------------------


def redirect_draft(move: Move, source: Cells) -> Draft:
    """Return the revision with which the old name continues."""
    key = page_key(move.source)
    draft = Draft(
        name=move.source,
        head=Head(move.head.number + 1, b"", schema.new_history(key, move.id)),
        previous=b"",
        time_ms=move.at_ms,
        author=move.by,
        note=move.note or f"Renamed to {move.target}",  # an older journal has none
        body=f"#REDIRECT {forced_link(move.target)}",
        owner=source.get(schema.OWNER, b"").decode(errors="replace"),
        created_ms=move.at_ms,
        autolink=False,
        attribution="",
        signed=move.signed,
    )
    token = revision_token(draft.name, draft.head.number, move.at_ms, draft.author, draft.note, draft.body)
    return replace(draft, head=replace(draft.head, token=token))


def left_cells(move: Move, source: Cells) -> dict[bytes, bytes]:
    """Return the cells of the row that the page has left, but for rights."""
    stamp = {schema.STAMP: b"%d" % move.at_ms}
    if move.redirect:
        draft = redirect_draft(move, source)
        return {**page_cells(draft), VERSIONCOUNT: draft.head.pack(), **stamp}
    was = move.head.pack() + b" " + move.source.encode()
    return {VERSIONCOUNT: Head(0, move.id).pack(), schema.WAS: was, **stamp}


def leave(connection: Connection, move: Move, *, plain: bool) -> bool:
    """Take the page from where it was; again, if a process crashed after the decision.  False: it is not marked."""
    table, key = move.source_place
    stored: Cells = connection.table(table).row(key)
    if table == DELETED:
        return _leave_trash(connection, move, stored, plain=plain)
    after = left_cells(move, stored)
    if stored.get(VERSIONCOUNT) not in (move.marked.pack(), after[VERSIONCOUNT]):
        return False
    if stamp_of(stored) > move.at_ms:  # the page came back here after this move, and a late process has marked it
        return False
    if stored[VERSIONCOUNT] == after[VERSIONCOUNT] and not plain:
        return True
    if move.redirect:
        draft = redirect_draft(move, stored)
        connection.table(schema.REVISIONS).put(
            schema.revision_row(key, draft.head), revision_cells(draft), timestamp=move.at_ms
        )
    surplus = [c for c in stored if c not in after and not (move.redirect and c.startswith(_RIGHTS))]
    if not plain:
        operations = _deletes(surplus, move.at_ms) + _puts(after, move.at_ms)
        return _atomically(connection, move.source_place, stored[VERSIONCOUNT], [], operations)
    known = {column: value for column, value in after.items() if column in (schema.STAMP, schema.WAS)}
    _write(connection, move.source_place, known, move.at_ms)
    if not _swap(connection, move.source_place, stored[VERSIONCOUNT], after[VERSIONCOUNT], 0, True):
        return False
    _remove(connection, move.source_place, surplus, move.at_ms)
    _write(connection, move.source_place, {c: v for c, v in after.items() if c != VERSIONCOUNT}, move.at_ms)
    return True


def _leave_trash(connection: Connection, move: Move, stored: Cells, *, plain: bool) -> bool:
    gone = Head(0, move.id).pack()
    if stored and stored.get(VERSIONCOUNT) not in (move.marked.pack(), gone):
        return False
    if not plain:
        families: list[Operation] = [Delete(family) for family in {column.partition(b":")[0] for column in stored}]
        return not stored or _atomically(connection, move.source_place, stored[VERSIONCOUNT], [], families)
    if stored and not _swap(connection, move.source_place, stored[VERSIONCOUNT], gone, 0, True):
        return False
    table, key = move.source_place
    connection.table(table).delete(key)
    return True


def put_hidden(connection: Connection, key: bytes, row: Cells, value: bytes, *, plain: bool) -> bool:
    """Put which revisions are hidden, at the store's time: the cell is of no revision."""
    if plain:
        return check_and_put(connection, schema.PAGES, key, VERSIONCOUNT, row[VERSIONCOUNT], value, put=schema.HIDDEN)
    stored = row.get(schema.HIDDEN)
    unchanged = Expect.absent(schema.HIDDEN) if stored is None else Expect(schema.HIDDEN, stored)
    put: list[Operation] = [Put(schema.HIDDEN, value)]
    return _atomically(connection, (schema.PAGES, key), row[VERSIONCOUNT], [unchanged], put)


# --- cells -------------------------------------------------------------------------------------


def _puts(cells: Cells, at_ms: int) -> list[Operation]:
    return [Put(column, value, None if _is_of_store(column) else at_ms) for column, value in cells.items()]


def _deletes(columns: Collection[bytes], at_ms: int) -> list[Operation]:
    return [Delete(column, None if _is_of_store(column) else at_ms) for column in columns]


def _is_of_store(column: bytes) -> bool:
    return column.startswith(_RIGHTS) or column == schema.HIDDEN


def _write(connection: Connection, place: tuple[bytes, bytes], cells: Mapping[bytes, bytes], at_ms: int) -> None:
    table, row = connection.table(place[0]), place[1]
    rights = {column: value for column, value in cells.items() if _is_of_store(column)}
    if rights:
        table.put(row, rights)
    table.put(row, {column: value for column, value in cells.items() if column not in rights}, timestamp=at_ms)


def _remove(connection: Connection, place: tuple[bytes, bytes], columns: Collection[bytes], at_ms: int) -> None:
    table, row = connection.table(place[0]), place[1]
    rights = [column for column in columns if _is_of_store(column)]
    if rights:
        table.delete(row, rights)
    others = [column for column in columns if column not in rights]
    if others:
        table.delete(row, others, timestamp=at_ms)

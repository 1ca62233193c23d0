"""The steps of a move on one row: each writes cells on a condition on ``meta:versioncount``.

On Columnar a step is one ``check_and_mutate``.  On a plain HBase the step happens if a ``checkAndPut`` of
``meta:versioncount`` succeeds.  The other writes come before or after it, in an order in which a reader sees the row
either before or after the step:

    arrive   "0:..:ID" reserves the row, which is no page yet; its cells are put; "N:token:HISTORY:ID" makes it the page
    leave    the cells that a later page needs are put; then ``meta:versioncount`` ends the page, or names the
             redirect's revision, which was staged before; then the row's other cells follow

Every step may be repeated, also by another process at the same time: it writes the same cells at the same timestamps.
Cells of rights, files and comments get the store's time, as everywhere; all others get the timestamp of the move.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from columnar.client import Connection, Delete, Expect, Put
from columnar.client.row_operations import Operation
from wikka_port import schema
from wikka_port.comments.comment_rows import COMMENTS_HEAD, COMMENTS_NAMED
from wikka_port.files.file_rows import FILE
from wikka_port.history import fresh_cells
from wikka_port.markup.writing import forced_link
from wikka_port.moving.journal import DELETED, GONE_BY, GONE_REASON, GONE_TIME, PURGE, Move
from wikka_port.names import page_key
from wikka_port.page_rows import (
    Cells,
    RevisionDraft,
    head_of,
    is_stale,
    is_there,
    page_cells,
    revision_cells,
    stamp_of,
    text_in,
)
from wikka_port.schema import Head, revision_token
from wikka_port.store import check_and_put

VERSIONCOUNT = schema.VERSIONCOUNT
_RIGHTS = b"acl:"  # like ``file:`` and ``meta:hidden``: cells at the store's time
Place = tuple[bytes, bytes]  # table and row


def read(connection: Connection, place: Place) -> Cells:
    """Return the row; the cells of a page are those of its newest revision, even if the stored ones are stale."""
    cells = _stored(connection, place)
    if place[0] == schema.PAGES and is_there(cells) and is_stale(cells):
        return fresh_cells(connection, place[1], cells)
    return cells


def _stored(connection: Connection, place: Place, *columns: bytes) -> Cells:
    found: Cells = connection.table(place[0]).row(place[1], columns=columns or None)
    return found


def _atomically(
    connection: Connection,
    place: Place,
    before: bytes | None,
    operations: list[Operation],
    further: Collection[Expect] = (),
) -> bool:
    condition = Expect.absent(VERSIONCOUNT) if before is None else Expect(VERSIONCOUNT, before)
    return connection.table(place[0]).check_and_mutate(place[1], [condition, *further], operations).applied


@dataclass(frozen=True, slots=True)
class MoveSteps:
    connection: Connection
    move: Move
    plain: bool  # on a plain HBase

    def _swap(self, place: Place, before: bytes | None, after: bytes, at_ms: int) -> bool:
        """Change only ``meta:versioncount``; return True also if it has the value ``after`` already."""
        if self.plain:
            applied = check_and_put(self.connection, *place, VERSIONCOUNT, before, after)
        else:
            applied = _atomically(self.connection, place, before, [Put(VERSIONCOUNT, after, at_ms)])
        return applied or self._says(place, after)

    def _says(self, place: Place, head: bytes) -> bool:
        return _stored(self.connection, place, VERSIONCOUNT).get(VERSIONCOUNT) == head

    def mark(self, row: Cells, further: Collection[Expect]) -> bool:
        """Mark the page for the move; return False if the page was changed, or a ``further`` condition fails."""
        place, before, after = self.move.source_place, self.move.head.pack(), self.move.marked.pack()
        if self.plain:
            return self._swap(place, before, after, 0)
        put: list[Operation] = [Put(VERSIONCOUNT, after, stamp_of(row))]
        return _atomically(self.connection, place, before, put, further) or self._says(place, after)

    def withdraw(self) -> None:
        """Abort the move: the page stays where it was; cells that another process put in its new row are removed."""
        if self.move.kind != PURGE:
            self._remove_arrival()
        self.let_go()

    def let_go(self) -> None:
        """Remove the mark from the page's old row, where the page stays."""
        row = read(self.connection, self.move.source_place)
        if head_of(row) == self.move.marked:
            self._swap(self.move.source_place, self.move.marked.pack(), self.move.head.pack(), stamp_of(row))

    # --- arriving ----------------------------------------------------------------------------------

    def arrive(self, source: Cells) -> bool:
        """Put the page in its new row, still marked; return False if the row is a page."""
        move, place = self.move, self.move.target_place
        cells, marked = _arriving(move, source), arriving_head(move).pack()
        stored = _stored(self.connection, place)
        if place[0] == DELETED:
            gone = {GONE_BY: move.by, GONE_REASON: move.reason, GONE_TIME: str(move.at_ms)}
            cells |= {column: value.encode("utf-8", "replace") for column, value in gone.items()}
            if VERSIONCOUNT not in stored:
                self.connection.table(DELETED).put(place[1], {**cells, VERSIONCOUNT: marked}, timestamp=move.at_ms)
            return True
        if stored.get(VERSIONCOUNT) == marked:
            return True
        other = head_of(stored)
        if is_there(stored) or other.mark not in (b"", move.id):
            return False
        if not other.mark and stamp_of(stored) >= move.at_ms:  # a row that the move reserved may have its own stamp
            return False
        surplus = [column for column in stored if column not in cells and column != VERSIONCOUNT]
        before = stored.get(VERSIONCOUNT)
        if not self.plain:
            operations = _deletes(surplus, move.at_ms) + _puts({**cells, VERSIONCOUNT: marked}, move.at_ms)
            return _atomically(self.connection, place, before, operations) or self._says(place, marked)
        reserved = replace(other, mark=move.id).pack()
        if not self._swap(place, before, reserved, 0):
            return self._says(place, marked)
        self._remove(place, surplus)
        self._write(place, cells)
        return self._swap(place, reserved, marked, 0)

    def settle_down(self) -> None:
        """Remove the mark from the page's new row."""
        head = arriving_head(self.move)
        self._swap(self.move.target_place, head.pack(), head.unmarked().pack(), self.move.at_ms)

    def _remove_arrival(self) -> None:
        """Remove the cells that an aborted move put or reserved in the new row, so that the row is no page."""
        move, place = self.move, self.move.target_place
        stored = _stored(self.connection, place)
        if head_of(stored).mark != move.id:
            return
        if place[0] == DELETED:
            self.connection.table(DELETED).delete(place[1])
            return
        after = {VERSIONCOUNT: Head(0, move.id).pack(), schema.STAMP: b"%d" % move.at_ms}
        surplus = [column for column in stored if column not in after]
        if not self.plain:
            operations = _deletes(surplus, move.at_ms) + _puts(after, move.at_ms)
            _atomically(self.connection, place, stored[VERSIONCOUNT], operations)
        elif self._swap(place, stored[VERSIONCOUNT], after[VERSIONCOUNT], 0):
            self._remove(place, surplus)

    # --- leaving -----------------------------------------------------------------------------------

    def leave(self) -> bool:
        """Take the page from its old row; return False if the row is not marked.

        After a crash following the decision the step may run again.
        """
        move, place = self.move, self.move.source_place
        stored = _stored(self.connection, place)
        if place[0] == DELETED:
            return self._leave_trash(stored)
        after = left_cells(move, stored)
        if stored.get(VERSIONCOUNT) not in (move.marked.pack(), after[VERSIONCOUNT]):
            return False
        if stamp_of(stored) > move.at_ms:  # the page came back here after this move, and a late process has marked it
            return False
        if stored[VERSIONCOUNT] == after[VERSIONCOUNT] and not self.plain:
            return True
        if move.redirect:
            draft = redirect_draft(move, stored)
            row = schema.revision_row(place[1], draft.head)
            self.connection.table(schema.REVISIONS).put(row, revision_cells(draft), timestamp=move.at_ms)
        surplus = [c for c in stored if c not in after and not (move.redirect and c.startswith(_RIGHTS))]
        if not self.plain:
            operations = _deletes(surplus, move.at_ms) + _puts(after, move.at_ms)
            return _atomically(self.connection, place, stored[VERSIONCOUNT], operations)
        self._write(place, {column: value for column, value in after.items() if column in (schema.STAMP, schema.WAS)})
        if not self._swap(place, stored[VERSIONCOUNT], after[VERSIONCOUNT], 0):
            return False
        self._remove(place, surplus)
        self._write(place, {column: value for column, value in after.items() if column != VERSIONCOUNT})
        return True

    def _leave_trash(self, stored: Cells) -> bool:
        place, gone = self.move.source_place, Head(0, self.move.id).pack()
        if stored and stored.get(VERSIONCOUNT) not in (self.move.marked.pack(), gone):
            return False
        if not self.plain:
            families: list[Operation] = [Delete(family) for family in {column.partition(b":")[0] for column in stored}]
            return not stored or _atomically(self.connection, place, stored[VERSIONCOUNT], families)
        if stored and not self._swap(place, stored[VERSIONCOUNT], gone, 0):
            return False
        self.connection.table(DELETED).delete(place[1])
        return True

    # --- cells on a plain HBase ----------------------------------------------------------------------

    def _write(self, place: Place, cells: Mapping[bytes, bytes]) -> None:
        table, (ours, others) = self.connection.table(place[0]), _parted(cells)
        if ours:
            table.put(place[1], {column: cells[column] for column in ours})
        table.put(place[1], {column: cells[column] for column in others}, timestamp=self.move.at_ms)

    def _remove(self, place: Place, columns: Collection[bytes]) -> None:
        table, (ours, others) = self.connection.table(place[0]), _parted(columns)
        if ours:
            table.delete(place[1], ours)
        if others:
            table.delete(place[1], others, timestamp=self.move.at_ms)


# --- the cells of a move (pure) ------------------------------------------------------------------


def arriving_head(move: Move) -> Head:
    """Return the head that the page's new row gets; in ``deleted`` it always has the key of the history."""
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


def redirect_draft(move: Move, source: Cells) -> RevisionDraft:
    """Return the revision of the redirect that the old name gets."""
    key = page_key(move.source)
    body = f"#REDIRECT {forced_link(move.target)}"
    draft = RevisionDraft(
        name=move.source,
        head=Head(move.head.number + 1, b"", schema.new_history(key, move.id)),
        previous=b"",
        time_ms=move.at_ms,
        author=move.by,
        note=move.note or f"Renamed to {move.target}",  # an older journal has none
        body=body,
        owner=text_in(source, schema.OWNER),
        created_ms=move.at_ms,
        autolink=False,
        attribution="",
        signed=move.signed,
        grown=len(body),
    )
    token = revision_token(draft.name, draft.head.number, move.at_ms, draft.author, draft.note, draft.body)
    return replace(draft, head=replace(draft.head, token=token))


def left_cells(move: Move, source: Cells) -> dict[bytes, bytes]:
    """Return the cells of the row that the page has left, without rights."""
    stamp = {schema.STAMP: b"%d" % move.at_ms}
    if move.redirect:
        draft = redirect_draft(move, source)
        return {**page_cells(draft), VERSIONCOUNT: draft.head.pack(), **stamp}
    was = move.head.pack() + b" " + move.source.encode()
    return {VERSIONCOUNT: Head(0, move.id).pack(), schema.WAS: was, **stamp}


def put_hidden(connection: Connection, key: bytes, row: Cells, value: bytes, *, plain: bool) -> bool:
    """Put the numbers of hidden revisions, at the store's time, since the cell belongs to no revision."""
    if plain:
        return check_and_put(connection, schema.PAGES, key, VERSIONCOUNT, row[VERSIONCOUNT], value, put=schema.HIDDEN)
    stored = row.get(schema.HIDDEN)
    unchanged = Expect.absent(schema.HIDDEN) if stored is None else Expect(schema.HIDDEN, stored)
    return _atomically(connection, (schema.PAGES, key), row[VERSIONCOUNT], [Put(schema.HIDDEN, value)], [unchanged])


def _puts(cells: Cells, at_ms: int) -> list[Operation]:
    return [Put(column, value, None if _is_of_store(column) else at_ms) for column, value in cells.items()]


def _deletes(columns: Collection[bytes], at_ms: int) -> list[Operation]:
    return [Delete(column, None if _is_of_store(column) else at_ms) for column in columns]


def _is_of_store(column: bytes) -> bool:
    return column.startswith((_RIGHTS, FILE)) or column in (schema.HIDDEN, COMMENTS_HEAD, COMMENTS_NAMED)


def _parted(columns: Collection[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Split columns into those written at the store's time and those written at the move's timestamp."""
    ours = [column for column in columns if _is_of_store(column)]
    return ours, [column for column in columns if column not in ours]

"""(pure, except ``Journal`` and ``MovesOfJob``) The journal of moves: a move is recorded before its first step.

    table     row                                                     families
    moves     id (16 hexadecimal digits)                              m, e
              "~open"    e:ID for each move and job that has not ended
              JOB "+"    the moves of a job: e:ID "N", m:notified "N" (``MovesOfJob``)
              "~at", "~of"    the moves in order, and the last one of each page (``moved_list``)
    deleted   md5 of name (32), inverted milliseconds (13), id (16)   those of ``pages``, and gone

    m:kind      rename, delete, undelete, purge
    m:from m:to names           m:row   row in ``deleted`` from which the page comes or to which it goes
    m:head      the newest revision of the page when the move was requested
    m:at        the timestamp of all cells that the move writes
    m:by m:signed m:reason      m:redirect  "yes": the old name redirects to the new one
    m:job       the job that the move belongs to     m:quiet  "yes": nobody is notified of it
    m:owner m:read    owner and own list for reading, if any, that the page had; an older journal has neither
    m:note      of the redirect's revision, so that a process of any language that finishes the move writes the same one
    m:state     intent -> moved -> done, or intent -> abandoned; ``wiki-moves`` follows it (``notices.fan_out``)

A row of ``deleted`` has the page's former cells, and gone:by gone:reason gone:time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Final

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, is_there, number_in, text_in
from wikka_port.rights.rules import PageRights, Privilege, page_rights
from wikka_port.schema import Head, TableSpec, fields_in

MOVES: Final = b"moves"
DELETED: Final = b"deleted"
_DELETED_AT_ONCE: Final = 4  # pages of one name in one millisecond: a move takes longer
_ONE: Final = {"max_versions": 1}
TABLES: Final = (
    TableSpec(MOVES, {"m": _ONE, "e": _ONE}, {}),
    TableSpec(DELETED, dict.fromkeys(("meta", "body", "user", "note", "acl", "file", "comment", "gone"), _ONE), {}),
)

_NOWHERE: Final[Mapping[bytes, Cells]] = MappingProxyType({})

OPEN_ROW: Final = b"~open"
ITEM: Final = b"e:"
KIND: Final = b"m:kind"
STATE: Final = b"m:state"
NOTIFIED: Final = b"m:notified"
BY: Final = b"m:by"
SIGNED: Final = b"m:signed"
REVERTED: Final = b"m:author"  # whose edits a job takes back (``jobs``)
OWNER_THEN, READ_THEN = b"m:owner", b"m:read"  # of the page when it was moved
GONE_BY, GONE_REASON, GONE_TIME = b"gone:by", b"gone:reason", b"gone:time"
RENAME, DELETE, UNDELETE, PURGE = "rename", "delete", "undelete", "purge"
INTENT, MOVED, DONE, ABANDONED = b"intent", b"moved", b"done", b"abandoned"


@dataclass(frozen=True, slots=True)
class Move:
    id: bytes
    kind: Annotated[str, KIND]
    source: Annotated[str, b"m:from"]  # name of the page before the move
    target: Annotated[str, b"m:to"]  # name of the page after the move; the same if it is deleted
    row: Annotated[bytes, b"m:row"]  # in ``deleted``; b"" for a rename
    head: Annotated[Head, b"m:head"]  # of the row that the page leaves
    at_ms: Annotated[int, b"m:at"]
    by: Annotated[str, BY]
    signed: Annotated[str, SIGNED]
    reason: Annotated[str, b"m:reason"]
    redirect: Annotated[bool, b"m:redirect"]
    note: Annotated[str, b"m:note"] = ""  # of the redirect
    job: Annotated[bytes, b"m:job"] = b""  # b"": none
    quiet: Annotated[bool, b"m:quiet"] = False  # nobody is notified: it removes what another move has left

    @property
    def source_place(self) -> tuple[bytes, bytes]:
        """Table and row from which the page moves."""
        if self.kind in (UNDELETE, PURGE):
            return DELETED, self.row
        return schema.PAGES, page_key(self.source)

    @property
    def target_place(self) -> tuple[bytes, bytes]:
        return (DELETED, self.row) if self.kind == DELETE else (schema.PAGES, page_key(self.target))

    @property
    def history(self) -> bytes:
        """The key under which the page's revisions lie, whatever its name."""
        return self.head.place(page_key(self.source))

    @property
    def marked(self) -> Head:
        return replace(self.head, mark=self.id)


def rights_cells(rights: PageRights) -> dict[bytes, bytes]:
    """Return the cells that say who could read the page when it was moved."""
    own = rights.lists.get(Privilege.READ)
    return {OWNER_THEN: rights.owner.encode(), **({READ_THEN: own.encode()} if own is not None else {})}


def rights_then(cells: Cells) -> PageRights:
    """Parse ``rights_cells``; lists for anything but reading are left out."""
    own = {Privilege.READ: text_in(cells, READ_THEN)} if READ_THEN in cells else {}
    return PageRights(text_in(cells, OWNER_THEN), own)


def new_id() -> bytes:
    return secrets.token_hex(8).encode()


def deleted_row(name: str, at_ms: int, move: bytes) -> bytes:
    return page_key(name) + b"%013d" % (schema.TIME_MAX_MS - at_ms) + move


class Journal:
    """The table ``moves``.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def open(self, row: bytes, cells: Cells, listed: Mapping[bytes, Cells] = _NOWHERE) -> None:
        """Record a move or job, first in the list of open ones, so that none that has begun is forgotten.

        ``listed`` are rows of further lists, written together with that one.
        """
        self._rows.put_rows(MOVES, {OPEN_ROW: {ITEM + row: cells[KIND]}, **listed})
        self._rows.put(MOVES, row, cells)

    def close(self, row: bytes) -> None:
        self._rows.delete(MOVES, OPEN_ROW, [ITEM + row])

    def opened(self) -> dict[bytes, str]:
        """Return the kinds of the moves and jobs that have not ended, by id.  One call."""
        cells = self._rows.row(MOVES, OPEN_ROW)
        return {column[len(ITEM) :]: kind.decode(errors="replace") for column, kind in cells.items()}

    def read(self, row: bytes) -> tuple[Move, bytes] | None:
        """Return a move and its state, or None if there is none in the row."""
        cells = self._rows.row(MOVES, row, [b"m"])
        return (Move(row, **fields_in(Move, cells)), cells[STATE]) if STATE in cells else None

    def pass_on(self, row: bytes, before: bytes, after: bytes) -> bool:
        """Change the state from ``before`` to ``after``; return False if another process has changed it already."""
        return self._rows.change(MOVES, row, {STATE: before}, {STATE: after})


class MovesOfJob:
    """The moves of a job that are done, in the row JOB "+", until those who watch the pages are notified.

    Each move has the number N of the notice that it belongs to, one more than ``m:notified`` when it was done.
    ``notify`` puts the next number into ``m:notified``, which the trigger ``wiki-moves`` follows.  So each move is in
    one notice, however often a crash has the steps repeated.  A job notifies when it ends, and whenever it was stopped.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def add(self, move: Move) -> None:
        """Add a move before its journal says that it is done; a second call changes nothing."""
        row = moved_row(move.job)
        number = number_in(self._rows.row(MOVES, row, [NOTIFIED]), NOTIFIED)
        column = ITEM + move.id
        self._rows.change(MOVES, row, {column: None}, {column: b"%d" % (number + 1)})

    def notify(self, job: bytes, before: Callable[[bytes, Cells], object] = lambda row, cells: None) -> bool:
        """Have the watchers notified of the moves since the last call; return False if there was none.

        ``before`` is called with the row as it will be, for a store without triggers.
        """
        row = moved_row(job)
        cells = self._rows.row(MOVES, row)
        after = b"%d" % (number_in(cells, NOTIFIED) + 1)
        if after not in [value for column, value in cells.items() if column.startswith(ITEM)]:
            return False
        before(row, {**cells, NOTIFIED: after})
        return self._rows.change(MOVES, row, {NOTIFIED: cells.get(NOTIFIED)}, {NOTIFIED: after})


def moved_row(job: bytes) -> bytes:
    return job + b"+"


def deleted_rows_at(
    rows: Rows, name: str, at_ms: int, columns: Sequence[bytes] | None = None
) -> Iterator[tuple[bytes, Cells]]:
    """Yield the rows of the pages of a name that were deleted at a time: one, or none."""
    begin = deleted_row(name, at_ms, b"")
    for row, cells in rows.scan(DELETED, begin, columns=columns, limit=_DELETED_AT_ONCE):
        if row.startswith(begin) and is_there(cells):
            yield row, cells


LISTED_MAX: Final = 1_000  # deleted pages in the list of all names


@dataclass(frozen=True, slots=True)
class Deleted:
    name: str
    row: bytes  # in ``deleted``; identifies one of several pages of that name
    number: int  # of the page's newest revision
    by: str
    reason: str
    time_ms: int
    rights: PageRights


def deleted(rows: Rows, name: str = "", *, limit: int = LISTED_MAX) -> list[Deleted]:
    """Return the deleted pages of ``name``, the last deleted first; without a name those of all names."""
    begin = page_key(name) if name else b""
    found = []
    for row, cells in rows.scan(DELETED, begin, columns=(b"meta", b"gone", b"acl"), limit=limit):
        if not row.startswith(begin):
            break
        if is_there(cells):
            found.append(_deleted(row, cells))
    return sorted(found, key=lambda one: -one.time_ms)


def one_deleted(rows: Rows, row: bytes) -> Deleted | None:
    cells = rows.row(DELETED, row, (b"meta", b"gone", b"acl"))
    return _deleted(row, cells) if is_there(cells) else None


def _deleted(row: bytes, cells: Cells) -> Deleted:
    rights = page_rights(cells, cells.get(schema.OWNER, b""))
    time_ms = number_in(cells, GONE_TIME)
    return Deleted(
        text_in(cells, schema.NAME),
        row,
        head_of(cells).number,
        text_in(cells, GONE_BY),
        text_in(cells, GONE_REASON),
        time_ms,
        rights,
    )

"""Deleted pages as they are listed: what they were called, who deleted them, when and why.

Knows nothing of who may see them (``rights.guarded``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wikka_port import schema
from wikka_port.accounts.rows import Cells, Rows
from wikka_port.moving.journal import DELETED, GONE_BY, GONE_REASON, GONE_TIME
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, is_there, number_in
from wikka_port.rights.rules import PageRights, page_rights

LISTED_MAX: Final = 1_000  # of all names


@dataclass(frozen=True, slots=True)
class Deleted:
    name: str
    row: bytes  # in ``deleted``: says which of several of that name
    number: int  # of its newest revision
    by: str
    reason: str
    time_ms: int
    rights: PageRights


def deleted(rows: Rows, name: str = "", *, limit: int = LISTED_MAX) -> list[Deleted]:
    """Return the deleted pages of ``name``, or all; the last one first."""
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
    def text(column: bytes) -> str:
        return cells.get(column, b"").decode(errors="replace")

    rights = page_rights(cells, cells.get(schema.OWNER, b""))
    time_ms = number_in(cells, GONE_TIME)
    return Deleted(text(schema.NAME), row, head_of(cells).number, text(GONE_BY), text(GONE_REASON), time_ms, rights)

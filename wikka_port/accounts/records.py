"""(pure) An account as a value, from its row and back.

The mark from which changes are new to a reader:

    settings:visit  :=  since ":" last        milliseconds, decimal

``last`` is when a request of the present visit was noted, and ``since`` the ``last`` of the visit before; 0: there was
none.  A visit ends when no request comes for GAP_MS.  The mark is written with the session's, at most every
NOTED_EVERY_MS, so what was changed in the last minutes of a visit may count as new in the next one; nothing that was
changed after a visit ever counts as seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, get_args

from wikka_port.accounts import tables
from wikka_port.accounts.settings import Settings, settings_in
from wikka_port.visitors import Status

Cells = Mapping[bytes, bytes]
STATUSES: Final = frozenset(get_args(Status)) - {"anonymous"}
_YES: Final = b"1"
GAP_MS: Final = 30 * 60 * 1000
NOTED_EVERY_MS: Final = 5 * 60 * 1000
assert NOTED_EVERY_MS < GAP_MS, "a visit that goes on is never taken for two"


@dataclass(frozen=True, slots=True)
class Visit:
    since_ms: int = 0
    last_ms: int = 0

    def at(self, now_ms: int) -> Visit:
        """Return the visit to which a request at ``now_ms`` belongs, with this request in it."""
        if now_ms > self.last_ms + GAP_MS:
            return Visit(self.last_ms, now_ms)
        return Visit(self.since_ms, max(self.last_ms, now_ms))

    def is_to_be_noted(self, now_ms: int) -> bool:
        return now_ms >= self.last_ms + NOTED_EVERY_MS

    def new_after_ms(self, now_ms: int) -> int:
        """Return the time after which changes are new to a reader whose request comes at ``now_ms``; -1: none are."""
        return self.at(now_ms).since_ms or -1

    def pack(self) -> bytes:
        return b"%d:%d" % (self.since_ms, self.last_ms)


NO_VISIT: Final = Visit()


def visit_of(cell: bytes) -> Visit:
    """Parse a cell; one that is absent or damaged is a first visit."""
    since, _, last = cell.partition(b":")
    return Visit(int(since), int(last)) if since.isdigit() and last.isdigit() else NO_VISIT


@dataclass(frozen=True, slots=True)
class Account:
    row: bytes
    id: str
    name: str
    status: Status
    admin: bool
    email: str  # "": none
    password: str  # its hash; "": none, so nobody can sign in with a password
    created_ms: int
    settings: Settings
    edits: int = 0  # counted until antispam trusts the account (``antispam.submissions``)
    news_after_ms: int = -1  # notices later than this time are not read; -1: there are none
    watches: bytes = b""  # changes with the account's watches (``notices.watching``)
    visit: Visit = NO_VISIT


def account_of(row: bytes, cells: Cells) -> Account | None:
    """Return the account in a row, or None if there is none or its registration crashed before its end."""
    status = _text(cells, tables.STATUS)
    if tables.NAME not in cells or status not in STATUSES:
        return None
    created, edits = (cells.get(column, b"") for column in (tables.CREATED, tables.EDITS))
    return Account(
        row=row,
        id=_text(cells, tables.ID),
        name=_text(cells, tables.NAME),
        status=status,  # type: ignore[arg-type]  # one of STATUSES
        admin=cells.get(tables.ADMIN) == _YES,
        email=_text(cells, tables.EMAIL),
        password=_text(cells, tables.PASSWORD),
        created_ms=int(created) if created.isdigit() else 0,
        settings=settings_in(cells),
        edits=int(edits) if edits.isdigit() else 0,
        news_after_ms=_news_after(cells),
        watches=cells.get(tables.WATCHES_STAMP, b""),
        visit=visit_of(cells.get(tables.VISIT, b"")),
    )


def _news_after(cells: Cells) -> int:
    newest, seen = (cells.get(column, b"") for column in (tables.NEWS, tables.SEEN))
    seen_ms = int(seen) if seen.isdigit() else 0
    return seen_ms if newest.isdigit() and int(newest) > seen_ms else -1


def account_cells(account: Account) -> dict[bytes, bytes]:
    """Return the cells of a new account without settings, which are the default at first.

    ``account:id`` comes first: that put takes the name (``rows``).
    """
    cells = {
        tables.ID: account.id.encode(),
        tables.NAME: account.name.encode(),
        tables.STATUS: account.status.encode(),
        tables.CREATED: b"%d" % account.created_ms,
        tables.ADMIN: _YES if account.admin else b"",
        tables.EMAIL: account.email.encode(),
        tables.PASSWORD: account.password.encode(),
    }
    return {column: value for column, value in cells.items() if value}


def flag(value: bool) -> bytes:
    return _YES if value else b""


def _text(cells: Cells, column: bytes) -> str:
    return cells.get(column, b"").decode(errors="replace")

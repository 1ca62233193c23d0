"""(pure) An account as a value, from its row and back."""

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
    )


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

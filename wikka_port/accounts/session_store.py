"""Sessions in the rows of their accounts: begun, read with each request, seen, ended.

``visitor`` is one get.  Its row is the truth of this moment: a session that was ended, an account that was
banned or lost its rights counts from the next request on, in every process.

Knows nothing of cookies' attributes, nor of passwords.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from wikka_port.accounts import tables
from wikka_port.accounts.records import Account, account_of
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.sessions import Session, cookie_value, pack, session_column, ticket_of, unpack
from wikka_port.accounts.tables import SESSION, USERS
from wikka_port.visitors import Visitor

SESSIONS_MAX: Final = 50  # of an account; a new one replaces the one that was idle longest
_ACCOUNT_COLUMNS: Final = (tables.NAME, tables.STATUS, tables.ADMIN, b"settings")


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as its owner is shown it."""

    column: bytes
    session: Session


class Sessions:
    """Thread-safe.  Everything may raise StoreUnavailable, which signs no visitor in."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    def visitor(self, cookie: str, network_hash: str) -> Visitor | None:
        """Return the person whom the cookie signs in; None: none."""
        ticket = ticket_of(cookie)
        if ticket is None:
            return None
        cells = self._rows.row(USERS, ticket.row, (*_ACCOUNT_COLUMNS, ticket.column))
        session = unpack(cells.get(ticket.column, b""))
        account = account_of(ticket.row, cells)
        now = self._clock()
        if session is None or account is None or account.status == "deleted" or session.is_over(now):
            return None
        if session.is_to_be_seen(now):
            seen = pack(replace(session, seen_ms=now))
            self._rows.change(USERS, ticket.row, {ticket.column: cells[ticket.column]}, {ticket.column: seen})
        return visitor_of(account, network_hash, ticket.column)

    def begin(self, account: Account, *, network: str, agent: str) -> str | None:
        """Return the cookie of a new session; None if the password is not any more what ``account`` says."""
        token = secrets.token_urlsafe(32)
        now = self._clock()
        session = Session(now, now, network, agent)
        expected = {tables.PASSWORD: account.password.encode()}
        if not self._rows.change(USERS, account.row, expected, {session_column(token): pack(session)}):
            return None
        surplus = self.of(account.row)[SESSIONS_MAX:]
        if surplus:
            self._rows.delete(USERS, account.row, [one.column for one in surplus])
        return cookie_value(account.row, token)

    def of(self, row: bytes) -> list[Seen]:
        """Return the account's sessions, the one seen last first."""
        cells = self._rows.row(USERS, row, (SESSION.rstrip(b":"),))
        now = self._clock()
        known = ((column, unpack(value)) for column, value in cells.items())
        found = [Seen(column, one) for column, one in known if one is not None and not one.is_over(now)]
        return sorted(found, key=lambda one: (-one.session.seen_ms, one.column))

    def end(self, row: bytes, column: bytes) -> None:
        if column.startswith(SESSION) and len(column) > len(SESSION):
            self._rows.delete(USERS, row, [column])

    def end_all(self, row: bytes) -> None:
        self._rows.delete(USERS, row, [SESSION.rstrip(b":")])


def visitor_of(account: Account, network_hash: str, session: bytes = b"") -> Visitor:
    return Visitor(
        name=account.name,
        signature=account.name,
        status=account.status,
        admin=account.admin and account.status == "active",
        network_hash=network_hash,
        settings=account.settings,
        session=session.decode(),
    )

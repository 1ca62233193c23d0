"""Sessions: the token in a browser's cookie, and its cell in the account's row.

    cookie  := base64url(folded name) "." token          token: 43 random characters, 256 bits
    column  := "session:" sha256(token), hexadecimal
    value   := created "\\n" seen "\\n" network "\\n" agent          created, seen: milliseconds, decimal

The store has no tokens, so a reader of a backup cannot sign in.  The name in the cookie only finds the row and
proves nothing.

A session ends SESSION_S after it was last seen, and SESSION_LONGEST_S after the sign-in.  ``seen`` is written at most
every SEEN_EVERY_S, on the condition that the cell is unchanged.  Therefore this write never brings back an ended
session.  The mark of the visit (``records``) is written with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from wikka_port.accounts import tables
from wikka_port.accounts.records import Account, account_of
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import SESSION, SESSION_LONGEST_S, SESSION_S, USERS
from wikka_port.texts import _
from wikka_port.visitors import Visitor

SEEN_EVERY_S: Final = 300
AGENT_CHARS_MAX: Final = 200
_COOKIE_CHARS_MAX: Final = 1_024
_TOKEN_CHARS: Final = 43  # of 32 bytes in base64url
_MS: Final = 1_000
# Words in a browser's User-Agent and their meaning; each browser's also contains the words of the browsers below it.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrom", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)

SESSIONS_MAX: Final = 50  # of an account; a new one replaces the one that was idle longest
_ACCOUNT_COLUMNS: Final = (
    *(tables.NAME, tables.STATUS, tables.ADMIN, tables.CREATED, tables.EDITS),
    *(tables.NEWS, tables.SEEN, tables.WATCHES_STAMP, b"settings"),
)


@dataclass(frozen=True, slots=True)
class Session:
    created_ms: int
    seen_ms: int
    network: str
    agent: str

    @property
    def browser(self) -> str:
        """A name by which the session's owner may recognise it, such as "Firefox on Linux"."""
        name = next((shown for word, shown in _BROWSERS if word in self.agent), "")
        system = next((shown for word, shown in _SYSTEMS if word in self.agent), "")
        if name and system:
            return _("{browser} on {system}", browser=name, system=system)
        return self.agent[:60] or _("Unknown browser")

    def is_over(self, now_ms: int) -> bool:
        return not (now_ms < self.seen_ms + SESSION_S * _MS and now_ms < self.created_ms + SESSION_LONGEST_S * _MS)

    def is_to_be_seen(self, now_ms: int) -> bool:
        return now_ms >= self.seen_ms + SEEN_EVERY_S * _MS


@dataclass(frozen=True, slots=True)
class Ticket:
    """The claim in a cookie, believed only if the store has its session."""

    row: bytes  # of the account
    column: bytes  # of the session


def cookie_value(row: bytes, token: str) -> str:
    return f"{base64.urlsafe_b64encode(row).decode().rstrip('=')}.{token}"


def ticket_of(cookie: str) -> Ticket | None:
    """Parse a cookie; return None if it is no session cookie of the wiki."""
    name, dot, token = cookie.partition(".")
    if not dot or not name or len(cookie) > _COOKIE_CHARS_MAX or len(token) != _TOKEN_CHARS or not cookie.isascii():
        return None
    try:
        row = base64.b64decode(name + "=" * (-len(name) % 4), altchars=b"-_", validate=True)
        row.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Ticket(row, session_column(token))


def session_column(token: str) -> bytes:
    return SESSION + hashlib.sha256(token.encode("utf-8", "replace")).hexdigest().encode()


def pack_session(session: Session) -> bytes:
    agent = " ".join(session.agent.split())[:AGENT_CHARS_MAX]
    return f"{session.created_ms}\n{session.seen_ms}\n{session.network}\n{agent}".encode("utf-8", "replace")


def unpack_session(value: bytes) -> Session | None:
    """Parse the cell of a session; return None if it is none, so that it signs nobody in."""
    parts = value.decode(errors="replace").split("\n")
    if len(parts) != 4 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return Session(int(parts[0]), int(parts[1]), parts[2], parts[3])


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as it is shown to its owner."""

    column: bytes
    session: Session


class Sessions:
    """The sessions of all accounts.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    def visitor(self, cookie: str, network_hash: str) -> Visitor | None:
        """Return the visitor whom the cookie signs in, or None if it signs nobody in."""
        ticket = ticket_of(cookie)
        if ticket is None:
            return None
        cells = self._rows.row(USERS, ticket.row, (*_ACCOUNT_COLUMNS, ticket.column))
        session = unpack_session(cells.get(ticket.column, b""))
        account = account_of(ticket.row, cells)
        now = self._clock()
        if session is None or account is None or account.status == "deleted" or session.is_over(now):
            return None
        noted = {}
        if session.is_to_be_seen(now):
            noted[ticket.column] = pack_session(replace(session, seen_ms=now))
        if account.visit.is_to_be_noted(now):
            noted[tables.VISIT] = account.visit.at(now).pack()
        if noted:
            self._rows.change(USERS, ticket.row, {ticket.column: cells[ticket.column]}, noted)
        new_after_ms = account.visit.new_after_ms(now)
        return replace(visitor_of(account, network_hash, ticket.column), new_after_ms=new_after_ms)

    def begin(self, account: Account, *, network: str, agent: str) -> str | None:
        """Begin a session and return its cookie, or None if the account's password was changed meanwhile."""
        token = secrets.token_urlsafe(32)
        now = self._clock()
        session = Session(now, now, network, agent)
        expected = {tables.PASSWORD: account.password.encode()}
        begun = {session_column(token): pack_session(session), tables.VISIT: account.visit.at(now).pack()}
        if not self._rows.change(USERS, account.row, expected, begun):
            return None
        surplus = self.of(account.row)[SESSIONS_MAX:]
        if surplus:
            self._rows.delete(USERS, account.row, [one.column for one in surplus])
        return cookie_value(account.row, token)

    def of(self, row: bytes) -> list[Seen]:
        """Return the account's sessions, the one seen last first."""
        cells = self._rows.row(USERS, row, (SESSION.rstrip(b":"),))
        now = self._clock()
        known = ((column, unpack_session(value)) for column, value in cells.items())
        found = [Seen(column, one) for column, one in known if one is not None and not one.is_over(now)]
        return sorted(found, key=lambda one: (-one.session.seen_ms, one.column))

    def end_all(self, row: bytes) -> None:
        self._rows.delete(USERS, row, [SESSION.rstrip(b":")])

    def end(self, row: bytes, column: bytes) -> None:
        if column.startswith(SESSION) and len(column) > len(SESSION):
            self._rows.delete(USERS, row, [column])


def visitor_of(account: Account, network_hash: str, session: bytes = b"") -> Visitor:
    return Visitor(
        name=account.name,
        signature=account.name,
        status=account.status,
        admin=account.admin and account.status == "active",
        network_hash=network_hash,
        settings=account.settings,
        session=session.decode(),
        account_ms=account.created_ms,
        edits=account.edits,
        news_after_ms=account.news_after_ms,
        watches=account.watches,
    )

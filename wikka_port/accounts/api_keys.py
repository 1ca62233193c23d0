"""Keys of accounts for programs, which call the JSON API (``api``): the token in a request's header, and its cell.

    token   := "wk_" base64url(folded name) "." secret       secret: 43 random characters, 256 bits
    column  := "key:" sha256(secret), hexadecimal             in the account's row
    value   := created "\\n" expires "\\n" seen "\\n" scopes "\\n" label
               times are milliseconds, decimal; scopes are words with a blank between them

The store has no tokens, so a reader of a backup has no key.  The name in a token only finds the row and proves nothing.
The key and the account's status are read by one get, so a ban counts at once.  ``seen`` is written at most every
SEEN_EVERY_S, on the condition that the cell is unchanged, so it never brings back a key that was ended.

A key acts for its account and has the account's rights, within its scopes:
    read    GET
    write   change pages and files
    admin   change rights, and do what only administrators may; without it an administrator's key has no such right
    feed    read the inbox as a feed.  The token stands in the feed's address, which programs keep and show, so such a
            key has no other scope, and the API takes it for nothing
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from wikka_port.accounts import tables
from wikka_port.accounts.records import Account, account_of
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.sessions import SEEN_EVERY_S, Ticket, ticket_of, visitor_of
from wikka_port.accounts.tables import KEY, USERS
from wikka_port.texts import N_, _
from wikka_port.visitors import Visitor

READ: Final = "read"
WRITE: Final = "write"
ADMIN: Final = "admin"
FEED: Final = "feed"
# The names that people see.
SCOPES: Final = {READ: N_("read"), WRITE: N_("write"), ADMIN: N_("administer"), FEED: N_("only the feed of the inbox")}
KEYS_MAX: Final = 20  # of an account
LABEL_CHARS_MAX: Final = 60
DAYS_MAX: Final = 730
_PREFIX: Final = "wk_"  # by which scanners for leaked secrets find a token
_DAY_MS: Final = 24 * 3600 * 1000
_ACCOUNT_COLUMNS: Final = (
    *(tables.NAME, tables.STATUS, tables.ADMIN, tables.CREATED, tables.EDITS),
    *(tables.NEWS, tables.SEEN, b"settings"),
)


@dataclass(frozen=True, slots=True)
class ApiKey:
    created_ms: int
    expires_ms: int
    seen_ms: int  # 0: never
    scopes: frozenset[str]
    label: str


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is shown to its owner."""

    column: bytes
    key: ApiKey

    @property
    def id(self) -> str:
        """The hash of its secret, by which a form names it."""
        return self.column[len(KEY) :].decode()


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request with a valid key."""

    visitor: Visitor
    scopes: frozenset[str]


class KeyNotMade(Exception):
    """No key was made; ``str()`` is a sentence for the person."""


def pack_key(key: ApiKey) -> bytes:
    words = " ".join(sorted(key.scopes))
    label = " ".join(key.label.split())[:LABEL_CHARS_MAX]
    return f"{key.created_ms}\n{key.expires_ms}\n{key.seen_ms}\n{words}\n{label}".encode("utf-8", "replace")


def unpack_key(value: bytes) -> ApiKey | None:
    """Parse the cell of a key; return None if it is none, so that it signs nobody in."""
    parts = value.decode(errors="replace").split("\n")
    if len(parts) != 5 or not all(part.isascii() and part.isdigit() for part in parts[:3]):
        return None
    return ApiKey(int(parts[0]), int(parts[1]), int(parts[2]), frozenset(parts[3].split()), parts[4])


def key_column(secret: str) -> bytes:
    return KEY + hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest().encode()


def key_ticket(token: str) -> Ticket | None:
    """Parse a token; return None if it is no token of a key."""
    ticket = ticket_of(token.removeprefix(_PREFIX)) if token.startswith(_PREFIX) else None
    return None if ticket is None else Ticket(ticket.row, key_column(token.rpartition(".")[2]))


class ApiKeys:
    """The keys of all accounts.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    def caller(self, token: str, network_hash: str) -> Caller | None:
        """Return the sender of a request with ``token``, or None if it is no valid key.  Costs one get."""
        ticket = key_ticket(token)
        if ticket is None:
            return None
        cells = self._rows.row(USERS, ticket.row, (*_ACCOUNT_COLUMNS, ticket.column))
        key, account, now = unpack_key(cells.get(ticket.column, b"")), account_of(ticket.row, cells), self._clock()
        if key is None or account is None or account.status != "active" or now >= key.expires_ms:
            return None
        if now >= key.seen_ms + SEEN_EVERY_S * 1000:
            seen = pack_key(replace(key, seen_ms=now))
            self._rows.change(USERS, ticket.row, {ticket.column: cells[ticket.column]}, {ticket.column: seen})
        visitor = replace(visitor_of(account, network_hash), by_key=True)
        return Caller(replace(visitor, admin=visitor.admin and ADMIN in key.scopes), key.scopes)

    def issue(self, account: Account, *, label: str, scopes: Collection[str], days: int) -> str:
        """Make a key of the account and return its token, which the store does not have.

        Raises KeyNotMade, and ValueError for scopes or days that no key can have.
        """
        if not scopes or not set(scopes) <= SCOPES.keys() or not 1 <= days <= DAYS_MAX:
            raise ValueError(f"no key has the scopes {sorted(scopes)} and {days} days")
        if FEED in scopes and len(set(scopes)) > 1:
            raise KeyNotMade(
                _("A key for the feed stands in an address, so it can do nothing else. Make a second key.")
            )
        now = self._clock()
        found = self.of(account.row)
        over = [one.column for one in found if one.key.expires_ms <= now]
        if len(found) - len(over) >= KEYS_MAX:
            raise KeyNotMade(_("You have {most} keys, and that is the most. End one first.", most=KEYS_MAX))
        secret = secrets.token_urlsafe(32)
        key = ApiKey(now, now + days * _DAY_MS, 0, frozenset(scopes), label)
        expected = {tables.ID: account.id.encode()}
        if not self._rows.change(USERS, account.row, expected, {key_column(secret): pack_key(key)}, over):
            raise KeyNotMade(_("The account was changed meanwhile. Please try again."))
        name = base64.urlsafe_b64encode(account.row).decode().rstrip("=")
        return f"{_PREFIX}{name}.{secret}"

    def of(self, row: bytes) -> list[StoredKey]:
        """Return the account's keys, also expired ones, the newest first."""
        cells = self._rows.row(USERS, row, (KEY.rstrip(b":"),))
        known = ((column, unpack_key(value)) for column, value in cells.items())
        found = [StoredKey(column, key) for column, key in known if key is not None]
        return sorted(found, key=lambda one: (-one.key.created_ms, one.column))

    def end_all(self, row: bytes) -> None:
        self._rows.delete(USERS, row, [KEY.rstrip(b":")])

    def end_key(self, row: bytes, key_id: str) -> None:
        """End a key by the ``id`` of StoredKey; an unknown one is none already."""
        if len(key_id) == 64 and key_id.isascii() and key_id.isalnum():
            self._rows.delete(USERS, row, [KEY + key_id.encode()])

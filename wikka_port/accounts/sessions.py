"""Sessions (pure): the token in a browser's cookie, and the cell of it in the account's row.

    cookie  := base64url(folded name) "." token          token: 43 characters by chance, 256 bits
    column  := "session:" sha256(token), hexadecimal
    value   := created "\\n" seen "\\n" network "\\n" agent          created, seen: milliseconds, decimal

The store has no token: a reader of a backup cannot sign in with it.  The name in the cookie says where to look and
proves nothing.

A session ends SESSION_S after it was last seen and SESSION_LONGEST_S after the sign-in; ``seen`` is written at most
every SEEN_EVERY_S, on the condition that the cell is as it was read, so it never brings back a session that was
ended.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.tables import SESSION, SESSION_LONGEST_S, SESSION_S
from wikka_port.texts import _

SEEN_EVERY_S: Final = 300
AGENT_CHARS_MAX: Final = 200
_COOKIE_CHARS_MAX: Final = 1_024
_TOKEN_CHARS: Final = 43  # of 32 bytes in base64url
_MS: Final = 1_000
# Words of an agent and what they mean; each browser also has the words of those below it.
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


@dataclass(frozen=True, slots=True)
class Session:
    created_ms: int
    seen_ms: int
    network: str
    agent: str

    @property
    def browser(self) -> str:
        """A name by which its owner may know it, as "Firefox on Linux"."""
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
    """A cookie's claim; believed only where the store has its session."""

    row: bytes  # of the account
    column: bytes  # of the session


def cookie_value(row: bytes, token: str) -> str:
    return f"{base64.urlsafe_b64encode(row).decode().rstrip('=')}.{token}"


def ticket_of(cookie: str) -> Ticket | None:
    """None for what is no cookie of ours."""
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


def pack(session: Session) -> bytes:
    agent = " ".join(session.agent.split())[:AGENT_CHARS_MAX]
    return f"{session.created_ms}\n{session.seen_ms}\n{session.network}\n{agent}".encode("utf-8", "replace")


def unpack(value: bytes) -> Session | None:
    """None for what is no session: it signs no visitor in."""
    parts = value.decode(errors="replace").split("\n")
    if len(parts) != 4 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return Session(int(parts[0]), int(parts[1]), parts[2], parts[3])

"""Links for one use: to confirm a mail address, to set a password, to register by invitation, to administer.

    row        sha256 of the token, so that a reader of the store cannot use a link
    t:kind     the purpose of the link   t:user     row of the account, "" for an account yet to be created
    t:extra    depends on the kind: an address, a state that must still be true
    t:expires  milliseconds              t:used     16 random hexadecimal digits, once the link was used

A link is marked as used before its effect, so of two concurrent requests with it only one continues.  A link opens a
form with a button, since programs that scan mails request the addresses in them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import TOKENS, token_row

Kind = Literal["confirm", "reset", "invitation", "administrator"]
LIFE_S: Final[dict[Kind, int]] = {
    "confirm": 30 * 60,
    "reset": 30 * 60,
    "invitation": 14 * 24 * 3600,
    "administrator": 24 * 3600,
}
_KIND, _USER, _EXTRA, _EXPIRES, _USED = b"t:kind", b"t:user", b"t:extra", b"t:expires", b"t:used"
_TOKEN_CHARS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Link:
    kind: Kind
    user: bytes
    extra: str


class Links:
    """The table of links.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    def issue(self, kind: Kind, user: bytes = b"", extra: str = "", life_s: int | None = None) -> str:
        """Return the token of a new link; ``life_s`` replaces the lifetime of its kind."""
        token = secrets.token_urlsafe(32)
        cells = {
            _KIND: kind.encode(),
            _USER: user,
            _EXTRA: extra.encode("utf-8", "replace"),
            _EXPIRES: b"%d" % (self._clock() + (LIFE_S[kind] if life_s is None else life_s) * 1_000),
        }
        self._rows.put(TOKENS, token_row(token), {column: value for column, value in cells.items() if value})
        return token

    def find_link(self, token: str, kind: Kind) -> Link | None:
        """Return the link of a token, or None if there is none of that kind, or it is too old or used."""
        if not token or len(token) > _TOKEN_CHARS_MAX:
            return None
        cells = self._rows.row(TOKENS, token_row(token))
        expires = cells.get(_EXPIRES, b"")
        if cells.get(_KIND) != kind.encode() or _USED in cells:
            return None
        if not expires.isdigit() or self._clock() >= int(expires):
            return None
        return Link(kind, cells.get(_USER, b""), cells.get(_EXTRA, b"").decode(errors="replace"))

    def spend(self, token: str, kind: Kind) -> Link | None:
        """Mark the link as used and return it as ``find_link`` does; of concurrent callers only one gets it."""
        link = self.find_link(token, kind)
        if link is None:
            return None
        spent = self._rows.change(TOKENS, token_row(token), {_USED: None}, {_USED: secrets.token_hex(8).encode()})
        return link if spent else None

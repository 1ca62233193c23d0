"""(pure) The visitor of a request: the value that handlers, actions and rights get as ``site.visitor``.

    not signed in    name None, status "anonymous", signature "Visitor 7f3a"
    signed in        the account's name, status and rights; the signature is the name

The hash of a network is keyed with the site's secret and the month (UTC): visitors of one network have the same hash
for a month at most, and without the secret nobody can derive the network from the hash.

Knows nothing of the store, nor of HTTP; ``app`` makes the visitor of a request.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

from wikka_port.accounts.settings import DEFAULT, THEMES, Settings
from wikka_port.schema import folded
from wikka_port.security import network_of
from wikka_port.texts import _w

SignedBy = Literal["account", "key", "visitor"]  # ``schema`` has their meaning
Status = Literal["anonymous", "invited", "signed-up", "pending", "active", "suspended", "banned", "deleted"]
_SIGNATURE_DIGITS: Final = 4
_HASH_CHARS: Final = 32
_BY_THEME: Final = {theme: Settings(theme=theme) for theme in THEMES if theme != DEFAULT.theme}
HASHES_KEPT: Final = 1_024  # addresses, of this month and the preceding one


@dataclass(frozen=True, slots=True)
class Visitor:
    name: str | None  # registered name as shown; None: not signed in
    signature: str  # what an edit is signed with
    status: Status
    admin: bool
    network_hash: str  # of this month; "": unknown
    settings: Settings = DEFAULT
    session: str = ""  # the value that binds forms to this session; "": no session
    news_after_ms: int = -1  # the account has notices later than this time, which are not read; -1: it has none
    watches: bytes = b""  # changes with what the account watches
    new_after_ms: int = -1  # changes later than this time are new to the visitor; -1: none is (``accounts.records``)
    by_key: bool = False  # whether a program sends the request, with a key of the account (``accounts.api_keys``)
    address: str = ""  # from which the request comes; never shown to other people
    account_ms: int = 0  # when the account was made
    edits: int = 0  # of the account, counted until antispam trusts it (``antispam.submissions``)

    @property
    def is_active(self) -> bool:
        """Whether the visitor is signed in with an account that is neither suspended nor banned."""
        return self.name is not None and self.status == "active"

    @property
    def signed(self) -> SignedBy:
        """The kind of the visitor's name below an edit."""
        if self.name is None:
            return "visitor"
        return "key" if self.by_key else "account"

    @property
    def administers(self) -> bool:
        """Whether to show links for administrators; the linked pages themselves call ``judging.may``."""
        return self.admin and self.is_active


def unregistered(network_hash: str, address: str = "") -> Visitor:
    signature = f"{_w('Visitor')} {network_hash[:_SIGNATURE_DIGITS]}".rstrip()
    return Visitor(None, signature, "anonymous", False, network_hash, address=address)


def with_theme(visitor: Visitor, theme: str) -> Visitor:
    """Return the visitor with the colours that were chosen for this browser; unknown ones change nothing."""
    if theme not in THEMES or theme == visitor.settings.theme:
        return visitor
    is_plain = visitor.settings == DEFAULT
    return replace(visitor, settings=_BY_THEME[theme] if is_plain else replace(visitor.settings, theme=theme))


def is_like_visitor(name: str) -> bool:
    """Return whether readers could take ``name`` for a visitor without an account."""
    return re.match(rf"{re.escape(folded(_w('Visitor')))}\b", folded(name)) is not None


NOBODY: Final = unregistered("")
COMMAND: Final = "(command)"  # signs what the operator does by a command; no account can have this name
OLD_COMMANDS: Final = frozenset({"command", "a command"})  # the same in older entries of the audit
OPERATOR: Final = Visitor(COMMAND, COMMAND, "active", True, "")


class NetworkHashes:
    """Hashes of networks.  Thread-safe; processes with the same secret compute the same hashes."""

    def __init__(self, secret: bytes, clock: Callable[[], float]) -> None:
        self._secret = secret
        self._clock = clock
        self._hashed = lru_cache(HASHES_KEPT)(self._hash)  # for each request; most are of the same few networks

    def of(self, address: str) -> str:
        now = datetime.fromtimestamp(self._clock(), UTC)
        return self._hashed(address, now.year, now.month)

    def _hash(self, address: str, year: int, month: int) -> str:
        text = f"network {year}-{month}\n{network_of(address)}"
        return hmac.digest(self._secret, text.encode("utf-8", "replace"), "sha256").hex()[:_HASH_CHARS]

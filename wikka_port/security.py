"""The guards of the wiki: form tokens, the edit rate limit, headers of every answer.

A form token is ``<issued, hex seconds>.<HMAC-SHA256 over browser, session and issued>``.  ``browser`` is a random
value in a cookie of its own, so a token that a foreign site's server fetched is useless in a reader's browser; the
value is replaced at each sign-in and sign-out.  ``session`` is the session that was signed in when the form was made: a
form of a different session, or of none, is refused.

Knows nothing of HTTP messages; the clock is an argument.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Callable
from typing import Final

from wikka_port.edit_buckets import EditBuckets
from wikka_port.files.picture_sources import PictureSources

_VISITOR_CHARS: Final = 32

POLICY: Final = "Content-Security-Policy"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src {pictures}; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    # no script makes HTML of a text except the editor's, which parses pasted text in a document that runs nothing
    "require-trusted-types-for 'script'; trusted-types wikka-editor"
)
_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),  # for browsers that do not know frame-ancestors
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)


def headers(pictures: PictureSources) -> tuple[tuple[str, str], ...]:
    """Return the headers of every answer of a site that shows pictures from these places, POLICY first."""
    return ((POLICY, _POLICY.format(pictures=pictures.policy)), *_HEADERS)


def new_visitor() -> str:
    return secrets.token_hex(_VISITOR_CHARS // 2)


def is_visitor(value: str) -> bool:
    return len(value) == _VISITOR_CHARS and value.isascii() and value.isalnum()


class FormTokens:
    """Makes and checks form tokens; every process needs the same secret."""

    def __init__(self, secret: bytes, clock: Callable[[], float], max_age_s: int) -> None:
        self._secret = secret
        self._clock = clock
        self._max_age_s = max_age_s

    def issue(self, visitor: str, session: str = "") -> str:
        return self._signed(visitor, session, f"{int(self._clock()):x}")

    def accepts(self, token: str, visitor: str, session: str = "") -> bool:
        issued, _, _ = token.partition(".")
        expected = self._signed(visitor, session, issued)
        if not is_visitor(visitor) or not hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace")):
            return False
        return -60 <= self._clock() - int(issued, 16) <= self._max_age_s

    def age_s(self, token: str) -> float:
        """Return the seconds since an accepted token was issued."""
        return self._clock() - int(token.partition(".")[0], 16)

    def _signed(self, visitor: str, session: str, issued: str) -> str:
        signed = f"{visitor}\n{session}\n{issued}" if session else f"{visitor}\n{issued}"
        mac = hmac.new(self._secret, signed.encode("utf-8", "replace"), "sha256")
        return f"{issued}.{mac.hexdigest()}"


class RateLimiter:
    """A token bucket for each address; for threads, and for all processes that share ``buckets``.

    Invariant: the table of buckets has a fixed size.  If a set of the table is full, the longest idle bucket is
    forgotten; it has refilled most, unless an attacker has that many addresses.
    """

    def __init__(
        self, per_minute: float, burst: int, buckets: EditBuckets, clock: Callable[[], float], purpose: str = ""
    ) -> None:
        """Count separately for each ``purpose``, even if limiters share ``buckets``."""
        self._purpose = purpose
        self._rate_s = per_minute / 60
        self._burst = float(max(burst, 1))
        self._buckets = buckets
        self._clock = clock

    def wait_s(self, address: str) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        if self._rate_s <= 0:
            return 0.0
        key = self._purpose + network_of(address)
        with self._buckets.locked():
            now = self._clock()
            place, known = self._buckets.place(key)
            tokens, then = known or (self._burst, now)
            tokens = min(self._burst, tokens + max(0.0, now - then) * self._rate_s)
            wait_s = 0.0 if tokens >= 1 else (1 - tokens) / self._rate_s
            self._buckets.put(place, key, tokens - 1 if wait_s == 0 else tokens, now)
        return wait_s


def network_of(address: str) -> str:
    """Return the part of an address that counts as one visitor: all of IPv4, the first 64 bits of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def is_address(text: str) -> bool:
    """Return whether ``text`` reads like a machine's address; nobody may sign with the address of somebody else."""
    host, _, port = text.strip().rpartition(":")
    for shown in (text, host if port.isdigit() else text):
        try:
            ipaddress.ip_address(shown.strip("[] "))
        except ValueError:
            continue
        return True
    return False

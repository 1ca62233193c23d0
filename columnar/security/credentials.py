"""(pure) Credentials: a user and a secret, as an Authorization header (RFC 7617, RFC 6750) and SASL PLAIN have them.

A token stands in the place of a password, too, so that every client that can send a password can send a token.  It has
TOKEN_BYTES random bytes, so that a hash without salt and without cost hides it: nobody guesses one.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from columnar.errors import SignInRefused

PREFIX: Final = "clmn_"  # by which people and scanners of sources recognise a token
TOKEN_BYTES: Final = 32
TOKEN_CHARACTERS: Final = 128  # of what may be one; longer text is not hashed
AUTHORIZATION_CHARACTERS: Final = 4_096  # of the header's value


@dataclass(frozen=True, slots=True)
class Credentials:
    user: str  # "": the secret is a token, which names its user
    secret: str = field(repr=False)


def of_authorization(value: str) -> Credentials:
    """Return what the value of an Authorization header says.  Raises SignInRefused if it says nothing usable."""
    scheme, _, rest = value.strip().partition(" ")
    rest = rest.strip()
    if len(value) > AUTHORIZATION_CHARACTERS or not rest:
        raise SignInRefused("the Authorization header is empty or too long; send Basic or Bearer")
    if scheme.lower() == "bearer":
        return Credentials("", rest)
    if scheme.lower() != "basic":
        raise SignInRefused(
            "send 'Authorization: Basic' with user and password, or 'Authorization: Bearer' with a token"
        )
    try:
        user, colon, secret = base64.b64decode(rest, validate=True).decode().partition(":")
    except ValueError:  # of base64, of UTF-8, or because a character of the header is not in ASCII
        raise SignInRefused("the Basic authorization is not the base64 of user:password in UTF-8") from None
    if not colon or not user:
        raise SignInRefused("the Basic authorization has no user before a colon")
    return Credentials(user, secret)


def of_plain(message: bytes) -> Credentials:
    """Return what a message of SASL PLAIN (RFC 4616) says.  Raises SignInRefused.

    The message may name a user to act as; it must be the user who signs in.
    """
    parts = message.split(b"\0")
    if len(parts) != 3:
        raise SignInRefused("the PLAIN message is not: authorization identity, NUL, user, NUL, password")
    try:
        acting, user, secret = (part.decode() for part in parts)
    except UnicodeDecodeError:
        raise SignInRefused("the PLAIN message is not in UTF-8") from None
    if not user:
        raise SignInRefused("the PLAIN message has no user")
    if acting not in ("", user):
        raise SignInRefused("nobody can act as another user: leave the authorization identity empty")
    return Credentials(user, secret)


def plain_message(user: str, secret: str) -> bytes:
    return f"\0{user}\0{secret}".encode()


def new_token(random_text: Callable[[int], str]) -> str:
    """Return a new token; pass ``secrets.token_urlsafe``."""
    return PREFIX + random_text(TOKEN_BYTES)


def hash_of(token: str) -> str:
    """Return the hex of the token's SHA-256, or "" for text that is no token."""
    if not token.startswith(PREFIX) or len(token) > TOKEN_CHARACTERS:
        return ""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()

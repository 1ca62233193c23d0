"""(pure) Links that end the mails of an account without a sign-in, by one click (RFC 8058).

    token := base64url(folded name) "." HMAC-SHA256 of name and id of the account with the store's secret, 32 digits

A link never ends, since mails stay in mailboxes, and it can do no more than end the mails.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

_DIGITS: Final = 32
_CHARS_MAX: Final = 1_024


def unsubscribe_token(secret: bytes, row: bytes, account_id: str) -> str:
    return f"{base64.urlsafe_b64encode(row).decode().rstrip('=')}.{_mac(secret, row, account_id)}"


def row_of_token(token: str) -> bytes:
    """Return the row of the account that a token names, which proves nothing yet; b"" if it is no token."""
    name, _, mac = token.partition(".")
    if len(token) > _CHARS_MAX or len(mac) != _DIGITS or not token.isascii():
        return b""
    try:
        return base64.b64decode(name + "=" * (-len(name) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return b""


def is_token_of(token: str, secret: bytes, row: bytes, account_id: str) -> bool:
    return hmac.compare_digest(token.encode(), unsubscribe_token(secret, row, account_id).encode())


def _mac(secret: bytes, row: bytes, account_id: str) -> str:
    return hmac.new(secret, b"unsubscribe\n%s\n%s" % (row, account_id.encode()), "sha256").hexdigest()[:_DIGITS]

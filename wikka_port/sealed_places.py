"""(pure) Places in lists that a visitor may go on from and not read: names and keys, sealed.

A list reads a bounded number of entries for one part of it.  The entry where it stops may be one that the visitor may
not read, and yet he has to name it for the next part:

    token   "_~" base64url(check box), without "=" at its end; no name of a page begins with "_"
    check   HMAC-SHA256(key, padded)[:16], by which the token is known to be ours
    box     padded XOR SHAKE-256(key check); so no two places share a stream
    padded  the place in UTF-8, with zero bytes to a multiple of 64, so that its length tells little
    key     HMAC-SHA256(secret, "place" kind); so a place of one kind of list means nothing in another

The same place has the same token in every process, and for as long as the wiki has its secret.

Knows nothing of lists, and of who may read what (``rights.readable_lists``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

PREFIX: Final = "_~"
SEALED_CHARS: Final = 1_500  # of the token of the longest name, and more
_CHECK_BYTES: Final = 16
_STEP_BYTES: Final = 64


class SealedPlaces:
    __slots__ = ("_secret",)

    def __init__(self, secret: Callable[[], bytes]) -> None:
        """``secret`` is called for each token, and for none by a list that seals nothing."""
        self._secret = secret

    def sealed(self, kind: str, place: str) -> str:
        """Return the token of a place, which must not be empty, in a ``kind`` of lists."""
        plain = place.encode("utf-8", "surrogatepass")
        padded = plain + bytes(-len(plain) % _STEP_BYTES)
        key = self._key(kind)
        check = _check(key, padded)
        return PREFIX + base64.urlsafe_b64encode(check + _xor(key, check, padded)).rstrip(b"=").decode()

    def opened(self, kind: str, token: str) -> str | None:
        """Return the place of a token, "" if the token is not of this wiki, or None if the text is no token at all."""
        if not token.startswith(PREFIX):
            return None
        text = token.removeprefix(PREFIX)
        if len(token) > SEALED_CHARS or not text.isascii():
            return ""
        try:
            found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except binascii.Error:
            return ""
        check, box = found[:_CHECK_BYTES], found[_CHECK_BYTES:]
        key = self._key(kind)
        padded = _xor(key, check, box)
        if not hmac.compare_digest(check, _check(key, padded)):
            return ""
        return padded.rstrip(b"\0").decode("utf-8", "surrogatepass")

    def _key(self, kind: str) -> bytes:
        return hmac.digest(self._secret(), b"place " + kind.encode(), "sha256")


def _check(key: bytes, padded: bytes) -> bytes:
    return hmac.digest(key, padded, "sha256")[:_CHECK_BYTES]


def _xor(key: bytes, check: bytes, box: bytes) -> bytes:
    stream = hashlib.shake_256(key + check).digest(len(box))
    return bytes(one ^ other for one, other in zip(box, stream, strict=True))

"""Numbers of visitors, made of their addresses with a key that nobody has afterwards.

A number says which requests are of one visitor, and nothing else: without the key no list of all addresses can be
turned into numbers and compared.
"""

from __future__ import annotations

import hmac
import secrets
from functools import lru_cache
from typing import Final

NUMBER_DIGITS: Final = 8
ADDRESSES_KEPT: Final = 65_536  # whose numbers are remembered: making one takes 2 us


class VisitorNumbers:
    """Numbers by a key of this object's own, which is in memory only."""

    def __init__(self) -> None:
        key = secrets.token_bytes(32)

        @lru_cache(maxsize=ADDRESSES_KEPT)
        def number_of(address: str) -> str:
            if address.count(":") == 1:  # a port is not the visitor's
                address = address.partition(":")[0]
            return hmac.digest(key, address.encode("utf-8", "surrogateescape"), "sha256").hex()[:NUMBER_DIGITS]

        self.number_of = number_of

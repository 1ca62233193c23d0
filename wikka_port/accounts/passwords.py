"""Passwords as Argon2id hashes, by OWASP's parameters, a few at once.

A hash takes MEMORY_KIB and some 20 ms of a core, outside the interpreter lock.  ``verify`` does the same work where
there is no account of that name: the time of its answer says nothing.

Knows nothing of accounts.
"""

from __future__ import annotations

import secrets
import threading
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

TIME_COST: Final = 2
MEMORY_KIB: Final = 19_456
PARALLELISM: Final = 1
HASHES_AT_ONCE: Final = 4  # in all processes of a wiki: 76 MiB


class Passwords:
    """Thread-safe."""

    def __init__(self, at_once: int = HASHES_AT_ONCE, *, memory_kib: int = MEMORY_KIB) -> None:
        """``at_once``: this process's share of HASHES_AT_ONCE."""
        self._hasher = PasswordHasher(time_cost=TIME_COST, memory_cost=memory_kib, parallelism=PARALLELISM)
        self._hash_slots = threading.BoundedSemaphore(max(1, at_once))
        self._lock = threading.Lock()
        self._nobodys = ""  # the hash of a password that no account has; guarded by _lock, made at the first need

    def hashed(self, password: str) -> str:
        with self._hash_slots:
            return self._hasher.hash(password)

    def verify(self, stored: str, password: str) -> bool:
        """Whether it is the password; ``stored`` "": there is none, and finding that out takes as long."""
        nobodys = self._of_nobody()
        with self._hash_slots:
            try:
                self._hasher.verify(stored or nobodys, password)
            except (VerificationError, InvalidHashError):
                return False
        return stored != ""

    def is_outdated(self, stored: str) -> bool:
        """Made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored)

    def _of_nobody(self) -> str:
        with self._lock:
            if not self._nobodys:
                self._nobodys = self._hasher.hash(secrets.token_hex(16))
            return self._nobodys

"""Passwords: Argon2id hashes, computed in a few threads, because each takes some 20 ms and 19 MiB.

Bounds: HASHES_AT_ONCE hashes are computed at once, and HASHES_PENDING wait; a further one is refused.
"""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from columnar.errors import IllegalArgument, SignInBusy
from columnar.security.saslprep import PASSWORD_BYTES, prepared

TIME_COST: Final = 2
MEMORY_KIB: Final = 19_456  # with TIME_COST the least that OWASP recommends
HASHES_AT_ONCE: Final = 2  # 38 MiB
HASHES_PENDING: Final = 100  # they take a second


class Passwords:
    """The hashes of passwords.  ``hashed`` may be called in any thread, the rest belongs to the loop."""

    def __init__(self, *, memory_kib: int = MEMORY_KIB) -> None:
        self._memory_kib = memory_kib
        self._hasher: Any = None  # argon2.PasswordHasher, once there is a password
        self._threads: ThreadPoolExecutor | None = None  # made at the first need
        self._nobodys = ""  # hash of a password that nobody knows
        self._pending = 0

    def hashed(self, password: str) -> str:
        """Return the encoded hash of the prepared password.  Blocks for some 20 ms.  Raises IllegalArgument."""
        encoded: str = self._of_argon2().hash(prepared(password))
        return encoded

    async def verify(self, stored: str, password: str) -> bool:
        """Return whether ``password`` has the hash ``stored``; with "" return False after the same work.

        Raises SignInBusy, immediately, if too many wait.
        """
        if self._pending >= HASHES_AT_ONCE + HASHES_PENDING:
            raise SignInBusy(f"{self._pending} passwords are being verified")
        if self._threads is None:
            self._threads = ThreadPoolExecutor(HASHES_AT_ONCE, thread_name_prefix="columnar-password")
        self._pending += 1
        try:
            verifying = asyncio.get_running_loop().run_in_executor(self._threads, self._verify, stored, password)
            return await verifying
        finally:
            self._pending -= 1

    def close(self) -> None:
        """End the threads; verifications that have not begun are dropped."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _of_argon2(self) -> Any:
        if self._hasher is None:
            from argon2 import PasswordHasher  # a store without passwords does not load the library

            self._hasher = PasswordHasher(time_cost=TIME_COST, memory_cost=self._memory_kib, parallelism=1)
        return self._hasher

    def _verify(self, stored: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        hasher = self._of_argon2()
        if not self._nobodys:  # whether there is a stored one or not: the time must not say which
            self._nobodys = hasher.hash(secrets.token_hex(16))
        try:
            hasher.verify(stored or self._nobodys, _prepared_if_valid(password))
        except (VerificationError, InvalidHashError):
            return False
        return stored != ""


def _prepared_if_valid(password: str) -> str:
    """Return the prepared password; one that is none is as wrong as any other, after the same work."""
    try:
        return prepared(password)
    except IllegalArgument:
        return password[:PASSWORD_BYTES]

"""Leases with fencing tokens, as a holder has them, and as an operator sees them.

A holder renews its lease from a thread with a connection of its own, three times in each time to live.  It counts the
time to live on a steady clock that also runs while the machine sleeps, from before the call was sent that the server
answered; the server counts from a later moment.

Invariants:
    I1. ``Lease.is_held`` is false before the server may give the lease to another, as long as the clocks of both
        machines run at the same rate.  A write that was sent before and arrives later is what the token is for.
    I2. ``Lease.token`` raises LeaseLost once the lease was not renewed in time, whatever comes later.

The name of a holder ends with a random part, so no two holders are one.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from thriftpy2.thrift import TException

from columnar.client.errors import DECLARED, LeaseLost, LeaseNotFree, WrongArgument
from columnar.model.lease import LEASES_TABLE, STATE_COLUMN, TOKEN_BYTES, unpack

if TYPE_CHECKING:
    from columnar.client.connection import Connection

POLL_MS: Final = 10_000  # of one call that waits for a lease
RENEWALS: Final = 3  # within a time to live
LONGEST_PAUSE_S: Final = 1.0  # after a renewal that failed
_FAILURES: Final = (*DECLARED, TException, OSError)
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # also counts while the machine sleeps


def steady_s() -> float:
    return time.clock_gettime(_CLOCK)


REVOCATIONS: Final = 10  # attempts to take a lease from a holder that is another one each time


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    """A lease as the server that owns it sees it."""

    name: str
    holder: str  # empty: nobody
    token: int  # the last one that was given
    left_ms: int


class Lease:
    """A lease that this program wants, holds or has lost.  ``acquire`` and ``release`` belong to one thread.

    Pass a ``holder`` that no other holder has (``new_holder``)."""

    def __init__(
        self,
        connection: Connection,
        name: bytes | str,
        ttl_ms: int,
        wait_ms: int,
        holder: str,
        now_s: Callable[[], float] = steady_s,
    ) -> None:
        self.name = _bytes_of(name)
        self.holder = holder
        self._connection = connection
        self._ttl_ms = ttl_ms
        self._wait_ms = wait_ms
        self._now_s = now_s
        self._token = 0  # 0: not acquired, or released
        self._ends_s = 0.0  # written by the thread of renewals, after ``acquire``
        self._is_lost = False
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    # --- its state -----------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether no other program can have been given the lease yet."""
        return self._token != 0 and not self._is_lost and self._now_s() < self._ends_s

    @property
    def token(self) -> int:
        """The fencing token of this holding.  Raises LeaseLost if the lease is not held any more."""
        self.require()
        return self._token

    @property
    def token_bytes(self) -> bytes:
        """The token as a cell has it, for ``Expect.fence`` and ``Put``."""
        return self.token.to_bytes(TOKEN_BYTES, "big")

    def require(self) -> None:
        """Raise LeaseLost unless the lease is held."""
        if not self.is_held:
            self._is_lost = self._is_lost or self._token != 0
            raise LeaseLost(self.name, self.holder)

    # --- its changes ---------------------------------------------------------------------------------

    def acquire(self, wait_ms: int = 0) -> bool:
        """Acquire the lease, waiting up to ``wait_ms`` until it is free.  Returns False if another holds it still."""
        if self.is_held:
            raise WrongArgument(f"lease {self.name!r} is held already; release it first")
        self._stop()
        deadline_s = self._now_s() + wait_ms / 1_000
        while True:
            sent_s = self._now_s()
            left_ms = max(0, round((deadline_s - sent_s) * 1_000))
            answer = self._call(self._connection, 0, self._ttl_ms, min(left_ms, self._poll_ms))
            if answer.held and self._now_s() - sent_s > self._ttl_ms / 1_000 / RENEWALS:
                # The call has waited, and nobody here knows how long: the time to live is counted from a second call.
                sent_s = self._now_s()
                answer = self._call(self._connection, answer.token, self._ttl_ms, 0)
            if answer.held:
                self._begin(answer.token, sent_s)
                return True
            if self._now_s() >= deadline_s:
                return False

    @property
    def _poll_ms(self) -> int:
        """How long one call waits, which is shorter than the connection waits for an answer."""
        timeout_ms = self._connection.timeout
        return POLL_MS if timeout_ms is None else min(POLL_MS, timeout_ms // 2)

    def release(self) -> None:
        """Give the lease back.  If the call fails, the lease ends by itself at the end of its time to live."""
        token, self._token = self._token, 0
        self._stop()
        if token:
            with suppress(*_FAILURES):
                self._call(self._connection, token, 0, 0)

    def __enter__(self) -> Self:
        if not self.acquire(self._wait_ms):
            raise LeaseNotFree(self.name, self._wait_ms)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        was_held, was_acquired = self.is_held, self._token != 0
        self.release()
        if kind is None and was_acquired and not was_held:
            raise LeaseLost(self.name, self.holder)

    def _begin(self, token: int, sent_s: float) -> None:
        self._token, self._is_lost = token, False
        self._ends_s = sent_s + self._ttl_ms / 1_000
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self._renew, args=(token, self._ending), name=f"lease {self.name!r}", daemon=True
        )
        self._thread.start()

    def _stop(self) -> None:
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _call(self, connection: Connection, token: int, ttl_ms: int, wait_ms: int) -> Any:
        return connection.call("columnarLease", self.name, self.holder.encode(), ttl_ms, token, wait_ms)

    # --- the thread of renewals ------------------------------------------------------------------------

    def _renew(self, token: int, ending: threading.Event) -> None:
        """Renew until ``ending`` is set or the lease is lost."""
        connection: Connection | None = None
        pause_s = self._ttl_ms / 1_000 / RENEWALS
        retry_s = min(LONGEST_PAUSE_S, pause_s / RENEWALS)
        wait_s = pause_s
        while not ending.wait(wait_s) and not self._is_lost:
            sent_s = self._now_s()
            if sent_s >= self._ends_s:
                self._is_lost = True
                break
            try:
                if connection is None:
                    connection = self._connection.another(max(1, round(pause_s * 1_000)))
                answer = self._call(connection, token, self._ttl_ms, 0)
            except _FAILURES:
                _close(connection)
                connection, wait_s = None, retry_s
                continue
            if not answer.held or self._now_s() >= self._ends_s:
                self._is_lost = True
            else:
                self._ends_s, wait_s = sent_s + self._ttl_ms / 1_000, pause_s
        _close(connection)


def new_holder(name: str) -> str:
    """Return the text of a holder that no other holder has; without a name it has the machine's."""
    return f"{name or socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class Leases:
    """The leases of the store, for operators."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> Iterator[LeaseInfo]:
        """Yield the leases that are held, by name."""
        table = self._connection.table(LEASES_TABLE, use_prefix=False)
        for name, cells in table.scan(columns=[STATE_COLUMN]):
            if unpack(cells[STATE_COLUMN]).holder:
                found = self.show(name)
                if found.holder:
                    yield found

    def show(self, name: bytes | str) -> LeaseInfo:
        """Return the lease as its server sees it; a lease that was never given has the token 0."""
        return self._info(name, self._connection.call("columnarLease", _bytes_of(name), b"", 0, 0, 0))

    def revoke(self, name: bytes | str) -> LeaseInfo:
        """Take the lease from its holder, who hears of it at the next renewal; return what was held.

        The holder may go on writing until then; only ``Expect.fence`` refuses it, once another holder has written.
        Raises LeaseNotFree if the lease goes from one holder to the next too fast.
        """
        for _ in range(REVOCATIONS):
            found = self._connection.call("columnarLease", _bytes_of(name), b"", 0, 0, 0)
            if not found.holder:
                return self._info(name, found)
            left = self._connection.call("columnarLease", _bytes_of(name), found.holder, 0, found.token, 0)
            if not left.holder:  # else another acquisition came in between
                return self._info(name, found)
        raise LeaseNotFree(_bytes_of(name), 0)

    def _info(self, name: bytes | str, answer: Any) -> LeaseInfo:
        text = name.decode(errors="replace") if isinstance(name, bytes) else name
        return LeaseInfo(text, answer.holder.decode(errors="replace"), answer.token, answer.leftMs)


def _bytes_of(name: bytes | str) -> bytes:
    return name.encode() if isinstance(name, str) else name


def _close(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(*_FAILURES):
            connection.close()

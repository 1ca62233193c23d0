"""The open scanners of a server: by their ids, each under an idle lease.

    id := 0:1 slot:10 number:21                    an i32 that is never negative

Any server finds from an id which incarnation opened the scanner.  A slot is the incarnation's number modulo SLOTS.  A
standalone has slot 0.  An id of an incarnation that is dead has a slot that no living server has, so its caller gets
"unknown scanner" and never reads another's scanner.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from columnar.errors import ScannerNotFound, TooManyScanners
from columnar.limits import (
    CONNECTION_SCANNERS,
    OPEN_SCANNERS,
    ORPHAN_SCANNER_LEASE_S,
    SCANNER_LEASE_S,
    SCANNERS_BYTES,
)
from columnar.model.owner import Incarnation
from columnar.operations.scanners import Scanner, nobody

NUMBER_BITS: Final = 21
NUMBERS: Final = 1 << NUMBER_BITS
SLOTS: Final = 1 << 10
assert NUMBERS * SLOTS == 1 << 31, "an i32 of Thrift that is not negative"


def slot_of_server(server: Incarnation) -> int:
    """Two living servers have one slot only if SLOTS incarnations or a multiple began between their starts."""
    return server.number % SLOTS


def id_of(slot: int, number: int) -> int:
    """Return the id; ``number`` counts the scanners of a server, and restarts after NUMBERS."""
    return slot << NUMBER_BITS | number % NUMBERS


def slot_of(scanner: int) -> int | None:
    """The slot of the server that gave the id; None: it is no server's id."""
    return scanner >> NUMBER_BITS if 0 <= scanner < SLOTS * NUMBERS else None


@dataclass(slots=True)
class _Lease:
    scanner: Scanner
    connection: int
    idle_s: float
    used_at: float


class ScannerTable:
    """The open scanners by id, from any connection (observed row 11), each under an idle lease."""

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        bound: int = OPEN_SCANNERS,
        lease_s: float = SCANNER_LEASE_S,
        slot: int = 0,
    ) -> None:
        """``slot``: of this server in ids, by ``scanner_ids``."""
        self._now = now_s
        self._bound = bound
        self._lease_s = lease_s
        self._leases: OrderedDict[int, _Lease] = OrderedDict()
        self._of_connection: dict[int, set[int]] = {}
        self._slot = slot
        self._last_number = -1
        self._size_bytes = 0  # of what the open ones remember
        self._waiting: list[asyncio.Future[None]] = []  # until none is open

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def size_bytes(self) -> int:
        """Bytes that the open ones remember; bounded by ``limits.SCANNERS_BYTES``."""
        return self._size_bytes

    def open(self, scanner: Scanner, connection: int) -> int:
        self.expire()
        if len(self._leases) >= self._bound:
            raise TooManyScanners(f"{self._bound} scanners are open; close some or wait until their leases end")
        if len(self._of_connection.get(connection, ())) >= CONNECTION_SCANNERS:
            raise TooManyScanners(f"this connection has {CONNECTION_SCANNERS} scanners open; close some")
        size = scanner.spec.size_bytes
        if self._size_bytes + size > SCANNERS_BYTES:
            raise TooManyScanners(
                f"the columns and filters of the open scanners have over {SCANNERS_BYTES} bytes; "
                "close some or wait until their leases end"
            )
        self._size_bytes += size
        opened = self._next_id()
        lease = self._leases[opened] = _Lease(scanner, connection, self._lease_s, self._now())
        scanner.on_idle = partial(self._renew, lease)
        self._of_connection.setdefault(connection, set()).add(opened)
        return opened

    def _next_id(self) -> int:
        """Return an id that no open scanner has: numbers restart after ``scanner_ids.NUMBERS``."""
        while True:
            self._last_number += 1
            found = id_of(self._slot, self._last_number)
            if found not in self._leases:
                return found

    def get(self, scanner_id: int) -> Scanner:
        lease = self._leases.get(scanner_id)
        if lease is None or (not lease.scanner.busy and lease.used_at + lease.idle_s < self._now()):
            self._forget(scanner_id)
            raise ScannerNotFound(scanner_id)
        lease.used_at = self._now()
        self._leases.move_to_end(scanner_id)
        return lease.scanner

    def _renew(self, lease: _Lease) -> None:
        """A call has ended that may have taken longer than the lease."""
        lease.used_at = self._now()

    def close(self, scanner_id: int) -> None:
        if not self._forget(scanner_id):
            raise ScannerNotFound(scanner_id)

    def _forget(self, scanner_id: int) -> bool:
        lease = self._leases.pop(scanner_id, None)
        if lease is None:
            return False
        lease.scanner.on_idle = nobody  # or the two would keep each other alive
        self._size_bytes -= lease.scanner.spec.size_bytes
        opened = self._of_connection.get(lease.connection)
        if opened is not None:
            opened.discard(scanner_id)
            if not opened:
                del self._of_connection[lease.connection]
        if not self._leases:
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)
        return True

    async def all_closed(self) -> None:
        """Wait until no scanner is open; a client with an open scanner may open more until then."""
        while self._leases:
            closed = asyncio.get_running_loop().create_future()
            self._waiting.append(closed)
            await closed

    def has_open(self, connection: int) -> bool:
        return connection in self._of_connection

    def connection_closed(self, connection: int) -> None:
        """Shorten the leases of the connection's scanners; other connections may still use them."""
        for scanner_id in self._of_connection.pop(connection, ()):
            lease = self._leases[scanner_id]
            lease.idle_s = min(lease.idle_s, ORPHAN_SCANNER_LEASE_S)

    def expire(self) -> int:
        """Drop the scanners whose lease has ended; returns how many."""
        now = self._now()
        ended = [
            scanner_id
            for scanner_id, lease in self._leases.items()
            if lease.used_at + lease.idle_s < now and not lease.scanner.busy
        ]
        for scanner_id in ended:
            self._forget(scanner_id)
        return len(ended)

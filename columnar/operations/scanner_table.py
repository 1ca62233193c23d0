"""Scanners for calls: opens them with their filters, and keeps a server's open scanners by id, under idle leases.

    id := 0:1 slot:10 number:21                    an i32 that is never negative

From an id any server finds the incarnation that opened the scanner.  A slot is the incarnation's number modulo SLOTS; a
standalone has slot 0.  An id from a dead incarnation has a slot that no living server has, so its caller gets "unknown
scanner" and never reads a different caller's scanner.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Final

from columnar.cluster.row_forms import ReplyForm
from columnar.errors import (
    AccessDenied,
    CallerError,
    ClientGone,
    IncompatibleFilter,
    RequestTooBig,
    ScannerNotFound,
    TooManyScanners,
)
from columnar.limits import (
    CONNECTION_SCANNERS,
    FILTER_BYTES,
    OPEN_SCANNERS,
    ORPHAN_SCANNER_LEASE_S,
    SCANNER_LEASE_S,
    SCANNERS_BYTES,
    SHORT_FILTER_BYTES,
    STEP_S,
)
from columnar.model.filters import Filter
from columnar.model.owner import Incarnation
from columnar.model.read import ReadSpec, ScanSpec
from columnar.operations.access import Caller, TableAccess
from columnar.operations.scanners import Scanner, nobody
from columnar.regions.read.found_rows import FoundRows, PackRows, size_of
from columnar.regions.read.row_reader import Cells
from columnar.regions.tables import ServedTable
from columnar.runtime.loop_budget import IsDisconnected, LoopBudget

NUMBER_BITS: Final = 21
NUMBERS: Final = 1 << NUMBER_BITS
SLOTS: Final = 1 << 10
assert NUMBERS * SLOTS == 1 << 31, "an i32 of Thrift that is not negative"


def slot_of_server(server: Incarnation) -> int:
    """Return the server's slot.

    Two living servers share a slot only if SLOTS incarnations, or a multiple of SLOTS, began between their starts.
    """
    return server.number % SLOTS


def id_of(slot: int, number: int) -> int:
    """Return the scanner's id; ``number`` counts the scanners of a server, and restarts after NUMBERS."""
    return slot << NUMBER_BITS | number % NUMBERS


def slot_of(scanner: int) -> int | None:
    """Return the slot of the server that gave the id; None if no server gives such ids."""
    return scanner >> NUMBER_BITS if 0 <= scanner < SLOTS * NUMBERS else None


@dataclass(slots=True)
class _Lease:
    scanner: Scanner
    connection: int
    idle_s: float
    used_at: float
    user: str  # who opened the scanner; nobody else may use it

    def renew(self, now_s: float) -> None:
        self.used_at = now_s

    def shorten(self, idle_s: float) -> None:
        self.idle_s = min(self.idle_s, idle_s)


class ScannerTable:
    """The open scanners by id, from any connection (observed row 11), each under an idle lease."""

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        bound: int = OPEN_SCANNERS,
        lease_s: float = SCANNER_LEASE_S,
        slot: int = 0,
        bound_bytes: int = SCANNERS_BYTES,
    ) -> None:
        """``slot`` is this server's slot in ids (``slot_of_server``).

        ``bound_bytes`` bounds the columns and filters of all open scanners.
        """
        self._bound_bytes = bound_bytes
        self._now = now_s
        self._bound = bound
        self._lease_s = lease_s
        self._leases: OrderedDict[int, _Lease] = OrderedDict()
        self._of_connection: dict[int, set[int]] = {}
        self._slot = slot
        self._last_number = -1
        self._size_bytes = 0  # of the open scanners' columns and filters
        self._waiting: list[asyncio.Future[None]] = []  # of callers that wait until no scanner is open

    def __len__(self) -> int:
        return len(self._leases)

    @property
    def size_bytes(self) -> int:
        """The bytes of the open scanners' columns and filters, bounded by ``bound_bytes``."""
        return self._size_bytes

    def open_scanner(self, scanner: Scanner, connection: int, user: str = "") -> int:
        self.expire()
        if len(self._leases) >= self._bound:
            raise TooManyScanners(f"{self._bound} scanners are open; close some or wait until their leases end")
        if len(self._of_connection.get(connection, ())) >= CONNECTION_SCANNERS:
            raise TooManyScanners(f"this connection has {CONNECTION_SCANNERS} scanners open; close some")
        size = scanner.spec.size_bytes
        if self._size_bytes + size > self._bound_bytes:
            raise TooManyScanners(
                f"the columns and filters of the open scanners have over {self._bound_bytes} bytes; "
                "close some or wait until their leases end"
            )
        self._size_bytes += size
        opened = self._next_id()
        lease = self._leases[opened] = _Lease(scanner, connection, self._lease_s, self._now(), user)
        scanner.on_idle = partial(self._renew, lease)
        self._of_connection.setdefault(connection, set()).add(opened)
        return opened

    def _next_id(self) -> int:
        """Return an id that no open scanner has; numbers restart after NUMBERS."""
        while True:
            self._last_number += 1
            found = id_of(self._slot, self._last_number)
            if found not in self._leases:
                return found

    def get(self, scanner_id: int, user: str = "") -> Scanner:
        """Return the scanner.  Raises ScannerNotFound, or AccessDenied if another user opened it."""
        lease = self._leases.get(scanner_id)
        self._check_user(lease, user)
        if lease is None or (not lease.scanner.busy and lease.used_at + lease.idle_s < self._now()):
            self._forget(scanner_id)
            raise ScannerNotFound(scanner_id)
        lease.renew(self._now())
        self._leases.move_to_end(scanner_id)
        return lease.scanner

    def _renew(self, lease: _Lease) -> None:
        """Renew the lease after a call, which may have taken longer than the lease."""
        lease.renew(self._now())

    def end_scanners_of(self, has_lost: Callable[[str], bool]) -> None:
        """End the scanners of users that lost a right: a scanner decides by the rights of its opening."""
        for scanner_id in [one for one, lease in self._leases.items() if has_lost(lease.user)]:
            self._forget(scanner_id)

    def find(self, scanner_id: int) -> Scanner | None:
        """Return the open scanner, whoever opened it, or None.  Its lease is not renewed."""
        lease = self._leases.get(scanner_id)
        return None if lease is None else lease.scanner

    def _check_user(self, lease: _Lease | None, user: str) -> None:
        if lease is not None and lease.user != user:
            raise AccessDenied(user, "a scanner of another user", "READ")

    def close(self, scanner_id: int, user: str = "") -> None:
        self._check_user(self._leases.get(scanner_id), user)
        if not self._forget(scanner_id):
            raise ScannerNotFound(scanner_id)

    def _forget(self, scanner_id: int) -> bool:
        lease = self._leases.pop(scanner_id, None)
        if lease is None:
            return False
        lease.scanner.on_idle = nobody  # otherwise scanner and lease would keep each other alive
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
        """Wait until no scanner is open; until then a client with an open scanner may open more."""
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
            lease.shorten(ORPHAN_SCANNER_LEASE_S)

    def expire(self) -> int:
        """Drop the scanners whose lease has ended; return their number."""
        now = self._now()
        ended = [
            scanner_id
            for scanner_id, lease in self._leases.items()
            if lease.used_at + lease.idle_s < now and not lease.scanner.busy
        ]
        for scanner_id in ended:
            self._forget(scanner_id)
        return len(ended)


Use = Callable[[Scanner], Any]  # a call's work with its scanner, done at once or as an awaitable


class Scans:
    def __init__(self, access: TableAccess, scanners: ScannerTable) -> None:
        self._access = access
        self._scanners = scanners

    def open_scanner(self, caller: Caller, served: ServedTable, spec: ScanSpec) -> Any:
        """Open a scanner and return its id.  Raises CallerError for a mistake in ``spec`` at once (observed row 2)."""
        connection, user = caller.connection_id, caller.user
        if _has_long_filter(spec):
            open_scanner = self._scanners.open_scanner
            return self.scanner(caller, served, spec, lambda scanner: open_scanner(scanner, connection, user))
        scanner = Scanner(self._access, _name(served), spec, _filter_of(spec))
        return self._scanners.open_scanner(scanner, connection, user)

    def scanner(self, caller: Caller, served: ServedTable, spec: ScanSpec, use: Use) -> Any:
        """Return the result of ``use`` on a scanner without an id.  Raises the errors of ``open_scanner``."""
        if _has_long_filter(spec):
            return self._in_steps(served, spec, use, caller.has_gone)
        return use(Scanner(self._access, _name(served), spec, _filter_of(spec)))

    async def _in_steps(self, served: ServedTable, spec: ScanSpec, use: Use, is_disconnected: IsDisconnected) -> Any:
        row_filter = await _filter_in_steps(spec, self._access.reply_memory.loop_budget, is_disconnected)
        used = use(Scanner(self._access, _name(served), spec, row_filter))
        return await used if hasattr(used, "__await__") else used

    def next_rows(
        self,
        caller: Caller,
        scanner: Scanner,
        count: int,
        pack: PackRows | None = None,
        form: ReplyForm | None = None,
    ) -> FoundRows | Awaitable[FoundRows]:
        """Return ``Scanner.next_rows``; charges the table's quota with one request and the bytes found."""
        served = self._access.find(scanner.table)
        if served is None or not served.is_throttled:
            return scanner.next_rows(count, pack, caller.has_gone, form)
        self._access.admit(served, writes=False)  # before the scanner moves, so that a refused call skips no rows
        found = scanner.next_rows(count, pack, caller.has_gone, form)
        if not isinstance(found, FoundRows):
            return self._charged(served, found)
        self._access.charge(served, 1, found.size_bytes, writes=False)
        return found

    async def _charged(self, served: ServedTable, rows: Awaitable[FoundRows]) -> FoundRows:
        found = await rows
        self._access.charge(served, 1, found.size_bytes, writes=False)
        return found

    async def read_row(
        self, served: ServedTable, row: bytes, read: ReadSpec, filter_string: bytes, is_disconnected: IsDisconnected
    ) -> Cells:
        """Return ``one_row``; charges the table's quota with one request."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        cells = await self.one_row(served, row, read, filter_string, is_disconnected)
        if served.is_throttled:
            self._access.charge(served, 1, size_of((row, cells)), writes=False)
        return cells

    async def one_row(
        self, served: ServedTable, row: bytes, read: ReadSpec, filter_string: bytes, is_disconnected: IsDisconnected
    ) -> Cells:
        """Return the cells of one row that pass a filter, by a scan of that row."""
        spec = ScanSpec(row, row, read, filter_string=filter_string)
        loop_budget = self._access.reply_memory.loop_budget
        row_filter = (
            await _filter_in_steps(spec, loop_budget, is_disconnected) if _has_long_filter(spec) else _filter_of(spec)
        )
        found = Scanner(self._access, _name(served), spec, row_filter).next_rows(1, None, is_disconnected)
        rows = list(found if isinstance(found, FoundRows) else await found)
        return rows[0][1] if rows else []


def _name(served: ServedTable) -> bytes:
    return served.schema.name.encode()


def _has_long_filter(spec: ScanSpec) -> bool:
    """Return whether parsing the filter at once would block the loop for longer than a step."""
    return spec.filter_string is not None and len(spec.filter_string) > SHORT_FILTER_BYTES


def _filter_of(spec: ScanSpec) -> Filter | None:
    if spec.filter_string is None:
        return None
    from columnar.model.filter_language import parse  # 0.7 MB with all filters, loaded for the first filter

    return _ready(spec, parse(_checked(spec.filter_string)))


async def _filter_in_steps(spec: ScanSpec, loop_budget: LoopBudget, is_disconnected: IsDisconnected) -> Filter | None:
    """Parse as ``_filter_of`` does, in steps, between which other requests are served.  Raises ClientGone."""
    if spec.filter_string is None:
        return None
    from columnar.model.filter_language import parse_in_steps

    steps = parse_in_steps(_checked(spec.filter_string))
    while True:
        await loop_budget.wait_for_budget()
        if is_disconnected():
            raise ClientGone
        ends = perf_counter() + STEP_S
        try:
            while perf_counter() < ends:
                next(steps)
        except StopIteration as done:
            return _ready(spec, done.value)


def _checked(text: bytes) -> bytes:
    if not text:
        raise CallerError("the filter string is empty; leave it out for no filter")
    if len(text) > FILTER_BYTES:
        raise RequestTooBig(f"the filter string has {len(text)} bytes, at most {FILTER_BYTES} are allowed")
    return text


def _ready(spec: ScanSpec, row_filter: Filter) -> Filter:
    if spec.batch and row_filter.has_filter_row:
        raise IncompatibleFilter
    row_filter.set_reversed(spec.reversed)
    return row_filter

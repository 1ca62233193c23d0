"""Servers of a store for a client, without sockets: regions with owners, links that break, deaths at any step.

A server answers for its own regions.  Over a link that routes it refuses a row of another server with the owner's
name; else it "forwards", which always succeeds.  Calls over several rows are answered by any server, the rows of
others too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from thriftpy2.thrift import TApplicationException

from columnar.client.addresses import Address
from columnar.client.errors import StoreIllegalArgument, StoreIOError
from columnar.client.store_link import Call, NotSent
from columnar.client.store_socket import NotConnected
from columnar.model.record_codec import pack_records
from columnar.model.region_location import Location, NewOwner

Fault = str  # "": none; "unsent", "undone", "done": the link breaks before, at or after the work of a call
ROWS_OF_STEP = 3  # that a scanner returns at most


class FakeStore:
    def __init__(self, servers: int) -> None:
        self.addresses = [Address(f"s{n}", 9000 + n) for n in range(servers)]
        self.living = set(self.addresses)
        self.cells: dict[bytes, int] = {}
        self.starts = [b""]
        self.owners = [self.addresses[0]]
        self.epochs = [1]
        self.next_fault: Callable[[], Fault] = lambda: ""
        self.is_old = False  # it does not know our methods for clients that route
        self.calls: list[tuple[Address, str]] = []  # all that arrived
        self.forwarded = 0
        self.scanners: dict[int, tuple[FakeLink, bytes, bytes, bool]] = {}  # next row, stop
        self._scanners = 0

    # --- what happens to it ------------------------------------------------------------------------

    def at(self, row: bytes) -> int:
        return bisect_right(self.starts, row) - 1

    def move(self, at: int, to: Address) -> None:
        self.owners[at] = to
        self.epochs[at] += 1

    def split(self, row: bytes) -> None:
        if row in self.starts:
            return
        at = self.at(row)
        self.starts.insert(at + 1, row)
        self.owners.insert(at + 1, self.owners[at])
        self.epochs[at : at + 1] = [1, 1]

    def merge(self, at: int) -> None:
        """Merge a region with the one behind it."""
        if at + 1 < len(self.starts):
            del self.starts[at + 1], self.owners[at + 1]
            self.epochs[at : at + 2] = [1]

    def kill(self, server: Address) -> None:
        self.living.discard(server)
        others = sorted(self.living)
        for at, owner in enumerate(self.owners):
            if owner == server:
                self.move(at, others[at % len(others)])
        self.scanners = {one: held for one, held in self.scanners.items() if held[0].address != server}

    def revive(self, server: Address) -> None:
        self.living.add(server)

    # --- calls -------------------------------------------------------------------------------------

    def answer(self, link: FakeLink, call: Call) -> Any:
        self.calls.append((link.address, call.method))
        handler: Callable[..., Any] = getattr(self, "_" + call.method)
        return handler(link, *call.args)

    def _row(self, link: FakeLink, row: bytes) -> None:
        at = self.at(row)
        owner = self.owners[at]
        if owner == link.address:
            return
        if link.routes:
            text = NewOwner(owner.host, owner.port, 1, self.epochs[at]).text
            raise StoreIOError(f"RegionMovedException: {text}".encode())
        self.forwarded += 1

    def _columnarRoute(self, link: FakeLink, on: bool) -> None:
        if self.is_old:
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, "Unknown function")
        link.routes = on

    def _columnarRegionOwners(self, _link: FakeLink, table: bytes) -> bytes:
        if self.is_old:
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, "Unknown function")
        if table != b"t":
            raise StoreIOError(b"TableNotFoundException: none")
        ends = [*self.starts[1:], b""]
        found = zip(self.starts, ends, self.owners, self.epochs, strict=True)
        return pack_records([Location(start, end, "s", 1, *owner, epoch) for start, end, owner, epoch in found])

    def _getTableNames(self, _link: FakeLink) -> list[bytes]:
        return [b"t"]

    def _getRow(self, link: FakeLink, table: bytes, row: bytes, _attributes: Any) -> list[Any]:
        if table != b"t":
            raise StoreIOError(b"TableNotFoundException: none")
        self._row(link, row)
        return self._found([row])

    def _atomicIncrement(self, link: FakeLink, _table: bytes, row: bytes, _column: bytes, amount: int) -> int:
        self._row(link, row)
        self.cells[row] = self.cells.get(row, 0) + amount
        return self.cells[row]

    def _mutateRows(self, link: FakeLink, _table: bytes, batches: list[Any], _attributes: Any) -> None:
        for batch in batches:
            self.forwarded += self.owners[self.at(batch.row)] != link.address
            self.cells[batch.row] = self.cells.get(batch.row, 0) + batch.amount

    def _getRows(self, link: FakeLink, _table: bytes, rows: list[bytes], _attributes: Any) -> list[Any]:
        self.forwarded += sum(self.owners[self.at(row)] != link.address for row in rows)
        return self._found(rows)

    def _columnarCheckAndMutateRows(self, _link: FakeLink, _table: bytes, rows: list[Any]) -> list[Any]:
        return [SimpleNamespace(row=one.row) for one in rows]

    def _found(self, rows: list[bytes]) -> list[Any]:
        return [SimpleNamespace(row=row, value=self.cells[row]) for row in rows if row in self.cells]

    # --- scanners ----------------------------------------------------------------------------------

    def _scannerOpenWithScan(self, link: FakeLink, _table: bytes, scan: Any, _attributes: Any) -> int:
        self._scanners += 1
        start, stop = (bytes(bound, "ascii") if isinstance(bound, str) else bound or b"" for bound in
                       (scan.startRow, scan.stopRow))  # fmt: skip
        self.scanners[self._scanners] = link, start, stop, bool(scan.reversed)
        return self._scanners

    def _scannerGetList(self, link: FakeLink, scanner: int, count: int) -> list[Any]:
        if scanner not in self.scanners:
            raise StoreIllegalArgument(b"IllegalArgumentException: scanner ID is invalid: it is closed")
        _, start, stop, is_reversed = self.scanners[scanner]
        if is_reversed:
            rows = sorted((row for row in self.cells if (not start or row <= start) and row > stop), reverse=True)
        else:
            rows = sorted(row for row in self.cells if row >= start and (not stop or row < stop))
        self.forwarded += any(self.owners[self.at(row)] != link.address for row in rows[: min(count, ROWS_OF_STEP)])
        rows = rows[: min(count, ROWS_OF_STEP)]
        if rows:
            following = rows[-1][:-1] + bytes([rows[-1][-1] - 1]) + b"\xff" if is_reversed else rows[-1] + b"\0"
            self.scanners[scanner] = link, following, stop, is_reversed
        return self._found(rows)

    def _scannerClose(self, _link: FakeLink, scanner: int) -> None:
        if self.scanners.pop(scanner, None) is None:
            raise StoreIllegalArgument(b"IllegalArgumentException: scanner ID is invalid: it is closed")


class FakeLink:
    """As ``store_link.StoreLink``."""

    def __init__(self, store: FakeStore, address: Address) -> None:
        self.store = store
        self.address = address
        self.used_s = 0.0
        self.waits = False
        self.routes = False
        self.is_open = False
        self._answer: Callable[[], Any] | None = None

    def connect(self) -> None:
        if self.address not in self.store.living:
            raise NotConnected(NotConnected.NOT_OPEN, f"cannot connect to {self.address}: Connection refused")
        self.is_open = True

    def note_use(self, now_s: float) -> None:
        self.used_s = now_s

    @property
    def is_usable(self) -> bool:
        return self.is_open and not self.waits and self.address in self.store.living

    def send(self, call: Call) -> None:
        assert not self.waits, "one call after the other"
        assert self.is_open
        fault = self.store.next_fault()
        if fault == "unsent" or self.address not in self.store.living:
            self.close()
            raise NotSent(ConnectionResetError("it has ended"))
        self.waits = True
        self._answer = None
        if fault == "undone":
            self._broken()
            return
        try:
            answer = self.store.answer(self, call)
        except (StoreIOError, StoreIllegalArgument, TApplicationException) as error:
            refusal: Exception = error
            self._answer = lambda: _raise(refusal)
        else:
            self._answer = lambda: answer
        if fault == "done":
            self._broken()

    def _broken(self) -> None:
        ended = NotConnected(NotConnected.END_OF_FILE, "the other side has ended the connection")
        self._answer = lambda: _raise(ended)

    def receive(self, _call: Call) -> Any:
        assert self.waits
        assert self.is_open, "its answer was given up"
        assert self._answer is not None
        try:
            answer = self._answer()
        except NotConnected:
            self.close()
            raise
        finally:
            self.waits = False
        return answer

    def call(self, call: Call) -> Any:
        self.send(call)
        return self.receive(call)

    def close(self) -> None:
        self.is_open = self.waits = False


def _raise(error: Exception) -> Any:
    raise error

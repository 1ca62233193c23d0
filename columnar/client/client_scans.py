"""Scanners of a client of several servers: each has an id of the client's, and goes through its range in pieces.

    piece     neighbouring regions of one owner, whose server has a scanner for them; without routing the whole range
    resumed   if the connection of a scanner breaks, or its server knows the scanner no more, another one is opened
              behind the last row; a second failure in one step is raised

These scans are one piece, and are resumed only as far as the table says:

    reversed                                 at the owner of its first row; resumed
    a filter that remembers rows             at the owner of its first row; resumed before the first row only
    rows cut by ``batchSize``                as a filter that remembers
    opened by a method without a ``TScan``   at any server; not resumed
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from columnar.client.addresses import Address
from columnar.client.call_kinds import as_bytes
from columnar.client.errors import IllegalArgument, WrongArgument
from columnar.client.locations import Piece
from columnar.client.store_link import BROKEN, Call, NotSent, StoreLink
from columnar.client.store_socket import NoAnswer, NotConnected
from columnar.errors import CallerError
from columnar.model.filter_language import parse, remembers

WITH_SCAN: Final = "scannerOpenWithScan"
MOST_SCANNERS: Final = 1_000  # of one client; open scanners that were never closed
_WHOLE: Final = Piece(None, b"")


class Owners(Protocol):
    """The part of ``OwnerCalls`` that scans need; a client that does not route has ``AnyServer``."""

    def owner(self, table: bytes, row: bytes) -> Address | None: ...

    def piece(self, table: bytes, row: bytes) -> Piece: ...

    def last_owner(self, table: bytes) -> Address | None: ...

    def link(self, owner: Address | None) -> StoreLink | None: ...

    def left(self, server: Address) -> None: ...


class AnyServer:
    """Owners of a client that does not route: any server answers for the whole range."""

    def owner(self, _table: bytes, _row: bytes) -> None:
        return None

    def piece(self, _table: bytes, _row: bytes) -> Piece:
        return _WHOLE

    def last_owner(self, _table: bytes) -> None:
        return None

    def link(self, _owner: Address | None) -> None:
        return None

    def left(self, _server: Address) -> None:
        pass


class _Scan:
    """A scan and its state.  The fields up to ``is_resumable`` are constant."""

    __slots__ = (
        "call",
        "end",
        "is_over",
        "is_resumable",
        "is_reversed",
        "is_whole",
        "last_row",
        "link",
        "scanner_id",
        "start",
        "stop",
        "table",
    )

    def __init__(self, call: Call) -> None:
        """Pass the call that opened it."""
        args = call.args
        given = args[1] if call.method == WITH_SCAN and len(args) > 1 else None
        has_memory = given is None or bool(given.batchSize) or _remembers(given.filterString)
        self.call = call
        self.table = (as_bytes(args[0]) if args else None) or b""
        self.stop = _bound(given, "stopRow")  # exclusive; empty: no bound
        self.is_reversed = given is not None and bool(given.reversed)
        self.is_whole = has_memory or self.is_reversed  # one piece
        self.is_resumable = not has_memory  # also behind rows that were returned
        self.start = _bound(given, "startRow")  # of the present piece; reversed: its first row, empty: the last one
        self.end = b""  # of the present piece, exclusive; empty: the last row
        self.last_row: bytes | None = None  # that was returned
        self.link: StoreLink | None = None  # with the scanner of the present piece; None: there is none
        self.scanner_id = 0  # at that server
        self.is_over = False

    @property
    def can_resume(self) -> bool:
        return self.is_resumable or self.last_row is None

    @property
    def next_start(self) -> bytes | None:
        """The first row of a scanner that goes on with the scan; None if no row is left."""
        if self.last_row is None:
            return self.start
        if self.is_reversed:
            return self.last_row  # comes once more, and is left out
        start = max(self.start, self.last_row + b"\0")
        return None if self.stop and start >= self.stop else start

    @property
    def _is_last_piece(self) -> bool:
        return not self.end or bool(self.stop and self.stop <= self.end)

    def begin_piece(self, start: bytes, end: bytes, link: StoreLink) -> Call:
        """Begin a piece at a link; returns the call that opens its scanner."""
        self.start, self.end, self.link = start, end, link
        if self.call.method != WITH_SCAN or len(self.call.args) < 2 or self.call.args[1] is None:
            return self.call
        table, given, *more = self.call.args
        stop = (self.stop if self._is_last_piece else end) or None
        part = type(given)(**{**vars(given), "startRow": start, "stopRow": stop})
        return self.call._replace(args=(table, part, *more))

    def note_last_piece(self) -> None:
        self.end = b""

    def note_scanner(self, scanner_id: int) -> None:
        self.scanner_id = scanner_id

    def forget_scanner(self) -> StoreLink | None:
        """Return the link of the scanner, which the scan has no more."""
        link, self.link = self.link, None
        return link

    def take_rows(self, rows: Any) -> Any:
        """Return the rows that were not returned before."""
        if self.is_reversed and self.last_row is not None:
            rows = [one for one in rows if one.row < self.last_row]
        if rows:
            self.last_row = rows[-1].row
        return rows

    def end_piece(self) -> StoreLink | None:
        """Go on to the next piece; returns the link with a scanner to close, or None at the end of the scan."""
        if self._is_last_piece:
            self.is_over = True  # the scanner stays until the scan is closed
            return None
        self.start = self.end
        return self.forget_scanner()


def _bound(given: Any, field: str) -> bytes:
    return as_bytes(getattr(given, field, None)) or b""


class ClientScans:
    def __init__(self, owners: Owners, any_link: Callable[[], StoreLink]) -> None:
        """Pass ``any_link``, which returns a usable link to any server."""
        self._owners = owners
        self._any_link = any_link
        self._scans: dict[int, _Scan] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._scans)

    def open_scan(self, call: Call) -> int:
        """Open a scanner and return its id.  Raises what the server answers."""
        if len(self._scans) >= MOST_SCANNERS:
            raise WrongArgument(f"{len(self._scans)} scanners are open at this connection; close some of them")
        scan = _Scan(call)
        self._resume(scan, lambda: self._open_piece(scan))
        self._last_id = self._last_id % 0x7FFF_FFFF + 1
        while self._last_id in self._scans:
            self._last_id += 1
        self._scans[self._last_id] = scan
        return self._last_id

    def next_rows(self, scanner_id: int, call: Call) -> Any:
        """Return the next rows; no rows mean the end.  ``call`` is scannerGet or scannerGetList."""
        scan = self._known(scanner_id)
        if len(call.args) > 1 and not call.args[1]:
            return self._resume(scan, lambda: self._step(scan, call))  # no rows are wanted, or the count is wrong
        while not scan.is_over:
            found = self._resume(scan, lambda: self._step(scan, call))
            rows = scan.take_rows(found)
            if rows:
                return rows
            if not found:
                self._close_scanner(scan, scan.end_piece())
        return []

    def close_scan(self, scanner_id: int) -> None:
        scan = self._known(scanner_id)
        del self._scans[scanner_id]
        self._close_scanner(scan, scan.forget_scanner())

    def close(self) -> None:
        """Forget all scanners, which expire at their servers."""
        self._scans.clear()

    def _known(self, scanner_id: int) -> _Scan:
        scan = self._scans.get(scanner_id)
        if scan is None:
            raise WrongArgument(f"scanner ID is invalid: {scanner_id} is closed or was never open; open a new one")
        return scan

    # --- steps, which may lose the scanner ---------------------------------------------------------

    def _resume(self, scan: _Scan, work: Callable[[], Any]) -> Any:
        """Do a step of the scan; once more, with another scanner, if the first was lost."""
        try:
            return work()
        except NoAnswer:
            self._lost(scan)
            raise
        except NotSent as error:
            self._lost(scan)
            if not scan.can_resume:
                raise error.cause from None
        except BROKEN:
            self._lost(scan)
            if not scan.can_resume:
                raise
        except IllegalArgument as error:
            if "scanner ID is invalid" not in str(error) or not scan.can_resume:
                raise
            scan.forget_scanner()
        try:
            return work()
        except NotSent as error:
            self._lost(scan)
            raise error.cause from None
        except BROKEN:
            self._lost(scan)
            raise

    def _lost(self, scan: _Scan) -> None:
        """Note that the scan's connection broke."""
        link = scan.forget_scanner()
        if link is not None:
            link.close()
            self._owners.left(link.address)

    def _step(self, scan: _Scan, call: Call) -> Any:
        """Return the next rows of the piece, or no rows at its end."""
        link = scan.link
        if link is None or not link.is_usable:
            link = self._open_piece(scan)
            if link is None:
                return []
        return link.call(call._replace(args=(scan.scanner_id, *call.args[1:])))

    def _open_piece(self, scan: _Scan) -> StoreLink | None:
        """Open a scanner for the present piece, behind the last row.  Returns None if no row is left."""
        if not scan.can_resume:
            raise NotConnected(NotConnected.END_OF_FILE, "the connection of the scanner has ended")
        start, end = scan.next_start, b""
        if start is None:
            scan.note_last_piece()
            return None
        owners = self._owners
        if not scan.is_whole:
            piece = owners.piece(scan.table, start)
            owner, end = piece.owner, piece.end
        elif scan.is_reversed and not start:
            owner = owners.last_owner(scan.table)
        else:
            owner = owners.owner(scan.table, start)
        link = owners.link(owner) or self._any_link()
        scan.note_scanner(link.call(scan.begin_piece(start, end, link)))
        return link

    def _close_scanner(self, scan: _Scan, link: StoreLink | None) -> None:
        if link is not None and link.is_usable:
            with suppress(NotSent, IllegalArgument, *BROKEN):  # it expires at its server, or has
                link.call(Call(scan.call.service, "scannerClose", (scan.scanner_id,)))


def _remembers(text: Any) -> bool:
    """Return whether a part of the scan's range cannot be scanned by itself."""
    if not text:
        return False
    try:
        return remembers(parse(as_bytes(text) or b""))
    except CallerError:
        return True  # the server answers with the reason

"""Opening of scanners for a call: with its filter, whose mistakes are found before the first row is requested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from columnar.cluster.row_forms import ReplyForm
from columnar.errors import CallerError, ClientGone, IncompatibleFilter, RequestTooBig
from columnar.limits import FILTER_BYTES, SHORT_FILTER_BYTES, STEP_S
from columnar.model.filters import Filter
from columnar.model.read import ReadSpec, ScanSpec
from columnar.operations.access import Caller, TableAccess
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.scanners import Scanner
from columnar.regions.read.found_rows import FoundRows, PackRows, size_of
from columnar.regions.read.row_reader import Cells
from columnar.regions.tables import ServedTable
from columnar.runtime.loop_budget import IsDisconnected, LoopBudget

Use = Callable[[Scanner], Any]  # what a call does with its scanner, at once or as an awaitable


class Scans:
    def __init__(self, access: TableAccess, scanners: ScannerTable) -> None:
        self._access = access
        self._scanners = scanners

    def open(self, caller: Caller, served: ServedTable, spec: ScanSpec) -> Any:
        """The scanner's id.  A mistake is a CallerError of the opening, not of the first rows (observed row 2)."""
        connection = caller.connection_id
        if _has_long_filter(spec):
            return self.scanner(caller, served, spec, lambda scanner: self._scanners.open(scanner, connection))
        return self._scanners.open(Scanner(self._access, _name(served), spec, _filter_of(spec)), connection)

    def scanner(self, caller: Caller, served: ServedTable, spec: ScanSpec, use: Use) -> Any:
        """The result of ``use`` on a scanner that is in no table of open ones.  Errors as of ``open``."""
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
        """``Scanner.next_rows``, charged as one request and with the bytes that it found."""
        served = self._access.find(scanner.table)
        if served is None or not served.is_throttled:
            return scanner.next_rows(count, pack, caller.has_gone, form)
        self._access.admit(served, writes=False)  # before the scanner moves: a refused call leaves no hole in the scan
        found = scanner.next_rows(count, pack, caller.has_gone, form)
        if not isinstance(found, FoundRows):
            return self._charged(served, found)
        self._access.charge(served, 1, found.size_bytes, writes=False)
        return found

    async def _charged(self, served: ServedTable, rows: Awaitable[FoundRows]) -> FoundRows:
        found = await rows
        self._access.charge(served, 1, found.size_bytes, writes=False)
        return found

    async def row(
        self, served: ServedTable, row: bytes, read: ReadSpec, filter_string: bytes, is_disconnected: IsDisconnected
    ) -> Cells:
        """``one_row``, charged as one request."""
        if served.is_throttled:
            self._access.admit(served, writes=False)
        cells = await self.one_row(served, row, read, filter_string, is_disconnected)
        if served.is_throttled:
            self._access.charge(served, 1, size_of((row, cells)), writes=False)
        return cells

    async def one_row(
        self, served: ServedTable, row: bytes, read: ReadSpec, filter_string: bytes, is_disconnected: IsDisconnected
    ) -> Cells:
        """The cells of one row that a filter lets through: a scan of that row."""
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
    """Tell whether parsing the filter at once would block the loop for longer than a step."""
    return spec.filter_string is not None and len(spec.filter_string) > SHORT_FILTER_BYTES


def _filter_of(spec: ScanSpec) -> Filter | None:
    if spec.filter_string is None:
        return None
    from columnar.model.filter_language import parse  # with all filters, 0.7 MB, by the first scan that has one

    return _ready(spec, parse(_checked(spec.filter_string)))


async def _filter_in_steps(spec: ScanSpec, loop_budget: LoopBudget, is_disconnected: IsDisconnected) -> Filter | None:
    """Parse as ``_filter_of`` does, in steps between which other requests are served.  ClientGone."""
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

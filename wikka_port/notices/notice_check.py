"""The check of watches and notices: every fault between them and accounts; ``consistency`` repairs each.

    table      fault                                                      kind
    watchers   a row of a watch is not there, or has other cells          missing, different
               a row without a watch                                      stale
    watches    a row of an account that has ended, or never was           stale
    inbox      a row of such an account                                   stale

O(watches and notices) time; some hundred rows are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Final

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.accounts.tables import ID, STATUS, USERS
from wikka_port.differences import Difference, Kind, cell_differences
from wikka_port.notices.notice_rows import INBOX, WATCH_FAMILY, WATCHERS, WATCHES, turned, watcher_cells

_STEP: Final = 200
At = Callable[[int], int]  # returns the time of a repair from that of its source


def differences(rows: Rows, now_ms: int, at: At) -> Iterator[Difference]:
    """Yield all faults.  Raises StoreUnavailable."""
    for step in _steps(rows, WATCHES):
        yield from _of_ended(rows, WATCHES, step, now_ms)
        expected = {turned(row): watcher_cells(cells) for row, cells in step if watcher_cells(cells)}
        yield from _of_watchers(rows, expected, at(now_ms))
    for step in _steps(rows, WATCHERS):
        watches = rows.rows(WATCHES, [turned(row) for row, _ in step], [WATCH_FAMILY])
        for row, cells in step:
            if not watcher_cells(watches.get(turned(row), {})):
                stamped = {column: (value, at(now_ms)) for column, value in cells.items()}
                yield from cell_differences(WATCHERS, row, {}, stamped, at(now_ms))
    for step in _steps(rows, INBOX):
        yield from _of_ended(rows, INBOX, step, now_ms)


def _steps(rows: Rows, table: bytes) -> Iterator[list[tuple[bytes, Cells]]]:
    left = rows.scan(table)
    while step := list(islice(left, _STEP)):
        yield step


def _of_watchers(rows: Rows, expected: Mapping[bytes, Cells], at_ms: int) -> Iterator[Difference]:
    stored = rows.rows(WATCHERS, list(expected))
    for row, cells in expected.items():
        stamped = {column: (value, at_ms) for column, value in stored.get(row, {}).items()}
        yield from cell_differences(WATCHERS, row, cells, stamped, at_ms)


def _of_ended(rows: Rows, table: bytes, step: Collection[tuple[bytes, Cells]], now_ms: int) -> Iterator[Difference]:
    """Yield the rows of accounts that have ended."""
    owners = {row: row.partition(b"\0")[0] for row, _ in step}
    accounts = rows.rows(USERS, sorted(set(owners.values())), [ID, STATUS])
    for row, owner in owners.items():
        found = accounts.get(owner, {})
        if ID not in found or found.get(STATUS) == b"deleted":
            yield Difference(Kind.STALE, table, row, b"", None, owner, now_ms)

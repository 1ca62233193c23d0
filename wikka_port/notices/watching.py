"""The watches of accounts: begun, ended, listed.

A watch is one put or delete; the trigger ``wiki-watchers`` derives ``watchers``, or on a plain HBase ``derive``, which
is called after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.settings import Settings
from wikka_port.limits import ROWS_PER_CALL, WATCHES_MAX
from wikka_port.notices.notice_rows import (
    MAIL,
    MINOR,
    WATCHES,
    YES,
    Watch,
    rows_of_account,
    watch_of,
    watch_row,
)
from wikka_port.schema import cells_of

Derive = Callable[[Mapping[bytes, Mapping[bytes, bytes]]], object]  # rows of ``watches`` as they are now


class TooManyWatches(Exception):
    """The account watches WATCHES_MAX things already; nothing was written."""


class Watching:
    """Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int], derive: Derive = lambda changed: None) -> None:
        self._rows = rows
        self._clock = clock_ms
        self._derive = derive

    def of(self, account: bytes) -> list[Watch]:
        """Return all watches of an account, pages first, at most WATCHES_MAX."""
        start, stop = rows_of_account(account)
        found = [
            watch_of(row, cells) for row, cells in self._rows.scan(WATCHES, start, limit=WATCHES_MAX) if row < stop
        ]
        return sorted(found, key=lambda one: (one.is_below, one.name))

    def watched(self, account: bytes, targets: Collection[bytes]) -> set[bytes]:
        """Return those of the ``targets`` that the account watches; one call."""
        wanted = {watch_row(account, target): target for target in targets}
        return {wanted[row] for row in self._rows.rows(WATCHES, list(wanted))}

    def begin(self, account: bytes, target: bytes, name: str, settings: Settings) -> None:
        """Watch a target; a second call changes nothing.  Raises TooManyWatches."""
        if self.watched(account, [target]):
            return
        start, stop = rows_of_account(account)
        if len(self._rows.row_keys(WATCHES, start, stop, limit=WATCHES_MAX)) >= WATCHES_MAX:
            raise TooManyWatches
        row = watch_row(account, target)
        cells = cells_of(Watch(target, name, self._clock(), YES.decode() if settings.minor else "", settings.mail))
        self._rows.put(WATCHES, row, cells)
        self._derive({row: cells})

    def end(self, account: bytes, target: bytes) -> None:
        row = watch_row(account, target)
        self._rows.delete(WATCHES, row)
        self._derive({row: {}})

    def take_settings(self, account: bytes, settings: Settings) -> None:
        """Give the account's watches the settings that count for its notices."""
        minor, mail = YES if settings.minor else b"", settings.mail.encode()
        for watch in self.of(account):
            if (watch.minor.encode(), watch.mail.encode()) != (minor, mail):
                row = watch_row(account, watch.target)
                changed = {MINOR: minor, MAIL: mail}
                self._rows.put(WATCHES, row, changed)
                self._derive({row: {**cells_of(watch), **changed}})

    def forget(self, account: bytes) -> None:
        """Remove all watches of an account that ends."""
        start, stop = rows_of_account(account)
        while rows := self._rows.row_keys(WATCHES, start, stop, limit=ROWS_PER_CALL):
            self._rows.delete_rows(WATCHES, rows)
            self._derive({row: {} for row in rows})

"""The watches of accounts: begun, ended, listed.

A watch is one put or delete; the trigger ``wiki-watchers`` derives ``watchers``, or on a plain HBase ``derive``, which
is called after it.  Then ``account:watches`` gets another value, which comes with each request of the account.  So a
process that keeps an account's targets knows without a call whether they are still what it kept (``kept``).  A crash
before that leaves kept targets as they are for WATCHES_KEPT_MS at most.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.settings import Settings
from wikka_port.accounts.tables import ID, USERS, WATCHES_STAMP
from wikka_port.limits import ROWS_PER_CALL, TARGETS_KEPT, WATCHES_KEPT_MS, WATCHES_MAX
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
        self._lock = threading.Lock()
        # guarded by _lock: by account, the stamp, until when, and the targets; and the number of all targets
        self._kept: OrderedDict[bytes, tuple[bytes, int, frozenset[bytes]]] = OrderedDict()
        self._kept_count = 0

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

    def kept(self, account: bytes, stamp: bytes) -> frozenset[bytes]:
        """Return all targets of an account whose row has the ``stamp``.  Costs a call only if they are not kept."""
        if not stamp:  # it never watched anything
            return frozenset()
        now = self._clock()
        with self._lock:
            found = self._kept.get(account)
            if found is not None and found[0] == stamp and now < found[1]:
                self._kept.move_to_end(account)
                return found[2]
        start, stop = rows_of_account(account)
        rows = self._rows.row_keys(WATCHES, start, stop, limit=WATCHES_MAX)
        targets = frozenset(row[len(start) :] for row in rows)
        with self._lock:
            self._keep(account, (stamp, now + WATCHES_KEPT_MS, targets))
        return targets

    def _keep(self, account: bytes, found: tuple[bytes, int, frozenset[bytes]]) -> None:
        """Keep targets under _lock.  Each account counts as one more, since one without targets takes space too."""
        former = self._kept.pop(account, None)
        self._kept[account] = found
        self._kept_count += len(found[2]) - len(former[2] if former else ())
        while self._kept_count + len(self._kept) > TARGETS_KEPT:
            self._kept_count -= len(self._kept.popitem(last=False)[1][2])

    def _note_change(self, account: bytes) -> None:
        """Give the account another stamp, unless it has ended."""
        stored = self._rows.row(USERS, account, [ID])
        if ID in stored:
            self._rows.change(USERS, account, {ID: stored[ID]}, {WATCHES_STAMP: secrets.token_hex(8).encode()})

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
        self._note_change(account)

    def end(self, account: bytes, target: bytes) -> None:
        row = watch_row(account, target)
        self._rows.delete(WATCHES, row)
        self._derive({row: {}})
        self._note_change(account)

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

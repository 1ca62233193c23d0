"""Triggers of the wiki in its store, with their lag and dead letters, and the sizes of the wiki's tables.

A change whose trigger failed too often is a dead letter: an index lacks it until somebody delivers it again, or throws
it away, after which ``wikka check --repair`` puts the index right.

On a plain HBase, and for ``indexes="application"``, there is no trigger; the wiki writes its indexes itself.

Numbers of rows are exact up to SIZES_READ.  Beyond that they follow from the share of all hashes that the rows read
have, as ``listings.count_pages_roughly`` does for pages: keys begin with a hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from columnar.client import Connection
from columnar.client.errors import IllegalArgument, IOError, NotColumnar
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import USERS
from wikka_port.comments.comment_rows import COMMENTS
from wikka_port.files.file_rows import BLOBS, CHUNKS, FILES, parse_blob_state
from wikka_port.limits import ACCOUNTS_COUNTED, LETTERS_LISTED, SIZES_READ
from wikka_port.listings import ROUGHLY
from wikka_port.schema import CHANGES, DOCS, NAME, NAMES, PAGES, REVISIONS, TERMS
from wikka_port.store import Store

T = TypeVar("T")
OWN: Final = "wiki-"  # the beginning of the names of the wiki's triggers
LISTING: Final = "wiki-indexes"  # the trigger that lists changes
_LARGE: Final = (PAGES, REVISIONS, CHUNKS, COMMENTS, CHANGES, NAMES, TERMS, DOCS)
_HASHES_END: Final = b"g"  # after all hexadecimal digits
_DIGITS: Final = 12  # of a hash, by which the share is computed


class Refused(Exception):
    """The store does not do it; ``str()`` is its reason."""


@dataclass(frozen=True, slots=True)
class TriggerState:
    name: str
    state: str  # running, paused, blocked or unreadable
    lag_changes: int
    lag_s: float  # of the oldest change
    dead_letters: int
    last_error: str
    rate_per_s: float  # deliveries, in the last minute

    @property
    def cause(self) -> str:
        return last_line(self.last_error)


@dataclass(frozen=True, slots=True)
class Letter:
    trigger: str
    row: bytes
    page: str  # the name of the page whose row it is, "" for another row
    time_ms: int
    attempts: int
    error: str

    @property
    def cause(self) -> str:
        """The last line of the error, which says what went wrong; the others say where."""
        return last_line(self.error)


@dataclass(frozen=True, slots=True)
class Amount:
    count: int
    how: Literal["exact", "about", "at least"] = "exact"
    size_bytes: int = -1  # -1: not known


class Maintenance:
    """Thread-safe.  Every method may raise StoreUnavailable or Refused."""

    def __init__(self, store: Store, has_triggers: Callable[[], bool]) -> None:
        self._store = store
        self._rows = Rows(store)
        self._has_triggers = has_triggers

    @property
    def has_triggers(self) -> bool:
        return self._has_triggers() and self._store.is_columnar

    def triggers(self) -> list[TriggerState]:
        """Return the wiki's triggers by name."""
        if not self.has_triggers:
            return []
        found = self._run(lambda connection: connection.triggers.list())
        return [
            TriggerState(
                one.name,
                one.state,
                one.lag_changes,
                one.lag_seconds,
                one.dead_letters,
                one.last_error,
                one.rate_per_s,
            )
            for one in sorted(found, key=lambda one: one.name)
            if one.name.startswith(OWN)
        ]

    def letters(self) -> list[Letter]:
        """Return the first LETTERS_LISTED dead letters of the wiki's triggers."""
        found: list[Any] = []
        for name in [one.name for one in self.triggers() if one.dead_letters]:
            left = LETTERS_LISTED - len(found)
            if left > 0:
                found += self._run(lambda c, n=name, most=left: c.triggers.dead_letters(n, most))  # type: ignore[misc]
        pages = self._rows.rows(PAGES, {one.row for one in found if one.table == PAGES}, [NAME])
        return [
            Letter(
                one.trigger,
                one.row,
                pages.get(one.row, {}).get(NAME, b"").decode(errors="replace") if one.table == PAGES else "",
                one.timestamp_ms,
                one.attempts,
                one.error,
            )
            for one in found
        ]

    def retry(self, trigger: str, row: bytes = b"") -> int:
        """Deliver the dead letters of a row again, or those of all rows; return their number."""
        _require_own(trigger)
        return self._run(lambda connection: connection.triggers.retry(trigger, row))

    def discard(self, trigger: str, row: bytes = b"") -> int:
        """Throw the dead letters of a row away, or those of all rows; return their number."""
        _require_own(trigger)
        if row:
            return self._run(lambda connection: connection.triggers.skip_dead(trigger, row))
        return self._run(lambda connection: connection.triggers.purge_dead(trigger))

    # --- sizes -------------------------------------------------------------------------------------

    def table_bytes(self, table: bytes) -> int:
        """Return the bytes that a table takes on disk, -1 if the store does not say."""
        if not self._store.is_columnar:
            return -1
        return self._run(lambda connection: sum(one.size_bytes for one in connection.admin.regions(table)))

    def _run(self, work: Callable[[Connection], T]) -> T:
        try:
            return self._store.run(work)
        except (IllegalArgument, IOError, NotColumnar) as refused:
            message = getattr(refused, "message", refused)
            raise Refused(message.decode(errors="replace") if isinstance(message, bytes) else str(message)) from None


def last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _require_own(trigger: str) -> None:
    if not trigger.startswith(OWN):
        raise Refused(f"{trigger} is no trigger of the wiki")


def rows_of(rows: Rows, table: bytes) -> Amount:
    """Return the number of rows of a table whose keys begin with a hash.  Reads SIZES_READ keys at most."""
    keys = rows.row_keys(table, b"", _HASHES_END, limit=SIZES_READ + 1)
    return Amount(len(keys)) if len(keys) <= SIZES_READ else Amount(_of_all(keys), "about")


def contents_of(rows: Rows) -> Amount:
    """Return the number and the bytes of contents of files; equal files have one.  Reads SIZES_READ rows at most."""
    keys, size_bytes = [], 0
    for row, cells in rows.scan(BLOBS, limit=SIZES_READ + 1):
        state = parse_blob_state(next(iter(cells.values()), b""))
        if state.life != "gone":
            keys.append(row)
            size_bytes += state.size_bytes
    if len(keys) <= SIZES_READ:
        return Amount(len(keys), size_bytes=size_bytes)
    count = _of_all(keys)
    return Amount(count, "about", size_bytes * count // len(keys))


def accounts_of(rows: Rows, table: bytes) -> Amount:
    """Return the number of rows of a table whose keys are names, or ACCOUNTS_COUNTED as the least if there are more."""
    keys = rows.row_keys(table, b"", b"\xff" * 8, limit=ACCOUNTS_COUNTED + 1)
    return Amount(len(keys)) if len(keys) <= ACCOUNTS_COUNTED else Amount(ACCOUNTS_COUNTED, "at least")


def _of_all(keys: list[bytes]) -> int:
    """Return the number of all rows, of which ``keys`` are the first."""
    share = (int(keys[-1][:_DIGITS], 16) + 1) / 16**_DIGITS
    return round(len(keys) / share)


def amounts_of(rows: Rows, pages: int) -> dict[str, Amount]:
    """Return how much the wiki has of each kind; ``pages`` is ``count_pages_roughly``.  Raises StoreUnavailable."""
    return {
        "pages": Amount(pages, "exact" if pages <= ROUGHLY else "about"),
        "revisions": rows_of(rows, REVISIONS),
        "files": rows_of(rows, FILES),
        "contents": contents_of(rows),
        "comments": rows_of(rows, COMMENTS),
        "accounts": accounts_of(rows, USERS),
    }


def bytes_on_disk(maintenance: Maintenance) -> dict[str, int]:
    """Return by table what it takes on disk; nothing if the store does not say.  Raises StoreUnavailable, Refused."""
    found = {table.decode(): maintenance.table_bytes(table) for table in _LARGE}
    return {table: size_bytes for table, size_bytes in found.items() if size_bytes >= 0}

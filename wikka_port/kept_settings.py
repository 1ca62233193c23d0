"""Settings of the site in the store, with the history of their changes.

    TABLE, ROW                      VALUE       the settings, as their owner packs them
                                    REVISION    "N:token" of the last change
    table ``site``, HISTORY_ROW     settings:NUMBER   a change, by its number (10 digits, inverted):
                                    JSON with ``time`` (ms), ``by`` and ``value``; the newest HISTORY_MAX

A change is one step, on the condition that nobody else changed the settings; the history follows.  A crash in between
leaves a change that the history lacks.

While a folder is not prepared for this version, the defaults count.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import SITE
from wikka_port.rights.rules import next_revision, number_of
from wikka_port.store import NotPrepared
from wikka_port.texts import N_, _

T = TypeVar("T")
HISTORY_MAX: Final = 100
CHANGED: Final = N_("Somebody else changed these settings meanwhile. Please look at them again.")
TYPED_BELOW: Final = N_(
    "The history has what counts now, the form what you typed: saving it again puts it in its place."
)
_NUMBER_MAX: Final = 10**10 - 1


class SettingsChanged(Exception):
    """Somebody else changed the settings; nothing was written.  ``str()`` is a sentence for the person."""

    def __init__(self) -> None:
        super().__init__(_(CHANGED))


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    value: T
    revision: str = ""  # of the last change; "": there was none


@dataclass(frozen=True, slots=True)
class StoredChange(Generic[T]):
    time_ms: int
    by: str
    value: T


@dataclass(frozen=True, slots=True)
class KeptSettings(Generic[T]):
    """The places of the settings, and how they are packed; ``parse`` takes any bytes, b"" for none."""

    table: bytes
    row: bytes
    value: bytes
    revision: bytes
    history_row: bytes
    pack: Callable[[T], bytes]  # JSON
    parse: Callable[[bytes], T]

    def read(self, rows: Rows) -> Stored[T]:
        """Return the settings.  Raises StoreUnavailable."""
        try:
            cells = rows.row(self.table, self.row, [self.value, self.revision])
        except NotPrepared:
            return Stored(self.parse(b""))
        revision = cells.get(self.revision, b"").decode(errors="replace")
        return Stored(self.parse(cells.get(self.value, b"")), revision)

    def write(self, rows: Rows, before: str, value: T, *, by: str, now_ms: int) -> Stored[T]:
        """Store the settings, if their last change is still ``before``.  Raises SettingsChanged, StoreUnavailable."""
        expected = before.encode("utf-8", "replace")
        revision = next_revision(expected, secrets.token_hex(8))
        packed = self.pack(value)
        puts = {self.revision: revision, self.value: packed}
        if not rows.change(self.table, self.row, {self.revision: expected or None}, puts):
            raise SettingsChanged
        number = number_of(revision)
        entry = {"time": now_ms, "by": by, "value": json.loads(packed)}
        rows.put(SITE, self.history_row, {_column(number): json.dumps(entry, ensure_ascii=False).encode()})
        if number > HISTORY_MAX:
            rows.delete(SITE, self.history_row, [_column(number - HISTORY_MAX)])
        return Stored(value, revision.decode())

    def history(self, rows: Rows) -> list[StoredChange[T]]:
        """Return the changes, the newest first.  Raises StoreUnavailable."""
        found = []
        for _column_name, cell in sorted(rows.row(SITE, self.history_row).items()):
            try:
                entry = json.loads(cell)
                value = self.parse(json.dumps(entry["value"]).encode())
                found.append(StoredChange(int(entry["time"]), str(entry["by"]), value))
            except (ValueError, KeyError, TypeError):
                continue
        return found


def _column(number: int) -> bytes:
    return b"settings:%010d" % (_NUMBER_MAX - number)

"""The record of the pages that a killed export has written: the next one of the same command goes on from there.

A database beside the export, which has of each page, or of each file beside them,

    path     of its file in the folder; in an export that is one file, a name by which that knows the page
    inputs   digest of all that the file was made from: text, links, pages that link to it, files
    digest   SHA-256 of the file

and of an export that is one file (``export_file``) what its writer knows at the last checkpoint, as JSON, and the
writer's own tables.

A file of a page is left as it is if it would be made from the same inputs, and has the bytes that were written.  So a
file that a power cut has damaged is written again, and so is a page that was changed meanwhile.  A record that another
program or another command wrote (``about``) is thrown away with what it is about.

The record is written NOTED pages at a time: an export that is killed writes at most so many pages twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from wikka_port.exchange.records import ExportError

NOTED: Final = 100  # pages in one transaction
_ABOUT: Final = ""  # the path in whose place the record has what it is about
_BUSY_S: Final = 1.0
_CACHE_KB: Final = 8_192


class WrittenPages:
    """The record of one export.  Not thread-safe."""

    def __init__(self, database: sqlite3.Connection, file: Path, folder: Path) -> None:
        """Take the ``file`` of the database, and the ``folder`` of the export's files."""
        self.kept = 0  # pages that were left as they are
        self.database = database
        self._file = file
        self._folder = folder
        self._waiting = 0

    @classmethod
    def opened(cls, file: Path, folder: Path, about: str, discard: Callable[[], None]) -> WrittenPages:
        """Open the record in ``file``, or begin it; ``about`` says which export it belongs to.

        ``discard`` removes what the record of another export is about.  Raises ExportError if another export has the
        record open.
        """
        try:
            made = cls(_database(file), file, folder)
            if made.is_current(_ABOUT, about):
                return made
            made.abandon()
        except sqlite3.OperationalError as problem:
            raise ExportError(f"{file}: {problem}. Does another export write there? Else remove it") from None
        except sqlite3.DatabaseError:  # a power cut damaged it
            pass
        _remove(file)
        discard()
        made = cls(_database(file), file, folder)
        made._put(_ABOUT, about, "")
        made.commit()
        return made

    def is_current(self, path: str, inputs: str) -> bool:
        """Return whether the file at ``path`` was made from the ``inputs`` and is as it was written."""
        found = self.database.execute("SELECT inputs, digest FROM parts WHERE path = ?", (path,)).fetchone()
        if found is None or found[0] != inputs:
            return False
        if path == _ABOUT:
            return True
        try:
            return bool(sha256((self._folder / path).read_bytes()).hexdigest() == found[1])
        except OSError:
            return False

    def has(self, path: str) -> bool:
        """Return whether the record has a file or a page, whatever it was made from."""
        return self.database.execute("SELECT 1 FROM parts WHERE path = ?", (path,)).fetchone() is not None

    def note(self, path: str, inputs: str) -> None:
        """Record a file that has been written."""
        self._put(path, inputs, sha256((self._folder / path).read_bytes()).hexdigest())
        self._waiting += 1
        if self._waiting >= NOTED:
            self.commit()

    def note_page(self, path: str) -> None:
        """Record a page of an export that is one file, or a file beside it, with the next ``save_values``."""
        self._put(path, "", "")

    def count_kept(self) -> None:
        self.kept += 1

    def _put(self, path: str, inputs: str, digest: str) -> None:
        self.database.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", (path, inputs, digest))

    def values(self) -> dict[str, Any]:
        """Return what the last ``save_values`` stored; {} if there was none."""
        found = self.database.execute("SELECT value FROM checkpoint").fetchone()
        return {} if found is None else dict(json.loads(found[0]))

    def save_values(self, values: Mapping[str, Any]) -> None:
        """Store ``values``, with all that was recorded since the last time, in one step."""
        self.database.execute("INSERT OR REPLACE INTO checkpoint VALUES (1, ?)", (json.dumps(values),))
        self.commit()

    def commit(self) -> None:
        self.database.commit()
        self._waiting = 0

    def close(self) -> None:
        """Close the record with all that was noted."""
        self.database.commit()
        self.database.close()

    def abandon(self) -> None:
        """Close the record as the last ``commit`` left it."""
        self.database.rollback()
        self.database.close()

    def remove(self) -> None:
        """Remove the record, which is closed: the export is whole."""
        _remove(self._file)


def _database(file: Path) -> sqlite3.Connection:
    """Open the database for this process alone.

    A process that is killed leaves it whole; a power cut may damage it.
    """
    database = sqlite3.connect(file, timeout=_BUSY_S)
    try:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA synchronous=OFF")
        database.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
        database.execute("BEGIN EXCLUSIVE")  # the lock stays until the database is closed
        database.execute(
            "CREATE TABLE IF NOT EXISTS parts (path TEXT PRIMARY KEY, inputs TEXT, digest TEXT) WITHOUT ROWID"
        )
        database.execute("CREATE TABLE IF NOT EXISTS checkpoint (number INTEGER PRIMARY KEY, value TEXT)")
        database.commit()
    except sqlite3.Error:
        database.close()
        raise
    return database


def _remove(file: Path) -> None:
    for name in (file.name, f"{file.name}-journal"):
        with suppress(FileNotFoundError):
            file.with_name(name).unlink()

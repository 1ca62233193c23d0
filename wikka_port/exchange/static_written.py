"""The pages that a killed export of a static site has written: the next one does not render them again.

A file beside the site's pages, in the folder by which an export recognises its own, has of each page

    path     of its file in the folder
    inputs   digest of all that the file was made from: text, links, pages that link to it, files
    html     SHA-256 of the file

A page is left as it is if it would be made from the same inputs, and its file has the bytes that were written.  So a
file that a power cut has damaged is written again, and so is a page that was changed meanwhile.  A record that another
program or another command wrote (``about``) is thrown away with its pages.

The record is written NOTED pages at a time: an export that is killed renders at most so many pages twice.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

NOTED: Final = 100  # pages in one transaction
_NAME: Final = "written"
_ABOUT: Final = ""  # the path in whose place the record has what it is about


class WrittenPages:
    """The record of one export.  Not thread-safe."""

    def __init__(self, database: sqlite3.Connection, file: Path, folder: Path) -> None:
        """Take the ``file`` of the database, and the ``folder`` of the site."""
        self.kept = 0  # pages that were left as they are
        self._database = database
        self._file = file
        self._folder = folder
        self._waiting = 0

    @classmethod
    def opened(cls, own: Path, folder: Path, about: str) -> WrittenPages:
        """Open the record in the folder ``own``, or begin it; ``about`` says which export it belongs to."""
        file = own / _NAME
        try:
            made = cls(_database(file), file, folder)
            if made.is_current(_ABOUT, about):
                return made
            made.close()
        except sqlite3.DatabaseError:  # a power cut damaged it
            pass
        _remove(file)
        shutil.rmtree(folder / "pages", ignore_errors=True)
        made = cls(_database(file), file, folder)
        made._put(_ABOUT, about, "")
        made.commit()
        return made

    def is_current(self, path: str, inputs: str) -> bool:
        """Return whether the file at ``path`` was made from the ``inputs`` and is as it was written."""
        found = self._database.execute("SELECT inputs, html FROM written WHERE path = ?", (path,)).fetchone()
        if found is None or found[0] != inputs:
            return False
        if path == _ABOUT:
            return True
        try:
            return bool(sha256((self._folder / path).read_bytes()).hexdigest() == found[1])
        except OSError:
            return False

    def note(self, path: str, inputs: str) -> None:
        """Record a file that has been written."""
        self._put(path, inputs, sha256((self._folder / path).read_bytes()).hexdigest())
        self._waiting += 1
        if self._waiting >= NOTED:
            self.commit()

    def count_kept(self) -> None:
        self.kept += 1

    def _put(self, path: str, inputs: str, html: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO written VALUES (?, ?, ?)", (path, inputs, html))

    def commit(self) -> None:
        self._database.commit()
        self._waiting = 0

    def close(self) -> None:
        self._database.commit()
        self._database.close()

    def remove(self) -> None:
        """Remove the record, which is closed: the site is whole."""
        _remove(self._file)


def _database(file: Path) -> sqlite3.Connection:
    """Open the database.  A process that is killed leaves it whole; a power cut may damage it."""
    database = sqlite3.connect(file)
    database.execute("PRAGMA synchronous=OFF")
    database.execute("CREATE TABLE IF NOT EXISTS written (path TEXT PRIMARY KEY, inputs TEXT, html TEXT) WITHOUT ROWID")
    return database


def _remove(file: Path) -> None:
    for name in (file.name, f"{file.name}-journal"):
        with suppress(FileNotFoundError):
            file.with_name(name).unlink()

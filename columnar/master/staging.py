"""``DATA/staging``: folders that a command on this machine reads (copies of regions) or fills (regions it built).

    staging/TOKEN/LOCK      locked (flock) by the server while it fills the folder, then by the command
    staging/TOKEN/...       files that server and command agree on

When a command dies, its lock is released, and its folder is removed at the next ``make`` or at the next start of the
server.  ``make`` spares a folder for GRACE_S after ``hand_out``: the command may not have locked it yet.

All methods block on the disk: call them in threads.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import suppress
from typing import IO, Final

from columnar.errors import CallerError, RetryLater
from columnar.limits import STAGED_FOLDERS
from columnar.storage.file_copies import dispose_tree, remove_tree
from columnar.storage.region_entries import DELETED

GRACE_S: Final = 60.0
LOCK: Final = "LOCK"
_TOKEN: Final = re.compile(r"[0-9a-f]{32}")


class Staging:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock_files: dict[str, IO[bytes]] = {}  # by token, of folders that are being filled

    def make(self) -> str:
        """Make a folder, and return its token; the folder is locked until ``hand_out``.

        Raises RetryLater if STAGED_FOLDERS exist already.
        """
        self.sweep()
        if os.path.isdir(self._folder) and len(os.listdir(self._folder)) >= STAGED_FOLDERS:
            raise RetryLater(f"{STAGED_FOLDERS} commands read or bring copies of regions already; try again later")
        token = os.urandom(16).hex()
        for folder in (self._folder, self.path(token)):
            with suppress(FileExistsError):  # the staging folder may exist; the data folder does
                os.mkdir(folder)
        lock_file = self._lock_files[token] = open(self.path(token, LOCK), "wb")  # noqa: SIM115 - open until ``hand_out``
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        return token

    def hand_out(self, token: str) -> str:
        """Release the folder's lock and return the folder's path; the requesting command locks the folder next."""
        os.utime(self.path(token))
        self._lock_files.pop(token).close()
        return os.path.abspath(self.path(token))

    def path(self, token: str, *names: str) -> str:
        """Return the path of a folder, or of a file in it.

        Raises CallerError if ``token`` is not a token: no caller may name a path of his own.
        """
        if not _TOKEN.fullmatch(token):
            raise CallerError(f"'{token[:40]}' is no folder in staging")
        return os.path.join(self._folder, token, *names)

    def known(self, token: str) -> str:
        path = self.path(token)
        if not os.path.isdir(path):
            raise CallerError(f"staging folder {token} is gone; begin again")
        return path

    def remove_staged(self, token: str) -> None:
        """Remove the folder.

        The folder is gone at once: a table whose command has given up may still take regions from it, and must get all
        of a region or nothing.
        """
        lock_file = self._lock_files.pop(token, None)
        if lock_file is not None:
            lock_file.close()
        dispose_tree(self.path(token), DELETED)

    def sweep(self, grace_s: float = GRACE_S) -> None:
        """Remove the folders of dead commands, except folders younger than ``grace_s``."""
        if not os.path.isdir(self._folder):
            return
        for token in os.listdir(self._folder):
            lock = os.path.join(self._folder, token, LOCK)
            try:
                if time.time() - os.path.getmtime(os.path.join(self._folder, token)) < grace_s:
                    continue
                with open(lock, "r+b") as lock_file:
                    fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # Renamed while it is locked: a command that locks it next finds it whole or not at all.
                    dispose_tree(os.path.join(self._folder, token), DELETED)
            except FileNotFoundError:  # an earlier removal was interrupted
                remove_tree(os.path.join(self._folder, token), missing_ok=True)
            except OSError:
                continue  # its command lives

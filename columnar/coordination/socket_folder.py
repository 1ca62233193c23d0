"""The folder of the sockets by which the processes of a store reach each other, and its repair.

    FOLDER          made by ``mkdtemp`` in the system's temporary folder, mode 0700; there because socket paths must be
                    short
    FOLDER/NAME     a listening socket; if the name is removed, ``ListeningPath`` makes its process listen there again

Cleaners of temporary folders remove files that were not touched for days.  The supervisor keeps a shared ``flock`` on
the folder, which systemd-tmpfiles respects (tmpfiles.d(5)).  Against other cleaners each process checks its own path
every CHECK_S, and makes folder and socket again if they are missing.  A folder that a different user has made at the
path is never used.

Owned by the loop, except ``make_private``.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from columnar.errors import HostError

_log = logging.getLogger(__name__)

CHECK_S: Final = 1.0  # a check costs a stat of some 2 us


def make_private(path: str) -> None:
    """Make the folder if it is missing.  Raises HostError if that fails, or if other users may enter the folder."""
    try:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        found = os.lstat(path)
    except OSError as error:
        raise HostError(f"cannot make {path}: {error.strerror}; a restart of the store chooses another") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise HostError(f"{path} was removed, and is not the store's own now; a restart of the store chooses another")


class SocketFolder:
    """The folder in the process that made it, which locks it against cleaners and removes it at the end."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = -1

    @classmethod
    def made(cls) -> SocketFolder:
        """Make and lock a new folder.  Raises OSError if no temporary folder can be made."""
        folder = cls(tempfile.mkdtemp(prefix="columnar-"))
        folder.lock()
        return folder

    def lock(self) -> None:
        """Lock the folder that is now at the path; does nothing if the file system has no locks."""
        self._unlock()
        with suppress(OSError):
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def remove(self) -> None:
        self._unlock()
        shutil.rmtree(self.path, ignore_errors=True)


class ListeningPath:
    """A path at which this process listens, from ``begin`` until ``close``."""

    def __init__(self, path: str, listen: Callable[[], Awaitable[None]]) -> None:
        """Take the path and ``listen``, which listens there, also repeatedly, and may raise OSError or HostError."""
        self._path = path
        self._listen = listen
        self._timer: asyncio.TimerHandle | None = None
        self._repair: asyncio.Task[None] | None = None
        self._failure = ""  # the last failure that was logged
        self._is_closed = False

    def begin(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._check)

    def _check(self) -> None:
        if os.path.lexists(self._path):
            self.begin()
        else:
            self._repair = asyncio.ensure_future(self._listen_again())

    async def _listen_again(self) -> None:
        try:
            make_private(os.path.dirname(self._path))
            await self._listen()
        except (OSError, HostError) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                _log.error("%s was removed, and nobody can listen there again: %s", self._path, error)
        else:
            self._failure = ""
            _log.warning("%s was removed, as by a cleaner of temporary files: it is there again", self._path)
        finally:
            if not self._is_closed:
                self.begin()

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._repair is not None:
            self._repair.cancel()
            await asyncio.wait([self._repair])

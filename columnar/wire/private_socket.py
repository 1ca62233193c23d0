"""A listening socket that only this process and its children can reach.

A store that speaks TLS on its ports still serves its own trigger worker, and the status page its own
front; both are in the same process tree and need no certificate.

The socket is bound in a folder of its own that no other user may enter.  Linux reaches it by a descriptor: the
name is removed at once, so that a crash leaves no file, and a child finds it by the same number.
On other systems the folder stays until ``close``.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from typing import Final

BACKLOG: Final = 100


class PrivateSocket:
    def __init__(self, folder: str, listening: socket.socket) -> None:
        """``folder``: of its own; ``listening`` is to be bound in it."""
        self._folder = folder
        self.listening = listening
        self.descriptor: int | None = None  # to be inherited by a child that is to reach it
        self.path = os.path.join(folder, "socket")  # to connect to

    @classmethod
    def opened(cls) -> PrivateSocket:
        """OSError where no temporary folder can be made."""
        folder = tempfile.mkdtemp(prefix="columnar-")  # 0700
        private = cls(folder, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        try:
            private._listen()
        except OSError:
            private.close()
            raise
        return private

    def _listen(self) -> None:
        self.listening.bind(self.path)
        self.listening.listen(BACKLOG)
        if hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd"):
            self.descriptor = os.open(self.path, os.O_PATH | os.O_CLOEXEC)
            self.path = f"/proc/self/fd/{self.descriptor}"
            shutil.rmtree(self._folder)

    def close(self) -> None:
        self.listening.close()
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        shutil.rmtree(self._folder, ignore_errors=True)

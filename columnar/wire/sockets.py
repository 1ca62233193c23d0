"""Sockets: options and the state of a client's socket in the kernel, and a socket of this process tree alone."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import Final

KEEPALIVE_IDLE_S: Final = 60
# Linux reports an end after unread bytes; other systems report only a connection that is closed in both directions.
_ENDED: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL


def name_of_peer(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "local"


def has_ended(fd: int) -> bool:
    """Tell whether the peer has closed the connection or its side of it, even after unread bytes.  Some 2 us."""
    poll = select.poll()
    poll.register(fd, _ENDED)
    return bool(poll.poll(0))


def tune(sock: socket.socket) -> None:
    """Send small replies at once (a delay would be 40 ms), and find dead peers without an idle timeout."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)


BACKLOG: Final = 100


class PrivateSocket:
    """A listening socket that only this process and its children can reach.

    A store that speaks TLS on its ports still serves its own trigger worker, and the status page its own
    front; both are in the same process tree and need no certificate.

    The socket is bound in a folder of its own that no other user may enter.  Linux reaches it by a descriptor: the
    name is removed at once, so that a crash leaves no file, and a child finds it by the same number.
    On other systems the folder stays until ``close``.
    """

    def __init__(self, folder: str, listening: socket.socket) -> None:
        """``folder``: of its own; ``listening`` is to be bound in it."""
        self._folder = folder
        self.listening = listening
        self.descriptor: int | None = None  # to be inherited by a child that is to reach it
        self.path = os.path.join(folder, "socket")  # to connect to

    @classmethod
    def opened(cls) -> PrivateSocket:
        """OSError where no temporary folder can be made."""
        from tempfile import mkdtemp  # with shutil 0.3 MB that a server without such a socket needs not

        folder = mkdtemp(prefix="columnar-")  # 0700
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
            _remove(self._folder)

    def close(self) -> None:
        self.listening.close()
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        _remove(self._folder)


def _remove(folder: str) -> None:
    import shutil  # as in ``opened``

    shutil.rmtree(folder, ignore_errors=True)

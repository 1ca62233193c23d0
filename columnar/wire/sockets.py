"""Sockets: options, the kernel's view of a client's socket, and a socket that only this process tree can reach."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import Any, Final, cast

KEEPALIVE_IDLE_S: Final = 60
# Linux reports an end that follows unread bytes; other systems only a connection that is closed in both directions.
ENDED: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL


def name_of_peer(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "local"


def has_ended(fd: int) -> bool:
    """Return whether the peer has closed the connection or its sending side, even if unread bytes remain; some 2 us."""
    poll = select.poll()
    poll.register(fd, ENDED)
    return bool(poll.poll(0))


def tune(sock: socket.socket) -> None:
    """Set options to send small replies without delay (of 40 ms), and to find dead peers without an idle timeout."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)


class ListeningSockets:
    """The sockets on which a port listens: its public one, and a private one that other calls of this process reach."""

    def __init__(self) -> None:
        self.port = 0  # of the public one, also after a stop: addresses of regions are given out until the end
        self._public: asyncio.Server | None = None
        self._private: asyncio.Server | None = None

    async def listen(self, factory: Any, host: str, port: int) -> None:
        """Listen; port 0 takes a free port.  Raises OSError if the address is in use."""
        loop = asyncio.get_running_loop()
        self._public = await loop.create_server(factory, host, port, backlog=1024, reuse_address=True)
        sockets = cast(Any, self._public).sockets  # asyncio's is a tuple, uvloop's a list
        self.port = sockets[0].getsockname()[1]

    async def listen_privately(self, factory: Any, listening: socket.socket) -> None:
        """Listen on a Unix socket too; the socket replaces an earlier private one."""
        if self._private is not None:
            self._private.close()
        self._private = await asyncio.get_running_loop().create_unix_server(factory, sock=listening)

    def close_public(self) -> None:
        if self._public is not None:
            self._public.close()

    def begin_close(self) -> None:
        """Listen no more."""
        for server in (self._public, self._private):
            if server is not None:
                server.close()

    async def wait_closed(self) -> None:
        for server in (self._public, self._private):
            if server is not None:
                await server.wait_closed()
        self._public = self._private = None


BACKLOG: Final = 100


class PrivateSocket:
    """A listening socket that only this process and its children can reach.

    A store that speaks TLS on its ports serves its trigger worker over a private socket.  The status page with TLS has
    one behind its port, too.  Such callers are in the same process tree and need no certificate.

    The socket is bound in a folder of its own that no other user may enter.  On Linux its name is removed immediately,
    so that a crash leaves no file, and a child process reaches the socket by its inherited descriptor, which has the
    same number.  On other systems the folder stays until ``close``.
    """

    def __init__(self, folder: str, listening: socket.socket) -> None:
        """Pass a folder that only this socket uses; the caller must bind ``listening`` to ``path``, which is in it."""
        self._folder = folder
        self.listening = listening
        self.descriptor: int | None = None  # for a child to inherit that must reach the socket
        self.path = os.path.join(folder, "socket")  # to connect to

    @classmethod
    def opened(cls) -> PrivateSocket:
        """Open a socket in a new folder.  Raises OSError if no temporary folder can be made."""
        from tempfile import mkdtemp  # takes 0.3 MB, with shutil, which a server without such a socket does not need

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

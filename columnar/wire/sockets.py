"""Sockets: options, the kernel's view of a client's socket, and a socket that only this process tree can reach."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
import stat
from contextlib import suppress
from typing import Any, Final, cast

from columnar.errors import HostError
from columnar.wire.browsers import is_loopback

log = logging.getLogger("columnar.wire")

KEEPALIVE_IDLE_S: Final = 60
# Linux reports an end that follows unread bytes; other systems only a connection that is closed in both directions.
ENDED: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL


def name_of_peer(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "local"


def is_private(transport: asyncio.BaseTransport) -> bool:
    """Return whether nobody on the network reads what the client sends: TLS, a Unix socket, or this machine."""
    sock = transport.get_extra_info("socket")
    if transport.get_extra_info("ssl_object") is not None or (sock is not None and sock.family == socket.AF_UNIX):
        return True
    return is_loopback(name_of_peer(transport).rpartition(":")[0].strip("[]"))


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
        self._factory: Any = None  # of its connections
        self._private: asyncio.Server | None = None
        self._client_sockets: list[ClientSocket] = []
        self._others: list[asyncio.Server] = []  # of the client sockets

    async def listen(self, factory: Any, host: str, port: int) -> None:
        """Listen; port 0 takes a free port.  Raises OSError if the address is in use."""
        loop = asyncio.get_running_loop()
        self._factory = factory
        self._public = await loop.create_server(factory, host, port, backlog=1024, reuse_address=True)
        sockets = cast(Any, self._public).sockets  # asyncio's is a tuple, uvloop's a list
        self.port = sockets[0].getsockname()[1]

    async def listen_privately(self, factory: Any, listening: socket.socket) -> None:
        """Listen on a Unix socket too; the socket replaces an earlier private one."""
        if self._private is not None:
            self._private.close()
        self._private = await asyncio.get_running_loop().create_unix_server(factory, sock=listening)

    async def listen_beside(self, factory: Any, opened: ClientSocket) -> None:
        """Listen on a Unix socket of clients too; the path is removed at the end."""
        self._client_sockets.append(opened)
        self._others.append(await asyncio.get_running_loop().create_unix_server(factory, sock=opened.listening))

    async def close_public(self) -> None:
        """Listen no more, and serve the clients that have connected by now: a close of the socket would reset them."""
        if self._public is None:
            return
        waiting = [one for listening in cast(Any, self._public).sockets for one in _accept_waiting(listening.fileno())]
        self._public.close()
        try:
            while waiting:
                await take_accepted(self._factory, waiting.pop())
        finally:
            for one in waiting:
                one.close()

    def begin_close(self) -> None:
        """Listen no more."""
        for opened in self._client_sockets:
            opened.remove_path()
        self._client_sockets.clear()
        for server in (self._public, self._private, *self._others):
            if server is not None:
                server.close()

    async def wait_closed(self) -> None:
        for server in (self._public, self._private, *self._others):
            if server is not None:
                await server.wait_closed()
        self._public = self._private = None
        self._others.clear()


def _accept_waiting(descriptor: int) -> list[socket.socket]:
    """Accept the connections that wait at a listening socket; the kernel bounds their number by its backlog."""
    accepted = []
    with socket.socket(fileno=os.dup(descriptor)) as listening:
        listening.setblocking(False)
        try:
            while True:
                accepted.append(listening.accept()[0])
        except BlockingIOError:
            return accepted
        except OSError as error:  # no descriptor is free, or the socket is closed already
            log.warning("clients that had just connected are reset: %s", error)
            return accepted


async def take_accepted(factory: Any, connection: socket.socket) -> None:
    """Serve an accepted connection, which the callee owns.  A client that has disconnected is not an error."""
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(factory, connection)
    except OSError as error:
        log.info("a connection that was handed over has ended: %s", error)
        connection.close()


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


# --- the Unix socket of clients ----------------------------------------------------------------------

CLIENT_PATH_BYTES: Final = 107  # of ``sockaddr_un`` on Linux, without the end
CLIENT_MODE: Final = 0o660
CLIENT_BACKLOG: Final = 1_024


class ClientSocket:
    """The Unix socket of clients, which listens, and its path.  Constant."""

    def __init__(self, path: str, listening: socket.socket, bound: os.stat_result) -> None:
        """``bound`` is what the path was when the socket was bound to it."""
        self.listening = listening
        self._path = path
        self._bound = bound

    def remove_path(self) -> None:
        """Remove the path, unless it is another's by now.  Call before the socket is closed.

        A socket keeps its inode, so no other file has the same one.  Whether anybody listens at the path would not
        tell: the child of a fork does for a moment, until it runs another program.
        """
        with suppress(OSError):
            if os.path.samestat(os.lstat(self._path), self._bound):
                os.unlink(self._path)


def open_client_socket(path: str) -> ClientSocket:
    """Make the Unix socket of clients (``--socket``) and listen.  Raises HostError.

    The socket has the mode 0660: its owner and group, and the folder, say who may connect.  The socket of a killed
    store is replaced; the socket of a living one is not.
    """
    if len(os.fsencode(path)) > CLIENT_PATH_BYTES:
        raise HostError(f"--socket: a path has at most {CLIENT_PATH_BYTES} bytes, and this one more: {path}")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        mask = os.umask(0o777 & ~CLIENT_MODE)  # from its first moment on nobody else may connect
        try:
            listening.bind(path)
        finally:
            os.umask(mask)
        listening.listen(CLIENT_BACKLOG)
        listening.setblocking(False)
        return ClientSocket(path, listening, os.lstat(path))
    except OSError as error:
        listening.close()
        raise HostError(f"--socket: cannot listen on {path}: {error.strerror or error}") from error
    except HostError:
        listening.close()
        raise


def _remove_stale(path: str) -> None:
    """Remove a socket that nobody serves.  Raises HostError if the path is taken."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise HostError(f"--socket: {path} is there, and is no socket; choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise HostError(f"--socket: another process serves {path}; choose another path")

"""The address at which a peer listens for links: the path of a Unix socket, or host and port.

    unix:/run/columnar-4f/s1.4     a socket of this machine, in a folder that only the store's user may enter
    10.0.0.1:9096                  TCP; also HOST:PORT with a name, which is resolved for each connection
    [fe80::1]:9096                 TCP over IPv6

These are the text forms in records and messages.  A link over TCP needs proof of the cluster's secret (``hello``); a
Unix socket needs none, because only the store's own user reaches it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from columnar.runtime.name_lookup import NameLookup

UNIX_PREFIX: Final = "unix:"
MAX_PORT: Final = 65_535
PEER_SILENT_S: Final = 10  # as long as a leader waits for a node that renews its lease and answers nothing
_WATCHING: Final = {
    "TCP_KEEPIDLE": PEER_SILENT_S // 2,
    "TCP_KEEPINTVL": 2,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 1_000 * PEER_SILENT_S,  # milliseconds, of bytes that are not acknowledged
}

_NAMES: Final = NameLookup()  # of the peers of this process, as long as it lives

ProtocolFactory: TypeAlias = Callable[[], Any]  # of objects with the methods of asyncio.Protocol


@dataclass(frozen=True, slots=True)
class UnixAddress:
    path: str

    def __str__(self) -> str:
        return UNIX_PREFIX + self.path


@dataclass(frozen=True, slots=True)
class TcpAddress:
    host: str  # without brackets
    port: int  # 0, for ``listen`` only: any free port

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


PeerAddress: TypeAlias = UnixAddress | TcpAddress


def parse_address(text: str) -> PeerAddress:
    """Return the address of the text form.  Raises ValueError if the text is none."""
    if text.startswith(UNIX_PREFIX):
        path = text.removeprefix(UNIX_PREFIX)
        if not path:
            raise ValueError(f"{text!r} names no socket; write {UNIX_PREFIX}/PATH")
        return UnixAddress(path)
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if is_bracketed else host
    if not (colon and bare and port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ValueError(f"{text!r} is no address of a peer; write HOST:PORT, [IPV6]:PORT or {UNIX_PREFIX}/PATH")
    if is_bracketed != (":" in bare):
        raise ValueError(f"{text!r}: only an IPv6 address, and each one, stands in brackets, as in [::1]:9096")
    return TcpAddress(bare, int(port))


async def listen(
    address: PeerAddress, factory: ProtocolFactory, context: ssl.SSLContext | None = None
) -> asyncio.Server:
    """Listen at the address; ``context`` has TCP links speak TLS.  Raises OSError."""
    loop = asyncio.get_running_loop()
    made = cast(Callable[[], asyncio.Protocol], factory)
    if isinstance(address, UnixAddress):
        return await loop.create_unix_server(made, address.path)
    return await loop.create_server(made, address.host, address.port, ssl=context, reuse_address=True)


async def connect(address: PeerAddress, factory: ProtocolFactory, context: ssl.SSLContext | None = None) -> None:
    """Connect to a peer that listens at the address; ``context`` as for ``listen``.  Raises OSError.

    The caller bounds the time: a machine that is gone answers nothing.
    """
    loop = asyncio.get_running_loop()
    made = cast(Callable[[], asyncio.Protocol], factory)
    if isinstance(address, UnixAddress):
        await loop.create_unix_connection(made, address.path)
    else:
        name = address.host if context is not None else None
        connected = await _NAMES.connect(address.host, address.port)
        await loop.create_connection(made, sock=connected, ssl=context, server_hostname=name)


def port_of(server: asyncio.Server) -> int:
    """Return the TCP port at which ``server`` listens."""
    return int(cast(Any, server).sockets[0].getsockname()[1])  # asyncio's ``sockets`` is a tuple, uvloop's a list


def hosts_of(server: asyncio.Server) -> list[str]:
    """Return the IP addresses on which ``server`` listens; a name may have several."""
    return [str(one.getsockname()[0]) for one in cast(Any, server).sockets]  # as in ``port_of``


def watch_peer(transport: asyncio.BaseTransport) -> None:
    """Have the system end a connection over TCP whose peer's machine answers nothing for some PEER_SILENT_S.

    Without it, packets that get lost end a connection after a quarter of an hour.
    """
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _WATCHING.items():
        if hasattr(socket, name):  # on Linux
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def is_local(transport: asyncio.BaseTransport) -> bool:
    """Return whether the transport's socket is a Unix socket.  A transport without a socket counts as remote."""
    sock = transport.get_extra_info("socket")
    return sock is not None and sock.family == socket.AF_UNIX

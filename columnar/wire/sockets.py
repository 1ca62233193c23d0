"""Options and the state of a client's socket in the kernel."""

from __future__ import annotations

import asyncio
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

"""What the kernel is told about a client's socket, and what it knows of it."""

from __future__ import annotations

import select
import socket
from typing import Final

KEEPALIVE_IDLE_S: Final = 60
# Linux tells of an end behind unread bytes; elsewhere only a connection that is wholly over is seen.
_ENDED: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL


def has_ended(fd: int) -> bool:
    """Whether the peer has closed the connection or its side of it, whatever lies unread before.  Some 2 us."""
    poll = select.poll()
    poll.register(fd, _ENDED)
    return bool(poll.poll(0))


def tune(sock: socket.socket) -> None:
    """Small replies at once (a delayed one costs 40 ms), and dead peers found without an idle timeout."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)

"""The connection channel: a packet socket that passes client connections between a supervisor and a server.

    packet := service:u8 read:byte[0..READ_BYTES]     of SOCK_SEQPACKET, with one descriptor: the connection
    service   the service that the client has connected to: ``ports.THRIFT1_SERVICE`` or another of its constants
    read      bytes that a server has read from the connection and not answered: the beginning of the next request

The supervisor sends a connection to the server that is to serve it; the server returns a connection that a different
server is to continue.  A connection is passed only between two requests, so it has no other state: the receiver
detects the protocol from the next bytes, as from the first bytes of a new connection.

A packet arrives whole or not at all.  The queue of a channel is short (``net.unix.max_dgram_qlen``, 10 packets).
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import Final

READ_BYTES: Final = 64 * 1024  # a packet must be smaller than the send buffer of a socket, 208 KiB


@dataclass(frozen=True, slots=True)
class DispatchedConnection:
    """A connection that is passed on; its receiver closes it."""

    service: bytes
    connection: socket.socket
    read: bytes = b""


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_connection(channel: socket.socket, dispatched: DispatchedConnection) -> bool:
    """Send the connection, which the caller still has to close.

    Returns False if the queue is full or the other end is closed.  Does not block if the channel is non-blocking.
    """
    assert len(dispatched.read) <= READ_BYTES, "more does not fit a packet"
    try:
        socket.send_fds(channel, [dispatched.service, dispatched.read], [dispatched.connection.fileno()])
    except OSError:
        return False
    return True


def receive_connection(channel: socket.socket) -> DispatchedConnection | None:
    """Receive the next connection; returns None if the other end is closed, so that no more connections come.

    Raises BlockingIOError if no connection is queued, and OSError if a connection is lost because this process has no
    free descriptor.
    """
    packet, descriptors, _, _ = socket.recv_fds(channel, 1 + READ_BYTES, 1)
    if not packet:
        return None
    if not descriptors:
        raise OSError(errno.EMFILE, "no descriptor is left for a connection that was handed over")
    return DispatchedConnection(packet[:1], socket.socket(fileno=descriptors[0]), packet[1:])

"""A doorbell: a socket of packets that carries connections of clients between a supervisor and a server.

    packet := door:u8 read:byte[0..READ_BYTES]        of SOCK_SEQPACKET, with one descriptor: the connection
    door      the service that the client has connected to: ``doors.DOOR_1`` or ``DOOR_2``
    read      what a server has read of the connection and not answered: the beginning of the next request

The supervisor rings for a server that is to serve the connection; the server rings back for a connection that another
server is to go on with.  A connection travels between two requests only, so nothing else belongs to it: what it speaks
is found in its next bytes, as in the first ones.

A packet arrives whole or not at all.  The queue of a doorbell is short (``net.unix.max_dgram_qlen``, 10 packets).
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import Final

READ_BYTES: Final = 64 * 1024  # a packet must be smaller than the send buffer of a socket, 208 KiB


@dataclass(frozen=True, slots=True)
class DispatchedConnection:
    """A connection on its way; whoever has it closes it."""

    service: bytes
    connection: socket.socket
    read: bytes = b""


def pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a new doorbell."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_connection(doorbell: socket.socket, handed: DispatchedConnection) -> bool:
    """Send the connection, which the caller still has to close; False: the queue is full, or nobody is there.

    Does not block where the socket does not.
    """
    assert len(handed.read) <= READ_BYTES, "more does not fit a packet"
    try:
        socket.send_fds(doorbell, [handed.service, handed.read], [handed.connection.fileno()])
    except OSError:
        return False
    return True


def receive_connection(doorbell: socket.socket) -> DispatchedConnection | None:
    """The next connection; None: the other end is closed, and nothing more comes.

    BlockingIOError: none waits.  OSError: it is lost, as no descriptor is left.
    """
    packet, descriptors, _, _ = socket.recv_fds(doorbell, 1 + READ_BYTES, 1)
    if not packet:
        return None
    if not descriptors:
        raise OSError(errno.EMFILE, "no descriptor is left for a connection that was handed over")
    return DispatchedConnection(packet[:1], socket.socket(fileno=descriptors[0]), packet[1:])

"""The generator's connection over TLS, which encrypts and decrypts between the generator and the socket.

Python's ssl works on two buffers in memory, so a whole answer costs as many system calls as without TLS; an
``SSLSocket`` makes two of each record.

Invariants:
    I1. The handshake is over when the connection is returned, before the clock starts.
    I2. Nothing that can be decrypted is left after ``recv``: the socket alone says when there is more.
    I3. Encrypted bytes are sent before anything else, so nothing is encrypted twice.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from columnar.bench.address import Endpoint, Misaddressed
from columnar.bench.connections import RECEIVE_BYTES, SILENCE_S, Connection, plain_socket
from columnar.bench.workloads import Session
from columnar.client.tls import ClientTls
from columnar.errors import HostError, IllegalArgument

RECORD_BYTES: Final = 16 * 1024  # the most that one record of TLS holds


def context_of(tls: ClientTls) -> ssl.SSLContext:
    """Return the context.  Raises Misaddressed if the files cannot be used."""
    try:
        context = tls.context()
    except (HostError, IllegalArgument) as error:
        raise Misaddressed(error.text) from None
    context.options |= ssl.OP_NO_RENEGOTIATION  # else a write could want to read first
    return context


def connector(endpoint: Endpoint) -> Callable[[Session], Connection]:
    """Return a function that makes the connections of a run, plain or TLS. Raises Misaddressed."""
    host, port = endpoint.host, endpoint.port
    if endpoint.tls is None:
        return lambda session: Connection(plain_socket(host, port), session)
    context = context_of(endpoint.tls)
    return lambda session: TlsConnection(TlsStream.begun(plain_socket(host, port), context, host), session)


class TlsConnection(Connection):
    __slots__ = ()

    def receive(self) -> bytes | None:
        try:
            return Connection.receive(self)
        except ssl.SSLWantReadError:
            return None  # a part of a record, or tickets, which are no answer


class TlsStream:
    """A TLS stream with the methods of a non-blocking socket; its user sends one frame at a time."""

    __slots__ = ("_incoming", "_outgoing", "_sock", "_tls", "_unsent")

    def __init__(
        self, sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        """Take a ``tls`` object on the two buffers, before its handshake (``begun``)."""
        self._sock = sock
        self._tls = tls
        self._incoming, self._outgoing = incoming, outgoing
        self._unsent = memoryview(b"")  # ciphertext that the socket has not taken

    @classmethod
    def begun(cls, sock: socket.socket, context: ssl.SSLContext, host: str) -> TlsStream:
        """Shake hands over the connected ``sock``.  Raises OSError, and closes ``sock``, if the handshake fails."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            stream = cls(sock, context.wrap_bio(incoming, outgoing, server_hostname=host), incoming, outgoing)
            stream._shake_hands()
        except (OSError, ValueError):
            with suppress(OSError):
                sock.send(outgoing.read())  # the alert that says why
            sock.close()
            raise
        return stream

    def _shake_hands(self) -> None:
        self._sock.settimeout(SILENCE_S)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._sock.sendall(self._outgoing.read())
            data = self._sock.recv(RECEIVE_BYTES)
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()
        self._sock.sendall(self._outgoing.read())
        self._sock.setblocking(False)

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, data: bytes | memoryview) -> int:
        """Send all of ``data`` and return its length, or return 0.

        After a 0 the caller must call again with the same data, as OpenSSL requires.
        """
        if self._unsent:
            return self._send_on(len(data))
        done = self._tls.write(data)
        if done < len(data):  # a record at a time
            rest = memoryview(data)
            while done < len(data):
                done += self._tls.write(rest[done:])
        encrypted = self._outgoing.read()
        try:
            sent = self._sock.send(encrypted)
        except BlockingIOError:
            sent = 0
        if sent == len(encrypted):
            return done
        self._unsent = memoryview(encrypted)[sent:]
        return 0

    def _send_on(self, whole: int) -> int:
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        return 0 if self._unsent else whole

    def recv(self, size: int) -> bytes:
        """Return the data received, from at most ``size`` bytes of ciphertext; empty if the endpoint has ended.

        Raises SSLWantReadError if no record is whole.  An answer of TLS itself (new keys) goes out with the next call.
        """
        data = self._sock.recv(size)
        if not data:
            return b""
        tls, incoming = self._tls, self._incoming
        incoming.write(data)
        try:
            found = tls.read(RECORD_BYTES)
        except ssl.SSLZeroReturnError:
            return b""
        if not incoming.pending and not tls.pending():
            return found
        parts = [found]
        with suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            while (incoming.pending or tls.pending()) and (more := tls.read(RECORD_BYTES)):
                parts.append(more)
        return b"".join(parts)

    def close(self) -> None:
        if not self._unsent:  # in the middle of a record the farewell would be taken for its rest
            with suppress(OSError):
                self._tls.unwrap()  # it waits for the endpoint's farewell too, which is not needed
            with suppress(OSError):
                self._sock.send(self._outgoing.read())
        self._sock.close()

"""A mail server on loopback that keeps its mails: enough of SMTP for one client at a time."""

from __future__ import annotations

import email
import email.policy
import queue
import socket
import threading
from contextlib import suppress
from email.message import EmailMessage


class SmtpServer:
    """The server, a context manager; ``mails`` are in the order of their arrival."""

    def __init__(self, *, drops: str = "", farewell: bytes = b"221 bye") -> None:
        """Break the connection at a recipient whose address has ``drops`` in it; answer ``farewell`` to QUIT.

        b"" breaks the connection there, too.
        """
        self._drops, self._farewell = drops.encode(), farewell
        self.connections = 0
        self.mails: list[EmailMessage] = []
        self._arrived: queue.SimpleQueue[EmailMessage] = queue.SimpleQueue()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> SmtpServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        self._thread.join(10)

    def next_mail(self, timeout_s: float = 20) -> EmailMessage:
        """Return the next mail that was not taken yet.  Raises queue.Empty."""
        return self._arrived.get(timeout=timeout_s)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with suppress(ConnectionError), connection, connection.makefile("rwb") as stream:  # a client was killed
                self._talk(stream)

    def _talk(self, stream: socket.SocketIO) -> None:  # type: ignore[name-defined]
        def say(line: bytes) -> None:
            stream.write(line + b"\r\n")
            stream.flush()

        say(b"220 here")
        while line := stream.readline():
            word = line[:4].upper().strip()
            if word == b"DATA":
                say(b"354 go on")
                lines = []
                while (line := stream.readline()) not in (b".\r\n", b""):
                    lines.append(line.removeprefix(b"."))
                self.mails.append(email.message_from_bytes(b"".join(lines), policy=email.policy.default))  # type: ignore[arg-type]
                self._arrived.put(self.mails[-1])
                say(b"250 kept")
            elif word == b"QUIT":
                if self._farewell:
                    say(self._farewell)
                return
            elif word == b"RCPT" and self._drops and self._drops in line:
                return
            else:
                say(b"250 ok")

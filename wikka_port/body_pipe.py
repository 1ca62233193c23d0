"""The body of a request that is read while it arrives: a bounded pipe from the server's loop to a thread.

    the reader      waiting --first read--> reading --``end_reading``--> ended
    the sender      sending --``end``--> whole,  or  sending --``break_off``--> broken

Invariants:
    I1. The pipe has at most PIPE_BYTES and one piece of RECEIVED_BYTES.
    I2. Before the first read and while the pipe is full, ``wants_bytes`` is false: the loop reads nothing from the
        socket, so the kernel's window stops the client.
    I3. A reader never waits for a sender that is whole or broken.
    I4. After ``end_reading`` the pipe is empty, and what arrives is dropped.

Knows nothing of HTTP and sockets.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from wikka_port.limits import PIPE_BYTES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_ROOM_BYTES: Final = PIPE_BYTES // 2  # the loop is woken when a full pipe has become this empty


class ClientDisconnected(ConnectionError):
    """The connection ended before the body did."""

    def __init__(self) -> None:
        super().__init__("the client disconnected before the request was whole")


class BodyPipe(io.RawIOBase):
    """A stream for one reading thread; the loop feeds it.  Thread-safe."""

    def __init__(self, on_first_read: Callable[[], None], wake: Callable[[], None]) -> None:
        """Take ``on_first_read``, which the reader calls before it reads, and ``wake`` for the loop.

        If ``on_first_read`` raises, nothing was read, and the next read calls it again.
        """
        super().__init__()
        self._on_first_read = on_first_read
        self._wake = wake
        self._changed = threading.Condition()
        # guarded by _changed
        self._bytes = bytearray()
        self._reader: Literal["waiting", "reading", "ended"] = "waiting"
        self._sender: Literal["sending", "whole", "broken"] = "sending"

    # --- the loop ---------------------------------------------------------------------------------

    @property
    def wants_bytes(self) -> bool:
        if self._reader == "reading":
            return len(self._bytes) < PIPE_BYTES
        return self._reader == "ended"

    @property
    def is_dropping(self) -> bool:
        """Whether the reader has ended, so that what arrives is dropped."""
        return self._reader == "ended"

    def append(self, piece: bytes) -> None:
        """Take bytes of the body; named as in waitress's buffers."""
        with self._changed:
            if self._reader != "ended":
                self._bytes += piece
                self._changed.notify()

    def end(self) -> None:
        """Note that the body is whole."""
        self._end_sending("whole")

    def break_off(self) -> None:
        """Note that no more bytes will come; a body that is whole stays so."""
        self._end_sending("broken")

    def _end_sending(self, how: Literal["whole", "broken"]) -> None:
        with self._changed:
            if self._sender == "sending":
                self._sender = how
                self._changed.notify()

    # --- the reader -------------------------------------------------------------------------------

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read what is there, and wait if there is nothing.  Returns 0 at the end.

        Raises ClientDisconnected if the body is broken and all that came of it was read.
        """
        self._begin()
        with self._changed:
            while not self._bytes and self._sender == "sending" and self._reader == "reading":
                self._changed.wait()
            if self._sender == "broken" and not self._bytes:
                raise ClientDisconnected
            before = len(self._bytes)
            into = memoryview(buffer).cast("B")
            size = min(len(into), before)
            into[:size] = self._bytes[:size]
            del self._bytes[:size]
            has_room = before > _ROOM_BYTES >= before - size
        if has_room:
            self._wake()
        return size

    def end_reading(self) -> None:
        """Drop the rest of the body."""
        with self._changed:
            self._reader = "ended"
            self._bytes.clear()
            self._changed.notify()
        self._wake()

    def _begin(self) -> None:
        if self._reader != "waiting":
            return
        self._on_first_read()
        with self._changed:
            if self._reader == "waiting":
                self._reader = "reading"
        self._wake()

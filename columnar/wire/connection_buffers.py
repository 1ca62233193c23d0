"""The buffered bytes of a connection: received requests without an answer, and unsent replies.

``connection_table`` bounds the total of each over all connections of a port, and is notified of each change.  Replies
leave only while the lease of the process holds (``coordination.lease_gate``); withheld replies count as unsent.  Owned
by the loop.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import TYPE_CHECKING, Final

from columnar.limits import LEASE_WAIT_S
from columnar.wire.connection_table import ConnectionTable, Served

if TYPE_CHECKING:
    from columnar.wire.http_transport import HttpTransport

UNTRACKED_OUTPUT_BYTES: Final = 16 * 1024  # the table does not count less unsent output: 160 MB for 10,000
JOINED_BYTES: Final = 64 * 1024  # more bytes of replies are sent piece by piece: a join would copy them
_FRAME: Final = Struct(">I").pack


class ConnectionInput:
    def __init__(self, table: ConnectionTable) -> None:
        self._table = table
        self._transport: asyncio.Transport | None = None
        self._is_paused = False  # the socket is not read
        self.buffered_bytes = 0  # of input that waits and may be refused: half a message, or requests read ahead
        self.counted_bytes = 0  # these and those of the request that is served, as last reported to the table

    def begin_reading(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def count_input(self, buffered_bytes: int, serving_bytes: int) -> None:
        """Report the input to the table; ``serving_bytes`` is the size of the request being served."""
        self.buffered_bytes = buffered_bytes
        total = buffered_bytes + serving_bytes
        if total != self.counted_bytes:
            before, self.counted_bytes = self.counted_bytes, total
            self._table.input_changed(total - before)

    def spare(self) -> None:
        """Let the table choose other connections until more input is counted."""
        self.buffered_bytes = 0

    def pause_reading(self, pause: bool) -> None:
        transport = self._transport
        if transport is None or pause == self._is_paused or transport.is_closing():
            return
        self._is_paused = pause
        if pause:
            transport.pause_reading()
        else:
            transport.resume_reading()


class ConnectionOutput:
    def __init__(self, table: ConnectionTable) -> None:
        self._table = table
        self._transport: asyncio.Transport | None = None
        self.parts: list[bytes | memoryview] = []  # replies of this time slice, or withheld ones
        self.size_bytes = 0  # of these
        self.is_paused = False  # the transport has more than it is to buffer, or replies are withheld
        self.withheld_bytes = 0  # of all parts, if they are withheld
        self.unsent_bytes = 0  # as last reported to the table
        self._owner: WithheldReplies | None = None  # that waits at the gate, if replies are withheld
        self._is_full = False  # the transport has more than it is to buffer
        self._is_closing = False  # once the withheld replies are sent

    def begin_writing(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=UNTRACKED_OUTPUT_BYTES)

    def add_reply(self, reply: bytes | memoryview, http: HttpTransport | None, is_framed: bool) -> None:
        """Add a reply for ``send_replies`` to send.  Outside HTTP an empty reply (of a oneway method) adds nothing."""
        self.size_bytes += len(reply)
        if http is not None:
            self.parts += http.answer(reply)
        elif reply:
            if is_framed:
                self.parts.append(_FRAME(len(reply)))
            self.parts.append(reply)

    def add_parts(self, parts: list[bytes | memoryview]) -> None:
        """Add what is whole already, for ``send_replies`` to send."""
        self.size_bytes += sum(map(len, parts))
        self.parts += parts

    def send_replies(self, connection: Served) -> None:
        """Pass the added replies to the transport, or withhold them, as replies of ``connection``, at the gate.

        While replies are withheld, only ``release`` sends, so that they keep their order.
        """
        transport, parts = self._transport, self.parts
        if transport is None or not parts:
            return
        gate = self._table.gate
        if gate is not None and (self.withheld_bytes or not gate.is_open()):
            if self._owner is None:
                self._owner = WithheldReplies(self._table, connection)
                gate.wait(self._owner)
            self.is_paused = True
            self.withheld_bytes = max(1, sum(map(len, parts)))
            self.count_output()
            return
        self._write(transport, parts)

    def release(self) -> bool:
        """Send the withheld replies if the lease holds; return whether it does."""
        gate, owner, transport = self._table.gate, self._owner, self._transport
        if gate is None or owner is None or transport is None:
            return True  # nothing is withheld
        if not gate.is_open():
            gate.wait(owner)
            return False
        self._owner, self.withheld_bytes, self.is_paused = None, 0, self._is_full
        self._write(transport, self.parts)
        self.count_output()
        if self._is_closing:
            self.close()
        return True

    def leave_gate(self) -> None:
        """Drop the withheld replies: the connection has ended."""
        gate, owner = self._table.gate, self._owner
        if gate is not None and owner is not None:
            gate.forget(owner)
            self._owner, self.withheld_bytes, self.parts, self.size_bytes = None, 0, [], 0

    def _write(self, transport: asyncio.Transport, parts: list[bytes | memoryview]) -> None:
        self.parts = []
        size, self.size_bytes = self.size_bytes, 0
        if transport.is_closing():
            return  # the client does not read any more
        if size > JOINED_BYTES:
            transport.writelines(parts)
        else:
            transport.write(parts[0] if len(parts) == 1 else b"".join(parts))
        if self.is_paused:
            self.count_output()

    def pause_writing(self) -> None:
        self._is_full = self.is_paused = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.is_paused = self.withheld_bytes > 0
        before, self.unsent_bytes = self.unsent_bytes, self.withheld_bytes
        self._table.output_changed(self.unsent_bytes - before)

    def count_output(self) -> None:
        """Report the number of unsent bytes to the table."""
        self._table.output_changed(self.counted_again())

    def counted_again(self) -> int:
        """Count the unsent bytes; returns the change since the last report."""
        before, self.unsent_bytes = self.unsent_bytes, self.unsent_now()
        return self.unsent_bytes - before

    def unsent_now(self) -> int:
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return unsent + self.withheld_bytes

    @property
    def is_over(self) -> bool:
        """Whether replies are withheld, or over ``output_bytes`` of them unsent, because the client does not read."""
        return self.withheld_bytes > 0 or self.unsent_now() + self.size_bytes > self._table.limits.output_bytes

    def notify_when_sent(self) -> None:
        """Have the transport call ``resume_writing`` when every byte is sent."""
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=0)

    def close(self) -> None:
        """Close the connection when every byte is sent, also if some are withheld."""
        if self.withheld_bytes:
            self._is_closing = True
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> int:
        """End the connection and drop its unsent bytes; returns their number as last reported to the table."""
        self.leave_gate()
        if self._transport is not None:
            self._transport.abort()
        dropped, self.unsent_bytes = self.unsent_bytes, 0
        return dropped


class WithheldReplies:
    """A connection at the gate (``lease_gate.Withheld``)."""

    def __init__(self, table: ConnectionTable, connection: Served) -> None:
        self._table = table
        self._connection = connection

    def gate_opened(self) -> None:
        if self._connection.output.release():
            self._connection.rest()

    def gate_expired(self) -> None:
        """Close the connection: its client cannot know the outcome of its calls."""
        self._table.output_changed(-self._connection.abort(f"this process has had no lease for {LEASE_WAIT_S:g} s"))

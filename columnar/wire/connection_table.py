"""The connections of a port, and the bounds over all of them together.

The bytes of requests and of unsent replies are counted over all connections.  If a total exceeds its bound, the largest
half-received request or unsent reply is dropped: it is most likely the cause, and one victim is better than many.  A
request that is being served is never dropped, because its client could not know the outcome.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from columnar import limits
from columnar.coordination.lease_gate import LeaseGate
from columnar.errors import CallQueueTooBig, ColumnarError
from columnar.limits import SMALL_REQUEST_BYTES

if TYPE_CHECKING:
    from columnar.wire.connection_buffers import ConnectionInput, ConnectionOutput

# In compiled code, lambdas would make a closure at each call of the methods that use them.
_BUFFERED_BYTES: Final = attrgetter("input.buffered_bytes")
_UNSENT_BYTES: Final = attrgetter("output.unsent_bytes")


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Bounds of one port; ``columnar.limits`` states the reasons."""

    message_bytes: int = limits.MESSAGE_BYTES
    drained_bytes: int = limits.DRAINED_FRAME_BYTES
    connections: int = limits.CONNECTIONS
    input_bytes: int = limits.CONNECTION_INPUT_BYTES
    output_bytes: int = limits.CONNECTION_OUTPUT_BYTES
    server_input_bytes: int = limits.SERVER_INPUT_BYTES
    server_output_bytes: int = limits.SERVER_OUTPUT_BYTES


class Served(Protocol):
    """A connection, whatever it speaks."""

    input: ConnectionInput
    output: ConnectionOutput

    def begin_close(self) -> None:
        """Finish the call in flight, answer it, close."""

    def abort(self, why: str) -> int:
        """End the connection; returns the number of unsent bytes, as ``ConnectionOutput.abort`` does."""

    def rest(self, ahead: bool = False) -> None:
        """Continue in a later slice of the loop."""

    def shed_input(self, error: ColumnarError) -> bool:
        """Refuse the first waiting request, or close.  Returns False if that request is refused already."""


class ConnectionTable:
    def __init__(self, limits: WireLimits, gate: LeaseGate | None) -> None:
        """Pass ``gate``: replies leave only while it is open; None in a process without a lease."""
        self.limits = limits  # constant, as is the next one
        self.gate = gate
        self.connections: set[Served] = set()
        self.input_bytes = 0  # of half-received messages, queued requests, and requests whose reply is pending
        self.output_bytes = 0  # of unsent replies to clients that read slowly
        self._empty = asyncio.Event()

    def __len__(self) -> int:
        return len(self.connections)

    def admit(self, connection: Served) -> bool:
        if len(self.connections) >= self.limits.connections:
            return False
        self.connections.add(connection)
        return True

    def forget_connection(self, connection: Served) -> bool:
        """Forget a connection that has ended.  Returns False if the connection had never been admitted."""
        if connection not in self.connections:
            return False
        self.connections.remove(connection)
        self.input_bytes -= connection.input.counted_bytes
        self.output_bytes -= connection.output.unsent_bytes
        if not self.connections:
            self._empty.set()
        return True

    async def wait_empty(self) -> None:
        """Wait until no connection is left."""
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    async def close_all(self, grace_s: float) -> None:
        """Let calls in flight finish for up to ``grace_s``, and close all connections."""
        for connection in list(self.connections):
            connection.begin_close()
        try:
            await asyncio.wait_for(self.wait_empty(), grace_s)
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort("the server stops and its time of grace is over")

    # --- input -------------------------------------------------------------------------------------------

    def input_changed(self, delta: int) -> None:
        self.input_bytes += delta
        if delta > 0 and self.input_bytes > self.limits.server_input_bytes:
            waiting = [one for one in self.connections if one.input.buffered_bytes > SMALL_REQUEST_BYTES]
            waiting.sort(key=_BUFFERED_BYTES, reverse=True)
            error = self.full()
            for one in waiting:
                if one.shed_input(error):
                    break

    def has_room(self, more_bytes: int) -> bool:
        """Return whether a request that adds ``more_bytes`` of input may begin."""
        return self.input_bytes + more_bytes <= self.limits.server_input_bytes

    def full(self) -> CallQueueTooBig:
        return CallQueueTooBig(f"{self.input_bytes} bytes of requests are here and not answered; send it again later")

    @property
    def read_ahead_bytes(self) -> int:
        """The number of bytes to read ahead on one connection, after the request that is served."""
        return self.limits.input_bytes if self.has_room(0) else 0

    # --- output ------------------------------------------------------------------------------------------

    def output_changed(self, delta: int) -> None:
        """Add ``delta`` to the unsent bytes; if they exceed the bound, abort the connection with the most unsent bytes.

        ``unsent_bytes`` of other connections is as of their last write, so it is updated before one is aborted.
        """
        self.output_bytes += delta
        if delta <= 0 or self.output_bytes <= self.limits.server_output_bytes:
            return
        for other in self.connections:
            if other.output.unsent_bytes:
                self.output_bytes += other.output.counted_again()
        if self.connections and self.output_bytes > self.limits.server_output_bytes:
            fullest = max(self.connections, key=_UNSENT_BYTES)
            why = f"{self.output_bytes} bytes are unsent on all connections, most of them here"
            # Its buffer is freed with it.  If its bytes stayed counted until the loop reports the end, a second
            # connection would be aborted.
            self.output_bytes -= fullest.abort(why)

"""The sending side of a link: frames that wait for the transport, and their writes.

    closed     the link greets its peer, or has ended: frames are queued, none is written
    open       all frames of one loop iteration go out in one write, unless the transport is paused
    withheld   the lease of this process does not hold (``coordination.lease_gate``): frames wait at the gate, and
               nothing is read from the peer, so that no answers to further requests gather.  After LEASE_WAIT_S the
               link ends, except one that outlasts the lease

Invariants (``check_invariants``):
    W1. ``queued_bytes`` is the size of the queued frames.
    W2. Each write of frames follows a question to the gate, which found that the lease holds.
    W3. A call is reported as written exactly if the transport took its bytes.

Knows nothing of calls without an answer, and of the meaning of frames.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from columnar.cluster.peer_frames import Frame
from columnar.cluster.refusals import Refusal
from columnar.coordination.lease_gate import LeaseGate
from columnar.limits import LEASE_WAIT_S
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

WRITE_BYTES: Final = 256 * 1024  # a write ends after this many bytes, so that later frames are not copied with it
JOINED_BYTES: Final = 64 * 1024  # as in ``wire.connection``


class Call(Protocol):
    """The caller's side of a call; each method but ``frame_written`` ends the call."""

    def frame_written(self) -> None:
        """Note that the transport has the call's bytes."""

    def not_sent(self) -> None:
        """Notify the call that nothing of it has left this process."""

    def take_reply(self, frame: Frame) -> None:
        """Take the reply ``frame``; an implementation that keeps it for long copies its body."""

    def refused(self, refusal: Refusal) -> None: ...

    def link_broke(self) -> None:
        """Notify the call, after ``frame_written``, that the link broke: the peer may have carried it out."""


class QueuedFrame:
    """A frame queued for the transport."""

    __slots__ = ("body", "call", "head", "size_bytes", "waits")

    def __init__(self, head: bytes, body: bytes | memoryview, call: Call | None) -> None:
        self.head = head
        self.body = body
        self.call = call  # None: an answer, or it was recalled
        self.size_bytes = len(head) + len(body)
        self.waits = True  # for the transport

    def recall(self) -> None:
        """Send nothing of the frame: its caller has gone."""
        self.call = None
        self.empty()

    def note_written(self) -> None:
        self.waits = False
        if self.call is not None:
            self.empty()

    def empty(self) -> None:
        """Drop the bytes: the frame was sent, or will not be."""
        self.head = self.body = b""
        self.size_bytes = 0


class FrameWriter:
    def __init__(
        self, gate: LeaseGate | None, on_failed: Callable[[str], None], *, outlasts_lease: bool = False
    ) -> None:
        """``gate`` is None in a process without a lease.  ``on_failed`` ends the link, with the reason."""
        self.queued_bytes = 0
        self._gate = gate
        self._outlasts_lease = outlasts_lease
        self._on_failed = on_failed
        self._queue: deque[QueuedFrame] = deque()
        self._transport: asyncio.Transport | None = None  # None: closed
        self._is_paused = False
        self._flush_is_planned = False  # by the loop, or by the gate while frames are withheld

    def open_transport(self, transport: asyncio.Transport) -> None:
        """Write the queued frames, and all that follow."""
        self._transport = transport
        self._plan_flush()

    def send_frame(self, queued: QueuedFrame) -> None:
        self._queue.append(queued)
        self.queued_bytes += queued.size_bytes
        if not self._flush_is_planned:
            self._plan_flush()

    def recall(self, queued: QueuedFrame) -> None:
        """Send nothing of a frame that waits."""
        self.queued_bytes -= queued.size_bytes
        queued.recall()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._plan_flush()

    def close(self) -> None:
        """Drop the queued frames, and write no more."""
        self._transport = None
        self._queue.clear()
        self.queued_bytes = 0
        if self._gate is not None:
            self._gate.forget(self)

    def _plan_flush(self) -> None:
        if self._flush_is_planned or self._is_paused or self._transport is None or not self._queue:
            return
        self._flush_is_planned = True
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_planned = False
        gate = self._gate
        try:
            while self._queue and not self._is_paused and self._transport is not None:
                if gate is not None and not gate.is_open():
                    self._flush_is_planned = True
                    self._transport.pause_reading()
                    gate.wait(self)
                    return
                self._write_some(self._transport)
        except Exception as fault:  # noqa: BLE001 - what the peer got is unknown: callers are notified of the end
            FAULTS.met("links of servers", fault)
            self._on_failed(f"frames could not be sent: {fault}")

    def _write_some(self, transport: asyncio.Transport) -> None:
        parts: list[bytes | memoryview] = []
        written: list[QueuedFrame] = []
        size = 0
        while self._queue and size < WRITE_BYTES:
            queued = self._queue.popleft()
            size += queued.size_bytes
            parts.append(queued.head)
            parts.append(queued.body)
            queued.note_written()
            if queued.call is not None:
                written.append(queued)
        self.queued_bytes -= size
        if size <= JOINED_BYTES:
            transport.write(b"".join(parts))  # a copy costs less than to hand over each part
        else:
            transport.writelines(parts)
        for queued in written:
            assert queued.call is not None, "chosen for it"
            notify(queued.call.frame_written)

    # --- lease_gate.Withheld -------------------------------------------------------------------------

    def gate_opened(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()
        self._flush()

    def gate_expired(self) -> None:
        if self._outlasts_lease and self._gate is not None and self._transport is not None:
            self._gate.wait(self)
            return
        self._on_failed(f"this process has had no lease for {LEASE_WAIT_S:g} s")

    def check_invariants(self, waiting: Iterable[QueuedFrame]) -> None:
        """``waiting``: the frames of calls that were not reported as written."""
        assert [queued for queued in self._queue if queued.call is not None] == list(waiting), "W3"
        assert self.queued_bytes == sum(queued.size_bytes for queued in self._queue), "W1"


def notify(event: Callable[[], None]) -> None:
    """Notify a caller; its fault must not keep other callers from being notified."""
    try:
        event()
    except Exception:  # noqa: BLE001 - as in ``PeerLink._take_answer``
        _log.exception("the caller of a peer failed")

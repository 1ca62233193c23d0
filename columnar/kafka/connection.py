"""A client connection of the Kafka port: frames in, answers out in the same order.

States (a connection may be in several; it begins requests only when in none of them):

    busy      a request is not answered, and the next one may not overlap with it: only Produce overlaps with Produce
    blocked   more than ``output_bytes`` are unsent: the client does not read; or the lease does not hold
    closing   no further request is begun; answers of those that have begun are still sent

Requests that overlap begin in their order; ``RecordHandlers`` keeps the order of a producer's batches.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import ColumnarError
from columnar.kafka.call import Address
from columnar.kafka.codec import BadMessage, Head, read_head
from columnar.kafka.requests import may_overlap
from columnar.topics.topic_calls import TopicClient
from columnar.wire.served_connection import ServedConnection

if TYPE_CHECKING:
    from columnar.kafka.server import KafkaServer

OVERLAPPING: Final = 8  # requests of a connection that are carried out at once
_SIZE: Final = Struct(">i")


@dataclass(frozen=True, slots=True)
class _Begun:
    """A request that is carried out, or whose answer waits for those before it."""

    task: asyncio.Task[bytearray | None]
    size_bytes: int
    may_overlap: bool


class KafkaConnection(ServedConnection):
    _server: KafkaServer
    log = logging.getLogger("columnar.kafka")

    def __init__(self, server: KafkaServer) -> None:
        super().__init__(server)
        self._client = TopicClient("", "", self.has_gone)  # another one from connection_made on
        self._address = Address("", 0)
        self._received = bytearray()
        self._begun: deque[_Begun] = deque()

    # --- what the loop calls ---------------------------------------------------------------------------

    def _connected(self, transport: asyncio.BaseTransport) -> None:
        self._client = TopicClient(self._peer, "", self.has_gone)
        self._address = self._server.address_of(transport)

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            self._received += data
            self._serve()

    def eof_received(self) -> bool:
        self._has_gone = True
        return False

    def resume_writing(self) -> None:
        self.output.resume_writing()
        self._serve()

    def _drop_input(self) -> None:
        self._received.clear()

    # --- what table and server call --------------------------------------------------------------------

    def begin_close(self) -> None:
        """Close when the requests that have begun are answered; those that wait are told that nobody does."""
        self._closing = self._has_gone = True
        if not self._begun:
            self.output.close()

    def close_between(self) -> None:
        """Close as ``begin_close`` does: the server leaves."""
        self.begin_close()

    def shed_input(self, error: ColumnarError) -> bool:
        self.input.spare()
        if self._begun or self._closing:
            return False
        self._server.table.output_changed(-self.abort(f"half a request is here, and {error}"))
        return True

    def rest(self, ahead: bool = False) -> None:
        """Go on in a later iteration of the loop."""
        asyncio.get_running_loop().call_soon(self._serve)

    # --- serving ---------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Begin the requests that are here and may begin."""
        try:
            while not (self._closing or self._is_blocked):
                size = self._frame_size()
                if size is None:
                    break
                frame = bytes(memoryview(self._received)[_SIZE.size : _SIZE.size + size])
                head = read_head(frame)
                if not self._may_begin(head, size):
                    break
                del self._received[: _SIZE.size + size]
                self._begin(frame, head)
        except BadMessage as fault:
            self._refuse(fault)
        self._count()

    def _frame_size(self) -> int | None:
        """Return the size of the next request, or None if it is not here.  Raises BadMessage."""
        if len(self._received) < _SIZE.size:
            return None
        size: int = _SIZE.unpack_from(self._received)[0]
        if not 0 <= size <= self._server.frame_bytes:
            raise BadMessage(f"a request of {size} bytes: at most {self._server.frame_bytes} are taken")
        return size if len(self._received) >= _SIZE.size + size else None

    def _may_begin(self, head: Head, size: int) -> bool:
        if not self._begun:
            return True
        fits = self._server.table.has_room(size) and len(self._begun) < OVERLAPPING
        return fits and may_overlap(head) and self._begun[-1].may_overlap

    def _begin(self, frame: bytes, head: Head) -> None:
        host = self._client.peer.rpartition(":")[0]
        work = self._server.requests.answer(frame, head, self._client, host, self._address)
        task = self._server.run(work)
        self._begun.append(_Begun(task, len(frame), may_overlap(head)))
        task.add_done_callback(self._done)

    def _done(self, _task: asyncio.Task[Any]) -> None:
        """Send the answers whose turn it is."""
        while self._begun and self._begun[0].task.done():
            task = self._begun.popleft().task
            if self._fd < 0:
                if not task.cancelled():
                    task.exception()  # the server has logged it
                continue
            if task.cancelled():
                self._server.table.output_changed(-self.abort("the server stopped before the request was done"))
                return
            error = task.exception()
            if error is not None:
                self._refuse(error)
                return
            answer = task.result()
            if answer is not None:
                self.output.add_parts([memoryview(answer)])
        if self._fd < 0:
            return
        self.output.send_replies(self)
        if self._closing and not self._begun:
            self._count()
            self.output.close()
        else:
            self._serve()

    def _refuse(self, fault: BaseException) -> None:
        """Close the connection: the protocol has no answer to this."""
        if isinstance(fault, BadMessage):
            self.log.warning("%s: closed: %s", self._peer, fault)
        else:
            self.log.error("%s: a request failed", self._peer, exc_info=fault)
        self._closing = self._has_gone = True
        self._received.clear()
        self.output.send_replies(self)
        self.output.close()

    # --- bounds ----------------------------------------------------------------------------------------

    @property
    def _is_blocked(self) -> bool:
        return self.output.is_paused and self.output.is_over

    def _count(self) -> None:
        """Report what is buffered, and read on if there is room."""
        if self._fd < 0:
            return
        serving = sum(one.size_bytes for one in self._begun)
        self.input.count_input(len(self._received), serving)
        is_ahead = bool(self._begun) and len(self._received) > self._server.table.read_ahead_bytes
        self.input.pause_reading(self._closing or self._is_blocked or is_ahead)

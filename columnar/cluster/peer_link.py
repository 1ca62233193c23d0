"""A link to a peer: one socket, frames in both directions, many concurrent calls and requests from either side.

    greeting   the link's own hello is in flight; calls and requests wait for the peer's hello
    open       frames go out; all frames that one loop iteration sends go out in one write
    ended      the link broke, or was closed, or one side found the other's hello or frames bad

A call that the link takes ends once: with an answer, with a refusal, as not sent, or with the link.  A request is a
future that ends in one of these ways.  Once the transport has taken the bytes of a call, the peer may have carried the
call out, however the call ends.

Invariants (``check_invariants``):
    P1. Each call and request ends once, also if the link ends or was never open.
    P2. A call that was reported as written is never reported as not sent.
    P3. Frames that wait for the transport hold at most ``limits.PEER_QUEUED_BYTES`` and one frame more; a call
        beyond that is not sent.  Answers have no bound of their own, because the calls that they answer have one.

Knows nothing of routes, of the meaning of a call, and of the handlers.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, Protocol, TypeVar, cast

from columnar.cluster import message_codec, peer_frames, refusals
from columnar.cluster.hello import HELLO, Hello
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_frames import BadFrame, Frame, FrameReader, FrameTooLong
from columnar.cluster.refusals import Refusal
from columnar.cluster.value_codec import BadValue
from columnar.limits import PEER_QUEUED_BYTES
from columnar.model.region_messages import Message
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

WRITE_BYTES: Final = 256 * 1024  # a write ends after this many bytes, so that later frames are not copied with it
JOINED_BYTES: Final = 64 * 1024  # as in ``wire.connection``
R = TypeVar("R")


class State(Enum):
    GREETING = auto()
    OPEN = auto()
    ENDED = auto()


_OPEN: Final = State.OPEN  # in a compiled method, access by the class costs as much as a call
_ENDED: Final = State.ENDED


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


class Answerer(Protocol):
    """The side that answers.

    Both methods return at once; the answer is given by ``PeerLink.answer``, ``send_response`` or ``refuse``.
    """

    def called(self, link: PeerLink, frame: Frame) -> None: ...

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None: ...


class _Queued:
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


class _PendingRequest:
    """A request: a call whose caller waits for a future."""

    __slots__ = ("future", "message")

    def __init__(self, message: Message[Any], future: asyncio.Future[Any]) -> None:
        self.message = message
        self.future = future

    def _end(self, failure: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(failure)

    def frame_written(self) -> None:
        pass

    def not_sent(self) -> None:
        self._end(NotSent())

    def link_broke(self) -> None:
        self._end(LinkBroke())

    def take_reply(self, frame: Frame) -> None:
        answer = message_codec.answer_from_plain(self.message, frame.unpacked())
        if not self.future.done():
            self.future.set_result(answer)

    def refused(self, refusal: Refusal) -> None:
        self._end(refusal if isinstance(refusal, Exception) else Refused(refusal))


class Refused(Exception):
    """The peer refused a request because another server owns the region: nothing was done."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class PeerLink:
    """An ``asyncio.Protocol`` in all but name: a class without foreign bases compiles to plain fields and calls."""

    def __init__(
        self,
        mine: Hello,
        obstacle: Callable[[Hello], str | None],
        answerer: Answerer,
        on_ended: Callable[[PeerLink], None] = lambda _link: None,
    ) -> None:
        """``obstacle``: returns why a link with this peer must be closed, or None (``hello.obstacle``)."""
        self.peer: Hello | None = None  # the peer's hello, once it has come
        self.state = State.GREETING
        self.why = ""  # why the link has ended
        self._mine = mine
        self._obstacle = obstacle
        self._answerer = answerer
        self._on_ended = on_ended
        self._transport: asyncio.WriteTransport | None = None
        self._reader = FrameReader()
        self._queue: deque[_Queued] = deque()
        self.queued_bytes = 0
        self._calls: dict[int, _Queued] = {}  # calls without an answer, by number; without bytes once written
        self._last_number = 0
        self._is_paused = False
        self._flush_is_planned = False

    # --- calls and requests --------------------------------------------------------------------------

    def call(self, service: int, protocol: int, message: bytes, call: Call) -> int:
        """Send a client's message unchanged; return the call's number.  If it raises FrameTooLong, nothing was sent.

        A call that the link does not take gets ``not_sent`` before this returns.
        """
        self._last_number = number = self._last_number + 1
        self._begin(number, peer_frames.call_head(number, service, protocol, len(message)), message, call)
        return number

    async def send_request(self, message: Message[R]) -> R:
        """Send a message and return the answer.

        Raises NotSent, LinkBroke, Refused, FrameTooLong, BadValue, or the error that the peer met.
        """
        name, fields = message_codec.to_plain(message)
        self._last_number = number = self._last_number + 1
        frame = peer_frames.request_frame(number, name, fields)
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._begin(number, frame, b"", _PendingRequest(message, future))
        try:
            return await future
        finally:
            self.forget_call(number)

    def _begin(self, number: int, head: bytes, body: bytes, call: Call) -> None:
        if self.state is _ENDED or self.queued_bytes > PEER_QUEUED_BYTES:
            call.not_sent()
            return
        queued = _Queued(head, body, call)
        self._calls[number] = queued
        self._send(queued)

    def forget_call(self, number: int) -> None:
        """Drop the answer to a call, if it comes; if the call was not written yet, do not send it."""
        queued = self._calls.pop(number, None)
        if queued is not None and queued.waits:
            self.queued_bytes -= queued.size_bytes
            queued.recall()

    # --- answers -------------------------------------------------------------------------------------

    def answer(self, number: int, reply: bytes | memoryview) -> None:
        """Send the reply to a call, in the form in which it goes to the client."""
        self._send(_Queued(peer_frames.answer_head(number, len(reply)), reply, None))

    def send_response(self, number: int, message: Message[R], answer: R) -> None:
        self._send(
            _Queued(peer_frames.response_frame(number, message_codec.answer_to_plain(message, answer)), b"", None)
        )

    def refuse(self, number: int, refusal: Refusal) -> None:
        self._send(_Queued(peer_frames.refused(number, *refusals.to_plain(refusal)), b"", None))

    # --- writing -------------------------------------------------------------------------------------

    def _send(self, queued: _Queued) -> None:
        if self.state is _ENDED:
            return
        self._queue.append(queued)
        self.queued_bytes += queued.size_bytes
        self._plan_flush()

    def _plan_flush(self) -> None:
        if self._flush_is_planned or self._is_paused or self.state is not _OPEN or not self._queue:
            return
        self._flush_is_planned = True
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_planned = False
        try:
            while self._queue and not self._is_paused and self.state is State.OPEN:
                self._write_some()
        except Exception as fault:  # noqa: BLE001 - what the peer got is unknown: callers are notified of the end
            FAULTS.met("links of servers", fault)
            self.end(f"frames could not be sent: {fault}")

    def _write_some(self) -> None:
        parts: list[bytes | memoryview] = []
        written: list[_Queued] = []
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
        assert self._transport is not None, "it is open"
        if size <= JOINED_BYTES:
            self._transport.write(b"".join(parts))  # a copy costs less than to hand over each part
        else:
            self._transport.writelines(parts)
        for queued in written:
            assert queued.call is not None, "chosen for it"
            _notify(queued.call.frame_written)

    # --- asyncio.Protocol ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one in all but name
        if self.state is State.ENDED:
            self._transport.abort()
            return
        self._transport.write(peer_frames.hello(HELLO.encode(self._mine)))

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._plan_flush()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                if self.state is _ENDED:
                    return
                self._take(frame)
        except (BadFrame, BadValue) as fault:
            self.end(f"the peer's frames are bad: {fault}")

    def eof_received(self) -> bool:
        """Return False, which closes the connection: a peer that sends no more has ended."""
        return False

    def connection_lost(self, cause: Exception | None) -> None:
        self.end(f"the connection ended{f': {cause}' if cause else ''}")

    # --- frames --------------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        if self.peer is None:
            self._greet(frame)
        elif frame.kind == peer_frames.CALL:
            try:
                self._answerer.called(self, frame)
            except Exception as fault:  # noqa: BLE001 - the caller gets the error, and the log has its traceback
                self._fault(frame.number, fault)
        elif frame.kind == peer_frames.REQUEST:
            self._take_request(frame)
        elif frame.kind == peer_frames.HELLO:
            raise BadFrame("a second hello")
        else:
            self._take_answer(frame)

    def _greet(self, frame: Frame) -> None:
        if frame.kind != peer_frames.HELLO:
            raise BadFrame(f"a frame of kind {frame.kind} before the hello")
        self.peer = HELLO.decode(frame.unpacked())
        why = self._obstacle(self.peer)
        if why is not None:
            self.end(why)
            return
        self.state = State.OPEN
        self._plan_flush()

    def _take_request(self, frame: Frame) -> None:
        try:
            message = message_codec.from_plain(*frame.named())
        except BadValue as fault:  # of a newer version, or of a fault of the peer: the link stays
            self.refuse(frame.number, fault)
            return
        try:
            self._answerer.handle_request(self, frame.number, message)
        except Exception as fault:  # noqa: BLE001 - as in ``_take``
            self._fault(frame.number, fault)

    def _fault(self, number: int, fault: Exception) -> None:
        _log.error("a call or an ask of %s failed", self.peer.server if self.peer else "a peer", exc_info=fault)
        self.refuse(number, fault)

    def _take_answer(self, frame: Frame) -> None:
        queued = self._calls.pop(frame.number, None)
        if queued is None:
            return  # it was forgotten
        call = queued.call
        assert call is not None, "it was not taken back"
        try:
            if frame.kind == peer_frames.REFUSED:
                call.refused(refusals.from_plain(*frame.named()))
            else:
                call.take_reply(frame)
        except (BadFrame, BadValue):
            _notify(call.link_broke)  # whatever the peer did is unreadable
            raise
        except Exception:  # noqa: BLE001 - one caller's fault must not affect other callers
            _log.exception("the caller of a peer failed")

    # --- the end -------------------------------------------------------------------------------------

    def end(self, why: str) -> None:
        """Close the link; calls are notified in the order in which they were begun.  Idempotent."""
        if self.state is State.ENDED:
            return
        self.state, self.why = State.ENDED, why
        if self._transport is not None:
            self._transport.abort()
        self._queue.clear()
        self.queued_bytes = 0
        calls, self._calls = self._calls, {}
        for queued in calls.values():
            call = queued.call
            assert call is not None, "it was not taken back"
            _notify(call.not_sent if queued.waits else call.link_broke)
        self._on_ended(self)

    def check_invariants(self) -> None:
        waiting = [queued for queued in self._queue if queued.call is not None]
        assert waiting == [queued for queued in self._calls.values() if queued.waits], "P1, P2"
        assert self.queued_bytes == sum(queued.size_bytes for queued in self._queue), "P3"
        assert self.state is not State.ENDED or not (self._calls or self._queue), "P1"


def _notify(event: Callable[[], None]) -> None:
    """Notify a caller; its fault must not keep other callers from being notified."""
    try:
        event()
    except Exception:  # noqa: BLE001 - as in ``_take_answer``
        _log.exception("the caller of a peer failed")


__all__ = ["Answerer", "Call", "FrameTooLong", "LinkBroke", "NotSent", "PeerLink", "Refused", "State"]

"""A link to a peer: one socket, frames in both directions, many concurrent calls and requests from either side.

    greeting   the link's own hello is in flight; calls and requests wait for the peer's hello, over TCP also for the
               peer's proof of the secret (``hello``)
    open       frames go out; all frames that one loop iteration sends go out in one write
    ended      the link broke, or was closed, or one side found the other's hello or frames bad, or the lease of this
               process did not hold for ``limits.LEASE_WAIT_S``

A call that the link takes ends once: with an answer, with a refusal, as not sent, or with the link.  A request is a
future that ends in one of these ways.  Once the transport has taken the bytes of a call, the peer may have carried the
call out, however the call ends.

Invariants (``check_invariants``):
    P1. Each call and request ends once, also if the link ends or was never open.
    P2. A call that was reported as written is never reported as not sent.
    P3. Frames that wait for the transport hold at most ``limits.PEER_QUEUED_BYTES`` and one frame more; a call
        beyond that is not sent.  Answers have no bound of their own, because the calls that they answer have one.
    P4. Without a proof of the secret a link that is not over a Unix socket takes and sends no frame but the greeting.

Knows nothing of routes, of the meaning of a call, and of the handlers.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, Protocol, TypeVar, cast

from columnar.cluster import message_codec, peer_frames, refusals
from columnar.cluster.frame_writer import Call, FrameWriter, QueuedFrame, notify
from columnar.cluster.hello import RANDOM_BYTES, Greeting, Hello, NoProof
from columnar.cluster.link_errors import REFUSED_PEERS, LinkBroke, NotSent
from columnar.cluster.peer_address import is_local, watch_peer
from columnar.cluster.peer_frames import BadFrame, Frame, FrameReader, FrameTooLong
from columnar.cluster.refusals import Refusal
from columnar.cluster.value_codec import BadValue
from columnar.coordination.lease_gate import LeaseGate
from columnar.limits import PEER_QUEUED_BYTES
from columnar.model.region_messages import Message

_log = logging.getLogger(__name__)

R = TypeVar("R")


class State(Enum):
    GREETING = auto()
    OPEN = auto()
    ENDED = auto()


_OPEN: Final = State.OPEN  # in a compiled method, access by the class costs as much as a call
_ENDED: Final = State.ENDED


class Answerer(Protocol):
    """The side that answers.

    Both methods return at once; the answer is given by ``PeerLink.answer``, ``send_response`` or ``refuse``.
    """

    def called(self, link: PeerLink, frame: Frame) -> None: ...

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None: ...


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


def _no_listener(_link: PeerLink) -> None:
    pass


class PeerLink:
    """An ``asyncio.Protocol`` in all but name: a class without foreign bases compiles to plain fields and calls."""

    def __init__(
        self,
        mine: Hello,
        obstacle: Callable[[Hello], str | None],
        answerer: Answerer,
        on_ended: Callable[[PeerLink], None] = _no_listener,
        *,
        on_open: Callable[[PeerLink], None] = _no_listener,
        gate: LeaseGate | None = None,
        outlasts_lease: bool = False,
        secret: bytes | None = None,
        connects: bool = False,
    ) -> None:
        """``obstacle``: returns why a link with this peer must be closed, or None (``hello.obstacle``).

        ``on_open`` is called once, when the link is open.  ``gate`` is None in a process without a lease.
        ``outlasts_lease``: the link does not end, however long the lease does not hold.  ``secret`` is the cluster's; a
        link that is not over a Unix socket needs it.  ``connects``: this side makes the connection; the other side
        says False.
        """
        self.state = State.GREETING
        self.why = ""  # why the link has ended
        self._greeting = Greeting(mine, obstacle, secret, connects=connects)
        self._answerer = answerer
        self._on_open = on_open
        self._on_ended = on_ended
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._writer = FrameWriter(gate, self.end, outlasts_lease=outlasts_lease)
        self._calls: dict[int, QueuedFrame] = {}  # calls without an answer, by number; without bytes once written
        self._is_retired = False  # no call is to come
        self._last_number = 0

    @property
    def peer(self) -> Hello | None:
        """Return the peer's hello, once it has come.  Over TCP it is proven once the link is open."""
        return self._greeting.peer

    @property
    def queued_bytes(self) -> int:
        """Return the size of the frames that wait for the transport."""
        return self._writer.queued_bytes

    # --- calls and requests --------------------------------------------------------------------------

    def call(self, service: int, protocol: int, message: bytes, call: Call, user: str = "") -> int:
        """Send a client's message unchanged; return the call's number.  If it raises FrameTooLong, nothing was sent.

        A call that the link does not take gets ``not_sent`` before this returns.
        """
        self._last_number = number = self._last_number + 1
        self._begin(number, peer_frames.call_head(number, service, protocol, len(message), user), message, call)
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
        if self.state is _ENDED or self._writer.queued_bytes > PEER_QUEUED_BYTES:
            call.not_sent()
            return
        queued = QueuedFrame(head, body, call)
        self._calls[number] = queued
        self._writer.send_frame(queued)

    def forget_call(self, number: int) -> None:
        """Drop the answer to a call, if it comes; if the call was not written yet, do not send it."""
        queued = self._calls.pop(number, None)
        if queued is not None and queued.waits:
            self._writer.recall(queued)
        if self._is_retired:
            self.retire()

    def retire(self) -> None:
        """End the link when each of its calls has an answer.  The caller sends no more over it."""
        self._is_retired = True
        if not self._calls:
            self.end("the peer stops")

    # --- answers -------------------------------------------------------------------------------------

    def answer(self, number: int, reply: bytes | memoryview) -> None:
        """Send the reply to a call, in the form in which it goes to the client."""
        self._send(QueuedFrame(peer_frames.answer_head(number, len(reply)), reply, None))

    def send_response(self, number: int, message: Message[R], answer: R) -> None:
        self._send(
            QueuedFrame(peer_frames.response_frame(number, message_codec.answer_to_plain(message, answer)), b"", None)
        )

    def refuse(self, number: int, refusal: Refusal) -> None:
        self._send(QueuedFrame(peer_frames.refused(number, *refusals.to_plain(refusal)), b"", None))

    def _send(self, queued: QueuedFrame) -> None:
        if self.state is not _ENDED:
            self._writer.send_frame(queued)

    # --- asyncio.Protocol ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        if self.state is State.ENDED:
            self._transport.abort()
            return
        try:
            hello = self._greeting.begin(b"" if is_local(transport) else os.urandom(RANDOM_BYTES))
        except NoProof as fault:
            self.end(str(fault))
        else:
            watch_peer(transport)
            self._transport.write(hello)

    def pause_writing(self) -> None:
        self._writer.pause_writing()

    def resume_writing(self) -> None:
        self._writer.resume_writing()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data if self.state is _OPEN else self._greet(data)):
                if self.state is _ENDED:
                    return
                self._take(frame)
        except NoProof as fault:
            if self._transport is not None:
                REFUSED_PEERS.add_refusal(self._transport.get_extra_info("peername"), fault)
            self.end(str(fault))
        except (BadFrame, BadValue) as fault:
            self.end(f"the peer's frames are bad: {fault}")

    def eof_received(self) -> bool:
        """Return False, which closes the connection: a peer that sends no more has ended."""
        return False

    def connection_lost(self, cause: Exception | None) -> None:
        self.end(f"the connection ended{f': {cause}' if cause else ''}")

    # --- frames --------------------------------------------------------------------------------------

    def _greet(self, data: bytes) -> bytes:
        """Take bytes of the greeting; return the bytes after it, which are frames of an open link."""
        greeting = self._greeting
        if self.state is _ENDED:
            return b""
        answer = greeting.take_bytes(data)
        if greeting.refusal:
            self.end(greeting.refusal)
            return b""
        assert self._transport is not None, "bytes came"
        if answer:
            self._transport.write(answer)
        if not greeting.is_over:
            return b""
        self.state = State.OPEN
        self._writer.open_transport(self._transport)
        self._on_open(self)
        return greeting.take_rest()

    def _take(self, frame: Frame) -> None:
        if frame.kind == peer_frames.CALL:
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
            notify(call.link_broke)  # whatever the peer did is unreadable
            raise
        except Exception:  # noqa: BLE001 - one caller's fault must not affect other callers
            _log.exception("the caller of a peer failed")
        if self._is_retired:
            self.retire()

    # --- the end -------------------------------------------------------------------------------------

    def end(self, why: str) -> None:
        """Close the link; calls are notified in the order in which they were begun.  Idempotent."""
        if self.state is State.ENDED:
            return
        self.state, self.why = State.ENDED, why
        if self._transport is not None:
            self._transport.abort()
        self._writer.close()
        calls, self._calls = self._calls, {}
        for queued in calls.values():
            call = queued.call
            assert call is not None, "it was not taken back"
            notify(call.not_sent if queued.waits else call.link_broke)
        self._on_ended(self)

    def check_invariants(self) -> None:
        self._writer.check_invariants(queued for queued in self._calls.values() if queued.waits)
        assert self.state is not State.ENDED or not (self._calls or self._writer.queued_bytes), "P1"


__all__ = ["Answerer", "Call", "FrameTooLong", "LinkBroke", "NotSent", "PeerLink", "Refused", "State"]

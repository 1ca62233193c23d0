"""The answering side of links at a server or the master: answers calls and requests of peers.

    a call       is answered by the service that it names, like a client's call (``wire.raw_calls``); errors are replies
                 too.  A call about a row that another server owns is refused as "moved": it is never forwarded again
    a request    is answered by the handler that is registered for its message; the handler may wait

Calls are begun in the order in which they came, for SLICE_S in a loop iteration; the rest wait for the next iteration,
so that a piece of the stream with a thousand calls does not block the loop.  Requests are begun in their order, too,
each as a task.

Bound: the calls under way, and the answers that their link has not sent yet, hold ``limits.PEER_SERVING_BYTES`` and one
call more; a call beyond that is refused, and nothing is done for it.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

from columnar.cluster.method_routing import ROWS_OF
from columnar.cluster.peer_frames import Frame, FrameTooLong
from columnar.cluster.peer_link import PeerLink, State
from columnar.cluster.refusals import Moved, PeerFault, Unknown
from columnar.errors import CallQueueTooBig, ColumnarError, OutcomeUnknown, RegionNotLocal, RequestTooBig
from columnar.limits import PEER_FRAME_BYTES, PEER_SERVING_BYTES
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.runtime.background import Background
from columnar.runtime.faults import surviving
from columnar.wire.codec import Request
from columnar.wire.detect import Protocol
from columnar.wire.raw_calls import RawCall, RawCaller
from columnar.wire.server import WireServer
from columnar.wire.service import CallContext

_log = logging.getLogger(__name__)

SLICE_S: Final = 0.002  # as ``wire.connection.SLICE_S``
_BINARY: Final = Protocol.BINARY

M = TypeVar("M", bound=Message[Any])
Handlers = Mapping[type[Any], Callable[[Any], Awaitable[Any]]]  # of requests, by the class of the message
RefuseNotLocal = Callable[[str, bytes], Moved | Unknown]  # of a table and a row that this server does not own


class _Link:
    """A link in the role of a client: it is the client of the calls that come over it."""

    __slots__ = ("binary", "compact", "link", "peer")

    def __init__(self, link: PeerLink, connection_id: int) -> None:
        self.link = link
        self.peer = f"server {link.peer.server}" if link.peer is not None else "a server"
        self.binary = CallContext(connection_id, self.peer, Protocol.BINARY, self.has_ended)
        self.compact = CallContext(connection_id, self.peer, Protocol.COMPACT, self.has_ended)

    def has_ended(self) -> bool:
        return self.link.state is State.ENDED


class _Call:
    """A call under way, as its ``RawCaller``."""

    __slots__ = ("ctx", "frame", "link", "number", "server", "service", "size_bytes", "wire")

    def __init__(
        self, server: PeerServer, link: PeerLink, frame: Frame, service: int, wire: WireServer, ctx: CallContext
    ) -> None:
        self.server = server
        self.link = link
        self.frame: Frame | None = frame  # until it is begun
        self.service = service
        self.wire = wire  # of the service
        self.ctx = ctx
        self.size_bytes = frame.end - frame.message_start
        self.number = frame.number

    def take_frame(self) -> Frame:
        frame = self.frame
        assert frame is not None, "a call is begun once"
        self.frame = None
        return frame

    def replied(self, reply: bytes) -> None:
        self.server.ended(self)
        try:
            self.link.answer(self.number, reply)
        except FrameTooLong:
            self.link.refuse(self.number, _too_long(len(reply)))

    def not_local(self, error: RegionNotLocal, request: Request) -> None:
        self.server.ended(self)
        self.link.refuse(self.number, self.server.refusal(self.service, error, request))

    def broken(self, error: Exception) -> None:
        self.server.ended(self)
        self.link.refuse(self.number, error)


def _too_long(reply_bytes: int) -> RequestTooBig:
    return RequestTooBig(
        f"the answer has {reply_bytes} bytes, which is over the bound of {PEER_FRAME_BYTES} between servers; ask for "
        "fewer columns or versions, or read the row by a scan with a batch size"
    )


class PeerServer:
    """An ``Answerer`` of ``peer_link``; ``link_ended`` is the ``on_ended`` of its links."""

    def __init__(
        self,
        wires: Mapping[int, WireServer],
        refuse_not_local: RefuseNotLocal,
        connection_ids: Iterator[int],
        bound_bytes: int = PEER_SERVING_BYTES,
    ) -> None:
        """``wires``: by service (THRIFT1, THRIFT2), the servers whose services answer; they need not listen.

        ``connection_ids``: the ids that ``WireServer`` uses too, as scanners are known by the connection's id.
        """
        self._wires = dict(wires)
        self._refuse_not_local = refuse_not_local
        self._ids = connection_ids
        self._bound_bytes = bound_bytes
        self._links: dict[PeerLink, _Link] = {}
        self._waiting: deque[_Call] = deque()
        self._is_planned = False
        self._spent_s = 0.0  # of this iteration's slice
        self.handlers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {}
        self._of_senders: dict[type[Any], Callable[[Incarnation, Any], Awaitable[Any]]] = {}
        self._requests = Background("requests of servers")
        self.serving_bytes = 0  # of calls under way
        self.misdirected = 0  # calls that were refused because another server owns the region

    def serve(self, wires: Mapping[int, WireServer]) -> None:
        """Answer calls to these services, too, as ``wires`` of the constructor."""
        self._wires.update(wires)

    # --- calls ---------------------------------------------------------------------------------------

    def called(self, link: PeerLink, frame: Frame) -> None:
        service, protocol = frame.service, frame.protocol
        wire = self._wires.get(service)
        if wire is None:
            raise PeerFault(f"service {service} is not served here")
        if self.serving_bytes + link.queued_bytes > self._bound_bytes:
            text = f"{self.serving_bytes} bytes of calls of other servers are under way; send it again later"
            link.refuse(frame.number, CallQueueTooBig(text))
            return
        client = self._client(link)
        ctx = client.binary if protocol is _BINARY else client.compact
        if user := frame.user:
            ctx = replace(ctx, user=user)
        call = _Call(self, link, frame, service, wire, ctx)
        self.serving_bytes += call.size_bytes
        if self._waiting or self._spent_s >= SLICE_S:
            self._waiting.append(call)
        else:
            self._begin(call)
        if not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._next_slice)

    def _begin(self, call: _Call) -> None:
        begun = perf_counter()
        frame = call.take_frame()
        try:
            RawCall(call.wire, call.ctx, call).begin_call(frame.buffer, frame.message_start, frame.end)
        except Exception as fault:  # noqa: BLE001 - the server's loop: the caller gets the error
            _log.exception("a call of %s failed", call.ctx.peer)
            call.broken(fault)
        self._spent_s += perf_counter() - begun

    def _next_slice(self) -> None:
        self._is_planned = False
        self._spent_s = 0.0
        while self._waiting and self._spent_s < SLICE_S:
            call = self._waiting.popleft()
            with surviving("calls of other servers"):
                if call.link.state is State.ENDED:
                    self.ended(call)
                else:
                    self._begin(call)
        if self._waiting:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._next_slice)

    def _client(self, link: PeerLink) -> _Link:
        client = self._links.get(link)
        if client is None:
            client = self._links[link] = _Link(link, next(self._ids))
        return client

    def serve_locally(self, ctx: CallContext, service: int, message: bytes, caller: RawCaller) -> None:
        """Handle a call of this server's own client whose region has moved here while the call was forwarded."""
        RawCall(self._wires[service], ctx, caller).begin_call(message, 0, len(message))

    def ended(self, call: _Call) -> None:
        """Release the call's memory; its reply or refusal is queued on the link."""
        self.serving_bytes -= call.size_bytes

    def refusal(self, service: int, error: RegionNotLocal, request: Request) -> Moved | Unknown:
        self.misdirected += 1
        method = request.method
        row_of = ROWS_OF[service].get(method.name) if method is not None else None
        row = row_of(request.args) if row_of is not None else None
        return self._refuse_not_local(error.table, row or b"")

    # --- requests ------------------------------------------------------------------------------------

    def register(self, handlers: Handlers) -> None:
        """Register the handlers of requests by the message's class; the errors of handlers are sent to the peer."""
        assert not self.handlers.keys() & handlers.keys(), "one handler for each class"
        self.handlers.update(handlers)

    def register_with_sender(self, kind: type[M], answer: Callable[[Incarnation, M], Awaitable[Any]]) -> None:
        """Register a handler as ``register`` does; ``answer`` also gets the server that sent the message."""
        self._of_senders[kind] = answer

    @property
    def kinds(self) -> frozenset[type[Any]]:
        """The classes of messages that have a handler."""
        return frozenset(self.handlers) | frozenset(self._of_senders)

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        answer = self.handlers.get(type(message))
        of_sender = self._of_senders.get(type(message))
        if of_sender is not None:
            assert link.peer is not None, "it has said hello"
            answer = partial(of_sender, link.peer.server)
        if answer is None:
            link.refuse(number, PeerFault(f"{type(message).__name__} is not answered here"))
            return
        self._requests.spawn(self._answer(link, number, message, answer))

    async def _answer(
        self, link: PeerLink, number: int, message: Message[Any], answer: Callable[[Any], Awaitable[Any]]
    ) -> None:
        try:
            link.send_response(number, message, await answer(message))
        except asyncio.CancelledError:
            link.refuse(number, OutcomeUnknown("the server stopped before this was done"))
            raise
        except ColumnarError as error:
            link.refuse(number, error)
        except Exception as fault:  # noqa: BLE001 - the peer gets the error, and the log has its traceback
            _log.exception("%s of %s failed", type(message).__name__, link.peer.server if link.peer else "a peer")
            link.refuse(number, fault)

    # --- ends ----------------------------------------------------------------------------------------

    def link_ended(self, link: PeerLink) -> None:
        """Forget the link; calls under way continue, and their answers are dropped."""
        client = self._links.pop(link, None)
        if client is not None:
            for wire in self._wires.values():
                wire.service.connection_closed(client.binary.connection_id)

    async def close(self) -> None:
        """End the requests under way; the calls end with the ports (``WireServer.close``)."""
        self._requests.close()
        await self._requests.ended()

"""The listening server of a port of Thrift; ``connection_table`` bounds its connections.

The loop owns everything except ``Decoder.codec``, which the decoder's one thread owns.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Final, cast

from columnar.coordination.lease_gate import LeaseGate
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.runtime.loop_budget import LoopBudget
from columnar.wire import idl
from columnar.wire.browsers import Visitors
from columnar.wire.codec import (
    CALL,
    INTERNAL_ERROR,
    INVALID_MESSAGE_TYPE,
    ONEWAY,
    UNKNOWN_METHOD,
    Request,
    ServiceCodec,
    application_error,
)
from columnar.wire.connection import Connection
from columnar.wire.connection_table import ConnectionTable, WireLimits
from columnar.wire.definitions import ServiceDefinition
from columnar.wire.detect import Protocol
from columnar.wire.framing import Refusal
from columnar.wire.large_calls import LargeCalls
from columnar.wire.service import NO_ERROR, Ahead, Handler, NoObserver, Observer, Rights, Service, Waiter
from columnar.wire.sockets import ClientSocket, ListeningSockets, take_accepted

if TYPE_CHECKING:  # a port without TLS does not load the one, a standalone server not the other
    from columnar.wire.leaving import Give, Leaving, Stays
    from columnar.wire.tls_protocol import Tls, TlsProtocol

log = logging.getLogger("columnar.wire")


class ErrorReplies:
    """Replies to calls that failed, were refused or are unknown, for connections and for other servers.  Constant.

    The reply to each kind of call:

        an error that the method declares, or that the service translates to one    the method's own exception
        an error that the service translates to NO_ERROR                            a reply without a result
        any other error of a call                                                   INTERNAL_ERROR; logged
        a method that is not served; a message that is not a call                   UNKNOWN_METHOD; INVALID_MESSAGE_TYPE
    """

    def __init__(self, codec: ServiceCodec, service: Service, unknown: Callable[[str], str]) -> None:
        """Pass ``unknown``, which returns the error text for a method that is not served."""
        self._codec = codec
        self._service = service
        self._unknown = unknown

    def failed(self, peer: str, request: Request, protocol: Protocol, error: Exception) -> bytes:
        """Return the reply to a call that failed with ``error``; ``peer`` is the client, for the log."""
        method = request.method
        assert method is not None, "a call was begun"
        declared = self._declared(method.name, error)
        if declared is NO_ERROR:
            return method.reply(protocol, request.seqid, None)
        if declared is not None and method.declares(declared):
            return method.declared_error(protocol, request.seqid, declared)
        log.error("%s: %s failed", peer, method.name, exc_info=error)
        text = f"Internal error processing {method.name}"
        return application_error(request.name, protocol, request.seqid, INTERNAL_ERROR, text)

    def not_served(self, request: Request, protocol: Protocol) -> bytes:
        if request.kind not in (CALL, ONEWAY):
            kind, text = INVALID_MESSAGE_TYPE, f"a message of kind {request.kind} is no call"
        else:
            kind, text = UNKNOWN_METHOD, self._unknown(request.name.decode(errors="replace"))
        return application_error(request.name, protocol, request.seqid, kind, text)

    def refused(self, peer: str, refusal: Refusal, protocol: Protocol) -> bytes:
        error, method = refusal.error, refusal.method
        log.warning("%s: %s", peer, error)
        declared = self._declared(method.name, error) if method is not None else None
        if method is not None and declared is not None and method.declares(declared):
            return method.declared_error(protocol, refusal.seqid, declared)
        kind = INTERNAL_ERROR if method else UNKNOWN_METHOD
        return application_error(refusal.name, protocol, refusal.seqid, kind, error.wire_message)

    def _declared(self, method: str, error: Exception) -> Any | None:
        if self._codec.methods[method].declares(error):
            return error  # a handler may raise what its method declares
        return self._service.translate(method, error)


RESUMED_AT_ONCE: Final = 128  # requests that waited for the same fsync, in one loop iteration: 2 ms
CHECKED_WAITERS: Final = 8  # of the requests that wait for the same future


class Decoder:
    """The thread that decodes large messages, and its own codec."""

    def __init__(self, definition: ServiceDefinition) -> None:
        self.codec = ServiceCodec(definition, partial(sleep, 0))
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="columnar-decode")


class PendingCalls:
    """The unanswered calls of a server: calls that wait for a future, mostly an fsync, and calls that run as tasks."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[Any], list[Waiter]] = {}  # by the future that they wait for
        self._calls: set[asyncio.Future[Any]] = set()  # that run as tasks of their own

    def began(self, call: asyncio.Future[Any]) -> None:
        """Register a call that runs as a task, so that ``end`` ends it even after its connection has ended."""
        if isinstance(call, asyncio.Task):
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    def resume_after(self, future: asyncio.Future[Any], waiting: Waiter) -> None:
        """Continue a request once ``future`` is done, together with all other requests that wait for ``future``.

        A callback for each request would cost 2 us more per request.
        """
        waiters = self._waiting.get(future)
        if waiters is None:
            waiters = self._waiting[future] = []
            if isinstance(future, ImmediateFuture):
                future.add_callback(self._resume_all)
            else:
                future.add_done_callback(self._resume_all)
        waiters.append(waiting)

    @property
    def has_waiting(self) -> bool:
        """Whether clients' requests wait for a shared future, mostly an fsync.

        Only the first CHECKED_WAITERS requests of each future are checked.
        """
        return any(not one.is_background for waiting in self._waiting.values() for one in waiting[:CHECKED_WAITERS])

    def _resume_all(self, future: asyncio.Future[Any]) -> None:
        self._resume_some(future, self._waiting.pop(future), 0)

    def _resume_some(self, future: asyncio.Future[Any], waiting: list[Waiter], begin: int) -> None:
        end = begin + RESUMED_AT_ONCE
        for one in waiting[begin:end]:
            try:
                one.resume(future)
            except Exception:  # as in ImmediateFuture: if one fails, the others are still resumed
                log.exception("an answer failed that waited for an fsync")
        if end < len(waiting):
            future.get_loop().call_soon(self._resume_some, future, waiting, end)

    async def end(self) -> None:
        """Cancel the calls that run as tasks, and wait for their end."""
        if self._calls:
            for call in self._calls:
                call.cancel()
            await asyncio.wait(self._calls)


class WireServer:
    """Serves ``service`` on one port, on the running loop.

    ``definition`` is the service of the IDL.  Servers of one process that share scanners and other state of connections
    take their connection ids from one iterator.  For a method that is not served, ``sibling_hint`` returns words for
    the error text that name the port which serves the method, or an empty string if it knows of none.  With ``tls`` the
    port speaks only TLS.  ``visitors`` decide whose HTTP requests are answered; by default all except those of web
    pages.  Replies leave only while ``gate`` is open; None in a process without a lease.
    """

    def __init__(
        self,
        service: Service,
        observer: Observer | None = None,
        limits: WireLimits | None = None,
        *,
        definition: ServiceDefinition = idl.SERVICE,
        connection_ids: Iterator[int] | None = None,
        sibling_hint: Callable[[str], str] | None = None,
        tls: Tls | None = None,
        visitors: Visitors | None = None,
        gate: LeaseGate | None = None,
    ) -> None:
        self.visitors = visitors or Visitors()
        self.service = service
        self.handlers: Mapping[str, Handler] = service.handlers
        self.observer: Observer = observer or NoObserver()
        self.table = ConnectionTable(limits or WireLimits(), gate)
        self.sibling_hint = sibling_hint
        self.codec = ServiceCodec(definition)
        self.errors = ErrorReplies(self.codec, service, self.unknown)
        self.loop_budget = LoopBudget()
        self.answers = [0, 0]  # to requests of background work, and of clients; refusals too
        self.large_calls = LargeCalls(lambda: self.answered, self._has_light_requests)
        self.decoder = Decoder(definition)
        self.slow_after_s = service.slow_after_s
        self.ahead: Ahead | None = None  # None: there are no other servers; set once, before the first call
        self.rights: Rights | None = None  # None: everybody may do everything; set once, before the first call
        self.pending = PendingCalls()
        self._ids = connection_ids if connection_ids is not None else itertools.count(1)
        self._tls = tls
        self._listening = ListeningSockets()
        self.leaving: Leaving | None = None  # once the server leaves

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free port.  Raises OSError if the address is in use."""
        await self._listening.listen(self._accept if self._tls is None else self._accept_tls, host, port)

    async def serve_privately(self, listening: socket.socket) -> None:
        """Serve also the callers of ``listening``, a socket that only this machine can reach, without TLS.

        The socket replaces an earlier private socket.  Callers of this socket do background work of the store, so
        ``answered`` does not count their requests.
        """
        await self._listening.listen_privately(partial(self._accept, is_background=True), listening)

    async def serve_socket(self, opened: ClientSocket) -> None:
        """Serve also the clients of a Unix socket, without TLS; ``close`` removes its path."""
        await self._listening.listen_beside(self._accept, opened)

    async def take_connection(self, connection: socket.socket, read: bytes = b"") -> None:
        """Serve a client's connection that another process accepted, as if the client had connected to this port.

        ``read`` has the bytes of the next request that the other process has already read.  A client that has
        disconnected is not an error.
        """
        has_tls = self._tls is not None and connection.family != socket.AF_UNIX
        await take_accepted(self._accept_tls if has_tls else partial(self._accept, read), connection)

    @property
    def port(self) -> int:
        """The port; still known after a stop, because addresses of regions are given out until the end."""
        assert self._listening.port, "not started"
        return self._listening.port

    def _has_light_requests(self) -> bool:
        now = perf_counter()
        return any(one.serving_bytes and one.large.is_light(one.serving_bytes, now) for one in self._connections)

    @property
    def _connections(self) -> set[Connection]:
        return cast("set[Connection]", self.table.connections)  # ``_accept`` makes no others

    @property
    def answered(self) -> int:
        """The number of requests of clients answered so far."""
        return self.answers[1]

    @property
    def connections(self) -> int:
        return len(self.table)

    @property
    def input_bytes(self) -> int:
        """Bytes of half-received messages, of queued requests, and of requests whose reply is pending."""
        return self.table.input_bytes

    @property
    def output_bytes(self) -> int:
        """Unsent bytes of replies to clients that read slowly."""
        return self.table.output_bytes

    async def leave(self, give: Give) -> None:
        """Stop listening, and transfer or close each connection between two requests.  Returns when none is left.

        A port that speaks TLS closes its connections, and so does one whose clients sign in.  If cancelled, the
        remaining connections are still served, and transferred later.
        """
        from columnar.wire.leaving import Leaving

        self.leaving = Leaving(give if self._tls is None and self.rights is None else None)
        await self._listening.close_public()
        self.leaving.check_connections(list(self._connections))
        await self.table.wait_empty()

    async def part_with(self, most: int, give: Give, stays: Stays, within_s: float) -> int:
        """Transfer up to ``most`` connections that ``take_connection`` took, each between two requests.

        Returns their number.  ``stays`` returns, for a connection's id, whether the connection would lose state in this
        server.  A port that speaks TLS transfers no connections, nor does a server that is about to stop.  The server
        keeps serving meanwhile.
        """
        if self._tls is not None or self.rights is not None or self.leaving is not None or not most:
            return 0
        from columnar.wire.leaving import Surplus

        self.leaving = surplus = Surplus(give, most, stays)
        surplus.check_connections(list(self._connections))
        with suppress(TimeoutError):
            await asyncio.wait_for(surplus.all_gone.wait(), within_s)
        if self.leaving is surplus:  # if not, the server leaves
            self.leaving = None
        return surplus.given

    async def close(self, grace_s: float) -> None:
        """Stop listening, let calls in flight finish for up to ``grace_s``, cancel the rest, close all connections."""
        self._listening.begin_close()
        await self.table.close_all(grace_s)
        await self.pending.end()
        await self._listening.wait_closed()
        self.decoder.thread.shutdown(wait=False)

    # --- what connections call -----------------------------------------------------------------------

    def unknown(self, method: str) -> str:
        hint = self.sibling_hint(method) if self.sibling_hint is not None else ""
        return f"Invalid method name: '{method}'{hint and '; '}{hint}"

    def _accept(self, read: bytes | None = None, *, is_background: bool = False) -> Any:
        connection = Connection(self, next(self._ids), read, 0 if is_background else 1)
        sign_in = self.rights.sign_in if self.rights is not None else None
        if sign_in is None:
            return connection
        from columnar.wire.sign_in_protocol import SignInProtocol  # most stores have no users

        return SignInProtocol(sign_in, connection, is_background=is_background)

    def _accept_tls(self) -> TlsProtocol:
        assert self._tls is not None
        return self._tls.make_protocol(self._accept)

    def admit(self, connection: Connection) -> bool:
        if not self.table.admit(connection):
            return False
        if self.leaving is not None:  # accepted just before the port stopped listening
            asyncio.get_running_loop().call_soon(self.leaving.check_connection, connection)
        return True

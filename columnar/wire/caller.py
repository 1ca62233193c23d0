"""The calls of one client: run by their handlers, awaited, retried or forwarded, and answered.

``Caller`` is the base class of a connection, whose calls come one after the other, and of ``RawCall``, the single call
of a message that another server forwarded.  A call is answered exactly once (``_done``), immediately or later.  A
message over ``framing.INLINE_BYTES`` is decoded by the server's decoder thread, and its call runs in the queue of large
calls (``large_calls``).

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import OutcomeUnknown, RegionUnavailable
from columnar.limits import SMALL_REQUEST_BYTES
from columnar.model.measures import RequestTime
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.wire.codec import CALL, ONEWAY, Request
from columnar.wire.codec_replies import RowList
from columnar.wire.framing import Hangup, Refusal, Whole
from columnar.wire.large_calls import Aside, LargeCaller
from columnar.wire.service import Awaited, CallContext, ForwardedReply, Keep, Later, Raw, Rights, Waiting

if TYPE_CHECKING:
    from columnar.wire.http_sign_in import HttpSignIn
    from columnar.wire.server import WireServer

SLICE_S: Final = 0.002  # time slice of a connection on the loop
LARGE_BYTES: Final = 64 * 1024  # the arguments of a larger request are not kept while its answer waits

Message = Request | Refusal
_DIRECT: Final = frozenset({list, RowList, type(None), bool, int, str, bytes, dict})


async def _kept(result: Awaitable[Any], keep: Keep) -> Any:
    return keep(await result)


# The reasons for which a request pauses, as the log of slow requests names them.
FSYNC: Final = "fsync"  # its write is durable with the next fsync
STEPS: Final = "steps"  # it works in steps, between which the loop serves other requests
REGION: Final = "region"  # its region was moving, splitting or opening; it is tried again then
SERVER: Final = "server"  # another server has the region


class Caller:
    def __init__(self, server: WireServer, ctx: CallContext, *, counts: int, forwards: bool) -> None:
        """Pass 0 as ``counts`` for background work of the store, else 1; ``forwards`` if calls may be forwarded."""
        self._server = server  # constant, as are the next two
        self.counts = counts
        self._forwards = forwards
        self._ctx = ctx
        self.large = LargeCaller()
        self._aside: Aside | None = None  # the large message that a thread decodes
        self._forwarded: ForwardedReply | None = None  # the call that another server answers
        self._busy = False  # an answer is pending, or a large message is decoded
        self.http_sign_in: HttpSignIn | None = None  # None: requests have the user of the connection
        self._has_gone = False  # the client has ended the connection, or sends no more
        self._is_expensive = True  # used up its last slice, or has had none: shares the slices of expensive ones
        self.serving_bytes = 0  # of the request whose reply is pending
        self._paused_request = -1.0  # the start of the last request whose reply was pending, which identifies it
        self._paused_s = 0.0  # when it began to wait
        self._waits_for = ""  # FSYNC, STEPS, REGION or SERVER

    @property
    def peer(self) -> str:
        return self._ctx.peer

    def set_user(self, user: str) -> None:
        """Make later calls the calls of this user, who has signed in; "" is nobody."""
        if self._ctx.user != user:
            self._ctx = replace(self._ctx, user=user)

    def take_users(self, http_sign_in: HttpSignIn) -> None:
        """Have each HTTP request name its user from now on."""
        self.http_sign_in = http_sign_in

    def pause_calls(self, size_bytes: int) -> None:
        """Begin no call while it is not known whose the next one is; its ``size_bytes`` count as input meanwhile."""
        self._busy = True
        self.serving_bytes = size_bytes

    def resume_calls(self) -> None:
        self._end_wait()

    # --- what differs ------------------------------------------------------------------------------------

    def _done(
        self, message: Message, reply: bytes | memoryview, error: str | None, started: float, result: Any
    ) -> float:
        """Answer the call; returns the time of the answer.  ``error`` is the error's class name, for the metrics."""
        raise NotImplementedError

    def _has_room(self, size_bytes: int) -> bool:
        """Return whether the memory bounds allow a request of ``size_bytes`` to begin."""
        return True

    def _is_over(self) -> bool:
        """End the caller if its client has disconnected.  Returns True if no further call may begin."""
        return False

    def _hang_up(self, hangup: Hangup) -> None:
        raise NotImplementedError

    def _serve(self) -> None:
        """Serve the next message, after an answer that was pending."""

    # --- calls -------------------------------------------------------------------------------------------

    def _answer(self, message: Message) -> float | None:
        """Serve a message; returns the time of its answer, or None if the reply is pending."""
        started, server, ctx = perf_counter(), self._server, self._ctx
        if isinstance(message, Refusal):
            reply = server.errors.refused(ctx.peer, message, ctx.protocol)
            return self._done(message, reply, type(message.error).__name__, started, None)
        method = message.method
        handler = server.handlers.get(method.name) if method is not None else None
        if method is None or handler is None or message.kind not in (CALL, ONEWAY):
            reply = server.errors.not_served(message, ctx.protocol)
            return self._done(message, reply, "TApplicationException", started, None)
        if message.size_bytes > SMALL_REQUEST_BYTES and not self._has_room(message.size_bytes):
            return self._failed(message, server.table.full(), started)
        rights = server.rights
        keep: Keep | None = None
        try:
            is_own = rights is None or not (self.counts or ctx.user)  # the store's own calls have no user
            keep = None if rights is None or is_own else self._check_rights(rights, ctx, message)
            ahead = server.ahead
            if ahead is not None and self._forwards and (forwarded := ahead(ctx, message)) is not None:
                return self._await_forwarded(message, forwarded, started)
            result = handler(ctx, *message.args)
            if keep is not None:
                result = keep(result) if not hasattr(result, "__await__") else _kept(result, keep)
            if type(result) not in _DIRECT:
                if type(result) is Later:
                    return self._pending(message, result.future, started, result)
                if hasattr(result, "__await__"):
                    return self._pending(message, result, started, None)
            reply = method.reply(ctx.protocol, message.seqid, result)
        except Exception as error:  # noqa: BLE001 - the server's loop: every fault is answered
            return self._retry_or_forward(message, error, started, keep)
        return self._done(message, reply, None, started, result)

    def _check_rights(self, rights: Rights, ctx: CallContext, request: Request) -> Keep | None:
        """Check the call of a client; return what the answer must pass, if anything.  Raises AccessDenied.

        The call that another server forwarded was checked there; the server that answers it takes from the answer what
        the user may not see.
        """
        if self._forwards:
            return rights.check(ctx, request)
        return rights.list_filter(ctx, request.method.name) if request.method is not None and ctx.user else None

    def _note_pause(self, started: float, now: float, waits_for: str) -> None:
        """Note that the request waits from now on, for the log if it is slow.  A second pause changes nothing."""
        if self._paused_request != started:
            self._paused_request, self._paused_s, self._waits_for = started, now, waits_for

    def time_of(
        self, started: float, now: float, reply_bytes: int, error: str | None, trace_parent: str
    ) -> RequestTime:
        """Return the time of the request that was begun at ``started`` and is answered now."""
        if self._paused_request != started:
            return RequestTime(now - started, 0.0, "", reply_bytes, error or "", trace_parent)
        waited_s = now - self._paused_s
        return RequestTime(now - started, waited_s, self._waits_for, reply_bytes, error or "", trace_parent)

    def _pending(
        self, request: Request, waiting: Any, started: float, later: Later | None, waits_for: str = STEPS
    ) -> float | None:
        shared = isinstance(waiting, ImmediateFuture) or (later is not None and isinstance(waiting, asyncio.Future))
        future = waiting if shared else asyncio.ensure_future(waiting)
        if future.done():
            return self._settle(request, future, started, later)
        self._busy = True
        self.serving_bytes = request.size_bytes
        if request.size_bytes > LARGE_BYTES:  # the handler keeps the rows that it still needs
            request.drop_rows()
        if shared or request.method is None or not self._server.service.may_be_forwarded(request.method.name):
            request.drop_message()
        if shared:
            now = perf_counter()
            self._is_expensive = now - started >= SLICE_S  # waiting for an fsync does not make it expensive
            self._note_pause(started, now, FSYNC)
            self._server.pending.resume_after(future, Waiting(self, request, started, later))
        else:
            self._server.pending.began(future)
            self._note_pause(started, perf_counter(), waits_for)
            future.add_done_callback(Waiting(self, request, started, later).resume)
        return None

    def _retry_or_forward(
        self, request: Request, error: Exception, started: float, keep: Keep | None = None
    ) -> float | None:
        """Retry the call, or forward it to its region's owner; if neither is possible, answer with ``error``.

        Only a call that has had no effect so far is retried or forwarded.  The answer of a retry passes ``keep``; that
        of a forwarded call has passed the filter of the server that answers it.
        """
        method, server = request.method, self._server
        assert method is not None, "it was begun"
        again = server.service.retry_or_forward(server.handlers[method.name], self._ctx, request, error)
        if again is None:
            return self._failed(request, error, started)
        if isinstance(again, ForwardedReply):
            return self._await_forwarded(request, again, started)
        if keep is not None:
            again = _kept(again, keep)
        return self._pending(request, again, started, None, REGION)

    def _await_forwarded(self, request: Request, forwarded: ForwardedReply, started: float) -> float | None:
        """Wait for the answer of another server."""
        assert self._forwards, "a forwarded call is not forwarded again"
        if forwarded.done():
            return self._settle(request, forwarded, started, None)
        self._busy = True
        self.serving_bytes = request.size_bytes
        self._forwarded = forwarded
        self._note_pause(started, perf_counter(), SERVER)
        request.drop_message()  # the forwarder has it
        if request.size_bytes > LARGE_BYTES:
            request.drop_args()
        forwarded.add_callback(Waiting(self, request, started, None).resume)
        return None

    def resume(self, request: Request, future: Awaited, started: float, later: Later | None) -> None:
        """Answer ``request`` after the future that it waited for is done."""
        self._end_wait()
        self._settle(request, future, started, later)

    def _end_wait(self) -> None:
        self._busy = False
        self._forwarded = None
        self.serving_bytes = 0

    def _settle(self, request: Request, future: Awaited, started: float, later: Later | None) -> float | None:
        method, protocol = request.method, self._ctx.protocol
        assert method is not None, "it was begun"
        try:
            outcome = future.result()
            result = outcome if later is None else later.result
            if type(result) is Raw:
                return self._done(request, result.message, None, started, None)
            reply = method.reply(protocol, request.seqid, result)
        except asyncio.CancelledError:
            stopped = OutcomeUnknown("the server stopped before this was done; read before you repeat it")
            return self._failed(request, stopped, started)
        except Exception as error:  # noqa: BLE001 - as in _answer
            if later is None and request.buffer and not self._has_gone and not isinstance(error, RegionUnavailable):
                return self._retry_or_forward(request, error, started)  # RegionUnavailable has been waited for
            return self._failed(request, error, started)
        return self._done(request, reply, None, started, result)

    def _failed(self, request: Request, error: Exception, started: float) -> float:
        reply = self._server.errors.failed(self._ctx.peer, request, self._ctx.protocol, error)
        return self._done(request, reply, type(error).__name__, started, None)

    # --- large messages ----------------------------------------------------------------------------------

    def _decode_aside(self, whole: Whole) -> None:
        """Decode a large message in a thread; on the loop it would block other clients for up to seconds."""
        self._busy = True
        self.serving_bytes = len(whole.body)
        server, self._aside = self._server, Aside(whole)
        loop = asyncio.get_running_loop()
        decoded = loop.run_in_executor(server.decoder.thread, self._aside.decoded, server.decoder.codec)
        decoded.add_done_callback(self._decoded)

    def _decoded(self, future: asyncio.Future[Message]) -> None:
        self._aside = None
        if self._has_gone:
            future.exception()  # seen: no caller waits for it
            self._end_wait()
            self._is_over()
        else:
            self._server.large_calls.soon(self.large, self.serving_bytes, partial(self._answer_large, future))

    def _answer_large(self, future: asyncio.Future[Message]) -> None:
        self._end_wait()
        if self._is_over():
            return
        try:
            message = future.result()
        except Hangup as hangup:
            self._hang_up(hangup)
            return
        if self._answer(message) is not None:
            self._serve()

"""Connections: each sends the bytes of a request and returns its ``Answer``, one at a time.

    idle --send--> asked --first byte--> answering --whole answer--> idle, or closed where it cannot be used again
      any state --end of the connection, bytes that are no HTTP, ``abort``--> closed

llhttp (``httptools``) parses.  An answer without a length ends with its connection; httptools has no call for that
end, so it is known here (``until_eof``).  Nor can it be said that an answer to a HEAD has no body: such an answer is
whole with its head, and the parser, which waits for a body, is replaced.  1xx answers are skipped.

Invariants:
    I1. Each ``send`` gives one result: an Answer that is whole by its own length, or a NoAnswer.
    I2. A connection is given back to its pool only between two answers, when both sides keep it open.
    I3. BODY_BYTES bounds the bytes that are held of an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Final, cast

import httptools

from wikibench.limits import BODY_BYTES
from wikibench.outcome import Outcome

from .answer import Answer, NoAnswer

# No headers of an answer but these are read; the lengths sort out most others without a lower().
_LOCATION, _COOKIE, _LENGTH, _CODING, _CONTENT_CODING, _CONNECTION = (
    b"location",
    b"set-cookie",
    b"content-length",
    b"transfer-encoding",
    b"content-encoding",
    b"connection",
)
_LENGTHS: Final = frozenset(map(len, (_LOCATION, _COOKIE, _LENGTH, _CODING, _CONTENT_CODING, _CONNECTION)))
TIMEOUT_STEP_S: Final = 0.01
TIMED_OUT: Final = NoAnswer(Outcome.TIMEOUT, "no whole answer within the timeout")
_WITHOUT_BODY: Final = frozenset({204, 304})


@dataclass(slots=True)
class _Head:
    """The headers of an answer, as far as they are read."""

    location: bytes = b""
    cookies: bytes = b""
    connection: bytes = b""
    until_eof: bool = True
    is_packed: bool = False

    def add(self, name: bytes, value: bytes) -> None:
        lower = name.lower()
        if lower == _LENGTH or (lower == _CODING and b"chunked" in value.lower()):
            self.until_eof = False
        elif lower == _LOCATION:
            self.location = value
        elif lower == _COOKIE:
            pair = value.partition(b";")[0].strip()
            self.cookies = self.cookies + b"; " + pair if self.cookies else pair
        elif lower == _CONTENT_CODING:
            self.is_packed = value.strip().lower() != b"identity"
        elif lower == _CONNECTION:
            self.connection = value.lower()


class Connection(asyncio.Protocol):
    """Owned by the event loop.  ``on_free`` is called when a request may be sent, ``on_lost`` once at its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_free: Callable[[Connection], None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._on_free = on_free
        self._on_lost = on_lost
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer | NoAnswer] | None = None  # of the request under way
        self._chunks: list[bytes] | None = None  # of the body, if its text is wanted
        self._is_head = False  # of the request under way
        self._used = 0  # requests before the one under way
        self._is_answering = False
        self._clear()

    def _clear(self) -> None:
        self._head = _Head()
        self._has_head = False
        self._size = 0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: bytes, *, keep: bool, is_head: bool = False) -> asyncio.Future[Answer | NoAnswer]:
        """Send a request; the future's result is its answer, with the text of its body if ``keep``."""
        transport = self._transport
        assert transport is not None
        assert self._waiter is None
        waiter = self._waiter = self._loop.create_future()
        self._chunks = [] if keep else None
        self._is_head = is_head
        self._is_answering = False
        transport.write(frame)
        return waiter

    def abort(self, why: NoAnswer | None = None) -> None:
        """Close at once.  The request under way, if any, ends with ``why``."""
        if why is not None:
            self._end(why)
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.abort()  # bytes that nobody asked for: what comes next could not be told from an answer
            return
        self._is_answering = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.abort(NoAnswer(Outcome.BROKEN, "the server changed to another protocol"))
        except httptools.HttpParserError as error:
            if self._waiter is None:
                self.abort()
            else:
                self.abort(NoAnswer(Outcome.BROKEN, f"an answer that is no HTTP: {_reason(error)}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._on_lost(self)
        if self._waiter is None:
            return
        if not self._is_answering:
            why = "the connection was closed before the answer" if exc is None else f"the connection broke: {exc}"
            self._end(NoAnswer(Outcome.BROKEN, why, was_kept=self._used > 0))
        elif exc is None and self._has_head and self._head.until_eof:
            self._end(self._answer())
        else:
            self._end(NoAnswer(Outcome.BROKEN, "the connection was closed within the answer"))

    # -- httptools

    def on_message_begin(self) -> None:
        if self._waiter is None:
            self.abort()  # more bytes after a whole answer

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) in _LENGTHS:
            self._head.add(name, value)

    def on_headers_complete(self) -> None:
        self._has_head = True
        if self._is_head and self._waiter is not None and self._parser.get_status_code() >= 200:
            keeps = b"close" not in self._head.connection
            if self._parser.get_http_version() == "1.0":
                keeps = b"keep-alive" in self._head.connection
            self._end_whole(keeps=keeps)
            self._parser = httptools.HttpResponseParser(self)

    def on_body(self, body: bytes) -> None:
        if self._waiter is None:
            self.abort()  # a body of an answer to a HEAD
            return
        self._size += len(body)
        if self._size > BODY_BYTES:
            self.abort(NoAnswer(Outcome.BROKEN, f"an answer of over {BODY_BYTES} bytes"))
        elif self._chunks is not None:
            self._chunks.append(body)

    def on_message_complete(self) -> None:
        if self._waiter is None:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self._clear()
            return
        keeps = self._parser.should_keep_alive() and (not self._head.until_eof or status in _WITHOUT_BODY)
        self._end_whole(keeps=keeps)

    def _end_whole(self, *, keeps: bool) -> None:
        self._end(self._answer())
        if keeps and self.is_open:
            self._used += 1
            self._on_free(self)
        elif self._transport is not None:
            self._transport.close()

    def _answer(self) -> Answer | NoAnswer:
        if self._chunks is not None and self._head.is_packed:
            return NoAnswer(Outcome.BROKEN, "the body is packed, though the request accepts only identity")
        text = "" if self._chunks is None else b"".join(self._chunks).decode(errors="replace")
        location = self._head.location.decode("utf-8", "surrogateescape") if self._head.location else ""
        cookies = self._head.cookies.decode("latin-1") if self._head.cookies else ""
        return Answer(self._parser.get_status_code(), location, text, self._size, cookies, time.perf_counter())

    def _end(self, result: Answer | NoAnswer) -> None:
        waiter, self._waiter = self._waiter, None
        self._clear()
        if waiter is not None and not waiter.done():
            waiter.set_result(result)


class Deadlines:
    """Deadlines of the requests in the air, all looked at together, so a request ends up to TIMEOUT_STEP_S late.

    A timer of the loop for each would cost more than to parse its answer, and to look at 10,000 in each step 4 % of a
    core.  So the steps wait for the earliest deadline that there was when all were last looked at, or has come since:
    where requests are answered, that is once in their timeout.  Owned by the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[Connection, float] = {}
        self._earliest = inf  # no deadline is earlier
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, connection: Connection, deadline: float) -> None:
        """End the connection's request at ``deadline``, a time of the loop."""
        self._due[connection] = deadline
        if deadline < self._earliest:
            self._earliest = deadline
        if self._timer is None:
            self._timer = self._loop.call_later(TIMEOUT_STEP_S, self._end_due)

    def forget(self, connection: Connection) -> None:
        self._due.pop(connection, None)

    def _end_due(self) -> None:
        now = self._loop.time()
        if self._earliest <= now:
            for connection in [one for one, deadline in self._due.items() if deadline <= now]:
                connection.abort(TIMED_OUT)
            self._earliest = min(self._due.values(), default=inf)
        self._timer = self._loop.call_later(TIMEOUT_STEP_S, self._end_due) if self._due else None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _reason(error: Any) -> str:
    return str(error) or type(error).__name__

"""(pure) The requests in the bytes of one HTTP/1.x connection, in whatever pieces the bytes arrive.

httptools (llhttp, the parser of Node.js) splits the bytes, in its strict mode: a bare LF, a folded header, a space
before a colon, a control character or a bad chunk size is answered with 400.  This module relies on what
``tests/contracts/test_llhttp.py`` states; ``incoming_request`` refuses what llhttp lets pass.  A head, a trailer, the
extension of a chunk, and empty lines before a request have at most HEADER_BYTES each (431).

``Upgrade`` is ignored, as RFC 9110 (7.8) allows: Java's client sends it with every first request.

Invariants:
    I1. The parser receives no byte while a request is being answered (pipelining).  The bytes that it receives at once
        may have more than one request: at most HEAD_PIECE_BYTES of them wait, parsed.
    I2. A call of ``next_message`` handles some EVENTS events and at most PIECES pieces, so that other connections are
        served in between.
    I3. A fault is raised only after the requests before it were answered, and no request comes after it.
    I4. ``buffered_bytes`` counts the bytes that were fed and not yet returned or dropped, give or take a piece of a
        head that is half received.

Knows nothing of methods, paths and bodies, and nothing of sockets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NoReturn

import httptools

from columnar.wire.http.answers import HttpRefused, refused
from columnar.wire.http.incoming_request import ONLY_HTTP_1, IncomingBody, IncomingHead, Message

HEADER_BYTES: Final = 64 * 1024  # as HBase's gateway
HEAD_PIECE_BYTES: Final = 4 * 1024  # fed to the parser at once, of heads and of chunks
PIECE_BYTES: Final = 64 * 1024  # of a body whose length is known
PIECES: Final = 64  # of a call of ``next_message``: 64 pieces of a body are 4 MiB, some 2 ms
EVENTS: Final = 4_096  # of a call of ``next_message``: that many little chunks are some 2 ms
_OTHER_VERSIONS: Final = ("Invalid HTTP version", "Pause on PRI/Upgrade")  # of llhttp
_OVERFLOW: Final = "Content-Length overflow"
# The parser gets this after a head whose Upgrade is ignored, because llhttp reads no body after such a head.
_LENGTH: Final = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
_CHUNKED: Final = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
Check = Callable[[Message], None]


class RequestParser:
    def __init__(self, body_bytes: int, drained_bytes: int, check: Check | None = None) -> None:
        """Pass ``check``, which raises HttpRefused for a head that makes its body useless."""
        self._events = _Events(body_bytes, drained_bytes, check)
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self._events)
        self._events.listen_to(self._parser)  # a circle, which ``stop`` opens
        self._pending = bytearray()  # not yet fed to the parser
        self._silent_bytes = 0  # fed since a head, a chunk's size or a piece of a body was complete
        self._is_answering = False  # the request that was returned last is not answered
        self.has_yielded = False  # the last ``next_message`` stopped before the end of the bytes
        self.has_ended = False  # no further request will be answered

    @property
    def buffered_bytes(self) -> int:
        return len(self._pending) + self._silent_bytes + self._events.buffered_bytes

    @property
    def is_within_message(self) -> bool:
        """Whether a request has begun that ``next_message`` has not returned."""
        return self._events.is_within_message or self.buffered_bytes > 0

    @property
    def is_in_head(self) -> bool:
        """Whether a request has begun whose head is not complete."""
        return self.is_within_message and self._events.body is None

    @property
    def is_between(self) -> bool:
        """Whether a further request may come, and no byte of it has arrived."""
        return not (self.has_ended or self._is_answering or self._events.is_over or self.is_within_message)

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        if not self._events.is_over:
            self._pending += data

    def next_message(self) -> Message | None:
        """Return the next request; None while one is answered or if more bytes are needed.  Raises HttpRefused."""
        self.has_yielded = False
        if self.has_ended or self._is_answering:
            return None
        events = self._events
        ends = events.count + EVENTS
        for _ in range(PIECES):
            if events.messages:
                self._is_answering = True
                return events.messages.popleft()
            if events.fault is not None:
                fault = events.fault
                self.stop()
                raise fault
            if not self._pending:
                return None
            if events.count >= ends:
                break
            self._feed_piece()
        self.has_yielded = True
        return None

    def take_interim(self) -> bytes:
        """Return what the client waits for before it sends a body; call after ``next_message`` returned None."""
        body = self._events.body
        return body.take_interim() if body is not None and not self._is_answering else b""

    def answered(self, *, is_last: bool) -> None:
        """Go on to the next request, or to none: the answer to the last request is the connection's last."""
        assert self._is_answering, "a request was returned"
        self._is_answering = False
        if is_last:
            self.stop()

    def shed(self, why: str) -> bool:
        """Drop the incomplete body.  Returns False if there is none."""
        body = self._events.body
        return body is not None and not self._events.messages and body.drop_rest(refused(503, why))

    def stop(self) -> None:
        """Read no further request, and free what is half received."""
        self.has_ended = True
        self._parser = None
        self._pending.clear()
        self._silent_bytes = 0
        self._events.stop()

    def _feed_piece(self) -> None:
        parser, events = self._parser, self._events
        assert parser is not None, "it has not ended"
        body = events.body
        missing_bytes = body.missing_bytes if body is not None else None
        if missing_bytes is None:
            size_bytes = min(HEAD_PIECE_BYTES, HEADER_BYTES + 1 - self._silent_bytes)
        else:
            size_bytes = min(PIECE_BYTES, missing_bytes)
        piece = bytes(memoryview(self._pending)[:size_bytes])
        del self._pending[: len(piece)]
        steps = events.steps
        try:
            if body is not None:
                body.count_chunked(len(piece))
            try:
                parser.feed_data(piece)
            except httptools.HttpParserUpgrade as upgrade:
                self._pending[:0] = piece[upgrade.args[0] :]
                parser.feed_data(events.take_stand_in())
            self._count_silent(len(piece), has_progress=events.steps != steps)
        except (HttpRefused, httptools.HttpParserError) as error:
            events.end_with(error)
        if events.is_over:
            self._pending.clear()
            self._silent_bytes = 0

    def _count_silent(self, size_bytes: int, *, has_progress: bool) -> None:
        """Bound what the parser keeps or skips: heads, trailers, extensions of chunks, empty lines.

        Raises HttpRefused.
        """
        if has_progress:
            self._silent_bytes = 0
        if self._events.is_in_head or not has_progress:
            self._silent_bytes += size_bytes
        if self._silent_bytes > HEADER_BYTES:
            raise refused(431, f"the headers have over {HEADER_BYTES} bytes")


class _Events:
    """The events of httptools, which calls the methods ``on_...`` while it is fed."""

    def __init__(self, body_bytes: int, drained_bytes: int, check: Check | None) -> None:
        self._bounds = body_bytes, drained_bytes
        self._check = check
        self._parser: httptools.HttpRequestParser | None = None
        self.messages: deque[Message] = deque()  # complete
        self.fault: HttpRefused | None = None  # after ``messages``
        self.is_over = False  # after a fault, or ``stop``
        self.count = 0  # of events of bodies
        self.steps = 0  # heads, sizes of chunks and pieces of bodies that were complete
        self._incoming: IncomingHead | None = None  # the head, its trailer included
        self._head: Message | None = None  # once the head is complete
        self.body: IncomingBody | None = None  # once the head is complete
        self._stand_in = b""  # what the parser must receive after a head whose Upgrade is ignored
        self._is_deaf = False  # the parser reads that

    @property
    def buffered_bytes(self) -> int:
        body_bytes = self.body.buffered_bytes if self.body is not None else 0
        return body_bytes + sum(one.size_bytes for one in self.messages)

    @property
    def is_in_head(self) -> bool:
        return self._incoming is not None and self.body is None

    @property
    def is_within_message(self) -> bool:
        return self._incoming is not None or bool(self.messages)

    def listen_to(self, parser: httptools.HttpRequestParser) -> None:
        self._parser = parser

    def take_stand_in(self) -> bytes:
        stand_in, self._stand_in = self._stand_in, b""
        self._is_deaf = True
        return stand_in

    def end_with(self, error: Exception) -> None:
        """End with a fault: the parser's, or one that a method here has raised through the parser."""
        if self.is_over:
            return  # the parser only passes on what was raised here
        if not isinstance(error, HttpRefused):
            why = str(error)
            status = 505 if why in _OTHER_VERSIONS else 413 if why == _OVERFLOW else 400
            error = refused(status, ONLY_HTTP_1 if status == 505 else f"not understood as HTTP: {why}")
        self._forget()
        self.fault, self.is_over = error, True

    def stop(self) -> None:
        self._forget()
        self._parser = None
        self.messages.clear()
        self.is_over = True

    def _forget(self) -> None:
        self._incoming = self._head = self.body = None

    # --- events ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._is_deaf:
            self._forget()
            self._incoming = IncomingHead()

    def on_url(self, piece: bytes) -> None:
        if self._incoming is not None and not self._is_deaf:
            self._incoming.add_to_target(piece)

    def on_header(self, name: bytes, value: bytes) -> None:
        incoming = self._incoming
        if incoming is None or self._is_deaf:
            return
        try:
            if self._head is None:
                incoming.add_header(name, value)
            else:
                incoming.count_header()  # of the trailer, which nothing here has a use for
        except HttpRefused as fault:
            self._raise(fault)

    def on_headers_complete(self) -> None:
        parser, incoming = self._parser, self._incoming
        if self._is_deaf or parser is None or incoming is None:
            self._is_deaf = False
            return
        method, version = parser.get_method().decode("latin-1"), parser.get_http_version()
        try:
            head = incoming.complete(method, version, keeps_alive=parser.should_keep_alive())
            body = IncomingBody(head, *self._bounds)
            self._check_head(head, body)
            body.check_length()
        except HttpRefused as fault:
            self._raise(fault)
        self._head, self.body = head, body
        self.steps += 1
        if parser.should_upgrade():
            self._stand_in = _CHUNKED if body.length is None else _LENGTH % body.length

    def _check_head(self, head: Message, body: IncomingBody) -> None:
        """Refuse a head that makes its body useless, at the end of the body if the client sends it anyway."""
        if self._check is not None:
            try:
                self._check(head)
            except HttpRefused as fault:
                body.refuse_unread(fault)

    def on_chunk_header(self) -> None:
        self.count += 1
        self.steps += 1

    def on_body(self, data: bytes) -> None:
        self.count += 1
        self.steps += 1
        if self.body is not None:
            try:
                self.body.add(data)
            except HttpRefused as fault:
                self._raise(fault)

    def on_message_complete(self) -> None:
        head, body = self._head, self.body
        if self._stand_in or head is None or body is None:
            return
        try:
            whole = body.whole()
        except HttpRefused as fault:
            self._raise(fault)
        self._forget()
        self.steps += 1
        if whole:
            head = Message(head.method, head.target, head.headers, head.is_last, whole, head.version)
        self.messages.append(head)

    def _raise(self, fault: HttpRefused) -> NoReturn:
        """Stop the parser, which replaces what its events raise."""
        self.end_with(fault)
        raise fault

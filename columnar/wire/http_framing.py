"""(pure) HTTP/1.x around Thrift messages: each POST carries a message, its response the reply.

    request   := POST any-path HTTP/1.x  headers  body      the body is one unframed message
    response  := 200  Content-Type: application/x-thrift  Content-Length  the reply
    a Thrift exception is a reply like any other, so its status is 200; a oneway call has an empty reply

A fault of the HTTP request itself is answered with a status and a line of text; then the connection is closed:

    400 no HTTP, or no message within     403 from a web page, or a foreign Host (``browsers``)
    405 another method than POST          411 no length                   413 body over the bound
    415 a compressed body, or a form      431 headers over the bound      503 dropped for lack of memory
    505 not HTTP/1.x

A request with two lengths (Content-Length and Transfer-Encoding; RFC 9112, 6.1) is also answered with 400: a proxy that
uses the other length would take the end of the body for the next request.

Pages of an allowed origin may send a preflight request (OPTIONS: 204) and read the answers.

h11 parses the requests.  The parser receives small pieces, so that it buffers at most HEADER_BYTES and one piece;
``buffered_bytes`` counts the bytes that h11 has not received yet.

Invariants:
    I1. No length is trusted: the body grows with the bytes that arrive.
    I2. The next request is parsed only when the request before it has been answered (pipelining).
    I3. A call of ``next_body`` handles no more than EVENTS events, so that other connections are served in between.

Knows nothing of Thrift, and nothing of sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from columnar.wire.browsers import Visitors

if TYPE_CHECKING:
    import h11

HEADER_BYTES: Final = 64 * 1024  # as HBase's gateway
PIECE_BYTES: Final = 64 * 1024  # fed to the parser at once
EVENTS: Final = 64  # of a call of ``next_body``: 64 pieces of a body are 4 MiB, some 3 ms
THRIFT_TYPE: Final = b"application/x-thrift"
_TEXT_TYPE: Final = b"text/plain; charset=utf-8"
_REASONS: Final = {
    200: b"OK",
    204: b"No Content",
    400: b"Bad Request",
    403: b"Forbidden",
    405: b"Method Not Allowed",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    503: b"Service Unavailable",
    505: b"HTTP Version Not Supported",
}


class HttpRefused(Exception):
    """The request contains no usable message: send ``answer`` and close the connection."""

    def __init__(self, why: str, answer: bytes) -> None:
        super().__init__(why)
        self.why = why
        self.answer = answer


def closing_answer(status: int, body: bytes, content_type: bytes = _TEXT_TYPE, *, head_only: bool = False) -> bytes:
    """Return a whole response that announces the close of the connection."""
    allow = b"Allow: POST\r\n" if status == 405 else b""
    head = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%bConnection: close\r\n\r\n"
    packed = head % (status, _REASONS.get(status, b"Error"), content_type, len(body), allow)
    return packed if head_only else packed + body


def refused(status: int, why: str, *, head_only: bool = False) -> HttpRefused:
    return HttpRefused(f"HTTP {status}: {why}", closing_answer(status, why.encode() + b"\n", head_only=head_only))


def _preflight(origin: bytes) -> HttpRefused:
    """Return the answer to the preflight request of an allowed page."""
    head = b"HTTP/1.1 204 No Content\r\n%bAccess-Control-Allow-Methods: POST\r\nConnection: close\r\n"
    allowed = b"Access-Control-Allow-Headers: content-type\r\nAccess-Control-Allow-Private-Network: true\r\n\r\n"
    return HttpRefused("HTTP 204: a page asked whether it may send messages", head % _allow(origin) + allowed)


def _allow(origin: bytes) -> bytes:
    return b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % origin


class HttpFraming:
    """The framing of a connection that speaks HTTP."""

    def __init__(self, message_bytes: int, drained_bytes: int, visitors: Visitors | None = None) -> None:
        self._visitors = visitors or Visitors()
        self._origin = b""  # of the page that sent the message, if it is allowed
        self._message_bytes = message_bytes
        self._drained_bytes = drained_bytes
        import h11  # by the first connection that speaks HTTP: most servers have none

        self._h11 = h11
        self._parser = h11.Connection(self._h11.SERVER, max_incomplete_event_size=HEADER_BYTES)
        self._pending = bytearray()  # not yet fed to the parser
        self._head_bytes = 0  # fed, of a request whose headers are not complete
        self._in_body = False
        self._body = bytearray()
        self._body_bytes = 0  # arrived, dropped bytes included
        self._refused: HttpRefused | None = None  # the rest of the body is dropped
        self.interim = b""  # to be sent before more can come
        self.has_yielded = False  # the last ``next_body`` stopped after EVENTS events
        self.ended = False  # no further request will be answered

    @property
    def buffered_bytes(self) -> int:
        return len(self._pending) + self._head_bytes + len(self._body)

    @property
    def is_within_message(self) -> bool:
        return self._in_body or self.buffered_bytes > 0

    @property
    def is_between(self) -> bool:
        """Whether a further request may come, and no byte of it has arrived."""
        return not (self.ended or self.is_within_message or self._parser.trailing_data[0])

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        if not self.ended:
            self._pending += data

    def next_body(self) -> bytes | None:
        """Return the body of the next POST, or None if more bytes are needed.  Raises HttpRefused."""
        self.has_yielded = False
        if self.ended:
            return None
        try:
            for _ in range(EVENTS):
                event = self._parser.next_event()
                if event is self._h11.NEED_DATA:
                    if not self._pending:
                        return None
                    self._feed_piece()
                elif isinstance(event, self._h11.Request):
                    self._begin(event)
                elif isinstance(event, self._h11.Data):
                    self._take(event.data)
                elif isinstance(event, self._h11.EndOfMessage):
                    return self._whole()
                else:
                    return None  # paused: the reply before it is not sent
        except self._h11.RemoteProtocolError as fault:
            raise refused(fault.error_status_hint, f"not understood as HTTP: {fault}") from None
        self.has_yielded = True
        return None

    def take_interim(self) -> bytes:
        taken, self.interim = self.interim, b""
        return taken

    def answer(self, reply: bytes | memoryview) -> list[bytes | memoryview]:
        """Return the response with ``reply``; afterwards the next request can be read."""
        headers = [(b"Content-Type", THRIFT_TYPE), (b"Content-Length", b"%d" % len(reply))]
        if self._origin:
            headers += [(b"Access-Control-Allow-Origin", self._origin), (b"Vary", b"Origin")]
        sent = self._parser.send(self._h11.Response(status_code=200, headers=headers, reason=b"OK"))
        end = self._parser.send(self._h11.EndOfMessage()) if not reply else self._send_body(reply)
        if self._parser.our_state is self._h11.DONE:
            self._parser.start_next_cycle()
        else:
            self.ended = True
            self._pending.clear()
        return [part for part in (sent, reply, end) if part]

    def shed(self, why: str) -> bool:
        """Drop the incomplete body.  Returns False if there is none."""
        if not self._in_body or self._refused is not None:
            return False
        self._drop(refused(503, why))
        return True

    # --- events -------------------------------------------------------------------------------------

    def _feed_piece(self) -> None:
        piece = bytes(self._pending[:PIECE_BYTES])
        del self._pending[:PIECE_BYTES]
        if not self._in_body:
            self._head_bytes += len(piece)
        self._parser.receive_data(piece)

    def _begin(self, request: h11.Request) -> None:
        self._head_bytes = 0
        self._in_body = True
        if not request.http_version.startswith(b"1."):
            raise refused(505, "this port speaks HTTP/1.1 and 1.0")
        self._check_visitor(request)
        if request.method != b"POST":
            why = (
                "this is a Thrift port: POST one message, binary or compact, unframed, as "
                "application/x-thrift; or speak Thrift without HTTP"
            )
            raise refused(405, why, head_only=request.method == b"HEAD")
        length = 0
        names = {name for name, _ in request.headers}
        if b"transfer-encoding" in names and (b"content-length" in names or request.http_version == b"1.0"):
            raise refused(400, "send either Content-Length or, with HTTP/1.1, Transfer-Encoding: chunked")
        for name, value in request.headers:
            if name == b"content-encoding" and value.lower() != b"identity":
                raise refused(415, "send the body as it is, not compressed")
            if name == b"content-length":
                length = int(value)
        waiting = self._parser.they_are_waiting_for_100_continue
        if length > self._message_bytes:
            fault = self._too_large(f"a body of {length} bytes")
            if waiting or length > self._drained_bytes:
                raise fault
            self._drop(fault)
        elif waiting:
            self.interim += self._parser.send(
                self._h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            )

    def _check_visitor(self, request: h11.Request) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        why = self._visitors.refuses_host(headers.get("host"))
        if why is not None:
            raise refused(403, why, head_only=request.method == b"HEAD")
        if request.method == b"POST" or request.method == b"OPTIONS":
            allowed = self._visitors.allowed_origin(headers)
            self._origin = headers["origin"].encode("latin-1") if allowed is not None else b""
            found = self._visitors.refuses_page(headers)
            if found is not None:
                raise refused(*found)
            if self._origin and request.method == b"OPTIONS":
                raise _preflight(self._origin)

    def _take(self, data: bytes | bytearray) -> None:
        self._body_bytes += len(data)
        if self._body_bytes > self._message_bytes and self._refused is None:
            self._drop(self._too_large(f"a body of over {self._message_bytes} bytes"))
        if self._body_bytes > self._drained_bytes and self._refused is not None:
            raise self._refused
        if self._refused is None:
            self._body += data

    def _too_large(self, what: str) -> HttpRefused:
        return refused(413, f"{what}, the limit is {self._message_bytes}; nothing was stored")

    def _drop(self, fault: HttpRefused) -> None:
        self._refused = fault
        self._body = bytearray()

    def _whole(self) -> bytes:
        if self._refused is not None:
            raise self._refused
        body, self._body = bytes(self._body), bytearray()
        self._body_bytes = 0
        self._in_body = False
        return body

    def _send_body(self, reply: bytes | memoryview) -> bytes:
        """Pass the body through the parser's state machine without a copy."""
        self._parser.send_with_data_passthrough(self._h11.Data(data=cast(bytes, reply)))  # it only reads the length
        return self._parser.send(self._h11.EndOfMessage()) or b""

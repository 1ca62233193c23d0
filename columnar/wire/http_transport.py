"""(pure) Thrift over HTTP: each POST carries a message, its response the reply.

    request   := POST any-path HTTP/1.x  headers  body      the body is one unframed message
    response  := 200  Content-Type: application/x-thrift  Content-Length  the reply
    a Thrift exception is a reply like any other, so its status is 200; a oneway call has an empty reply

A fault of the HTTP request itself is answered with a status and a line of text; then the connection is closed.  The
statuses are those of ``http.request_parser`` and ``http.incoming_request``, and:

    400 no message within                 403 from a web page, or a foreign Host (``browsers``)
    401 wrong credentials (``http_sign_in``)                              405 another method than POST
    415 a compressed body, or a form      503 dropped for lack of memory

Pages of an allowed origin may send a preflight request (OPTIONS: 204) and read the answers.

Knows nothing of Thrift, and nothing of sockets.
"""

from __future__ import annotations

from typing import Final

from columnar.wire.browsers import Visitors
from columnar.wire.http.answers import THRIFT_TYPE, HttpRefused, answer_head, refused
from columnar.wire.http.incoming_request import Message
from columnar.wire.http.request_parser import RequestParser

_ONLY_POST: Final = (
    "this is a Thrift port: POST one message, binary or compact, unframed, as "
    "application/x-thrift; or speak Thrift without HTTP"
)
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-thrift\r\nContent-Length: %d\r\n\r\n"


class HttpTransport:
    """The framing of a connection that speaks HTTP."""

    def __init__(self, message_bytes: int, drained_bytes: int, visitors: Visitors | None = None) -> None:
        self._visitors = visitors or Visitors()
        self._parser = RequestParser(message_bytes, drained_bytes, self._check)
        self._headers: dict[str, str] = {}  # of the request that is or was read last, as is the next one
        self._is_last = False

    @property
    def authorization(self) -> str:
        return self._headers.get("authorization", "")

    @property
    def trace_parent(self) -> str:
        return self._headers.get("traceparent", "")

    @property
    def buffered_bytes(self) -> int:
        return self._parser.buffered_bytes

    @property
    def is_within_message(self) -> bool:
        return self._parser.is_within_message

    @property
    def is_between(self) -> bool:
        """Whether a further request may come, and no byte of it has arrived."""
        return self._parser.is_between

    @property
    def has_yielded(self) -> bool:
        """Whether the last ``next_body`` stopped before the end of the bytes."""
        return self._parser.has_yielded

    @property
    def has_ended(self) -> bool:
        """Whether no further request will be answered."""
        return self._parser.has_ended

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        self._parser.feed(data)

    def next_body(self) -> bytes | None:
        """Return the body of the next POST, or None if more bytes are needed.  Raises HttpRefused."""
        message = self._parser.next_message()
        if message is None:
            return None
        self._headers, self._is_last = message.headers, message.is_last
        return message.body

    def take_interim(self) -> bytes:
        """Return what the client waits for before it sends the body; call when ``next_body`` returned None."""
        return self._parser.take_interim()

    def answer(self, reply: bytes | memoryview) -> list[bytes | memoryview]:
        """Return the response with ``reply``; afterwards the next request can be read."""
        is_last = self._is_last
        self._parser.answered(is_last=is_last)
        origin = self._allowed_origin(self._headers)
        if origin or is_last:
            headers = [("Content-Type", THRIFT_TYPE), ("Content-Length", str(len(reply))), *_origin_headers(origin)]
            head = answer_head(200, [*headers, ("Connection", "close")] if is_last else headers)
        else:
            head = _HEAD % len(reply)
        return [head, reply] if reply else [head]

    def shed(self, why: str) -> bool:
        """Drop the incomplete body.  Returns False if there is none."""
        return self._parser.shed(why)

    def stop(self) -> None:
        """Free what is half received: the connection has ended."""
        self._parser.stop()

    # --- heads ------------------------------------------------------------------------------------------

    def _allowed_origin(self, headers: dict[str, str]) -> str:
        """Return the origin of the page that sent the message, as it was sent, if the page is allowed."""
        return headers["origin"] if self._visitors.allowed_origin(headers) is not None else ""

    def _check(self, head: Message) -> None:
        """Refuse a request without a message, before its body arrives.  Raises HttpRefused."""
        method, headers = head.method, head.headers
        why = self._visitors.refuses_host(headers.get("host"))
        if why is not None:
            raise refused(403, why, head_only=method == "HEAD")
        if method in ("POST", "OPTIONS"):
            found = self._visitors.refuses_page(headers)
            if found is not None:
                raise refused(*found)
            origin = self._allowed_origin(headers)
            if origin and method == "OPTIONS":
                raise _preflight(origin)
        if method != "POST":
            raise refused(405, _ONLY_POST, [("Allow", "POST")], head_only=method == "HEAD")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise refused(415, "send the body as it is, not compressed")


def _preflight(origin: str) -> HttpRefused:
    """Return the answer to the preflight request of an allowed page."""
    headers = (
        *_origin_headers(origin),
        ("Access-Control-Allow-Methods", "POST"),
        ("Access-Control-Allow-Headers", "content-type"),
        ("Access-Control-Allow-Private-Network", "true"),
        ("Connection", "close"),
    )
    return HttpRefused("HTTP 204: a page asked whether it may send messages", answer_head(204, headers))


def _origin_headers(origin: str) -> list[tuple[str, str]]:
    return [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")] if origin else []

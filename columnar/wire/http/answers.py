"""(pure) The bytes of HTTP responses.

    answer  := "HTTP/1.1 " status reason  headers  body        the body has Content-Length, or comes in chunks
    chunk   := size in hexadecimal CRLF  bytes CRLF            the last one is empty

Knows nothing of requests, and nothing of sockets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

TEXT_TYPE: Final = "text/plain; charset=utf-8"
THRIFT_TYPE: Final = "application/x-thrift"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
_REASONS: Final = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    206: "Partial Content",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
}
Headers = Iterable[tuple[str, str]]


class HttpRefused(Exception):
    """The connection contains no further usable request: send ``answer`` and close the connection."""

    def __init__(self, why: str, answer: bytes) -> None:
        super().__init__(why)
        self.why = why
        self.answer = answer


def reason(status: int) -> str:
    return _REASONS.get(status, "Status")


def answer_head(status: int, headers: Headers) -> bytes:
    """Return status line and headers, which have no control characters (``exchange.Response`` sees to that)."""
    lines = [f"HTTP/1.1 {status} {reason(status)}", *[f"{name}: {value}" for name, value in headers], "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def chunk(data: bytes | memoryview) -> list[bytes | memoryview]:
    """Return a chunk that is not the last one."""
    assert len(data), "an empty chunk would be the last one"
    return [b"%x\r\n" % len(data), data, b"\r\n"]


def closing_answer(
    status: int, body: bytes, content_type: str = TEXT_TYPE, headers: Headers = (), *, head_only: bool = False
) -> bytes:
    """Return a whole response that announces the close of the connection."""
    framing = (("Content-Type", content_type), ("Content-Length", str(len(body))), *headers, ("Connection", "close"))
    packed = answer_head(status, framing)
    return packed if head_only else packed + body


def refused(status: int, why: str, headers: Headers = (), *, head_only: bool = False) -> HttpRefused:
    answer = closing_answer(status, why.encode() + b"\n", headers=headers, head_only=head_only)
    return HttpRefused(f"HTTP {status}: {why}", answer)


CHALLENGES: Final = (("WWW-Authenticate", 'Basic realm="columnar", charset="UTF-8"'), ("WWW-Authenticate", "Bearer"))


def unauthorized(why: str) -> bytes:
    """Return the whole answer to a request with credentials that are none; it asks for others."""
    return closing_answer(401, why.encode() + b"\n", headers=CHALLENGES)

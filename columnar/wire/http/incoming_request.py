"""(pure) The request of a connection that is being received: its head, then its body.

Heads are refused for these reasons, beside those of the parser:

    400   a header of SINGLE twice; two lengths; no Host; a fragment in the target; chunks with HTTP/1.0
    431   over HEADERS headers, those of the trailer included
    501   another transfer coding than chunked; CONNECT                       505   not HTTP/1.0 or 1.1

A body over ``kept_bytes`` is refused with 413 (or by whoever needs its memory) at its end, because a client that still
sends does not read; its bytes are dropped as they arrive.  A body over ``drained_bytes`` is refused at once, and so is
one whose client waits for "100 Continue".  The same holds for a body whose head is refused by the port's own check: an
answer and a close while the client sends would reach many clients as a reset of the connection.

Invariant: no length is trusted; the body grows with the bytes that arrive.

Knows nothing of the parser, and nothing of sockets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.wire.http.answers import CONTINUE, HttpRefused, refused

HEADERS: Final = 128  # of a request; a browser sends some 20
SINGLE: Final = frozenset(  # headers of which a second one would have each reader choose
    {"authorization", "content-length", "content-type", "expect", "host", "origin", "traceparent", "transfer-encoding"}
)
ONLY_HTTP_1: Final = "this port speaks HTTP/1.1 and 1.0"
_HEADER_COST: Final = 64  # bytes that a header of a request that waits counts as


@dataclass(frozen=True, slots=True)
class Message:
    """A received request: ``target`` as it was sent, names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]  # a repeated one is joined by commas
    is_last: bool  # the connection ends with its answer
    body: bytes = b""
    version: str = "1.1"  # or 1.0

    @property
    def size_bytes(self) -> int:
        return len(self.body) + len(self.target) + _HEADER_COST * len(self.headers)


class IncomingHead:
    def __init__(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._count = 0

    def add_to_target(self, piece: bytes) -> None:
        self._target += piece

    def add_header(self, raw_name: bytes, raw_value: bytes) -> None:
        """Add a header.  Raises HttpRefused."""
        self.count_header()
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        known = self._headers.get(name)
        if known is not None:
            if name in SINGLE:
                raise refused(400, f"the header {name} is there twice")
            value = f"{known}, {value}"
        elif name == "transfer-encoding" and value.lower() != "chunked":
            raise refused(501, "send the body with Content-Length, or with Transfer-Encoding: chunked alone")
        self._headers[name] = value

    def count_header(self) -> None:
        """Count a header, perhaps of the trailer.  Raises HttpRefused."""
        self._count += 1
        if self._count > HEADERS:
            raise refused(431, f"the request has over {HEADERS} headers")

    def complete(self, method: str, version: str, *, keeps_alive: bool) -> Message:
        """Return the request without its body.  Raises HttpRefused."""
        headers, target = self._headers, self._target.decode("latin-1")
        if version not in ("1.1", "1.0"):
            raise refused(505, ONLY_HTTP_1)
        if version == "1.0":
            headers.pop("expect", None)  # such a client would take an interim answer for the answer
        why = ""
        if version == "1.1" and "host" not in headers:
            why = "the header Host is missing"
        elif "transfer-encoding" in headers and ("content-length" in headers or version == "1.0"):
            why = "send either Content-Length or, with HTTP/1.1, Transfer-Encoding: chunked"
        elif "#" in target:
            why = "the target of a request has no fragment"
        if why:
            raise refused(400, why, head_only=method == "HEAD")
        if method == "CONNECT":
            raise refused(501, "this port is no proxy")
        return Message(method, target, headers, version == "1.0" or not keeps_alive, b"", version)


class IncomingBody:
    def __init__(self, head: Message, kept_bytes: int, drained_bytes: int) -> None:
        headers = head.headers
        self.length: Final = None if "transfer-encoding" in headers else int(headers.get("content-length", 0))
        self._kept_bytes = kept_bytes
        self._drained_bytes = drained_bytes
        self._waits = headers.get("expect", "").lower() == "100-continue" and self.length != 0
        self._bytes: bytes | bytearray = b""
        self._arrived_bytes = 0  # dropped ones included
        self._wire_bytes = 0  # in chunks, with their sizes
        self._refused: HttpRefused | None = None  # the rest is dropped

    @property
    def buffered_bytes(self) -> int:
        return len(self._bytes)

    @property
    def missing_bytes(self) -> int | None:
        """The bytes until its end, if its length is known."""
        return self.length - self._arrived_bytes if self.length is not None else None

    def check_length(self) -> None:
        """Refuse a length that is announced and too large.  Raises HttpRefused."""
        if self.length is not None and self.length > self._kept_bytes:
            self.refuse_unread(self._too_large(f"a body of {self.length} bytes"))

    def refuse_unread(self, fault: HttpRefused) -> None:
        """Refuse the body with ``fault`` before its first byte: at once if the client waits, else at its end.

        Raises HttpRefused at once, too, if the body is empty or too long to read to its end.
        """
        if self._waits or self.length == 0 or (self.length or 0) > self._drained_bytes:
            raise fault
        self.drop_rest(fault)

    def take_interim(self) -> bytes:
        """Return what the client waits for before it sends the body."""
        if not self._waits:
            return b""
        self._waits = False
        return CONTINUE

    def add(self, data: bytes) -> None:
        """Keep or drop the next bytes.  Raises HttpRefused."""
        self._waits = False
        self._arrived_bytes += len(data)
        if self._refused is None and self._arrived_bytes > self._kept_bytes:
            self.drop_rest(self._too_large(f"a body of over {self._kept_bytes} bytes"))
        if self._refused is not None:
            if self._arrived_bytes > self._drained_bytes:
                raise self._refused
        elif not self._bytes:
            self._bytes = data
        else:
            if isinstance(self._bytes, bytes):
                self._bytes = bytearray(self._bytes)
            self._bytes += data

    def count_chunked(self, size_bytes: int) -> None:
        """Count what a body in chunks takes on the wire, so that extensions of chunks are bounded.  Raises HttpRefused.

        ``size_bytes`` were received, bytes of the body among them.
        """
        if self.length is None:
            self._wire_bytes += size_bytes
            if self._wire_bytes > self._drained_bytes:
                raise self._refused or self._too_large(f"a body in chunks of over {self._drained_bytes} bytes")

    def drop_rest(self, fault: HttpRefused) -> bool:
        """Refuse the body with ``fault`` at its end.  Returns False if it is refused already."""
        if self._refused is not None:
            return False
        self._refused, self._bytes = fault, b""
        return True

    def whole(self) -> bytes:
        """Return the body at its end.  Raises HttpRefused."""
        if self._refused is not None:
            raise self._refused
        return bytes(self._bytes)

    def _too_large(self, what: str) -> HttpRefused:
        return refused(413, f"{what}, the limit is {self._kept_bytes}; nothing was stored")

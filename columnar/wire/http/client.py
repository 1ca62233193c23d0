"""A client of one HTTP/1.1 target: POST requests over kept connections, with bounds for what the target answers.

    post -> an idle connection, or a new one -> request -> answer -> the connection is idle again, or closed

Redirects are not followed, no cookies are kept, and no proxy is used.  The answer is its status, its headers and the
first BODY_BYTES of its body: a target cannot fill our memory.  The caller bounds the time.  A name that is looked up
for long holds up this client alone (``name_lookup``).

    HostError subclasses tell what happened:  Unreachable    no connection came about: nothing was sent
                                              Broken         the target may have got the request, and answers nothing

A connection that the target has closed meanwhile shows it only when it is used: then the request goes over a new one.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult

from columnar.runtime.name_lookup import NameLookup

if TYPE_CHECKING:
    from httptools import HttpResponseParser

HEAD_BYTES: Final = 32 * 1024  # of an answer
BODY_BYTES: Final = 16 * 1024  # of an answer that are read; a longer one ends its connection
ANSWER_BYTES: Final = HEAD_BYTES + 2 * BODY_BYTES  # of head, body, its chunks' heads and trailers
CONNECT_S: Final = 10.0
READ_BYTES: Final = 16 * 1024
_PORTS: Final = {"http": 80, "https": 443}
_PROCESSING: Final = range(100, 200)  # an answer that another one follows
_SWITCHED: Final = 101


class Unreachable(Exception):
    """No connection to the target came about."""


class Broken(Exception):
    """The target ended the connection, or its answer cannot be read."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""  # at most BODY_BYTES of it

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class HttpClient:
    def __init__(self, url: SplitResult, connections: int, connect_s: float = CONNECT_S) -> None:
        """``connections``: how many idle connections are kept; ``connect_s``: how long a new one may take."""
        assert url.hostname is not None, "the caller has checked the URL"
        self._host = url.hostname
        self._port = url.port or _PORTS[url.scheme]
        self._tls: ssl.SSLContext | None = None  # made with the first connection, as it reads files
        self._is_https = url.scheme == "https"
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._start = f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nUser-Agent: columnar\r\n"
        self._idle: list[_Connection] = []
        self._most_idle = connections
        self._connect_s = connect_s
        self._names = NameLookup()

    async def post(self, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
        """Send the body; return the answer.  Headers have no line breaks.  Raises Unreachable or Broken."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        request = f"{self._start}{lines}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body
        while self._idle:
            connection = self._idle.pop()
            try:
                return await self._exchange(connection, request)
            except _Stale:
                continue
        try:
            return await self._exchange(await self._connected(), request)
        except _Stale as error:
            raise Broken("the target closed the connection without an answer") from error

    async def _connected(self) -> _Connection:
        name = self._host if self._is_https else None
        try:
            if self._is_https and self._tls is None:
                self._tls = await asyncio.to_thread(ssl.create_default_context)
            async with asyncio.timeout(self._connect_s):
                connected = await self._names.connect(self._host, self._port)
                reader, writer = await asyncio.open_connection(  # from here on the socket is the transport's
                    sock=connected, ssl=self._tls, server_hostname=name, limit=READ_BYTES
                )
        except TimeoutError as error:
            raise Unreachable(f"{self._host}:{self._port}: no connection within {self._connect_s:g} s") from error
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"{self._host}:{self._port}: {error}") from error
        return _Connection(reader, writer)

    async def _exchange(self, connection: _Connection, request: bytes) -> Answer:
        try:
            answer = await connection.exchange(request)
        except BaseException:
            connection.close()
            raise
        if connection.is_reusable and len(self._idle) < self._most_idle:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """End the idle connections, and the threads that look names up."""
        while self._idle:
            self._idle.pop().close()
        self._names.close()


class _Stale(Exception):
    """The connection ended before the first byte of an answer."""


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_reusable = False  # after an exchange

    async def exchange(self, request: bytes) -> Answer:
        self.is_reusable = False
        found = _AnswerReader()
        try:
            self._writer.write(request)
            await self._writer.drain()
            while not found.is_over:
                data = await self._reader.read(READ_BYTES)
                if not data:
                    return found.cut_off()
                found.feed(data)
        except OSError as error:
            if found.is_begun:
                raise Broken(str(error)) from error
            raise _Stale from error
        self.is_reusable = found.keeps_alive
        return found.answer()

    def close(self) -> None:
        with suppress(OSError, RuntimeError):  # the loop may be closed
            self._writer.close()


class _AnswerReader:
    """(pure) Bytes to an answer; has the callbacks of httptools."""

    def __init__(self) -> None:
        self.is_begun = False
        self.is_over = False
        self.keeps_alive = False
        self._bytes = 0
        self._is_head_over = False
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._parser: HttpResponseParser = _parser(self)

    def feed(self, data: bytes) -> None:
        """Take bytes of the answer.  Raises Broken."""
        from httptools import HttpParserError

        self.is_begun = True
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if not self.is_over:
                raise Broken(f"its answer is no HTTP: {error}") from error
            self.keeps_alive = False  # bytes behind the answer
        if not self._is_head_over and self._bytes > HEAD_BYTES:
            raise Broken(f"the head of its answer is over {HEAD_BYTES} bytes")
        if self._bytes > ANSWER_BYTES and not self.is_over:  # chunks of a byte, or trailers without end
            self.is_over, self.keeps_alive = True, False

    def cut_off(self) -> Answer:
        """Return the answer whose connection has ended.  Raises Broken, or _Stale if nothing came."""
        if self._is_head_over:
            return self.answer()
        if self.is_begun:
            raise Broken("the target closed the connection within the head of its answer")
        raise _Stale

    def answer(self) -> Answer:
        return Answer(self._parser.get_status_code(), self._headers, bytes(self._body))

    # --- httptools -----------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_head_over:  # else it is a trailer
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._is_head_over = status not in _PROCESSING or status == _SWITCHED

    def on_body(self, data: bytes) -> None:
        self._body += data[: BODY_BYTES - len(self._body)]
        if len(self._body) >= BODY_BYTES:
            self.is_over = True

    def on_message_complete(self) -> None:
        if not self._is_head_over:  # of an answer that another one follows
            self._headers.clear()
            return
        self.keeps_alive = not self.is_over and self._parser.should_keep_alive()
        self.is_over = True


def _parser(reader: _AnswerReader) -> HttpResponseParser:
    from httptools import HttpResponseParser  # a store that posts nothing needs it not

    return HttpResponseParser(reader)

"""The page of a running replay or search: figures once a second to browsers, metrics to Prometheus, a stop button.

    GET  /          the page                                GET /metrics   Prometheus' text format
    GET  /events    server-sent events (``running``)        POST /stop     ends it; needs the token

A thread of the controller's process serves it, so a browser cannot disturb the clock of a worker.  The thread gets
bytes that are made once for all clients, and says whether to stop; they share nothing else.  A search forks workers for
each of its tries, while the thread serves: it stands still during a fork, so that no lock is copied closed, and the
child closes its copies of the connections.

Invariants:
    D1. At most DASHBOARD_CLIENTS follow, and CONNECTIONS are open; one more is answered 503.
    D2. A client that does not read is cut off when PENDING_BYTES wait for it; nothing waits for a client.
    D3. Nothing stops a replay without its token, and no page of another site reads the figures: names of hosts are
        refused but the one that was given and ``localhost``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import os
import secrets
import signal
import socket
import threading
from typing import Final, Self

import httptools

from wikibench.errors import PlanError
from wikibench.limits import DASHBOARD_CLIENTS
from wikibench.live import Snapshot
from wikibench.summary import Json

from .pages import RESPONSE, plots_of, rendered
from .running import Running

CONNECTIONS: Final = 3 * DASHBOARD_CLIENTS
HEAD_BYTES: Final = 16 * 1024
PENDING_BYTES: Final = 1 << 20
HEAD_S: Final = 5.0  # for a request to come
END_S: Final = 2.0  # for the last event to leave
FORK_S: Final = 1.0  # for the thread to stand still
PORT: Final = 8089
_STOPPED: Final = "interrupted"


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``, ``HOST`` or ``:PORT``.  Raises PlanError."""
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    host, port = (host, port) if colon else (text, str(PORT))
    if not port.isascii() or not port.isdigit() or int(port) > 65_535 or "/" in host or not host + colon:
        raise PlanError(f"--dashboard {text!r}: an address such as 127.0.0.1:{PORT} is needed")
    return host.strip("[]") or "127.0.0.1", int(port)


class Dashboard:
    """A server of one replay or search; as a context it is finished at the end.

    ``begin_try``, ``tick``, ``end_try`` and ``finish`` belong to the controller, all else to the server's thread.
    """

    def __init__(self, listener: socket.socket, host: str, page: bytes) -> None:
        self._listener = listener
        self._host = host
        self._page = page
        self._token = secrets.token_urlsafe(16)
        self._running = Running()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._following: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()
        self._whole = _event(self._running.whole())
        self._metrics = b""
        self._has_ended: asyncio.Event | None = None
        self._forking = threading.Lock()  # locked during a fork
        self._stands_still = threading.Event()
        self._ending = "with an error"  # until ``note_ending``, or the stop button

    @classmethod
    def listening(cls, text: str, about: Json) -> Dashboard:
        """Listen at an address; ``about`` has target, requirements and interval.  Raises PlanError and OSError."""
        host, port = parse_address(text)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listener = socket.create_server((host, port), family=family)
        except (OSError, UnicodeError) as error:
            raise PlanError(f"--dashboard {text}: {error}; give another HOST:PORT") from error
        report = {"intervals": [], "duration_s": 0, **about}
        data = {"report": report, "curves": {}, "live": True}
        page = rendered(
            "live.html",
            data,
            ("report.js", "live.js"),
            connects=True,
            headline="running",
            plots=plots_of(report, {RESPONSE: ()}, is_live=True),
            about=about,
        )
        made = cls(listener, host, page.encode())
        os.register_at_fork(before=made._pause, after_in_parent=made._resume, after_in_child=made._close_copies)
        return made

    @property
    def url(self) -> str:
        """The page's address with the token, for its owner."""
        host, port = self._listener.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/#token={self._token}"

    @property
    def is_stopping(self) -> bool:
        """Whether the stop button was pressed.  Between two tries of a search nobody hears its signal."""
        return self._ending == _STOPPED

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def begin_try(self, search: Json) -> None:
        """Take what a search says of itself, and begin the figures anew."""
        self._send_event(self._running.begin_try(search))

    def tick(self, now: Snapshot) -> None:
        """Take a snapshot."""
        self._send_event(self._running.take_snapshot(now))

    def end_try(self, search: Json) -> None:
        """Take what a search says of itself after a try."""
        self._send_event(self._running.end_try(search))

    def _send_event(self, event: Json) -> None:
        """Publish the event; the first one starts the thread."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
            self._thread.start()
        whole, metrics = _event(self._running.whole()), self._running.metrics().encode()
        self._loop.call_soon_threadsafe(self._publish, _event(event), whole, metrics)

    def note_ending(self, ending: str) -> None:
        """Note how the replay has ended, for the last event."""
        self._ending = ending

    def finish(self) -> None:
        """Send the last event, with the ending, and end the thread."""
        if self._loop is not None and self._thread is not None:
            last = _event(self._running.whole(self._ending))
            self._loop.call_soon_threadsafe(self._end, last)
            self._thread.join(END_S + 1)
            if not self._thread.is_alive():
                self._loop.close()
            self._loop = None
        self._listener.close()

    def _pause(self) -> None:
        self._forking.acquire()
        if self._loop is not None:
            self._stands_still.clear()
            self._loop.call_soon_threadsafe(self._wait_for_fork)
            self._stands_still.wait(FORK_S)

    def _wait_for_fork(self) -> None:
        self._stands_still.set()
        with self._forking:
            pass

    def _resume(self) -> None:
        self._forking.release()

    def _close_copies(self) -> None:
        """Close, in a child, the port and the connections: a browser sees their end when the last copy is closed."""
        self._forking.release()
        self._loop = None
        self._listener.close()
        for writer in self._open:
            with contextlib.suppress(OSError):
                os.close(writer.get_extra_info("socket").fileno())

    async def _serve(self) -> None:
        self._has_ended = asyncio.Event()
        server = await asyncio.start_server(self._connected, sock=self._listener, limit=HEAD_BYTES)
        await self._has_ended.wait()
        server.close()
        for writer in list(self._following):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(END_S):
                    await writer.drain()
            writer.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _publish(self, event: bytes, whole: bytes, metrics: bytes) -> None:
        self._whole, self._metrics = whole, metrics
        for writer in list(self._following):
            if writer.transport.get_write_buffer_size() > PENDING_BYTES:
                writer.transport.abort()
            else:
                writer.write(event)

    def _end(self, last: bytes) -> None:
        self._publish(last, last, self._metrics)
        assert self._has_ended is not None
        self._has_ended.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if len(self._open) > CONNECTIONS:
                writer.write(_answer(503, b"too many connections\n"))
            else:
                async with asyncio.timeout(HEAD_S):
                    request = await _Request.read_from(reader)
                await self._answer(request, reader, writer)
        except (OSError, TimeoutError, httptools.HttpParserError):
            pass  # a client that is gone, says nothing, or speaks no HTTP
        finally:
            self._open.discard(writer)
            self._following.discard(writer)
            writer.close()

    async def _answer(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path = request.method, request.path
        if not self._is_own_name(request.headers.get(b"host", b"")):
            writer.write(_answer(403, b"this host is not served here\n"))
        elif (method, path) == ("GET", b"/"):
            writer.write(_answer(200, self._page, "text/html; charset=utf-8"))
        elif (method, path) == ("GET", b"/metrics"):
            writer.write(_answer(200, self._metrics, "text/plain; version=0.0.4; charset=utf-8"))
        elif (method, path) == ("GET", b"/events"):
            await self._follow(reader, writer)
        elif (method, path) == ("POST", b"/stop"):
            if hmac.compare_digest(request.headers.get(b"x-token", b""), self._token.encode()):
                self._ending = _STOPPED
                os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: the report of what was done is still written
                writer.write(_answer(202, b"it is ending\n"))
            else:
                writer.write(_answer(403, b"the token of the address that wikibench printed is needed\n"))
        else:
            writer.write(_answer(404, b"/, /events, /metrics and POST /stop are here\n"))

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._following) >= DASHBOARD_CLIENTS:
            writer.write(_answer(503, b"%d follow already\n" % DASHBOARD_CLIENTS))
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
            b"Connection: close\r\n\r\n"
        )
        writer.write(self._whole)
        self._following.add(writer)
        await reader.read(1)  # until the client closes

    def _is_own_name(self, host: bytes) -> bool:
        before, _, port = host.decode("latin-1").rpartition(":")
        name = before if port.isdigit() else host.decode("latin-1")
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return name.lower() in ("localhost", self._host.lower())
        return True


class _Request:
    """The head of a request, by httptools' callbacks."""

    def __init__(self) -> None:
        self.method = ""
        self.path = b""
        self.headers: dict[bytes, bytes] = {}
        self._is_whole = False
        self._parser = httptools.HttpRequestParser(self)

    @classmethod
    async def read_from(cls, reader: asyncio.StreamReader) -> _Request:
        """Read a head of HEAD_BYTES at most.  Raises HttpParserError, and ConnectionError if it does not come."""
        found, count = cls(), 0
        while not found._is_whole:
            data = await reader.read(HEAD_BYTES)
            count += len(data)
            if not data or count > HEAD_BYTES:
                raise ConnectionError("no head of a request")
            found._parser.feed_data(data)
        return found

    def on_url(self, url: bytes) -> None:
        self.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.method = self._parser.get_method().decode("ascii")
        self._is_whole = True


_REASONS: Final = {200: "OK", 202: "Accepted", 403: "Forbidden", 404: "Not Found", 503: "Service Unavailable"}


def _answer(status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    head += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
    return f"{head}Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode() + body


def _event(value: Json) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"

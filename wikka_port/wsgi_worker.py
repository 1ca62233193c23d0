"""A serving process: waitress, with a shutdown that loses no request.

    serving --stop()--> draining --no connection is open any more, or the time is up--> ended

Waitress reads a request whole before a thread works on it, and buffers answers for slow readers; so a slow client
holds memory but no thread.  Expensive requests have a queue of their own (``slow_lane``); a request whose
client has gone before its turn is not started.  A body over the bound is read to its end and thrown away, and the
application refuses the request with a page: a browser shows no page if the connection is closed while it sends.

While draining, no new connection is accepted; a connection is closed once it has no request under way and its answers
are sent.

Knows nothing of other processes.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import create_server
from waitress.utilities import RequestEntityTooLarge

from wikka_port.config import WikiConfig
from wikka_port.slow_lane import DispatchedChannel, RequestDispatcher

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

DRAIN_S: Final = 10.0  # requests still under way are then cut off
MAX_CONNECTIONS: Final = 1_000  # of a process; the next ones wait in the kernel's queue
IDLE_S: Final = 60  # a connection on which nothing happens is closed
BACKLOG: Final = 1_024
_POLL_S: Final = 1.0
_MAX_DISCARD_FACTOR: Final = 8  # times the bound of a body; a longer one is refused before it is sent


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Parses a request; of a body over the bound it keeps only the length, by which the application recognises it."""

    error: Any
    _surplus = 0  # bytes of such a body that are still to come

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the headers.  Raises ParsingError if they state the body's length in two ways (RFC 9112, 6.1).

        A proxy that believes a different length than the wiki would take the end of the body for the next request.  So
        the request is refused and the connection closed.
        """
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            raise ParsingError("A request has either Content-Length or Transfer-Encoding, not both.")
        if "TRANSFER_ENCODING" in self.headers:  # removed if it is understood
            raise ParsingError("Transfer-Encoding needs HTTP/1.1.")

    def received(self, data: bytes) -> int:
        if self._surplus:
            taken = min(len(data), self._surplus)
            self._surplus -= taken
            self.completed = self._surplus == 0
            return taken
        taken = int(super().received(data))
        most = _MAX_DISCARD_FACTOR * self.adj.max_request_body_size
        if isinstance(self.error, RequestEntityTooLarge) and not self.chunked and self.content_length <= most:
            self._surplus, self.error, self.completed = self.content_length, None, False
        return taken


class _Channel(DispatchedChannel):
    parser_class = _Parser


@dataclass(frozen=True, slots=True)
class Worker:
    """Serves until ``stop``, which a signal handler or another thread may call."""

    server: Any  # waitress ships no types
    stopping: list[bool]

    def run(self, may_continue: Callable[[], bool] = lambda: True) -> None:
        """Serve until ``stop`` is called or ``may_continue``, called each second, returns False; then drain."""
        while not self.stopping and may_continue():
            self._poll_once(_POLL_S)
        self._drain()

    def stop(self) -> None:
        if self.stopping:
            return  # waitress's trigger may be closed by now, and its descriptor belong to a different file
        self.stopping.append(True)
        self.server.pull_trigger()

    def _poll_once(self, timeout_s: float) -> None:
        self.server.asyncore.loop(timeout=timeout_s, map=self.server._map, use_poll=True, count=1)

    def _drain(self) -> None:
        wasyncore.dispatcher.close(self.server)  # only the listening socket
        deadline = time.monotonic() + DRAIN_S
        while self.server.active_channels and time.monotonic() < deadline:
            self._poll_once(0.02)
            # requests that had arrived were read in that iteration
            for channel in list(self.server.active_channels.values()):
                if not (channel.requests or channel.total_outbufs_len or channel.request):
                    channel.handle_close()
        self.server.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
        wasyncore.close_all(self.server._map)


def make_worker(application: WSGIApplication, listening: socket.socket, config: WikiConfig) -> Worker:
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # that requests wait for a thread is no news
    server = create_server(
        application,
        sockets=[listening],
        _dispatcher=RequestDispatcher.started(config.threads),
        channel_request_lookahead=1,  # notices when a client goes while its request waits
        backlog=BACKLOG,
        connection_limit=MAX_CONNECTIONS,
        channel_timeout=IDLE_S,
        max_request_body_size=config.max_request_bytes + 1,  # the first size that is refused
        max_request_header_size=32_768,
        asyncore_use_poll=True,
        ident="",
        clear_untrusted_proxy_headers=False,
    )
    server.channel_class = _Channel
    return Worker(server, [])

"""A serving process: waitress, with a shutdown that loses no request.

    serving --stop()--> draining --no connection is open any more, or the time is up--> ended

Waitress reads a small request whole before a thread works on it, and buffers small answers for slow readers; so a slow
client holds memory but no thread.  Uploads and large answers have threads of their own (``request_queues``,
``http_channel``), as expensive requests have; a request whose client has gone before its turn is not started.

While draining, no new connection is accepted; a connection is closed once it has no request under way and its answers
are sent.  Requests still under way after DRAIN_S break off, transfers too.

Knows nothing of other processes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from waitress import wasyncore
from waitress.server import create_server

from wikka_port.config import WikiConfig
from wikka_port.counters import Counters
from wikka_port.http_channel import Channel, transfer_adjustments
from wikka_port.request_queues import RequestDispatcher

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

DRAIN_S: Final = 10.0  # requests still under way are then cut off
MAX_CONNECTIONS: Final = 1_000  # of a process; the next ones wait in the kernel's queue
IDLE_S: Final = 60  # a connection on which nothing happens is closed
BACKLOG: Final = 1_024
_POLL_S: Final = 1.0
_CHECK_S: Final = 1.0  # between two checks for stalled clients


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a channel, beside waitress's own."""

    proxies: int  # as in WikiConfig
    counters: Counters
    transfer_adjustments: Any  # waitress's, while a channel serves a transfer


@dataclass(slots=True)
class Worker:
    """Serves until ``stop``, which a signal handler or another thread may call."""

    server: Any  # waitress ships no types
    is_stopping: bool = False
    checked_s: float = 0.0  # when stalled clients were checked for
    is_closed: bool = False  # waitress's trigger, whose descriptor may belong to a different file from then on
    lock: threading.RLock = field(default_factory=threading.RLock)  # a signal handler may interrupt who holds it

    def run(self, may_continue: Callable[[], bool] = lambda: True) -> None:
        """Serve until ``stop`` is called or ``may_continue``, called each second, returns False; then drain."""
        while not self.is_stopping and may_continue():
            self._poll_once(_POLL_S)
        self._drain()

    def stop(self) -> None:
        with self.lock:  # or the loop could see the flag, end and close the trigger before it is pulled
            if self.is_stopping or self.is_closed:
                return
            self.is_stopping = True
            self.server.pull_trigger()

    def _poll_once(self, timeout_s: float) -> None:
        self.server.asyncore.loop(timeout=timeout_s, map=self.server._map, use_poll=True, count=1)
        now_s = time.monotonic()
        if now_s - self.checked_s >= _CHECK_S:
            self.checked_s = now_s
            for channel in list(self.server.active_channels.values()):
                channel.close_if_stalled(now_s)

    def _drain(self) -> None:
        wasyncore.dispatcher.close(self.server)  # only the listening socket
        deadline = time.monotonic() + DRAIN_S
        while self.server.active_channels and time.monotonic() < deadline:
            self._poll_once(0.02)
            # requests that had arrived were read in that iteration
            for channel in list(self.server.active_channels.values()):
                if not (channel.requests or channel.total_outbufs_len or channel.request or channel.arriving):
                    channel.handle_close()
        for channel in list(self.server.active_channels.values()):
            channel.handle_close()  # a thread that waits for its client ends
        self.server.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
        with self.lock:
            self.is_closed = True
            wasyncore.close_all(self.server._map)


def make_worker(
    application: WSGIApplication, listening: socket.socket, config: WikiConfig, counters: Counters
) -> Worker:
    server = create_server(
        application,
        sockets=[listening],
        _dispatcher=RequestDispatcher(config.threads, counters.transfers_changed),
        channel_request_lookahead=1,  # notices when a client goes while its request waits
        backlog=BACKLOG,
        connection_limit=MAX_CONNECTIONS,
        channel_timeout=IDLE_S,
        max_request_body_size=config.max_request_bytes + 1,  # the first size that is not read whole
        max_request_header_size=32_768,
        asyncore_use_poll=True,
        ident="",
        clear_untrusted_proxy_headers=False,
    )
    settings = Settings(config.proxies, counters, transfer_adjustments(server.adj))
    vars(server).update(channel_class=Channel, settings=settings)
    return Worker(server)

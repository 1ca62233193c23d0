"""The web port: bound before the store reports that it is ready, then served by threads.

    bind        in the main thread, so that a port in use is reported before anything is served
    serve       at the first visit a daemon thread imports the web libraries (0.1 s, 8 MB) and runs waitress
    run         a request's thread has the loop make a ``Status``, and waits for at most LOOP_TIMEOUT_S

With TLS the port belongs to the loop, which decrypts (``wire.tls_protocol``) and relays the plain text to waitress' own
socket, which no other user can reach (``relay``).

The loop never waits for the web threads, so a slow or failed web server does not affect the store.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from columnar.errors import HostError
from columnar.version import full
from columnar.webui.status import (
    LOOP_TIMEOUT_S,
    ClusterStatusSource,
    LoopRunner,
    NotAnswering,
    Sources,
    Status,
    gather,
    notes_of,
)
from columnar.wire.browsers import Visitors

if TYPE_CHECKING:
    from columnar.webui.cluster_status import PageStatus
    from columnar.webui.relay import TlsFront
    from columnar.wire.tls_protocol import Tls

_log = logging.getLogger(__name__)

T = TypeVar("T")
THREADS: Final = 2
CONNECTIONS: Final = 100
SAMPLE_S: Final = 1.0
STOP_S: Final = 2.0


PAGES: Final = ("the status page", "--web-port, or -1 for none")  # what a port is for, and how to choose another
HEALTH: Final = ("probes", "--health-port")


def bind(host: str, port: int, purpose: tuple[str, str] = PAGES) -> socket.socket:
    """Return a listening socket; port 0 takes a free port.  Raises HostError if port or address cannot be used."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(CONNECTIONS)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise HostError(
            f"cannot listen on {host}:{port} for {purpose[0]}: {error.strerror}; choose another with {purpose[1]}"
        ) from error
    return bound


class Site(Protocol):
    """The content of a web port."""

    def obstacles(self) -> Sequence[str]:
        """Return why the store cannot take clients, the first reason first.  Called on the loop."""

    def sample(self, now_s: float) -> None:
        """Sample counters.  Called once a second, on the loop."""

    def pages(self, ask: LoopRunner, visitors: Visitors) -> Any:
        """Return the WSGI application.  Called in the web thread.

        ``ask`` runs a function on the loop, or raises NotAnswering.
        """


class StoreSite:
    """The status page of one process."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def sample(self, now_s: float) -> None:
        self._sources.counters.sample(now_s)

    def obstacles(self) -> Sequence[str]:
        return self._sources.obstacles()

    def pages(self, ask: LoopRunner, visitors: Visitors) -> Any:
        from columnar.webui.pages import environment, status_pages

        sources = self._sources
        more: dict[str, Any] = {}
        if sources.cluster_source is not None:
            from columnar.webui.cluster_pages import ClusterStatusPages
            from columnar.webui.families import of_process
            from columnar.webui.flow_page import FlowPage
            from columnar.webui.request_page import RequestPage

            source = sources.cluster_source()
            status = partial(self._as_cluster, source)
            pages = ClusterStatusPages(ask, source, status, environment())
            flows = FlowPage(lambda: (ask(sources.flows), ()), lambda: ask(status), pages.page)
            requests = RequestPage(
                lambda: ({"": tuple(of_process(ask(self._status)))}, ()),
                lambda: (ask(lambda: tuple(sources.slow_log.recent)), ()),
                lambda: ask(status),
                pages.page,
            )
            more = {**pages.answers, "/flows": flows.answer, "/requests": requests.answer}
        faults = sources.descriptions.faults
        notes = partial(ask, lambda: notes_of(sources.flows()))
        return status_pages(lambda: ask(self._status), lambda: ask(faults), sources.address, visitors, more, notes)

    def _status(self) -> Status:
        return gather(self._sources)

    def _as_cluster(self, source: ClusterStatusSource) -> PageStatus:
        from columnar.webui.cluster_status import PageStatus

        sources = self._sources
        uptime_s = time.time() - sources.started_s
        return PageStatus(full(), sources.address, sources.data_folder, uptime_s, source.cluster_status())


class WebServer:
    """The web server of a port.  ``start`` and ``stop`` must be called in the loop's thread."""

    def __init__(self, bound: socket.socket, site: Site, front: TlsFront | None, visitors: Visitors | None) -> None:
        self._visitors = visitors or Visitors()
        self._port_socket = bound
        self._front = front
        self._socket = bound if self._front is None else self._front.inside  # waitress listens here
        self._site = site
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)
        self._waitress: Any = None  # set once by the web thread; None until it listens
        self._stopping = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        port: int = self._port_socket.getsockname()[1]
        return port

    async def start(self) -> None:
        self._sample()
        if self._front is not None:
            await self._front.start()
        self._loop.add_reader(self._socket, self._first_visitor)

    def _first_visitor(self) -> None:
        self._loop.remove_reader(self._socket)
        self._thread.start()

    def _sample(self) -> None:
        self._timer = self._loop.call_later(SAMPLE_S, self._sample)
        self._site.sample(time.monotonic())

    def _serve(self) -> None:
        """Serve, in the web thread."""
        try:
            self._listen()
        except Exception:  # noqa: BLE001 - the store serves on without its page
            _log.exception("the status page has ended")

    def _listen(self) -> None:
        import waitress

        from columnar.webui.pages import StrictChannel

        server = self._waitress = waitress.create_server(
            self._site.pages(self._run_on_loop, self._visitors),
            sockets=[self._socket],
            threads=THREADS,
            connection_limit=CONNECTIONS,
            channel_timeout=30,
            ident="columnar",
            asyncore_loop_timeout=10,
            asyncore_use_poll=True,
            url_scheme="http" if self._front is None else "https",
        )
        server.channel_class = StrictChannel
        if not self._stopping.is_set():
            server.run()

    def _run_on_loop(self, question: Callable[[], T]) -> T:
        answer: Future[T] = Future()

        def on_the_loop() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(question())
                except Exception as error:  # noqa: BLE001 - the calling thread gets it and answers
                    answer.set_exception(error)

        if self._stopping.is_set():
            raise NotAnswering("the server is stopping")
        self._loop.call_soon_threadsafe(on_the_loop)
        try:
            return answer.result(LOOP_TIMEOUT_S)
        except TimeoutError:
            answer.cancel()
            raise NotAnswering(f"the store has not answered for {LOOP_TIMEOUT_S:g} s") from None

    async def stop(self) -> None:
        """Close the port.  Requests under way are abandoned after STOP_S."""
        if self._timer is not None:
            self._timer.cancel()
        self._stopping.set()
        if self._front is not None:
            await self._front.close()
        if self._thread.ident is None:  # without a visitor the thread was never started
            self._loop.remove_reader(self._socket)
            self._socket.close()
            return
        server = self._waitress
        if server is not None:
            _end(server)
        await self._loop.run_in_executor(None, self._thread.join, STOP_S)
        if self._thread.is_alive():
            _log.warning("the web thread does not end; going on without it")
        elif server is None:
            self._socket.close()


def _end(server: Any) -> None:
    """Have waitress' thread close the server; the thread may have closed its trigger already."""
    try:
        server.trigger.pull_trigger(lambda: _close(server))
    except OSError as error:
        if error.errno != errno.EBADF:
            raise


def served_at(
    bound: socket.socket, shown: Sources | Site, tls: Tls | None = None, visitors: Visitors | None = None
) -> WebServer:
    """Return the web server of a bound port; with ``tls`` it also has a private socket.  Raises OSError."""
    site = StoreSite(shown) if isinstance(shown, Sources) else shown
    return WebServer(bound, site, _front(bound, tls) if tls is not None else None, visitors)


def _front(bound: socket.socket, tls: Tls) -> TlsFront:
    from columnar.webui.relay import TlsFront  # most stores have no use for it
    from columnar.wire.sockets import PrivateSocket

    return TlsFront(bound, tls, PrivateSocket.opened())


def _close(server: Any) -> None:
    """Close the server, in waitress' own thread, whose loop ends when it has no sockets left."""
    server.task_dispatcher.shutdown()
    for channel in list(server.active_channels.values()):
        channel.handle_close()
    server.close()

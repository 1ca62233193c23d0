"""``wikka serve``: the listening sockets and the processes that serve from them.

    port free? -> sockets -> one process for each worker -> serving -> SIGTERM or SIGINT -> draining -> exit status 0
    SIGHUP, if there is a settings file: it is read again, and a new worker is started for each; once all serve, the
    earlier ones drain; if one cannot start, the new ones do
    a worker that ends by itself is started again; if a worker cannot start, all end with status 1
    a second signal ends all at once
    with a port of metrics: one more socket, at which every worker answers Prometheus

On Linux each worker has its own socket for the same port (SO_REUSEPORT), and the kernel spreads the connections
evenly over these sockets; elsewhere all workers share one socket.  The parent keeps the sockets open, so a connection
that a crashed worker had not accepted waits for its successor.  A worker whose parent is gone drains and ends.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NoReturn, TypeVar

from columnar.client import Connection
from columnar.runtime.child_processes import stops_once
from wikka_port.accounts.factory import public_address
from wikka_port.accounts.tables import ADDRESS, SERVED_ROW, SITE
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.counters import Counters, CounterTable
from wikka_port.edit_buckets import EditBuckets
from wikka_port.files.sweeping import start_sweeping
from wikka_port.folder_format import FILES_KNOWN, NewerFolder, read_folder
from wikka_port.limits import RATE_TABLE_ADDRESSES, TRANSFERS_AT_ONCE
from wikka_port.moving.runner import start_resuming
from wikka_port.notice_mail import make_sender
from wikka_port.notices.mailing import start_sending
from wikka_port.pages import StoreUnavailable, Wiki
from wikka_port.preparation import TABLES
from wikka_port.rights.adoption import Adoption
from wikka_port.served_settings import ServedSettings
from wikka_port.store import Store
from wikka_port.wsgi_worker import BACKLOG, DRAIN_S, make_worker

T = TypeVar("T")
log = logging.getLogger(__name__)

FAILED: Final = 1
FOLDER_CHECK_TIMEOUT_MS: Final = 5_000  # for the store's answer about its folder, before anything is served
_PAUSE_S: Final = 0.2  # before a crashed worker is replaced: one that always crashes must not load the machine
_SPREADS: Final = sys.platform == "linux"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_WAKEUPS_BYTES: Final = 4_096  # a byte for each signal


class PortTaken(OSError):
    def __init__(self, host: str, port: int, why: str, option: str) -> None:
        super().__init__(f"cannot use port {port} of {host} ({why}); choose another with {option}")


@dataclass(frozen=True, slots=True)
class Shared:
    """State that all processes of a wiki share."""

    buckets: EditBuckets
    counters: CounterTable
    metrics: socket.socket | None = None  # where metrics are served; listens

    @classmethod
    def opened(cls, config: WikiConfig, metrics: socket.socket | None = None) -> Shared:
        return cls(EditBuckets.opened(RATE_TABLE_ADDRESSES), CounterTable.opened(config.workers), metrics)


def listen(host: str, port: int, workers: int, *, option: str = "--port") -> list[socket.socket]:
    """Return a bound socket for each worker.  Raises PortTaken."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with _bound(family, kind, address, shared=False) as probe:  # a shared one would not notice a port in use
            address = probe.getsockname()
        return [_bound(family, kind, address, shared=_SPREADS) for _ in range(workers if _SPREADS else 1)]
    except OSError as error:
        raise PortTaken(host, port, error.strerror or str(error), option) from None


def _bound(family: int, kind: int, address: object, *, shared: bool) -> socket.socket:
    opened = socket.socket(family, kind)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        opened.bind(address)  # type: ignore[arg-type]  # what getaddrinfo gave
    except OSError:
        opened.close()
        raise
    return opened


def serve_in_process(
    config: WikiConfig,
    listening: socket.socket,
    ready: Callable[[], object] = lambda: None,
    may_continue: Callable[[], bool] = lambda: True,
    shared: Shared | None = None,
    slab: int | None = None,
) -> None:
    """Serve in this process until a signal (in the main thread), or until ``may_continue`` returns False.

    Without ``shared`` and ``slab``, the one of its counters, the process has limits and counters of its own.
    """
    config = _with_picture_sources(config)
    counters = Counters.of_process() if shared is None or slab is None else shared.counters.counters(slab)
    wiki = Wiki(
        config.store_host,
        config.store_port,
        pool=2 * (config.threads + 1) + TRANSFERS_AT_ONCE,
        indexes=config.indexes,
        tls=config.store_tls,
        counters=counters,
        files=config.files,
    )
    listening.listen(BACKLOG)
    buckets = None if shared is None else shared.buckets
    worker = make_worker(
        make_application(wiki, config, buckets=buckets, counters=counters), listening, config, counters
    )
    if shared is not None and shared.metrics is not None:
        from wikka_port.metrics import MetricsPort  # only where Prometheus asks

        MetricsPort(shared.metrics, shared.counters.sums).start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    ready()
    start_resuming(wiki)
    start_sweeping(wiki.files.sweep, Adoption(wiki).run, wiki.files.waiting.unfinished)
    if config.mail is not None:
        start_sending(make_sender(wiki, config))
    worker.run(may_continue)
    wiki.store.close()


def serve(
    config: WikiConfig,
    announce: Callable[[str], None],
    settings: ServedSettings | None = None,
    metrics_at: tuple[str, int] | None = None,
) -> int:
    """Serve until a signal, and return the exit status.  Calls ``announce`` with the address once the wiki answers.

    ``settings`` are read again at SIGHUP; None: SIGHUP ends the wiki.  ``metrics_at`` is where metrics are served.
    Raises PortTaken, NewerFolder.
    """
    _check_folder(config)
    config = config if config.secret else replace(config, secret=secrets.token_bytes(32))  # the same in all workers
    sockets = listen(config.host, config.port, config.workers)
    config = replace(config, port=sockets[0].getsockname()[1])
    metrics = None
    if metrics_at is not None:
        (metrics,) = listen(*metrics_at, 1, option="--metrics-port")
        metrics.listen(BACKLOG)
        log.info("metrics: port %d of %s", *reversed(metrics.getsockname()[:2]))
    _note_address(config)
    return _Parent(config, sockets, announce, Shared.opened(config, metrics), settings).run()


def _check_folder(config: WikiConfig) -> None:
    """Check the folder's format before anything is served or written.

    An unavailable store does not stop the start; ``resume`` checks the format later.
    """
    try:
        advice = _run_once(config, lambda connection: read_folder(connection, TABLES)).advice()
    except StoreUnavailable as away:
        log.warning("the format of the wiki's folder was not looked at: %s", away)
    else:
        if advice:
            log.warning("%s", advice)


def _with_picture_sources(config: WikiConfig) -> WikiConfig:
    """Return ``config`` with the default of ``foreign_pictures`` for this folder, which shows what it showed before.

    While the store is unavailable no picture of other sites is shown, until the next start.
    """
    if config.files.foreign_pictures is not None:
        return config
    try:
        folder = _run_once(config, lambda connection: read_folder(connection, TABLES))
    except (StoreUnavailable, NewerFolder):
        return config
    is_new = folder.first >= FILES_KNOWN
    return replace(config, files=replace(config.files, foreign_pictures="none" if is_new else "all"))


def _note_address(config: WikiConfig) -> None:
    """Store the wiki's address, from which commands make links.  An unavailable store does not stop the wiki."""
    address = public_address(config).encode()
    try:
        _run_once(config, lambda connection: connection.table(SITE).put(SERVED_ROW, {ADDRESS: address}))
    except StoreUnavailable as away:
        log.info("the address of the wiki was not noted: %s", away)


def _run_once(config: WikiConfig, work: Callable[[Connection], T]) -> T:
    """Run ``work`` over a store that is closed afterwards.  Raises StoreUnavailable."""
    store = Store(
        config.store_host, config.store_port, pool=1, timeout_ms=FOLDER_CHECK_TIMEOUT_MS, tls=config.store_tls
    )
    try:
        return store.run(work, pauses_s=())
    finally:
        store.close()


class _Parent:
    """Starts the workers and watches them.  Single-threaded: it forks."""

    def __init__(
        self,
        config: WikiConfig,
        sockets: list[socket.socket],
        announce: Callable[[str], None],
        shared: Shared,
        settings: ServedSettings | None = None,
    ) -> None:
        self._settings = settings
        self._is_changing = False  # SIGHUP came
        self._leaving: set[int] = set()  # processes that have ended or were stopped, and need no successor
        self._config = config
        self._sockets = sockets
        self._announce = announce
        self._shared = shared
        self._counters = shared.counters.of_parent()
        self._workers: dict[int, int] = {}  # process -> its place
        self._slabs: dict[int, int] = {}  # process -> the slab of its counters
        self._stops = 0
        self._status = 0

    def run(self) -> int:
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        self._wakeups, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)  # ``_watch`` then sees each signal, whenever it comes
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if self._settings is not None:
            signal.signal(signal.SIGHUP, self._on_hangup)
        for place in range(self._config.workers):
            self._start_or_stop(place)
        host, port = self._sockets[0].getsockname()[:2]
        if self._stops == 0:
            self._announce(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        self._watch()
        return self._status

    def _start_or_stop(self, place: int) -> None:
        """Start a worker; if it cannot start, stop all."""
        if self._stops:
            return
        try:
            is_started = self._start(place)
        except OSError as error:
            log.error("the system has no process for worker %d: %s", place, error)
            is_started = False
        if not is_started and self._stops == 0:
            self._status = FAILED
            self._stop(signal.SIGTERM)

    def _start(self, place: int) -> bool:
        """Fork a worker and wait until it listens.  Returns False if it ended instead; raises OSError without one."""
        reading, writing = os.pipe()
        parent, slab = os.getpid(), self._shared.counters.free_slab(self._slabs.values())
        if slab is None:
            log.warning("a worker is in no metrics, because too many earlier ones have not ended yet")
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the child must not act as its parent, even for a moment
        try:
            process = os.fork()
            if process == 0:
                os.close(reading)
                self._be_worker(self._sockets[place % len(self._sockets)], parent, writing, slab)
            self._workers[process] = place
            if slab is not None:
                self._slabs[process] = slab
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        is_ready = os.read(reading, 1) != b""  # a worker that crashed writes nothing
        os.close(reading)
        if not is_ready:
            self._leaving.add(process)
        self._counters.note_workers(len(self._workers.keys() - self._leaving))
        return is_ready

    def _be_worker(self, listening: socket.socket, parent: int, writing: int, slab: int | None) -> NoReturn:
        status = FAILED
        try:
            signal.set_wakeup_fd(-1)
            ignored = (signal.SIGINT,) if self._settings is None else (signal.SIGINT, signal.SIGHUP)
            for number in ignored:  # a terminal sends them to all; the parent says when
                signal.signal(number, signal.SIG_IGN)
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            serve_in_process(
                self._config,
                listening,
                ready=lambda: os.write(writing, b"."),
                may_continue=lambda: os.getppid() == parent,
                shared=self._shared,
                slab=slab,
            )
            status = 0
        except Exception:
            log.exception("a worker fell")
        finally:
            logging.shutdown()
            os._exit(status)

    def _watch(self) -> None:
        while self._workers:
            for process, status in self._ended():
                self._replace(process, status)
            if self._is_changing:
                self._is_changing = False
                self._change_settings()
            elif self._workers:
                os.read(self._wakeups, _WAKEUPS_BYTES)

    def _ended(self) -> Iterator[tuple[int, int]]:
        """Yield processes that have ended, with their statuses."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                yield found

    def _replace(self, process: int, status: int) -> None:
        """Start a worker in the place of one that ended by itself."""
        place = self._workers.pop(process, None)
        is_expected = process in self._leaving
        self._leaving.discard(process)
        if (slab := self._slabs.pop(process, None)) is not None:
            self._shared.counters.counters(slab).transfers_broken()
        self._counters.note_workers(len(self._workers.keys() - self._leaving))
        if place is None or self._stops or is_expected:
            return
        log.error("worker %d (process %d) ended with status %d", place, process, os.waitstatus_to_exitcode(status))
        self._counters.worker_replaced()
        time.sleep(_PAUSE_S)
        self._start_or_stop(place)

    def _change_settings(self) -> None:
        """Read the settings again, and replace all workers if that changes something, or none if one cannot start."""
        assert self._settings is not None, "the signal has a handler"
        before, found = self._config, self._settings.read_again(self._config)
        if found is None:
            return
        self._config = found
        known = set(self._workers)
        earlier = {process: place for process, place in self._workers.items() if process not in self._leaving}
        why = self._start_all(earlier.values())
        if why or self._stops:
            self._config = before
            self._settings.revert()
            self._leave(self._workers.keys() - known)
        else:
            self._leave(earlier)
            self._settings.confirm()
        if why and not self._stops:
            log.error("a worker cannot start with the new settings: workers keep the earlier ones (%s)", why)

    def _start_all(self, places: Iterable[int]) -> str:
        """Start a worker for each place beside those that serve; returns why one cannot start, empty if all do."""
        for place in places:
            try:
                if not self._stops and not self._start(place):
                    return "it ended instead"
            except OSError as error:
                return str(error)
        return ""

    def _leave(self, processes: Iterable[int]) -> None:
        """Have workers answer their last requests and end, without successors."""
        for process in processes:
            self._leaving.add(process)
            with contextlib.suppress(ProcessLookupError):  # it has ended, and ``_watch`` was about to forget it
                os.kill(process, signal.SIGTERM)

    def _on_hangup(self, number: int, frame: object) -> None:
        self._is_changing = True  # ``_watch`` wakes up

    def _on_signal(self, number: int, frame: object) -> None:
        if self._stops == 0 or not stops_once():
            self._stop(signal.SIGTERM if self._stops == 0 else signal.SIGKILL)

    def _stop(self, how: signal.Signals) -> None:
        self._stops += 1
        if self._stops == 1:
            signal.signal(signal.SIGALRM, lambda *_: self._stop(signal.SIGKILL))
            signal.alarm(int(DRAIN_S) + 5)  # a worker that hangs does not keep us
        for process in list(self._workers):
            with contextlib.suppress(ProcessLookupError):  # it has ended, and ``_watch`` was about to forget it
                os.kill(process, how)

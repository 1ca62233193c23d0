"""The process around ``ClusterServer``, which a node starts with inherited descriptors.

    python -m columnar.roles.regionserver_process [ahead] CONTROL_FD DOORBELL_FD BEATS_FD LINES_FD PAGE_FD \
        LOCK_FD LEASE_FD

    ahead          start as a spare, which waits for the next death of a server and replaces it; ``ps`` and ``top`` show
                   SPARE
    CONTROL_FD     a stream socket to the node, with frames of ``cluster.peer_frames``.  Its end immediately ends this
                   process
    DOORBELL_FD    the channel for connections of clients (``coordination.connection_channel``)
    BEATS_FD       the write end of a pipe, to which a heartbeat (``coordination.processes``) is written every BEAT_S
    LINES_FD       a file for the last lines of the log and the dump of a crash (``last_lines``)
    PAGE_FD        memory in which the server says what it has synced (``coordination.server_page``)
    LOCK_FD        the data folder's LOCK, only kept open, so that no second store starts on the folder while any server
                   lives
    LEASE_FD       the page of the node's lease (``coordination.lease_page``)
    stdin          one line of JSON, ``config.RegionServerConfig``; it may arrive later, and modules are imported
                   meanwhile

    starting --linked with the node--> serving --SIGTERM--> stopping --> exit 0
    a second SIGTERM is ignored: a service manager signals every process of a store, and so does the supervisor, which
        kills a server that does not end in time
    the node has ended: exit immediately with ORPHANED; on Linux the kernel also kills this process (SIGKILL)
    SIGINT is ignored: a terminal sends it to all processes, and the supervisor stops its servers in order
    SIGHUP is ignored: the node, which gets it too, sends what changes (``node_messages.LiveSettings``)
    the server cannot start: one log line, exit 2

Log lines have the standalone process's form, with the server's name.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

from columnar import version
from columnar.clock import StoreClock, system_ms
from columnar.config import AHEAD, RegionServerConfig
from columnar.coordination.lease_page import LeasePage, boot_ms
from columnar.coordination.processes import Beat, packed
from columnar.coordination.server_page import ServerPage
from columnar.errors import ColumnarError
from columnar.roles.ports import read_peer_tls
from columnar.roles.regionserver import ClusterServer
from columnar.runtime.child_processes import die_with_parent
from columnar.runtime.faults import met_by_the_loop
from columnar.runtime.last_lines import LastLines
from columnar.runtime.log_format import Speaker
from columnar.runtime.log_lines import begin_log, flush, keep_last_lines
from columnar.runtime.process_tuning import calm_collector, loop_factory, switch_quickly, trim_memory_periodically
from columnar.storage.descriptors import raise_limit
from columnar.storage.rocks import RocksEngine

_log = logging.getLogger("columnar.server")

BEAT_S: Final = 0.5
SEEN_S: Final = 0.1  # between two checks that the loop runs
FOLLOWED_MS: Final = 100  # a clock of the cluster that is less ahead is not followed: timestamps stand still as long
CANNOT_START: Final = 2
ORPHANED: Final = 3
GONE_S: Final = 0.05  # for the last log line of a process that must not answer any more
_PR_SET_NAME: Final = 15
SPARE: Final = "columnar spare"
_NAME_BYTES: Final = 15
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def show_as(name: str) -> None:
    """Set the name that ps and top show, cut to 15 bytes, if the kernel supports it."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:_NAME_BYTES], 0, 0, 0)


def _gone(why: str) -> NoReturn:
    """End this process immediately, without an answer, because another server may own its regions by now."""
    _log.error("the node has gone (%s): this server ends", why)
    flush(GONE_S)
    os._exit(ORPHANED)


class Beats:
    """Heartbeats: reports of how often the loop ran, written by a thread, so that they continue while it is blocked."""

    def __init__(self, pipe: int, make_beat: Callable[[int], Beat]) -> None:
        """Pass ``make_beat``, called on the loop with the number of the check; it returns the heartbeat."""
        self._pipe = pipe
        self._make_beat = make_beat
        self._seen = Beat(0)  # written by the loop, read by the thread

    def start(self) -> None:
        self._see()
        threading.Thread(target=self._write_beats, name="beats", daemon=True).start()

    def _see(self) -> None:
        asyncio.get_running_loop().call_later(SEEN_S, self._see)  # first: an exception below must not end the beats
        self._seen = self._make_beat(self._seen.iterations + 1)

    def _write_beats(self) -> None:
        while True:
            try:
                os.write(self._pipe, packed(self._seen))
            except OSError as error:
                _gone(f"nobody reads the beats: {error}")
            time.sleep(BEAT_S)


class ClusterTime:
    """The time by which this server gives timestamps: the system's, or the cluster's if that is ahead."""

    def __init__(self, page: LeasePage, clock: StoreClock) -> None:
        self._page = page
        self._clock = clock
        self._base_ms = 0  # of the cluster's time that the clock takes; 0: it takes the system's

    def follow_cluster(self) -> None:
        """Take the time that is ahead now; called SEEN_S after SEEN_S, so that no timestamp costs more than before."""
        base_ms = self._page.read_time_base()
        if base_ms + boot_ms() - system_ms() <= FOLLOWED_MS:
            base_ms = 0
        if base_ms != self._base_ms:
            self._base_ms = base_ms
            self._clock.take_time(partial(_cluster_ms, base_ms) if base_ms else system_ms)


def _cluster_ms(base_ms: int) -> int:
    return max(system_ms(), base_ms + boot_ms())  # not behind the system's, which may be set forward meanwhile


def run(config: RegionServerConfig, control: int, channel: int, beats: int, page: ServerPage, lease: int) -> int:
    """Serve until the node requests the stop.  Returns the exit status."""
    name = f"{config.name}.{config.number}"
    try:
        begin_log(config.log, Speaker("server", name, version.full(version.at_start())), name)
    except OSError:  # its node has the file open, and this process cannot make it
        begin_log(replace(config.log, file=""), process=name)
        _log.exception("the log file %s cannot be opened: this log is on standard error", config.log.file)
    raise_limit()
    switch_quickly()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(_serve(config, control, channel, beats, page, lease))
    except ColumnarError as error:
        _log.error("cannot start: %s", error.text)
        return CANNOT_START


async def _serve(
    config: RegionServerConfig, control: int, channel: int, beats: int, page: ServerPage, lease: int
) -> int:
    asyncio.get_running_loop().set_exception_handler(met_by_the_loop)
    stopping = _stop_on_signals()
    peer_tls = read_peer_tls(config.config) if config.peer_host else None
    lease_page = LeasePage.open_inherited(lease)
    engine = RocksEngine.planned(config.config.memory_plan(config.servers))
    server = ClusterServer(config, engine, lease_page, page, _gone, peer_tls)

    time_of_cluster = ClusterTime(lease_page, server.stores.clock)

    def beat(iterations: int) -> Beat:
        time_of_cluster.follow_cluster()
        return server.node_link.beat(iterations)

    Beats(beats, beat).start()
    await server.start(_socket(control), _socket(channel))
    _log.info("serves on port %d, version %s", server.ports.port, version.full(version.at_start()))
    calm_collector()
    trimming = asyncio.create_task(trim_memory_periodically())
    await stopping.wait()
    _log.info("stopping")
    trimming.cancel()
    await server.stop()
    _ignore_signals()
    _log.info("stopped")
    return 0


def _socket(descriptor: int) -> socket.socket:
    sock = socket.socket(fileno=descriptor)
    sock.setblocking(False)
    sock.set_inheritable(False)  # the trigger worker must not keep it open
    return sock


def _stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM sets.

    The handlers are not the loop's, which would give signals their usual effect again when it is closed: a second
    SIGTERM would then look like a crash.
    """
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(stopping.set))
    for number in _SIGNALS[1:]:
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which a worker started later would inherit
    return stopping


def _ignore_signals() -> None:
    """Ignore signals until the process ends; it starts no other process any more."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main(arguments: list[str]) -> int:
    die_with_parent()
    version.at_start()  # a spare may serve long after it has imported the sources
    if arguments[0] == AHEAD:
        show_as(SPARE)
    control, channel, beats, lines, shared, lock, lease = map(int, arguments[-7:])
    for descriptor in (beats, lines, shared, lock, lease):
        os.set_inheritable(descriptor, False)
    keep_last_lines(LastLines(lines))
    line = sys.stdin.buffer.readline()
    if not line:
        return CANNOT_START  # the supervisor has ended, or needs no server any more
    config = RegionServerConfig.from_json(line)
    show_as(f"columnar {config.name}")
    return run(config, control, channel, beats, ServerPage.open_inherited(shared), lease)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

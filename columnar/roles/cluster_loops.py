"""The loops of a master: writes of owners into the catalogue, the watch of servers, and polls of their loads.

Writes are made one after the other, and the outcome of each is reported.

A write that the disk refuses, or that met an unexpected exception, may or may not be on disk.  Such a write is reported
only when the disk equals the catalogue in memory again, never while its outcome is unknown.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import ColumnarError
from columnar.master import instructions as do
from columnar.master.catalogue import Catalogue
from columnar.master.liveness import STUCK_MS, Liveness, Works
from columnar.model import owner_messages as messages
from columnar.model.owner import Incarnation
from columnar.roles.cluster_servers import DeadServerLogs, Servers
from columnar.roles.state_events import LOOP as MASTER
from columnar.roles.state_events import StateEvents
from columnar.runtime.faults import FAULTS, surviving
from columnar.runtime.planned_step import PlannedStep

_log = logging.getLogger(__name__)

LOOP: Final = "the writes of the master"
AGAIN_S: Final = 0.1  # after an unexpected exception
Report = Callable[[do.Write], None]


class OwnerWrites:
    def __init__(
        self, catalogue: Catalogue, sound: Callable[[], Awaitable[None]], written: Report, not_written: Report
    ) -> None:
        """Pass ``sound``, which returns when the catalogue on disk equals the catalogue in memory."""
        self._catalogue = catalogue
        self._sound = sound
        self._written = written
        self._not_written = not_written
        self._waiting: deque[do.Write] = deque()  # bounded by the events during one fsync
        self._writer: asyncio.Task[None] | None = None
        self._repair: asyncio.Future[None] | None = None  # set after the disk refused a write; the writer waits for it
        self._is_stopping = False

    def add_write(self, write: do.Write) -> None:
        self._waiting.append(write)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.ensure_future(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting:
            write = self._waiting.popleft()
            try:
                await self._catalogue.ownership.write_owners(write)
            except ColumnarError as error:
                _log.error("owners of %d regions are not written: %s", len(write.owners), error.text)
                await self._repaired()
                self._report(self._not_written, write)
            except Exception as fault:  # noqa: BLE001 - the queued writes continue
                FAULTS.met(LOOP, fault)
                await self._repaired()
                self._report(self._not_written, write)
            else:
                self._report(self._written, write)

    async def _repaired(self) -> None:
        if not self._is_stopping:
            self._repair = asyncio.ensure_future(self._sound())
            await asyncio.wait([self._repair])  # or ``stop`` has cancelled it

    def _report(self, report: Report, write: do.Write) -> None:
        try:
            report(write)
        except Exception as fault:  # noqa: BLE001 - regions wait for it
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self._report, report, write)

    def stop(self) -> None:
        """Stop waiting for a disk that refuses writes."""
        self._is_stopping = True
        if self._repair is not None:
            self._repair.cancel()

    async def close(self) -> None:
        """Wait until the write under way has finished."""
        if self._writer is not None:
            await asyncio.wait([self._writer])


WATCH: Final = "the watch of servers"


class ServerWatch:
    """The shell of ``master.liveness``: checks the servers, and reports their states and the servers to kill.

    Checks begin with the first server, and end with ``stop``.  Owned by the loop.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        works: Works,
        dead: Callable[[Incarnation, str], None],
        is_folder_stalled: Callable[[], bool],
        stuck_ms: int = STUCK_MS,
    ) -> None:
        """Pass ``dead``, called with a server that must be killed, and the reason; ``stuck_ms`` as for ``Liveness``."""
        self._now_ms = now_ms
        self._works = works
        self._is_folder_stalled = is_folder_stalled
        self._stuck_ms = stuck_ms
        self._dead = dead
        self._liveness: Liveness | None = None
        self._check_step = PlannedStep(WATCH, self._check_servers)
        self._busy: dict[Incarnation, int] = {}  # server -> time since when

    def joined(self, server: Incarnation) -> None:
        now_ms = self._now_ms()
        if self._liveness is None:
            self._liveness = Liveness(now_ms, self._works, self._stuck_ms)
            self._check_servers()
        self._liveness.joined(server, now_ms)

    def left(self, server: Incarnation) -> None:
        self._busy.pop(server, None)
        if self._liveness is not None:
            self._liveness.left(server)

    def heard(self, server: Incarnation, iterations: int) -> None:
        if self._liveness is not None:
            self._liveness.heard(server, iterations, self._now_ms())

    def busy_ms(self, server: Incarnation) -> int:
        """Return how long the server's loop has been in the same step; 0 if not for long."""
        since_ms = self._busy.get(server)
        return 0 if since_ms is None else self._now_ms() - since_ms

    def _check_servers(self) -> None:
        assert self._liveness is not None, "somebody joined"
        now_ms = self._now_ms()
        verdict = self._liveness.check_liveness(now_ms, is_folder_stalled=self._is_folder_stalled())
        self._check_step.after((verdict.wake_at_ms - now_ms) / 1000)  # first: checks continue even if the rest fails
        self._busy = dict(verdict.busy)
        for remark in verdict.remarks:
            _log.warning("%s", remark)
        for server, why in verdict.kill:
            with surviving(WATCH):
                self._dead(server, why)

    def stop(self) -> None:
        self._check_step.cancel()


LOADS_S: Final = 1.0


class LoadPolls:
    """Polls of the loads of all servers, every LOADS_S; each answer is an event."""

    def __init__(
        self, events: StateEvents, servers: Servers, dead_logs: DeadServerLogs, greeted: Collection[Incarnation]
    ) -> None:
        """Pass ``greeted``, a live view of the linked servers."""
        self._events = events
        self._servers = servers
        self._dead_logs = dead_logs
        self._greeted = greeted
        self._step = PlannedStep(MASTER, self.poll_loads)
        self._rated: set[Incarnation] = set()  # servers whose rates were requested and have not arrived yet

    def poll_loads(self) -> None:
        if self._events.is_over:
            return
        self._step.after(LOADS_S)
        free_bytes = self._dead_logs.free_bytes()
        if free_bytes is not None:  # without it, splits continue with the last known free space
            self._events.state.current.note_free_bytes(free_bytes)
        for server in self._greeted:
            if server not in self._rated:
                self._rated.add(server)
                self._events.spawn(self._rates(server))

    async def _rates(self, server: Incarnation) -> None:
        try:
            rates = await self._servers.request_server(server, messages.Rates())
        except (NotSent, LinkBroke):
            return  # the end of the server is reported separately
        finally:
            self._rated.discard(server)
        self._events.event(self._events.state.loads(server, rates, self._events.now_ms()))

    def stop(self) -> None:
        self._step.cancel()

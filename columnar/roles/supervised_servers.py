"""A supervisor's servers as ``master.cluster_control`` uses them, and the private socket whose callers may end servers.

    RUN/control     the master's service, for processes that may enter the folder RUN: those of the store's user;
                    DATA/run.json names the folder

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from typing import Final

from columnar.coordination.socket_folder import ListeningPath, SocketFolder
from columnar.errors import HostError
from columnar.master.cluster_state import ClusterState
from columnar.master.cluster_status_builder import ServerFacts
from columnar.master.instructions import Request
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Address
from columnar.roles.cluster_host import ClusterHost
from columnar.roles.server_processes import ServerProcesses, ending
from columnar.storage import run_file
from columnar.storage.data_folder import DataFolder
from columnar.version import VERSION
from columnar.wire.server import WireServer

CONTROL: Final = "control"
_BACKLOG: Final = 16
_GRACE_S: Final = 1.0  # for calls in flight at a stop


class SupervisedServers:
    """The ``Servers`` of a cluster control."""

    def __init__(
        self,
        host: ClusterHost,
        processes: ServerProcesses,
        addresses: Mapping[Incarnation, Address],
        connections: Callable[[Incarnation], int],
        folder_remark: Callable[[], str],
    ) -> None:
        """Pass ``addresses``, a live mapping of living servers; ``connections`` counts a server's open connections."""
        self._folder_remark = folder_remark
        self._host = host
        self._processes = processes
        self._addresses = addresses
        self._connections = connections

    @property
    def state(self) -> ClusterState:
        return self._host.state

    def now_ms(self) -> int:
        return self._host.events.now_ms()

    async def request(self, request: Request) -> None:
        await self._host.requests.request(request)

    async def until(self, is_so: Callable[[], bool]) -> None:
        await self._host.events.until(is_so)

    def remarks(self) -> tuple[str, ...]:
        return tuple(filter(None, [self._folder_remark()]))

    def facts(self, server: Incarnation) -> ServerFacts:
        process, address = self._processes.living.get(server), self._addresses.get(server)
        died = self._processes.deaths.last(server.name)
        now_s = asyncio.get_running_loop().time()
        death, lines = "", tuple[str, ...]()
        if died is not None:
            death, lines = f"{died.who} died {now_s - died.at_s:.0f} s ago, {ending(died.status)}", died.lines
        if process is None:
            return ServerFacts(last_death=death, last_lines=lines)
        where = f"{address.host}:{address.port}" if address is not None else ""
        return ServerFacts(
            VERSION,
            where,
            process.child.pid,
            self._connections(server),
            self._host.watch.busy_ms(server),
            last_death=death,
            last_lines=lines,
        )

    async def fence(self, server: Incarnation, why: str) -> None:
        self._host.events.event(self.state.silent(server, why, self.now_ms()))
        await self._wait_until_fenced(server)

    async def stop_server(self, server: Incarnation) -> None:
        await self._processes.stop_one(server)
        await self._wait_until_fenced(server)

    async def _wait_until_fenced(self, server: Incarnation) -> None:
        await self._host.events.until(lambda: self.state.ledger.is_fenced(server))

    async def start_server(self, name: str) -> None:
        await self._processes.start_one(name)


class ControlSocket:
    """The private socket of a supervisor."""

    def __init__(self, wire: WireServer, folder: DataFolder, run_folder: SocketFolder) -> None:
        self._wire = wire
        self._folder = folder
        self._run_folder = run_folder
        self._path = os.path.join(run_folder.path, CONTROL)
        self._listening = ListeningPath(self._path, self._listen)

    async def open(self) -> None:
        """Open the socket.  Raises HostError if the socket or its file cannot be made."""
        await self._listen()
        run_file.write(self._folder.path, run_file.RunFile(os.getpid(), self._folder.cluster_id, self._path))
        self._listening.begin()

    async def _listen(self) -> None:
        self._run_folder.lock()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(self._path)
            os.chmod(self._path, 0o600)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise HostError(f"cannot listen on {self._path}: {error.strerror}; set TMPDIR") from error
        await self._wire.serve_privately(listening)

    async def close(self) -> None:
        run_file.remove(self._folder.path)
        await self._listening.close()
        await self._wire.close(_GRACE_S)

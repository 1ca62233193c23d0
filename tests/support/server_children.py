"""Region servers as processes of their own, and a master by which the test starts, commands and kills them.

The master is node and leader at once, and writes no catalogue: the test decides which server owns each region.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from columnar.client import Connection
from columnar.cluster.hello import Hello
from columnar.cluster.link_listener import LinkListener
from columnar.cluster.peer_address import UnixAddress
from columnar.cluster.peer_frames import Frame
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.refusals import Unknown
from columnar.coordination.connection_channel import DispatchedConnection, pair, send_connection
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.processes import BEAT_BYTES, last_of
from columnar.coordination.server_page import ServerPage
from columnar.model.node_messages import FollowLeader, TakesConnections
from columnar.model.owner import Incarnation, Owner, incarnation_of
from columnar.model.owner_messages import (
    Address,
    Addresses,
    CloseRegion,
    GivenUp,
    HandOver,
    Listening,
    OpenRegion,
    RenumberRegion,
    ReturnConnections,
    Segments,
)
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Commit, Message, Publish
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route
from columnar.model.schema import Table
from columnar.roles.regionserver_process import ORPHANED
from columnar.runtime.last_lines import lines_file
from columnar.storage.data_folder import SERVERS
from columnar.storage.dead_logs import DeadLog, measure
from columnar.storage.server_folders import LOG

__all__ = ["ORPHANED", "Child", "Master", "alone", "with_master"]

ROOT = Path(__file__).parents[2]
CLUSTER = "a-cluster"
_ALWAYS_SHARED = """
import sys
from columnar.storage import commit
commit.SHARED_FROM = 0
from columnar.roles.regionserver_process import main
sys.exit(main(sys.argv[1:]))
"""
R = TypeVar("R")


class Child:
    """A server's process, and the master's side of its sockets."""

    def __init__(self, here: Incarnation, process: subprocess.Popen[bytes], ends: tuple[socket.socket, ...]) -> None:
        self.here = here
        self.process = process
        self.control, self.doorbell = ends
        self.node_link: PeerLink | None = None
        self.link: PeerLink | None = None  # to the leader
        self.linked = asyncio.get_running_loop().create_future()  # PeerLink
        self.listening = asyncio.get_running_loop().create_future()  # Listening
        self.heard: list[Message[Any]] = []  # what it reported, but that
        self.called: list[bytes] = []  # messages of its clients that came to the master
        self.committing: Callable[[], Awaitable[None]] | None = None  # what a commit does, before it is answered
        self.beats = -1

    def seen(self) -> int:
        """Wait for a beat; return the number of beats of the server's loop."""
        return last_of(os.read(self.beats, BEAT_BYTES)).iterations

    async def ask(self, message: Message[R]) -> R:
        link = self.node_link if isinstance(message, HandOver | ReturnConnections) else self.link
        assert link is not None
        async with asyncio.timeout(20):
            return await link.send_request(message)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    async def ended(self, within_s: float) -> int:
        """Return the exit status.  Raises TimeoutError."""
        return await asyncio.wait_for(asyncio.to_thread(self.process.wait, within_s), within_s + 1)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for link in (self.link, self.node_link):
            if link is not None:
                link.end("the test is over")
        for end in (self.control, self.doorbell):
            end.close()
        os.close(self.beats)


class Master:
    """The master, an ``async with`` context; owned by the loop of the test."""

    def __init__(self, folder: Path, leader_epoch: int = 7) -> None:
        self.data = folder / "data"
        self.leader_epoch = leader_epoch
        self.children: list[Child] = []
        self.log = folder / "servers.log"
        self.is_shared = False  # servers that are started share every fsync that they can
        self._run = folder / "run"
        self.clock_ms = 0  # the reading of its clock, for openings
        self.closed_ms = 0
        self._lock = -1
        self._page = LeasePage.create()
        self._page.write_endless()
        self._number = 0

    async def __aenter__(self) -> Master:
        (self.data / "regions").mkdir(parents=True)
        self._run.mkdir(mode=0o700)
        self._lock = os.open(self.data / "LOCK", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._listener = LinkListener(self._accept, lambda _link: None)
        await self._listener.listen(self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        for child in self.children:
            child.close()
        self._listener.begin_close()
        await self._listener.wait_closed()
        os.close(self._lock)
        self._page.close()
        await asyncio.sleep(0)

    @property
    def _address(self) -> UnixAddress:
        return UnixAddress(str(self._run / "leader"))

    def _accept(self, on_ended: Callable[[PeerLink], None]) -> PeerLink:
        mine = Hello(CLUSTER, Incarnation("master", self.leader_epoch), leader_epoch=self.leader_epoch)
        heard = _Heard(None)

        def opened(link: PeerLink) -> None:
            assert link.peer is not None
            heard.child = next(child for child in self.children if child.here == link.peer.server)
            heard.child.link = link
            if not heard.child.linked.done():
                heard.child.linked.set_result(link)

        return PeerLink(mine, lambda _hello: None, heard, on_ended, on_open=opened)

    # --- servers -------------------------------------------------------------------------------------

    async def server(self, name: str, **config: Any) -> Child:
        """Return a server that is started, linked and listening."""
        child = self.started(name, **config)
        await self.linked(child)
        async with asyncio.timeout(20):
            await child.listening
        await self.name_addresses()
        return child

    async def name_addresses(self) -> None:
        """Tell all servers where the others listen."""
        said = [(child.here, child.listening.result()) for child in self.living() if child.listening.done()]
        addresses = Addresses(tuple(Address(here, one.host, one.port, one.peer) for here, one in said))
        for child in self.living():
            if child.link is not None:
                await child.ask(addresses)

    def started(self, name: str, **config: Any) -> Child:
        self._number += 1
        here = Incarnation(name, self._number)
        control, its_control = socket.socketpair()
        doorbell, its_doorbell = pair()
        beats, its_beats = os.pipe()
        lines = lines_file()
        _, page = ServerPage.create()
        passed = (
            its_control.fileno(),
            its_doorbell.fileno(),
            its_beats,
            lines,
            page,
            self._lock,
            self._page.descriptor,
        )
        program = ["-c", _ALWAYS_SHARED] if self.is_shared else ["-m", "columnar.roles.regionserver_process"]
        command = [sys.executable, *program, *map(str, passed)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"COLUMNAR_COMPILED": "no"} if self.is_shared else {})}
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=passed, env=environment
            )
        its_control.close()
        its_doorbell.close()
        os.close(its_beats)
        os.close(lines)
        os.close(page)
        control.setblocking(False)
        child = Child(here, process, (control, doorbell))
        child.beats = beats
        self.children.append(child)
        settings = settings_of(here, self.data, self._run, **config)
        assert process.stdin is not None
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        process.stdin.close()
        return child

    async def linked(self, child: Child) -> None:
        factory = lambda: PeerLink(Hello(CLUSTER, Incarnation("node", 1)), lambda _hello: None, _Heard(child))  # noqa: E731 - a name says no more
        _, child.node_link = await asyncio.get_running_loop().create_unix_connection(factory, sock=child.control)
        await self.leads(child)

    async def leads(self, child: Child) -> None:
        """Tell the server to follow this leader; return once it has linked."""
        assert child.node_link is not None
        async with asyncio.timeout(20):
            await child.node_link.send_request(FollowLeader(self.leader_epoch, str(self._address)))
            await child.linked

    def sealed(self, dead: Child) -> Segments:
        """Return the lengths of the segments of a dead server's log."""
        assert dead.process.poll() is not None, "only a dead one's"
        return measure(self._log_of(dead)).lengths

    def named(self, child: Child) -> frozenset[tuple[str, int]]:
        """Return the regions that the server's log names so far, with epochs."""
        folder = self._log_of(child)
        return DeadLog(folder, measure(folder)).named()

    def _log_of(self, child: Child) -> str:
        return str(self.data / SERVERS / str(child.here) / LOG)

    # --- regions -------------------------------------------------------------------------------------

    def make(self, *regions: RegionInfo) -> None:
        for region in regions:
            (self.data / "regions" / region.encoded).mkdir()

    async def publish(self, child: Child, table: Table, *regions: RegionInfo) -> None:
        await child.ask(Publish(table, True, regions))

    async def open(self, child: Child, region: RegionInfo, owner: Owner, **sealed: Segments) -> None:
        """Open a region; ``sealed`` has seals by incarnation, such as ``s1.3``."""
        await child.ask(OpenRegion(region, owner, _sealed(sealed), clock_ms=self.clock_ms))

    async def renumber(self, child: Child, region: RegionInfo, owner: Owner, **sealed: Segments) -> None:
        await child.ask(RenumberRegion(region, owner, _sealed(sealed), self.clock_ms))

    async def close(self, child: Child, region: RegionInfo, epoch: int) -> GivenUp:
        """Return the answer without its reading of the server's clock, which goes to ``closed_ms``."""
        given_up = await child.ask(CloseRegion(region, epoch))
        self.closed_ms = given_up.clock_ms
        return replace(given_up, clock_ms=0)

    async def routes(self, number: int, *routes: Route) -> None:
        for child in self.living():
            await child.ask(ReplaceRoutes(number, routes))

    async def change_routes(self, change: ChangeRoutes, *children: Child) -> None:
        for child in children:
            await child.ask(change)

    def take_lock(self) -> int:
        """Return the master's descriptor of LOCK, which the caller owns from now on."""
        held, self._lock = self._lock, os.open(os.devnull, os.O_RDONLY)
        return held

    def living(self) -> list[Child]:
        return [child for child in self.children if child.process.poll() is None]

    # --- clients -------------------------------------------------------------------------------------

    async def client(self, child: Child, door: bytes = b"1") -> Connection:
        """Return a client on a connection that this process accepts and hands to the server."""
        return await asyncio.to_thread(self._client, child, door)

    def _client(self, child: Child, door: bytes) -> Connection:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            connection = Connection("127.0.0.1", listening.getsockname()[1], timeout=15_000)
            accepted, _ = listening.accept()
        with accepted:
            assert send_connection(child.doorbell, DispatchedConnection(door, accepted))
        return connection


class _Heard:
    """The master's handlers, which note reports and commit."""

    def __init__(self, child: Child | None) -> None:
        self.child = child
        self._tasks: set[asyncio.Task[None]] = set()

    def called(self, link: PeerLink, frame: Frame) -> None:
        assert self.child is not None, "it has said hello"
        self.child.called.append(bytes(frame.buffer[frame.message_start : frame.end]))
        link.refuse(frame.number, Unknown("a test is no master"))

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        assert self.child is not None, "as above"
        if isinstance(message, Listening):
            self.child.listening.set_result(message)
        else:
            self.child.heard += [message] if not isinstance(message, TakesConnections) else []
        task = asyncio.ensure_future(self._answer(link, number, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        assert self.child is not None, "as above"
        if isinstance(message, Commit) and self.child.committing is not None:
            await self.child.committing()
        link.send_response(number, message, None)

    def link_ended(self, link: PeerLink) -> None:
        pass


def _sealed(by_name: dict[str, Segments]) -> tuple[tuple[Incarnation, Segments], ...]:
    return tuple((incarnation_of(text), lengths) for text, lengths in by_name.items())


def with_master(run: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return a test that runs a coroutine over a ``Master`` in its ``tmp_path``."""

    @wraps(run)
    def wrapped(tmp_path: Path) -> None:
        async def inside() -> None:
            async with Master(tmp_path) as master:
                await run(master)

        asyncio.run(inside())

    del wrapped.__wrapped__  # type: ignore[attr-defined]  # pytest asks for the arguments of this one
    return wrapped


_MIDDLE = """
import json, subprocess, sys
fds = [int(word) for word in sys.argv[1].split(",")]
command = [sys.executable, "-m", "columnar.roles.regionserver_process", *map(str, fds)]
child = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=fds, stdout=sys.stderr)
child.stdin.write(sys.argv[2].encode() + b"\\n")
child.stdin.close()
print(child.pid, flush=True)
child.wait()
"""


@contextmanager
def alone(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Yield a process that is the parent of a server, and the server's process id, once the server beats.

    The other ends of the server's sockets stay open.
    """
    (folder / "data" / "regions").mkdir(parents=True)
    ends = [*socket.socketpair(), *pair()]
    beats, its_beats = os.pipe()
    lock = os.open(folder / "data" / "LOCK", os.O_RDWR | os.O_CREAT)
    lines = lines_file()
    page = LeasePage.create()
    _, own = ServerPage.create()
    passed = [ends[1].fileno(), ends[3].fileno(), its_beats, lines, own, lock, page.descriptor]
    settings = settings_of(Incarnation("s1", 1), folder / "data", folder)
    middle = subprocess.Popen(
        [sys.executable, "-c", _MIDDLE, ",".join(map(str, passed)), json.dumps(settings)],
        cwd=ROOT, pass_fds=passed, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        with middle.stdout or nullcontext() as output:
            assert output is not None
            pid = int(output.readline())
        os.read(beats, BEAT_BYTES)
        yield middle, pid
    finally:
        middle.kill()
        middle.wait()
        for end in ends:
            end.close()
        for descriptor in (beats, its_beats, lock, lines):
            os.close(descriptor)
        page.close()


def settings_of(here: Incarnation, data: Path, run_folder: Path, **config: Any) -> dict[str, Any]:
    return {
        "name": here.name,
        "number": here.number,
        "data": str(data),
        "cluster_id": CLUSTER,
        "run_folder": str(run_folder),
        "servers": 2,
        "log": {"level": "INFO"},
        "config": {"data": str(data), **config},
    }

"""Several nodes of a cluster on this machine, with a real coordination service, which a test may kill, stop and start.

Each node is ``columnar node`` with servers of its own.  They share one data folder.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from columnar.client import Connection
from tests.support import cluster_process
from tests.support.cluster_process import (
    ClusterProcess,
    Rows,
    children,
    drop_tables,
    family_of,
    gone,
    is_nobody,
    reaped,
    thrift2_port_in,
)
from tests.support.coordination_services import Service, running
from tests.support.forked_program import ForkedProgram, suits
from tests.support.many_machines import shared_folder
from tests.support.ports import free_port
from tests.support.standalone_store import ENVIRONMENT
from tests.support.stopped_process import stop_process

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = [sys.executable, "-m", "columnar", "node"]
WAIT_S: Final = 60.0  # generous: the machine may be busy
# For long suites of calls: on a busy machine the service is late, and servers without a lease close connections.
PATIENT: Final = ("--lease", "15")
CLUSTERS: Final = ("servers", "nodes")  # what cluster_of starts


class NodeProcess:
    """A node, its servers and their workers.  A node that is started again has the same name and ports."""

    host = "127.0.0.1"

    def __init__(self, name: str, data: Path, coordination: str, logs: Path, *flags: str) -> None:
        self.name = name
        self.port, self.web_port, self.peer_port = free_port(), free_port(), free_port()
        self.thrift2_port = 0  # once it is ready, if the flags ask for one
        self.log = logs / f"{name}.log"
        self._command = [*PROGRAM, "--data", str(data), "--name", name]
        self._command += ["--coordination", coordination, "--port", str(self.port), "--web-port", str(self.web_port)]
        self._command += ["--peer-port", str(self.peer_port), *flags]
        self.environment = dict(ENVIRONMENT)
        self.is_forked = True  # by forked_program, unless a setting of the test needs a new interpreter
        self._process: subprocess.Popen[str] | ForkedProgram | None = None

    # --- life ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the process, without waiting for it."""
        if self.is_forked and self._command[:4] == PROGRAM and suits(self.environment, ENVIRONMENT):
            self._process = ForkedProgram(self._command[3:], self.environment, self.log)
            return
        with self.log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment, process_group=0
            )

    def add_flags(self, *flags: str) -> None:
        """Have the next start pass these flags too."""
        self._command += flags

    def mount_privately(self, source: Path, target: Path) -> None:
        """Have the node see ``source`` at ``target``, which other processes see empty, as on a machine of its own.

        Call it before the start.  Needs root: the node gets a mount namespace.
        """
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        self._command = ["unshare", "--mount", "sh", "-c", script, "sh", str(source), str(target), *self._command]

    def await_ready(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("columnar ready "), f"node {self.name} did not start: {line!r}; {self.log.read_text()}"
        self.thrift2_port = thrift2_port_in(line)

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def lives(self) -> bool:
        process = self._process  # a thread may ask while another one kills the node
        return process is not None and process.poll() is None

    @property
    def status(self) -> int | None:
        """Return the exit status, or None while the node lives."""
        return None if self._process is None else self._process.poll()

    def servers(self) -> list[int]:
        """Return the processes of the servers and the spare."""
        return children(self.pid)

    def family(self) -> list[int]:
        """Return the processes of the node, its servers and their workers."""
        return family_of(self.pid)

    def kill(self) -> None:
        """Kill the node as a machine that loses power; returns once none of its processes is left."""
        if self._process is None:
            return
        family = self.family() if self.lives else []
        self.signal(signal.SIGKILL, family)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        assert gone(family, WAIT_S), "killed processes are still there"
        self._process = None

    def signal(self, number: int, family: list[int] | None = None) -> None:
        """Send the signal to the node, its servers and their workers."""
        for pid in self.family() if family is None else family:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self) -> list[int]:
        """Stop all processes of the node, as a machine that hangs; returns them, for ``thaw``."""
        family = self.family()
        for pid in family:
            with suppress(ProcessLookupError):
                stop_process(pid)
        return family

    def thaw(self, family: list[int]) -> None:
        self.signal(signal.SIGCONT, family)

    def stop(self) -> int:
        """Stop the node in order; returns its exit status."""
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return status

    def close_output(self) -> None:
        """Forget a process that has ended by itself."""
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def has_ended(self, within_s: float) -> bool:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return not self.lives

    # --- clients -------------------------------------------------------------------------------------

    def connection(self) -> Connection:
        return Connection(self.host, self.port, timeout=30_000)

    def rows(self) -> Rows:
        return Rows(self.port, self.host)


class ManyNodes:
    """The nodes of a cluster by name."""

    def __init__(
        self,
        folder: Path,
        service: Service,
        kind: str,
        count: int,
        servers: int,
        *flags: str,
        logs: Path | None = None,
        data: Sequence[Path] = (),
    ) -> None:
        """Pass ``data``, the path of the data folder for each node, if they differ."""
        paths = data or [folder / "data"] * count
        self.data = paths[0]
        self.service = service
        self.coordination = coordination_url(kind, service)
        self.nodes = [
            NodeProcess(f"n{n + 1}", path, self.coordination, logs or folder, "--servers", str(servers), *flags)
            for n, path in enumerate(paths)
        ]

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start all nodes, with this environment added to their own from now on; return when all are ready."""
        for node in self.nodes:
            node.environment |= environment or {}
            node.begin()
        for node in self.nodes:
            node.await_ready()

    def leader(self) -> NodeProcess:
        """Return the node that leads by the service's record; waits for one that lives."""
        import json

        found: list[NodeProcess] = []

        def leads() -> bool:
            with self.client() as store:
                read = store.list_keys("leader").get("leader/leader")
            name = json.loads(read.value)["node"] if read is not None else ""
            found[:] = [node for node in self.nodes if node.name == name and node.lives]
            return bool(found)

        until(leads)
        return found[0]

    @contextmanager
    def client(self) -> Iterator[object]:
        store = self.service.connect("columnar", 2.0)
        try:
            yield store
        finally:
            store.close()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def stop(self) -> None:
        """Stop all nodes in order, one after the other."""
        assert [node.stop() for node in self.nodes] == [0] * len(self.nodes)

    def logs(self) -> str:
        return "\n".join(f"--- {node.name}\n{node.log.read_text()}" for node in self.nodes if node.log.exists())


def coordination_url(kind: str, service: Service) -> str:
    hosts = ",".join(address.partition("://")[2] or address for address in service.addresses)
    return f"{kind}://{hosts}/columnar"


class NodesStore:
    """A store of several nodes, each with one server; clients call the first node, which is never killed."""

    def __init__(self, folder: Path, count: int, *flags: str, kind: str = "ext4") -> None:
        """Take the ``kind`` of the shared folder (``many_machines``); ext4 is a folder of this machine."""
        self.environment: dict[str, str] = {"PYTHONPATH": str(ROOT)}  # added to that of each node
        self._folder = folder
        self._count = count
        self._kind = kind
        self._flags = flags
        self._undo = ExitStack()

    def start(self) -> None:
        self._folder.mkdir(exist_ok=True)
        data = []
        if self._kind != "ext4":
            shared = self._undo.enter_context(shared_folder(self._kind, self._count))
            data = [mount / "data" for mount in shared.mounts]
        self.cluster = self._undo.enter_context(
            many_nodes(self._folder, *self._flags, count=self._count, data=data, prepare=self._prepare)
        )

    def _prepare(self, node: NodeProcess) -> None:
        node.environment |= self.environment

    @property
    def port(self) -> int:
        return self.cluster.nodes[0].port

    def connection(self) -> Connection:
        return self.cluster.nodes[0].connection()

    def ports(self) -> list[int]:
        """Return the port of each node: its own server answers there."""
        return [node.port for node in self.cluster.nodes]

    def servers(self) -> list[int]:
        """Return the processes of all servers, without spares."""
        return [pid for node in self.cluster.nodes for pid in node.servers() if not is_nobody(pid)]

    def kill_server(self, which: int = 0) -> None:
        pid = self.servers()[which]
        os.kill(pid, signal.SIGKILL)
        reaped(pid)

    def kill(self) -> None:
        self._undo.close()


class NodesCluster(NodesStore):
    """Nodes with the interface of ``ClusterProcess``, for tests that run against both; each has one server.

    Each new connection goes to another node than the last one.
    """

    def __init__(self, folder: Path, count: int, *flags: str) -> None:
        """Take the data folder, whose parent has the logs and the service's files too."""
        super().__init__(folder.parent, count, *flags)
        assert folder.name == "data", "where many_nodes has it"
        self.count = count
        self._turns = itertools.count()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def web(self) -> str:
        """Return the address of the leader's pages, which are those of the whole."""
        return f"http://127.0.0.1:{self.cluster.leader().web_port}/"

    def connection(self) -> Connection:
        return self._next().connection()

    def rows(self) -> Rows:
        return self._next().rows()

    def rows_of_each(self) -> list[Rows]:
        return [node.rows() for node in self.cluster.nodes]

    def _next(self) -> NodeProcess:
        return self.cluster.nodes[next(self._turns) % self.count]

    def drop_all(self) -> None:
        """Drop all tables of users."""
        drop_tables(self.connection())


def cluster_of(kind: str, folder: Path, count: int, *flags: str) -> ClusterProcess | NodesCluster:
    """Return a cluster that a ``with`` block starts: ``servers`` of one node, or ``nodes`` of one server each."""
    if kind == "servers":
        return ClusterProcess(folder, count, "--web-port", "0", *flags)
    return NodesCluster(folder, count, *PATIENT, *flags)


@contextmanager
def many_nodes(
    folder: Path,
    *flags: str,
    count: int = 3,
    servers: int = 1,
    kind: str = "etcd",
    services: int = 1,
    prepare: Callable[[NodeProcess], None] = lambda _node: None,
    data: Sequence[Path] = (),
) -> Iterator[ManyNodes]:
    """Start a service and nodes, each after ``prepare``; kill all at the end.

    ``data``: the path of the data folder for each node, in place of one folder of this machine for ``count`` nodes.
    """
    with ExitStack() as undo:
        service = undo.enter_context(running(kind, folder, services, is_quick=True))
        cluster = ManyNodes(folder, service, kind, count, servers, *flags, data=data)
        undo.callback(cluster.kill)
        for node in cluster.nodes:
            prepare(node)
        cluster.start()
        yield cluster


def in_new_interpreters(node: NodeProcess) -> None:
    """Have the node start as a user starts it; for ``prepare``."""
    node.is_forked = False


def until(is_so: Callable[[], bool], within_s: float = WAIT_S) -> None:
    cluster_process.until(is_so, within_s)

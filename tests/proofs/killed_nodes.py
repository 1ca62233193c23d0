"""Real nodes of a cluster over an etcd, of which a process, a node or all are killed or frozen every few seconds.

    a server      kill -9, SIGSTOP for a while, or kill -9 of its trigger worker, as on one machine
    a node        kill -9 with all its servers, as a machine that loses power; SIGTERM; frozen for FROZEN_S, longer or
                  shorter than its lease.  A node that woke after its lease ends with status 4.  It is started again
    the links     between the leader and all members are reset, where the kernel does that.  A server that took part in
                  a change then is ended by the leader, with that reason; any other one is not
    all nodes     kill -9 or SIGTERM

A node that ends with status 4 without having been frozen is a problem: it lived, was not cut off, and was fenced.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, cast

from tests.proofs.killed_cluster import PAUSED, WORKER, KilledCluster, why_killed
from tests.proofs.killed_store import ENDING_S, STOPPED
from tests.proofs.verdict import Plan
from tests.support.cluster_process import ClusterProcess, children, is_nobody, kill_children
from tests.support.coordination_services import running
from tests.support.many_nodes import ManyNodes, NodeProcess
from tests.support.tcp_resets import can_reset, reset_connections

ALL: Final = 0.05  # of the shots
NODE: Final = 0.25
FROZEN: Final = 0.15
RESET: Final = 0.1
FROZEN_S: Final = (0.2, 4.0)  # a lease is over after 1.5 s
READY_S: Final = 60.0
FENCED: Final = 4  # status of a node whose lease is over
LOST_S: Final = 2.0  # for a death that explains a lost answer
LOOK_S: Final = 0.01
NODE_ENDED: Final = "its node has ended"


class NodesProcess:
    """The nodes with the interface of ``ClusterProcess``, of one server each."""

    def __init__(self, folder: Path, count: int, *flags: str) -> None:
        self.folder = folder
        self.count = count
        self.log = folder.with_suffix(".log")  # of the service; each node has its own beside it
        self._flags = flags
        self._undo = ExitStack()
        self._cluster: ManyNodes | None = None

    @property
    def nodes(self) -> list[NodeProcess]:
        return [] if self._cluster is None else self._cluster.nodes

    def begin(self) -> None:
        if self._cluster is None:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            service = self._undo.enter_context(running("etcd", self.folder.parent, 1, is_quick=True))
            self._cluster = ManyNodes(self.folder.parent, service, "etcd", self.count, 1, *self._flags)
            assert self._cluster.data == self.folder
        for node in self.nodes:
            node.begin()

    def await_ready(self) -> None:
        for node in self.nodes:
            node.await_ready()

    def logs(self) -> str:
        return "" if self._cluster is None else self._cluster.logs()

    def shoot(self) -> None:
        """Kill the nodes from a thread other than the one that waits for them."""
        for node in self.nodes:
            node.signal(signal.SIGKILL)

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def close(self) -> None:
        self.kill()
        self._undo.close()

    def stop(self) -> int:
        """Stop all nodes, the leader last; returns the first status that is not 0.

        A node that is stopped while it takes the leadership over leaves the catalogue's older folder to the next start.
        """
        assert self._cluster is not None
        leader = self._cluster.leader()
        ordered = sorted(self.nodes, key=lambda node: node is leader)
        return next(filter(None, [node.stop() for node in ordered]), 0)

    def has_ended(self, _patience_s: float = 0) -> bool:
        return not any(node.lives for node in self.nodes)

    @property
    def pid(self) -> int:
        return self.nodes[0].pid

    def node_of_children(self) -> dict[int, int]:
        """Return the processes of servers and spares, each with the process of its node."""
        return {pid: node.pid for node in self.nodes if node.lives for pid in children(node.pid)}

    def servers(self) -> list[int]:
        return [pid for node in self.nodes if node.lives for pid in node.servers() if not is_nobody(pid)]

    def family(self) -> list[int]:
        return [pid for node in self.nodes if node.lives for pid in node.family()]

    def kill_workers_of(self, server: int) -> int:
        return kill_children(server)


class KilledNodes(KilledCluster):
    _process: NodesProcess  # type: ignore[assignment]

    def _made(self, folder: Path, plan: Plan, flags: list[str]) -> ClusterProcess:
        self._known: set[int] = set()
        self._node_of: dict[int, int] = {}  # processes of servers and spares -> the process of the node
        self._pauses: list[threading.Timer] = []
        self.starts = 0
        self._ready: list[NodeProcess] = []  # nodes that serve; written under the lock
        self._waking: dict[str, threading.Thread] = {}  # by the name of a node that starts
        self._frozen: set[str] = set()  # nodes that were frozen since they were started
        self._failed_starts: list[str] = []
        return cast(ClusterProcess, NodesProcess(folder, plan.nodes, *flags))

    def __exit__(self, *_: object) -> None:
        self.peace()
        self._process.close()

    def where(self) -> tuple[int, int]:
        while True:
            with self._lock:
                self._check()
                if self._ready:
                    return random.choice(self._ready).port, self.generation
            threading.Event().wait(LOOK_S)

    # --- shots -------------------------------------------------------------------------------------------

    def _shoot(self) -> None:
        self._account()
        chance = self._rng.random()
        servers = sorted(self._process.servers())
        pid = self._rng.choice(servers) if servers else 0
        if chance < ALL:
            how = "SIGTERM" if self._rng.random() < STOPPED else "kill -9"
            self.shots[f"{how} of all nodes"] += 1
            self._restart(how)
        elif chance < ALL + NODE + FROZEN and len(self._ready) > 1:
            node = self._rng.choice(self._ready)
            (self._end_node if chance < ALL + NODE else self._freeze)(node)
        elif chance < ALL + NODE + FROZEN + RESET and can_reset():
            self.shots["links to the leader reset"] += reset_connections(node.peer_port for node in self._process.nodes)
            self.generation += 1
        elif pid and chance < ALL + NODE + FROZEN + RESET + WORKER and self._process.kill_workers_of(pid):
            self.shots["kill -9 of a trigger worker"] += 1
        elif pid and chance > 1 - PAUSED:
            self._pause(pid)
        elif pid:
            self._kill(pid)

    def _end_node(self, node: NodeProcess) -> None:
        self._known -= set(node.servers())
        self._ready.remove(node)
        self.generation += 1
        if self._rng.random() < STOPPED:
            self.shots["SIGTERM of a node"] += 1
            if status := node.stop():
                self._give_up(f"SIGTERM ended node {node.name} with status {status}")
        else:
            self.shots["kill -9 of a node"] += 1
            node.kill()
        self._wake(node)

    def _freeze(self, node: NodeProcess) -> None:
        self.shots["a node frozen"] += 1
        self.generation += 1
        self._frozen.add(node.name)
        self._known -= set(node.servers())
        family = node.freeze()
        thaw = threading.Timer(self._rng.uniform(*FROZEN_S), node.thaw, (family,))
        self._pauses.append(thaw)
        thaw.start()

    def _wake(self, node: NodeProcess) -> None:
        """Start a node that has ended; it counts as ready when it says so."""
        self._frozen.discard(node.name)
        node.begin()
        waking = threading.Thread(target=self._await_ready, args=(node,), daemon=True)
        self._waking[node.name] = waking
        waking.start()

    def _await_ready(self, node: NodeProcess) -> None:
        watch = threading.Timer(READY_S, node.signal, (signal.SIGKILL,))
        watch.start()
        try:
            node.await_ready()
        except AssertionError as failure:
            self._failed_starts.append(str(failure))
            return
        finally:
            watch.cancel()
        self._ready.append(node)

    def peace(self) -> None:
        super().peace()
        for waking in list(self._waking.values()):
            waking.join()
        self._waking.clear()

    def _restart(self, how: str) -> None:
        for pause in self._pauses:
            pause.join()
        self._pauses.clear()
        for waking in self._waking.values():
            waking.join()
        self._waking.clear()
        self._account()
        self._ready.clear()
        self._frozen.clear()
        super()._restart(how)
        self._ready[:] = self._process.nodes

    def _start(self) -> None:
        super()._start()
        self._node_of = self._process.node_of_children()
        self._known = {pid for pid in self._node_of if not is_nobody(pid)}
        self._ready[:] = self._process.nodes

    # --- what becomes of processes -----------------------------------------------------------------------

    def settle(self, generation: int, why: str = "") -> None:
        """Return when a death is known that explains a lost answer, or after LOST_S.

        A call may also be lost to a server that has no lease for a while, as its node was frozen.
        """
        deadline = time.monotonic() + LOST_S
        while True:
            with self._lock:
                self._check()
                self._account()
                if self.generation != generation:
                    return
                if time.monotonic() > deadline:
                    self.shots["answers lost, and nothing had died"] += 1
                    return
            threading.Event().wait(LOOK_S)

    def _account(self) -> None:
        if self._failed_starts:
            self._give_up(self._failed_starts[0])
        for node in list(self._ready):
            if node.lives:
                continue
            status = node.has_ended(ENDING_S) and node.status
            if node.name not in self._frozen or status != FENCED:
                self._give_up(f"node {node.name} ended with status {status}, and nobody had killed it")
            self.shots["nodes that woke after their lease"] += 1
            self.generation += 1
            self._ready.remove(node)
            node.close_output()
            self._wake(node)
        before, now = self._node_of, self._process.node_of_children()
        ended, self._node_of = self._known - now.keys(), now
        self._known = {pid for pid in now if not is_nobody(pid)}
        for pid in ended:
            why = self._why_ended(pid, before[pid])
            if not why:
                self._give_up(f"process {pid} of a server ended, and nobody had killed it")
            self.shots[f"servers that ended: {why}"] += 1
            self.generation += 1

    def _why_ended(self, pid: int, node: int) -> str:
        """Return the reason: a kill that a node has logged, or the end of the server's node, which is accounted for.

        A node whose lease is over ends its servers first.
        """

        def find() -> str:
            lives = any(one.lives and one.pid == node for one in self._process.nodes)
            return why_killed(self._process.logs(), pid) or ("" if lives else NODE_ENDED)

        return cast(str, self._until_known(find))

    def _until_known(self, find: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + LOST_S
        while not (found := find()) and time.monotonic() < deadline:
            threading.Event().wait(LOOK_S)
        return found

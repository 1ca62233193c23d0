"""Clients of nodes that may be killed: one for each row, which puts and gets it all the time by a node of its own.

A client calls another node while its own does not live, and returns to it afterwards.  No client waits behind another
one, so a row that nobody serves keeps no other row from being asked.  Each acknowledged value must be found afterwards
(``Probe.lost``).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from thriftpy2.thrift import TException

from tests.support.cluster_process import Rows
from tests.support.looping_threads import LoopingThreads
from tests.support.many_nodes import ManyNodes, NodeProcess, until

TABLE: Final = b"t"
WAIT_S: Final = 180.0  # also for the end of a session of CephFS
ROWS_PER_S: Final = 800.0  # of all clients, at most: the generator shares the processors
FAULTS: Final = 3  # of a row, kept for the report
LATE_S: Final = 1.0  # a call of a row whose server lives that takes longer has been disturbed


@dataclass
class Probe:
    """A row and what its client has seen of it."""

    row: bytes
    node: NodeProcess  # that the client prefers
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: str = ""  # the name of the node of the last call
    acknowledged: int = 0  # the last value
    answered_s: float = 0.0  # when
    killed_s: float = math.inf
    again_s: float = 0.0  # of the first acknowledgement after ``killed_s``
    longest_s: float = 0.0  # of calls since ``forget``
    failed: int = 0
    faults: list[str] = field(default_factory=list)  # what was late or failed since ``forget``; at most FAULTS
    lost: list[str] = field(default_factory=list)

    def forget(self) -> None:
        with self.lock:
            self.killed_s, self.again_s, self.longest_s, self.failed = math.inf, 0.0, 0.0, 0
            self.faults = []

    @property
    def is_disturbed(self) -> bool:
        return self.longest_s > LATE_S or self.failed > 0

    def step(self, connection: Rows) -> bool:
        """Read the row, and write its next value.  Returns False if the connection is of no use any more."""
        begun = time.monotonic()
        try:
            found = connection.get(TABLE, self.row)
            value = int(found or b"0")
            if value < self.acknowledged:
                self.lost.append(f"{self.row!r} has {value}, and {self.acknowledged} was acknowledged")
            connection.put(TABLE, self.row, b"%d" % (value + 1))
        except Exception as error:  # noqa: BLE001 - a client's errors of many kinds; the row is tried again
            self.failed += 1
            self._note(begun, f"{type(error).__name__}: {error}")
            return "CallTimeout" in str(error) or "NotServingRegion" in str(error)
        now = time.monotonic()
        if now - begun > LATE_S:
            self._note(begun, "late")
        with self.lock:
            self.acknowledged = value + 1
            self.answered_s = now
            self.longest_s = max(self.longest_s, now - begun)
            if now > self.killed_s and not self.again_s:
                self.again_s = now
        return True

    def _note(self, begun: float, what: str) -> None:
        with self.lock:
            if len(self.faults) < FAULTS:
                after = f"{begun - self.killed_s:+.2f} s" if self.killed_s < math.inf else "before the kill"
                self.faults.append(f"{after}, for {time.monotonic() - begun:.2f} s, at {self.asked}: {what[:200]}")


class Load(LoopingThreads):
    """A thread for each row."""

    def __init__(self, cluster: ManyNodes, rows: list[bytes]) -> None:
        self._nodes = cluster.nodes
        self._pause_s = len(rows) / ROWS_PER_S
        self.probes = [Probe(row, self._nodes[n % len(self._nodes)]) for n, row in enumerate(rows)]
        super().__init__(partial(self._run, probe) for probe in self.probes)

    def _run(self, probe: Probe, over: threading.Event) -> None:
        open_: dict[str, Rows] = {}  # connections by node
        while not over.wait(self._pause_s):
            node = self._reach(probe, open_)
            if node is not None:
                probe.asked = node.name
                if not probe.step(open_[node.name]):
                    open_.pop(node.name).close()
        for connection in open_.values():
            connection.close()

    def _reach(self, probe: Probe, open_: dict[str, Rows]) -> NodeProcess | None:
        """Return a node to which there is a connection, the probe's own one if it lives; None if none answers."""
        for node in sorted(self._nodes, key=lambda one: one is not probe.node):
            if not node.lives:
                if node.name in open_:
                    open_.pop(node.name).close()
                continue
            with suppress(OSError, TException):  # it is just being killed or started
                if node.name not in open_:
                    open_[node.name] = node.rows()
                return node
        return None


def rows_of(regions: int) -> tuple[list[bytes], list[bytes]]:
    """Return the split points, and one row of each region."""
    splits = [b"%04d" % (n + 1) for n in range(regions - 1)]
    return splits, [b"%04d" % n + b"x" for n in range(regions)]


@contextmanager
def loaded(cluster: ManyNodes, regions: int) -> Iterator[Load]:
    """Make a table of ``regions``, and yield the clients of its rows."""
    splits, rows = rows_of(regions)
    connection = cluster.nodes[0].connection()
    connection.create_table(TABLE.decode(), {"f": {}}, splits=splits)
    connection.close()
    with Load(cluster, rows) as load:
        until(lambda: all(probe.acknowledged for probe in load.probes), WAIT_S)
        yield load

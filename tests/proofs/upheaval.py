"""Flushes, compactions, splits and merges of a table, one after the other, while clients use the table.

With several servers regions are moved, too.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from columnar.client import ClusterAdmin, Connection
from columnar.client.admin import RegionAdmin
from tests.proofs.asking import Lost, Refused
from tests.proofs.cluster_asking import client_of
from tests.proofs.killed_cluster import KilledCluster
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.support.looping_threads import LoopingThreads

MOST_REGIONS: Final = 6
KINDS: Final = ("flush", "flush", "compact", "major compact", "split", "split", "merge")
KINDS_OF_SERVERS: Final = (*KINDS, "move", "move", "move", "move", "move")


class Upheaval(LoopingThreads):
    """The upheaval, a context manager; ``row`` makes a row at which a region may be split."""

    def __init__(
        self, store: KilledStore, table: bytes, row: Callable[[random.Random], bytes], seed: int, pause_s: float
    ) -> None:
        self._client = client_of(store, table)
        self._kinds = KINDS_OF_SERVERS if isinstance(store, KilledCluster) else KINDS
        self._table, self._row, self._pause_s = table, row, pause_s
        self._rng = random.Random(f"upheaval {seed}")
        super().__init__([self._run])
        self.done: Counter[str] = Counter()

    def stop(self) -> None:
        super().stop()
        self._client.close()

    def _run(self, over: threading.Event) -> None:
        while not over.wait(self._rng.uniform(0, 2 * self._pause_s)):
            kind = self._rng.choice(self._kinds)
            try:
                self._client.ask(lambda connection, kind=kind: self._change(connection, kind))
            except Lost:
                self.done["upheaval cut off by a kill"] += 1
            except Refused:
                self.done["upheaval refused"] += 1
            except StoreBroken:
                return

    def _change(self, connection: Connection, kind: str) -> None:
        admin, regions = RegionAdmin(connection), connection.table(self._table).regions()
        names = [region["name"] for region in regions]
        if kind == "flush":
            connection.admin.flush(self._rng.choice([self._table, *names]))
        elif kind == "compact":
            connection.admin.compact(self._table)
        elif kind == "major compact":
            connection.admin.major_compact(self._table)
        elif kind == "move":
            ClusterAdmin(connection).move(self._rng.choice(names))
        elif kind == "split" and len(regions) < MOST_REGIONS:
            admin.split(self._table, self._row(self._rng))
        elif len(regions) > 1:
            kind = "merge"
            admin.merge(*self._rng.choice(list(pairwise(names))))
        else:
            return
        self.done[kind] += 1

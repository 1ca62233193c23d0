"""Every operation of an administrator, one after the other, on a table beside the tables of a proof.

An operation whose answer is lost or refused is requested again until it is done, as each may be done twice.  The
expected rows of the administrator's table are known after each operation, and are compared with the stored rows.  So a
proof fails if an operation loses a row, brings a row back, or is refused for ``PATIENCE_S``.  The proof's own table
gets only operations that change no rows: attributes, snapshots and clones.  Several servers are also drained and
balanced, and regions are unassigned and assigned.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from columnar.client import ClusterAdmin, Connection
from tests.proofs.asking import Cells, StoreClient, until_answered
from tests.proofs.cluster_asking import client_of
from tests.proofs.killed_cluster import KilledCluster
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.support.looping_threads import LoopingThreads

TABLE: Final = b"beside"
CLONE: Final = b"beside-clone"
NAMESPACE: Final = b"beside_space"
SNAPSHOT: Final = "beside-snapshot"
OF_THE_PROOF: Final = "proof-snapshot"
ROWS: Final = 60  # of the table, over three regions
SPLITS: Final = (b"row-020", b"row-040")
DRAIN_S: Final = 3.0
ALTERATIONS: Final[tuple[dict[str, Any], ...]] = (
    {"COMPRESSION": "SNAPPY"}, {"COMPRESSION": None}, {"BLOOMFILTER": "ROWCOL"}, {"BLOOMFILTER": "NONE"},
    {"BLOCKSIZE": "16384"}, {"BLOCKSIZE": None},
)  # fmt: skip


class Administration(LoopingThreads):
    """The administrator, a context manager; ``problems`` has the faults, ``done`` the count of each operation."""

    def __init__(self, store: KilledStore, table: bytes, families: list[str], seed: int, pause_s: float) -> None:
        self._client: StoreClient = client_of(store, TABLE)
        self._proved, self._families, self._pause_s = table, families, pause_s
        self._rng = random.Random(f"administration {seed}")
        super().__init__([self._run])
        self._rows: dict[bytes, Cells] = {}  # of TABLE, as they must be
        self._operations: list[Callable[[], None]] = [
            self._alter, self._alter_family, self._alter_proved, self._disable, self._clone, self._restore,
            self._truncate, self._delete_rows, self._recreate, self._namespace, self._snapshot_proved,
        ]  # fmt: skip
        if isinstance(store, KilledCluster):
            self._operations += [self._unassign, self._drain, self._balance, self._switch]
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []

    def stop(self) -> None:
        super().stop()
        self._client.close()

    def _run(self, over: threading.Event) -> None:
        try:
            self._recreate()
            while not over.wait(self._rng.uniform(0, 2 * self._pause_s)):
                operation = self._rng.choice(self._operations)
                operation()
                self.done[f"administration: {operation.__name__.strip('_').replace('_', ' ')}"] += 1
                self._compare(TABLE, operation.__name__)
            self._ask(lambda connection: drop(connection, TABLE))
        except StoreBroken:
            return  # the store itself says it
        except Exception as error:  # noqa: BLE001 - whatever it is, the proof fails and says it
            self.problems.append(f"administration ended: {error!r}")

    # --- asking ------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[Connection], Any]) -> Any:
        """Call until the operation is done.  Raises Refused after PATIENCE_S."""
        return until_answered(lambda: self._client.ask(question))

    def _compare(self, table: bytes, after: str) -> None:
        found = self._ask(lambda connection: dict(connection.table(table).scan()))
        if found != self._rows:
            missing, foreign = sorted(self._rows.keys() - found.keys()), sorted(found.keys() - self._rows.keys())
            others = [row for row in found.keys() & self._rows.keys() if found[row] != self._rows[row]]
            self.problems.append(
                f"after {after} {table!r} lacks {missing[:5]}, has {foreign[:5]} besides, and other cells in "
                f"{others[:5]}: {len(missing)}, {len(foreign)}, {len(others)} rows"
            )
            self._rows = found  # each problem is said once

    def _fill(self) -> None:
        """Write every row, each with a value that no row had before."""
        rows = {b"row-%03d" % n: {b"f:v": self._rng.randbytes(8)} for n in range(ROWS)}

        def put(connection: Connection) -> None:
            with connection.table(TABLE).batch() as batch:
                for row, cells in rows.items():
                    batch.put(row, cells)

        self._ask(put)
        self._rows.update(rows)

    # --- operations on the table beside ------------------------------------------------------------------

    def _recreate(self) -> None:
        def create(connection: Connection) -> None:
            if not connection.admin.exists(TABLE):
                connection.admin.create_table(TABLE, {"f": {}}, splits=SPLITS)

        self._ask(lambda connection: drop(connection, TABLE))
        self._rows = {}
        self._ask(create)
        self._fill()

    def _alter(self) -> None:
        change = {"f": self._rng.choice(ALTERATIONS)}
        self._ask(lambda connection: connection.admin.alter_table(TABLE, change=change))

    def _alter_family(self) -> None:
        """Add a family, write it, and drop it with its cells."""

        def add(connection: Connection) -> None:
            if not has_family(connection, "more"):
                connection.admin.alter_table(TABLE, add={"more": {}})

        def remove(connection: Connection) -> None:
            if has_family(connection, "more"):
                connection.admin.alter_table(TABLE, drop=["more"])

        row = self._rng.choice([*self._rows, b"row-000"])
        self._ask(add)
        self._ask(lambda connection: connection.table(TABLE).put(row, {b"more:v": b"1"}))
        self._rows[row] = {**self._rows.get(row, {}), b"more:v": b"1"}
        self._compare(TABLE, "a new family")
        self._ask(remove)
        del self._rows[row][b"more:v"]
        if not self._rows[row]:
            del self._rows[row]

    def _disable(self) -> None:
        def disable(connection: Connection) -> None:
            if connection.admin.is_enabled(TABLE):
                connection.admin.disable(TABLE)

        def enable(connection: Connection) -> None:
            if not connection.admin.is_enabled(TABLE):
                connection.admin.enable(TABLE)

        self._ask(disable)
        self._ask(enable)

    def _clone(self) -> None:
        def clone(connection: Connection) -> None:
            if not connection.admin.exists(CLONE):
                connection.snapshots.clone_snapshot(SNAPSHOT, CLONE)

        self._take(SNAPSHOT, TABLE)
        self._ask(lambda connection: drop(connection, CLONE))
        self._ask(clone)
        self._compare(CLONE, "a clone")
        self._ask(lambda connection: drop(connection, CLONE))
        self._delete_snapshot(SNAPSHOT)

    def _restore(self) -> None:
        self._take(SNAPSHOT, TABLE)
        then = dict(self._rows)
        self._fill()
        self._ask(lambda connection: connection.snapshots.restore_snapshot(SNAPSHOT))
        self._rows = then
        self._compare(TABLE, "a restore")
        self._delete_snapshot(SNAPSHOT)

    def _truncate(self) -> None:
        keeps = self._rng.random() < 0.5
        self._ask(lambda connection: connection.admin.truncate(TABLE, preserve_splits=keeps))
        self._rows = {}
        self._compare(TABLE, "a truncation")
        self._fill()

    def _delete_rows(self) -> None:
        start, stop = sorted(b"row-%03d" % self._rng.randrange(ROWS) for _ in range(2))
        if start == stop:
            stop += b"\0"
        self._ask(lambda connection: connection.admin.delete_rows(TABLE, start, stop))
        self._rows = {row: cells for row, cells in self._rows.items() if not start <= row < stop}

    def _namespace(self) -> None:
        def create(connection: Connection) -> None:
            if NAMESPACE not in connection.admin.namespaces():
                connection.admin.create_namespace(NAMESPACE)

        def remove(connection: Connection) -> None:
            if NAMESPACE in connection.admin.namespaces():
                connection.admin.drop_namespace(NAMESPACE)

        self._ask(create)
        self._ask(remove)

    # --- operations on the table of the proof ------------------------------------------------------------

    def _alter_proved(self) -> None:
        change = {self._rng.choice(self._families): self._rng.choice(ALTERATIONS)}
        self._ask(lambda connection: connection.admin.alter_table(self._proved, change=change))

    def _snapshot_proved(self) -> None:
        def clone(connection: Connection) -> None:
            if not connection.admin.exists(CLONE):
                connection.snapshots.clone_snapshot(OF_THE_PROOF, CLONE)

        self._take(OF_THE_PROOF, self._proved)
        self._ask(clone)
        self._ask(lambda connection: drop(connection, CLONE))
        self._delete_snapshot(OF_THE_PROOF)

    def _take(self, name: str, table: bytes) -> None:
        def take(connection: Connection) -> None:
            if all(one.name != name for one in connection.snapshots.list_snapshots()):
                connection.snapshots.take_snapshot(name, table)

        self._ask(take)

    def _delete_snapshot(self, name: str) -> None:
        def delete(connection: Connection) -> None:
            if any(one.name == name for one in connection.snapshots.list_snapshots()):
                connection.snapshots.delete_snapshot(name)

        self._ask(delete)

    # --- operations on servers ---------------------------------------------------------------------------

    def _unassign(self) -> None:
        def region(connection: Connection) -> bytes:
            return ClusterAdmin(connection).locate(TABLE, row).region.name

        row = b"row-%03d" % self._rng.randrange(ROWS)
        self._ask(lambda connection: ClusterAdmin(connection).unassign(region(connection)))
        self._ask(lambda connection: ClusterAdmin(connection).assign(region(connection)))

    def _drain(self) -> None:
        def server(connection: Connection) -> str:
            return sorted(one.name for one in ClusterAdmin(connection).servers().servers)[chosen]

        chosen = self._rng.randrange(2)
        name = self._ask(server)
        self._ask(lambda connection: ClusterAdmin(connection).drain(name, wait_s=DRAIN_S))
        self._ask(lambda connection: ClusterAdmin(connection).undrain(name))

    def _balance(self) -> None:
        self._ask(lambda connection: ClusterAdmin(connection).balance())

    def _switch(self) -> None:
        what = self._rng.choice(["balancer", "auto-split"])
        for on in (False, True):
            self._ask(lambda connection, on=on: ClusterAdmin(connection).switch(what, on))


def has_family(connection: Connection, family: str) -> bool:
    return any(one.name.rstrip(b":") == family.encode() for one in connection.admin.describe(TABLE).families)


def drop(connection: Connection, table: bytes) -> None:
    if connection.admin.exists(table):
        connection.admin.drop(table, disable=True)

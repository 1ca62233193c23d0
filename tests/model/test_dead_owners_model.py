"""A region that goes from owner to owner, by moves and by deaths at any step, compared with the acknowledged writes.

The logs are real logs on disk.  The store is in memory, and its crash undoes any end of the unsynced writes; its marks
are those of ``Capture``, as the engine's store writes them.  The master's part is a few lines: the log of a dead owner
counts as unreplayed if it names the region at its epoch, until the next owner has reported.  COLUMNAR_SEED repeats a
run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from columnar.errors import DamagedData
from columnar.storage import dead_logs, recovery
from columnar.storage.api import Batch
from columnar.storage.capture import Capture
from columnar.storage.dead_logs import DeadLog, DeadLogs, LogOfRegion, Sealed, measure
from columnar.storage.memory import MemoryEngine, MemoryStore
from columnar.storage.ownership import COMPLETE, META_SPACE, LogPart, Ownership, pack_complete
from columnar.storage.recovery import bring_in, complete_of
from columnar.storage.server_log import MARK_SPACE, Operation
from columnar.storage.server_log_files import ServerLog, begin_run
from tests.support.seeds import seed

SEED = seed(917)
RUNS = 40
STEPS = 50
REGION = "r"
SPACES = frozenset({"a", META_SPACE, MARK_SPACE})
KEYS = (b"x", b"y", b"z")
ZOMBIE = -1  # the value that is written after a seal


class Died(Exception):
    """The process died in the middle of a step."""


class MortalStore(MemoryStore):
    """A store whose process dies after a given number of further writes and fsyncs."""

    steps_left = 1 << 30

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Died

    def write_batch(self, batch: Batch) -> None:
        self._step()
        super().write_batch(batch)

    def sync(self) -> None:
        self._step()
        super().sync()


class Server:
    """An incarnation, with its log."""

    def __init__(self, root: Path, number: int) -> None:
        self.name = f"s{number % 3}.{number}"
        self.folder = root / self.name
        self.folder.mkdir()
        self.log: ServerLog = begin_run(str(self.folder))[0]
        self.log.prepare()


class World:
    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self.rng = root, rng
        self.engine = MemoryEngine()
        self.servers: list[Server] = []  # that live
        self.started = 0
        self.sealed: dict[str, Sealed] = {}
        self.epoch = 0
        self.behind: list[LogPart] = []
        self.owner: Server | None = None
        self.store: MortalStore | None = None
        self.capture: Capture | None = None
        self.issued = 0
        self.lowest = dict.fromkeys(KEYS, 0)  # that a reader may still find: acknowledged, or read
        self.served = 0
        for _ in range(3):
            self.start()

    def start(self) -> None:
        self.started += 1
        self.servers.append(Server(self.root, self.started))

    # --- the owner ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the region at any server, at the next epoch; the server may die at any step."""
        self.epoch += 1
        self.owner = self.rng.choice(self.servers)
        logs = DeadLogs()
        for name in {part.log for part in self.behind}:
            logs.add_log(name, DeadLog(str(self.root / name), self.sealed[name]))
        disk = self.engine.open_store("r", SPACES).open_disk()
        self.store, self.capture = MortalStore(self.engine, "r", disk, {}), None
        if self.rng.random() < 0.3:
            self.store.steps_left = self.rng.randrange(6)
        try:
            assert bring_in(self.store, logs, Ownership(REGION, self.epoch, tuple(self.behind))) == self.epoch
        except Died:
            self.die()
            return
        self.store.steps_left = 1 << 30
        if self.behind:
            assert complete_of(self.store, REGION) > max(part.epoch for part in self.behind), "C4"
            assert not disk.unsynced, "C4"
        self.look()
        if self.rng.random() < 0.7:
            self.behind.clear()  # the master has heard of it
        self.served += 1

    def look(self) -> None:
        for key in KEYS:
            found = self.value_of(key)
            assert self.lowest[key] <= found <= self.issued, f"{key!r}: {found}, acknowledged {self.lowest[key]}"
            self.lowest[key] = found

    def value_of(self, key: bytes) -> int:
        assert self.store is not None
        return int(self.store.get("a", key) or b"0")

    def write(self) -> None:
        """Write a batch as ``RocksStore`` does; a shared fsync or one of its own acknowledges it, or nothing does."""
        assert self.store is not None
        self.issued += 1
        key = self.rng.choice(KEYS)
        operation: Operation = ("a", key, b"%d" % self.issued, None)
        how = self.rng.choice(("round", "round", "own", "none"))
        if how == "round" and self.capture is None:
            self.begin_capture()
        self.hand_over(operation)
        if how == "none":
            return
        taken = self.capture.take() if self.capture is not None else None
        if how == "own" or taken is None:
            self.sync()
        else:
            assert self.owner is not None
            self.owner.log.append(taken)
        self.lowest = {name: max(self.lowest[name], self.value_of(name)) for name in KEYS}

    def begin_capture(self) -> None:
        assert self.owner is not None
        log = self.owner.log
        self.capture = Capture(REGION, self.epoch, log.era, log.stamp)
        self.hand_over(None, has_all=True)
        self.capture.take()
        self.sync()

    def hand_over(self, operation: Operation | None, *, has_all: bool = False) -> None:
        assert self.store is not None
        batch = self.store.batch()
        if has_all:  # as ``RocksStore.begin_capture``: the marks of earlier owners go
            batch.put(META_SPACE, COMPLETE, pack_complete(self.epoch, REGION))
        if operation is not None:
            batch.put("a", operation[1], operation[2] or b"")
        if self.capture is not None:
            pair = self.capture.mark()
            keys, span = self.capture.outdated()
            for key in keys:
                batch.delete(MARK_SPACE, key)
            if span is not None:
                batch.delete_range(MARK_SPACE, *span)
            batch.put(MARK_SPACE, *pair)
            if operation is not None:
                self.capture.note([operation], 1)
        self.store.write_batch(batch)
        if self.capture is not None:
            self.capture.batch_written()

    def sync(self) -> None:
        assert self.store is not None
        self.store.sync()
        if self.capture is not None:
            self.capture.synced = self.capture.last

    # --- its end ------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Let the owner close the region, for a move."""
        assert self.owner is not None
        if self.rng.random() < 0.3:  # its fsync failed: "behind me"
            self.lose_unsynced()
            self.note_behind(self.owner)
        else:
            self.sync()
            assert self.store is not None
            self.store.close()
            if self.rng.random() < 0.3:  # all die before the catalogue has it on disk that this owner has closed
                self.note_behind(self.owner)
        self.owner = self.store = None

    def die(self) -> None:
        """Kill a server and seal its log, whatever it still writes."""
        dead, self.owner, self.store = self.owner, None, None
        assert dead is not None
        self.servers.remove(dead)
        self.start()
        self.lose_unsynced()
        segments = sorted(dead.folder.glob("*.segment"))
        if segments and self.rng.random() < 0.5:
            with segments[-1].open("ab") as torn:
                torn.write(self.rng.randbytes(self.rng.randrange(1, 40)))
        self.note_behind(dead)
        if self.rng.random() < 0.5:
            self.go_on_after_the_seal(dead)

    def lose_unsynced(self) -> None:
        unsynced = len(self.engine.disks["r"].unsynced)
        self.engine.crash("r", keep=self.rng.randint(0, unsynced))

    def note_behind(self, server: Server) -> None:
        self.sealed[server.name] = measure(str(server.folder))
        log = DeadLog(str(server.folder), self.sealed[server.name])
        if (REGION, self.epoch) in log.named():
            self.behind.append(LogPart(server.name, self.epoch))

    def go_on_after_the_seal(self, zombie: Server) -> None:
        zombie.log.append([(REGION, self.epoch, 1 << 40, 0, [("a", key, b"%d" % ZOMBIE, None) for key in KEYS])])

    def remove_logs(self) -> None:
        """Remove the logs of dead servers that no region needs any more."""
        named = {part.log for part in self.behind} | {server.name for server in self.servers}
        for name in [name for name in self.sealed if name not in named]:
            del self.sealed[name]
            for file in (self.root / name).iterdir():
                file.unlink()

    def run(self) -> None:
        for _ in range(STEPS):
            chance = self.rng.random()
            if self.owner is None:
                self.open()
            elif chance < 0.7:
                self.write()
            elif chance < 0.8:
                self.leave()
            elif chance < 0.95:
                self.die()
            else:
                self.remove_logs()


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fsync, because only processes fail here, not machines."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _file: None)


def run_all(root: Path) -> int:
    served = 0
    for run in range(RUNS):
        folder = root / f"{run}"
        folder.mkdir()
        world = World(folder, random.Random(SEED + run))
        world.run()
        served += world.served
    return served


def test_no_owner_lacks_or_undoes_what_was_acknowledged(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    assert run_all(tmp_path) > 5 * RUNS


def no_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "complete_of", lambda _store, _region: 0)


def no_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_logs, "_first_bytes", lambda path, _count: Path(path).read_bytes())


def no_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the log forget the owners of records, as a deliberate fault."""
    records = DeadLog.records

    def of_any(log: DeadLog, region: str, _epochs: frozenset[int]) -> LogOfRegion:
        return records(log, region, log.epochs_of(region))

    monkeypatch.setattr(DeadLog, "records", of_any)
    monkeypatch.setattr(
        DeadLog, "named", lambda log: {(region, epoch) for region in log.counts() for epoch in range(200)}
    )


def no_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "note_behind", lambda _world, _server: None)


def no_fsync_of_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MortalStore, "sync", lambda store: store._step())


@pytest.mark.parametrize("mistake", [no_complete, no_seal, no_epochs, no_behind, no_fsync_of_complete])
def test_a_mistake_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None]
) -> None:
    mistake(monkeypatch)
    with pytest.raises((AssertionError, DamagedData)):
        run_all(tmp_path)

"""A region whose server lost its power: which records of its log the next owner must replay, and which not.

Stores are the engine's, and each server has a log in a folder of its own; the cut removes the unsynced part of the
region's own log.  ``tests/model/test_dead_owners_model.py`` has the same in any order of events.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from columnar.client.admin import RegionAdmin
from columnar.errors import DamagedData, HostError
from columnar.model.region_info import RegionInfo
from columnar.roles import serving
from columnar.storage import commit
from columnar.storage.commit import Committer
from columnar.storage.data_folder import META, SERVER_LOG
from columnar.storage.dead_logs import DeadLog, DeadLogs, Sealed, measure
from columnar.storage.ownership import COMPLETE, META_SPACE, LogPart, Ownership, complete_in
from columnar.storage.recovery import bring_in
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from columnar.storage.server_log import MARK, MARK_SPACE, MARKS_END
from columnar.storage.server_log_files import begin_run
from tests.support.logged_stores import EngineAtRest, copied
from tests.support.serving import Serving

SPACES = frozenset({"a", META_SPACE})
REGION = "r"
WRITES_MAX = 200  # until the server's log has its first segment and the regions share it


@pytest.fixture(autouse=True)
def _always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "SHARED_FROM", 0)


class Cluster:
    """The folder that all servers share, and the seals, which are the master's part."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sealed: dict[str, Sealed] = {}
        (root / "regions").mkdir(parents=True, exist_ok=True)

    def folder(self, server: str) -> Path:
        return self.root / "servers" / server

    def seal(self, server: str) -> None:
        self.sealed[server] = measure(str(self.folder(server)))

    def dead_logs(self) -> DeadLogs:
        logs = DeadLogs()
        for name, sealed in self.sealed.items():
            logs.add_log(name, DeadLog(str(self.folder(name)), sealed))
        return logs

    def opened(self, epoch: int, *behind: tuple[str, int], region: str = REGION) -> RocksStore:
        """Return the region's store, opened for reading by a server without a log."""
        engine = RocksEngine(cache_bytes=1 << 20)
        engine.dead_logs = self.dead_logs()
        parts = tuple(LogPart(*part) for part in behind)
        return engine.open_store(str(self.root / "regions" / region), SPACES, None, Ownership(region, epoch, parts))

    def after_cut(self, region: str = REGION) -> Cluster:
        """Return the disk after a power cut: the region's own log has only its synced part."""
        target = Cluster(copied(self.root, self.root.with_name(self.root.name + "-cut")))
        target.sealed = dict(self.sealed)
        newest = max((target.root / "regions" / region).glob("*.log"))
        newest.write_bytes(b"")
        return target


class Server:
    """A region server in a running loop."""

    def __init__(self, cluster: Cluster, name: str, epoch: int, *behind: tuple[str, int]) -> None:
        self.name, self.epoch = name, epoch
        self.engine = EngineAtRest(cache_bytes=1 << 20)
        folder = cluster.folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        self.log, _ = begin_run(str(folder))
        self.log.prepare()
        self.engine.server_log, self.engine.dead_logs = self.log, cluster.dead_logs()
        self.committer = Committer(asyncio.get_running_loop(), threads=2, log=self.log)
        parts = tuple(LogPart(*part) for part in behind)
        path = str(cluster.root / "regions" / REGION)
        self.store = self.engine.open_store(path, SPACES, None, Ownership(REGION, epoch, parts))

    async def begin(self) -> None:
        """Begin shared fsyncs, after which the region's own log may lose its unsynced part."""
        await self.put(b"first", b"v")
        self.store.files.flush()

    async def put(self, key: bytes, value: bytes) -> None:
        batch = self.store.batch()
        batch.put("a", key, value)
        self.store.gather(batch)
        await self.committer.durable(self.store)

    def stop(self) -> None:
        self.committer.close()
        self.store.close()
        self.log.close()


def sharing(data: Path) -> set[str]:
    """Return the regions whose writes go to the server log, so that none syncs its own log at its next write."""
    folder = str(data / SERVER_LOG)
    return {region for region, _ in DeadLog(folder, measure(folder)).named()}


def complete_of(store: RocksStore) -> int:
    return complete_in(store.get(META_SPACE, COMPLETE), REGION)


def cut_after(root: Path, epoch: int, *puts: tuple[bytes, bytes]) -> Cluster:
    """Let server s1.1 own the region, acknowledge the puts by the server log alone, and lose its power."""

    async def run() -> Cluster:
        cluster = Cluster(root)
        server = Server(cluster, "s1.1", epoch)
        await server.begin()
        for key, value in puts:
            await server.put(key, value)
        cut = cluster.after_cut()
        server.stop()
        return cut

    return asyncio.run(run())


def test_a_log_whose_server_has_closed_the_region_is_not_brought_in_over_the_next_owner(tmp_path: Path) -> None:
    """The owner at epoch 9 has nothing to replay, and all die before the row without the owner at 8 is on disk."""

    async def run() -> Cluster:
        cluster = Cluster(tmp_path / "data")
        first = Server(cluster, "s1.1", 8)
        await first.begin()
        await first.put(b"k", b"1")
        cluster.seal("s1.1")
        shutil.copytree(cluster.folder("s1.1"), tmp_path / "kept")
        first.stop()  # a log of which nobody is behind goes with a server that stops, not with one that moves regions
        shutil.rmtree(cluster.folder("s1.1"))
        shutil.copytree(tmp_path / "kept", cluster.folder("s1.1"))
        second = Server(cluster, "s2.1", 9)
        await second.put(b"k", b"2")  # its own fsync: the first one of a store is
        second.stop()
        return cluster

    store = asyncio.run(run()).opened(10, ("s1.1", 8))
    assert store.get("a", b"k") == b"2"
    store.close()


def test_the_next_owner_has_what_only_the_dead_server_s_log_had(tmp_path: Path) -> None:
    cut = cut_after(tmp_path / "data", 8, (b"k", b"1"), (b"k", b"2"))
    cut.seal("s1.1")
    assert cut.dead_logs().of_region("s1.1", REGION, frozenset({8})).found
    store = cut.opened(9, ("s1.1", 8))
    assert store.get("a", b"k") == b"2"
    assert complete_of(store) == 9
    store.close()


def test_what_is_written_behind_the_seal_is_not_read(tmp_path: Path) -> None:
    cut = cut_after(tmp_path / "data", 8, (b"k", b"1"))
    cut.seal("s1.1")
    (segment,) = cut.folder("s1.1").glob("*.segment")
    other = cut_after(tmp_path / "zombie", 8, (b"k", b"1"), (b"k", b"of a zombie"))
    (longer,) = other.folder("s1.1").glob("*.segment")
    with segment.open("ab") as file:
        file.write(longer.read_bytes()[segment.stat().st_size :])
    late = segment.with_name("00000009.segment")
    late.write_bytes(segment.read_bytes())
    store = cut.opened(9, ("s1.1", 8))
    assert store.get("a", b"k") == b"1"
    store.close()


def test_records_of_another_epoch_in_the_same_log_stay_where_they_are(tmp_path: Path) -> None:
    """s1.1 owned the region at epochs 8 and 10; s2.1 owned it in between, and records of 8 must not hide its values."""

    async def run() -> Cluster:
        cluster = Cluster(tmp_path / "data")
        first = Server(cluster, "s1.1", 8)
        await first.begin()
        await first.put(b"k", b"of 8")
        first.store.sync()
        first.committer.forget_store(first.store)
        first.store.close()
        between = Server(cluster, "s2.1", 9)
        await between.begin()
        await between.put(b"k", b"of 9")
        between.stop()
        path = str(cluster.root / "regions" / REGION)
        first.store = first.engine.open_store(path, SPACES, None, Ownership(REGION, 10))
        await first.begin()
        await first.put(b"j", b"of 10")
        cut = cluster.after_cut()
        first.stop()
        return cut

    cut = asyncio.run(run())
    cut.seal("s1.1")
    assert cut.dead_logs()._logs["s1.1"].named() == {(REGION, 8), (REGION, 10)}
    store = cut.opened(11, ("s1.1", 10))
    assert (store.get("a", b"k"), store.get("a", b"j")) == (b"of 9", b"of 10")
    store.close()


def test_a_second_owner_that_dies_before_complete_leaves_all_to_the_third(tmp_path: Path) -> None:
    cut = cut_after(tmp_path / "data", 8, *((b"k%d" % number, b"v") for number in range(5)))
    cut.seal("s1.1")
    for steps in range(7):
        twin = Cluster(copied(cut.root, tmp_path / f"died-after-{steps}"))
        twin.sealed = cut.sealed
        engine = RocksEngine(cache_bytes=1 << 20)
        store = engine.open_store(str(twin.root / "regions" / REGION), SPACES)
        with pytest.raises(MemoryError):
            bring_in(_Mortal(store, steps), twin.dead_logs(), Ownership(REGION, 9, (LogPart("s1.1", 8),)))  # type: ignore[arg-type]
        died = Cluster(copied(twin.root, tmp_path / f"after-{steps}"))
        died.sealed = cut.sealed
        store.close()
        third = died.opened(10, ("s1.1", 8))
        assert [third.get("a", b"k%d" % number) for number in range(5)] == [b"v"] * 5
        assert complete_of(third) == (10 if steps < 6 else 9)
        third.close()


class _Mortal:
    """A store whose process ends after a given number of further writes and fsyncs."""

    def __init__(self, store: RocksStore, steps: int) -> None:
        self._store, self._steps = store, steps

    def __getattr__(self, name: str) -> object:
        if name in ("write_batch", "sync"):
            self._steps -= 1
            if self._steps < 0:
                raise MemoryError("dead")
        return getattr(self._store, name)


def test_a_second_owner_that_dies_after_complete_is_not_overwritten(tmp_path: Path) -> None:
    """The master has not been notified, so the row still names the first log."""
    cut = cut_after(tmp_path / "data", 8, (b"k", b"of 8"), (b"j", b"of 8"))
    cut.seal("s1.1")

    async def second() -> Cluster:
        server = Server(cut, "s2.1", 9, ("s1.1", 8))
        await server.begin()
        await server.put(b"k", b"of 9")
        marks = [key for key, _ in server.store.scan(MARK_SPACE, MARK, MARKS_END)]
        assert all(server.log.era in key for key in marks), "nothing tells any more which batches of s1.1 it has"
        again = cut.after_cut()
        server.stop()
        return again

    twice = asyncio.run(second())
    twice.seal("s2.1")
    third = twice.opened(10, ("s1.1", 8), ("s2.1", 9))
    assert (third.get("a", b"k"), third.get("a", b"j")) == (b"of 9", b"of 8")
    assert complete_of(third) == 10
    third.close()


def test_without_complete_all_that_is_behind_is_brought_in(tmp_path: Path) -> None:
    cut = cut_after(tmp_path / "data", 8, (b"k", b"of 8"))
    cut.seal("s1.1")
    for _ in range(2):
        store = cut.opened(9, ("s1.1", 8))
        assert store.get("a", b"k") == b"of 8"
        batch = store.batch()
        batch.put("a", b"k", b"of 9")
        batch.delete(META_SPACE, COMPLETE)
        store.write_batch(batch)
        store.sync()
        store.close()
        store = cut.opened(9, ("s1.1", 8))
        assert store.get("a", b"k") == b"of 9", "its marks are there: twice is once"
        batch = store.batch()
        batch.put("a", b"k", b"of 8")
        store.write_batch(batch)
        store.sync()
        store.close()


def test_complete_of_a_parent_says_nothing_of_its_daughter(tmp_path: Path) -> None:
    """The daughter's epochs begin anew, below the parent's."""
    cut = cut_after(tmp_path / "data", 8, (b"k", b"v"))
    cut.seal("s1.1")
    parent = cut.opened(9, ("s1.1", 8))
    parent.files.checkpoint(str(cut.root / "regions" / "daughter"))
    parent.close()
    daughter = cut.opened(1, region="daughter")
    assert complete_in(daughter.get(META_SPACE, COMPLETE), "daughter") == 0
    daughter.close()


def test_an_owner_below_complete_and_one_without_the_log_are_refused(tmp_path: Path) -> None:
    cut = cut_after(tmp_path / "data", 8, (b"k", b"v"))
    with pytest.raises(HostError, match="that log is not here"):
        cut.opened(9, ("s1.1", 8))
    cut.seal("s1.1")
    cut.opened(9, ("s1.1", 8)).close()
    with pytest.raises(DamagedData, match="an owner at epoch 9"):
        cut.opened(8)
    store = cut.opened(9)
    assert store.get("a", b"k") == b"v"
    store.close()


def test_a_damaged_log_keeps_the_region_shut(tmp_path: Path) -> None:
    cut = cut_after(tmp_path / "data", 8, (b"k", b"v"))
    cut.seal("s1.1")
    (segment,) = cut.folder("s1.1").glob("*.segment")
    os.truncate(segment, segment.stat().st_size - 1)
    with pytest.raises(DamagedData, match="were synced"):
        cut.opened(9, ("s1.1", 8))


@pytest.mark.parametrize("recovers", [True, False])
def test_a_standalone_brings_its_own_past_in_at_each_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovers: bool
) -> None:
    """After a power cut it does so for the catalogue and for tables, whether a request or the recovery comes first."""
    live, cut = tmp_path / "live", tmp_path / "cut"
    store = Serving(live).start()
    connection = store.connect()
    connection.create_table(b"t", {"f": {}})
    region = RegionInfo("t", connection.table(b"t").regions()[0]["id"]).encoded
    for number in range(WRITES_MAX):
        connection.table(b"t").put(b"r", {b"f:x": b"%d" % number})
        connection.admin.create_namespace(b"n%d" % number)
        if {META, region} <= sharing(live):
            break
    older = {name: copied(live / "regions" / name, tmp_path / name) for name in (META, region)}
    connection.create_table(b"v", {"f": {}})
    connection.table(b"t").put(b"r", {b"f:x": b"last"})
    copied(live, cut)
    store.stop()
    for name, folder in older.items():
        shutil.rmtree(cut / "regions" / name)
        folder.rename(cut / "regions" / name)
    if not recovers:
        monkeypatch.setattr(serving, "recovering", lambda *_: iter(()))
    again = Serving(cut).start()
    connection = again.connect()
    assert b"v" in connection.tables()
    assert connection.table(b"t").row(b"r") == {b"f:x": b"last"}
    again.stop()


def test_daughters_have_their_part_in_the_server_s_log(tmp_path: Path) -> None:
    store = Serving(tmp_path / "data").start()
    connection = store.connect()
    connection.create_table(b"t", {"f": {}})
    for row in (b"a", b"z"):
        connection.table(b"t").put(row, {b"f:x": b"v"})
    RegionAdmin(connection).split(b"t", b"m")
    server = store.store.serving.server
    owned = store.do(lambda: {one.info.encoded: one.store._region for one in server.open_regions_of("t")})  # type: ignore[attr-defined]
    assert len(owned) == 2
    assert all(name == region for name, region in owned.items())
    store.stop()

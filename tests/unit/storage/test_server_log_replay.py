"""What the server's log brings into regions after a crash, and what it leaves alone."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from columnar.errors import DamagedData, HostError
from columnar.storage import commit, server_log_files
from columnar.storage.api import StoreBusy
from columnar.storage.data_folder import SERVER_LOG, DataFolder
from columnar.storage.ownership import THIS_RUN, LogPart, Ownership
from columnar.storage.process_stores import ProcessStores
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_batch import LARGE_ROWS
from columnar.storage.rocks_store import RocksStore
from tests.support.logged_stores import SPACES, EngineAtRest, LoggedStores, copied, opened


@pytest.fixture
def always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "SHARED_FROM", 0)


def test_after_a_power_cut_every_region_gets_what_only_the_log_has(tmp_path: Path, always_shared: None) -> None:
    async def write(root: Path, key: bytes) -> Path:
        server = LoggedStores(root)
        assert server.segments == [], "what an earlier run left is brought in at the start"
        for number in range(3):
            server.stores[number].files.flush()  # what stands in files is not in a log
        await server.put_all(b"noted from now on")
        for store in server.stores:
            store.files.flush()
        for value in (b"1", b"2"):
            await server.put_all(key, value)
        return server.cut()

    async def look(root: Path, keys: list[bytes]) -> None:
        server = LoggedStores(root)
        for store in server.stores:
            assert [store.get("a", key) for key in keys] == [b"2"] * len(keys)
        server.close()

    root = tmp_path / "data"
    root.mkdir()
    for run in range(3):
        root = asyncio.run(write(root, b"run %d" % run))
    asyncio.run(look(root, [b"run 0", b"run 1", b"run 2"]))


@pytest.mark.parametrize("last", ["small", "large"])
def test_an_engine_s_log_that_lost_its_end_before_the_next_one_is_no_prefix(
    tmp_path: Path, always_shared: None, last: str
) -> None:
    """The engine begins a new log file before it has synced the old one.  A cut between records looks like an end."""
    root = tmp_path / "data"
    root.mkdir()

    async def write() -> Path:
        server = LoggedStores(root)
        store = server.stores[0]
        await server.put_all(b"first")
        await server.put_to_flush()
        await server.put_all(b"k", b"before")
        older = server.engine_log(0)
        length = older.stat().st_size
        await server.put_all(b"k", b"lost by the engine")
        target = server.copied()
        os.truncate(target / "regions" / "r0" / older.name, length)
        server.begin_another_log()
        batch = store.batch(rows=LARGE_ROWS if last == "large" else 1)
        batch.put("b", b"other", b"later")
        store.write_batch(batch)
        if last == "small":
            await server.committer.durable(store)
        server.bring_newest(target)
        server.close()
        return target

    cut = asyncio.run(write())
    started = opened(cut)
    started.recover()
    assert started.left == {}
    store = started.open("r0")
    assert store.get("a", b"first") == b"v"
    assert store.get("a", b"k") == b"lost by the engine", "it was acknowledged"
    # Of the large one nobody was told, and what came before it was missing.
    assert store.get("b", b"other") == (b"later" if last == "small" else None)
    store.close()


@pytest.mark.parametrize("reopened", [False, True])
def test_what_was_synced_is_never_replayed_though_its_marks_are_gone(
    tmp_path: Path, always_shared: None, reopened: bool
) -> None:
    async def write() -> Path:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"k", b"old")
        for store in server.stores:
            store.sync()
        await server.put_all(b"k", b"newer")  # the mark of the old one goes with it
        if reopened:
            server.committer.forget_store(server.stores[0])
            server.stores[0].close()
            server.stores[0] = server.open("r0")
            await server.put_all(b"first of the new one")
        await server.put_all(b"other", b"there")
        for store in server.stores:
            store.files.flush()
        await server.put_all(b"last")
        return server.cut()

    root = asyncio.run(write())
    held = RocksEngine(cache_bytes=1 << 20).open_store(str(root / "regions" / "r1"), SPACES)  # so the log stays
    for _ in range(2):
        started = opened(root)
        started.recover()
        assert list(started.left) == ["r1"]
        store = started.open("r0")
        assert [store.get("a", key) for key in (b"k", b"other", b"last")] == [b"newer", b"there", b"v"]
        store.close()
    held.close()


def test_what_is_taken_in_later_is_not_overwritten_by_the_log(tmp_path: Path, always_shared: None) -> None:
    async def write() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"k", b"older")
        store = server.stores[0]
        file = server.engine.sorted_file(str(tmp_path / "in.sst"))
        file.put_pair(b"k", b"ingested")
        file.finish()
        store.files.ingest({"a": [str(tmp_path / "in.sst")]})
        capture = store._capture
        assert capture is not None
        assert capture.synced == capture.last, "else the log would bring the older one back"
        server.close()

    asyncio.run(write())


def test_a_batch_that_is_missing_between_is_damage(tmp_path: Path, always_shared: None) -> None:
    async def write() -> Path:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        for store in server.stores:
            store.files.flush()
        for number in range(3):
            await server.put_all(b"k%d" % number)
        return server.cut()

    root = asyncio.run(write())
    started = opened(root)
    del started.logs._logs[SERVER_LOG]._regions()["r1"][0]
    started.recover()
    assert started.left == {"r1": 2}
    with pytest.raises(DamagedData, match="lost one before"):
        started.open("r1")
    assert list(root.rglob("*.segment")), "it is all that there is of r1's last writes"


def test_a_region_that_cannot_be_opened_keeps_its_part_of_the_log(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write() -> Path:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        for store in server.stores:
            store.files.flush()
        await server.put_all(b"second")
        return server.cut()

    root = asyncio.run(write())
    started = opened(root)
    path = str(root / "regions" / "r1")
    held = RocksEngine(cache_bytes=1 << 20).open_store(path, SPACES)  # so it cannot be opened, as on a full disk
    started.recover()
    assert started.left == {"r1": 1}
    assert started.engine.has_unreplayed_writes(held, started.ownership("r1")), (
        "readers would miss an acknowledged write"
    )
    held.close()
    store = started.open("r1")
    assert store.get("a", b"second") == b"v"
    assert not started.engine.has_unreplayed_writes(store, started.ownership("r1"))
    assert not list(root.rglob("*.segment"))
    store.close()


class Gate:
    """At the log's fsync: once it is shut, the next one waits and then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._shut = False
        self._reached, self._open = threading.Event(), threading.Event()
        self._force = server_log_files.force
        monkeypatch.setattr(server_log_files, "force", self._pass)
        monkeypatch.setattr(server_log_files, "RETRY_S", 0.0)

    def _pass(self, file: int) -> None:
        if self._shut:
            self._shut = False
            self._reached.set()
            assert self._open.wait(20)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._force(file)

    def shut(self) -> None:
        self._shut = True

    async def reached(self) -> None:
        assert await asyncio.to_thread(self._reached.wait, 20)

    def fail(self) -> None:
        self._open.set()


@pytest.mark.parametrize("meanwhile", ["small", "much", "large"])
def test_what_is_gathered_while_an_append_fails_is_neither_lost_nor_held_up(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    synced: dict[str, int] = {}
    sync = RocksStore.sync

    def noted(store: RocksStore) -> None:
        sizes = {str(path): path.stat().st_size for path in Path(store._path).glob("*.log")}
        sync(store)
        synced.update(sizes)

    monkeypatch.setattr(RocksStore, "sync", noted)
    root = tmp_path / "data"
    root.mkdir()

    async def write() -> Path:
        server, gate = LoggedStores(root), Gate(monkeypatch)
        await server.put_all(b"first")
        await server.put_all(b"second")
        store = server.stores[0]
        gate.shut()
        asked = [asyncio.ensure_future(server.put(0, b"refused"))]
        await gate.reached()
        if meanwhile == "large":
            batch = store.batch(rows=LARGE_ROWS)
            batch.put("a", b"large", b"v")
            store.write_batch(batch)
        for number in range(2):
            value = bytes(150_000 if meanwhile == "much" else 1)
            asked.append(asyncio.ensure_future(server.put(0, b"meanwhile %d" % number, value)))
        await asyncio.sleep(0)
        gate.fail()
        async with asyncio.timeout(20):
            await asked[0]
            await asyncio.gather(*asked, server.put(0, b"last"))
        log = server.engine_log(0)
        target = copied(root, tmp_path / "cut")
        os.truncate(target / "regions" / "r0" / log.name, synced[str(log)])
        server.close()
        return target

    cut = asyncio.run(write())
    started = opened(cut)
    started.recover()
    store = started.open("r0")
    keys = [b"refused", b"meanwhile 0", b"meanwhile 1", b"last"]
    assert [key for key in keys if store.get("a", key) is None] == []
    store.close()


def test_a_run_that_appended_nothing_gives_its_number_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data"
    root.mkdir()

    async def run(alone: int) -> None:
        monkeypatch.setattr(commit, "SHARED_FROM", 0)
        server = LoggedStores(root)
        await server.put_all(b"all")
        monkeypatch.setattr(commit, "SHARED_FROM", 99)
        for number in range(alone):
            await server.put(0, b"alone %d" % number)
        server.close()

    async def last() -> Path:
        monkeypatch.setattr(commit, "SHARED_FROM", 0)
        server = LoggedStores(root)
        await server.put_all(b"all")
        for store in server.stores:
            store.files.flush()
        await server.put_all(b"acknowledged")
        return server.cut()

    asyncio.run(run(0))
    asyncio.run(run(50))
    cut = asyncio.run(last())
    started = opened(cut)
    started.recover()
    for number in range(3):
        store = started.open(f"r{number}")
        assert store.get("a", b"acknowledged") == b"v"
        store.close()


@pytest.mark.parametrize("is_there", [False, True])
def test_an_engine_s_log_may_lose_all_while_the_next_one_is_there(
    tmp_path: Path, always_shared: None, is_there: bool
) -> None:
    root = tmp_path / "data"
    root.mkdir()

    async def write() -> Path:
        server = LoggedStores(root)
        store = server.stores[0]
        await server.put_all(b"first")
        store.files.flush()
        await server.put_to_flush()
        await server.put_all(b"k", b"acknowledged")
        target = server.copied()
        older = target / "regions" / "r0" / server.engine_log(0).name
        older.write_bytes(b"") if is_there else older.unlink()
        server.begin_another_log()
        await server.put_all(b"k2", b"too")
        server.bring_newest(target)
        server.close()
        return target

    cut = asyncio.run(write())
    started = opened(cut)
    started.recover()
    store = started.open("r0")
    assert (store.get("a", b"k"), store.get("a", b"k2")) == (b"acknowledged", b"too")
    store.close()


def test_marks_of_a_twin_of_the_folder_rule_nothing(tmp_path: Path, always_shared: None) -> None:
    """A data folder was copied, both went on, and a region of the copy came back: its marks look like ours, and lie."""

    async def write(root: Path, count: int) -> None:
        server = LoggedStores(root)
        for number in range(count):
            await server.put_all(b"%d" % number)
        server.close()

    async def go_on(root: Path) -> Path:
        server = LoggedStores(root)
        server.stores.append(server.open("r9"))
        await server.put_all(b"first")
        for store in server.stores:
            store.files.flush()
        await server.put_all(b"acknowledged")
        return server.cut()

    root, twin = tmp_path / "data", tmp_path / "twin"
    root.mkdir()
    asyncio.run(write(root, 3))
    shutil.copytree(root, twin)
    asyncio.run(write(twin, 60))
    shutil.copytree(twin / "regions" / "r0", root / "regions" / "r9")
    cut = asyncio.run(go_on(root))
    started = opened(cut)
    started.recover()
    assert started.left == {}
    store = started.open("r9")
    assert store.get("a", b"acknowledged") == b"v"
    store.close()


def test_a_store_too_busy_for_its_first_mark_goes_by_itself(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write() -> None:
        server = LoggedStores(tmp_path)
        store = server.stores[0]
        wrote, refusals = store._write_raw, [1, 2]

        def busy(raw: object) -> None:
            if refusals and raw is not store._buffer.raw:
                refusals.pop()
                raise StoreBusy("behind with flushing")
            wrote(raw)

        monkeypatch.setattr(store, "_write_raw", busy)
        for key in (b"1", b"2", b"3", b"4"):
            await server.put(0, key)
        assert refusals == []
        assert server.logged(0) == [b"4"], "the third sync began to note"
        assert [store.get("a", key) for key in (b"1", b"2", b"3", b"4")] == [b"v"] * 4
        server.close()

    asyncio.run(write())


def test_a_store_that_closed_without_its_fsync_gets_what_this_run_wrote(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is one that lost its last write, as on a disk that refused it."""

    async def run() -> None:
        folder = DataFolder.locked(str(tmp_path))
        stores = ProcessStores(folder, EngineAtRest(cache_bytes=1 << 20))
        stores.open()
        stores.server_log.prepare()
        path = stores.region_folders.path("r0")
        store = stores.engine.open_store(path, SPACES, None, stores.ownership("r0", 3))
        for number in range(3):
            batch = store.batch()
            batch.put("a", b"k", b"%d" % number)
            store.gather(batch)
            await stores.committer.durable(store)
            store.files.flush()
        capture = store._capture
        assert capture is not None
        assert capture.epoch == 3
        assert stores.ownership("r0", 3).unreplayed_logs == ()
        before = copied(Path(path), tmp_path / "before")
        batch = store.batch()
        batch.put("a", b"k", b"in the server's log")
        store.gather(batch)
        await stores.committer.durable(store)

        def refuses(_store: RocksStore) -> None:
            raise HostError("no fsync")

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(RocksStore, "sync", refuses)
            stores.committer.forget_store(store)
            store.close()
        shutil.rmtree(path)
        before.rename(path)
        bare = stores.engine.open_store(path, SPACES)
        assert bare.get("a", b"k") == b"2", "a copy of the folder lacks it"
        bare.close()
        ownership = stores.ownership("r0", 3)
        assert ownership == Ownership("r0", 3, (LogPart(THIS_RUN, 3),), is_sole=True)
        again = stores.engine.open_store(path, SPACES, None, ownership)
        assert again.get("a", b"k") == b"in the server's log"
        assert again._epoch == 3
        assert capture.synced == capture.last, "its segment may go"
        assert stores.ownership("r0", 3).unreplayed_logs == ()
        again.close()
        stores.close()
        folder.close()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["all folders are gone", "it cannot be looked at"])
def test_a_region_that_cannot_be_looked_at_is_none_that_was_dropped(
    tmp_path: Path, always_shared: None, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its acknowledged batches were forgotten, and then removed with the log."""

    async def write() -> Path:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        for store in server.stores:
            store.files.flush()
        await server.put_all(b"k", b"only in the log")
        return server.cut()

    root = asyncio.run(write())
    place = root / "regions" if how == "all folders are gone" else root / "regions" / "r0"
    place.rename(tmp_path / "aside")
    if how == "it cannot be looked at":
        place.symlink_to(place)
    started = opened(root)
    started.recover()
    assert "r0" in started.left
    assert any("region r0 is not brought up to date" in line for line in caplog.messages)
    if place.is_symlink():
        place.unlink()
    (tmp_path / "aside").rename(place)
    started.recover()
    assert started.left == {}
    store = started.open("r0")
    assert store.get("a", b"k") == b"only in the log"
    store.close()


def test_a_region_whose_folder_is_gone_alone_was_dropped(tmp_path: Path, always_shared: None) -> None:
    async def write() -> Path:
        server = LoggedStores(tmp_path)
        await server.put_all(b"k")
        return server.cut()

    root = asyncio.run(write())
    shutil.rmtree(root / "regions" / "r0")
    started = opened(root)
    started.recover()
    assert started.left == {}

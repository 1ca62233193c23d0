"""The rounds that fill the server's log: when it is used, when its segments go, what the disk may refuse."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from columnar.errors import DamagedData
from columnar.storage import commit, server_log_files
from columnar.storage.api import StoreBusy
from columnar.storage.capture import CAPTURED_BYTES, FEW_MARKS
from columnar.storage.rocks_batch import LARGE_ROWS
from columnar.storage.rocks_store import RocksStore
from columnar.storage.server_log import MARK, MARK_SPACE, NUMBER_BYTES
from tests.support.logged_stores import LoggedStores, opened


@pytest.fixture
def always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "SHARED_FROM", 0)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the stores whose own logs were synced."""
    found: list[str] = []
    sync = RocksStore.sync

    def noted(store: RocksStore) -> None:
        sync(store)
        found.append(os.path.basename(store._path))

    monkeypatch.setattr(RocksStore, "sync", noted)
    return found


def test_stores_share_an_fsync_from_their_second_write_on(
    tmp_path: Path, always_shared: None, syncs: list[str]
) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        assert sorted(syncs) == ["r0", "r1", "r2"], "nobody noted what was written before"
        before = server.committer.syncs
        await server.put_all(b"second")
        assert sorted(syncs) == ["r0", "r1", "r2"]
        assert server.committer.syncs == before + 1
        assert [server.logged(number) for number in range(3)] == [[b"second"]] * 3
        server.close()
        assert server.segments == [], "every store was closed with an fsync"
        assert sorted(syncs) == sorted(["r0", "r1", "r2"] * 2)

    asyncio.run(run())


def test_a_store_alone_is_synced_by_itself(tmp_path: Path, syncs: list[str]) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        for number in range(5):
            await server.put(0, b"k%d" % number)
        assert syncs == ["r0"] * 5
        assert list(server.stores[0].scan(MARK_SPACE, MARK, None)) == []
        server.close()
        assert server.segments == []

    asyncio.run(run())


def test_much_at_once_is_not_written_twice(tmp_path: Path, always_shared: None, syncs: list[str]) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        syncs.clear()
        await asyncio.gather(server.put(0, b"large", bytes(CAPTURED_BYTES + 1)), server.put(1, b"small"))
        assert syncs == ["r0"]
        assert (server.logged(0), server.logged(1)) == ([], [b"small"])
        await server.put(0, b"after")
        assert server.logged(0) == [b"after"]
        server.close()

    asyncio.run(run())


def test_a_busy_engine_does_not_let_a_large_write_into_a_round(
    tmp_path: Path, always_shared: None, syncs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"second")
        store, settle = server.stores[0], RocksStore.settle
        tries: list[int] = []

        def busy_at_the_second(store: RocksStore) -> None:
            tries.append(1)
            if len(tries) == 2:
                raise StoreBusy("it is behind")
            settle(store)

        monkeypatch.setattr(RocksStore, "settle", busy_at_the_second)
        batch = store.batch(rows=LARGE_ROWS)
        batch.put("a", b"large", b"v")
        store.gather(batch)
        syncs.clear()
        await server.committer.durable(store)
        assert len(tries) == 3
        assert syncs == ["r0"]
        server.close()

    asyncio.run(run())


def test_a_full_segment_has_its_stores_synced_and_goes(
    tmp_path: Path, always_shared: None, syncs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log_files, "SEGMENT_BYTES", 1_000)

    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"the third store's last")
        syncs.clear()
        seen = set()
        for number in range(200):
            await asyncio.gather(server.put(0, b"k%d" % number, bytes(100)), server.put(1, b"k%d" % number, bytes(100)))
            segments = server.segments
            seen |= set(segments)
            assert len(segments) <= server_log_files.SEGMENTS + 1, "one may be on its way out"
        assert len(seen) > 10, "each was given up, and another begun"
        assert syncs.count("r2") == 1
        assert len(syncs) < 200, "most of 400 writes shared an fsync"
        server.close()
        assert server.segments == []

    asyncio.run(run())


def test_a_full_segment_goes_though_nobody_writes_any_more(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log_files, "SEGMENT_BYTES", 1_000)

    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"fills it", bytes(1_000))
        assert server.segments == ["00000001.segment"]
        await server.put(0, b"last")
        async with asyncio.timeout(20):
            while "00000001.segment" in server.segments:  # noqa: ASYNC110 - a thread removes it
                await asyncio.sleep(0.001)
        assert server.segments == ["00000002.segment"]
        assert server.logged(0) == [b"last"]
        server.close()
        assert server.segments == []

    asyncio.run(run())


def test_a_segment_stays_while_a_store_in_it_is_not_synced(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log_files, "SEGMENT_BYTES", 1_000)

    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put(2, b"only in the log", bytes(1_000))
        monkeypatch.setattr(server.committer, "sync_by_itself", server.committer.durable)  # what settles it does not
        capture = server.stores[2]._capture
        assert capture is not None
        for number in range(10):
            await server.put(0, b"k%d" % number, bytes(300))
            await server.put(1, b"k%d" % number, bytes(300))
        assert capture.synced < capture.last
        assert "00000001.segment" in server.segments
        assert len(server.segments) == server_log_files.SEGMENTS
        assert b"k9" not in server.logged(0), "without room every store is synced by itself"
        server.close()

    asyncio.run(run())


def test_a_write_during_a_sync_is_not_counted_as_synced(tmp_path: Path, always_shared: None) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"second")
        store = server.stores[0]
        db, capture = store._db, store._capture
        assert capture is not None
        batch = store.batch()
        batch.put("a", b"meanwhile", b"v")

        class Slow:
            latest_sequence_number = db.latest_sequence_number

            def flush_wal(self, sync: bool) -> None:
                db.flush_wal(sync)
                store._db = db
                store.write_batch(batch)

        before = capture.last
        store._db = Slow()
        store.sync()
        assert capture.synced == before < capture.last
        server.close()

    asyncio.run(run())


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    state = {"refuses": False}
    force = server_log_files.force

    def refuse(file: int) -> None:
        if state["refuses"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        force(file)

    monkeypatch.setattr(server_log_files, "force", refuse)
    monkeypatch.setattr(server_log_files, "RETRY_S", 0.0)
    return lambda refuses: state.update(refuses=refuses)


def test_a_disk_that_refuses_the_log_costs_no_write(
    tmp_path: Path,
    always_shared: None,
    syncs: list[str],
    refusing: Callable[[bool], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> Path:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"second")
        refusing(True)
        syncs.clear()
        for number in range(5):
            await server.put_all(b"refused %d" % number)
        assert sorted(syncs) == sorted(["r0", "r1", "r2"] * 5), "each was synced by itself"
        assert "the disk is full" in caplog.text
        for store in server.stores:
            store.files.flush()
        refusing(False)
        await server.put_all(b"third")
        assert server.logged(0)[-1] == b"third"
        assert len(server.segments) <= 3, "those that got nothing are gone"
        return server.cut()

    async def look(root: Path) -> None:
        server = LoggedStores(root)
        assert all(store.get("a", b"third") == b"v" for store in server.stores)
        server.close()

    asyncio.run(look(asyncio.run(run())))


def test_reads_of_a_busy_store_leave_no_marks(
    tmp_path: Path, always_shared: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"second")
        store = server.stores[0]

        def busy(_store: RocksStore, _raw: object) -> None:
            raise StoreBusy("it is behind")

        with monkeypatch.context() as while_busy:
            while_busy.setattr(RocksStore, "_write_raw", busy)
            batch = store.batch()
            batch.put("a", b"x", b"v")
            store.gather(batch)
            for _ in range(100):
                assert (b"x", b"v") in list(store.scan("a", b"", None))
        await server.committer.durable(store)
        store.sync()
        for number in range(3):
            await server.put_all(b"later %d" % number)
        assert len(list(store.scan(MARK_SPACE, MARK, None))) <= 4
        server.close()

    asyncio.run(run())


def test_a_round_that_fails_as_nobody_thought_is_over_too(
    tmp_path: Path,
    always_shared: None,
    syncs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    expected_faults: Callable[[], dict[str, int]],
) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        await server.put_all(b"second")
        syncs.clear()

        def fails(_records: object) -> int:
            raise MemoryError("none left")

        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(server.log, "append", fails)
            async with asyncio.timeout(20):
                await server.put_all(b"third")
        assert sorted(syncs) == ["r0", "r1", "r2"]
        await server.put_all(b"fourth")
        assert server.logged(0)[-1] == b"fourth"
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("count", [3, 2 * FEW_MARKS])
def test_marks_of_what_was_synced_go_with_the_next_write(tmp_path: Path, always_shared: None, count: int) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put_all(b"first")
        for number in range(count):
            await server.put(0, b"k%d" % number)
        store = server.stores[0]
        assert len(list(store.scan(MARK_SPACE, MARK, None))) == count
        store.sync()
        await server.put(0, b"last")
        assert len(list(store.scan(MARK_SPACE, MARK, None))) == 1
        server.close()

    asyncio.run(run())


def test_the_first_mark_is_on_disk_before_anything_is_noted(tmp_path: Path, always_shared: None) -> None:
    async def run() -> None:
        server = LoggedStores(tmp_path)
        await server.put(0, b"first")
        store = server.stores[0]
        capture = store._capture
        assert capture is not None
        ((key, _),) = store.scan(MARK_SPACE, MARK, None)
        assert int.from_bytes(key[-NUMBER_BYTES:], "big") == capture.last == capture.synced
        assert server.logged(0) == []
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["flip", "cut", "zeros", "lost"])
def test_a_segment_that_lost_what_was_synced_is_damage(tmp_path: Path, always_shared: None, how: str) -> None:
    async def write() -> Path:
        server = LoggedStores(tmp_path)
        for number in range(20):
            await server.put_all(b"%d" % number)
        cut = server.copied()
        server.close()
        return cut

    cut = asyncio.run(write())
    (segment,) = cut.rglob("*.segment")
    sane = segment.read_bytes()
    for at in range(60, len(sane), 97):
        if how == "flip":
            segment.write_bytes(sane[:at] + bytes([sane[at] ^ 4]) + sane[at + 1 :])
        elif how == "cut":
            segment.write_bytes(sane[:at])
        elif how == "zeros":
            segment.write_bytes(sane[:at] + bytes(len(sane) - at))
        else:
            segment.unlink(missing_ok=True)
        with pytest.raises(DamagedData, match="move the folder aside"):
            opened(cut)
    segment.write_bytes(sane + b"behind the bound")
    opened(cut).recover()
    assert not list(cut.rglob("*.segment"))
    opened(cut)

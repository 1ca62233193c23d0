"""What must be found before RocksDB opens a store: lists of files and logs, with and without what was synced."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import pytest

from columnar.errors import DamagedData
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_manifest import Manifest
from columnar.storage.rocks_store import RocksStore
from columnar.storage.rocks_verified import _Chain
from columnar.storage.synced_bound import SYNCED, read_bound

SPACES = frozenset({"a", "b"})


@pytest.fixture(scope="module")
def engine() -> RocksEngine:
    return RocksEngine(cache_bytes=1 << 20)


def put(store: RocksStore, space: str, key: bytes, value: bytes = b"v" * 100) -> None:
    batch = store.batch()
    batch.put(space, key, value)
    store.write_batch(batch)


def keys(engine: RocksEngine, path: Path, space: str = "a") -> list[bytes]:
    store = engine.open_store(str(path), SPACES)
    try:
        return [key for key, _ in store.scan(space, b"", None)]
    finally:
        store.close()


def killed(store: RocksStore, path: Path) -> Path:
    """As ``kill -9`` leaves it."""
    left = path.with_name(path.name + "-killed")
    shutil.copytree(path, left, ignore=shutil.ignore_patterns("LOCK"))
    store.close()
    return left


def the_manifest(path: Path) -> Path:
    return path / (path / "CURRENT").read_text().strip()


def logs(path: Path) -> list[Path]:
    return sorted(log for log in path.glob("*.log") if log.stat().st_size)


def tables(path: Path) -> set[str]:
    return {table.name for table in path.glob("*.sst")}


@pytest.fixture
def flushed(engine: RocksEngine, tmp_path: Path) -> Path:
    """Rows in tables only; closed."""
    store = engine.open_store(str(tmp_path / "r"), SPACES)
    for number in range(5):
        put(store, "a", b"%d" % number)
    store.sync()
    store.files.flush()
    store.close()
    return tmp_path / "r"


@pytest.fixture
def logged(engine: RocksEngine, tmp_path: Path) -> Path:
    """500 rows in a log only; killed."""
    path = tmp_path / "r"
    store = engine.open_store(str(path), SPACES)
    for number in range(500):
        put(store, "a", b"%03d" % number)
        store.sync()
    return killed(store, path)


@pytest.mark.parametrize("how", ["cut", "zeroed"])
def test_a_list_of_files_that_lost_its_end_is_damaged_and_nothing_is_removed(
    engine: RocksEngine, flushed: Path, how: str
) -> None:
    manifest = the_manifest(flushed)
    sane, there = manifest.read_bytes(), tables(flushed)
    for at in range(0, len(sane), 7):
        manifest.write_bytes(sane[:at] + (b"" if how == "cut" else bytes(len(sane) - at)))
        for opened in (engine.open_reading, lambda path: engine.open_store(path, SPACES)):
            with pytest.raises(DamagedData, match=manifest.name):
                opened(str(flushed))
        assert tables(flushed) == there, f"at byte {at}"
    manifest.write_bytes(sane)
    assert len(keys(engine, flushed)) == 5


def test_without_a_bound_tables_that_nothing_accounts_for_are_damage(engine: RocksEngine, flushed: Path) -> None:
    """A folder of an older program."""
    (flushed / SYNCED).unlink()
    manifest = the_manifest(flushed)
    sane, there = manifest.read_bytes(), tables(flushed)
    manifest.write_bytes(sane[:120])
    with pytest.raises(DamagedData, match="nothing accounts for its table"):
        engine.open_store(str(flushed), SPACES)
    assert tables(flushed) == there
    manifest.write_bytes(sane)
    assert len(keys(engine, flushed)) == 5


def test_a_list_of_files_that_lost_a_flush_after_its_bound(engine: RocksEngine, tmp_path: Path) -> None:
    """The engine flushes by itself, and nobody notes how long the list is then."""
    path = tmp_path / "r"
    store = engine.open_store(str(path), SPACES)
    bound = read_bound(str(path))
    put(store, "a", b"flushed")
    store.sync()
    store._dicts["a"].flush(True)
    put(store, "a", b"logged")
    store.sync()
    left = killed(store, path)
    now = read_bound(str(left))
    assert bound is not None
    assert now is not None
    assert now.length == bound.length
    assert now.sequence == bound.sequence + 2
    manifest = the_manifest(left)
    sane = manifest.read_bytes()
    assert len(sane) > bound.length
    manifest.write_bytes(sane[: bound.length])
    with pytest.raises(DamagedData, match="operation 1 is missing"):
        engine.open_store(str(left), SPACES)
    manifest.write_bytes(sane)
    assert keys(engine, left) == [b"flushed", b"logged"]


@pytest.mark.parametrize("share", [0, 10, 50, 99])
def test_a_flipped_bit_before_the_bound_is_damage(engine: RocksEngine, logged: Path, share: int) -> None:
    (log,) = logs(logged)
    sane = bytearray(log.read_bytes())
    sane[len(sane) * share // 100] ^= 0x10
    log.write_bytes(sane)
    for opened in (engine.open_reading, lambda path: engine.open_store(path, SPACES)):
        with pytest.raises(DamagedData, match=rf"{log.name} is damaged or was cut at byte \d+: of 500 operations"):
            opened(str(logged))
    sane[len(sane) * share // 100] ^= 0x10
    log.write_bytes(sane)
    assert len(keys(engine, logged)) == 500


def test_a_log_that_lost_its_end_between_two_records_is_damage(engine: RocksEngine, logged: Path) -> None:
    (log,) = logs(logged)
    sane = log.read_bytes()
    record = len(sane) // 500
    log.write_bytes(sane[: record * 400 if len(sane) < 1 << 15 else record * 100])
    with pytest.raises(DamagedData, match="of 500 operations that were synced those behind"):
        engine.open_store(str(logged), SPACES)
    log.unlink()
    with pytest.raises(DamagedData, match="those behind 0 cannot be read"):
        engine.open_store(str(logged), SPACES)
    log.write_bytes(sane)
    assert len(keys(engine, logged)) == 500


def test_what_was_not_synced_may_end_anywhere(engine: RocksEngine, tmp_path: Path) -> None:
    path = tmp_path / "r"
    store = engine.open_store(str(path), SPACES)
    put(store, "a", b"synced")
    store.sync()
    sure = logs(path)[0].stat().st_size
    for number in range(20):
        put(store, "a", b"%02d" % number)
    left = killed(store, path)
    (log,) = logs(left)
    data = log.read_bytes()
    for tail in (data[sure : sure + 300], bytes(200), data[sure : sure + 50] + bytes(100) + data[sure + 150 :]):
        copy = shutil.copytree(left, tmp_path / "copy")
        (copy / log.name).write_bytes(data[:sure] + tail)
        assert b"synced" in keys(engine, copy)
        shutil.rmtree(copy)


def test_a_lost_log_among_others_is_damage(engine: RocksEngine, tmp_path: Path) -> None:
    """Of two spaces one is flushed: the older log is needed for the other."""
    path = tmp_path / "r"
    store = engine.open_store(str(path), SPACES)
    put(store, "b", b"first")
    put(store, "a", b"first")
    store._dicts["a"].flush(True)
    put(store, "a", b"second")
    store.sync()
    left = killed(store, path)
    older, newer = logs(left)
    for lost in (older, newer):
        sane = lost.read_bytes()
        for kept in (None, b""):
            if kept is None:
                lost.unlink()
            else:
                lost.write_bytes(kept)
            with pytest.raises(DamagedData):
                engine.open_store(str(left), SPACES)
        lost.write_bytes(sane)
    assert keys(engine, left) == [b"first", b"second"]


def test_a_log_whose_end_stands_there_twice_is_damage(engine: RocksEngine, logged: Path) -> None:
    """RocksDB would go on with the numbers of the first copy, and hide new writes behind older ones."""
    (log,) = logs(logged)
    sane = log.read_bytes()
    size = 32 * 1024
    log.write_bytes(sane.ljust(-(-len(sane) // size) * size, b"\x00") + sane[:size])
    with pytest.raises(DamagedData):
        engine.open_store(str(logged), SPACES)


def _ingested(store: RocksStore, engine: RocksEngine, tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f"in-{number}.sst"
        file = engine.sorted_file(str(path))
        file.put_pair(b"0", b"%d" % number)
        file.finish()
        store.files.ingest({"a": [str(path)]})


def _dropped(store: RocksStore, engine: RocksEngine, tmp_path: Path) -> None:
    put(store, "b", b"gone")
    store.sync()
    store.drop_space("b")
    store.add_space("b")
    put(store, "a", b"to flush")
    store._dicts["a"].flush(True)


def _merged(store: RocksStore, engine: RocksEngine, tmp_path: Path) -> None:
    _ingested(store, engine, tmp_path)
    store.files.compact(everything=True)


def _emptied(store: RocksStore, engine: RocksEngine, tmp_path: Path) -> None:
    batch = store.batch()
    batch.delete_range("a", b"", b"\xff")
    store.write_batch(batch)
    store.files.flush()
    store.files.compact(everything=True)


def _emptied_of_nothing(store: RocksStore, engine: RocksEngine, tmp_path: Path) -> None:
    for rows in (1, 100):
        batch = store.batch(rows)
        batch.delete_range("a", b"1", b"1")
        store.write_batch(batch)
    store.sync()
    for held in (store._dicts["a"], store._dicts["b"], store._dicts["default"]):
        held.flush(True)


@pytest.mark.parametrize("change", [_ingested, _dropped, _merged, _emptied, _emptied_of_nothing])
@pytest.mark.parametrize("goes_on", [False, True])
def test_what_numbers_operations_without_a_log_is_no_damage(
    engine: RocksEngine, tmp_path: Path, change: Callable[[RocksStore, RocksEngine, Path], None], goes_on: bool
) -> None:
    path = tmp_path / "r"
    store = engine.open_store(str(path), SPACES)
    put(store, "a", b"0")
    store.sync()
    change(store, engine, tmp_path)
    if goes_on:
        put(store, "a", b"later")
    store.sync()
    left = killed(store, path)
    assert (b"later" in keys(engine, left)) is goes_on
    assert (b"later" in keys(engine, left)) is goes_on, "opened once more"


def test_a_killed_ingestion_leaves_a_table_that_is_no_damage(engine: RocksEngine, tmp_path: Path) -> None:
    """Linked into the folder of an empty store, and not in the list of files yet."""
    path = tmp_path / "r"
    store = engine.open_store(str(path), SPACES)
    left = killed(store, path)
    file = engine.sorted_file(str(left / "000123.sst"))
    file.put_pair(b"0", b"v")
    file.finish()
    assert keys(engine, left) == []


def test_a_flipped_bit_of_the_bound_is_none(engine: RocksEngine, logged: Path) -> None:
    bound = logged / SYNCED
    sane = bound.read_bytes()
    for at in range(0, len(sane), 5):
        copy = logged.with_name("copy")
        shutil.copytree(logged, copy)
        (copy / SYNCED).write_bytes(sane[:at] + bytes([sane[at] ^ 1]) + sane[at + 1 :])
        assert len(keys(engine, copy)) == 500
        shutil.rmtree(copy)


def test_a_copy_without_the_bound_opens(engine: RocksEngine, logged: Path) -> None:
    (logged / SYNCED).unlink()
    assert len(keys(engine, logged)) == 500
    assert read_bound(str(logged)) is not None, "and has one from then on"


def test_an_older_list_of_files_is_damage(engine: RocksEngine, flushed: Path) -> None:
    older = the_manifest(flushed)
    data = older.read_bytes()
    assert len(keys(engine, flushed)) == 5
    assert not older.exists()
    older.write_bytes(data)
    (flushed / "CURRENT").write_text(older.name + "\n")
    with pytest.raises(DamagedData, match="not the newest list of files"):
        engine.open_store(str(flushed), SPACES)


def test_the_bound_is_behind_no_fsync(engine: RocksEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "r")
    store = engine.open_store(path, SPACES)
    put(store, "a", b"0")
    bound = read_bound(path)
    assert bound is not None
    assert bound.sequence == 0, "written, not synced"
    store.sync()
    assert read_bound(path).sequence == 1  # type: ignore[union-attr]
    store.close()


def test_openings_keep_no_memory(engine: RocksEngine, tmp_path: Path) -> None:
    """Each used to keep 3.7 KB: what lists families in rocksdict does not free its list."""
    path = str(tmp_path / "r")

    def open_often(times: int) -> int:
        for _ in range(times):
            engine.open_reading(path).close()
        with open("/proc/self/statm", encoding="ascii") as held:
            return int(held.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    engine.open_store(path, SPACES).close()
    before = open_often(50)
    assert open_often(300) - before < 300 * 600


def test_an_opening_reads_no_options_of_earlier_ones_and_starts_no_threads_for_tables(
    engine: RocksEngine, flushed: Path
) -> None:
    options = [found.name for found in flushed.glob("OPTIONS-*")]
    (flushed / options[0]).write_bytes(b"not to be read")
    assert keys(engine, flushed) == [b"0", b"1", b"2", b"3", b"4"]
    (kept,) = flushed.glob("OPTIONS-*")
    assert kept.name not in options
    assert "max_file_opening_threads=1\n" in kept.read_text()


def _write_log(path: Path, batches: list[tuple[int, int]]) -> str:
    data = b""
    for sequence, count in batches:
        record = struct.pack("<QI", sequence, count)
        crc = google_crc32c.value(b"\x01" + record)
        data += struct.pack("<IHB", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF, len(record), 1) + record
    path.write_bytes(data)
    return str(path)


def test_operations_that_are_missing_or_there_twice_between_batches(tmp_path: Path) -> None:
    chain = _Chain(Manifest())
    chain.follow(_write_log(tmp_path / "1", [(1, 0), (1, 2), (3, 1), (6, 1)]))
    chain.follow(_write_log(tmp_path / "2", [(7, 3)]))
    assert chain.contiguous_end(0) == 3
    assert chain.contiguous_end(5) == 9
    with pytest.raises(DamagedData, match="operation 8 stands there twice"):
        chain.follow(_write_log(tmp_path / "3", [(8, 1)]))

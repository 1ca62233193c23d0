"""Small files that are written in place: through a mapping, and where the file system refuses one."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from columnar.storage import fixed_file, opening_notes, segment_bounds, synced_bound
from columnar.storage.fixed_file import has_size, open_fixed
from columnar.storage.opening_notes import OpeningNotes
from columnar.storage.rocks import RocksEngine
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_log_files import begin_run
from columnar.storage.synced_bound import SYNCED, BoundFile, read_bound

MAPPED, WRITTEN = "mapped", "written"


def refuse_mappings(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    monkeypatch.setattr(fixed_file, "mmap", refused)


@pytest.fixture(params=[MAPPED, WRITTEN])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == WRITTEN:
        refuse_mappings(monkeypatch)
    return str(request.param)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_mappings(monkeypatch)


class Refusals:
    """The next writes in place are refused, or end after some bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.written_bytes: int | None = None  # of a write that ends early; None: the write is refused
        really = os.pwrite

        def pwrite(file: int, data: bytes, at: int) -> int:
            if not self.left:
                return really(file, data, at)
            self.left -= 1
            if self.written_bytes is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return really(file, data[: self.written_bytes], at)

        monkeypatch.setattr(fixed_file.os, "pwrite", pwrite)


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    return Refusals(monkeypatch)


def test_a_file_has_its_size_and_what_it_began_with(tmp_path: Path, how: str) -> None:
    path = str(tmp_path / "fixed")
    assert not has_size(path, 128)
    file = open_fixed(path, 128, b"begin")
    assert file.is_mapped == (how == MAPPED)
    file.store(10, b"abc")
    whole = b"begin\0\0\0\0\0abc".ljust(128, b"\0")
    assert file.read_bytes() == whole
    assert (tmp_path / "fixed").read_bytes() == whole, "what another process reads before it is synced or closed"
    file.sync_file()
    file.close()
    file.close()
    assert has_size(path, 128)
    again = open_fixed(path, 128, None)
    assert again.read_bytes() == whole
    again.close()
    assert (tmp_path / "fixed").stat().st_blocks > 0, "a page without a block could not be stored to on a full disk"


def test_a_file_that_is_missing_is_no_mapping_that_is_refused(tmp_path: Path, how: str) -> None:
    with pytest.raises(FileNotFoundError):
        open_fixed(str(tmp_path / "none"), 128, None)


def test_a_file_system_without_mappings_is_logged_once(
    tmp_path: Path, written: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed_file, "_UNMAPPED", set())
    with caplog.at_level(logging.INFO, fixed_file.__name__):
        for name in ("one", "other"):
            open_fixed(str(tmp_path / name), 128, b"").close()
    (line,) = caplog.messages
    assert line.startswith(str(tmp_path / "one"))
    assert "No such device" in line


# --- bounds --------------------------------------------------------------------------------------------


def bounds_of_a_life(folder: Path) -> bytes:
    """The file after an opening, fsyncs and a dropped family."""
    folder.mkdir()
    (folder / "MANIFEST-000005").write_bytes(b"m" * 70)
    (folder / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    file = BoundFile.opened(str(folder))
    file.begin_bound(3)
    file.raise_manifest()
    for sequence in (5, 4, 9):
        file.raise_to(sequence)
    file.drops(11)
    file.raise_to(12)
    data = (folder / SYNCED).read_bytes()
    file.close()
    assert (folder / SYNCED).read_bytes() == data
    return data


def test_the_bytes_of_a_bound_are_the_same_in_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped = bounds_of_a_life(tmp_path / MAPPED)
    refuse_mappings(monkeypatch)
    assert bounds_of_a_life(tmp_path / WRITTEN) == mapped
    found = synced_bound.bound_in(mapped)
    assert found is not None
    assert (found.sequence, found.manifest, found.length, found.dropped) == (12, 5, 70, 11)


def test_a_bound_survives_a_process_that_is_killed(tmp_path: Path, how: str) -> None:
    child = os.fork()
    if not child:
        file = BoundFile.opened(str(tmp_path))
        file.begin_bound(7)
        file.raise_to(8)
        os._exit(9)
    os.waitpid(child, 0)
    found = read_bound(str(tmp_path))
    assert found is not None
    assert found.sequence == 8


@pytest.mark.parametrize("size", range(0, 60, 7))
def test_a_store_that_ends_early_leaves_the_bound_before_it(
    tmp_path: Path, written: None, refusals: Refusals, size: int
) -> None:
    """And the one after it takes the same slot: the other stays whole whenever the process is killed."""
    file = BoundFile.opened(str(tmp_path))
    file.begin_bound(7)
    for sequence in (8, 9, 10):
        refusals.left, refusals.written_bytes = 2, size
        for _ in range(2):
            with pytest.raises(OSError, match="only a part"):
                file.raise_to(sequence)
            found = read_bound(str(tmp_path))
            assert found is not None
            assert found.sequence == sequence - 1
        file.raise_to(sequence)
        found = read_bound(str(tmp_path))
        assert found is not None
        assert found.sequence == sequence
    file.close()


def test_a_bound_that_cannot_be_raised_fails_no_write(
    tmp_path: Path, written: None, refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    """It stays lower: weaker, but correct."""
    engine = RocksEngine(cache_bytes=1 << 20)
    store = engine.open_store(str(tmp_path / "store"), frozenset({"a"}))

    def put(key: bytes) -> int:
        batch = store.batch()
        batch.put("a", key, b"v")
        store.write_batch(batch)
        store.sync()
        found = read_bound(str(tmp_path / "store"))
        assert found is not None
        return found.certain

    first = put(b"1")
    refusals.left = 3
    assert put(b"2") == put(b"3") == first
    assert sum("is not noted" in line for line in caplog.messages) == 1
    refusals.left = 0
    assert put(b"4") == first + 3
    store.close()
    store = engine.open_store(str(tmp_path / "store"), frozenset({"a"}))
    assert [key for key, _ in store.scan("a", b"", None)] == [b"1", b"2", b"3", b"4"]
    store.close()


def test_a_family_is_dropped_only_when_its_bound_is_noted(tmp_path: Path, written: None, refusals: Refusals) -> None:
    file = BoundFile.opened(str(tmp_path))
    file.begin_bound(7)
    refusals.left = 1
    with pytest.raises(OSError, match="No space"):
        file.drops(7)
    file.close()


# --- the server's log ----------------------------------------------------------------------------------


def test_bounds_of_segments_are_the_same_in_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for way in (MAPPED, WRITTEN):
        if way == WRITTEN:
            refuse_mappings(monkeypatch)
        (tmp_path / way).mkdir()
        bounds = SegmentBounds(str(tmp_path / way))
        bounds.begin()
        for segment, length in ((1, 100), (2, 50), (1, 200), (3, 9), (2, 60)):
            bounds.raise_to(segment, length)
        bounds.forget_segments([1])
        assert bounds.read() == {2: 60, 3: 9}
        assert bounds.has_forgotten(1)
        bounds.close()
        found.append((tmp_path / way / SYNCED).read_bytes())
    assert found[0] == found[1]


def test_a_segment_is_removed_after_its_slot_says_so_on_disk(
    tmp_path: Path, written: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = SegmentBounds(str(tmp_path))
    bounds.begin()
    bounds.raise_to(1, 100)
    synced: list[bytes] = []
    monkeypatch.setattr(fixed_file.os, "fdatasync", lambda _file: synced.append((tmp_path / SYNCED).read_bytes()))
    bounds.forget_segments([1])
    (slots,) = synced
    assert slots[32:64] == segment_bounds.removed_slot_of(1)
    bounds.close()


def test_a_round_of_the_log_is_written_though_its_bound_is_not(
    tmp_path: Path, written: None, refusals: Refusals, caplog: pytest.LogCaptureFixture
) -> None:
    log, _ = begin_run(str(tmp_path / "log"))
    log.prepare()
    assert log.append([("r", 8, 1, 0, [("a", b"k", b"v", None)])]) == 1
    lengths = SegmentBounds(str(tmp_path / "log")).read()
    refusals.left = 1
    assert log.append([("r", 8, 2, 1, [("a", b"k", b"v", None)])]) == 1
    assert SegmentBounds(str(tmp_path / "log")).read() == lengths
    assert any("is not noted" in line for line in caplog.messages)
    assert log.append([("r", 8, 3, 2, [("a", b"k", b"v", None)])]) == 1
    assert SegmentBounds(str(tmp_path / "log")).read() == {1: (tmp_path / "log" / "00000001.segment").stat().st_size}


# --- notes of openings ---------------------------------------------------------------------------------


def test_openings_are_noted_in_a_file_that_is_not_mapped(tmp_path: Path, written: None) -> None:
    child = os.fork()
    if not child:
        OpeningNotes.begun(str(tmp_path)).begins(5)
        os._exit(9)
    os.waitpid(child, 0)
    assert opening_notes.opened_at(str(tmp_path), 1) == {5}


def test_notes_that_are_refused_end_no_opening(tmp_path: Path, written: None, refusals: Refusals) -> None:
    notes = OpeningNotes.begun(str(tmp_path))
    notes.begins(5)
    refusals.left = 1
    for act in (notes.ends, notes.begins):
        act(5)
    notes.close()
    assert opening_notes.opened_at(str(tmp_path), 1) == {5}


def test_what_stands_in_for_the_disk_is_noticed(tmp_path: Path, written: None) -> None:
    file: Any = open_fixed(str(tmp_path / "fixed"), 128, b"")
    assert not file.is_mapped
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.store(0, b"x")

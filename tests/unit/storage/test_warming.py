"""New files of a region are read ahead once nothing is written any more; the engine writes past the page cache."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import pytest

from columnar.storage import rocks, warming
from columnar.storage.folders import takes_direct_writes
from columnar.storage.rocks import RocksEngine
from columnar.storage.warming import Warmer

PAGE = 4096


def make(path: Path, size_bytes: int = PAGE, *, age_s: float = 0.0) -> int:
    """A file, and its folder, whose times say that it was made ``age_s`` ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size_bytes))
    when = time.time() - age_s
    os.utime(path, (when, when))
    os.utime(path.parent, (when, when))
    return size_bytes


def looks(warmer: Warmer, count: int) -> list[int]:
    return [warmer.look() for _ in range(count)]


def test_what_is_new_is_read_once_and_when_its_folder_is_quiet(tmp_path: Path) -> None:
    make(tmp_path / "r" / "1.sst", age_s=60)
    warmer = Warmer(str(tmp_path))
    assert looks(warmer, 3) == [0, 0, 0]
    make(tmp_path / "r" / "2.sst", 3 * PAGE, age_s=-1)
    assert looks(warmer, 4) == [0, 3 * PAGE, 0, 0]


def test_while_a_region_is_loaded_nothing_of_it_is_read(tmp_path: Path) -> None:
    warmer = Warmer(str(tmp_path))
    for number in range(5):
        make(tmp_path / "r" / f"{number}.sst", age_s=-1 - number)
        assert warmer.look() == 0
    assert looks(warmer, 2) == [5 * PAGE, 0]


def test_of_much_the_newest_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "WARMED_BYTES", 5 * PAGE)
    asked: list[str] = []
    warmer = Warmer(str(tmp_path))
    monkeypatch.setattr(warmer, "_ask_for", lambda path, _size: asked.append(os.path.basename(path)))
    for number, pages in enumerate((1, 2, 3)):
        make(tmp_path / "r" / f"{number}.sst", pages * PAGE, age_s=-1)
    assert looks(warmer, 2) == [0, 5 * PAGE]
    assert asked == ["2.sst", "1.sst"]


def test_what_else_stands_there_and_what_goes_meanwhile_harm_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmer = Warmer(str(tmp_path))
    make(tmp_path / "r" / "1.log", age_s=-1)
    make(tmp_path / "r" / "2.sst", age_s=-1)
    (tmp_path / "a file.sst").write_bytes(b"of somebody's")
    warmer.look()

    def gone(path: str, _size: int) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(warmer, "_ask_for", gone)
    assert looks(warmer, 2) == [0, 0]
    for path in (tmp_path / "r").iterdir():
        path.unlink()
    (tmp_path / "r").rmdir()
    assert looks(warmer, 2) == [0, 0]


def is_in_memory(path: Path) -> bool:
    held = os.open(path, os.O_RDONLY)
    try:
        return os.preadv(held, [bytearray(PAGE)], 0, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    finally:
        os.close(held)


def test_the_kernel_reads_what_was_written_past_it(tmp_path: Path) -> None:
    if not takes_direct_writes(str(tmp_path)):
        pytest.skip(f"{tmp_path} takes no direct writes")
    warmer, path = Warmer(str(tmp_path)), tmp_path / "r" / "1.sst"
    path.parent.mkdir()
    page = mmap.mmap(-1, PAGE)
    held = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    os.write(held, page)
    os.close(held)
    os.utime(path.parent, (time.time() + 1, time.time() + 1))
    assert not is_in_memory(path)
    os.utime(path, (time.time() + 1, time.time() + 1))
    assert looks(warmer, 2) == [0, PAGE]
    deadline_s = time.monotonic() + 10
    while not is_in_memory(path):
        assert time.monotonic() < deadline_s


def test_whether_a_folder_takes_direct_writes_is_asked_without_a_trace(tmp_path: Path) -> None:
    assert not takes_direct_writes(str(tmp_path / "missing"))
    assert not takes_direct_writes("/proc/self")
    takes_direct_writes(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("can", [True, False])
def test_flushes_go_past_the_cache_where_that_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can: bool
) -> None:
    if can and not takes_direct_writes(str(tmp_path)):
        pytest.skip(f"{tmp_path} takes no direct writes")
    monkeypatch.setattr(rocks, "takes_direct_writes", lambda _folder: can)
    store = RocksEngine().open(str(tmp_path / "r"), frozenset({"a"}))
    value = os.urandom(4 << 20)  # whoever opens the file reads its end
    batch = store.batch()
    batch.put("a", b"key", value)
    store.write(batch)
    store.flush()
    (options,) = sorted((tmp_path / "r").glob("OPTIONS-*"))[-1:]
    wanted = f"use_direct_io_for_flush_and_compaction={'true' if can else 'false'}"
    assert wanted in options.read_text(encoding="utf-8")
    (file,) = (tmp_path / "r").glob("*.sst")
    assert is_in_memory(file) is not can
    assert store.get("a", b"key") == value
    store.close()

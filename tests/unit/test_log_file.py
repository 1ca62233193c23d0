"""The log file: several processes append to it and rotate it, an operator renames it, a disk is full."""

from __future__ import annotations

import errno
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from columnar.runtime.line_queue import LineQueue
from columnar.runtime.log_file import LogFile

WAIT_S = 30.0
LINES = 400  # of each process


class Opened:
    def __init__(self, folder: Path, size_bytes: int = 0, count: int = 3) -> None:
        self.path = folder / "columnar.log"
        self.troubles: list[str] = []
        self.failing: OSError | None = None
        self.room = 1 << 30  # bytes until a write is cut, and then fails
        self.file = LogFile(str(self.path), size_bytes, count, self.troubles.append, self._write)

    def _write(self, descriptor: int, data: bytes) -> int:
        if self.failing is not None:
            raise self.failing
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(descriptor, data[: self.room])
        self.room -= written
        return written

    def write(self, *lines: bytes) -> int:
        return self.file.write_lines([line + b"\n" for line in lines])

    def older(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    made: list[Opened] = []

    def make(size_bytes: int = 0, count: int = 3) -> Opened:
        made.append(Opened(tmp_path, size_bytes, count))
        return made[-1]

    yield make
    for one in made:
        one.file._close()


def test_lines_are_appended_and_the_file_is_made_and_is_no_strangers_to_read(opened: Callable[..., Opened]) -> None:
    one, other = opened(), opened()
    assert (one.write(b"a", b"b"), other.write(b"c"), one.write(b"d")) == (2, 1, 1)
    assert one.path.read_bytes() == b"a\nb\nc\nd\n"
    assert one.path.stat().st_mode & 0o007 == 0


def test_a_full_file_is_rotated_and_the_count_of_older_ones_is_kept(opened: Callable[..., Opened]) -> None:
    one = opened(size_bytes=10, count=2)
    for number in range(5):
        assert one.write(b"line %05d" % number) == 1
    assert [one.older(number).read_bytes() for number in (1, 2)] == [b"line 00004\n", b"line 00003\n"]
    assert not one.older(3).exists()
    assert not one.path.exists(), "the next line makes it"
    assert one.write(b"x") == 1
    assert one.path.read_bytes() == b"x\n"


def test_a_process_follows_the_rotation_of_another_one_and_rotates_no_second_time(
    opened: Callable[..., Opened],
) -> None:
    one, other = opened(size_bytes=20), opened(size_bytes=20)
    one.write(b"0123456789")
    other.write(b"0123456789")  # full now, and renamed
    one.write(b"new")
    assert one.older(1).read_bytes() == b"0123456789\n" * 2
    assert (one.path.read_bytes(), one.older(2).exists()) == (b"new\n", False)


def test_a_rotation_that_another_process_does_is_not_waited_for(opened: Callable[..., Opened]) -> None:
    import fcntl

    one = opened(size_bytes=5)
    one.write(b"1")
    with one.path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert one.write(b"0123456789") == 1
        assert not one.older(1).exists()
    one.write(b"2")
    assert one.older(1).read_bytes() == b"1\n0123456789\n2\n"


@pytest.mark.parametrize("does", ["rename", "remove", "truncate"])
def test_logrotate_and_operators_are_followed(does: str, opened: Callable[..., Opened]) -> None:
    one = opened()
    one.write(b"before")
    if does == "rename":
        one.path.rename(one.older(1))
    elif does == "remove":
        one.path.unlink()
    else:
        os.truncate(one.path, 0)
    one.write(b"after")
    assert one.path.read_bytes() == b"after\n"


def test_a_quiet_process_lets_go_of_a_renamed_file_when_it_is_told(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.write(b"before")
    inode = one.path.stat().st_ino
    one.path.rename(one.older(1))
    assert one.file.write_lines([b""]) == 1
    assert one.path.read_bytes() == b""
    assert os.fstat(one.file._descriptor).st_ino != inode


def test_a_file_that_is_removed_between_comparison_and_write_loses_no_line(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.write(b"before")
    write, calls = one.file._write, []

    def remove_and_write(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 1:
            one.path.unlink()
        return write(descriptor, data)

    one.file._write = remove_and_write
    assert one.write(b"after") == 1
    assert one.path.read_bytes() == b"after\n"


def test_a_full_disk_loses_counted_lines_and_says_so_once(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.room = 9
    assert one.write(b"whole", b"torn line", b"lost") == 1
    assert (one.write(b"lost"), one.write(b"lost")) == (0, 0)
    (trouble,) = one.troubles
    assert trouble.startswith(f"columnar: the log file {one.path} cannot be written (No space left on device); ")
    one.room = 1_000
    assert one.write(b"again") == 1
    assert one.path.read_bytes() == b"whole\ntor\nagain\n", "the torn one is a line of its own"
    one.failing = OSError(errno.EIO, "broken")
    assert one.write(b"lost") == 0
    assert len(one.troubles) == 2


def test_a_file_that_cannot_be_opened_is_tried_again_with_each_line(opened: Callable[..., Opened]) -> None:
    one = opened()
    one.path.mkdir()
    queue = LineQueue(one.file)
    for text in ("one", "two"):
        queue.write_line(text)
        assert queue.flush(WAIT_S)
    assert (queue.dropped, len(one.troubles)) == (2, 1)
    one.path.rmdir()
    queue.write_line("three")
    assert queue.flush(WAIT_S)
    assert one.path.read_bytes() == b"(2 lines dropped: nobody read them)\nthree\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_folder_without_write_rights_keeps_the_file_and_says_so_once(opened: Callable[..., Opened]) -> None:
    one = opened(size_bytes=5)
    one.write(b"1")
    one.path.parent.chmod(0o500)
    try:
        assert [one.write(b"0123456789") for _ in range(3)] == [1, 1, 1]
    finally:
        one.path.parent.chmod(0o700)
    assert ["cannot be rotated" in trouble for trouble in one.troubles] == [True]


def test_a_file_that_another_process_rotates_between_write_and_rotation_is_not_rotated_twice(
    opened: Callable[..., Opened],
) -> None:
    one = opened(size_bytes=5)
    one.write(b"1")
    write = one.file._write

    def write_and_rotate(descriptor: int, data: bytes) -> int:
        written = write(descriptor, data)
        one.path.rename(one.older(1))
        one.path.write_bytes(b"new\n")
        return written

    one.file._write = write_and_rotate
    one.write(b"0123456789")
    assert (one.path.read_bytes(), one.older(2).exists()) == (b"new\n", False)
    assert one.older(1).read_bytes() == b"1\n0123456789\n"


def _append(path: str, number: int) -> None:
    troubles: list[str] = []
    file = LogFile(path, 4_000, 1_000, troubles.append)
    for line in range(LINES):
        assert file.write_lines([b"%d %05d " % (number, line) + b"x" * 50 + b"\n"]) == 1
    assert troubles == []


def test_processes_that_write_and_rotate_at_once_lose_and_mix_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_append, args=(str(path), number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(WAIT_S)
    assert [process.exitcode for process in processes] == [0] * 4
    files = list(tmp_path.iterdir())
    found = [line for file in files for line in file.read_bytes().splitlines()]
    expected = [b"%d %05d " % (number, line) + b"x" * 50 for number in range(4) for line in range(LINES)]
    assert sorted(found) == sorted(expected)
    assert len(files) > 2, "they rotated; while one process does, the others append to the old file"

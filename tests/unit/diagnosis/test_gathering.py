"""How facts are gathered: from the kernel's files, and from a folder that stays as it was."""

from __future__ import annotations

import builtins
import errno
import fcntl
import itertools
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.diagnosis import bundle, diagnosis, folder_facts, machine_facts, process_facts, time_limit
from columnar.diagnosis.diagnosis import Subject, diagnose, gather
from columnar.diagnosis.facts import StoreFacts
from columnar.diagnosis.folder_facts import gather_folder, is_flocked, lock_facts, measure_syncs, size_of_tree
from columnar.diagnosis.machine_facts import clock_facts, group_folder, memory_facts, table_of
from columnar.diagnosis.process_facts import (
    address_of,
    is_alive,
    limits_of,
    listening_sockets,
    port_facts,
    process_of,
    shares_address,
)
from columnar.diagnosis.time_limit import within
from columnar.storage.data_folder import DataFolder

ON_LINUX = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="not Linux")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    DataFolder.locked(str(folder)).close()
    return folder


def let_go(end: threading.Event) -> None:
    """Wait until the threads that were given up have ended: they would go on beside the next test."""
    end.set()
    for thread in threading.enumerate():
        if thread.name == time_limit.THREAD:
            thread.join()


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Each path below the folder with its date and content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def test_a_folder_is_looked_at_and_stays_as_it_was(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)  # the speed of this disk is not the test's subject
    before = content(data)
    facts, lock, syncs = gather_folder(str(data), os.geteuid())
    assert (facts.state, facts.format, facts.refusal, facts.unreplayed) == ("folder", 6, "", ())
    assert (lock.is_locked, lock.owner) == (False, f"process {os.getpid()}")
    assert syncs is not None
    assert len(syncs.seconds) == len(synced) == folder_facts.SYNCS
    assert content(data) == before, "the file of the fsyncs is gone"


@ON_LINUX
def test_a_held_lock_is_seen_and_never_taken(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: object) -> None:
        raise AssertionError("a store that starts at this moment would be refused")

    with (data / "LOCK").open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        monkeypatch.setattr(fcntl, "flock", taken)
        found = lock_facts(str(data))
    assert found.is_locked
    assert found.owner_lives
    assert lock_facts(str(data)).is_locked is False


def test_locks_are_told_apart_by_device_and_inode() -> None:
    text = "1: FLOCK  ADVISORY  WRITE 47 fe:01:1234 0 EOF\n2: POSIX  ADVISORY  READ 48 fe:01:77 0 EOF\n"
    device = os.makedev(0xFE, 1)
    assert is_flocked(text, device, 1234)
    assert not is_flocked(text, device, 123)
    assert not is_flocked(text, device, 77), "another kind of lock"
    assert not is_flocked(text, os.makedev(0xFE, 2), 1234)
    assert is_flocked(text.replace("fe:01", "00:2a"), device, 1234), "btrfs and overlayfs have another device there"


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    facts, lock, syncs = gather_folder(str(tmp_path / "a" / "b"), os.geteuid())
    assert (facts.state, lock.is_locked) == ("missing", False)
    assert facts.rights is not None
    assert syncs is not None
    assert syncs.place == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    monkeypatch.setattr(folder_facts, "FOLDER_S", 0.05)
    monkeypatch.setattr(folder_facts, "_gather", lambda *_: end.wait())
    assert gather_folder(str(tmp_path), 0)[0].state == "stalled"
    let_go(end)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_is_told_and_nothing_is_left(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refused)
    assert measure_syncs(str(tmp_path)).error == os.strerror(code)
    assert list(tmp_path.iterdir()) == []


def test_an_fsync_that_never_returns_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    monkeypatch.setattr(folder_facts, "SYNCED_S", 0.05)
    monkeypatch.setattr(os, "fsync", lambda _file: end.wait())
    assert "an fsync has not returned" in measure_syncs(str(tmp_path)).error
    let_go(end)


def test_a_slow_disk_is_measured_for_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def slow(_file: int) -> None:
        now[0] += 1.0

    monkeypatch.setattr(os, "fsync", slow)
    monkeypatch.setattr(folder_facts, "monotonic", lambda: now[0])
    assert len(measure_syncs(str(tmp_path)).seconds) == folder_facts.SYNCS_S


def test_links_count_once_and_the_count_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(bytes(1 << 20))
    os.link(tmp_path / "a", tmp_path / "b")
    total, is_whole = size_of_tree(str(tmp_path))
    assert is_whole
    assert total < 2 << 20
    with monkeypatch.context() as few:
        few.setattr(folder_facts, "COUNTED_FILES", 1)
        assert size_of_tree(str(tmp_path))[1] is False
    seconds = itertools.count(0.0, 1.6)
    monkeypatch.setattr(folder_facts, "monotonic", lambda: next(seconds))
    assert size_of_tree(str(tmp_path)) == (total, False), "a file system that takes 1.6 s for each file"


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder in which no file operation returns, which a running store serves."""
    path, end = "/hung/data", threading.Event()

    def stalls(call: Callable[..., Any]) -> Callable[..., Any]:
        def answer(asked: Any, *more: Any, **named: Any) -> Any:
            if str(asked).startswith("/hung"):
                end.wait()
            return call(asked, *more, **named)

        return answer

    for module, name in ((os, "stat"), (os, "lstat"), (os.path, "isdir"), (os.path, "realpath"), (builtins, "open")):
        monkeypatch.setattr(module, name, stalls(getattr(module, name)))
    for module in (diagnosis, bundle, time_limit):
        monkeypatch.setattr(module, "PATH_S", 0.05)
    monkeypatch.setattr(folder_facts, "FOLDER_S", 0.05)
    folders = {4710: "/hung/of another", 4711: path}
    words = {pid: [process_facts.STORE, json.dumps({"data": data, "port": 9090})] for pid, data in folders.items()}
    monkeypatch.setattr(process_facts, "pids", lambda: iter(words))
    monkeypatch.setattr(process_facts, "words_of", words.__getitem__)
    monkeypatch.setattr(process_facts, "listening_sockets", lambda _host, port: {8} if port == 9090 else set())
    monkeypatch.setattr(process_facts, "owners_of", lambda sockets: dict.fromkeys(sockets, 4711))
    monkeypatch.setattr(
        diagnosis, "store_facts", lambda at, _tls, _user, is_wanted: StoreFacts(at, is_wanted, data=path)
    )
    yield path
    let_go(end)


@pytest.mark.parametrize("named", [None, "/hung/data", "/hung/../hung/data"])
def test_a_store_over_a_folder_that_stalls_is_told_and_not_waited_for(named: str | None, hung: str) -> None:
    subject = Subject(named, "/elsewhere", "127.0.0.1:9090", False)
    facts = within(10, lambda: gather(subject))
    assert facts is not None, "it waits"
    assert (facts.folder.path, facts.folder.state) == (hung, "stalled")
    assert facts.store is not None
    own = [(one.port, one.is_own) for one in facts.ports if one.listeners]
    assert own == [(9090, True)], "nobody is told to stop the store"
    texts = [finding.text for finding in diagnose(facts)]
    assert f"{hung} does not answer" in texts
    assert (
        within(10, lambda: bundle.known_secrets(facts, {"node": {"access": {"password_file": f"{hung}/p"}}}, {})) == []
    )


def test_a_folder_is_the_same_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert time_limit.is_same_folder(str(tmp_path / "link"), str(tmp_path))
    assert not time_limit.is_same_folder(str(tmp_path), str(tmp_path.parent))


@ON_LINUX
def test_a_listening_socket_is_found_with_its_process() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        found = port_facts("--port", "127.0.0.1", port, None)
        assert [one.pid for one in found.listeners] == [os.getpid()]
        assert port_facts("--port", "0.0.0.0", port, None).listeners, "a wildcard takes every address"
        assert not listening_sockets("127.0.0.2", port)
    assert not listening_sockets("127.0.0.1", port)
    assert port_facts("--port", "192.0.2.1", 9090, None).error, "an address for documentation"


def test_addresses_of_the_kernels_table() -> None:
    assert address_of("0100007F", socket.AF_INET) == "127.0.0.1"
    assert address_of("00000000000000000000000001000000", socket.AF_INET6) == "::1"
    assert address_of("0000000000000000FFFF00000100007F", socket.AF_INET6) == "127.0.0.1"
    assert shares_address({"127.0.0.1"}, "::")
    assert not shares_address({"127.0.0.1"}, "10.0.0.1")


def test_processes() -> None:
    assert is_alive(os.getpid())
    assert is_alive(2**22 + 5) is False
    assert process_of(os.getpid()).name
    assert len(process_of(os.getpid()).name) <= 200
    assert limits_of(None).files is None or limits_of(None).files > 0  # type: ignore[operator]


def test_figures_of_the_machine(tmp_path: Path) -> None:
    clock = clock_facts()
    assert clock.now_ms > 1_600_000_000_000
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  16 kB\nHugePages_Total:  0\nbroken\n")
    assert table_of(str(table)) == {"MemTotal": 16 * 1024}
    if Path("/proc/meminfo").exists():
        assert (memory_facts(None).total_bytes or 0) > 1 << 26
    assert group_folder("0::/") == "/sys/fs/cgroup"
    assert group_folder("12:memory:/nowhere\n").startswith("/sys/fs/cgroup")


def test_a_kernel_that_refuses_the_question_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Libc:
        @staticmethod
        def adjtimex(_asked: object) -> int:
            return -1

    monkeypatch.setattr(machine_facts.ctypes, "CDLL", lambda *_, **__: Libc)
    assert clock_facts().is_synchronised is None

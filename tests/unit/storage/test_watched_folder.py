"""A folder that stalls: who asks about it is answered, and nothing waits for it on the loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from columnar.errors import HostError
from columnar.storage import watched_folder
from columnar.storage.file_systems import MountEvicted
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine
from columnar.storage.watched_folder import Room, WatchedFolder

WAIT_S = 20.0  # the machine may be busy


class HeldProbe:
    """A probe whose answers the test holds back."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.count = 0
        self.threads: set[int] = set()
        self.refusal: OSError | HostError | None = None

    def __call__(self) -> Room:
        self.count += 1
        self.threads.add(threading.get_ident())
        assert self.answers.wait(WAIT_S)
        if self.refusal is not None:
            raise self.refusal
        return Room(self.count, 100)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "PROBE_S", 0.001)
    monkeypatch.setattr(watched_folder, "LIMIT_S", WAIT_S)  # the machine may be busy
    monkeypatch.setattr(watched_folder, "LATE_S", WAIT_S)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():  # noqa: ASYNC110 - a thread and a timer bring it about
            await asyncio.sleep(0.001)


def on_a_loop(scenario: Callable[[HeldProbe, WatchedFolder], Coroutine[Any, Any, None]]) -> HeldProbe:
    probe = HeldProbe()

    async def run() -> None:
        folder = WatchedFolder("/srv/data", probe)
        assert folder.room is None
        folder.begin()
        try:
            await scenario(probe, folder)
        finally:
            folder.close()

    asyncio.run(run())
    probe.answers.set()
    return probe


def test_a_folder_that_answers_is_probed_by_a_thread_of_its_own() -> None:
    async def scenario(probe: HeldProbe, folder: WatchedFolder) -> None:
        await until(lambda: folder.room is not None and folder.room.free_bytes >= 3)
        await folder.until_it_answers()
        assert not folder.is_stalled
        assert folder.stalled_s() == 0.0
        assert folder.remark() == ""

    probe = on_a_loop(scenario)
    assert len(probe.threads) == 1
    assert threading.get_ident() not in probe.threads


def test_a_folder_that_stalls_is_named_and_asked_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_folder, "LIMIT_S", 0.01)

    async def scenario(probe: HeldProbe, folder: WatchedFolder) -> None:
        await until(lambda: folder.room is not None)
        probe.answers.clear()
        await until(lambda: folder.is_stalled)
        assert folder.remark().startswith("the data folder /srv/data has not answered for 0.")
        count, seconds = probe.count, folder.stalled_s()
        waiting = [asyncio.ensure_future(folder.until_it_answers()) for _ in range(3)]
        await until(lambda: folder.stalled_s() > seconds + 0.05)
        assert probe.count == count, "a probe holds a thread"
        assert not any(one.done() for one in waiting)
        waiting[0].cancel()
        monkeypatch.setattr(watched_folder, "LIMIT_S", WAIT_S)
        probe.answers.set()
        await asyncio.wait_for(asyncio.gather(*waiting[1:]), WAIT_S)
        assert not folder.is_stalled
        await until(lambda: probe.count > count + 1)

    with caplog.at_level(logging.INFO):
        on_a_loop(scenario)
    said = [line for line in caplog.messages if "/srv/data" in line]  # several pairs if the machine is busy
    assert "has not answered for" in said[0]
    assert "answers again after" in said[-1]
    assert len(said) == 2 * sum("answers again after" in line for line in said)


def test_a_folder_that_refuses_answers_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(probe: HeldProbe, folder: WatchedFolder) -> None:
        await until(lambda: folder.room is not None)
        probe.refusal = OSError(5, "Input/output error")
        await until(lambda: folder.room is None)
        count = probe.count
        await until(lambda: probe.count > count + 3)
        assert not folder.is_stalled
        probe.refusal = None
        await until(lambda: folder.room is not None)

    on_a_loop(scenario)
    assert sum("Input/output error" in line for line in caplog.messages) == 1


def test_a_mount_that_was_evicted_is_reported_once_and_other_refusals_are_not() -> None:
    reports: list[str] = []

    async def run() -> None:
        probe = HeldProbe()
        folder = WatchedFolder("/srv/data", probe, reports.append)
        folder.begin()
        await until(lambda: folder.room is not None)
        for refusal in (HostError("/srv/data: no such attribute"), OSError(5, "Input/output error")):
            probe.refusal = refusal
            await until(lambda: folder.room is None)
            count = probe.count
            await until(lambda seen=count: probe.count > seen + 3)  # type: ignore[misc]
        assert reports == []
        probe.refusal = MountEvicted("/srv/data")
        await until(lambda: bool(reports))
        count = probe.count
        await until(lambda: probe.count > count + 3)
        folder.close()

    asyncio.run(run())
    assert len(reports) == 1
    assert "this machine was shut out of /srv/data" in reports[0]
    assert "Mount the folder again (umount -l, then mount), and start the node" in reports[0]


def test_a_watch_that_ends_while_its_folder_stalls_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "LIMIT_S", 0.01)
    raised: list[object] = []
    before, threading.excepthook = threading.excepthook, raised.append

    async def scenario(probe: HeldProbe, folder: WatchedFolder) -> None:
        probe.answers.clear()
        await until(lambda: folder.is_stalled)
        waiting = asyncio.ensure_future(folder.until_it_answers())
        await asyncio.sleep(0)
        folder.close()
        await asyncio.wait_for(waiting, WAIT_S)

    try:
        on_a_loop(scenario)  # the probe is answered when its loop is closed
        for thread in threading.enumerate():
            if thread.name == watched_folder.THREAD:
                thread.join(WAIT_S)
                assert not thread.is_alive()
    finally:
        threading.excepthook = before
    assert raised == []


def test_a_loop_that_did_not_run_takes_no_folder_for_stalled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a stop of the whole process: the answer is there, and the loop has not read it."""
    monkeypatch.setattr(watched_folder, "LATE_S", 0.0)
    monkeypatch.setattr(watched_folder, "LIMIT_S", 0.05)

    async def scenario(probe: HeldProbe, folder: WatchedFolder) -> None:
        count = probe.count
        await until(lambda: probe.count > count + 1)
        threading.Event().wait(0.2)
        count = probe.count
        await until(lambda: probe.count > count + 3)

    on_a_loop(scenario)
    assert not [line for line in caplog.messages if "/srv/data" in line]


def test_the_room_is_that_of_the_regions_disk(tmp_path: Any) -> None:
    folders = RegionFolders(str(tmp_path), RocksEngine(cache_bytes=1 << 20))
    room = folders.room()
    assert 0 < room.free_bytes <= room.size_bytes
    with pytest.raises(FileNotFoundError):
        RegionFolders(str(tmp_path / "none"), RocksEngine(cache_bytes=1 << 20)).room()

"""A store that is stopped in the middle of long work: nothing of it is at work in the folder when the lock goes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from columnar.client.errors import IOError
from columnar.master import table_copies
from columnar.roles import ports
from columnar.storage.data_folder import DataFolder
from tests.support.serving import Serving


class SlowDisk:
    """Reads checksums when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.at_work = 0
        self.begun = 0
        self.when_unlocked: list[int] = []  # files that were being read
        checksum, close = table_copies.checksum, DataFolder.close

        def slow(path: str) -> str:
            self.begun += 1
            self.at_work += 1
            self.entered.set()
            self.go_on.wait(20)
            try:
                return checksum(path)
            finally:
                self.at_work -= 1

        def unlocked(folder: DataFolder) -> None:
            self.when_unlocked.append(self.at_work)
            close(folder)

        monkeypatch.setattr(table_copies, "checksum", slow)
        monkeypatch.setattr(DataFolder, "close", unlocked)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    disk = SlowDisk(monkeypatch)
    yield disk
    disk.go_on.set()


def take(store: Serving, answers: list[object]) -> threading.Thread:
    connection = store.connect()

    def asked() -> None:
        try:
            answers.append(connection.snapshots.take_snapshot("s", b"t"))
        except (OSError, EOFError, TException, TTransportException) as error:
            answers.append(error)

    thread = threading.Thread(target=asked)
    thread.start()
    return thread


def stopping(store: Serving) -> Future[None]:
    return asyncio.run_coroutine_threadsafe(store.store.stop(), store._loop)


@pytest.mark.parametrize("grace_s", [0.05, 20.0], ids=["its client is cut off", "its client is answered"])
def test_the_lock_goes_last(tmp_path: Path, disk: SlowDisk, monkeypatch: pytest.MonkeyPatch, grace_s: float) -> None:
    monkeypatch.setattr(ports, "STOP_GRACE_S", grace_s)
    store = Serving(tmp_path / "data").start()
    store.connect().create_table(b"t", {"f": {}}, splits=[b"m"])
    answers: list[object] = []
    asking = take(store, answers)
    assert disk.entered.wait(20)
    stopped = stopping(store)
    with pytest.raises(TimeoutError):
        stopped.result(0.5)
    disk.go_on.set()
    stopped.result(30)
    asking.join(30)
    assert disk.when_unlocked == [0], "a thread was reading the snapshot's files when another might have the folder"
    assert disk.begun == 1, "what is left of the snapshot is given up"
    if grace_s > 1:
        (refused,) = answers
        assert isinstance(refused, IOError), refused
        assert refused.message.startswith(b"NotServingRegionException"), refused
        assert list((tmp_path / "data" / "snapshots").iterdir()) == []
    store._loop.call_soon_threadsafe(store._loop.stop)
    store._thread.join()
    again = Serving(tmp_path / "data").start()
    assert again.connect().snapshots.list_snapshots() == []
    again.connect().snapshots.take_snapshot("s", b"t")
    again.stop()

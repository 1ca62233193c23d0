"""The log of a server that ended by time is read as it was, whatever the server's process does when it wakes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar.errors import DamagedData, HostError
from columnar.storage import log_takeover
from columnar.storage.log_takeover import take_log_over
from columnar.storage.server_folders import ENDED_LOG, LOG, Seal, dead_log, folder_of, log_of, note_log
from columnar.storage.server_log import Written
from columnar.storage.server_log_files import begin_run

SERVER = "s1.5"


def put(number: int, previous: int) -> Written:
    return "r", 8, number, previous, [("a", b"k%d" % number, b"v" * 50, None)]


class Zombie:
    """A server with two acknowledged batches in its log; its process lives, and its lease is over."""

    def __init__(self, data: Path) -> None:
        self.data = str(data)
        (data / "regions").mkdir()
        os.makedirs(folder_of(self.data, SERVER))
        self.log, _ = begin_run(log_of(self.data, SERVER), has_begun=lambda: note_log(self.data, SERVER))
        self.log.prepare()
        for number in (1, 2):
            self.log.append([put(number, number - 1)])

    def read(self, seal: Seal | None = None) -> tuple[list[int], Seal]:
        log = dead_log(self.data, SERVER, seal, is_named=True)
        return [record.number for _, record in log.records("r", frozenset({8})).found], Seal(log.extent)


@pytest.fixture
def zombie(tmp_path: Path) -> Zombie:
    return Zombie(tmp_path)


@pytest.mark.parametrize("is_taken", [True, False])
def test_appends_and_removals_after_the_seal_do_no_harm(zombie: Zombie, is_taken: bool) -> None:
    """Without the takeover they make the log damaged for whoever reads it next."""
    if is_taken:
        take_log_over(zombie.data, SERVER)
    found, seal = zombie.read()
    assert found == [1, 2]
    zombie.log.append([put(3, 2)])
    if is_taken:
        assert zombie.read(seal)[0] == [1, 2], "its bound says more than the seal"
    else:
        with pytest.raises(DamagedData):
            zombie.read(seal)
    zombie.log.remove_segments(["00000001.segment"])
    if is_taken:
        assert zombie.read(seal)[0] == [1, 2], "its segment is gone"
    else:
        with pytest.raises(DamagedData):
            zombie.read(seal)


def test_a_log_is_taken_over_once(zombie: Zombie) -> None:
    take_log_over(zombie.data, SERVER)
    _, seal = zombie.read()
    zombie.log.append([put(3, 2)])
    take_log_over(zombie.data, SERVER)
    assert zombie.read(seal)[0] == [1, 2]
    assert sorted(os.listdir(folder_of(zombie.data, SERVER))) == [LOG, ENDED_LOG, "logged"]


def test_a_server_without_a_log_has_nothing_to_take_over(tmp_path: Path) -> None:
    take_log_over(str(tmp_path), SERVER)
    assert log_of(str(tmp_path), SERVER).endswith(LOG)


def test_a_segment_that_is_removed_meanwhile_is_no_fault(zombie: Zombie, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    def copy(source: str, target: str) -> None:
        if not copied:
            (Path(source).parent / "00000009.segment").write_bytes(b"")  # begun while the rest is copied
        copied.append(source)
        real(source, target)

    real = log_takeover.copy_whole
    monkeypatch.setattr(log_takeover, "copy_whole", copy)
    take_log_over(zombie.data, SERVER)
    assert "00000009.segment" in os.listdir(log_of(zombie.data, SERVER))
    assert zombie.read()[0] == [1, 2]


def test_a_log_that_never_stands_still_is_refused(zombie: Zombie, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(source: str, _target: str) -> None:
        raise FileNotFoundError(2, "gone", source)

    monkeypatch.setattr(log_takeover, "copy_whole", copy)
    with pytest.raises(HostError, match="all the time"):
        take_log_over(zombie.data, SERVER)
    assert os.listdir(folder_of(zombie.data, SERVER)).count(ENDED_LOG) == 0

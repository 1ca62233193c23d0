"""The synced lengths that a node's record has of a dead server's log: a log that looks shorter is not believed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.errors import DamagedData, HostError
from columnar.model.owner import Incarnation
from columnar.roles import mode_switch
from columnar.roles.mode_switch import FolderDeadServerLogs
from columnar.storage import dead_logs, log_takeover
from columnar.storage.dead_logs import READINGS, measure
from columnar.storage.log_takeover import take_log_over
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_folders import ENDED_LOG, Seal, dead_log, folder_of, log_of, note_log
from columnar.storage.server_log import Written
from columnar.storage.server_log_files import begin_run
from columnar.storage.watched_folder import Room, WatchedFolder

SERVER = Incarnation("s1", 5)
FIRST, SECOND = "00000001.segment", "00000002.segment"


def put(number: int) -> Written:
    return "r", 8, number, number - 1, [("a", b"k%d" % number, b"v" * 50, None)]


class Notes:
    """What the server says of its log in memory."""

    def __init__(self) -> None:
        self.synced: dict[int, int] = {}

    def raise_synced(self, segment: int, length: int) -> None:
        self.synced[segment] = length

    def forget_segments(self, segments: list[int]) -> None:
        for segment in segments:
            self.synced.pop(segment, None)


class Dead:
    """The folder of a server with two acknowledged batches; ``show_older`` makes it look as after the first batch."""

    def __init__(self, data: Path) -> None:
        self.data = str(data)
        (data / "regions").mkdir()
        (data / "servers" / str(SERVER)).mkdir(parents=True)
        self.folder = Path(log_of(self.data, str(SERVER)))
        self.notes = Notes()
        self.log, _ = begin_run(str(self.folder), has_begun=lambda: note_log(self.data, str(SERVER)), notes=self.notes)
        self.log.prepare()
        self.log.append([put(1)])
        self._older = data / "older"
        shutil.copytree(self.folder, self._older)
        self.log.append([put(2)])
        self.length = (self.folder / FIRST).stat().st_size
        self._newer = data / "newer"

    def show_older(self) -> None:
        self.folder.rename(self._newer)
        shutil.copytree(self._older, self.folder)

    def show_newer(self) -> None:
        shutil.rmtree(self.folder)
        self._newer.rename(self.folder)

    def read(self, seal: Seal | None = None) -> list[int]:
        log = dead_log(self.data, str(SERVER), seal, self.notes.synced, is_named=True)
        return [record.number for _, record in log.records("r", frozenset({8})).found]


@pytest.fixture
def dead(tmp_path: Path) -> Dead:
    return Dead(tmp_path)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_logs, "READ_AGAIN_S", 0.0)
    monkeypatch.setattr(mode_switch, "RETRY_S", 0.0)


def test_the_server_says_what_it_has_synced(dead: Dead) -> None:
    assert dead.notes.synced == {1: dead.length} == SegmentBounds(str(dead.folder)).read()


def test_an_older_state_of_the_whole_folder_is_not_sealed(dead: Dead) -> None:
    """Its bounds are older, too, so nothing in it contradicts the shorter segment."""
    dead.show_older()
    assert measure(str(dead.folder)).segments[0].length_bytes < dead.length, "or this test shows nothing"
    with pytest.raises(DamagedData, match=f"{dead.length} were synced"):
        dead.read()
    dead.show_newer()
    assert dead.read() == [1, 2]


def test_a_seal_below_what_was_synced_is_damage(dead: Dead) -> None:
    dead.show_older()
    seal = Seal(measure(str(dead.folder)).lengths)
    with pytest.raises(DamagedData, match=f"{dead.length} were synced"):
        dead.read(seal)


def test_a_segment_that_is_not_shown_is_not_taken_for_removed(dead: Dead) -> None:
    """Its slot was empty before it was begun, too."""
    dead.show_older()
    (dead.folder / FIRST).unlink()
    (dead.folder / "SYNCED").write_bytes(bytes(128))
    assert measure(str(dead.folder)).segments == (), "or this test shows nothing"
    with pytest.raises(DamagedData, match=f"{FIRST} is missing"):
        dead.read()


def test_a_segment_that_was_removed_after_the_last_record_is_not_missed(dead: Dead) -> None:
    recorded = dict(dead.notes.synced)
    dead.log.remove_segments([FIRST])
    assert dead.notes.synced == {}
    dead.notes.synced = recorded
    assert dead.read() == []


@pytest.mark.parametrize("later", [5, 9])
def test_a_slot_that_a_later_segment_took_tells_of_the_removal(dead: Dead, later: int) -> None:
    recorded = dict(dead.notes.synced)
    dead.log.remove_segments([FIRST])
    bounds = SegmentBounds(str(dead.folder))
    bounds.begin()
    bounds.raise_to(later, 0)
    assert bounds.has_removed(1)
    assert not bounds.has_removed(later)
    bounds.close()
    assert recorded.keys() == {1}


def test_an_older_segment_in_the_slot_tells_nothing(tmp_path: Path) -> None:
    bounds = SegmentBounds(str(tmp_path))
    bounds.begin()
    bounds.raise_to(1, 10)
    assert not bounds.has_removed(5)
    assert not bounds.has_forgotten(5)
    bounds.forget_segments([1])
    assert bounds.has_removed(1)
    assert not bounds.has_removed(5)
    bounds.close()


def test_a_segment_whose_bound_was_never_stored_is_removed_too(tmp_path: Path) -> None:
    bounds = SegmentBounds(str(tmp_path))
    bounds.begin()
    bounds.forget_segments([3])
    assert bounds.has_removed(3)
    bounds.close()


# --- the takeover --------------------------------------------------------------------------------------


def test_an_older_state_is_not_taken_over(dead: Dead) -> None:
    dead.show_older()
    with pytest.raises(DamagedData, match=f"{dead.length} were synced"):
        take_log_over(dead.data, str(SERVER), dead.notes.synced)
    assert not (Path(folder_of(dead.data, str(SERVER))) / ENDED_LOG).exists()
    dead.show_newer()
    take_log_over(dead.data, str(SERVER), dead.notes.synced)
    assert dead.read() == [1, 2]


def test_a_log_that_is_not_shown_at_all_is_not_taken_for_one_that_was_never_begun(dead: Dead) -> None:
    shutil.rmtree(dead.folder)
    with pytest.raises(DamagedData, match="is missing"):
        take_log_over(dead.data, str(SERVER), dead.notes.synced)


def test_a_takeover_that_links_less_than_it_saw_is_not_finished(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    is_linked = log_takeover._is_linked

    def forget_one(source: str, half: str) -> bool:
        found = is_linked(source, half)
        (Path(half) / FIRST).unlink()
        return found

    monkeypatch.setattr(log_takeover, "_is_linked", forget_one)
    with pytest.raises(HostError, match="in two states"):
        take_log_over(dead.data, str(SERVER), dead.notes.synced)
    assert not (Path(folder_of(dead.data, str(SERVER))) / ENDED_LOG).exists()


# --- the leader ----------------------------------------------------------------------------------------


class Leader:
    def __init__(self, dead: Dead) -> None:
        self.unread: dict[Incarnation, str] = {}
        ownership = SimpleNamespace(owners={}, seal_of=lambda _server: None)
        catalogue: Any = SimpleNamespace(tables={}, ownership=ownership)
        stores: Any = SimpleNamespace(folder=SimpleNamespace(path=dead.data))
        folder = WatchedFolder(dead.data, lambda: Room(1, 2))
        self.readings = 0
        self.after = 0  # readings after which the folder is shown as it is
        self._dead = dead
        self.logs = FolderDeadServerLogs(catalogue, stores, self.unread, folder, self._synced)

    def _synced(self, server: str) -> dict[int, int]:
        assert server == str(SERVER)
        self.readings += 1
        if self.after and self.readings == self.after:
            self._dead.show_newer()
        return self._dead.notes.synced


@pytest.mark.parametrize("is_by_time", [True, False])
def test_the_leader_looks_again_until_the_folder_shows_what_was_synced(dead: Dead, is_by_time: bool) -> None:
    dead.show_older()
    leader = Leader(dead)
    leader.after = READINGS
    found = asyncio.run(leader.logs.read_dead_server_log(SERVER, is_by_time=is_by_time))
    assert found.lengths == ((FIRST, dead.length),)
    assert leader.unread == {}


@pytest.mark.parametrize("is_by_time", [True, False])
def test_a_log_that_stays_short_is_named_and_read_again_for_its_regions(dead: Dead, is_by_time: bool) -> None:
    dead.show_older()
    leader = Leader(dead)

    async def test() -> None:
        found = await leader.logs.read_dead_server_log(SERVER, is_by_time=is_by_time)
        assert found.lengths is None, "no seal"
        assert f"{dead.length} were synced" in found.damage
        assert leader.readings == READINGS
        with pytest.raises(DamagedData):
            await leader.logs.extents(SERVER, is_over=True)
        dead.show_newer()
        assert await leader.logs.extents(SERVER, is_over=True) == ((FIRST, dead.length),)
        assert (Path(folder_of(dead.data, str(SERVER))) / ENDED_LOG).exists() == is_by_time

    asyncio.run(test())


def test_the_log_of_a_living_server_is_not_measured_short(dead: Dead) -> None:
    dead.show_older()
    with pytest.raises(DamagedData):
        asyncio.run(Leader(dead).logs.extents(SERVER, is_over=False))

"""Logs of dead servers on a file system that shows less of a file than it has: never taken for shorter ones."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.errors import DamagedData, HostError
from columnar.master.dead_servers import DeadServerLog
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.regions.log.lacking_logs import LackingLogs
from columnar.roles import mode_switch
from columnar.roles.mode_switch import FolderDeadServerLogs
from columnar.storage import dead_logs, segment_bounds
from columnar.storage.dead_logs import READINGS, DeadLog, DeadLogs, measure, sealed_at
from columnar.storage.durable_files import read_first
from columnar.storage.log_salvage import salvaged
from columnar.storage.server_folders import Seal, dead_log, log_of, note_log
from columnar.storage.server_log import Written
from columnar.storage.server_log_files import begin_run
from columnar.storage.synced_bound import SYNCED, BoundFile, read_bound
from columnar.storage.watched_folder import Room, WatchedFolder
from tests.support.caching_mount import CachingMount

SERVER = Incarnation("s1", 5)


def put(number: int, previous: int) -> Written:
    return "r", 8, number, previous, [("a", b"k%d" % number, b"v" * 50, None)]


class Dead:
    """The folder of a server that died with two acknowledged batches in its log."""

    def __init__(self, data: Path) -> None:
        self.data = data
        (data / "regions").mkdir()
        (data / "servers" / str(SERVER)).mkdir(parents=True)
        self.folder = Path(log_of(str(data), str(SERVER)))
        log, _ = begin_run(str(self.folder), has_begun=lambda: note_log(str(data), str(SERVER)))
        log.prepare()
        log.append([put(1, 0)])
        self.segment = self.folder / "00000001.segment"
        self.first_end = self.segment.stat().st_size
        self.first_bounds = (self.folder / SYNCED).read_bytes()  # as they were after the first batch
        log.append([put(2, 1)])
        self.length = self.segment.stat().st_size

    def read(self, seal: Seal | None = None) -> DeadLog:
        return dead_log(str(self.data), str(SERVER), seal, is_named=True)

    def age_bounds(self) -> None:
        (self.folder / SYNCED).write_bytes(self.first_bounds)


def numbers(log: DeadLog) -> list[int]:
    return [record.number for _, record in log.records("r", frozenset({8})).found]


@pytest.fixture
def dead(tmp_path: Path) -> Dead:
    return Dead(tmp_path)


@pytest.fixture
def mount(monkeypatch: pytest.MonkeyPatch) -> CachingMount:
    return CachingMount(monkeypatch)


# --- the first reading, which seals the log ------------------------------------------------------------


@pytest.mark.parametrize("size", ["new", "old"])
@pytest.mark.parametrize("bounds", ["new", "old"])
def test_a_short_read_of_a_sealed_segment_is_not_its_end(
    dead: Dead, mount: CachingMount, size: str, bounds: str
) -> None:
    """Acknowledged batches were lost without a word: 18 of 20 on a mount that caches."""
    if bounds == "old":
        dead.age_bounds()
    sealed = measure(str(dead.folder))
    mount.age(dead.segment, length=dead.first_end, size=dead.first_end if size == "old" else None)
    log = DeadLog(str(dead.folder), sealed)
    for _ in range(2):
        with pytest.raises((HostError, DamagedData)):
            log.load()
        assert not log.is_loaded
    mount.renew()
    assert numbers(log) == [1, 2], "what was refused is read again"


def test_a_short_read_says_how_much_is_missing(dead: Dead, mount: CachingMount) -> None:
    dead.age_bounds()
    sealed = measure(str(dead.folder))
    mount.age(dead.segment, length=dead.first_end)
    with pytest.raises(HostError, match=f"only {dead.first_end} bytes of its {dead.length} could be read"):
        DeadLog(str(dead.folder), sealed).load()
    mount.age(dead.segment, size=dead.first_end)
    with pytest.raises(HostError, match=f"has {dead.first_end} bytes, and had {dead.length} when the log was sealed"):
        DeadLog(str(dead.folder), sealed).load()


def test_a_size_below_what_was_synced_seals_no_log(dead: Dead, mount: CachingMount) -> None:
    mount.age(dead.segment, size=dead.first_end, length=dead.first_end)
    with pytest.raises(DamagedData, match=f"was cut at byte {dead.first_end}: {dead.length} were synced"):
        measure(str(dead.folder))


def test_a_segment_that_the_folder_does_not_show_seals_no_log(dead: Dead, mount: CachingMount) -> None:
    mount.hide(dead.segment)
    with pytest.raises(DamagedData, match="is missing"):
        measure(str(dead.folder))


@pytest.mark.parametrize("name", [SYNCED, "run"])
def test_a_short_read_of_what_stands_beside_the_segments_is_refused(dead: Dead, mount: CachingMount, name: str) -> None:
    """Without bounds, all that is missing would be an end that a power cut left."""
    mount.age(dead.folder / name, length=10)
    with pytest.raises(HostError, match="only 10 bytes of its"):
        dead.read()
    mount.renew()
    assert numbers(dead.read()) == [1, 2]


def test_a_bound_of_a_region_that_is_read_short_is_refused(tmp_path: Path, mount: CachingMount) -> None:
    bound = BoundFile.opened(str(tmp_path))
    bound.begin_bound(7)
    bound.close()
    mount.age(tmp_path / SYNCED, length=0)
    with pytest.raises(OSError, match="only 0 bytes"):
        read_bound(str(tmp_path))
    mount.renew()
    found = read_bound(str(tmp_path))
    assert found is not None
    assert found.sequence == 7


def test_a_removed_segment_is_not_taken_for_one_by_a_short_read(dead: Dead, mount: CachingMount) -> None:
    mount.age(dead.folder / SYNCED, length=segment_bounds.SLOT_BYTES)
    with pytest.raises(OSError, match="only 32 bytes"):
        segment_bounds.SegmentBounds(str(dead.folder)).has_forgotten(2)


def test_a_salvage_takes_no_short_read_for_the_end(dead: Dead, mount: CachingMount) -> None:
    mount.age(dead.segment, length=dead.first_end)
    with pytest.raises(HostError, match="only"):
        salvaged(str(dead.folder), ())


def test_a_file_that_grows_or_ends_at_the_count_is_read_whole(tmp_path: Path, mount: CachingMount) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    assert read_first(str(path), 4) == b"abcd"
    assert read_first(str(path), 9) == read_first(str(path)) == b"abcdef"
    mount.age(path, size=2)
    assert read_first(str(path), 9) == b"abcdef", "more than its size says is no less"


# --- seals ---------------------------------------------------------------------------------------------


def test_a_reader_by_the_seal_gets_all_that_it_lists_or_an_error(dead: Dead, mount: CachingMount) -> None:
    seal = Seal(dead.read().extent)
    for size in (None, dead.first_end):
        mount.age(dead.segment, length=dead.first_end, size=size)
        with pytest.raises((HostError, DamagedData)):
            dead.read(seal)
        mount.renew()
    assert numbers(dead.read(seal)) == [1, 2]


def test_a_seal_of_an_older_program_may_list_an_end_that_a_power_cut_took(dead: Dead) -> None:
    """Its lengths are those of files: what was never synced may be gone."""
    dead.age_bounds()
    seal = Seal(((dead.segment.name, dead.length),), is_of_files=True)
    assert numbers(dead.read(seal)) == [1, 2]
    with dead.segment.open("rb+") as file:
        file.truncate(dead.first_end)
    assert numbers(dead.read(seal)) == [1]
    with dead.segment.open("rb+") as file:
        file.truncate(dead.first_end - 1)
    with pytest.raises(DamagedData, match="were synced"):
        dead.read(seal)


# --- who reads again -----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_logs, "READ_AGAIN_S", 0.0)
    monkeypatch.setattr(mode_switch, "RETRY_S", 0.0)


class Master:
    """What a master has for reading logs of servers that died."""

    def __init__(self, dead: Dead) -> None:
        self.unread: dict[Incarnation, str] = {}
        self.synced: dict[str, dict[int, int]] = {}  # by the records of nodes
        ownership = SimpleNamespace(owners={}, seal_of=lambda _server: None)
        catalogue: Any = SimpleNamespace(tables={}, ownership=ownership)
        stores: Any = SimpleNamespace(folder=SimpleNamespace(path=str(dead.data)))
        folder = WatchedFolder(str(dead.data), lambda: Room(1, 2))
        self.logs = FolderDeadServerLogs(
            catalogue, stores, self.unread, folder, lambda server: self.synced.get(server, {})
        )

    def read(self) -> DeadServerLog:
        return asyncio.run(self.logs.read_dead_server_log(SERVER))


@pytest.mark.parametrize("how", ["a short read", "an old size", "an old size and short reads"])
def test_the_master_reads_a_log_again_until_the_cache_is_new(dead: Dead, mount: CachingMount, how: str) -> None:
    master = Master(dead)
    length = dead.first_end if "read" in how else None
    size = dead.first_end if "size" in how else None
    mount.age(dead.segment, length=length, size=size, readings=2)
    found = master.read()
    assert found.lengths == ((dead.segment.name, dead.length),)
    assert found.named == {("r", 8)}
    assert master.unread == {}


def test_damage_that_every_reading_finds_is_believed(dead: Dead, mount: CachingMount) -> None:
    with dead.segment.open("rb+") as file:
        file.truncate(dead.length - 1)
    found = Master(dead).read()
    assert found.lengths is None
    assert f"{dead.length} were synced" in found.damage
    assert mount.readings.count(SYNCED) == READINGS


@pytest.mark.parametrize("is_over", [True, False])
def test_an_extent_is_measured_again(dead: Dead, mount: CachingMount, is_over: bool) -> None:
    mount.age(dead.segment, length=dead.first_end, size=dead.first_end, readings=1)
    extent = asyncio.run(Master(dead).logs.extents(SERVER, is_over=is_over))
    assert extent == ((dead.segment.name, dead.length),)


class Owner:
    """A server whose regions lack what the dead one wrote."""

    def __init__(self, dead: Dead, *regions: int) -> None:
        self.dead_logs = DeadLogs()
        self.server_log: Any = None
        self._folder = str(dead.folder)
        self.lacking = LackingLogs(Incarnation("s2", 6), self)
        self.lacking.know([(SERVER, ((dead.segment.name, dead.length),))])
        for region in regions:
            self.lacking.lacks(region, [OwnershipPeriod(SERVER, 8)])

    def dead_log(self, _incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog:
        return DeadLog(self._folder, sealed_at(lengths))

    def load(self, region: int) -> list[int]:
        asyncio.run(self.lacking.load(region))
        self.lacking.check_invariants()
        log = self.dead_logs.of(str(SERVER))
        assert log is not None
        return numbers(log) if log.is_loaded else []


def test_an_owner_reads_a_log_again_until_the_cache_is_new(dead: Dead, mount: CachingMount) -> None:
    mount.age(dead.segment, length=dead.first_end, size=dead.first_end, readings=2)
    assert Owner(dead, 1).load(1) == [1, 2]


def test_a_damaged_log_is_read_repeatedly_for_the_first_region_that_lacks_it(dead: Dead, mount: CachingMount) -> None:
    """Others would wait for it in turn."""
    mount.age(dead.segment, length=dead.first_end, size=dead.first_end)
    owner = Owner(dead, 1, 2)
    assert owner.load(1) == []
    assert mount.readings.count(dead.segment.name) == READINGS
    assert owner.load(2) == []
    assert mount.readings.count(dead.segment.name) == READINGS + 1
    mount.renew()
    assert owner.load(2) == [1, 2]
    for region in (1, 2):
        owner.lacking.has_all(region)
    owner.lacking.check_invariants()

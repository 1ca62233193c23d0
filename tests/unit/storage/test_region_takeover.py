"""The takeover of a region's folder: to whose content it comes, from any state, and whom it refuses."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import FolderTakenOver, HostError
from columnar.storage import durable_files, region_takeover
from columnar.storage.region_entries import Entry, entry_of, half_name, newest_of, source_for, source_name
from columnar.storage.region_folders import RegionFolders
from columnar.storage.region_takeover import end_generations
from columnar.storage.rocks import RocksEngine
from tests.support.deep import cases

ENC = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (ENC, (ENC, 0, 0, "")),
        ("meta.7", ("meta", 7, 0, "")),
        (f"{ENC}.12", (ENC, 12, 0, "")),
        (f"{ENC}.12.from", (ENC, 12, 0, ".from")),
        (f"{ENC}.12.34.new", (ENC, 12, 34, ".new")),
        (f"{ENC}.new", (ENC, 0, 0, ".new")),
        (f"{ENC}.tmp.deleted", (ENC, 0, 0, ".tmp.deleted")),
        (f"{ENC}.3.deleted", (ENC, 3, 0, ".deleted")),
        (f"{ENC}.1.2", (f"{ENC}.1.2", 0, 0, "")),
        ("some.thing", ("some.thing", 0, 0, "")),
    ],
)
def test_the_names_of_entries(name: str, entry: tuple[str, int, int, str]) -> None:
    assert entry_of(name) == Entry(name, *entry)


@pytest.mark.parametrize(
    ("names", "generation", "source"),
    [
        (["r"], 1, "r"),
        (["r", "r.1"], 2, "r.1"),
        (["r", "r.1.from"], 2, "r.1.from"),  # an earlier owner made ``r`` anew
        (["r.1", "r.1.from", "r.2.5.new"], 2, "r.1"),
        (["r.2.from"], 2, "r.2.from"),
        (["r.1", "r.2.from"], 3, "r.2.from"),  # the owner of 1 woke and ended its takeover
        (["r.1.3.new", "r.new", "r.1.deleted", "r.tmp"], 2, None),
        (["r.3", "r.3.from"], 2, None),
        ([], 1, None),
    ],
)
def test_the_folder_from_which_a_generation_is_made(names: list[str], generation: int, source: str | None) -> None:
    found = source_for([entry_of(name) for name in names], generation)
    assert (found.name if found is not None else None) == source


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (["a", "a.2", "a.10", "a.10.from", "a.11.3.new"], "a.10"),
        (["a", "a.2", "a.10.from", "a.11.3.new"], "a.10.from"),
        (["a.new", "a.tmp", "a.deleted"], None),
        ([], None),
    ],
)
def test_the_folder_that_has_the_newest_content(names: list[str], newest: str | None) -> None:
    found = newest_of(entry_of(name) for name in names)
    assert (found.name if found is not None else None) == newest


class Regions:
    """A region's folders and the owner's store in one of them."""

    def __init__(self, root: Path) -> None:
        self.root = root / "regions"
        self.engine = RocksEngine(cache_bytes=1 << 20)
        self.generations: dict[str, int] = {}
        self.folders = RegionFolders(str(self.root), self.engine)
        self.folders.use_generations(lambda encoded: self.generations.get(encoded, 0))

    def write(self, generation: int, *values: bytes, flush: bool = False) -> None:
        store = self.engine.open_store(self.folders.path(ENC, generation), frozenset({"a"}))
        for value in values:
            batch = store.batch()
            batch.put("a", value, value)
            store.write_batch(batch)
        if flush:
            store.files.flush()
        store.sync()
        store.close()

    def read(self, generation: int) -> list[bytes]:
        store = self.engine.open_reading(self.folders.path(ENC, generation))
        try:
            return [key for key, _ in store.scan("a", b"", b"\xff")]
        finally:
            store.close()

    def names(self) -> list[str]:
        return sorted(os.listdir(self.root))


@pytest.fixture
def regions(tmp_path: Path) -> Regions:
    found = Regions(tmp_path)
    found.folders.make([ENC])
    found.write(0, b"1", b"2", flush=True)
    found.write(0, b"3")
    return found


def test_the_new_generation_has_all_and_the_older_one_is_out_of_reach(regions: Regions) -> None:
    assert regions.folders.take_over(ENC, 1, epoch=4)
    assert regions.names() == [f"{ENC}.1", f"{ENC}.1.from"]
    assert regions.read(1) == [b"1", b"2", b"3"]
    assert not regions.folders.take_over(ENC, 1, epoch=4), "it is there"
    regions.write(1, b"4")
    assert regions.folders.take_over(ENC, 3, epoch=6)
    assert regions.names() == [f"{ENC}.1.from", f"{ENC}.3", f"{ENC}.3.from"]
    assert regions.read(3) == [b"1", b"2", b"3", b"4"]
    assert regions.folders.highest_generation(ENC) == regions.folders.newest_generation(ENC) == 3
    regions.folders.remove_older(ENC, 3)
    assert regions.names() == [f"{ENC}.3"]
    assert regions.read(3) == [b"1", b"2", b"3", b"4"]


def test_tables_are_shared_and_nothing_else_is(regions: Regions) -> None:
    regions.folders.take_over(ENC, 1, epoch=4)
    old, new = regions.root / f"{ENC}.1.from", regions.root / f"{ENC}.1"
    names = {path.name for path in new.iterdir()}
    assert {"CURRENT", "SYNCED"} <= names
    assert any(name.endswith(".log") for name in names)
    assert any(name.endswith(".sst") for name in names)
    for name in names:
        is_same = os.path.samestat((old / name).stat(), (new / name).stat())
        assert is_same is name.endswith(".sst"), name
    assert not names & {"LOCK", "LOG"}


def test_a_table_that_the_list_of_files_does_not_name_is_left_out(regions: Regions) -> None:
    """The earlier owner may be writing it."""
    (regions.root / ENC / "000999.sst").write_bytes(b"half of a table")
    regions.folders.take_over(ENC, 1, epoch=4)
    assert not (regions.root / f"{ENC}.1" / "000999.sst").exists()
    assert regions.read(1) == [b"1", b"2", b"3"]


def test_every_table_is_kept_where_the_list_of_files_is_damaged(regions: Regions) -> None:
    folder = regions.root / ENC
    (manifest,) = folder.glob("MANIFEST-*")
    os.truncate(manifest, 30)
    tables = {path.name for path in folder.glob("*.sst")}
    assert tables
    regions.folders.take_over(ENC, 1, epoch=4)
    assert {path.name for path in (regions.root / f"{ENC}.1").glob("*.sst")} == tables


def test_an_owner_that_finds_a_higher_generation_gives_up(regions: Regions) -> None:
    regions.folders.take_over(ENC, 2, epoch=5)
    for there in ([], [source_name(ENC, 2)], [half_name(ENC, 2, 5)]):
        if there:
            regions.folders.remove_older(ENC, 3)
            (regions.root / there[0]).mkdir()
        with pytest.raises(FolderTakenOver, match="another server owns the region"):
            regions.folders.take_over(ENC, 1, epoch=4)


def test_a_region_without_a_folder_gets_none(regions: Regions) -> None:
    assert not regions.folders.take_over("other", 1, epoch=4)
    assert regions.names() == [ENC]
    regions.folders.make(["empty"])
    assert regions.folders.take_over("empty", 1, epoch=4)
    regions.generations["empty"] = 1
    assert regions.folders.is_untouched("empty")


def test_the_note_of_an_opening_is_of_all_generations(regions: Regions, tmp_path: Path) -> None:
    regions.generations[ENC] = 1
    regions.folders.take_over(ENC, 1, epoch=4)
    assert os.listdir(tmp_path / "opened") == [ENC]
    regions.write(1, b"4")
    assert os.listdir(tmp_path / "opened") == [ENC]
    for name in os.listdir(regions.folders.path(ENC)):
        os.unlink(os.path.join(regions.folders.path(ENC), name))
    assert regions.engine.is_emptied(regions.folders.path(ENC))
    assert not regions.folders.is_untouched(ENC)


def test_a_dropped_region_leaves_nothing_of_any_generation(regions: Regions, tmp_path: Path) -> None:
    regions.folders.take_over(ENC, 1, epoch=4)
    regions.folders.take_over(ENC, 2, epoch=5)
    (regions.root / half_name(ENC, 3, 6)).mkdir()
    (regions.root / source_name(ENC, 3)).mkdir()
    assert not regions.folders.was_dropped(ENC)
    regions.folders.destroy(ENC)
    assert regions.names() == []
    assert os.listdir(tmp_path / "opened") == []
    assert regions.folders.was_dropped(ENC)


# --- a death at each step ----------------------------------------------------------------------------


class Died(BaseException):
    """The process ended here."""


CALLS = ("rename", "mkdir", "link", "fsync", "unlink", "rmdir")


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> list[int]:
    """Die at the ``at``-th system call that changes or syncs something; the list has the number of calls so far."""
    count = [0]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] >= at:
                raise Died
            return real(*args, **named)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return count


def deaths() -> Iterator[int]:
    return iter(range(1, 200))


@pytest.mark.parametrize(("generation", "epoch"), [(1, 4), (1, 5), (2, 6)], ids=["again", "next epoch", "next"])
def test_a_death_at_any_step_loses_nothing(tmp_path: Path, generation: int, epoch: int) -> None:
    for at in deaths():
        regions = Regions(tmp_path / str(at))
        regions.folders.make([ENC])
        regions.write(0, b"1", flush=True)
        regions.write(0, b"2")
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, at)
            try:
                regions.folders.take_over(ENC, 1, epoch=4)
                regions.folders.remove_older(ENC, 1)
                break
            except Died:
                pass
        regions.folders.take_over(ENC, generation, epoch)
        assert regions.read(generation) == [b"1", b"2"], f"after a death at step {at}"
        regions.folders.remove_older(ENC, generation)
        assert regions.names() == [f"{ENC}.{generation}"], f"after a death at step {at}"
    assert at > 15, "it died somewhere"


def test_an_owner_that_stopped_in_its_takeover_spoils_no_later_one(tmp_path: Path) -> None:
    """The owner of generation 1 stops before each of its steps; the owner of 2 takes over, serves, and it wakes."""
    for at in deaths():
        regions = Regions(tmp_path / str(at))
        regions.folders.make([ENC])
        regions.write(0, b"1", flush=True)
        regions.write(0, b"2")
        with pytest.MonkeyPatch.context() as patch:
            has_stopped = stopping(patch, at, partial(next_owner, regions))
            try:
                regions.folders.take_over(ENC, 1, epoch=4)
                is_over = True
            except FolderTakenOver:
                is_over = False
        if not has_stopped[0]:
            break
        assert not is_over or regions.folders.highest_generation(ENC) == 2
        assert regions.read(2) == [b"1", b"2", b"3"], f"stopped before step {at}"
        regions.folders.remove_older(ENC, 2)
        assert regions.names() == [f"{ENC}.2"]
    assert at > 15, "it stopped somewhere"


def next_owner(regions: Regions) -> None:
    regions.folders.take_over(ENC, 2, epoch=5)
    regions.write(2, b"3")


def stopping(monkeypatch: pytest.MonkeyPatch, at: int, meanwhile: Callable[[], None]) -> list[bool]:
    """Call ``meanwhile`` before the ``at``-th system call."""
    count, has_stopped = [0], [False]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            count[0] += 1
            if count[0] == at:
                has_stopped[0] = True
                meanwhile()
            return real(*args, **named)

        return call

    for name in (*CALLS, "listdir", "scandir", "open"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return has_stopped


def test_two_owners_of_one_generation_do_not_disturb_each_other(tmp_path: Path) -> None:
    """The server of the first was killed by its node, or refused the region while its thread was at work."""
    for at in deaths():
        regions = Regions(tmp_path / str(at))
        regions.folders.make([ENC])
        regions.write(0, b"1", flush=True)
        regions.write(0, b"2")

        def second(regions: Regions = regions) -> None:
            regions.folders.take_over(ENC, 1, epoch=5)
            regions.write(1, b"3")

        with pytest.MonkeyPatch.context() as patch:
            has_stopped = stopping(patch, at, second)
            regions.folders.take_over(ENC, 1, epoch=4)
        if not has_stopped[0]:
            break
        assert regions.read(1) == [b"1", b"2", b"3"], f"stopped before step {at}"
        regions.folders.remove_older(ENC, 1)
        assert regions.names() == [f"{ENC}.1"], f"stopped before step {at}"
    assert at > 15, "it stopped somewhere"


class Stopped:
    """A takeover at epoch 4 in a thread, which stops before one of its steps until it is woken."""

    def __init__(self, regions: Regions, at: int) -> None:
        self._at = at
        self._count = 0
        self.has_stopped = threading.Event()
        self._wakes = threading.Event()
        self._thread = threading.Thread(target=regions.folders.take_over, args=(ENC, 1, 4))
        self._is_over = threading.Event()

    def step(self) -> None:
        """Count a step of the current thread, if it is this one."""
        if threading.current_thread() is self._thread:
            self._count += 1
            if self._count == self._at:
                self.has_stopped.set()
                assert self._wakes.wait(10)

    def begin(self) -> bool:
        """Run to the step; return whether there is one."""
        self._thread.start()
        while self._thread.is_alive() and not self.has_stopped.wait(0.001):
            pass
        return self.has_stopped.is_set()

    def end(self) -> None:
        self._wakes.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("first_at", cases("steps of two takeovers", deep=range(1, 40), short=(12, 20, 27)))
def test_an_owner_that_wakes_amid_the_takeover_of_the_next_one_spoils_nothing(tmp_path: Path, first_at: int) -> None:
    """Both make the same generation; the first wakes before each step of the second, and runs to its end."""
    for at in deaths():
        regions = Regions(tmp_path / str(at))
        regions.folders.make([ENC])
        regions.write(0, b"1", flush=True)
        regions.write(0, b"2")
        first = Stopped(regions, first_at)
        steps = iter(range(1, at))

        def count(first: Stopped = first, steps: Iterator[int] = steps) -> None:
            first.step()
            if threading.current_thread() is threading.main_thread() and next(steps, None) is None:
                first.end()

        with pytest.MonkeyPatch.context() as patch:
            before_each_step(patch, count)
            if not first.begin():
                return  # it has fewer steps
            regions.folders.take_over(ENC, 1, epoch=5)
            is_over = next(steps, None) is not None
            first.end()
        assert regions.read(1) == [b"1", b"2"], f"woken before step {at}"
        regions.folders.remove_older(ENC, 1)
        assert regions.names() == [f"{ENC}.1"], f"woken before step {at}"
        if is_over:
            break
    assert at > 1, "it was woken somewhere"


def before_each_step(monkeypatch: pytest.MonkeyPatch, count: Callable[[], None]) -> None:
    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            count()
            return real(*args, **named)

        return call

    for name in (*CALLS, "listdir", "scandir", "open"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


def test_a_generation_whose_name_was_not_synced_is_synced_before_it_is_opened(
    regions: Regions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut would take the name back, and the next takeover would remove what was written meanwhile."""
    regions.write(0, b"1")
    synced: list[str] = []

    def sync(folder: str) -> None:
        synced.append(folder)
        if os.path.isdir(os.path.join(folder, f"{ENC}.1")) and len(synced) < 5:
            raise OSError(errno.EIO, "the disk fails", folder)

    with monkeypatch.context() as patch:
        for module in (region_takeover, durable_files):
            patch.setattr(module, "sync_folder", sync)
        with pytest.raises(HostError):
            regions.folders.take_over(ENC, 1, epoch=4)
        synced[:] = [""] * 5  # the disk works again
        assert regions.folders.take_over(ENC, 1, epoch=4) is False
        assert synced[5:] == [regions.folders.root]


def test_a_short_copy_is_an_error(regions: Regions, monkeypatch: pytest.MonkeyPatch) -> None:
    def copies_half(source: str, target: str) -> None:
        with open(source, "rb") as old, open(target, "wb") as new:
            new.write(old.read()[:-1])

    monkeypatch.setattr(region_takeover, "copy_file", copies_half)
    with pytest.raises(HostError, match="cannot take the folder of region"):
        regions.folders.take_over(ENC, 1, epoch=4)
    assert regions.names() == [f"{ENC}.1.from"]


def test_a_data_folder_that_was_moved_is_not_taken_over(regions: Regions) -> None:
    os.rename(regions.root, str(regions.root) + "2")
    with pytest.raises(HostError, match="cannot take the folder of region"):
        regions.folders.take_over(ENC, 1, epoch=4)


# --- back to one machine -----------------------------------------------------------------------------


def test_the_newest_generations_become_the_only_folders(regions: Regions) -> None:
    regions.folders.take_over(ENC, 1, epoch=4)
    regions.folders.take_over(ENC, 3, epoch=6)
    regions.write(3, b"4")
    regions.folders.make(["other"])
    (regions.root / half_name(ENC, 4, 7)).mkdir()
    assert end_generations(str(regions.root)) == [ENC]
    assert regions.names() == [ENC, "other"]
    assert regions.read(0) == [b"1", b"2", b"3", b"4"]
    assert end_generations(str(regions.root)) == []


def test_a_takeover_that_was_cut_off_is_undone(regions: Regions) -> None:
    (regions.root / ENC).rename(regions.root / source_name(ENC, 2))
    (regions.root / half_name(ENC, 2, 7)).mkdir()
    (regions.root / ENC).mkdir()  # made anew by an earlier owner
    assert end_generations(str(regions.root)) == [ENC]
    assert regions.names() == [ENC]
    assert regions.read(0) == [b"1", b"2", b"3"]


def test_a_death_on_the_way_back_loses_nothing(tmp_path: Path) -> None:
    for at in deaths():
        regions = Regions(tmp_path / str(at))
        regions.folders.make([ENC])
        regions.write(0, b"1", flush=True)
        regions.folders.take_over(ENC, 1, epoch=4)
        regions.write(1, b"2")
        regions.folders.take_over(ENC, 2, epoch=5)
        regions.write(2, b"3")
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, at)
            try:
                end_generations(str(regions.root))
                break
            except Died:
                pass
        end_generations(str(regions.root))
        assert regions.names() == [ENC]
        assert regions.read(0) == [b"1", b"2", b"3"], f"after a death at step {at}"
    assert at > 10, "it died somewhere"

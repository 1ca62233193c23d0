"""The folders of regions: which there are, which nobody names, and none begun where others are gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import DamagedData, HostError
from columnar.storage.memory import MemoryEngine
from columnar.storage.region_folders import RegionFolders
from columnar.storage.rocks import RocksEngine


def test_folders_that_no_table_has_are_found_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "regions"
    folders = RegionFolders(str(folder), MemoryEngine())
    for name in ("meta", "known", "left", "gone.deleted"):
        (folder / name).mkdir(parents=True)
    assert folders.unnamed(["known"]) == ["gone", "left"]
    assert sorted(os.listdir(folder)) == ["gone.deleted", "known", "left", "meta"]
    for name in ("half.new", "known.new", "known.tmp"):
        (folder / name).mkdir()
    assert folders.unnamed(["known"]) == ["gone", "half", "left"]
    assert RegionFolders(str(folder / "none"), MemoryEngine()).unnamed([]) == []


def test_a_catalogue_is_begun_in_an_empty_folder_and_beside_no_other_region(tmp_path: Path) -> None:
    folders = RegionFolders(str(tmp_path), MemoryEngine())
    assert folders.catalogue() == str(tmp_path / "meta")
    (tmp_path / "other").mkdir()
    with pytest.raises(DamagedData, match="catalogue of the 1 regions beside it, is missing"):
        folders.catalogue()


def test_no_region_is_made_where_the_folder_of_all_was_moved_away(tmp_path: Path) -> None:
    folders = RegionFolders(str(tmp_path / "regions"), RocksEngine(cache_bytes=1 << 20))
    with pytest.raises(HostError, match="is missing, with all that was written"):
        folders.make_beside_others(["one"])
    assert not os.listdir(tmp_path)
    (tmp_path / "regions").mkdir()
    folders.make_beside_others(["one"])
    assert folders.has("one")
    assert folders.is_untouched("one")
    folders.destroy("one")
    assert not folders.has("one")


@pytest.mark.parametrize("which", ["rename", "unlink", "rmdir"])
def test_a_region_that_an_earlier_leader_is_removing_too_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """A new leader removes what a drop has left, while a thread of the earlier leader still works on that drop."""
    folders = RegionFolders(str(tmp_path), RocksEngine(cache_bytes=1 << 20))
    folders.make(["one"])
    for name in ("1.sst", "2.sst"):
        (tmp_path / "one" / name).touch()
    call, calls = getattr(os, which), []

    def done_by_another(*args: Any, **kwargs: Any) -> None:
        calls.append(args)
        call(*args, **kwargs)
        call(*args, **kwargs)  # what this process finds then

    monkeypatch.setattr(os, which, done_by_another)
    folders.destroy("one")
    folders.destroy("one")  # a rename by another process leaves it the removal, too
    assert calls
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_catalogue_that_is_lost_beside_regions_is_not_begun_anew(tmp_path: Path, how: str) -> None:
    folders = RegionFolders(str(tmp_path), RocksEngine(cache_bytes=1 << 20))
    assert folders.catalogue() == str(tmp_path / "meta")
    folders.make(["a", "b"])
    if how == "empty":
        (tmp_path / "meta").mkdir()
    with pytest.raises(DamagedData, match=f"the catalogue of the 2 regions beside it, is {how}; put it back"):
        folders.catalogue()
    (tmp_path / "meta").mkdir(exist_ok=True)
    (tmp_path / "meta" / "CURRENT").touch()
    assert folders.catalogue() == str(tmp_path / "meta")


@pytest.fixture
def regions(tmp_path: Path) -> RegionFolders:
    """A store's: the catalogue and a region were opened, another region was not."""
    folders = RegionFolders(str(tmp_path / "regions"), RocksEngine(cache_bytes=1 << 20))
    folders.make(["meta"])
    folders._engine.open_store(folders.catalogue(), frozenset()).close()
    folders.make(["used", "new"])
    folders._engine.open_store(folders.path("used"), frozenset()).close()
    return folders


def emptied(folder: str) -> None:
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))


def test_a_region_that_was_opened_and_is_empty_is_damage_until_its_folder_is_made_anew(regions: RegionFolders) -> None:
    """It was opened as a region without rows."""
    path = regions.path("used")
    assert not regions._engine.is_emptied(path)
    emptied(path)
    assert not regions.is_untouched("used")
    assert regions._engine.is_emptied(path)
    with pytest.raises(DamagedData, match=r"is empty, and a store was in it: .*'columnar repair --data ") as damage:
        regions._engine.open_store(path, frozenset())
    assert os.listdir(path) == [], damage
    assert regions.is_untouched("new")
    regions._engine.open_store(regions.path("new"), frozenset()).close()
    regions.make(["used"])  # by a person's word
    assert regions.is_untouched("used")
    regions._engine.open_store(path, frozenset()).close()


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_catalogue_that_was_there_is_not_begun_anew(regions: RegionFolders, how: str) -> None:
    """Also where no other region is left to tell of it."""
    emptied(regions.path("meta"))
    if how == "missing":
        os.rmdir(regions.path("meta"))
    for name in ("used", "new"):
        regions.destroy(name)
    with pytest.raises(DamagedData, match=f"the catalogue .* is {how}; put it back"):
        regions.catalogue()


def test_a_note_goes_with_its_region_and_a_disk_that_takes_none_is_no_fault(
    regions: RegionFolders, tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    assert sorted(os.listdir(opened)) == ["meta", "used"]
    regions.destroy("used")
    assert os.listdir(opened) == ["meta"]
    regions.make(["used"])
    assert regions.is_untouched("used"), "a region of the same name, after a crash"
    (opened / "meta").unlink()
    opened.rmdir()
    opened.touch()  # no folder can be made
    regions._engine.open_store(regions.path("used"), frozenset()).close()
    emptied(regions.path("used"))
    assert regions.is_untouched("used"), "nobody knows better"

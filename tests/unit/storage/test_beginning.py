"""Folders in which a store was only begun are begun anew; those of a store that lost its head are left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from columnar.errors import DamagedData
from columnar.storage.api import Store
from columnar.storage.rocks import RocksEngine

SPACES = frozenset({"a"})


def put(store: Store) -> None:
    batch = store.batch()
    batch.put("a", b"1", b"")
    store.write_batch(batch)


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST"])
def test_a_store_that_lost_its_head_is_not_begun_anew(tmp_path: Path, name: str) -> None:
    store = RocksEngine().open_store(str(tmp_path), SPACES)
    put(store)
    store.close()
    (lost,) = tmp_path.glob(f"{name}*")
    lost.unlink()
    held = sorted(os.listdir(tmp_path))
    with pytest.raises(DamagedData, match=f"{name}.* is missing"):
        RocksEngine().open_store(str(tmp_path), SPACES)
    assert sorted(os.listdir(tmp_path)) == held


@pytest.mark.parametrize(
    "left",
    [
        {},
        {"MANIFEST-000001": b"", "000004.log": b""},
        {"CURRENT": b"MANIFEST-000001\n", "IDENTITY": b"x"},
        {"CURRENT": b"", "000004.log": b""},
    ],
)
def test_what_a_power_cut_left_of_a_beginning_is_no_obstacle(tmp_path: Path, left: dict[str, bytes]) -> None:
    for name, data in left.items():
        (tmp_path / name).write_bytes(data)
    store = RocksEngine().open_store(str(tmp_path), SPACES)
    put(store)
    assert store.get("a", b"1") == b""
    store.close()

"""A store that stands in its files closes without a write; any other flushes first; both open again with all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from columnar.errors import ColumnarError
from columnar.storage.api import StoreClosed
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore

SPACES = frozenset({"a", "b"})


class Counting:
    """A family that counts how often it is closed: each time is an fsync, and a flush."""

    def __init__(self, held: Any, closed: list[str], name: str) -> None:
        self._held, self._closed, self._name = held, closed, name

    def close(self) -> None:
        self._closed.append(self._name)
        self._held.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)


def counted(store: RocksStore) -> list[str]:
    closed: list[str] = []
    for name, held in store._dicts.items():
        store._dicts[name] = Counting(held, closed, name)
    return closed


def opened(path: Path) -> RocksStore:
    return RocksEngine().open_store(str(path / "store"), SPACES)


def put(store: RocksStore, key: bytes) -> None:
    batch = store.batch()
    batch.put("a", key, b"v")
    store.write_batch(batch)
    store.sync()


@pytest.mark.parametrize("how", ["only read", "flushed", "deleted in it and flushed"])
def test_a_store_that_stands_in_its_files_closes_without_a_flush(tmp_path: Path, how: str) -> None:
    store = opened(tmp_path)
    put(store, b"1")
    store.close()
    store = opened(tmp_path)
    if how != "only read":
        put(store, b"2")
        if how.startswith("deleted"):
            batch = store.batch()
            batch.delete_range("b", b"", b"x")
            store.write_batch(batch)
        store.files.flush()
    closed = counted(store)
    store.close()
    assert closed == []
    again = opened(tmp_path)  # nothing holds its lock any more
    assert again.get("a", b"1") == b"v"
    assert again.get("a", b"2") == (None if how == "only read" else b"v")
    again.close()


@pytest.mark.parametrize("what", ["put", "delete", "range"])
def test_a_store_with_anything_in_memory_is_flushed(tmp_path: Path, what: str) -> None:
    store = opened(tmp_path)
    batch = store.batch()
    if what == "put":
        batch.put("b", b"k", b"v")
    elif what == "delete":
        batch.delete("b", b"k")
    else:
        batch.delete_range("b", b"", b"x")
    store.write_batch(batch)
    closed = counted(store)
    store.close()
    assert sorted(closed) == sorted(SPACES | {"default"})
    opened(tmp_path).close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_closed_store_says_so_to_whoever_calls_it(tmp_path: Path, is_clean: bool) -> None:
    store = opened(tmp_path)
    batch = store.batch()
    batch.put("a", b"k", b"v")
    if not is_clean:
        store.write_batch(batch)
        batch = store.batch()
        batch.put("a", b"k", b"v")
    store.close()
    store.close()
    for call in (lambda: store.get("a", b"k"), store.sync, store.files.flush, lambda: store.write_batch(batch)):
        with pytest.raises(ColumnarError) as found:
            call()
        assert isinstance(found.value, StoreClosed)

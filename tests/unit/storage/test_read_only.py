"""A store opened for reading because its disk takes no writes: all that was written is read, every write refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.errors import HostError
from columnar.storage.api import Store
from columnar.storage.read_only import ReadOnlyStore, open_read_only
from columnar.storage.rocks import RocksEngine

CAUSE = HostError("the disk is full; free some room")


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """A store with a pair in a table file and one in its log, held open as a failed one may be."""
    store = RocksEngine().open_store(str(tmp_path / "store"), frozenset({"a"}))
    put(store, b"1", b"in a file")
    store.files.flush()
    put(store, b"2", b"in the log")
    store.sync()
    yield str(tmp_path / "store")
    store.close()


def put(store: Store, key: bytes, value: bytes) -> None:
    batch = store.batch()
    batch.put("a", key, value)
    store.write_batch(batch)


def opened(path: str) -> ReadOnlyStore:
    store = open_read_only(RocksEngine(), path, CAUSE)
    store.refuse_writes()
    return store


def test_all_is_read_and_nothing_written(path: str) -> None:
    before = {name: os.stat(os.path.join(path, name)).st_mtime_ns for name in os.listdir(path)}
    store = opened(path)
    assert list(store.scan("a", b"", None)) == [(b"1", b"in a file"), (b"2", b"in the log")]
    assert [key for key, _ in store.scan_reverse("a", b"", None)] == [b"2", b"1"]
    assert store.multi_get("a", [b"1", b"3"]) == [b"in a file", None]
    with pytest.raises(HostError) as refused:
        put(store, b"3", b"")
    assert refused.value is CAUSE
    files = store.files
    for step in (files.flush, files.compact, lambda: store.gather(store.batch()), lambda: store.drop_space("a")):
        with pytest.raises(HostError):
            step()
    store.close()
    assert {name: os.stat(os.path.join(path, name)).st_mtime_ns for name in os.listdir(path)} == before


def test_what_an_opening_writes_beside_is_left_out(path: str) -> None:
    store = open_read_only(RocksEngine(), path, CAUSE)
    put(store, b"3", b"a count")
    assert store.get("a", b"3") is None
    store.close()


def test_the_links_go_with_the_store(path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setattr("columnar.storage.read_only.IN_MEMORY", str(links))
    store = opened(path)
    assert list(links.iterdir())
    store.close()
    assert list(links.iterdir()) == []
    with pytest.raises(HostError):
        open_read_only(RocksEngine(), str(links), CAUSE)
    assert list(links.iterdir()) == []

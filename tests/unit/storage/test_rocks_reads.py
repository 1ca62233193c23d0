"""A get reads as little of a file however many keys are in it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from columnar.storage.api import SpaceOptions
from columnar.storage.rocks import RocksEngine

CACHE_BYTES = 128 * 1024
KEYS = 200_000  # their filter alone is larger than the cache
GETS = 1_000
READ = Path("/proc/self/io")


def key(n: int) -> bytes:
    return hashlib.md5(b"%d" % n, usedforsecurity=False).digest()


def bytes_read() -> int:
    """By this process, with read calls."""
    return int(READ.read_text().partition("rchar: ")[2].split()[0])


@pytest.mark.skipif(not READ.exists(), reason="the system does not tell what a process reads")
@pytest.mark.parametrize("cache", ["shared", "reserved", "none"])
def test_a_filter_is_not_read_whole_for_each_get(tmp_path: Path, cache: str) -> None:
    engine = RocksEngine(cache_bytes=CACHE_BYTES, in_memory_bytes=CACHE_BYTES)
    options = {"a": SpaceOptions(cache=cache)}  # type: ignore[arg-type]
    store = engine.open_store(str(tmp_path / "store"), frozenset({"a"}), options)
    for first in range(0, KEYS, 5_000):
        batch = store.batch(5_000)
        for n in range(first, first + 5_000):
            batch.put("a", key(n), b"")
        store.write_batch(batch)
    store.files.flush()
    store.files.compact(everything=True)
    absent = [key(KEYS + n) for n in range(10)]
    assert [store.get("a", one) for one in absent] == [None] * len(absent)
    before = bytes_read()
    for n in range(GETS):
        assert store.get("a", absent[n % len(absent)]) is None
    read = bytes_read() - before
    store.close()
    assert read < 40_000 * GETS, f"{read // GETS:,} bytes for each get of a key that is not there"

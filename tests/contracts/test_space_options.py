"""Options of spaces change no answer, and the engine does as they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.storage.api import DEFAULT_OPTIONS, Engine, SpaceOptions, Store
from columnar.storage.rocks import CACHE_BYTES, IN_MEMORY_CACHE_BYTES, RocksEngine
from tests.support.store_contents import SPACES, contents, filled

EVERY_OPTION = [
    SpaceOptions(compression, bloom, block_bytes, cache)  # type: ignore[arg-type]
    for compression in ("none", "snappy", "lz4", "zstd")
    for bloom, block_bytes, cache in ((True, None, "shared"), (False, 4_096, "reserved"), (True, 65_536, "none"))
]


@pytest.mark.parametrize("options", EVERY_OPTION, ids=str)
def test_options_change_no_answer(engine: Engine, path: str, options: SpaceOptions) -> None:
    store = engine.open_store(path, SPACES, {"a": options})
    assert (store.options_of("a"), store.options_of("b")) == (options, DEFAULT_OPTIONS)
    pairs = filled(store, "a")
    store.files.flush()
    assert contents(store, "a") == pairs
    assert store.get("a", b"none") is None
    store.close()
    again = engine.open_store(path, SPACES)  # whatever it was written with can be read
    assert contents(again, "a") == pairs
    again.close()


def test_options_change_while_the_space_is_open(engine: Engine, path: str) -> None:
    store = engine.open_store(path, SPACES)
    pairs = filled(store, "a")
    for options in EVERY_OPTION:
        store.set_options("a", options)
        assert store.options_of("a") == options
        store.files.compact(everything=True)
        assert contents(store, "a") == pairs
    store.close()


def test_a_space_is_added_with_options(store: Store) -> None:
    store.add_space("new", SpaceOptions("zstd"))
    assert store.options_of("new") == SpaceOptions("zstd")
    store.add_space("new", SpaceOptions("none"))  # it is there
    assert store.options_of("new") == SpaceOptions("zstd")
    store.drop_space("new")
    store.add_space("new")
    assert store.options_of("new") == DEFAULT_OPTIONS


def compression_of(path: str) -> set[str]:
    """What the engine wrote into the properties of its files."""
    known = {b"NoCompression": "none", b"Snappy": "snappy", b"LZ4": "lz4", b"ZSTD": "zstd"}
    data = [file.read_bytes() for file in Path(path).glob("*.sst")]
    assert data, "nothing was written"
    return {word for text in data for mark, word in known.items() if mark in text}


@pytest.mark.parametrize("compression", ["none", "snappy", "lz4", "zstd"])
def test_rocksdb_compresses_as_it_was_told(path: str, compression: str) -> None:
    store = RocksEngine().open_store(path, SPACES, {"a": SpaceOptions(compression)})  # type: ignore[arg-type]
    pairs = filled(store, "a")
    store.files.flush()
    size = sum(file.stat().st_size for file in Path(path).glob("*.sst"))
    assert compression_of(path) == {compression}
    assert (size > sum(map(len, pairs.values()))) == (compression == "none")
    store.close()


def test_rocksdb_compresses_as_it_is_told_while_open(path: str) -> None:
    store = RocksEngine().open_store(path, SPACES, {"a": SpaceOptions("none")})
    filled(store, "a")
    store.files.flush()
    assert store.set_options("a", SpaceOptions("zstd", False, 65_536))
    assert not store.set_options("a", SpaceOptions("zstd", False, 65_536, "reserved"))
    store.files.compact(everything=True)
    assert compression_of(path) == {"zstd"}
    options = max(Path(path).glob("OPTIONS-*")).read_text().split('[TableOptions/BlockBasedTable "a"]')[1]
    assert "block_size=65536" in options.split("[CFOptions")[0]
    assert "filter_policy=nullptr" in options.split("[CFOptions")[0]
    store.close()


def test_rocksdb_caches_as_it_was_told(path: str) -> None:
    """And a change of other options, which makes the engine's table options anew, keeps the cache."""
    engine = RocksEngine()
    store = engine.open_store(path, SPACES, {"a": SpaceOptions(cache="reserved"), "b": SpaceOptions(cache="none")})
    store.add_space("c")

    def capacities() -> list[int | None]:
        return [store._dicts[name].property_int_value("rocksdb.block-cache-capacity") for name in ("a", "b", "c")]

    expected = [IN_MEMORY_CACHE_BYTES, None, CACHE_BYTES]
    assert capacities() == expected
    for name, cache in (("a", "reserved"), ("b", "none"), ("c", "shared")):
        assert store.set_options(name, SpaceOptions("zstd", False, 4_096, cache))  # type: ignore[arg-type]
    assert capacities() == expected
    pairs = filled(store, "a")
    store.files.flush()
    assert contents(store, "a") == pairs
    assert engine._caches.reserved.get_usage() > sum(map(len, pairs.values()))
    store.close()

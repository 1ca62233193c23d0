"""While the engine is too busy to take writes over, reads go on and see them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.storage.api import StoreBusy
from columnar.storage.rocks import RocksEngine

KEYS = st.binary(min_size=1, max_size=2)
CHANGES = st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=2)), max_size=12)


def busy(_raw: Any) -> None:
    raise StoreBusy("behind with flushing")


@settings(max_examples=60)
@given(old=st.dictionaries(KEYS, st.binary(max_size=2), max_size=12), changes=CHANGES, bounds=st.tuples(KEYS, KEYS))
def test_scans_see_what_the_engine_has_not_taken(
    tmp_path_factory: pytest.TempPathFactory,
    old: dict[bytes, bytes],
    changes: dict[bytes, bytes | None],
    bounds: tuple[bytes, bytes],
) -> None:
    store = RocksEngine().open(str(tmp_path_factory.mktemp("busy") / "store"), frozenset({"a", "b"}))
    try:
        first = store.batch()
        for key, value in old.items():
            first.put("a", key, value)
        store.write(first)
        take_over = store._write_raw
        store._write_raw = busy  # type: ignore[method-assign]
        batch = store.batch()
        for key, latest in changes.items():
            if latest is None:
                batch.delete("a", key)
            else:
                batch.put("a", key, latest)
            batch.put("b", key, b"of another space")
        store.gather(batch)
        expected = {key: value for key, value in {**old, **changes}.items() if value is not None}
        low, high = min(bounds), max(bounds)
        inside = sorted((key, value) for key, value in expected.items() if low <= key < high)
        assert list(store.scan("a", b"", None)) == sorted(expected.items())
        assert list(store.scan("a", low, high)) == inside
        assert list(store.scan_back("a", low, high)) == inside[::-1]
        assert [store.get("a", key) for key in changes] == list(changes.values())
        store._write_raw = take_over  # type: ignore[method-assign]
        store.settle()
        assert list(store.scan("a", b"", None)) == sorted(expected.items())
    finally:
        store.close()


def test_a_write_that_the_engine_refuses_is_not_there(tmp_path: Path) -> None:
    store = RocksEngine().open(str(tmp_path / "store"), frozenset({"a"}))
    try:
        store._write_raw = busy  # type: ignore[method-assign]
        batch = store.batch()
        batch.put("a", b"k", b"v")
        with pytest.raises(StoreBusy):
            store.write(batch)
        assert store.get("a", b"k") is None
        assert list(store.scan("a", b"", None)) == []
    finally:
        store.close()

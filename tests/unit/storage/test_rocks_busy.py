"""While the engine is too busy to take writes over, reads go on and see them all."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.storage.api import StoreBusy
from columnar.storage.ownership import Ownership
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log import MARK, MARKS_END, mark

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
    store = RocksEngine().open_store(str(tmp_path_factory.mktemp("busy") / "store"), frozenset({"a", "b"}))
    try:
        first = store.batch()
        for key, value in old.items():
            first.put("a", key, value)
        store.write_batch(first)
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
        assert list(store.scan_reverse("a", low, high)) == inside[::-1]
        assert [store.get("a", key) for key in changes] == list(changes.values())
        store._write_raw = take_over  # type: ignore[method-assign]
        store.settle()
        assert list(store.scan("a", b"", None)) == sorted(expected.items())
    finally:
        store.close()


def test_what_was_gathered_outlasts_an_engine_that_is_behind(tmp_path: Path) -> None:
    """Each try uses the engine's own batch up, also one that the engine refuses."""
    store = RocksEngine().open_store(str(tmp_path / "store"), frozenset({"a"}), None, Ownership("r", 1))

    def stalls_at(files: int) -> None:
        triggers = dict.fromkeys(("level0_slowdown_writes_trigger", "level0_stop_writes_trigger"), str(files))
        store._dicts["a"].set_options(triggers)

    def gathered(key: bytes) -> None:
        batch = store.batch()
        batch.put("a", key, b"of " + key)
        store.gather(batch)

    try:
        capture = store.begin_capture(b"e" * 24, itertools.count(1).__next__)
        assert capture is not None
        gathered(b"1")
        store.settle()
        store.files.flush()
        capture.take()
        stalls_at(1)  # one file is there
        for key in (b"2", b"3"):
            gathered(key)
            for _ in range(2):
                with pytest.raises(StoreBusy):
                    store.settle()
            assert store.get("a", key) == b"of " + key
        stalls_at(36)
        gathered(b"4")
        store.settle()
        assert list(store.scan("a", b"", None)) == [(key, b"of " + key) for key in (b"1", b"2", b"3", b"4")]
        taken = capture.take()
        assert taken is not None
        assert [key for _, key, _, _ in taken[0][4]] == [b"2", b"3", b"4"]
        marks = [key for key, _ in store.scan("default", MARK, MARKS_END)]
        assert marks[-1] == mark(b"e" * 24, taken[0][2]), "the batch bears the mark of its record"
    finally:
        store.close()


def test_a_write_that_the_engine_refuses_is_not_there(tmp_path: Path) -> None:
    store = RocksEngine().open_store(str(tmp_path / "store"), frozenset({"a"}))
    try:
        store._write_raw = busy  # type: ignore[method-assign]
        batch = store.batch()
        batch.put("a", b"k", b"v")
        with pytest.raises(StoreBusy):
            store.write_batch(batch)
        assert store.get("a", b"k") is None
        assert list(store.scan("a", b"", None)) == []
    finally:
        store.close()

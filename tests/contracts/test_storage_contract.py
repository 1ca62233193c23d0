"""The promises of columnar.storage.api, over every implementation; those on options: ``test_space_options``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from columnar.errors import DamagedData, HostError
from columnar.storage.api import PAIR_COST, Engine, Store, StoreClosed
from columnar.storage.overlay import NO_BOUND
from columnar.storage.rocks import RocksEngine
from tests.support.store_contents import SPACES, contents, gather, put

both_sizes = pytest.mark.parametrize("rows", [1, 1_000])  # which are made of other things in RocksDB


@both_sizes
def test_a_batch_spans_spaces_and_its_order_counts(store: Store, rows: int) -> None:
    put(store, "a", k="old", gone="x")
    batch = store.batch(rows)
    batch.put("a", b"k", b"1")
    batch.delete("a", b"gone")
    batch.put("b", b"k", b"2")
    batch.put("a", b"k", b"3")
    batch.delete("b", b"k")
    batch.put("b", b"k", b"4")
    store.write_batch(batch)
    assert contents(store, "a") == {b"k": b"3"}
    assert contents(store, "b") == {b"k": b"4"}
    assert store.get("a", b"gone") is None
    assert store.multi_get("a", [b"k", b"none", b"k"]) == [b"3", None, b"3"]


@both_sizes
def test_a_range_delete_in_a_batch_spares_what_the_batch_puts_later(store: Store, rows: int) -> None:
    put(store, "a", a="1", b="1", c="1", d="1")
    batch = store.batch(rows)
    batch.put("a", b"bb", b"before")
    batch.delete_range("a", b"b", b"d")
    batch.put("a", b"bc", b"after")
    store.write_batch(batch)
    assert list(contents(store, "a")) == [b"a", b"bc", b"d"]


def test_scans_are_half_open_both_ways(store: Store) -> None:
    put(store, "a", a="1", b="2", c="3", d="4")
    assert [k for k, _ in store.scan("a", b"b", b"d")] == [b"b", b"c"]
    assert [k for k, _ in store.scan_reverse("a", b"b", b"d")] == [b"c", b"b"]
    assert [k for k, _ in store.scan_reverse("a", b"", None)] == [b"d", b"c", b"b", b"a"]
    assert [k for k, _ in store.scan_reverse("a", b"bb", b"cc")] == [b"c"]
    assert [k for k, _ in store.scan_reverse("a", b"", b"a")] == []


def test_iterators_made_together_see_one_state(store: Store) -> None:
    put(store, "a", a="1", b="1")
    put(store, "b", a="1")
    first, second, back = store.scan("a", b"", None), store.scan("b", b"", None), store.scan_reverse("a", b"", None)
    batch = store.batch()
    batch.put("a", b"a", b"2")
    batch.put("a", b"c", b"2")
    batch.put("b", b"a", b"2")
    store.write_batch(batch)
    assert dict(first) == {b"a": b"1", b"b": b"1"}
    assert dict(second) == {b"a": b"1"}
    assert dict(back) == {b"a": b"1", b"b": b"1"}


def test_closing_and_opening_keeps_everything(engine: Engine, path: str) -> None:
    store = engine.open_store(path, SPACES)
    put(store, "a", k="v")
    store.sync()
    store.close()
    again = engine.open_store(path, SPACES | {"c"})
    assert contents(again, "a") == {b"k": b"v"}
    assert again.spaces >= {"a", "b", "c"}
    again.close()


def test_a_folder_has_one_owner(engine: Engine, path: str, store: Store) -> None:
    with pytest.raises(HostError):
        engine.open_store(path, SPACES)
    put(store, "a", still="open")


def test_spaces_come_and_go(store: Store) -> None:
    store.add_space("new")
    put(store, "new", k="v")
    store.drop_space("new")
    assert "new" not in store.spaces
    store.add_space("new")
    assert contents(store, "new") == {}


def test_a_checkpoint_is_a_copy_of_that_moment(engine: Engine, store: Store, tmp_path: Path) -> None:
    put(store, "a", k="then")
    store.files.checkpoint(str(tmp_path / "copy"))
    put(store, "a", k="now")
    copy = engine.open_store(str(tmp_path / "copy"), SPACES)
    assert contents(copy, "a") == {b"k": b"then"}
    assert contents(store, "a") == {b"k": b"now"}
    copy.close()


def test_a_folder_is_untouched_until_a_store_is_opened_in_it(engine: Engine, path: str) -> None:
    engine.make_folders([path, path + "2"])
    assert engine.has_folder(path)
    assert engine.is_untouched(path)
    assert not engine.exists(path)
    store = engine.open_store(path, SPACES)
    put(store, "a", k="1")
    store.sync()
    store.close()
    engine.make_folders([path])  # nothing is begun anew
    assert not engine.is_untouched(path)
    assert engine.exists(path)
    assert engine.is_untouched(path + "2")
    again = engine.open_store(path, SPACES)
    assert again.get("a", b"k") == b"1"
    again.close()


def test_destroy_leaves_nothing(engine: Engine, path: str) -> None:
    store = engine.open_store(path, SPACES)
    put(store, "a", k="v")
    store.close()
    assert engine.exists(path)
    engine.destroy(path)
    assert not engine.exists(path)
    again = engine.open_store(path, SPACES)
    assert contents(again, "a") == {}
    again.close()


KEYS = st.binary(min_size=0, max_size=3)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(["a", "b"]), KEYS, st.binary(max_size=4)),
        st.tuples(st.just("delete"), st.sampled_from(["a", "b"]), KEYS, st.just(b"")),
        st.tuples(st.just("delete_range"), st.sampled_from(["a", "b"]), KEYS, KEYS),
    ),
    max_size=8,
)


def apply_to_model(model: dict[str, dict[bytes, bytes]], operations: list[Any]) -> None:
    for verb, space, key, value in operations:
        if verb == "put":
            model[space][key] = value
        elif verb == "delete":
            model[space].pop(key, None)
        else:
            for doomed in [k for k in model[space] if key <= k < value]:
                del model[space][doomed]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(batches=st.lists(OPERATIONS, max_size=6), bounds=st.tuples(KEYS, KEYS))
def test_any_batches_equal_a_dictionary(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, batches: list[Any], bounds: tuple[bytes, bytes]
) -> None:
    make: Callable[[], str] = lambda: str(tmp_path_factory.mktemp("any") / "store")  # noqa: E731
    store = engine.open_store(make(), SPACES)
    model: dict[str, dict[bytes, bytes]] = {"a": {}, "b": {}}
    for operations in batches:
        batch = store.batch()
        for verb, space, key, value in operations:
            if verb == "delete_range" and key > value:
                key, value = value, key
            getattr(batch, verb)(space, key, *([] if verb == "delete" else [value]))
        store.write_batch(batch)
        apply_to_model(
            model, [(v, s, *sorted((k, x))) if v == "delete_range" else (v, s, k, x) for v, s, k, x in operations]
        )
    low, high = min(bounds), max(bounds)
    for space, expected in model.items():
        assert contents(store, space) == expected
        inside = sorted((k, v) for k, v in expected.items() if low <= k < high)
        assert list(store.scan(space, low, high)) == store.range_within(space, low, high, NO_BOUND) == inside
        assert list(store.scan_reverse(space, low, high)) == inside[::-1]
        cost = sum(PAIR_COST + len(value) for _, value in inside)
        assert store.range_within(space, low, high, cost) == inside
        if inside:
            assert store.range_within(space, low, high, cost - PAIR_COST - len(inside[-1][1]) - 1) is None
    store.close()


def test_a_scan_keeps_its_bound_while_memory_is_used_anew(store: Store) -> None:
    """The engine must hold the bytes of the bound itself: the caller's may be gone at once."""
    batch = store.batch()
    for row in range(50):
        for column in range(3):
            batch.put("a", b"%04d\x00\x01%d" % (row, column), b"v")
    store.write_batch(batch)
    for row in range(50):
        scans = [store.scan("a", b"%04d\x00\x01" % row, b"%04d" % row + b"\x00\x02") for _ in range(20)]
        litter = [b"%d" % n * (n % 40) for n in range(400)]
        assert [len(list(scan)) for scan in scans] == [3] * 20
        del litter


def test_a_large_batch_comes_after_what_was_gathered(engine: Engine, path: str) -> None:
    store = engine.open_store(path, SPACES)
    gather(store, ("a", b"k", b"1"), ("a", b"kept", b"1"), ("a", b"gone", b"1"))
    large = store.batch(1_000)
    large.put("a", b"k", b"2")
    large.delete("a", b"gone")
    assert large.size_bytes() == 6
    assert contents(store, "a") == {b"k": b"1", b"kept": b"1", b"gone": b"1"}
    store.gather(large)
    assert (store.get("a", b"k"), store.get("a", b"gone")) == (b"2", None)
    gather(store, ("a", b"k", b"3"))
    store.settle()
    store.sync()
    store.close()
    again = engine.open_store(path, SPACES)
    assert contents(again, "a") == {b"k": b"3", b"kept": b"1"}
    again.close()


@both_sizes
def test_a_closed_store_says_so(store: Store, rows: int) -> None:
    put(store, "a", k="1")
    batch = store.batch(rows)
    store.close()
    store.close()
    for call in (
        lambda: store.get("a", b"k"),
        lambda: store.multi_get("a", [b"k"]),
        lambda: list(store.scan("a", b"", None)),
        lambda: store.range_within("a", b"", b"z", NO_BOUND),
        lambda: list(store.scan_reverse("a", b"", None)),
        lambda: store.write_batch(batch),
        store.sync,
    ):
        with pytest.raises(StoreClosed, match="closed"):
            call()


def test_a_missing_folder_is_told_from_an_untouched_one(tmp_path: Path) -> None:
    engine, path = RocksEngine(), str(tmp_path / "region")
    assert not engine.has_folder(path)
    assert not engine.is_untouched(path)
    (tmp_path / "a file").touch()
    with pytest.raises(HostError, match=r"cannot make the folder .*a file"):
        engine.make_folders([path, str(tmp_path / "a file")])
    assert engine.has_folder(path)
    engine.destroy(path)
    assert not engine.has_folder(path)


def test_destroying_goes_on_where_a_crash_left_it(tmp_path: Path) -> None:
    engine, path = RocksEngine(), tmp_path / "region"
    engine.open_store(str(path), SPACES).close()
    path.rename(tmp_path / "region.deleted")
    (tmp_path / "region.new").mkdir()
    (tmp_path / "region.tmp").mkdir()  # the engine's own name for a checkpoint that it is making
    engine.destroy(str(path))
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_told_apart(tmp_path: Path) -> None:
    engine, path = RocksEngine(), tmp_path / "region"
    store = engine.open_store(str(path), SPACES)
    batch = store.batch()
    for n in range(2_000):
        batch.put("a", b"%05d" % n, b"%d" % (n * 7919) * 20)
    store.write_batch(batch)
    store.files.flush()
    store.close()
    for file in path.glob("*.sst"):
        data = bytearray(file.read_bytes())
        data[100 : len(data) // 2] = bytes(len(data) // 2 - 100)
        file.write_bytes(bytes(data))
    reopened = RocksEngine().open_store(str(path), SPACES)
    for call in (
        lambda: reopened.get("a", b"00001"),
        lambda: reopened.multi_get("a", [b"00001"]),
        lambda: list(reopened.scan("a", b"", None)),
        lambda: list(reopened.scan("a", b"", b"99")),
        lambda: reopened.range_within("a", b"", b"99", NO_BOUND),
        lambda: list(reopened.scan_reverse("a", b"", None)),
    ):
        with pytest.raises(DamagedData):
            call()
    reopened.close()


def test_every_read_sees_what_was_gathered(store: Store) -> None:
    put(store, "a", old="1", gone="1")
    gather(store, ("a", b"old", b"2"), ("a", b"gone", None), ("b", b"new", b"3"))
    gather(store, ("a", b"old", b"4"))
    assert (store.get("a", b"old"), store.get("a", b"gone"), store.get("b", b"new")) == (b"4", None, b"3")
    assert store.multi_get("a", [b"gone", b"old", b"none"]) == [None, b"4", None]
    assert list(store.scan_reverse("b", b"", None)) == [(b"new", b"3")]
    gather(store, ("b", b"new", None))
    assert contents(store, "b") == {}
    assert store.get("b", b"new") is None


def test_what_was_gathered_comes_before_what_is_written_after_it(store: Store) -> None:
    gather(store, ("a", b"k", b"gathered"))
    put(store, "a", k="written")
    assert store.get("a", b"k") == b"written"
    store.settle()
    assert contents(store, "a") == {b"k": b"written"}


def test_a_range_delete_is_gathered_in_its_turn(store: Store) -> None:
    gather(store, ("a", b"1", b"x"), ("a", b"2", b"x"))
    batch = store.batch()
    batch.delete_range("a", b"1", b"2")
    store.gather(batch)
    gather(store, ("a", b"3", b"x"))
    assert store.get("a", b"1") is None
    assert contents(store, "a") == {b"2": b"x", b"3": b"x"}


def test_gathered_settled_and_synced_is_there_after_opening(engine: Engine, path: str) -> None:
    store = engine.open_store(path, SPACES)
    for number in range(600):  # over what the engine takes at once
        gather(store, ("a", b"%03d" % number, b"v" * 1_000))
    store.settle()
    store.sync()
    store.close()
    again = engine.open_store(path, SPACES)
    try:
        assert len(contents(again, "a")) == 600
    finally:
        again.close()


def test_a_dropped_space_takes_what_was_gathered_with_it(engine: Engine, path: str) -> None:
    store = engine.open_store(path, SPACES | {"c"})
    gather(store, ("c", b"k", b"v"), ("a", b"k", b"v"))
    store.drop_space("c")
    store.settle()
    store.sync()
    store.close()
    again = engine.open_store(path, SPACES | {"c"})
    assert (contents(again, "a"), contents(again, "c")) == ({b"k": b"v"}, {})
    again.close()


def test_a_store_is_closed_and_its_spaces_dropped_while_a_thread_compacts(path: str) -> None:
    store = RocksEngine().open_store(path, SPACES | {"c"})
    for _ in range(4):
        batch = store.batch()
        for _ in range(4_000):
            batch.put("a", os.urandom(16), os.urandom(500))
        store.write_batch(batch)
        store.files.flush()
    ended: list[BaseException | None] = []

    def compact() -> None:
        try:
            for _ in range(50):
                store.files.compact(everything=True)
            ended.append(None)
        except StoreClosed as error:
            ended.append(error)

    thread = threading.Thread(target=compact)
    thread.start()
    store.drop_space("c")
    assert "c" not in store.spaces
    store.close()
    thread.join()
    assert ended
    again = RocksEngine().open_store(path, SPACES | {"c"})
    assert len(contents(again, "a")) == 16_000
    again.close()


def sorted_file(engine: Engine, path: Path, *pairs: tuple[bytes, bytes]) -> str:
    file = engine.sorted_file(str(path))
    for key, value in pairs:
        file.put_pair(key, value)
    file.finish()
    return str(path)


def test_ingested_files_are_as_if_written_last(engine: Engine, store: Store, path: str, tmp_path: Path) -> None:
    put(store, "a", a="1", k="old", z="1")
    gather(store, ("a", b"m", b"gathered"), ("a", b"n", b"gathered"))
    first = sorted_file(engine, tmp_path / "1.sst", (b"k", b"new"), (b"m", b"new"))
    second = sorted_file(engine, tmp_path / "2.sst", (b"x", b"1"), (b"y", b"2"))
    other = sorted_file(engine, tmp_path / "3.sst", (b"k", b"b"))
    before = store.scan("a", b"", None)
    store.files.ingest({"a": [first, second], "b": [other]})
    assert len(list(before)) == 5
    expected = {b"a": b"1", b"k": b"new", b"m": b"new", b"n": b"gathered", b"x": b"1", b"y": b"2", b"z": b"1"}
    assert contents(store, "a") == expected
    assert contents(store, "b") == {b"k": b"b"}
    put(store, "a", k="newest")
    store.sync()
    store.close()
    assert not any((tmp_path / name).exists() for name in ("1.sst", "2.sst", "3.sst")), "moved, not copied"
    again = engine.open_store(path, SPACES)
    assert contents(again, "a") == expected | {b"k": b"newest"}
    again.close()


def test_a_sorted_file_takes_rising_keys_only(engine: Engine, tmp_path: Path) -> None:
    file = engine.sorted_file(str(tmp_path / "x.sst"))
    file.put_pair(b"b", b"1")
    for key in (b"a", b"b"):
        with pytest.raises(ValueError, match="rise strictly"):
            file.put_pair(key, b"1")


def test_reading_needs_no_ownership_and_changes_nothing(engine: Engine, store: Store, path: str) -> None:
    put(store, "a", k="v")
    gather(store, ("a", b"g", b"v"))
    store.settle()
    store.sync()
    reader = engine.open_reading(path)
    assert contents(reader, "a") == {b"g": b"v", b"k": b"v"}
    assert reader.get("a", b"k") == b"v"
    batch = reader.batch()
    batch.put("a", b"k", b"changed")
    with pytest.raises(HostError):
        reader.write_batch(batch)
    reader.close()
    put(store, "a", k="still open")
    with pytest.raises(HostError, match="no store"):
        engine.open_reading(path + ".none")

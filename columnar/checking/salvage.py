"""Salvaging the readable part of a damaged region into the store of a new region, and listing the lost key ranges.

A block whose checksum does not match stops every reader.  The engine can read on from a key after the block, so such a
key is searched for: in growing steps until a key is readable, then by halving.  The rows of a damaged block's range in
other files are dropped too, because they may be older, and nobody can tell.

Blocks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from columnar.backup.region_builder import FILE_BYTES
from columnar.errors import ColumnarError, DamagedData, abbreviate
from columnar.model.schema import Table
from columnar.regions.read.family_view import views_of
from columnar.regions.region import spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import Engine, SortedFile, Store
from columnar.storage.durable_files import write_durably
from columnar.storage.file_copies import link_folder
from columnar.storage.layout import split_cell_key
from columnar.storage.rocks_opening import CURRENT
from columnar.storage.synced_bound import SYNCED

LIST: Final = "MANIFEST-"  # and a number: the engine's list of files
EXTRA_BYTES: Final = 16  # finer than the keys that are there, so that none readable is stepped over


class Lost(NamedTuple):
    space: str
    after: bytes  # the last key that was read; empty: none
    to: bytes | None  # the first that is readable again; None: none is

    @property
    def text(self) -> str:
        first = split_cell_key(self.after)[0]
        last = split_cell_key(self.to)[0] if self.to is not None else None
        first_lost = f"row '{abbreviate(first)}'" if self.after else "the first row"
        before = "the last row" if last is None else f"row '{abbreviate(last)}'"
        return f"lost in {self.space}: from {first_lost} to {before}"


class Salvaged(NamedTuple):
    pairs: int
    lost: list[Lost]
    engine_repair: str  # the engine's repairs before anything could be read


def salvage(engine: Engine, path: str, target: str, table: Table, *, can_be_opened: bool) -> Salvaged:
    """Make a store at ``target`` from the readable part of the store at ``path``, which stays as it is."""
    source, repaired = path, ""
    if not can_be_opened:
        source = target + ".mended"
        shutil.rmtree(source, ignore_errors=True)
        link_folder(path, source)
        if _names_its_list(engine, path, source):
            repaired = "the file CURRENT was made anew, and names the newest list of files"
        else:
            engine.repair_store(source)
            repaired = "its list of table files was made anew; what stood only in missing files or damaged logs is lost"
    damaged = engine.open_reading(source)
    try:
        found = _saved(engine, damaged, target, table)
    finally:
        damaged.close()
        if not can_be_opened:
            shutil.rmtree(source, ignore_errors=True)
    return Salvaged(found.pairs, found.lost, repaired)


def _names_its_list(engine: Engine, path: str, source: str) -> bool:
    """Write a missing ``CURRENT`` that names the newest ``MANIFEST`` at ``source``; return whether the copy then opens.

    The engine's own repair would lose writes that stand in logs alone, because it knows no families without the
    ``MANIFEST``.
    """
    if os.path.exists(os.path.join(source, CURRENT)):
        return False  # something else is damaged
    lists = [name for name in os.listdir(source) if name.startswith(LIST) and name.removeprefix(LIST).isdigit()]
    if not lists:
        return False
    newest = max(lists, key=lambda name: int(name.removeprefix(LIST)))
    write_durably(os.path.join(source, CURRENT), f"{newest}\n".encode())
    with suppress(FileNotFoundError):
        shutil.copy(os.path.join(path, SYNCED), source)  # says whether that is all
    try:
        engine.open_reading(source).close()
    except ColumnarError:
        return False
    return True


def _saved(engine: Engine, damaged: Store, target: str, table: Table) -> Salvaged:
    folder = target + ".sorted"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    store = engine.open_store(target, spaces_of(table), options_of_spaces(table))
    try:
        lost: list[Lost] = []
        pairs = 0
        for space in sorted(damaged.spaces & store.spaces):
            pairs += _copy_space(engine, damaged, store, space, folder, lost)
        _drop_headless_versions(store, table, lost)
        store.sync()
    finally:
        store.close()
        shutil.rmtree(folder, ignore_errors=True)
    return Salvaged(pairs, lost, "")


def _copy_space(engine: Engine, damaged: Store, store: Store, space: str, folder: str, lost: list[Lost]) -> int:
    count = size = 0
    file: SortedFile | None = None
    paths: list[str] = []
    for found in _readable(damaged, space):
        if isinstance(found, Lost):
            lost.append(found)
            continue
        if file is None or size >= FILE_BYTES:
            if file is not None:
                file.finish()
            paths.append(os.path.join(folder, f"{space.encode().hex()}-{len(paths)}.sst"))
            file, size = engine.sorted_file(paths[-1]), 0
        file.put_pair(*found)
        count, size = count + 1, size + len(found[0]) + len(found[1])
    if file is not None:
        file.finish()
        store.files.ingest({space: paths})
    return count


def _drop_headless_versions(store: Store, table: Table, lost: list[Lost]) -> None:
    """Drop older versions of cells whose newest version is lost: to show them would be a guess (``row_draft`` I1)."""
    by_space = {view.space: view for view in views_of(table).values()}
    batch = store.batch()
    for gap in lost:
        view = by_space.get(gap.space)
        if view is not None:
            number = view.number.to_bytes(2, "big")
            stop = number + gap.to if gap.to is not None else (view.number + 1).to_bytes(2, "big")
            # A version key continues with 00 00 after its cell key, so the versions of ``after`` end before 00 01.
            start = number + gap.after + b"\x00\x01" if gap.after else number
            batch.delete_range(VERSIONS_SPACE, start, stop)
    store.write_batch(batch)


def _readable(store: Store, space: str) -> Iterator[tuple[bytes, bytes] | Lost]:
    start, last = b"", b""
    while True:
        try:
            for pair in store.scan(space, start, None):
                last = pair[0]
                yield pair
            return
        except DamagedData:
            begin = last + b"\x00" if last else b""
            again = _first_readable(lambda key: _key_from(store, space, key), max(start, begin))
            yield Lost(space, last, again)
            if again is None:
                return
            start = again


def _key_from(store: Store, space: str, key: bytes) -> bytes | None:
    """Return the first key at or after ``key``; None at the end.  Raises DamagedData."""
    pair = next(iter(store.scan(space, key, None)), None)
    return pair[0] if pair is not None else None


def _first_readable(key_from: Callable[[bytes], bytes | None], after: bytes) -> bytes | None:
    """Return the first readable key beyond ``after`` that steps and halving find; None if there is none.

    ``bad`` is always in the damage and ``high`` never, so an end of the damage lies between them.
    """
    width = max(len(after), 1) + EXTRA_BYTES
    bad, step = int.from_bytes(after.ljust(width, b"\x00"), "big"), 1
    base, high, top = bad, (1 << 8 * width) - 1, (1 << 8 * width) - 1
    found: bytes | None = None

    def is_damaged(place: int) -> bool:
        nonlocal found
        try:
            key = key_from(place.to_bytes(width, "big"))
        except DamagedData:
            return True
        found = key if key is not None else found
        return False

    while bad < top:
        tried = min(base + step, top)
        if not is_damaged(tried):
            high = tried
            break
        bad, step = tried, step * 2
    while high - bad > 1:
        middle = (high + bad) // 2
        if is_damaged(middle):
            bad = middle
        else:
            high = middle
    return found

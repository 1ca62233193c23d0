"""Verification of a store's folder before RocksDB opens it: is everything there that was surely on disk?

RocksDB takes a list of files (``MANIFEST``) that lost its end for an older one, and removes the tables that it does not
name; it takes a log with a flipped bit for one that a power cut ended there, and forgets what follows; a missing log
likewise.  So no store is opened, for writing or for reading, before this check.

Invariants:
    I1. The list of files that ``CURRENT`` names is whole up to the bound (``synced_bound``), and is not an older one.
    I2. No log is missing that the list of files still needs, and operations 1, 2, 3 ... without a gap
        are in tables or in these logs, up to the bound at least.  Single numbers in a table are those of an
        ingestion, which is in no log.
    I3. No operation is in the logs twice: they only grow.
    I4. If there is no bound for that list of files: each table that it never named has a log or another table beside
        it that accounts for it.

I1 and I2 detect a list of files that lost a flush which was noted after the bound: the log before it is gone.  A list
that lost a merge names tables that are gone, which RocksDB detects, or that are there, and then no data is lost.
Other tables without a name in the list are no fault: a flush, a merge or an ingestion that was killed leaves them, and
its log, its sources or its bound still have the data.  Data after the bound was never acknowledged, and ends at its
first damage.

Costs a read of the list of files and of the logs: some 0.5 ms, and 1.3 us for each batch in a log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.file_copies import LOG_FILE, TABLE_FILE
from columnar.storage.rocks_errors import repair_advice
from columnar.storage.rocks_manifest import BATCH_BYTES, Manifest, Records, batch_head, read_manifest
from columnar.storage.synced_bound import Bound, manifest_of, read_bound

_NUMBERED: Final = re.compile(r"(\d+)(\.\w+)")


@dataclass(frozen=True, slots=True)
class Verified:
    spaces: frozenset[str]
    sequence: int  # of the last operation that was surely synced; 0: unknown


def verified(folder: str) -> Verified:
    """Verify the folder; returns what an opening must find.  DamagedData, OSError."""
    try:
        bound = read_bound(folder)
        number, path = manifest_of(folder)
        is_known = bound is not None and bound.manifest == number
        manifest = _manifest(path, bound.opened if bound is not None and is_known else None)
        if bound is not None:
            _check_manifest(manifest, number, path, bound)
        tables, logs = _numbered(folder)
        _check_logs(folder, manifest, [log for log in logs if log >= manifest.oldest_log], bound, is_known=is_known)
        if not is_known:
            _check_unnamed(manifest, tables, folder, logs)
    except ValueError as error:
        raise DamagedData(f"{folder}: {error}; {repair_advice(folder)}") from error
    return Verified(frozenset(manifest.families.values()), bound.certain if bound is not None else 0)


def _manifest(path: str, opened: int | None) -> Manifest:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        raise DamagedData(f"{path} is missing; {repair_advice(path)}") from None
    try:
        return read_manifest(data, opened)
    except DamagedData as error:
        raise DamagedData(f"{path} {error.text}; {repair_advice(path)}") from error


def _check_manifest(manifest: Manifest, number: int, path: str, bound: Bound) -> None:
    """Raise DamagedData unless I1 is true."""
    if number < bound.manifest:
        raise DamagedData(
            f"{path} is not the newest list of files, MANIFEST-{bound.manifest:06d} is; {repair_advice(path)}"
        )
    if number == bound.manifest and manifest.end < bound.length:
        text = f"{path} is damaged or was cut at byte {manifest.end}: {bound.length} were synced"
        raise DamagedData(f"{text}; {repair_advice(path)}")


def _numbered(folder: str) -> tuple[set[int], list[int]]:
    """Return the numbers of the folder's tables, and of its logs, ascending."""
    tables, logs = set(), []
    for name in os.listdir(folder):
        found = _NUMBERED.fullmatch(name)
        if found is not None and found[2] == TABLE_FILE:
            tables.add(int(found[1]))
        elif found is not None and found[2] == LOG_FILE:
            logs.append(int(found[1]))
    return tables, sorted(logs)


def _check_logs(folder: str, manifest: Manifest, logs: Sequence[int], bound: Bound | None, *, is_known: bool) -> None:
    """I2, I3; ``logs``: those that are needed."""
    is_named = is_known and manifest.oldest_log > manifest.known_log  # by a flush: the log was there
    chain = _Chain(manifest)
    for log in logs:
        chain.follow(_log_path(folder, log))
    base = manifest.flushed_to
    if is_named and chain.begins_in(_log_path(folder, manifest.oldest_log)):
        base = chain.first - 1  # all before it is in tables
    elif is_named:
        base = max([base, *(highest for log, highest in manifest.flushes if log <= manifest.oldest_log)])
        if logs != [manifest.oldest_log]:  # RocksDB begins no other beside an empty one
            chain.say(f"{_log_path(folder, manifest.oldest_log)} is missing or damaged")
    end = chain.contiguous_end(base)
    if bound is not None and end < bound.certain:
        where = chain.fault or f"{folder}: its logs end too early"
        lost = f"of {bound.sequence} operations that were synced those behind {end} cannot be read"
        raise DamagedData(f"{where}: {lost}; {repair_advice(folder)}")


def _log_path(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number:06d}{LOG_FILE}")


class _Chain:
    """The operations in a store's logs."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._spans: list[tuple[int, int, str]] = []  # without a gap: the first, the last, the log it begins in
        self.fault = ""  # the first

    def follow(self, path: str) -> None:
        with open(path, "rb") as file:
            records = Records(file.read())
        begun, seen = self._spans[-1][:2] if self._spans else (0, 0)
        for record in records:
            if len(record) < BATCH_BYTES:
                self._seen(begun, seen)
                self.say(f"{path} is damaged before byte {records.end}")
                return
            sequence, count = batch_head(record)
            if sequence == seen + 1 and begun:
                seen += count
            elif count:  # RocksDB begins a log with one of none
                if begun and sequence <= seen:
                    raise DamagedData(f"{path}: operation {sequence} stands there twice; {repair_advice(path)}")
                self._seen(begun, seen)
                begun, seen = sequence, sequence + count - 1
                self._spans.append((begun, seen, path))
        self._seen(begun, seen)
        if records.fault:
            self.say(f"{path} is damaged or was cut at byte {records.end}")

    def _seen(self, begun: int, last: int) -> None:
        """The newest span goes as far as that."""
        if begun:
            self._spans[-1] = (begun, last, self._spans[-1][2])

    def begins_in(self, path: str) -> bool:
        return bool(self._spans) and self._spans[0][2] == path

    @property
    def first(self) -> int:
        return self._spans[0][0]

    def say(self, fault: str) -> None:
        self.fault = self.fault or fault

    def contiguous_end(self, base: int) -> int:
        """How far operations go without a gap, where those up to ``base`` are in tables."""
        for first, last, path in self._spans:
            base = self._with_ingested(base, first - 1)
            if first > base + 1:
                self.say(f"{path}: operation {base + 1} is missing before {first}")
                return base
            base = max(base, last)
        return self._with_ingested(base, self._manifest.sequence)

    def _with_ingested(self, base: int, to: int) -> int:
        while base < to and base + 1 in self._manifest.alone:
            base += 1
        return base


def _check_unnamed(manifest: Manifest, tables: set[int], folder: str, logs: Sequence[int]) -> None:
    """I4."""
    first = manifest.first_file
    unnamed = [number for number in sorted(tables - manifest.named) if first is None or number >= first]
    if unnamed and not manifest.tables and not any(os.path.getsize(_log_path(folder, log)) for log in logs):
        text = f"{folder}: nothing accounts for its table {unnamed[0]:06d}{TABLE_FILE}, its list of files lost its end"
        raise DamagedData(f"{text}; {repair_advice(folder)}")

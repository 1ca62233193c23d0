"""Verification of a store's folder before RocksDB opens it: everything that was certainly on disk must be found.

RocksDB takes a MANIFEST that lost its end for an older state, and removes the tables that it does not name.  RocksDB
takes a log with a flipped bit for a log that a power cut ended there, and discards what follows; it treats a missing
log likewise.  So no store is opened, for writing or for reading, before this check.

Invariants:
    I1. The MANIFEST that ``CURRENT`` names is complete up to the bound (``synced_bound``), and is not an older one.
    I2. No log is missing that the MANIFEST still needs, and operations 1, 2, 3 ... are in tables or in these logs
        without a gap, at least up to the bound.  A table with a single number may be that of an ingestion, which is
        in no log.
    I3. No operation is in the logs twice, because logs only grow.
    I4. If a MANIFEST has no bound and the folder has tables that it never named, something accounts for these tables:
        the MANIFEST names a table, or a log is not empty.

I1 and I2 detect that the MANIFEST lost the edit of a flush that was noted after the bound, because the log before the
flush is missing.  If the MANIFEST lost the edit of a compaction, it names the compacted tables.  Either these tables
are missing, which RocksDB detects, or they exist, and no data is lost.  Other tables that the MANIFEST does not name
are no fault: a killed flush, compaction or ingestion leaves such tables.  Then the log or the compacted tables still
have the data, and the bound does not include the ingestion.  Data after the bound was never acknowledged, and ends at
its first damage.

The check reads the MANIFEST and the logs: some 0.5 ms, and 1.3 us for each batch in a log.
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
    sequence: int  # of the last operation that was certainly synced; 0: unknown


def verified(folder: str) -> Verified:
    """Verify the folder; returns its spaces and the sequence that an opening must find.

    Raises DamagedData, OSError.
    """
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
    """Raise DamagedData unless I1 holds."""
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
    """Raise DamagedData unless I2 and I3 hold; ``logs`` are the logs that the MANIFEST needs."""
    is_named = is_known and manifest.oldest_log > manifest.known_log  # named by a flush, so the log existed
    chain = _Chain(manifest)
    for log in logs:
        chain.follow(_log_path(folder, log))
    base = manifest.flushed_to
    if is_named and chain.begins_in(_log_path(folder, manifest.oldest_log)):
        base = chain.first - 1  # all operations before it are in tables
    elif is_named:
        base = max([base, *(highest for log, highest in manifest.flushes if log <= manifest.oldest_log)])
        if logs != [manifest.oldest_log]:  # RocksDB begins no second log beside an empty one
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
        self._spans: list[tuple[int, int, str]] = []  # without a gap: first and last number, first log
        self.fault = ""  # the first fault

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
            elif count:  # RocksDB begins a log with an empty batch
                if begun and sequence <= seen:
                    raise DamagedData(f"{path}: operation {sequence} stands there twice; {repair_advice(path)}")
                self._seen(begun, seen)
                begun, seen = sequence, sequence + count - 1
                self._spans.append((begun, seen, path))
        self._seen(begun, seen)
        if records.fault:
            self.say(f"{path} is damaged or was cut at byte {records.end}")

    def _seen(self, begun: int, last: int) -> None:
        """Extend the newest span to the operation ``last``."""
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
        """Return the last operation before the first gap; operations up to ``base`` are in tables."""
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
    """Raise DamagedData unless I4 holds."""
    first = manifest.first_file
    unnamed = [number for number in sorted(tables - manifest.named) if first is None or number >= first]
    if unnamed and not manifest.tables and not any(os.path.getsize(_log_path(folder, log)) for log in logs):
        text = f"{folder}: nothing accounts for its table {unnamed[0]:06d}{TABLE_FILE}, its list of files lost its end"
        raise DamagedData(f"{text}; {repair_advice(folder)}")

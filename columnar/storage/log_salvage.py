"""Salvage of a damaged server log: finds complete frames anywhere in its segments, and lists what is lost.

A frame is believed if its checksum matches and its numbers are above those of the frames before it.  A salvaged log
has gaps: the next owner of a region replays the records that are left (``LogOfRegion.gaps``), and ``lost`` describes
the lost ones.

Salvage is for repairs, not for requests, because it searches every byte of the segments.  The module only reads, and
blocks.
"""

from __future__ import annotations

import os
from typing import Final

from columnar.errors import DamagedData
from columnar.storage.dead_logs import (
    SUFFIX,
    DeadLog,
    LogOfRegion,
    Sealed,
    Segment,
    identity_of,
    segment_name,
    segment_number,
)
from columnar.storage.durable_files import read_first
from columnar.storage.rocks_errors import refused
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_log import (
    Record,
    bodies_of,
    era,
    era_of,
    frames_after,
    head_bytes,
    log_and_run,
    mark,
    records_in,
    records_of,
)

_NOBODY: Final = (b"", 0)


class SalvagedLog(DeadLog):
    """A damaged log and the records that could be read.  Call ``load`` first."""

    def __init__(self, folder: str, sealed: Sealed) -> None:
        super().__init__(folder, sealed)
        self.lost: list[str] = []  # sentences for a person
        self.gaps: set[str] = set()  # opened regions that certainly lack a batch

    def _regions(self) -> dict[str, list[tuple[bytes, Record]]]:
        if self._found is None:
            self._found = {}
            self._identity, run = self._name()
            for segment in self.sealed.segments:
                self._salvage(segment, era(self._identity, run) if self._identity else b"")
            for region, records in self._found.items():  # segments may be swapped or duplicated
                self._found[region] = sorted(dict(records).items())
        return self._found

    def _name(self) -> tuple[bytes, int]:
        """Return the log's name and last run: from a segment's head, which has a checksum, or from the file RUN."""
        heads = [found for segment in self.sealed.segments if (found := _era_in(self._bytes(segment))) is not None]
        if heads:
            return max(heads, key=lambda one: one[1])
        try:
            found = identity_of(self.folder)
        except DamagedData as error:
            found = None
            self.lost.append(error.text)
        if found is None and self.sealed.segments:
            self.lost.append(f"{self.folder}: nothing says which log it is, so nothing of it can be brought in")
        return found or _NOBODY

    def _salvage(self, segment: Segment, of_run: bytes) -> None:
        data = self._bytes(segment)
        if data is None:
            self.lost.append(f"{os.path.join(self.folder, segment.name)} is missing, with all that stood in it")
            return
        own = _era_in(data)
        own_era = era(*own) if own is not None else of_run
        if not own_era or own_era[: len(self._identity)] != self._identity:
            self.lost.append(f"{os.path.join(self.folder, segment.name)} is of another log")
            return
        records, whole_bytes = _prefix(data)
        newest = self._take(own_era, records, 0)
        for begin, end, body in frames_after(data, whole_bytes):
            found = _above(body, newest)
            if not found:
                continue  # a value that contains bytes of an older frame
            between = f"batches {newest + 1} to {min(record.number for record in found) - 1} of all its regions"
            if begin > whole_bytes:
                self._say_lost(segment, whole_bytes, begin, between)
            newest, whole_bytes = self._take(own_era, found, newest), end
        if whole_bytes < segment.synced_bytes:
            self._say_lost(segment, whole_bytes, segment.synced_bytes, f"batches of all its regions behind {newest}")

    def _take(self, own_era: bytes, records: list[Record], newest: int) -> int:
        """Add the records to those found; returns the highest number so far."""
        assert self._found is not None, "it is being read"
        for record in records:
            self._found.setdefault(record.region, []).append((mark(own_era, record.number), record))
            newest = max(newest, record.number)
        return newest

    def _say_lost(self, segment: Segment, begin: int, end: int, batches: str) -> None:
        path = os.path.join(self.folder, segment.name)
        self.lost.append(f"{path}: bytes {begin} to {end} cannot be read; {batches} stood there")

    def _bytes(self, segment: Segment) -> bytes | None:
        path = os.path.join(self.folder, segment.name)
        try:
            return read_first(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused(error, f"cannot read the server's log {path}") from error

    def records(self, region: str, epochs: frozenset[int]) -> LogOfRegion:
        found = super().records(region, epochs)
        return LogOfRegion(region, found.identity, found.found, found.marks, self.gaps)


def salvaged(folder: str, lengths: tuple[tuple[str, int], ...]) -> SalvagedLog:
    """Read everything readable of the log in ``folder``; ``lengths`` are those of its seal, or empty.

    Raises HostError.
    """
    must = dict(lengths)
    try:
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for number, length in SegmentBounds(folder).read().items():
            must[segment_name(number)] = max(length, must.get(segment_name(number), 0))
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    there = {name for name in names if name.endswith(SUFFIX) and name.removesuffix(SUFFIX).isdigit()}
    found = sorted(there | must.keys(), key=segment_number)
    log = SalvagedLog(folder, Sealed(tuple(Segment(name, must.get(name, 0), must.get(name, 0)) for name in found)))
    if not os.path.isdir(folder):
        log.lost.append(f"{folder} is missing, with all that stood in it")
    log.load()
    return log


def _era_in(data: bytes | None) -> tuple[bytes, int] | None:
    try:
        found = era_of(data) if data is not None else None
    except DamagedData:
        return None
    return log_and_run(found) if found is not None else None


def _prefix(data: bytes) -> tuple[list[Record], int]:
    """Return the records of the complete frames at the segment's beginning, and the end of these frames."""
    try:
        if era_of(data) is None:
            return [], 0
        return records_in(data)
    except DamagedData:
        records: list[Record] = []
        at = min(len(data), head_bytes(data))
        for end, body in bodies_of(data):
            found = _above(body, max((record.number for record in records), default=0))
            if not found:
                break
            records += found
            at = end
        return records, at


def _above(body: bytes, newest: int) -> list[Record]:
    """Return the records of a frame if all their numbers are above ``newest``, otherwise none."""
    try:
        found = records_of(body)
    except (DamagedData, ValueError, TypeError):
        return []
    return found if all(record.number > newest for record in found) else []

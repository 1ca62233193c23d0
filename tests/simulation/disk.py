"""The disk of the simulated machine: stores, logs of servers, and the effect of a power cut on them.

Writes of a process survive its death.  A power cut may remove the unsynced writes from any point on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import md5
from random import Random

from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Segments
from columnar.storage.dead_logs import LogOfRegion, segment_name
from columnar.storage.server_log import Record, era, mark

Pair = tuple[bytes, bytes | None]  # None: the key is deleted
Span = tuple[bytes, bytes]


@dataclass(slots=True)
class Files:
    """The files of a store: the flushed pairs, and a log of batches of which the first ``synced`` are on disk."""

    flushed: dict[bytes, bytes] = field(default_factory=dict)
    log: list[tuple[Span | None, Sequence[Pair]]] = field(default_factory=list)  # a span is deleted before the pairs
    synced: int = 0
    generation: int = 0
    late: list[Pair] | None = None  # what was appended after a takeover

    def append(self, pairs: Sequence[Pair], deleted: Span | None = None) -> None:
        self.log.append((deleted, pairs))
        if self.late is not None:
            self.late += pairs

    def taken_over(self, generation: int, *, is_linked: bool) -> Files:
        """Return the folder of the generation: a synced copy.  With ``is_linked`` the log's file is the same."""
        self.late = []
        log = self.log if is_linked else list(self.log)
        return Files(dict(self.flushed), log, len(log), generation)

    def sync(self, count: int) -> None:
        self.synced = max(self.synced, min(count, len(self.log)))

    def lose(self, rng: Random) -> None:
        """Lose the unsynced batches except a random prefix."""
        del self.log[rng.randint(self.synced, len(self.log)) :]

    def recover(self) -> dict[bytes, bytes]:
        """Flush the log, after which everything is on disk; return all pairs."""
        if self.log:
            apply(self.flushed, self.log)
            self.log.clear()
            self.synced = 0
        return dict(self.flushed)

    def read(self) -> dict[bytes, bytes]:
        """Return all pairs as a process sees them."""
        data = dict(self.flushed)
        apply(data, self.log)
        return data


def apply(data: dict[bytes, bytes], batches: Iterable[tuple[Span | None, Sequence[Pair]]]) -> None:
    for deleted, pairs in batches:
        if deleted is not None:
            for key in [key for key in data if deleted[0] <= key < deleted[1]]:
                del data[key]
        for key, value in pairs:
            if value is None:
                data.pop(key, None)
            else:
                data[key] = value


@dataclass(slots=True)
class Segment:
    frames: list[list[Record]] = field(default_factory=list)
    synced: int = 0


class LogFolder:
    """``servers/NAME.INC/log``; the length of a segment is its number of frames."""

    def __init__(self, server: Incarnation) -> None:
        self.identity = md5(str(server).encode(), usedforsecurity=False).digest()
        self.era = era(self.identity, 1)
        self.segments: dict[int, Segment] = {}

    def renamed(self) -> LogFolder:
        """Return the folder under a new name: the process that has its files open can change no name in it."""
        folder = copy(self)
        folder.segments = dict(self.segments)
        return folder

    def measured(self) -> Segments:
        return tuple((segment_name(number), len(one.frames)) for number, one in self.segments.items())

    def lose(self, rng: Random) -> None:
        for segment in self.segments.values():
            del segment.frames[rng.randint(segment.synced, len(segment.frames)) :]

    def records(self, extents: Segments) -> list[Record]:
        lengths = dict(extents)
        found: list[Record] = []
        for number, segment in self.segments.items():
            for frame in segment.frames[: lengths.get(segment_name(number), 0)]:
                found += frame
        return found

    def named(self, extents: Segments) -> set[tuple[str, int]]:
        return {(record.region, record.epoch) for record in self.records(extents)}

    def of_region(self, region: str, epochs: frozenset[int] | None, extents: Segments) -> LogOfRegion:
        """Return the log of a region at ``epochs``; None means all, as if records did not name epochs."""
        every = [(mark(self.era, one.number), one) for one in self.records(extents) if one.region == region]
        found = [(key, one) for key, one in every if epochs is None or one.epoch in epochs]
        return LogOfRegion(region, self.identity, found, frozenset(key for key, _ in every))


class Disk:
    def __init__(self) -> None:
        self.meta = Files()
        self.stores: dict[int, Files] = {}  # by region id
        self.logs: dict[Incarnation, LogFolder] = {}
        self.late: dict[int, list[list[Pair]]] = {}  # by region: what was appended to folders that were taken over

    def folder(self, region: int, generation: int, *, is_linked: bool) -> Files | None:
        """Return the region's folder of the generation, taken over if need be.

        Returns None if the folder was removed, or taken over for a later generation."""
        found = self.stores.get(region)
        if found is None or found.generation > generation:
            return None
        if found.generation < generation:
            fresh = found.taken_over(generation, is_linked=is_linked)
            assert found.late is not None, "it was taken over"
            self.late.setdefault(region, []).append(found.late)
            found = self.stores[region] = fresh
        return found

    def is_late(self, region: int, pair: Pair) -> bool:
        """Tell whether the pair was written to a folder after the folder was taken over."""
        return any(pair in late for late in self.late.get(region, ()))

    def power_cut(self, rng: Random) -> None:
        self.meta.lose(rng)
        for store in self.stores.values():
            store.lose(rng)
        for log in self.logs.values():
            log.lose(rng)

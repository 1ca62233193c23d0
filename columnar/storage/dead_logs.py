"""Server logs of dead incarnations, which are sealed and only read.

    measure     returns the names and lengths of a log's segments, once its writer is dead: this seals the log
    DeadLog     one sealed log; bytes after its sealed lengths are never read
    DeadLogs    the sealed logs of this process, by name, with the regions that may still lack their records

The log of a live writer is read, too, for a region that the writer closed without an fsync of the region's own log.
The extent of such a log is measured after the close, so that it includes all records of the region.  The writer keeps
the segments with these records.

A segment ends before its first incomplete frame.  Up to the bound of ``SYNCED`` (``segment_bounds``) all frames must be
complete, and no complete frame may follow the end; otherwise the log is damaged.  After the bound a power cut may have
left any bytes; they were never acknowledged.

A network file system may show a machine an older state of a file for a moment: a shorter file, or none.  So if a read
gives fewer bytes than the file has, or had when it was sealed, this is an error (HostError) and not the end of the
segment.  Damage is believed only if it is found READINGS times in a row (``read_repeatedly``).

A log that was read once is sealed at the ends of its last complete frames (``extent``): from then on all these frames
must be found, whatever ``SYNCED`` says.

Invariants:
    D1. No answer includes bytes after a sealed length, or segments that were begun after the seal.
    D2. This module never writes, removes or renames a file.
    D3. An answer is given only if everything was read that the seal lists or that is certainly synced.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote
from types import MappingProxyType
from typing import Final, TypeVar

from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.storage.data_folder import SERVERS, check_place
from columnar.storage.durable_files import read_first, size_of_file
from columnar.storage.ownership import THIS_RUN, LogPart
from columnar.storage.rocks_errors import refused
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_log import (
    LOG_BYTES,
    Record,
    era_of,
    frames_after,
    log_and_run,
    mark,
    records_in,
    records_of,
)

ASIDE: Final = "move the folder aside to go on: writes of the last seconds before the crash may stand nowhere else"
SUFFIX: Final = ".segment"
RUN: Final = "run"  # a file with the log's name in hexadecimal and the number of its last run
READINGS: Final = 3  # of a log that seems to be damaged
READ_AGAIN_S: Final = 1.0  # no cache of a file system that we met was older than 1.2 s

NO_LENGTHS: Final[Mapping[int, int]] = MappingProxyType({})

T = TypeVar("T")
Found = Sequence[tuple[bytes, Record]]  # records of one region with their marks, ascending


@dataclass(frozen=True, slots=True)
class Segment:
    name: str
    length_bytes: int  # when it was sealed
    synced_bytes: int = 0  # certainly on disk


@dataclass(frozen=True, slots=True)
class Sealed:
    """The extent of a log when it ended."""

    segments: tuple[Segment, ...] = ()

    @property
    def lengths(self) -> tuple[tuple[str, int], ...]:
        """Names and lengths of the segments, in the form that the catalogue stores."""
        return tuple((segment.name, segment.length_bytes) for segment in self.segments)


@dataclass(frozen=True, slots=True)
class LogOfRegion:
    """The part of a log that is about a region."""

    region: str
    identity: bytes  # the log's own name, which its marks carry
    found: Found  # of the requested epochs
    marks: frozenset[bytes]  # of all epochs
    gaps: set[str] | None = None  # of a salvaged log: regions of which it lost batches.  None: a gap is damage


def remedy(folder: str) -> str:
    """Say what a person can do about damage of the log in ``folder``."""
    above, _ = os.path.split(os.path.abspath(folder))
    servers, incarnation = os.path.split(above)
    if os.path.basename(servers) == SERVERS and incarnation:
        return remedy_of(os.path.dirname(servers))
    return f"{ASIDE}; 'columnar repair --data {quote(above)}' does so, and brings in what is readable"


def remedy_of(data: str) -> str:
    """Say what a person can do about damage of servers' logs in the data folder, or of their seals in the catalogue."""
    command = f"columnar repair --data {quote(os.path.abspath(data))}"
    return (
        f"put it back from a copy, or stop the store and run '{command}': it brings in what is readable, and says what "
        "is lost"
    )


def _check_place(folder: str) -> None:
    """Raise HostError if the data folder of the log in ``folder`` was moved away, so that the log is not lost."""
    above = os.path.dirname(os.path.abspath(folder))
    if os.path.basename(os.path.dirname(above)) == SERVERS:
        check_place(os.path.dirname(os.path.dirname(above)))


def segment_name(number: int) -> str:
    return f"{number:08d}{SUFFIX}"


def segment_number(name: str) -> int:
    return int(name.removesuffix(SUFFIX))


def measure(folder: str, synced: Mapping[int, int] = NO_LENGTHS) -> Sealed:
    """Seal the log in ``folder``, to which its writer never writes again; returns its extent.

    The log of a live writer is measured as it is now, without segments that the writer removes meanwhile.

    ``synced`` has lengths, by segment number, that the writer had synced by what it said elsewhere than in the folder:
    the folder may be seen as it was before.  Raises HostError, and DamagedData if a segment is missing or shorter than
    its synced part.
    """
    stored_bounds = SegmentBounds(folder)
    try:
        bounds, lengths = stored_bounds.read(), _lengths_in(folder)
        bounds |= {number: max(length, bounds.get(number, 0)) for number, length in synced.items()}
        for number, bound in bounds.items():
            path, length = os.path.join(folder, segment_name(number)), lengths.get(segment_name(number))
            if length is None:
                is_removed = stored_bounds.has_removed if number in synced else stored_bounds.has_forgotten
                if is_removed(number):
                    continue
                raise DamagedData(f"{path} is missing; {remedy(folder)}")
            if length < bound:
                raise _cut(path, length, bound)
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    return Sealed(tuple(Segment(name, size, bounds.get(segment_number(name), 0)) for name, size in lengths.items()))


def _lengths_in(folder: str) -> dict[str, int]:
    """Return the lengths of the segments in the folder, by name, ascending.  Raises OSError."""
    lengths: dict[str, int] = {}
    with suppress(FileNotFoundError):  # the server wrote no log
        for name in sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX)):
            with suppress(FileNotFoundError):  # removed meanwhile by its writer
                lengths[name] = size_of_file(os.path.join(folder, name))
    return lengths


def _cut(path: str, at: int, synced_bytes: int) -> DamagedData:
    """Return the error about a segment whose last complete frame ends before the end of its synced part."""
    text = f"{path} is damaged or was cut at byte {at}: {synced_bytes} were synced"
    return DamagedData(f"{text}; {remedy(os.path.dirname(path))}")


def sealed_at(lengths: Iterable[tuple[str, int]]) -> Sealed:
    """Return a log that was sealed at the ``extent`` of its complete frames, all of which must be found (D3)."""
    return Sealed(tuple(Segment(name, size, size) for name, size in lengths))


def sealed_by_older(folder: str, lengths: Iterable[tuple[str, int]]) -> Sealed:
    """Return the log sealed by an older program, at lengths of files, whose last frames may be incomplete.

    Raises HostError.
    """
    try:
        bounds, present = SegmentBounds(folder).read(), _lengths_in(folder)
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    segments = []
    for name, size in lengths:
        # A bound above the length was raised after the seal: ``measure`` and the first reader read the log before.
        bound = min(bounds.get(segment_number(name), 0), size)
        segments.append(Segment(name, min(size, max(bound, present.get(name, size))), bound))  # a power cut may cut it
    return Sealed(tuple(segments))


def identity_of(folder: str) -> tuple[bytes, int] | None:
    """Return the log's own name and its last run, or None if no run has begun.  Raises HostError, DamagedData."""
    try:
        name, _, run = read_first(os.path.join(folder, RUN)).decode("ascii").partition(" ")
        log = bytes.fromhex(name)
        if len(log) != LOG_BYTES:
            raise ValueError(f"{len(log)} bytes are no name of a log")
        return log, int(run)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(error, f"cannot read the server's log {folder}") from error
    except ValueError as error:
        raise DamagedData(f"{folder}/{RUN} does not say which run was the last; {remedy(folder)}") from error


class DeadLog:
    """A sealed log.  The first request reads all segments; operations stay packed until they are needed."""

    def __init__(self, folder: str, sealed: Sealed) -> None:
        self.folder = folder
        self.sealed = sealed
        self._identity = b""
        self._found: dict[str, list[tuple[bytes, Record]]] | None = None
        self._extent: list[tuple[str, int]] = []
        self._reading = threading.Lock()  # several threads may open regions that need the log

    def _regions(self) -> dict[str, list[tuple[bytes, Record]]]:
        if self._found is not None:
            return self._found
        with self._reading:
            if self._found is None:
                found: dict[str, list[tuple[bytes, Record]]] = {}
                self._extent = []
                if self.sealed.segments:
                    last = identity_of(self.folder) or (b"", 0)
                    self._identity = last[0]
                    for segment in self.sealed.segments:
                        self._read(segment, last, found)
                self._found = found
            return self._found

    def _read(self, segment: Segment, last: tuple[bytes, int], found: dict[str, list[tuple[bytes, Record]]]) -> None:
        path = os.path.join(self.folder, segment.name)
        data = _first_bytes(path, segment.length_bytes)
        if data is None:
            if self._was_removed_by_writer(segment):
                return
            _check_place(self.folder)
            raise DamagedData(f"{path} is missing; {remedy(self.folder)}")
        try:
            era = era_of(data)
            records, whole = records_in(data) if era is not None else ([], 0)
        except DamagedData as error:
            raise DamagedData(f"{path}: {error.text}; {remedy(self.folder)}") from error
        if whole < segment.synced_bytes:
            raise _cut(path, whole, segment.synced_bytes)
        if len(data) < segment.length_bytes:
            _check_place(self.folder)
            raise HostError(f"{path} has {len(data)} bytes, and had {segment.length_bytes} when the log was sealed")
        if whole < len(data) and _is_followed(data, whole, records):
            raise DamagedData(f"{path} is damaged at byte {whole}: whole frames follow; {remedy(self.folder)}")
        self._extent.append((segment.name, whole))
        if era is None:
            return
        log, run = log_and_run(era)
        if log != last[0] or run > last[1]:
            raise DamagedData(f"{path} is of another log than {RUN} beside it says; {remedy(self.folder)}")
        for record in records:
            key, records_of_region = mark(era, record.number), found.setdefault(record.region, [])
            # Numbers rise only within a region: stores whose writers wait at different times are in different rounds.
            if records_of_region and key <= records_of_region[-1][0]:
                text = f"{path} does not follow the segment before: batch {record.number} of region {record.region}"
                raise DamagedData(f"{text} comes again, or too late; {remedy(self.folder)}")
            records_of_region.append((key, record))

    @property
    def extent(self) -> tuple[tuple[str, int], ...]:
        """The end of the last complete frame of each segment, which seals the log.  Raises HostError, DamagedData."""
        self._regions()
        return tuple(self._extent)

    def _was_removed_by_writer(self, segment: Segment) -> bool:
        """Tell whether the live writer of the log removed the segment, because all regions had its records."""
        try:
            return SegmentBounds(self.folder).has_forgotten(segment_number(segment.name))
        except OSError as error:
            raise refused(error, f"cannot read the server's log {self.folder}") from error

    @property
    def is_loaded(self) -> bool:
        return self._found is not None

    def load(self) -> DeadLog:
        """Read the log now; returns the log itself.  Raises HostError, DamagedData."""
        self._regions()
        return self

    def named(self) -> frozenset[tuple[str, int]]:
        """Return the (region, epoch of its owner) pairs that records name.  Raises HostError, DamagedData."""
        return frozenset((region, record.epoch) for region, found in self._regions().items() for _, record in found)

    def records(self, region: str, epochs: frozenset[int]) -> LogOfRegion:
        """Return the region's records of these epochs, ascending.  Raises HostError, DamagedData."""
        found = self._regions().get(region, [])
        wanted = [(key, record) for key, record in found if record.epoch in epochs]
        return LogOfRegion(region, self._identity, wanted, frozenset(key for key, _ in found))

    def epochs_of(self, region: str) -> frozenset[int]:
        return frozenset(record.epoch for _, record in self._regions().get(region, ()))

    def counts(self) -> dict[str, int]:
        return {region: len(found) for region, found in self._regions().items()}

    def forget_region(self, region: str) -> None:
        """Free the region's records, because its store has all of them."""
        self._regions().pop(region, None)

    @property
    def is_spent(self) -> bool:
        """Whether no region that the log names can lack any record."""
        return not self._regions()


def _is_followed(segment: bytes, at: int, records: Sequence[Record]) -> bool:
    """Tell whether complete frames follow a damaged one at ``at``, except bytes of older frames within a value."""
    newest = max((record.number for record in records), default=0)
    bodies = (body for _, _, body in frames_after(segment, at))
    return any(record.number > newest for body in bodies for record in records_of(body))


def _first_bytes(path: str, count: int) -> bytes | None:
    """Return the first ``count`` bytes, which the seal covers (D1), or None if the file is missing."""
    try:
        return read_first(path, count)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(error, f"cannot read the server's log {path}") from error


async def read_repeatedly(read: Callable[[], T]) -> T:
    """Call ``read`` in a thread and return its result; after an error call it again, up to READINGS times in all.

    Only the error of the last reading is raised: damage that a later reading does not find was due to a cache.
    """
    for _ in range(READINGS - 1):
        with suppress(ColumnarError):
            return await asyncio.to_thread(read)
        await asyncio.sleep(READ_AGAIN_S)
    return await asyncio.to_thread(read)


class DeadLogs:
    """The sealed logs of this process.  Owned by the loop.

    ``this_run`` returns the log that the process itself has written so far; None if it writes no log.
    """

    def __init__(self) -> None:
        self._logs: dict[str, DeadLog] = {}
        self.this_run: Callable[[], DeadLog] | None = None
        self.on_spent: Callable[[str], None] = lambda _name: None  # called with the name of a log that no region needs

    def add_log(self, name: str, log: DeadLog) -> None:
        self._logs[name] = log

    def drop(self, name: str) -> None:
        self._logs.pop(name, None)

    def of(self, name: str) -> DeadLog | None:
        return self._logs.get(name)

    def of_region(self, name: str, region: str, epochs: frozenset[int]) -> LogOfRegion:
        """Return the region's records of the log.  Raises DamagedData if the log is damaged.

        Raises HostError if this process does not have the log: then the region must not be served.
        """
        if name == THIS_RUN and self.this_run is not None:
            return self.this_run().records(region, epochs)
        log = self._logs.get(name)
        if log is None:
            raise HostError(f"region {region} lacks what the log of {name} has, and that log is not here")
        return log.records(region, epochs)

    def unreplayed_parts(self, region: str) -> tuple[LogPart, ...]:
        """Return the parts of logs that name the region, ascending.

        Only for a sole owner of regions do these parts have everything that the region may lack.
        """
        parts = [LogPart(name, epoch) for name, log in self._logs.items() for epoch in log.epochs_of(region)]
        return tuple(sorted(parts, key=lambda part: (part.epoch, part.log)))

    @property
    def left(self) -> dict[str, int]:
        """The number of batches in the logs for each region that may lack some; its own log has most of them, too."""
        left: dict[str, int] = {}
        for log in self._logs.values():
            for region, count in log.counts().items():
                left[region] = left.get(region, 0) + count
        return left

    def brought_in(self, region: str) -> None:
        """Free the region's records in every log, because its store has them on disk.

        Logs that are not loaded have no records in memory.  Such logs are not loaded here, because damage in a log that
        a different region needs must not fail this region.
        """
        for name, log in list(self._logs.items()):
            if log.is_loaded:
                log.forget_region(region)
                self._note_spent(name, log)

    def settle(self) -> None:
        """Report the logs that name no region."""
        for name, log in list(self._logs.items()):
            self._note_spent(name, log)

    def _note_spent(self, name: str, log: DeadLog) -> None:
        if log.is_spent:
            del self._logs[name]
            self.on_spent(name)

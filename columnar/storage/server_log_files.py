"""The segments of the server's log: written, given up, and replayed after a crash.

    SEGMENT_BYTES reached --> a new segment; the stores of the old one are synced --> all are --> it is removed

A second segment is begun only while no other waits for its stores (``has_room``): else every store is synced
by itself, as without this log.  So the log is at most SEGMENTS files of SEGMENT_BYTES and a round.

What an earlier run left is brought into each region when it is opened (``replay``), and into those that nobody
opens soon after the start (``recovering``): then the segments go, and new ones may be begun.  A store whose disk
failed is brought up to date when it is opened again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from time import monotonic
from typing import Final, Protocol

from columnar.errors import ColumnarError, DamagedData
from columnar.limits import MIB
from columnar.storage.api import Store, StoreBusy
from columnar.storage.capture import Capture
from columnar.storage.data_folder import LOG_ENDS, REGIONS, SERVER_LOG, SERVER_LOG_SINCE, DataFolder
from columnar.storage.durable_files import sync_folder_if_any, write_durably
from columnar.storage.folders import make_lasting_within
from columnar.storage.rocks_errors import MEND, refused
from columnar.storage.segment_bounds import SegmentBounds
from columnar.storage.server_log import (
    MARK,
    MARK_SPACE,
    NUMBER_BYTES,
    Found,
    Record,
    era,
    era_of,
    era_of_mark,
    floor_of,
    frame,
    has_hole,
    head,
    mark,
    missing,
    pack_floor,
    records_of,
)
from columnar.storage.server_log_reading import (
    RUN,
    EarlierRuns,
    bytes_of,
    name_of,
    number_of,
    read_earlier,
    segments_in,
)

_log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 16 * MIB
SEGMENTS: Final = 2
RETRY_S: Final = 1.0  # after the disk refused it


class Opens(Protocol):
    """An engine."""

    def open(self, path: str, spaces: frozenset[str]) -> Store: ...

    def open_reading(self, path: str) -> Store: ...


class ServerLog:
    """``append`` runs in one thread at a time; all else belongs to the loop's."""

    def __init__(
        self, folder: str, regions_folder: str, earlier: EarlierRuns, before_first: Callable[[], None]
    ) -> None:
        """``earlier``: of the folder; ``before_first`` is called, in a thread, before anything is written."""
        self._folder = folder
        self._regions_folder = regions_folder
        self._before_first = before_first
        self._log = earlier.log
        self._run = earlier.run + 1
        self._left = earlier.left
        self._old = earlier.segments
        self._bounds = SegmentBounds(folder)
        self.era = era(self._log, self._run)
        self.stamp = count(1).__next__
        self._segment = number_of(self._old[-1]) if self._old else 0  # the last one's number
        self._file: int | None = None  # its descriptor
        self._size = 0
        self._length = 0  # of the file
        self._frames = 0  # in it
        self._refused_until_s = 0.0  # the disk refused it
        self._stores: dict[int, dict[Capture, int]] = {}  # by segment: the last number of each store in it
        self.is_ready = False  # the run has its number on disk
        self._unsynced: set[str] = set()  # regions that were closed without an fsync of their own log

    @classmethod
    def opened(cls, folder: str, regions_folder: str, before_first: Callable[[], None] = lambda: None) -> ServerLog:
        """Read the log in the folder, which need not be there.  HostError, DamagedData."""
        return cls(folder, regions_folder, read_earlier(folder), before_first)

    # --- what an earlier run left ---------------------------------------------------------------------

    @property
    def left(self) -> dict[str, int]:
        """What an earlier run left: batches by region.  Most of them stand in the region's own log, too."""
        return {region: len(found) for region, found in self._left.items()}

    def recover(self, engine: Opens) -> None:
        """Bring every region up to date, now; blocks.  ``recovering`` does it step by step."""
        for _ in self.recovering(engine):
            pass

    def recovering(self, engine: Opens) -> Iterator[None]:
        """Open each region that is behind, and that nobody has opened meanwhile: a step of some 15 ms.

        ``engine`` is one that asks ``replay`` at each opening.  One that its disk refuses is told of, and stays so.
        """
        for region in list(self._left):
            path = os.path.join(self._regions_folder, region)
            if region not in self._left:
                continue
            if not os.path.isdir(path):
                del self._left[region]  # it was dropped
                continue
            try:
                engine.open(path, frozenset()).close()
            except ColumnarError as error:
                _log.error("region %s is not brought up to date with the server's log: %s", region, error.text)
            yield
        self._remove_old()

    def _remove_old(self) -> None:
        if not self._left:
            self.remove(self._old)
            self._old = []

    def make_prefix(self, engine: Opens, path: str) -> None:
        """Before the store at ``path`` is opened: what its own log has after a gap goes.

        The engine begins a new file before it has synced the one before, whose end a power cut may take.  It tells
        a torn record, not a file that ends between two.  What stands in the new file then was never synced: it
        is in the server's log, too, or nobody was told of it.
        """
        found = self._of(path)
        while found and (logs := _logs_in(path)):
            store = engine.open_reading(path)
            try:
                marks = self._marks(store)
            finally:
                store.close()
            if not has_hole(missing(found, marks), marks):
                return
            _log.warning("%s is removed: it goes on after a gap; the server's log has what was acknowledged", logs[-1])
            os.unlink(logs[-1])
            sync_folder_if_any(path)

    def replay(self, store: Store, path: str) -> None:
        """What the log has of the store at ``path`` and the store has not.  DamagedData: something is missing."""
        found, region = self._of(path), os.path.basename(path)
        if not found:
            return
        marks = self._marks(store)
        newest = max(marks, default=None)
        lost = missing(found, marks)
        if has_hole(lost, marks):
            raise DamagedData(f"{path} lost a batch amid others, which the server's log has; {MEND}")
        there = {wanted for wanted, _ in found}.union(marks)
        for wanted, record in lost:
            era = era_of_mark(wanted)
            floor = marks[newest] if newest is not None and era_of_mark(newest) == era else pack_floor(0)
            before = mark(era, record.previous)
            if record.previous and before not in there and (newest is None or before > floor_of(newest, floor)):
                raise DamagedData(f"the server's log has batch {record.number} of region {region}, and lost one before")
            _apply(store, record, (wanted, floor))
        store.sync()
        if lost:
            _log.info("region %s: %d writes came from the server's log", region, len(lost))
        if self._left.pop(region, None) is not None:
            self._remove_old()
        self._unsynced.discard(region)
        for stores in self._stores.values():
            for capture in stores:
                if capture.region == region:
                    capture.synced = capture.last  # its store was closed; this one has all

    def _of(self, path: str) -> Found:
        """What the log may have of the store at ``path`` and the store not; of most, nothing."""
        folder, region = os.path.split(path)
        if folder != self._regions_folder:
            return []  # a copy
        return self._left.get(region, []) + (self._own(region) if region in self._unsynced else [])

    def _marks(self, store: Store) -> dict[bytes, bytes]:
        return dict(store.scan(MARK_SPACE, MARK + self._log, MARK + self._log + b"\xff" * 2 * NUMBER_BYTES))

    def _own(self, region: str) -> list[tuple[bytes, Record]]:
        """What this run wrote for the region."""
        found = []
        for name in segments_in(self._folder):
            data = bytes_of(self._folder, name)
            if era_of(data) == self.era:
                found += [(mark(self.era, one.number), one) for one in records_of(data) if one.region == region]
        return found

    def is_awaited_by(self, path: str) -> bool:
        """Whether the folder of a store that is closed may lack acknowledged writes."""
        return bool(self._of(path))

    def is_ahead_of(self, store: Store, path: str) -> bool:
        """Whether acknowledged writes of the store at ``path`` are missing in ``store``, which only reads."""
        found = self._of(path)
        return bool(found) and bool(missing(found, self._marks(store)))

    def closed_unsynced(self, region: str) -> None:
        self._unsynced.add(region)

    # --- writing --------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        if self._old:
            return False  # else it would grow with each crash
        if self._refused_until_s and monotonic() < self._refused_until_s:
            return False
        return (self._file is not None and self._size < SEGMENT_BYTES) or len(self._stores) < SEGMENTS

    def append(self, records: Sequence[Record]) -> int:
        """In a thread; blocks until it is on disk.  The number of the segment.  HostError: it takes no more."""
        data = frame(records)
        try:
            if self._file is None or self._size >= SEGMENT_BYTES:
                self._begin_segment()
            assert self._file is not None
            self._size += len(data)
            self._length += len(data)
            _write_all(self._file, data)
            force(self._file)
        except OSError as error:
            self._refused_until_s = monotonic() + RETRY_S
            self._end_segment()
            raise refused(error, f"cannot write the server's log {self._folder}") from error
        self._frames += 1
        self._bounds.raise_to(self._segment, self._length)
        return self._segment

    def _path(self, segment: int) -> str:
        return os.path.join(self._folder, name_of(segment))

    def _end_segment(self) -> None:
        """What follows the last acknowledged frame is not to be believed: the next one goes to another file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if not self._frames:
                with suppress(OSError):  # it is removed at the next start
                    os.unlink(self._path(self._segment))

    def _begin_segment(self) -> None:
        self._end_segment()
        self._segment += 1
        self._frames = 0
        path = self._path(self._segment)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
        _write_all(self._file, head(self.era))
        sync_folder_if_any(self._folder)
        self._size = 0
        self._length = len(head(self.era))

    def prepare(self) -> None:
        """In a thread, before the first mark: no later run may give the same ones.  HostError."""
        try:
            self._before_first()
            make_lasting_within(self._folder)
            write_durably(os.path.join(self._folder, RUN), f"{self._log.hex()} {self._run}\n".encode())
            self._bounds.begin()
        except OSError as error:
            raise refused(error, f"cannot write the server's log {self._folder}") from error
        self.is_ready = True

    def round_stands(self, segment: int, stores: dict[Capture, int]) -> list[Capture]:
        """A round stands in the segment, of each store up to the number.  Those to be synced now."""
        begins = segment not in self._stores
        self._stores.setdefault(segment, {}).update(stores)
        return self.waited_for() if begins else []

    def waited_for(self) -> list[Capture]:
        """Stores whose fsync frees full segments."""
        return [
            capture
            for segment, stores in self._stores.items()
            if segment != self._segment
            for capture, number in stores.items()
            if capture.synced < number
        ]

    def free(self) -> list[str]:
        """Full segments whose stores are all synced: they are no longer counted, and ``remove`` may take them."""
        done = [
            segment
            for segment, stores in self._stores.items()
            if segment != self._segment and all(capture.synced >= number for capture, number in stores.items())
        ]
        for segment in done:
            del self._stores[segment]
        return [name_of(segment) for segment in done]

    def remove(self, names: Sequence[str]) -> None:
        """In any thread.  One that stays is replayed at the next start, to no effect."""
        try:
            self._bounds.forget([number_of(name) for name in names])
            for name in names:
                os.unlink(os.path.join(self._folder, name))
            if names:
                sync_folder_if_any(self._folder)
        except OSError as error:
            _log.error("a segment of the server's log cannot be removed: %s", error)

    def close(self) -> None:
        """Every store is closed: what stands in their own logs goes."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if not self._unsynced:
            self.remove([name_of(segment) for segment in self._stores])
        self._bounds.close()


def open_server_log(folder: DataFolder) -> ServerLog:
    """That of a data folder; an older program must not open the folder once there is something in it."""
    path = folder.path
    raise_format = partial(folder.raise_format, SERVER_LOG_SINCE)
    return ServerLog.opened(os.path.join(path, SERVER_LOG), os.path.join(path, REGIONS), raise_format)


def _apply(store: Store, record: Record, mark: tuple[bytes, bytes]) -> None:
    batch = store.batch()
    for space, key, value, stop in record.operations:
        if value is not None:
            batch.put(space, key, value)
        elif stop is None:
            batch.delete(space, key)
        else:
            batch.delete_range(space, key, stop)
    batch.put(MARK_SPACE, *mark)
    try:
        store.write(batch)
    except StoreBusy:
        store.flush()
        store.write(batch)


def _logs_in(path: str) -> list[str]:
    """The engine's logs that hold anything, the newest last."""
    try:
        with os.scandir(path) as found:
            return sorted(one.path for one in found if one.name.endswith(LOG_ENDS[0]) and one.stat().st_size)
    except FileNotFoundError:
        return []


def force(file: int) -> None:
    """On disk, with the length."""
    os.fdatasync(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

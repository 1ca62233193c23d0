"""The segments of the server's log, which this run writes and removes.  ``dead_logs`` reads the segments of earlier
runs.

    SEGMENT_BYTES reached --> a new segment; the stores of the old one are synced --> all are --> it is removed

A new segment is begun only if no older one still waits for its stores (``has_room``); otherwise every store syncs its
own log, as without this log.  So the log has at most SEGMENTS files, each at most one round (``shared_rounds``) larger
than SEGMENT_BYTES.

Segments of earlier runs are removed when every region has their records (``remove_earlier_segments``); before that no
new segment is begun.  If the sync of a store failed, the store gets the writes of this run when it is opened again
(``so_far``).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from time import monotonic
from typing import Final

from columnar.limits import MIB
from columnar.storage.capture import Capture
from columnar.storage.data_folder import SERVER_LOG, SERVER_LOG_SINCE, DataFolder
from columnar.storage.dead_logs import (
    RUN,
    DeadLog,
    DeadLogs,
    Sealed,
    Segment,
    identity_of,
    measure,
    segment_name,
    segment_number,
)
from columnar.storage.durable_files import make_lasting_within, sync_folder_if_any, write_durably
from columnar.storage.ownership import THIS_RUN, LogPart
from columnar.storage.rocks_errors import refused
from columnar.storage.segment_bounds import SegmentBounds, SyncedNotes
from columnar.storage.server_log import LOG_BYTES, Framing, Written, era, head

_log = logging.getLogger(__name__)

SEGMENT_BYTES: Final = 16 * MIB
SEGMENTS: Final = 2
RETRY_S: Final = 1.0  # after the disk refused a write


class ServerLog:
    """The log of this run.  ``append`` runs in one thread at a time; everything else belongs to the loop's thread."""

    def __init__(
        self,
        folder: str,
        identity: tuple[bytes, int],
        earlier_segments: Sequence[str] = (),
        before_first: Callable[[], None] = lambda: None,
        has_begun: Callable[[], None] = lambda: None,
        notes: SyncedNotes | None = None,
    ) -> None:
        """Take the log's own name with the number of this run, and the segments of earlier runs.

        ``notes`` get the synced lengths beside the log's folder.

        ``prepare`` calls two functions in its thread: ``before_first`` before the first write, and ``has_begun`` when
        the log's folder is made, before the first mark.  Both functions may raise OSError.
        """
        self._folder = folder
        self._before_first = before_first
        self._has_begun = has_begun
        self._log, self._run = identity
        self._earlier_segments = list(earlier_segments)
        self._bounds = SegmentBounds(folder, notes)
        self.era = era(self._log, self._run)
        self.stamp = count(1).__next__
        self._segment = max(map(segment_number, earlier_segments), default=0)  # number of the last segment
        self._framing = Framing()
        self._file: int | None = None  # its descriptor
        self._size = 0
        self._length = 0  # of the file
        self._frames = 0  # in the file
        self._refused_until_s = 0.0  # no new attempt before, because the disk refused a write
        self._stores: dict[int, dict[Capture, int]] = {}  # by segment: the last number of each store in it
        self._of_region: dict[str, set[Capture]] = {}  # all captures in ``_stores``
        self.is_ready = False  # the number of the run is on disk
        self._unsynced: dict[str, set[int]] = {}  # region -> epochs at which it was closed without an fsync

    # --- stores that lack writes of this run ----------------------------------------------------------

    def closed_unsynced(self, region: str, epoch: int) -> None:
        self._unsynced.setdefault(region, set()).add(epoch)

    def unreplayed_parts(self, region: str) -> tuple[LogPart, ...]:
        """Return the parts of this run's log that the region's closed store may lack; for most regions none."""
        return tuple(LogPart(THIS_RUN, epoch) for epoch in sorted(self._unsynced.get(region, ())))

    def so_far(self) -> DeadLog:
        """Return the log of this run so far, with every batch that may have been acknowledged.  Raises HostError."""
        segments = [Segment(segment_name(one), os.path.getsize(self._path(one))) for one in sorted(self._stores)]
        return DeadLog(self._folder, Sealed(tuple(segments)))

    def brought_in(self, region: str) -> None:
        """Note that the region's store has every write of this run to the region."""
        self._unsynced.pop(region, None)
        for capture in self._of_region.get(region, ()):
            capture.note_synced(capture.last)  # its store was closed; the present one has every batch

    def remove_earlier_segments(self) -> None:
        """Remove the segments of earlier runs, whose records all regions have.  Blocks for these removals."""
        self.remove_segments(self._earlier_segments)
        self._earlier_segments = []

    # --- writing --------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        if self._earlier_segments:
            return False  # otherwise the log would grow with each crash
        if self._refused_until_s and monotonic() < self._refused_until_s:
            return False
        return (self._file is not None and self._size < SEGMENT_BYTES) or len(self._stores) < SEGMENTS

    def append(self, records: Sequence[Written]) -> int:
        """Append and sync the records; returns the segment's number.  Runs in a thread and blocks.

        Raises HostError if the records were not written.
        """
        data = self._framing.frame(records)
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
        try:
            self._bounds.raise_to(self._segment, self._length)
        except OSError as error:
            _log.warning("%s: how much of it is synced is not noted: %s", self._path(self._segment), error)
        return self._segment

    def _path(self, segment: int) -> str:
        return os.path.join(self._folder, segment_name(segment))

    def _end_segment(self) -> None:
        """End the segment: bytes after its last acknowledged frame are unreliable, so a new file must follow."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if not self._frames:
                with suppress(OSError):  # the next start removes it
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
        """Store the run's number before the first mark, so that no later run uses the same marks.

        Runs in a thread; raises HostError.
        """
        try:
            self._before_first()
            make_lasting_within(self._folder)
            write_durably(os.path.join(self._folder, RUN), f"{self._log.hex()} {self._run}\n".encode())
            self._bounds.begin()
            self._has_begun()
        except OSError as error:
            raise refused(error, f"cannot write the server's log {self._folder}") from error
        self.is_ready = True

    def round_stands(self, segment: int, stores: dict[Capture, int]) -> list[Capture]:
        """Note a round in the segment, with the last number of each store; returns the stores to sync now."""
        begins = segment not in self._stores
        self._stores.setdefault(segment, {}).update(stores)
        for capture in stores:
            self._of_region.setdefault(capture.region, set()).add(capture)
        return self.waited_for() if begins else []

    def waited_for(self) -> list[Capture]:
        """Return the stores whose fsync is needed before full segments can be removed."""
        return [
            capture
            for segment, stores in self._stores.items()
            if segment != self._segment
            for capture, number in stores.items()
            if capture.synced < number
        ]

    def free(self) -> list[str]:
        """Return and forget the full segments whose stores are all synced; ``remove_segments`` may remove them."""
        done = [
            segment
            for segment, stores in self._stores.items()
            if segment != self._segment and all(capture.synced >= number for capture, number in stores.items())
        ]
        for segment in done:
            self._forget(self._stores.pop(segment))
        return [segment_name(segment) for segment in done]

    def _forget(self, stores: Iterable[Capture]) -> None:
        """Forget the captures of a removed segment, except those that still have batches in a segment."""
        for capture in stores:
            captures = self._of_region[capture.region]
            if not any(capture in stores_of_segment for stores_of_segment in self._stores.values()):
                captures.discard(capture)
            if not captures:
                del self._of_region[capture.region]

    def check_invariants(self) -> None:
        assert {one for captures in self._of_region.values() for one in captures} == {
            one for stores in self._stores.values() for one in stores
        }
        assert all(self._of_region.values())

    def remove_segments(self, names: Sequence[str]) -> None:
        """Remove segments, in any thread.  If this fails, the replay at the next start has no effect."""
        try:
            self._bounds.forget_segments([segment_number(name) for name in names])
            for name in names:
                os.unlink(os.path.join(self._folder, name))
            if names:
                sync_folder_if_any(self._folder)
        except OSError as error:
            _log.error("a segment of the server's log cannot be removed: %s", error)

    def close(self) -> None:
        """Close the log after every store; removes its segments if the stores' own logs have their records."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if not self._unsynced:
            self.remove_segments([segment_name(segment) for segment in self._stores])
        self._bounds.close()


def begin_run(
    folder: str,
    before_first: Callable[[], None] = lambda: None,
    has_begun: Callable[[], None] = lambda: None,
    notes: SyncedNotes | None = None,
) -> tuple[ServerLog, DeadLogs]:
    """Return the log of a run that begins in ``folder``, and the dead logs of earlier runs.

    Raises HostError, DamagedData.
    """
    identity = identity_of(folder)
    sealed = measure(folder)
    log, run = identity if identity is not None else (os.urandom(LOG_BYTES), 0)
    names = [segment.name for segment in sealed.segments]
    written = ServerLog(folder, (log, run + 1), names, before_first, has_begun, notes)
    logs = DeadLogs()
    logs.this_run = written.so_far
    if names:
        logs.add_log(SERVER_LOG, DeadLog(folder, sealed).load())
        logs.on_spent = lambda name: written.remove_earlier_segments() if name == SERVER_LOG else None
    return written, logs


def open_server_log(folder: DataFolder) -> tuple[ServerLog, DeadLogs]:
    """Open the logs of a data folder.  The first write raises the folder's format, to keep older programs out."""
    return begin_run(os.path.join(folder.path, SERVER_LOG), partial(folder.raise_format, SERVER_LOG_SINCE))


def force(file: int) -> None:
    """Sync the file's data and length."""
    os.fdatasync(file)


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

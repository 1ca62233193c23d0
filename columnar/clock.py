"""The store's clock: milliseconds since 1970 that never go back, even if the machine's clock does.

Each timestamp must be above all earlier ones of the store.  Otherwise a put is hidden by the cells that it should
replace, and a delete deletes nothing.  Three places store the highest timestamp, each for cases that the others do not
cover:

    DATA/clock              of the whole store: survives restarts and ``kill -9``   (``ClockFile``)
    ``reached`` in meta     of each region, with its rows: survives power cuts, copies
                            of files and moves to another store                    (``regions.region``)
    ``clock_ms``            of snapshots, exports and backups, in their manifests

Only timestamps that a clock of ours gave count; a timestamp that a client sent never advances the clock.

The file is replaced as a whole by one write:

    clock := highest:u64 complement:u64        big-endian; complement = 2^64 - 1 - highest

The file's timestamp is at most AHEAD_MS above the last given one, so the file is written at most once in AHEAD_MS.  The
file is not memory-mapped, because a write to a mapping ends the process (SIGBUS) if the disk is full, fails or was
mounted read-only; with ``write`` the store keeps serving reads.  The file is not synced, because after a power cut the
regions have the timestamps that the file lost.

Golden bytes are in tests/golden/clock.txt; the format's page is docs/formats/folder.md.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from struct import Struct
from typing import Final, Protocol

from columnar.errors import HostError

_log = logging.getLogger(__name__)

NAME: Final = "clock"  # in the data folder
AHEAD_MS: Final = 20  # less than a restart after a crash takes
LAG_WARNING_MS: Final = 1_000  # an operator is warned when the system's clock lags this much
_PAIR: Final = Struct(">QQ")
_ALL_ONES: Final = (1 << 64) - 1
assert _PAIR.size == 16, "on disk: a new layout needs a new format version"


class Clock(Protocol):
    """The source of timestamps of regions."""

    def __call__(self) -> int:
        """Return milliseconds since 1970, never less than before."""

    def observe(self, moment_ms: int) -> None:
        """Note a timestamp that a clock of ours gave.  From now on no lower timestamp is given."""


def system_ms() -> int:
    return time.time_ns() // 1_000_000


def _kept_by_nobody(_moment_ms: int) -> None:
    pass


class StoreClock:
    """The clock of a store.

    Pure except for two functions that it is passed: the time, and ``keep``.  Owned by the loop.
    """

    def __init__(self, now_ms: Callable[[], int], keep: Callable[[int], None] = _kept_by_nobody) -> None:
        """Pass ``keep``, called with a new bound before any timestamp above the previous bound is given."""
        self._now_ms = now_ms
        self._keep = keep
        self._last = 0  # the highest timestamp given or observed
        self._kept = 0
        self._is_lag_logged = False

    def __call__(self) -> int:
        now = self._now_ms()
        if now > self._last:
            self._rise(now)
        return self._last

    def take_time(self, now_ms: Callable[[], int]) -> None:
        """Take the time from ``now_ms`` from now on: a cluster's time, or again the system's."""
        self._now_ms = now_ms

    def observe(self, moment_ms: int) -> None:
        if moment_ms <= self._last:
            return
        self._rise(moment_ms)
        lag_ms = moment_ms - self._now_ms()
        if lag_ms > LAG_WARNING_MS and not self._is_lag_logged:
            self._is_lag_logged = True
            _log.warning(
                "THE CLOCK IS BEHIND by %d s: the store gave later timestamps before. They stand still until it has "
                "caught up",
                lag_ms // 1_000,
            )

    def _rise(self, to_ms: int) -> None:
        self._last = to_ms
        if to_ms > self._kept:
            self._kept = to_ms + AHEAD_MS
            self._keep(self._kept)

    def settle(self) -> None:
        """Record the last given timestamp exactly; call at the end."""
        self._kept = self._last
        self._keep(self._last)


def packed(moment_ms: int) -> bytes:
    return _PAIR.pack(moment_ms, _ALL_ONES - moment_ms)


def unpacked(data: bytes) -> int:
    """Return the file's timestamp, or 0 if the bytes are not of a clock file."""
    if len(data) != _PAIR.size:
        return 0
    moment_ms, complement = _PAIR.unpack(data)
    return int(moment_ms) if moment_ms + complement == _ALL_ONES else 0


def read(data: str) -> int:
    """Read the file of a data folder, even while it is served.

    Returns 0 if the file has no timestamp.  Raises HostError.
    """
    path = os.path.join(data, NAME)
    try:
        with open(path, "rb") as file:
            return unpacked(file.read(_PAIR.size + 1))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error


class ClockFile:
    """``DATA/clock``, kept open.  Owned by the loop, which a write of 16 bytes does not block."""

    def __init__(self, handle: int, highest_ms: int) -> None:
        """Pass the file's descriptor, and the timestamp that it had when it was opened: 0 if new or damaged."""
        self.highest_ms = highest_ms
        self._handle = handle
        self._refused = False

    @classmethod
    def opened(cls, data: str) -> ClockFile:
        """Open the file in the data folder, and create it if it is missing.  Raises HostError."""
        path = os.path.join(data, NAME)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                return cls(handle, unpacked(os.pread(handle, _PAIR.size + 1, 0)))
            except BaseException:
                os.close(handle)
                raise
        except OSError as error:
            raise HostError(f"cannot use {path}: {error.strerror}; mend it or choose another with --data") from error

    def keep(self, moment_ms: int) -> None:
        """Write the timestamp.

        Errors of the disk are ignored, because regions store their timestamps with their rows.
        """
        try:
            os.pwrite(self._handle, packed(moment_ms), 0)
        except OSError as error:
            if not self._refused:
                self._refused = True
                _log.error("the clock's file is not written: %s; regions go on keeping their own", error.strerror)

    def close(self) -> None:
        os.close(self._handle)

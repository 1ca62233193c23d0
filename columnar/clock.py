"""The store's clock: milliseconds since 1970 that never go back, whatever becomes of the machine's.

Timestamps must be above all that the store gave before: else a put is hidden by the cells that it should replace, and a
delete deletes nothing.  Three places remember the highest timestamp, each for cases that the others do not cover:

    DATA/clock              of the whole store, over restarts and ``kill -9``      (``ClockFile``)
    ``reached`` in meta     of each region, with its rows: over power cuts, copies
                            of files and moves to another store                    (``regions.region``)
    ``clock_ms``            of snapshots, exports and backups, in their manifests

Only timestamps that a clock of ours gave count: a timestamp that a client sent never moves the clock.

The file, replaced as a whole by one write:

    clock := highest:u64 complement:u64        big-endian; complement = 2^64 - 1 - highest

It says at most AHEAD_MS more than was given, so that it is written once in that time.  It is written and not
mapped: a store into a mapping whose disk is full, fails or was mounted read-only ends the process (SIGBUS), and
here readers continue.  It is not synced: the regions have the timestamps that a power cut takes from it.

Golden bytes: tests/golden/clock.txt; the page: docs/formats/folder.md.
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
AHEAD_MS: Final = 20  # of a restart after a crash: less than that takes
LAG_WARNING_MS: Final = 1_000  # an operator is warned when the system's clock lags this much
_PAIR: Final = Struct(">QQ")
_ALL_ONES: Final = (1 << 64) - 1
assert _PAIR.size == 16, "on disk: a new layout needs a new format version"


class Clock(Protocol):
    """The source of timestamps of regions."""

    def __call__(self) -> int:
        """Milliseconds since 1970, never less than before."""

    def observe(self, moment_ms: int) -> None:
        """A clock of ours gave this: from now on nothing less is given."""


def system_ms() -> int:
    return time.time_ns() // 1_000_000


def _kept_by_nobody(_moment_ms: int) -> None:
    pass


class StoreClock:
    """Pure but for what it is given: the time, and who keeps the highest timestamp.  Owned by the loop."""

    def __init__(self, now_ms: Callable[[], int], keep: Callable[[int], None] = _kept_by_nobody) -> None:
        """``keep`` is called before a timestamp above all that it was called with is given."""
        self._now_ms = now_ms
        self._keep = keep
        self._last = 0  # the highest that was given or observed
        self._kept = 0
        self._is_lag_logged = False

    def __call__(self) -> int:
        now = self._now_ms()
        if now > self._last:
            self._rise(now)
        return self._last

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
        """Record at the end what was given, and no more."""
        self._kept = self._last
        self._keep(self._last)


def packed(moment_ms: int) -> bytes:
    return _PAIR.pack(moment_ms, _ALL_ONES - moment_ms)


def unpacked(data: bytes) -> int:
    """0 for what no clock wrote."""
    if len(data) != _PAIR.size:
        return 0
    moment_ms, complement = _PAIR.unpack(data)
    return int(moment_ms) if moment_ms + complement == _ALL_ONES else 0


def read(data: str) -> int:
    """Read the file of a data folder, also while the folder is served; 0 if it says nothing.  HostError."""
    path = os.path.join(data, NAME)
    try:
        with open(path, "rb") as file:
            return unpacked(file.read(_PAIR.size + 1))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise HostError(f"cannot read {path}: {error.strerror}") from error


class ClockFile:
    """``DATA/clock``, kept open.  Owned by the loop: a write of 16 bytes, which the system takes at once."""

    def __init__(self, handle: int, highest_ms: int) -> None:
        """``handle``: its descriptor; ``highest_ms``: what it said when it was opened, 0: new, or damaged."""
        self.highest_ms = highest_ms
        self._handle = handle
        self._refused = False

    @classmethod
    def opened(cls, data: str) -> ClockFile:
        """Open the file in the data folder; make it if it is missing.  HostError."""
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
        """A disk that refuses is no reason not to serve: regions keep theirs with their rows."""
        try:
            os.pwrite(self._handle, packed(moment_ms), 0)
        except OSError as error:
            if not self._refused:
                self._refused = True
                _log.error("the clock's file is not written: %s; regions go on keeping their own", error.strerror)

    def close(self) -> None:
        os.close(self._handle)

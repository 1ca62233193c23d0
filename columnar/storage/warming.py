"""Have the kernel read what was flushed and merged a moment ago, before somebody asks for it.

Files of the engine are written past the page cache (``rocks``), so the first read of each block would wait for the
disk, and the loop with it.  Once a region's folder has not changed between two looks, the files that came since
are asked for (``posix_fadvise``): the kernel reads them while nobody waits.  While a region is loaded its folder
changes all the time, and what is soon merged away is not read.

What is asked for is the kernel's to keep or to throw out, as if it had been written through the cache.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Final

from columnar.limits import MIB
from columnar.storage.folders import takes_direct_writes

_log = logging.getLogger(__name__)

LOOK_S: Final = 0.5
WARMED_BYTES: Final = 256 * MIB  # at one look, the newest files first
PIECE_BYTES: Final = (
    1 * MIB
)  # asked for at once: a read of others, or an fsync, waits for no more of the disk than this
PAUSE_S: Final = 0.004  # between two pieces: at most 250 MiB/s
_FILE_END: Final = ".sst"


class Warmer:
    """Of all regions in a folder; belongs to one thread at a time."""

    def __init__(self, regions_folder: str) -> None:
        """What is in the folder by now is not read: a start reads what it needs, and no more."""
        self._folder = regions_folder
        self._began_ns = time.time_ns()
        self._stopped = threading.Event()
        self._seen: dict[str, tuple[int, int]] = {}  # by region: change of its folder that was dealt with, the last one

    def look(self) -> int:
        """Blocks, a second for WARMED_BYTES; some 2 us for each region that did not change.

        The bytes that were asked for.  OSError: the rest is not looked at.
        """
        seen, asked = self._seen, 0
        self._seen = {}
        with os.scandir(self._folder) as regions:
            for region in regions:
                try:
                    changed = region.stat().st_mtime_ns
                    done, last = seen.get(region.name, (min(changed, self._began_ns), 0))
                    if changed == last and changed != done:
                        asked += self._read_ahead(region.path, max(done, self._began_ns), WARMED_BYTES - asked)
                        done = changed
                except (FileNotFoundError, NotADirectoryError):
                    continue  # dropped meanwhile; a file that somebody left there
                self._seen[region.name] = (done, changed)
        return asked

    def _read_ahead(self, region: str, since_ns: int, room: int) -> int:
        new = []
        with os.scandir(region) as files:
            for file in files:
                if file.name.endswith(_FILE_END) and file.stat().st_mtime_ns >= since_ns:
                    new.append((file.name, file.path, file.stat().st_size))
        asked = 0
        for _, path, size in sorted(new, reverse=True):
            if asked + size > room:
                break
            try:
                self._ask_for(path, size)
            except FileNotFoundError:
                continue  # merged meanwhile
            asked += size
        return asked

    def _ask_for(self, path: str, size_bytes: int) -> None:
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for at in range(0, size_bytes, PIECE_BYTES):
                if self._stopped.wait(PAUSE_S):
                    return
                os.posix_fadvise(held, at, PIECE_BYTES, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(held)

    def stop(self) -> None:
        """From any thread: a look that is under way ends soon, and asks for nothing more."""
        self._stopped.set()


async def keep_warm(regions_folder: str) -> None:
    """Until it is cancelled; returns at once where files are written through the page cache."""
    if not takes_direct_writes(regions_folder):
        return
    warmer = Warmer(regions_folder)
    try:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await asyncio.to_thread(warmer.look)
            except OSError as error:
                _log.warning("new files are not read ahead this time: %s", error)
    finally:
        warmer.stop()

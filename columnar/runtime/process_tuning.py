"""Settings of the interpreter and the allocator for a serving process.

    event loop         uvloop, which serves twice as many requests as asyncio's loop
    switch interval    a thread that returns from an fsync waits SWITCH_S for the interpreter lock instead of Python's
                       5 ms
    collector          objects made at the start are never traversed again; collections start after COLLECTED_EVERY
    freed memory       is returned to the system while the process has little to do (``MemoryReturn``)

glibc returns only the memory that is free at the end of its heap; after large requests most free memory is in the
middle (a store that had taken 820 KB from each of 128 clients at once stayed at 330 MB).  The resident memory is
checked every CHECK_INTERVAL_S.  When it has grown by GROWN_BYTES since the last return, all free memory is returned,
and again at each check as long as a return frees PAYS_BYTES.  The return runs in a thread, but other threads that
allocate meanwhile wait for it.  So memory is returned only after a CHECK_INTERVAL_S in which the process had little to
do.

With a C library other than glibc nothing happens.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable
from typing import Final

from columnar.limits import MIB
from columnar.runtime.faults import surviving

SWITCH_S: Final = 0.0001
COLLECTED_EVERY: Final = 20_000  # new containers; a reply of a scan has 2,000, none of them in a cycle
CHECK_INTERVAL_S: Final = 2.0
GROWN_BYTES: Final = 32 * MIB
PAYS_BYTES: Final = 8 * MIB  # a return that frees less is not repeated
BUSY_S: Final = 0.25 * CHECK_INTERVAL_S  # of CPU between two checks


def loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop class; None if uvloop is missing, which means asyncio's."""
    try:
        import uvloop
    except ImportError:  # Windows has none
        return None
    loop: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return loop


def switch_quickly() -> None:
    sys.setswitchinterval(SWITCH_S)


def calm_collector() -> None:
    """Exempt all present objects from collection.

    Call at the end of the start, because a collection of the start's objects takes 20 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_EVERY, 20, 20)


def is_possible() -> bool:
    """Return whether the process uses glibc and /proc shows its memory."""
    return "CS_GNU_LIBC_VERSION" in os.confstr_names and os.path.exists("/proc/self/statm")


def malloc_trim() -> None:
    import ctypes  # 0.4 MB that a store without large requests does not need

    ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class MemoryReturn:
    def __init__(
        self,
        trim_memory: Callable[[], object],
        resident: Callable[[], int],
        cpu_s: Callable[[], float],
        used_s: float,
        least_bytes: int,
    ) -> None:
        """Pass the processor time and the resident memory at the beginning as ``used_s`` and ``least_bytes``."""
        self._trim_memory = trim_memory
        self._resident = resident
        self._cpu_s = cpu_s
        self._used_s = used_s  # processor time at the last check
        self._least = least_bytes  # resident memory after the last return
        self._pays = False

    @classmethod
    def begun(
        cls,
        trim_memory: Callable[[], object] = malloc_trim,
        resident: Callable[[], int] = resident_bytes,
        cpu_s: Callable[[], float] = time.process_time,
    ) -> MemoryReturn:
        return cls(trim_memory, resident, cpu_s, cpu_s(), resident())

    def trim_if_grown(self) -> int:
        """Return free memory to the system if the process has grown.  Returns the freed bytes.  Blocks for some ms."""
        used_s, self._used_s = self._used_s, self._cpu_s()
        if self._used_s - used_s > BUSY_S:
            return 0
        before = self._resident()
        if not self._pays and before < self._least + GROWN_BYTES:
            self._least = min(self._least, before)
            return 0
        self._trim_memory()
        self._least = self._resident()
        self._pays = before - self._least >= PAYS_BYTES
        return before - self._least


async def trim_memory_periodically() -> None:
    """Check every CHECK_INTERVAL_S until cancelled.  Returns immediately on a system without such memory checks."""
    if not is_possible():
        return
    memory = MemoryReturn.begun()
    while True:
        await asyncio.sleep(CHECK_INTERVAL_S)
        with surviving("the return of memory"):
            await asyncio.to_thread(memory.trim_if_grown)

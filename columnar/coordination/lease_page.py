"""The end of a node's lease, in shared memory: one process writes, and all read without a call.

    page := until:u64 complement:u64        nanoseconds of CLOCK_BOOTTIME, native order; complement = 2^64 - 1 - until
            base:u64 complement:u64         the cluster's time less CLOCK_BOOTTIME, in milliseconds; 0: unknown

The supervisor makes the page (an anonymous file in memory) and passes its descriptor to its servers.  The
supervisor writes the page after each answer of the coordination service.  A server checks the page after the work for
an answer, before it sends the answer.

Invariants:
    P1. ``is_valid`` is true only if a complete value was read that lies in the future.  A value whose two halves do not
        match is being written, so it is read again; after READS attempts it counts as no lease.
    P2. A new page has no lease.

CLOCK_BOOTTIME goes on while the machine sleeps, so a lease does not outlive the sleep of a laptop or host.  No lease
can notice that a hypervisor stops a guest together with the guest's clock.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from struct import Struct
from typing import Final

_PAIR: Final = Struct("=QQ")
_ALL_ONES: Final = (1 << 64) - 1
PAGE_BYTES: Final = 2 * _PAIR.size
assert PAGE_BYTES == 32, "processes of one start share it: a new layout needs no version"
NS: Final = 1_000_000  # in a millisecond
READS: Final = 100  # attempts to read while the page is being written; a write is shorter than one read
CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS's monotonic clock goes on during sleep


def boot_ns() -> int:
    """Return the time since the machine started, including its sleep."""
    return time.clock_gettime_ns(CLOCK)


def boot_ms() -> int:
    return time.clock_gettime_ns(CLOCK) // NS


def make_memory_file(name: str, size_bytes: int) -> int:
    """Make an anonymous file in memory, of zeros; returns its descriptor, for children to which it is passed."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(name)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size_bytes)
    return descriptor


class LeasePage:
    """The page, mapped into memory; one process writes it."""

    def __init__(self, descriptor: int, memory: mmap.mmap) -> None:
        self.descriptor = descriptor  # to be inherited by servers
        self._memory = memory

    @classmethod
    def create(cls) -> LeasePage:
        """Make a page without a lease.  Only a child to which the page's descriptor is passed inherits it."""
        descriptor = make_memory_file("columnar-lease", PAGE_BYTES)
        page = cls(descriptor, mmap.mmap(descriptor, PAGE_BYTES))
        page.write_end(0)
        page.write_time_base(0)
        return page

    @classmethod
    def open_inherited(cls, descriptor: int) -> LeasePage:
        """Map the parent's page for reading."""
        return cls(descriptor, mmap.mmap(descriptor, PAGE_BYTES, access=mmap.ACCESS_READ))

    def write_end(self, until_ms: int) -> None:
        """Set the end of the lease, in milliseconds of ``boot_ms``; 0 means that the lease is lost."""
        until_ns = until_ms * NS
        self._memory[: _PAIR.size] = _PAIR.pack(until_ns, _ALL_ONES - until_ns)

    def write_time_base(self, base_ms: int) -> None:
        """Set the cluster's time as what it is more than ``boot_ms``."""
        self._memory[_PAIR.size :] = _PAIR.pack(base_ms, _ALL_ONES - base_ms)

    def read_cluster_ms(self) -> int:
        """Return the cluster's time now, which is not behind any machine's; 0 if unknown."""
        base_ms = self.read_time_base()
        return base_ms + boot_ms() if base_ms else 0

    def read_time_base(self) -> int:
        for _ in range(READS):
            base_ms, complement = _PAIR.unpack_from(self._memory, _PAIR.size)
            if base_ms + complement == _ALL_ONES:
                return int(base_ms)
        return 0

    def write_endless(self) -> None:
        """Grant the lease without an end, because no other process can take it."""
        self.write_end(_ALL_ONES // NS)

    def read_end_ns(self) -> int:
        """Return the end of the lease, or 0 if there is no lease."""
        for _ in range(READS):
            until_ns, complement = _PAIR.unpack_from(self._memory)
            if until_ns + complement == _ALL_ONES:
                return int(until_ns)
        return 0

    def is_valid(self) -> bool:
        """Tell whether the lease holds now; call this after the work that the answer depends on."""
        return time.clock_gettime_ns(CLOCK) < self.read_end_ns()

    def left_s(self) -> float:
        """Return the seconds until the lease ends; below 0 if it does not hold."""
        return (self.read_end_ns() - time.clock_gettime_ns(CLOCK)) / 1e9

    def close(self) -> None:
        self._memory.close()
        os.close(self.descriptor)

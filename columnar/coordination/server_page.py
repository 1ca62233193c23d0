"""The readings of a region server: the synced lengths of its log, and its clock, in memory shared with its node.

    page  := slot{4} clock
    slot  := segment:u64 length:u64 check:u64    of segment N the slot N mod 4; check = ~(segment xor length)
    clock := highest_ms:u64 check:u64            check = ~highest_ms
                                                 numbers in native order; zeros: none

The node makes the page (an anonymous file in memory), and the server writes it: a slot after each fsync of a segment of
its log, before the writes are acknowledged, and the clock before a timestamp above it is given.  The node reads the
pages for each renewal of its lease, and a server's page once more when it has reaped the server (``ServerPages``).  So
a synced length is known without the data folder, whose files a machine may see as they were a moment ago.

Invariants:
    S1. A length that is read was synced; a slot or clock that is being written is read again.  A process that is killed
        while it writes leaves a slot that counts as none, which is a weaker bound, but correct.
    S2. The slot of a segment is emptied before the segment is removed.

Costs the server 0.5 us for each fsync of its log, and 0.3 us for each 20 ms of its clock.
"""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from threading import Lock
from time import monotonic
from typing import Final

from columnar.coordination.lease_page import make_memory_file
from columnar.coordination.node_record import Logs

_SLOT: Final = Struct("=QQQ")
_CLOCK: Final = Struct("=QQ")
SLOTS: Final = 4
_CLOCK_AT: Final = SLOTS * _SLOT.size
PAGE_BYTES: Final = _CLOCK_AT + _CLOCK.size
assert PAGE_BYTES == 112, "processes of one start share it: a new layout needs no version"
_ALL_ONES: Final = (1 << 64) - 1
READS: Final = 100  # attempts to read while the page is being written; a write is shorter than one read
LOGS_BYTES: Final = 8_192  # of the logs in a node's record; those of 16 servers take 3 KiB
_ENTRY_BYTES: Final = 8  # of a server in JSON beside its name and its segments
_SEGMENT_BYTES: Final = 28  # of a segment in JSON, at most
ENDED_KEPT: Final = 64  # servers that this node has reaped, whose last pages are known
EMPTY_NAMED_S: Final = 60.0  # for a server that left no log: all nodes read all records every 5 s (``election``)


class ServerPage:
    """The page, mapped into memory; one process writes it, and its parent reads it."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory

    @classmethod
    def create(cls) -> tuple[ServerPage, int]:
        """Make an empty page; returns it with its descriptor, for the child that inherits it, and to be closed here."""
        descriptor = make_memory_file("columnar-server", PAGE_BYTES)
        return cls(mmap.mmap(descriptor, PAGE_BYTES)), descriptor

    @classmethod
    def open_inherited(cls, descriptor: int) -> ServerPage:
        """Map the page that the parent has made, and close its descriptor."""
        try:
            return cls(mmap.mmap(descriptor, PAGE_BYTES))
        finally:
            os.close(descriptor)

    # --- the server ----------------------------------------------------------------------------------

    def raise_synced(self, segment: int, length: int) -> None:
        """Note that ``length`` bytes of the segment are synced.  Threads note and forget segments one at a time."""
        check = ~(segment ^ length) & _ALL_ONES
        _SLOT.pack_into(self._memory, segment % SLOTS * _SLOT.size, segment, length, check)

    def forget_segments(self, segments: Iterable[int]) -> None:
        """Empty the slots of segments that are removed next."""
        for segment in segments:
            at = segment % SLOTS * _SLOT.size
            if _SLOT.unpack_from(self._memory, at)[0] == segment:
                _SLOT.pack_into(self._memory, at, 0, 0, 0)

    def raise_clock(self, highest_ms: int) -> None:
        """Note that timestamps up to ``highest_ms`` may be given."""
        _CLOCK.pack_into(self._memory, _CLOCK_AT, highest_ms, ~highest_ms & _ALL_ONES)

    # --- the node ------------------------------------------------------------------------------------

    def read_synced(self) -> dict[int, int]:
        """Return the synced length of each segment, by the segment's number, ascending."""
        slots = (self._read_slot(at) for at in range(0, _CLOCK_AT, _SLOT.size))
        return dict(sorted(slot for slot in slots if slot is not None))

    def _read_slot(self, at: int) -> tuple[int, int] | None:
        for _ in range(READS):
            segment, length, check = _SLOT.unpack_from(self._memory, at)
            if segment ^ length ^ check == _ALL_ONES:
                return int(segment), int(length)
            if segment == length == check == 0:
                break
        return None

    def read_clock_ms(self) -> int:
        for _ in range(READS):
            highest_ms, check = _CLOCK.unpack_from(self._memory, _CLOCK_AT)
            if highest_ms ^ check == _ALL_ONES:
                return int(highest_ms)
            if highest_ms == check == 0:
                break
        return 0


@dataclass(frozen=True, slots=True)
class ServerReadings:
    """The pages of a node's servers, in the form of the node's record."""

    logs: Logs
    clock_ms: int  # no server of the node has given a higher timestamp; 0: none was given


class ServerPages:
    """The pages of a node's servers by incarnation, such as ``s2.17``.  Any thread may call the methods."""

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()  # guards the fields below
        self._pages: dict[str, ServerPage] = {}
        self._ended: OrderedDict[str, dict[int, int]] = OrderedDict()  # synced lengths of the last reaped servers
        self._emptied_s: dict[str, float] = {}  # of those, when the ones without a log were reaped
        self._clock_ms = 0  # of the reaped servers

    def add_server(self, server: str, page: ServerPage) -> None:
        with self._lock:
            self._pages[server] = page

    def end_server(self, server: str) -> None:
        """Read the page of a server that was reaped, for the last time."""
        with self._lock:
            page = self._pages.pop(server, None)
            if page is None:
                return
            self._clock_ms = max(self._clock_ms, page.read_clock_ms())
            synced = page.read_synced()
            self._ended[server] = synced
            if not synced:
                self._emptied_s[server] = self._now_s()
            while len(self._ended) > ENDED_KEPT:
                self._emptied_s.pop(self._ended.popitem(last=False)[0], None)

    def synced_lengths(self, server: str) -> Mapping[int, int]:
        """Return the synced lengths of the server's segments now, or at its end; none if the server is unknown."""
        with self._lock:
            page = self._pages.get(server)
            return page.read_synced() if page is not None else self._ended.get(server, {})

    def _forget_emptied(self) -> None:
        now_s = self._now_s()
        for server, since_s in tuple(self._emptied_s.items()):
            if now_s - since_s >= EMPTY_NAMED_S:
                del self._emptied_s[server], self._ended[server]

    def read_pages(self) -> ServerReadings:
        """Read all pages: 5 us for each server.

        The logs of servers that have ended come too, the last ones first, as long as all take less than LOGS_BYTES.  A
        server that has left no log is named for EMPTY_NAMED_S, so that earlier lengths of its log count no more.
        """
        with self._lock:
            self._forget_emptied()
            clock_ms = max([self._clock_ms, *(page.read_clock_ms() for page in self._pages.values())])
            found = [(server, page.read_synced()) for server, page in self._pages.items()]
            found += reversed(self._ended.items())
        logs: Logs = {}
        size_bytes = 0
        for server, synced in found:
            size_bytes += len(server) + _ENTRY_BYTES + _SEGMENT_BYTES * len(synced)
            if size_bytes <= LOGS_BYTES:  # also without segments: the server has removed them
                logs[server] = tuple((f"{segment:08d}", length) for segment, length in synced.items())
        return ServerReadings(logs, clock_ms)

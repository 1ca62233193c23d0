"""The changes of this server's regions, for change streams: reads, and waits for more.

Requests come from this process, or from the gateways of a cluster (``answers``).  A closed region is opened only if it
may have changes behind the position.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from columnar.cluster.peer_requests import ChangesFound, ChangesPart, ReadChanges, WaitChanges
from columnar.errors import NotServingRegion, RegionNotLocal
from columnar.flows.governor import Governor
from columnar.flows.position import Range
from columnar.model.change_stream import StreamCounts, StreamRange
from columnar.model.region_info import RegionInfo
from columnar.regions.log.change_record import Sequence
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.runtime.long_waits import LongWaits
from columnar.streams.change_filter import ChangeFilter
from columnar.streams.log_ticks import LogTicks
from columnar.streams.reader_queue import ReaderQueue
from columnar.streams.region_reader import RegionReader, Reply

GATEWAYS: Final = 256  # whose rounds are known
LEAST_PART_BYTES: Final = 16 * 1024  # of a reply, for one of many regions


@dataclass(frozen=True, slots=True)
class ReadRound:
    """A round of readers (``reader_queue``): within it they read up to the same end of each log."""

    number: int
    tick: int  # from before its first read
    ends: dict[int, Sequence]  # by region id, of the regions that were read in the round


class LocalChanges:
    def __init__(
        self,
        server: RegionServer,
        governor: Governor,
        change: Callable[[], asyncio.Future[None]] | None,
        waits: LongWaits | None = None,
    ) -> None:
        """``change`` returns a shared future that ends when the set of regions that this server owns changes.

        If it is None, this process has all regions for ever.
        """
        self._server = server
        self._change = change
        self.queue = ReaderQueue(governor)
        self.ticks = LogTicks(self.queue, waits)
        self.replies = 0  # to requests for streams, with and without events
        self._sent_bytes = 0
        self._events = 0
        # Ends of the logs of closed regions, by region id, with the epoch at which this server owned the region: if it
        # owned it again, another server may have written to the log in between.
        self._ends: dict[int, tuple[int, Sequence]] = {}
        self._first_part = 0
        self._wide_rows = asyncio.Lock()
        self._rounds: OrderedDict[str, ReadRound] = OrderedDict()  # by gateway, at most GATEWAYS
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            ReadChanges: self.read_changes,
            WaitChanges: self.wait_changes,
        }

    # --- what the hub tells ---------------------------------------------------------------------------

    def changes_durable(self, region: Region) -> None:
        self.ticks.note_durable(region)

    def region_closing(self, region: Region) -> None:
        """Note where the region's log ends: a reader that has read so far does not open the region."""
        region_id = region.info.region_id
        self.ticks.forget_region(region_id)
        if region.log.durable == region.log.written_to:
            self._ends[region_id] = (self._server.hosting.state.epoch_of(region_id), region.log.durable)
        if self._server.serving(region.info) is None:  # its readers are told that the table is not there any more
            self.ticks.wake((region_id,))

    def regions_replaced(self, gone: Iterable[int]) -> None:
        """Have the readers of replaced regions look for their successors."""
        for region_id in gone:
            self._ends.pop(region_id, None)
        self.ticks.wake(gone)

    def count_reply(self) -> None:
        self.replies += 1

    def count_sent(self, size_bytes: int) -> None:
        self._sent_bytes += size_bytes

    def counts(self) -> StreamCounts:
        return StreamCounts(self.ticks.waiting_count, self.replies, self._sent_bytes, self._events)

    # --- requests -------------------------------------------------------------------------------------

    async def read_changes(self, message: ReadChanges) -> ChangesFound:
        """Read the parts' changes, a share of the reply's bytes from each part.

        The parts are read in turn, beginning with another one each time, so that a busy region delays no other.
        """
        served = self._server.tables.enabled(message.table.encode())
        wanted, round_ = ChangeFilter(message.spec, served.schema), self._round_of(message)
        count = len(message.parts)
        self._first_part = first = self._first_part + 1
        reply, found = Reply(0), [None] * count  # type: Reply, list[tuple[StreamRange, ...] | None]
        is_at_end, up_to_ms = True, [1 << 63]
        for nth in range(count):
            at = (first + nth) % count
            part = message.parts[at]
            room = message.max_bytes - reply.size_bytes
            # without room a stream only begins in the part
            reply.allow_bytes(max(LEAST_PART_BYTES, room // (count - nth)) if room > 0 else 0)
            try:
                found[at], is_read, at_ms = await self._read_part(served, part, wanted, round_, message.start, reply)
            except (RegionNotLocal, NotServingRegion):
                is_at_end = False
                continue
            is_at_end &= is_read
            up_to_ms.append(at_ms)
        self._events += len(reply.events)
        known_ms = min(up_to_ms) if is_at_end else 0
        return ChangesFound(b"".join(reply.events), tuple(found), is_at_end, known_ms, round_.tick)

    def _round_of(self, message: ReadChanges) -> ReadRound:
        """Return the round of the gateway's readers; each round of a gateway begins with the present ends."""
        found = self._rounds.pop(message.gateway, None)
        if found is None or found.number != message.round:
            found = ReadRound(message.round, self.ticks.tick, {})
        self._rounds[message.gateway] = found
        if len(self._rounds) > GATEWAYS:
            self._rounds.popitem(last=False)
        return found

    async def _read_part(
        self,
        served: ServedTable,
        part: ChangesPart,
        wanted: ChangeFilter,
        round_: ReadRound,
        start: str,
        reply: Reply,
    ) -> tuple[tuple[StreamRange, ...], bool, int]:
        """Return the part's ranges after the read, whether all is read, and the time up to which it was read."""
        info, count = part.region, len(reply.events)
        if not self._server.owns(info):
            raise RegionNotLocal(info.table, info.encoded)
        if self._is_read(part):
            return part.ranges, True, time.time_ns() // 1_000_000
        try:
            region = await self._server.opened(served, info)
            end = round_.ends.setdefault(info.region_id, region.log.durable)
            reader = RegionReader(region, wanted, reply, end, self._wide_rows)
            try:
                ranges, is_read = await reader.read_changes(tuple(map(range_of, part.ranges)), start)
            finally:
                self.queue.spend_time(reader.taken_s)
        except BaseException:  # what was added is read again
            reply.remove_after(count)
            raise
        return tuple(map(value_of, ranges)), is_read, reader.read_up_to_ms

    def _is_read(self, part: ChangesPart) -> bool:
        """Return whether the region is closed, and had no change behind the part's position when it closed."""
        region_id = part.region.region_id
        epoch, end = self._ends.get(region_id, (0, None))
        if end is None or not part.ranges or self._server.is_open(part.region):
            return False
        if self._server.hosting.state.epoch_of(region_id) != epoch:
            del self._ends[region_id]
            return False
        return all(one.x is None and one.p is not None and Sequence(*one.p) >= end for one in part.ranges)

    async def wait_changes(self, message: WaitChanges) -> bool:
        if not self._own(message.regions):
            return True
        ids = [info.region_id for info in message.regions]
        ends = None if self._change is None else partial(self._end_with_regions, message.regions)
        return await self.ticks.wait_later(ids, message.tick, message.timeout_ms / 1_000, ends)

    def _own(self, regions: tuple[RegionInfo, ...]) -> bool:
        return all(self._server.owns(info) and self._server.serving(info) is not None for info in regions)

    def _end_with_regions(self, regions: tuple[RegionInfo, ...], done: asyncio.Future[bool]) -> Callable[[], None]:
        """Complete ``done`` when this server no longer owns one of the regions."""
        change = self._change
        assert change is not None, "regions come and go"
        watched = [change()]

        def changed(_: asyncio.Future[None]) -> None:
            if done.done():
                return
            if not self._own(regions):
                done.set_result(True)
                return
            watched[0] = change()
            watched[0].add_done_callback(changed)

        watched[0].add_done_callback(changed)

        def undo() -> None:
            watched[0].remove_done_callback(changed)

        return undo


def range_of(one: StreamRange) -> Range:
    return Range(one.start, None if one.p is None else Sequence(*one.p), one.x)


def value_of(one: Range) -> StreamRange:
    return StreamRange(one.start, None if one.p is None else (one.p.origin, one.p.epoch, one.p.n), one.x)

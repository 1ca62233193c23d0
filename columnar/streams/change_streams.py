"""Change streams at the server that a client called: cuts a position by owners of regions, reads, and waits for more.

A stream has no state here: its position has all that is needed, so any server answers the next request, and a reader
that went away leaves nothing.  Readers wait for slots (``reader_queue``), and those with the same wishes share
replies (``SharedReplies``).

A read goes to the owners of all regions with wanted rows at once.  If they have nothing, the request waits until one of
them has more.  Waits of several readers for the same regions of another server share one request to that server.

Invariants:
    I1. The position of a reply counts exactly the reply's events: what an owner read in vain, or read for a reply that
        was not sent, is read again.
    I2. A region that is moving, or is being replaced, holds up the events of no other region.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from columnar.cluster import refusals
from columnar.cluster.link_errors import LinkBroke
from columnar.cluster.peer_requests import ChangesFound, ChangesPart, ReadChanges, WaitChanges
from columnar.cluster.scatter_gather import FIRST_PAUSE_S, LONGEST_PAUSE_S, NOTHING_DONE, Owners, choose_server
from columnar.errors import ClientGone, DamagedData, IllegalArgument, RegionTooBusy
from columnar.flows import position
from columnar.flows.position import Position, Range
from columnar.model.change_stream import (
    ALL_CHANGES,
    MOST_WAIT_MS,
    NOW,
    STREAM_REPLY_BYTES,
    StreamSpec,
    checked_spec,
    checked_start,
)
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.operations.access import TableAccess
from columnar.regions.life.retry import UNAVAILABLE_TIMEOUT_S
from columnar.regions.tables import ServedTable
from columnar.streams.local_changes import LocalChanges, range_of, value_of

WAIT_SLICE_S: Final = 5.0  # a wait looks so often whether its client is still there
LONGEST_READ_S: Final = 2.0  # without an event: then the reply is empty, and its position is further
REMOTE_WAIT_MS: Final = 10_000
STREAM_RANGES: Final = 8_192  # of a position, beside eight for each region: a forged one would hold up the loop
REMOTE_WAITS: Final = 1_000  # different sets of regions that are waited for at other servers
_ALL_READ: Final = (Range(b"", None, None),)  # of regions without wanted rows


@dataclass(frozen=True, slots=True)
class StreamRequest:
    position: bytes  # of the last reply; empty: begin at ``start``
    start: str = NOW
    spec: StreamSpec = ALL_CHANGES
    max_bytes: int = STREAM_REPLY_BYTES
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class StreamReply:
    events: bytes
    position: bytes
    up_to_ms: int  # every change with a lower stamp was sent; 0: not known


SHARED_REPLIES: Final = 64
SHARED_BYTES: Final = 16 * 1024 * 1024


class SharedReplies:
    """Replies that several readers share: readers with the same wishes at the same position get the same bytes.

    A reply stays right for ever: it has the changes behind its position up to the next position, and a later reader of
    the first position goes on from there.  It is forgotten when the table's schema or state changes.

    Invariant: at most SHARED_REPLIES replies with SHARED_BYTES are kept; the one that was used longest ago goes first.
    """

    def __init__(self) -> None:
        self._replies: OrderedDict[Any, tuple[ServedTable, StreamReply, int]] = OrderedDict()
        self.size_bytes = 0

    def find_reply(self, served: ServedTable, key: Any) -> StreamReply | None:
        """Return the reply to the request ``key``, if it is kept and the table is served as it was."""
        found = self._replies.get(key)
        if found is None:
            return None
        if found[0] is not served:
            self._drop(key)
            return None
        self._replies.move_to_end(key)
        return found[1]

    def keep_reply(self, served: ServedTable, key: Any, reply: StreamReply, size_bytes: int) -> None:
        self._drop(key)
        if size_bytes > SHARED_BYTES // 4:
            return
        self._replies[key] = (served, reply, size_bytes)
        self.size_bytes += size_bytes
        while len(self._replies) > SHARED_REPLIES or self.size_bytes > SHARED_BYTES:
            self._drop(next(iter(self._replies)))

    def _drop(self, key: Any) -> None:
        dropped = self._replies.pop(key, None)
        if dropped is not None:
            self.size_bytes -= dropped[2]


class ChangeStreams:
    def __init__(self, access: TableAccess, local: LocalChanges, owners: Callable[[], Owners | None]) -> None:
        """``owners`` returns None if this process has all regions."""
        self._access = access
        self._local = local
        self._owners = owners
        self._active = 0  # requests under way
        self._shared = SharedReplies()
        self._remote: dict[tuple[Incarnation, tuple[RegionInfo, ...]], tuple[int, asyncio.Future[bool]]] = {}

    async def read_stream(self, table: bytes, request: StreamRequest, has_gone: Callable[[], bool]) -> StreamReply:
        """Return the next events, or none if there is none within ``wait_ms``.

        Raises ChangesGone, IllegalArgument, NotAllowed if the table keeps no changes, NotServingRegion, ClientGone.
        """
        served = self._access.meant(table)
        request = _checked(request)
        if served.is_throttled:
            self._access.admit(served, writes=False)
        key = (request.position, request.spec, request.max_bytes)
        self._active += 1
        try:
            await self._local.queue.wait_slot()
            shared = self._shared.find_reply(served, key) if request.position else None
            if shared is not None:
                self._spend(served, shared)
                return shared
            reply = await self._read_later(served, request, has_gone)
            self._spend(served, reply)
            if reply.events and request.position and self._active > 1:
                self._shared.keep_reply(served, key, reply, len(reply.events) + len(reply.position))
            return reply
        finally:
            self._active -= 1
            self._local.count_reply()

    def _spend(self, served: ServedTable, reply: StreamReply) -> None:
        """Charge the reply to the table's quota, and to the readers' share of the loop."""
        size = len(reply.events)
        self._local.queue.spend_bytes(size)
        self._local.count_sent(size)
        if served.is_throttled:
            self._access.charge(served, 1, size, writes=False)

    async def _read_later(
        self, served: ServedTable, request: StreamRequest, has_gone: Callable[[], bool]
    ) -> StreamReply:
        """Read, and wait up to ``wait_ms`` for the first event."""
        now_s = time.monotonic()
        poll = _Poll(served.schema.name, request, now_s + request.wait_ms / 1_000)
        missing_until_s = now_s + UNAVAILABLE_TIMEOUT_S
        place = None if not request.position else _unpacked(request.position, served)
        pause_s = FIRST_PAUSE_S
        while True:
            owners = self._owners()
            change = owners.change() if owners is not None else None
            round_ = await self._read(poll, self._access.again(served), place)
            place = round_.place if round_.place is not None else place
            if place is not None and (round_.events or round_.is_at_end):
                left_s = poll.deadline_s - time.monotonic()
                if round_.events or left_s <= 0 or not await self._wait(round_, left_s, change, has_gone):
                    up_to_ms = round_.up_to_ms if round_.is_at_end else 0
                    return StreamReply(round_.events, position.pack(place, poll.table), up_to_ms)
                continue
            if round_.missing is None:  # a region has more to read, and no event for this reader so far
                _check_client(has_gone)
                missing_until_s = time.monotonic() + UNAVAILABLE_TIMEOUT_S
                if place is not None and time.monotonic() > now_s + LONGEST_READ_S:
                    return StreamReply(b"", position.pack(place, poll.table), 0)
                continue
            if time.monotonic() > missing_until_s:
                raise refusals.refuse_unavailable(round_.missing, poll.table)
            _check_client(has_gone)
            await _first_of([change] if change is not None else [], pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def begin_at(self, table: str, start: str, has_gone: Callable[[], bool]) -> Position:
        """Return the position at ``start``, without reading.  Raises what ``read_stream`` raises."""
        served = self._access.table(table.encode())
        poll = _Poll(table, replace(_checked(StreamRequest(b"", start)), max_bytes=0), 0)
        missing_until_s, pause_s = time.monotonic() + UNAVAILABLE_TIMEOUT_S, FIRST_PAUSE_S
        while True:
            owners = self._owners()
            change = owners.change() if owners is not None else None
            round_ = await self._read(poll, self._access.again(served), None)
            if round_.place is not None:
                return round_.place
            if round_.missing is not None and time.monotonic() > missing_until_s:
                raise refusals.refuse_unavailable(round_.missing, table)
            _check_client(has_gone)
            await _first_of([change] if change is not None else [], pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    # --- one round ----------------------------------------------------------------------------------------

    async def _read(self, poll: _Poll, served: ServedTable, place: Position | None) -> _Round:
        parts: list[ChangesPart] = []
        for info in served.regions:
            ranges = position.clip(place, info.start, info.end) if place is not None else ()
            parts.append(ChangesPart(info, tuple(map(value_of, ranges))))
        spec = poll.request.spec
        wanted = [one for one in parts if spec.overlaps(one.region.start, one.region.end) and not _is_skipped(one)]
        by_server: dict[Incarnation | None, list[ChangesPart]] = {}
        for part in wanted:
            by_server.setdefault(self._server_of(part.region), []).append(part)
        room = -(-poll.request.max_bytes // max(1, len(by_server)))
        reads = [self._read_at(server, poll, mine, room) for server, mine in by_server.items()]
        answers = [await reads[0]] if len(reads) == 1 else await asyncio.gather(*reads)
        return _round_of(place, parts, list(zip(by_server.items(), answers, strict=True)))

    def _server_of(self, info: RegionInfo) -> Incarnation | None:
        """Return the server to ask for the region; None: this one."""
        owners = self._owners()
        if owners is None:
            return None
        route = owners.owner_of(info.table, info.start)
        server = choose_server(route, 0) if route is not None else owners.local_server
        return None if server == owners.local_server else server

    async def _read_at(
        self, server: Incarnation | None, poll: _Poll, parts: list[ChangesPart], room: int
    ) -> ChangesFound | None:
        """Return the answer, or None if the server cannot be reached."""
        owners = self._owners()
        gateway = str(owners.local_server) if owners is not None else ""
        spec, start, round_ = poll.request.spec, poll.request.start, self._local.queue.round
        message = ReadChanges(poll.table, spec, start, tuple(parts), room, gateway, round_)
        if server is None:
            return await self._local.read_changes(message)
        assert owners is not None, "another server was named"
        try:
            return await owners.request_server(server, message, room)
        except (*NOTHING_DONE, LinkBroke):
            return None

    # --- waits --------------------------------------------------------------------------------------------

    async def _wait(
        self, read: _Round, left_s: float, change: asyncio.Future[None] | None, has_gone: Callable[[], bool]
    ) -> bool:
        """Wait until there may be more; return False after ``left_s``.  Raises ClientGone."""
        deadline_s = time.monotonic() + left_s
        if len(read.ticks) == 1 and read.ticks[0][0] is None and change is None:
            return await self._wait_within(read.ticks[0], deadline_s, has_gone)
        mine = [one for one in read.ticks if one[0] is None] or [(None, (), self._local.ticks.tick)]
        local = [self._wait_local(one, deadline_s) for one in mine]  # ends with the server, too
        try:
            while True:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    return False
                remote = [self._wait_remote(one[0], one[1], one[2]) for one in read.ticks if one[0] is not None]
                events: list[asyncio.Future[bool] | asyncio.Future[None]] = [*local, *remote]
                if change is not None:
                    events.append(change)
                done = await _first_of(events, min(left_s, WAIT_SLICE_S))
                if change in done or any(one.result() for one in done if one is not change):
                    return True
                if any(one in local for one in done):
                    return False
                _check_client(has_gone)
        finally:
            for one in local:
                one.cancel()

    async def _wait_within(
        self,
        waited: tuple[Incarnation | None, tuple[RegionInfo, ...], int],
        deadline_s: float,
        has_gone: Callable[[], bool],
    ) -> bool:
        """Do ``_wait`` if this process has all regions."""
        _, regions, tick = waited
        while (left_s := deadline_s - time.monotonic()) > 0:
            left_ms = max(1, int(min(left_s, WAIT_SLICE_S) * 1_000))
            if await self._local.wait_changes(WaitChanges(regions, tick, left_ms)):
                return True
            _check_client(has_gone)
            if self._local.ticks.waits.is_ending:
                break
        return False

    def _wait_local(
        self, waited: tuple[Incarnation | None, tuple[RegionInfo, ...], int], deadline_s: float
    ) -> asyncio.Future[bool]:
        _, regions, tick = waited
        left_ms = max(1, int((deadline_s - time.monotonic()) * 1_000))
        return asyncio.ensure_future(self._local.wait_changes(WaitChanges(regions, tick, left_ms)))

    def _wait_remote(self, server: Incarnation, regions: tuple[RegionInfo, ...], tick: int) -> asyncio.Future[bool]:
        """Return a shared future that ends with True when that server has more than at ``tick``."""
        key = (server, regions)
        known = self._remote.get(key)
        if known is not None and not known[1].done():
            # An earlier tick serves as well: the request would have ended if there had been more since then.
            if known[0] <= tick:
                return known[1]
            later: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            later.set_result(True)
            return later
        if len(self._remote) >= REMOTE_WAITS:
            raise RegionTooBusy(f"{REMOTE_WAITS} readers wait for changes at other servers; read again later")
        requested = asyncio.ensure_future(self._request_wait(server, WaitChanges(regions, tick, REMOTE_WAIT_MS)))
        self._remote[key] = (tick, requested)
        requested.add_done_callback(lambda _: self._remote.pop(key, None))
        return requested

    async def _request_wait(self, server: Incarnation, message: WaitChanges) -> bool:
        owners = self._owners()
        assert owners is not None, "another server was named"
        try:
            return await owners.request_server(server, message)
        except (*NOTHING_DONE, LinkBroke):
            await asyncio.sleep(LONGEST_PAUSE_S)  # the next read finds the owner, or the next one
            return True


@dataclass(frozen=True, slots=True)
class _Poll:
    """A request under way."""

    table: str
    request: StreamRequest
    deadline_s: float


@dataclass(frozen=True, slots=True)
class _Round:
    """The answers of all owners, joined."""

    place: Position | None  # None: not every region has begun, so nothing is sent yet
    events: bytes
    is_at_end: bool
    up_to_ms: int
    ticks: tuple[tuple[Incarnation | None, tuple[RegionInfo, ...], int], ...]
    missing: RegionInfo | None  # a region that no server has read


def _round_of(
    place: Position | None,
    parts: list[ChangesPart],
    answers: Sequence[tuple[tuple[Incarnation | None, list[ChangesPart]], ChangesFound | None]],
) -> _Round:
    found: dict[RegionInfo, tuple[Range, ...]] = {}
    events: list[bytes] = []
    ticks: list[tuple[Incarnation | None, tuple[RegionInfo, ...], int]] = []
    up_to_ms: list[int] = []
    missing: RegionInfo | None = None
    is_at_end = True
    for (server, mine), answer in answers:
        if answer is None:
            missing, is_at_end = mine[0].region, False
            continue
        events.append(answer.events)
        up_to_ms.append(answer.up_to_ms)
        is_at_end &= answer.is_at_end
        ticks.append((server, tuple(part.region for part in mine), answer.tick))
        for part, ranges in zip(mine, answer.ranges, strict=True):
            if ranges is None:
                missing = part.region
            else:
                found[part.region] = tuple(map(range_of, ranges))
    is_at_end &= missing is None
    if place is None and missing is not None:
        return _Round(None, b"", False, 0, (), missing)
    joined = position.join(_joined(found, part) for part in parts)
    return _Round(joined, b"".join(events), is_at_end, min(up_to_ms, default=0), tuple(ticks), missing)


def _joined(found: dict[RegionInfo, tuple[Range, ...]], part: ChangesPart) -> tuple[Range, ...]:
    """Return the ranges after a round: as they were, if the region was not read."""
    held = found.get(part.region)
    if held is not None:
        return held
    if part.ranges:
        return tuple(map(range_of, part.ranges))
    return tuple([Range(part.region.start, one.p, one.x) for one in _ALL_READ])


def _checked(request: StreamRequest) -> StreamRequest:
    """Return the request with its bounds.  Raises IllegalArgument."""
    checked_spec(request.spec)
    return StreamRequest(
        request.position,
        checked_start(request.start),
        request.spec,
        min(request.max_bytes, STREAM_REPLY_BYTES) if request.max_bytes > 0 else STREAM_REPLY_BYTES,
        max(0, min(request.wait_ms, MOST_WAIT_MS)),
    )


def _unpacked(data: bytes, served: ServedTable) -> Position:
    table = served.schema.name
    try:
        place, of_table = position.unpack(data)
    except DamagedData as error:
        raise IllegalArgument(f"{error.text}; send the position of an earlier reply as it was") from None
    if of_table != table:
        raise IllegalArgument(f"the position is of table {of_table}, not of {table}")
    if len(place.ranges) > STREAM_RANGES + 8 * len(served.regions):
        raise IllegalArgument(f"the position has {len(place.ranges)} ranges, which no reply of this table has")
    return place


def _is_skipped(part: ChangesPart) -> bool:
    """Return whether nothing of the region is wanted: other members of a group read it."""
    return bool(part.ranges) and all(one.p == position.SKIPPED for one in part.ranges)


def _check_client(has_gone: Callable[[], bool]) -> None:
    if has_gone():
        raise ClientGone


async def _first_of(
    events: Sequence[asyncio.Future[bool] | asyncio.Future[None]], timeout_s: float
) -> set[asyncio.Future[bool] | asyncio.Future[None]]:
    """Wait for the first of the events; return what is done, nothing on timeout."""
    if not events:
        await asyncio.sleep(timeout_s)
        return set()
    done, _ = await asyncio.wait(events, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    return set(done)

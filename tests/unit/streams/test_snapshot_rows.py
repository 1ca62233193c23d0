"""The rows of a snapshot as one region's reader makes them: durable, and wide ones one at a time, as of one moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from columnar.flows.position import Range
from columnar.model.change_stream import BEGINNING, StreamSpec
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.read.wide_row import WideRow
from columnar.streams import region_reader
from columnar.streams.change_filter import ChangeFilter
from columnar.streams.region_reader import RegionReader, Reply
from tests.support.region_house import House

WIDE = 5  # cells of 1 MB: more than a step reads


class Read:
    """A read of the house's region from the beginning on."""

    def __init__(self, house: House, wide_rows: asyncio.Lock) -> None:
        region = house.region()
        self.reply = Reply(64 * 1024 * 1024)
        wanted = ChangeFilter(StreamSpec(), region.table)
        reader = RegionReader(region, wanted, self.reply, region.log.durable, wide_rows)
        self.task: asyncio.Task[tuple[tuple[Range, ...], bool]] = asyncio.ensure_future(
            reader.read_changes((), BEGINNING)
        )


def in_house(test: Callable[[House], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def inside() -> None:
            house = House(make_table("t", [Family("a")], {"CHANGE_LOG": "3600"}))
            families = frozenset({b"a"})
            house.server.set_policy("t", LogPolicy(families, families))
            region = house.region()
            region.logging.note_coverage(b"", region.now_ms, 3_600)
            try:
                async with asyncio.timeout(20):
                    await test(house)
            finally:
                await house.close()

        asyncio.run(inside())

    run.__name__ = test.__name__
    return run


async def put_wide(house: House, row: bytes) -> None:
    for n in range(WIDE):
        await house.put(row, Put(b"a", b"%d" % n, bytes(1_000_000)))


async def looped(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@in_house
async def test_a_row_leaves_when_what_it_shows_is_on_disk(house: House) -> None:
    await house.put_value(b"r", b"old")
    house.gate.hold()
    applied = house.apply(b"r", Put(b"a", b"q", b"new"))
    read = Read(house, asyncio.Lock())
    await looped()
    assert not read.task.done()
    assert read.reply.events == []
    house.gate.release()
    (ranges, is_read) = await read.task
    assert is_read
    assert len(read.reply.events) == 1
    assert b"new" in read.reply.events[0]
    assert ranges[0].p == house.region().log.durable
    assert applied.durable is not None


@in_house
async def test_a_wide_row_is_as_of_when_it_is_read_and_not_as_of_when_it_was_found(house: House) -> None:
    await put_wide(house, b"wide")
    lock = asyncio.Lock()
    await lock.acquire()  # another reader has a wide row
    read = Read(house, lock)
    await looped()
    await house.put_value(b"wide", b"later", b"a:later")
    written = house.region().log.written_to
    lock.release()
    (ranges, _) = await read.task
    (event,) = read.reply.events
    assert b"later" in event
    assert ranges[0].p == written, "the change does not come again"


def test_one_wide_row_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    open_now, most = set[WideRow](), 0
    begun, end = WideRow.begun, WideRow.end

    def counted(*args: object, **given: object) -> WideRow:
        nonlocal most
        reading = begun(*args, **given)  # type: ignore[arg-type]
        open_now.add(reading)
        most = max(most, len(open_now))
        return reading

    def ended(reading: WideRow) -> None:
        open_now.discard(reading)
        end(reading)

    monkeypatch.setattr(region_reader.WideRow, "begun", counted)
    monkeypatch.setattr(region_reader.WideRow, "end", ended)

    @in_house
    async def several(house: House) -> None:
        await put_wide(house, b"wide")
        lock = asyncio.Lock()
        reads = [Read(house, lock) for _ in range(3)]
        for read in reads:
            await read.task
            assert len(read.reply.events) == 1

    several()
    assert most == 1

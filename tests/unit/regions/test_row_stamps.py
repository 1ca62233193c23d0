"""Stamps of the records of a row rise: over restarts, under slower clocks, behind records of version 1."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from columnar.model.mutation import Delete, Put
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_logging import OLD_AHEAD_MS, REMEMBERED_ROWS, STAMP
from columnar.regions.log.change_record import ChangeRecord, Sequence, pack_key, unpack
from columnar.regions.log.log_retention import LOG_SPACE, META_SPACE
from columnar.regions.write.drafting import FUTURE
from tests.support.golden import FOLDER
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])
POLICY = LogPolicy(frozenset({b"a"}), frozenset())
HOUR_MS = 3_600_000
NOW = 10**12


def housed(work: Callable[[House], Awaitable[None]]) -> Callable[[], None]:
    async def main() -> None:
        house = House(TABLE)
        house.clock.now_ms = NOW
        house.server.set_policy("t", POLICY)
        await work(house)
        await house.close()

    def wrapped() -> None:
        asyncio.run(main())

    wrapped.__name__ = work.__name__
    return wrapped


def records(house: House) -> list[ChangeRecord]:
    return [unpack(data) for _, data in house.region().store.scan(LOG_SPACE, b"", None)]


async def stamp(house: House, timestamp: int | None = None, row: bytes = b"r") -> int:
    await house.put(row, Put(b"a", b"q", b"v", timestamp))
    return records(house)[-1].stamp


async def reopen(house: House, clock_ms: int) -> None:
    house.server.eviction.evict(house.region())
    house.clock.now_ms = clock_ms
    house.region()


@housed
async def test_a_client_s_timestamps_are_noted_and_stamp_nothing(house: House) -> None:
    await stamp(house, NOW + HOUR_MS)
    await house.put(b"r", Delete(b"a", b"q", NOW + 2 * HOUR_MS))
    await stamp(house)
    assert [(one.timestamp - NOW, one.stamp - NOW) for one in records(house)] == [
        (HOUR_MS, 0),
        (2 * HOUR_MS, 1),
        (2, 2),
    ]


@pytest.mark.parametrize("is_trimmed", [False, True])
def test_under_a_slower_clock_they_go_on_above_all_there_was(is_trimmed: bool) -> None:
    async def work(house: House) -> None:
        found = [await stamp(house), await stamp(house)]
        for behind_ms in (HOUR_MS, 0, 2 * HOUR_MS):
            if is_trimmed:
                region = house.region()
                region.logging.trim(Sequence(region.info.region_id, region.log.epoch + 1, 0), region.now_ms)
                assert records(house) == []
            await reopen(house, NOW - behind_ms)
            found += [await stamp(house), await stamp(house)]
        assert found == sorted(set(found))

    housed(work)()


@housed
async def test_a_row_that_ran_ahead_is_known_though_another_was_logged_last(house: House) -> None:
    before = [await stamp(house, row=b"hot") for _ in range(6)][-1]
    assert await stamp(house, row=b"cold") == NOW < before
    await reopen(house, NOW)
    assert await stamp(house, row=b"hot") > before


@housed
async def test_trimming_before_the_first_write_of_a_slower_clock_forgets_nothing(house: House) -> None:
    before = await stamp(house)
    await reopen(house, NOW - HOUR_MS)
    region = house.region()
    region.logging.trim(Sequence(region.info.region_id, region.log.epoch, 0), region.now_ms)
    await reopen(house, NOW - 2 * HOUR_MS)
    assert records(house) == []
    assert await stamp(house) > before


@housed
async def test_behind_a_clock_that_stands_still_rows_are_forgotten_and_rise_all_the_same(house: House) -> None:
    """A clock that is an hour behind must not cost memory for an hour's rows."""
    region = house.region()
    batch = region.store.batch()
    give = region.logging.stamps.give
    rows = [b"%06d" % n for n in range(3 * REMEMBERED_ROWS)]
    for _ in range(2):
        first = {row: give(batch, row, NOW) for row in rows}
        again = {row: give(batch, row, NOW) for row in rows}
        assert all(again[row] > first[row] for row in rows)
        assert len(region.logging.stamps._recent) <= REMEMBERED_ROWS
    assert max(again.values()) < NOW + 100, "they do not run away"


@housed
async def test_a_backfill_is_stamped_as_a_change_that_comes_now(house: House) -> None:
    await stamp(house, NOW - HOUR_MS)
    await house.region().log_records([ChangeRecord(b"r", NOW - HOUR_MS, (), (), "t")], {})
    await stamp(house)
    assert [(one.timestamp - NOW, one.stamp - NOW) for one in records(house)] == [
        (-HOUR_MS, 0),
        (-HOUR_MS, 1),
        (2, 2),
    ]


@pytest.mark.parametrize(
    ("ahead_ms", "expected_ms"), [(-HOUR_MS, 0), (60_000, 60_001), (100 * HOUR_MS, OLD_AHEAD_MS + 1)]
)
def test_behind_records_of_version_1(ahead_ms: int, expected_ms: int) -> None:
    """What was derived under a client's clock that runs ahead must not outrank what comes now; no further than that."""

    async def work(house: House) -> None:
        """Once with the record's own timestamp ahead, once with an earlier one of another row."""
        for is_last in (True, False):
            await reopen(house, NOW)
            await behind(house, is_last)

    async def behind(house: House, is_last: bool) -> None:
        line = (Path(FOLDER) / "change-records-1.txt").read_text().splitlines()[0]
        old = bytearray.fromhex(line.split("  ")[1])
        old[2:10] = (NOW + (ahead_ms if is_last else 0)).to_bytes(8, "big")
        store = house.region().store
        batch = store.batch()
        batch.delete_range(LOG_SPACE, b"", b"\xff")
        batch.put(LOG_SPACE, pack_key(Sequence(house.region().info.region_id, 0, 1)), bytes(old))
        batch.delete(META_SPACE, STAMP)
        batch.put(META_SPACE, FUTURE, (NOW + ahead_ms).to_bytes(8, "big"))
        store.write_batch(batch)
        await reopen(house, NOW)
        assert await stamp(house, row=b"row") == NOW + (expected_ms if is_last else max(1, expected_ms))

    housed(work)()

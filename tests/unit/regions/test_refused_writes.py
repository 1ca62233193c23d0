"""A write that the store refused, or whose batch raised, leaves nothing behind for the next one to build upon."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from columnar.errors import NotALong
from columnar.model.mutation import Increment, Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import ChangeRecord
from columnar.regions.log.log_tail import LogTails
from columnar.regions.write import column_draft
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.api import StoreBusy
from tests.support.region_house import House

TABLE = make_table("t", [Family("a"), Family("v", max_versions=2)])
AHEAD_MS = 1_000


def housed(work: Callable[[House], Awaitable[None]]) -> Callable[[], None]:
    async def main() -> None:
        house = House(TABLE)
        await work(house)
        await house.close()

    def wrapped() -> None:
        asyncio.run(main())

    wrapped.__name__, wrapped.__doc__ = work.__name__, work.__doc__
    return wrapped


@contextmanager
def behind(house: House) -> Iterator[None]:
    """The store's engine is behind."""
    store = house.region().store

    def refuse(_batch: object) -> None:
        raise StoreBusy("behind")

    store.gather = refuse  # type: ignore[method-assign]
    yield
    del store.gather


def refused(house: House, *puts: Put) -> None:
    with behind(house), pytest.raises(StoreBusy):
        house.apply(b"r", *puts)


async def stays_ahead(house: House, ahead: Put) -> None:
    """Put it, and nothing that the clock stamps takes its place, when the region has been opened again."""
    await house.put(b"r", ahead)
    house.server.eviction.evict(house.region())
    house.clock.now_ms += AHEAD_MS // 2
    await house.put_value(b"r", b"by the clock")
    assert house.row(b"r", b"a:q") == [(b"a:q", b"ahead", ahead.timestamp)]
    assert not house.region().can_delete_at_once(house.clock.now_ms)


@housed
async def test_a_cell_ahead_of_the_clock_stays_though_its_first_try_was_refused(house: House) -> None:
    ahead = Put(b"a", b"q", b"ahead", house.clock.now_ms + AHEAD_MS)
    refused(house, ahead)
    await stays_ahead(house, ahead)


@housed
async def test_a_cell_ahead_of_the_clock_stays_though_a_row_beside_it_was_refused(house: House) -> None:
    await house.put_value(b"s", b"no number", b"a:n")
    ahead = Put(b"a", b"q", b"ahead", house.clock.now_ms + AHEAD_MS)
    with pytest.raises(NotALong):
        house.region().apply_many([RowMutation(b"r", (ahead,)), RowMutation(b"s", (Increment(b"a", b"n", 1),))])
    await stays_ahead(house, ahead)


@housed
async def test_a_cell_ahead_of_the_clock_stays_though_the_mark_of_sorted_files_was_refused(house: House) -> None:
    ahead = Put(b"a", b"q", b"ahead", house.clock.now_ms + AHEAD_MS)
    with behind(house), pytest.raises(StoreBusy):
        await house.region().note(b"coming", b"", ahead.timestamp or 0)
    await stays_ahead(house, ahead)


@housed
async def test_rows_of_one_batch_have_one_mark_the_highest(house: House) -> None:
    now_ms = house.clock.now_ms
    ahead = Put(b"a", b"q", b"ahead", now_ms + AHEAD_MS)
    near = RowMutation(b"s", (Put(b"a", b"q", b"near", now_ms + 1),))
    await house.region().apply_many([RowMutation(b"r", (ahead,)), near]).durable
    await stays_ahead(house, ahead)


@housed
async def test_tries_that_are_refused_keep_no_change_records(house: House) -> None:
    """A table that somebody follows, and an engine that is behind for as long as writers have patience."""
    house.server.set_policy("t", LogPolicy(frozenset({b"a"}), frozenset()))
    house.region().log.begin_tail(LogTails())
    await house.put_value(b"r")

    def records() -> int:
        gc.collect()
        return sum(type(one) is ChangeRecord for one in gc.get_objects())

    before = records()
    for _ in range(50):
        refused(house, Put(b"a", b"q", b"v"))
    assert records() == before
    await house.put_value(b"r")
    assert [record.row for _, record in house.region().log.read_records(None)] == [b"r", b"r"]


@pytest.mark.parametrize("before", [1, 2])
def test_surplus_versions_go_though_their_removals_are_refused(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``before``: so that the refused tries, or the others, are those that remove."""
    monkeypatch.setattr(column_draft, "TRIM_AFTER", 2)

    async def put(house: House) -> None:
        house.clock.now_ms += 1
        await house.put_value(b"r", b"v", b"v:q")

    @housed
    async def play(house: House) -> None:
        for _ in range(before):
            await put(house)
        for _ in range(20):
            house.clock.now_ms += 1
            refused(house, Put(b"v", b"q", b"refused"))
            await put(house)
            assert len(list(house.region().store.scan(VERSIONS_SPACE, b"", None))) <= 3

    play()

"""The choice of regions to close over the bound, and how they are closed."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from columnar.limits import FLUSHED_AT_ONCE
from columnar.model.schema import Family, make_table
from columnar.regions.hooks import ChangeListener, LogPolicy
from columnar.regions.life.eviction import MOST_CANDIDATES, to_close
from columnar.regions.life.region_state import State
from columnar.regions.region import Region
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])


class Served:
    """Requests for regions, of which only so many are open at a time."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._chance = Random(7)
        self.by_use: OrderedDict[int, None] = OrderedDict()
        self.openings = 0

    def request(self, region: int) -> None:
        if region in self.by_use:
            self.by_use.move_to_end(region)
            return
        self.openings += 1
        self.by_use[region] = None
        if len(self.by_use) > self._bound:
            del self.by_use[next(iter(to_close(self.by_use, 1, self._chance)))]


def test_clients_that_go_through_more_regions_than_may_be_open_find_many_of_them_open() -> None:
    """By the least use every request would open one: the least used is the one that is wanted next."""
    served = Served(400)
    for _ in range(3):
        for region in range(500):
            served.request(region)
    before = served.openings
    for _ in range(4):
        for region in range(500):
            served.request(region)
    assert served.openings - before < 0.7 * 4 * 500


def test_regions_in_constant_use_stay_open_beside_a_walk_through_all() -> None:
    served = Served(100)
    for hot in range(20):
        served.request(hot)
    before = served.openings
    for cold in range(1_000, 6_000):
        served.request(cold)
        served.request(cold % 20)
    assert served.openings - before == 5_000, "only those of the walk"


@given(st.lists(st.integers(), unique=True, max_size=80), st.integers(1, 5), st.integers())
def test_the_newest_is_never_closed_and_none_is_named_twice(regions: list[int], surplus: int, seed: int) -> None:
    found = list(to_close(OrderedDict.fromkeys(regions), surplus, Random(seed)))
    assert len(found) == len(set(found)) <= 2 * (surplus + MOST_CANDIDATES)
    assert set(found) <= set(regions[:-1])
    older = set(regions[: len(regions) // 2])
    first = found[: len(older & set(found))]
    assert set(first) <= older, "of the older half first"
    assert len(first) == min(len(older), surplus + MOST_CANDIDATES)
    assert found[len(first) :] == regions[len(older) : len(regions) - 1][: surplus + MOST_CANDIDATES]


class Flushing(RocksEngine):
    """Flushes are noted in ``flushed``, run in no case on the loop, and wait for ``going``."""

    def __init__(self) -> None:
        super().__init__(cache_bytes=1 << 20)
        self.going = threading.Event()
        self.flushed: list[str] = []
        self._loops_thread = threading.get_ident()

    def open_store(self, path: str, *args: Any) -> RocksStore:
        store = super().open_store(path, *args)
        flush = store.files.flush

        def noted() -> None:
            assert threading.get_ident() != self._loops_thread, "the loop waits for the disk"
            assert self.going.wait(20)
            flush()
            self.flushed.append(path)

        store.files.flush = noted  # type: ignore[method-assign]
        return store


ROWS = [b"%02d" % number for number in range(16)]


def test_a_region_with_unflushed_writes_is_closed_by_a_thread_and_a_clean_one_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        engine = Flushing()
        house = House(TABLE, tuple(ROWS[1:]), engine=engine, folder=str(tmp_path), open_regions=8)
        for row in ROWS[:8]:
            await house.put_value(row)
        for row in ROWS[8:]:
            house.region(row)
        assert house.server.open_count() == 8 + FLUSHED_AT_ONCE, "so many are flushed, and those over it were evicted"
        engine.going.set()
        async with asyncio.timeout(20):
            await asyncio.gather(*house.server.eviction._flushing.values())
        assert house.server.open_count() == 8
        assert len(engine.flushed) == FLUSHED_AT_ONCE
        assert [len(house.row(row)) for row in ROWS] == [1] * 8 + [0] * 8
        await house.close()

    asyncio.run(main())


def test_a_region_whose_log_grows_while_it_is_flushed_stays_open(tmp_path: Path) -> None:
    """Else a change that is delivered meanwhile is delivered again by its next opening."""

    class Following(ChangeListener):
        has_more = False

        def may_close(self, region: Region) -> bool:
            return not self.has_more

    async def main() -> None:
        engine, listener = Flushing(), Following()
        house = House(TABLE, tuple(ROWS[1:]), engine=engine, folder=str(tmp_path), open_regions=3)
        house.server.listener = listener
        for row in ROWS[:3]:
            await house.put_value(row)
            house.region(row).log_changes(LogPolicy(frozenset(), frozenset()))
        house.region(ROWS[3])
        (closing,) = house.server.eviction._flushing.values()
        listener.has_more = True
        engine.going.set()
        async with asyncio.timeout(20):
            await closing
        assert house.server.open_count() == 4
        assert all(house.server.hosting.state_of(region) is State.OPEN for region in house.server.all_open())
        await house.close()

    asyncio.run(main())

"""Regions at their server, as the states say: closed once, held for writers, refused where another owns them."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import DamagedData, HostError, NotServingRegion, RegionUnavailable
from columnar.limits import FLUSHED_AT_ONCE
from columnar.model.mutation import Put, RowMutation
from columnar.model.schema import Family, make_table
from columnar.regions.life.region_state import Event, State
from columnar.storage.api import StoreBusy
from columnar.storage.rocks import RocksEngine
from columnar.storage.rocks_store import RocksStore
from tests.support.region_house import House

TABLE = make_table("t", [Family("a")])
PUT = RowMutation(b"r", (Put(b"a", b"q", b"v"),))


def run(check: Callable[[House], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        house = House(TABLE, **options)
        async with asyncio.timeout(20):
            await check(house)
        await house.close()

    asyncio.run(main())


def test_writers_wait_and_readers_are_served_while_a_region_closes() -> None:
    async def check(house: House) -> None:
        await house.put_value(b"r")
        region, hosting = house.region(), house.server.hosting
        house.gate.hold()
        late = region.apply(PUT)
        closing = [asyncio.ensure_future(house.server.close_table("t")) for _ in range(2)]
        await asyncio.sleep(0)
        assert hosting.state_of(region) is State.CLOSING
        with pytest.raises(StoreBusy):
            region.apply(PUT)
        assert house.row(b"r")
        house.gate.release()
        await asyncio.gather(*closing)
        assert late.durable is not None
        assert late.durable.done()
        assert hosting.state_of(region) is State.NONE
        assert not region.is_open
        await house.put_value(b"r", b"w")

    run(check)


def test_a_closing_that_is_given_up_lets_writers_go_on() -> None:
    async def check(house: House) -> None:
        await house.put_value(b"r")
        region = house.region()
        house.gate.hold()
        late = region.apply(PUT)
        closing = asyncio.ensure_future(house.server.hosting.close(region))
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert house.server.hosting.state_of(region) is State.OPEN
        assert house.region() is region
        region.apply(PUT)
        house.gate.release()
        assert late.durable is not None
        await late.durable

    run(check)


def test_requests_wait_while_a_thread_closes_a_broken_store() -> None:
    async def check(house: House) -> None:
        await house.put_value(b"r")
        region, hosting = house.region(), house.server.hosting
        assert house.committer.on_broken is not None
        house.committer.on_broken(region.store, HostError("an fsync failed"))
        assert hosting.state_of(region) is State.BROKEN
        with pytest.raises(RegionUnavailable) as away:
            house.region()
        hosting.check_invariants()
        await away.value.available
        assert house.region() is not region
        assert house.row(b"r")

    run(check)


def test_events_about_a_region_that_was_opened_anew_meanwhile_change_nothing() -> None:
    async def check(house: House) -> None:
        old = house.region()
        house.server.eviction.evict(old)
        new = house.region()
        for event in Event:
            house.server.hosting.report_event(old, event)
        assert house.region() is new
        assert house.server.hosting.state_of(new) is State.OPEN

    run(check)


def test_a_region_that_was_given_up_is_refused_until_a_later_epoch() -> None:
    async def check(house: House) -> None:
        (info,) = house.served.regions
        house.server.eviction.evict(house.region())
        state = house.server.hosting.state
        state.apply_event(info.region_id, Event.GIVEN_UP)
        with pytest.raises(NotServingRegion, match="served by another"):
            house.region()
        assert not state.own(info.region_id, state.epoch)
        assert state.own(info.region_id, state.epoch + 1)
        house.region()

    run(check)


def test_nothing_is_logged_of_a_refusal_for_which_nobody_waits_any_more() -> None:
    """asyncio logs an exception of a future that nobody looked at."""

    async def check(house: House) -> None:
        (info,) = house.served.regions
        house.server.eviction.evict(house.region())
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
        house.server.hosting.gate(info.region_id)
        house.server.hosting._refuse(info.region_id, "given up")
        gc.collect()
        assert told == []

    run(check)


def test_an_opening_that_fails_leaves_the_next_one_free(tmp_path: Path) -> None:
    async def check(house: House) -> None:
        (info,) = house.served.regions
        house.server.folders.destroy(info.encoded)
        for _ in range(2):
            with pytest.raises(DamagedData, match="is missing"):
                house.region()
            house.server.openings.check_invariants()
        house.server.folders.make([info.encoded])
        assert house.row(b"r") == []

    (tmp_path / "regions").mkdir()  # as in a data folder
    run(check, engine=RocksEngine(cache_bytes=1 << 20), folder=str(tmp_path / "regions"))


def test_a_stop_flushes_regions_side_by_side_in_threads(tmp_path: Path) -> None:
    """Each in a thread, and FLUSHED_AT_ONCE of them at a time; closing them on the loop writes nothing then."""
    count, running, most = 12, 0, 0
    together = threading.Barrier(FLUSHED_AT_ONCE, timeout=20)
    lock, loops_thread = threading.Lock(), threading.get_ident()
    flushed: list[str] = []

    class Noting(RocksEngine):
        def open_store(self, path: str, *args: Any) -> RocksStore:
            store = super().open_store(path, *args)
            flush = store.files.flush

            def noted() -> None:
                nonlocal running, most
                assert threading.get_ident() != loops_thread, "the loop waits for the disk"
                with lock:
                    running += 1
                    most = max(most, running)
                together.wait()
                flush()
                with lock:
                    running -= 1
                flushed.append(path)

            store.files.flush = noted  # type: ignore[method-assign]
            return store

    rows = [b"%02d" % number for number in range(count)]

    async def main() -> None:
        engine = Noting(cache_bytes=1 << 20)
        house = House(TABLE, tuple(rows[1:]), engine=engine, folder=str(tmp_path), open_regions=99)
        for row in rows:
            await house.put_value(row)
        async with asyncio.timeout(20):
            await house.close()
        assert house.server.open_count() == 0

    asyncio.run(main())
    assert (len(flushed), len(set(flushed)), most) == (count, count, FLUSHED_AT_ONCE)

"""Regions are opened one per iteration of the loop; requests wait for theirs, and hear why it cannot be opened."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest

from columnar.errors import DamagedData, NotServingRegion, RegionNotLocal, RegionUnavailable, TableNotEnabled
from columnar.model.mutation import Put, RowMutation
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.operations.reads import RowQuery
from columnar.regions.life import hosting
from columnar.regions.life.region_state import Event, State
from columnar.regions.tables import ServedTable
from columnar.wire.service import CallContext
from tests.support.region_house import House
from tests.support.service_calls import answer_of

TABLE = make_table("t", [Family("a")])
SPLITS = (b"b", b"c", b"d", b"e", b"f")
ROWS = (b"a", b"b", b"c", b"d", b"e", b"f")
CTX = CallContext(1, "peer", "binary")


class Opening(House):
    """Counts what the engine opens."""

    def __init__(self, **options: Any) -> None:
        super().__init__(TABLE, SPLITS, **options)
        self.opened: list[str] = []
        self.failure: Exception | None = None
        self.failing = ""  # the end of the paths that fail; every path ends with it
        opens = self.engine.open_store

        def noted(path: str, *args: Any) -> Any:
            self.opened.append(path)
            if self.failure is not None and path.endswith(self.failing):
                raise self.failure
            return opens(path, *args)

        self.engine.open_store = noted  # type: ignore[method-assign]

    def info(self, row: bytes) -> RegionInfo:
        return self.served.holding(row)

    def want(self, row: bytes) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.server.opened(self.served, self.info(row)))


def housed(**options: Any) -> Callable[[Callable[[Opening], Awaitable[None]]], Callable[[], None]]:
    def decorate(test: Callable[[Opening], Awaitable[None]]) -> Callable[[], None]:
        @wraps(test)
        def run() -> None:
            async def main() -> None:
                house = Opening(**options)
                try:
                    async with asyncio.timeout(20):
                        await test(house)
                    house.server.openings.check_invariants()
                finally:
                    await house.close()

            asyncio.run(main())

        del run.__wrapped__  # type: ignore[attr-defined]
        return run

    return decorate


@housed()
async def test_a_request_for_a_closed_region_waits_and_those_for_open_ones_do_not(house: Opening) -> None:
    house.region(b"a")
    with pytest.raises(RegionUnavailable) as caught:
        house.server.open_region(house.served, house.info(b"c"))
    assert house.server.hosting.state.state(house.info(b"c").region_id) is State.OPENING
    assert house.server.open_region(house.served, house.info(b"a")).info == house.info(b"a")
    assert len(house.opened) == 1, "nothing was opened within the request"
    await caught.value.available
    assert house.server.open_region(house.served, house.info(b"c")).info == house.info(b"c")


@housed()
async def test_one_region_is_opened_per_iteration_of_the_loop(house: Opening) -> None:
    tasks = [house.want(row) for row in ROWS]
    await asyncio.sleep(0)
    most, before = 0, 0
    while not all(task.done() for task in tasks):
        most = max(most, len(house.opened) - before)
        before = len(house.opened)
        await asyncio.sleep(0)
    assert most == 1
    assert len(house.opened) == len(ROWS)


@housed()
async def test_two_requests_for_one_region_open_it_once(house: Opening) -> None:
    first, second = await asyncio.gather(house.want(b"c"), house.want(b"c"))
    assert first is second
    assert len(house.opened) == 1


@housed(open_regions=1)
async def test_requests_for_more_regions_than_may_be_open_do_not_close_each_others(house: Opening) -> None:
    found = await asyncio.gather(*(house.want(row) for row in ROWS))
    assert [region.info for region in found] == [house.info(row) for row in ROWS]
    assert len(house.opened) == len(ROWS), "each was opened once"
    await house.want(b"a")
    assert house.server.open_count() == 1, "those that their requests have reached may be closed at once"


@housed(open_regions=1)
async def test_a_region_whose_request_never_came_may_be_closed_after_a_while(house: Opening) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hosting, "AWAITED_S", 0.0)
        with pytest.raises(RegionUnavailable):  # the client has gone
            house.server.open_region(house.served, house.info(b"a"))
        await house.want(b"b")
        assert not house.server.is_open(house.info(b"a"))


@housed()
async def test_who_waits_hears_why_the_region_cannot_be_opened_and_the_next_one_tries_again(house: Opening) -> None:
    house.failure = DamagedData("a block is damaged")
    for outcome in await asyncio.gather(house.want(b"a"), house.want(b"a"), return_exceptions=True):
        assert isinstance(outcome, DamagedData)
    assert len(house.opened) == 1
    house.failure = None
    assert (await house.want(b"a")).info == house.info(b"a")


@housed()
async def test_an_opening_that_fails_holds_up_no_other(house: Opening) -> None:
    first = house.want(b"a")
    await asyncio.sleep(0)
    house.failure = ValueError("a fault of ours")
    with pytest.raises(ValueError, match="a fault of ours"):
        await first
    house.failure = None
    assert (await house.want(b"b")).info == house.info(b"b")


@housed()
async def test_regions_that_are_queued_behind_one_that_fails_are_opened(house: Opening) -> None:
    house.failure, house.failing = DamagedData("a block is damaged"), house.info(b"b").encoded
    found = await asyncio.gather(*(house.want(row) for row in ROWS), return_exceptions=True)
    assert isinstance(found[1], DamagedData)
    assert [one.info for one in found if not isinstance(one, BaseException)] == [
        house.info(row) for row in ROWS if row != b"b"
    ]


@housed()
async def test_a_table_that_is_closed_meanwhile_is_not_opened(house: Opening) -> None:
    waiting = [house.want(row) for row in ROWS[:3]]
    await asyncio.sleep(0)
    house.served.enabled = False
    closing = asyncio.ensure_future(house.server.close_table("t"))
    await closing
    assert house.server.open_count() == 0
    with pytest.raises(TableNotEnabled):
        house.operations.access.again(house.served)
    opened_since = len(house.opened)
    house.served.enabled = True
    await asyncio.gather(*waiting)
    assert len(house.opened) == opened_since + 3, "their requests look anew"


@housed()
async def test_a_region_that_its_table_lost_meanwhile_is_not_opened(house: Opening) -> None:
    waiting = house.want(b"a")
    await asyncio.sleep(0)
    house.server.tables.install(ServedTable(TABLE, True, [RegionInfo("t", 99)]))
    with pytest.raises(NotServingRegion, match="was split, merged or dropped"):
        await waiting
    assert house.opened == []


@housed()
async def test_who_waits_at_the_stop_is_refused(house: Opening) -> None:
    waiting = [house.want(row) for row in ROWS]
    await asyncio.sleep(0)
    await house.server.close()
    for outcome in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(outcome, NotServingRegion)
    assert len(house.opened) <= 1


@housed()
async def test_a_region_that_was_given_up_is_elsewhere(house: Opening) -> None:
    info = house.info(b"a")
    house.server.hosting.state.apply_event(info.region_id, Event.GIVEN_UP)
    with pytest.raises(RegionNotLocal, match="is served by another") as caught:
        house.server.open_region(house.served, info)
    assert caught.value.region == info.encoded
    assert house.opened == []
    house.server.hosting.state.own(info.region_id, house.server.hosting.state.epoch + 1)


@housed()
async def test_a_look_ahead_agrees_with_the_opening_in_every_state(house: Opening) -> None:
    """Whoever looks ahead sends a call to another server without asking the region."""
    server, state, info = house.server, house.server.hosting.state, house.info(b"a")

    def is_elsewhere() -> bool:
        try:
            server.open_region(house.served, info)
        except RegionNotLocal:
            raised = True
        except (RegionUnavailable, NotServingRegion):
            raised = False
        else:
            raised = False
        assert server.is_not_local(house.served, b"a") == raised, state.state(info.region_id)
        return raised

    assert not is_elsewhere(), "it is not open, and is opened here"
    assert not is_elsewhere(), "it is being opened"
    await house.want(b"a")
    assert not is_elsewhere(), "it is open"
    state.give_up(info.region_id)
    assert not is_elsewhere(), "it is open still"
    await server.close_regions([info])
    assert is_elsewhere(), "it is closed, and was given up"
    state.apply_event(info.region_id, Event.GIVEN_UP)
    assert is_elsewhere()
    state.own(info.region_id, state.epoch_of(info.region_id) + 1)
    assert not is_elsewhere(), "it came back"
    await house.want(b"a")
    await server.close_regions([info])
    state.give_up(info.region_id)
    assert is_elsewhere()
    state.stop()
    assert not is_elsewhere(), "the server stops and refuses"


@housed()
async def test_a_fault_after_an_opening_keeps_no_other_waiting(house: Opening) -> None:
    faults: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(str(context["exception"])))

    def settled(info: RegionInfo, _failure: Exception | None) -> None:
        if info == house.info(b"a"):
            raise RuntimeError("whoever hears of openings has a fault")

    house.server.openings.on_settled = settled
    found = await asyncio.gather(*(house.want(row) for row in ROWS))
    assert [region.info for region in found] == [house.info(row) for row in ROWS]
    assert faults == ["whoever hears of openings has a fault"]


# --- calls over many regions go on where they were --------------------------------------------------


@housed(open_regions=2)
async def test_rows_of_more_regions_than_may_be_open_are_read_once_each(house: Opening) -> None:
    for row in ROWS:
        await house.put_value(row, row)
    house.opened.clear()
    spec = house.read()
    query = RowQuery([*ROWS, *ROWS], [spec] * (2 * len(ROWS)))
    found = await answer_of(house.operations.reads.rows(CTX, house.served, query, lambda rows: rows))
    assert [row for row, _ in found] == [*ROWS, *ROWS]
    assert len(house.opened) <= 2 * len(ROWS), "a row that was read is not read again"


@housed(open_regions=2)
async def test_writes_to_more_regions_than_may_be_open_are_done_once_each(house: Opening) -> None:
    asked = [(house.served, RowMutation(row, (Put(b"a", b"q", row),))) for row in ROWS]
    applied = await answer_of(house.operations.writes.write_each(CTX, asked, lambda last: last))
    assert applied is not None
    assert len(house.opened) <= 2 * len(ROWS), "once when it is checked, once when it is written"
    for row in ROWS:
        assert [value for _, value, _ in house.row(row)] == [row]
        assert house.region(row).writes <= 1


@housed()
async def test_a_region_that_is_closed_within_a_call_is_written_later_in_it(house: Opening) -> None:
    """Nothing is begun anew: what was written before it is written once."""
    regions = [house.region(row) for row in (b"a", b"b")]
    apply = regions[0].apply

    def closing(mutation: RowMutation) -> Any:
        house.server.eviction.evict(regions[1])
        return apply(mutation)

    regions[0].apply = closing  # type: ignore[method-assign]
    asked = [(house.served, RowMutation(row, (Put(b"a", b"q", row),))) for row in (b"a", b"b")]
    await answer_of(house.operations.writes.write_each(CTX, asked, lambda last: last))
    assert regions[0].writes == 1
    assert [value for _, value, _ in house.row(b"b")] == [b"b"]


@housed()
async def test_only_stores_that_were_never_made_are_prepared(house: Opening) -> None:
    """The regions may have owners meanwhile: a leader that was replaced waits for no such work."""
    await house.want(b"b")
    house.opened.clear()
    await house.server.openings.prepare(TABLE, [house.info(row) for row in (b"a", b"b", b"c")])
    assert len(house.opened) == 2
    assert not house.server.folders.is_untouched(house.info(b"a").encoded)
    await house.server.openings.prepare(TABLE, [house.info(b"a")])
    assert len(house.opened) == 2

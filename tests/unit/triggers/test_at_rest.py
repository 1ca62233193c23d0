"""Triggers with nothing to do do nothing: no timer is set, no callback is queued, the loop sleeps until it is told."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Mapping

import pytest

from columnar.flows import follower, log_upkeep
from columnar.regions.log import change_log
from columnar.regions.log.change_record import ChangeRecord
from columnar.triggers.delivery_source import NEVER
from tests.unit.triggers.test_dispatcher import Bench, on_bench

LOOKS = 100  # of a loop that comes to rest: some 10


class Watch(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Notices when its loop has neither a callback nor a timer left."""

    def __init__(self) -> None:
        super().__init__()
        self._rest: asyncio.Future[bool] | None = None
        self._looks = 0

    async def rest(self) -> bool:
        """True: the loop came to rest; False: it never does."""
        self._rest, self._looks = asyncio.get_running_loop().create_future(), 0
        return await self._rest

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._looks += 1
        if self._rest is not None and not self._rest.done() and (timeout is None or self._looks > LOOKS):
            self._rest.set_result(timeout is None)
            timeout = 0
        found: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        return found


def watched(test: Callable[[Bench, Watch], Awaitable[None]]) -> None:
    watch = Watch()

    async def main() -> None:
        bench = Bench()
        await bench.start()
        try:
            await test(bench, watch)
        finally:
            await bench.close()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        runner.run(main())


async def deliver_all(bench: Bench, *errors: str) -> None:
    left: Mapping[int, str] = dict(enumerate(errors))
    answered = 0
    while not await bench.keeper.wait_delivered("t", "", 0.0):
        await bench.main.until(lambda: bench.main.sent)
        for call_id, _, _ in bench.main.take():
            bench.main.answer(call_id, left.get(answered))
            answered += 1


@pytest.fixture(autouse=True)
def _saved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_upkeep, "SAVE_S", 0.001)


def test_an_idle_trigger() -> None:
    async def run(bench: Bench, watch: Watch) -> None:
        await bench.add("t")
        assert await watch.rest(), "it has never had anything"
        await bench.put(b"a", b"b", b"c")
        await deliver_all(bench)
        assert await watch.rest(), "all is delivered"
        await bench.put(b"a")
        await deliver_all(bench, "Error: no")
        assert await watch.rest(), "a row was parked, and went on"

    watched(run)


def test_a_trigger_whose_table_is_written_by_others_only() -> None:
    async def run(bench: Bench, watch: Watch) -> None:
        await bench.add("t")
        others = [ChangeRecord(b"%d" % n, 5, (), (), "other") for n in range(2 * follower.FILL_RECORDS)]
        await bench.region(b"a").log_records(others, {})
        assert await watch.rest()
        assert bench.main.take() == []
        (held,) = bench.dispatcher.intake.consumers_of("t")
        assert held.is_idle, "it has read what was none of its business"

    watched(run)


def test_what_was_delivered_is_trimmed_to_its_end_before_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step takes a bounded number of records; a log is not to grow because the next step waits."""
    monkeypatch.setattr(change_log, "TRIM_RECORDS", 7)
    monkeypatch.setattr(log_upkeep, "TRIM_RECORDS", 7)
    monkeypatch.setattr(log_upkeep, "STEP_PAUSE_S", 0.001)

    async def run(bench: Bench, watch: Watch) -> None:
        await bench.add("t")
        await bench.put(*(b"%03d" % n for n in range(100)))
        await deliver_all(bench)
        assert await watch.rest()
        assert bench.region(b"a").log.count_after(None, 100) <= 1

    watched(run)


def test_a_paused_trigger_with_work() -> None:
    async def run(bench: Bench, watch: Watch) -> None:
        await bench.add("t")
        await bench.triggers.pause("t")
        await bench.put(b"a")
        assert await watch.rest()

    watched(run)


def test_a_trigger_that_is_full_waits_for_its_worker() -> None:
    """As much is open as may be, all of it in flight or behind what is: the next step is the worker's."""

    async def run(bench: Bench, watch: Watch) -> None:
        await bench.add("t", timeout_ms=1)
        (held,) = bench.dispatcher.intake.consumers_of("t")
        held.state._bound = 3
        for _ in range(5):
            await bench.put(b"hot")
        main = bench.dispatcher.common.main
        for call in main.calls.values():
            call.time_until(NEVER, is_cold=False)  # the timeout is a timer, and rightly so
        main.listens_s = NEVER  # so is the patience with a worker that says nothing
        bench.dispatcher._carry_out()
        assert len(bench.main.take()) == 1
        assert held.state.room == 0
        assert await watch.rest()

    watched(run)


@on_bench()
async def test_a_long_way_through_the_changes_of_others_is_gone_without_being_told(bench: Bench) -> None:
    await bench.add("t")
    await bench.triggers.pause("t")
    region = bench.region(b"a")
    others = [ChangeRecord(b"%d" % n, 5, (), (), "other") for n in range(3 * follower.FILL_RECORDS)]
    await region.log_records(others, {})
    await bench.put(b"mine")
    await bench.triggers.resume("t")
    await bench.main.until(lambda: bench.main.sent)
    ((call_id, _, row),) = bench.main.take()
    assert row == b"mine"
    bench.main.answer(call_id)

"""Triggers whose region cannot be read for a while: they rest, their neighbours go on, and nothing is paused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from columnar.errors import ColumnarError, DamagedData, HostError
from columnar.regions.change_log import ChangeLog
from tests.unit.triggers.test_feeder import Bench, on_bench


def failing(times: int, error: ColumnarError, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, which fails so many times first."""
    left = [times]

    def called(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return call(*arguments)

    return called


def break_log(bench: Bench, what: str, times: int, error: ColumnarError) -> None:
    log = bench.region(b"00").log
    setattr(log, what, failing(times, error, getattr(log, what)))


@pytest.mark.parametrize("what", [ChangeLog.read.__name__, ChangeLog.record_at.__name__])
def test_a_region_that_cannot_be_read_for_a_while_is_read_again(what: str) -> None:
    @on_bench(regions=2)
    async def run(bench: Bench) -> None:
        await bench.add("t", attempts=1)
        break_log(bench, what, 2, HostError("the disk is full"))
        await bench.put(b"00", b"01")
        assert [row for _, _, row in bench.main.take()] == [b"01"], "its neighbour goes on"
        (status,) = bench.keeper.summaries()
        assert status.state == "running"
        assert "the disk is full" in status.error
        await bench.main.until(lambda: bench.main.sent)
        ((call_id, _, row),) = bench.main.take()
        assert row == b"00"
        bench.main.answer(call_id)
        assert await bench.keeper.dead_letters("t", 10) == [], "that was no attempt"

    run()


@on_bench()
async def test_a_consumer_that_goes_while_it_rests_takes_its_timer_with_it(bench: Bench) -> None:
    await bench.add("t")
    break_log(bench, "read", 99, HostError("the disk is full"))
    await bench.put(b"00")
    assert bench.feeder._unreadable
    await bench.triggers.remove("t")
    assert not bench.feeder._unreadable


@on_bench()
async def test_a_damaged_log_pauses_its_trigger(bench: Bench) -> None:
    await bench.add("t")
    break_log(bench, "read", 1, DamagedData("a record's sum is wrong"))
    await bench.put(b"00")
    (status,) = bench.keeper.summaries()
    assert status.state == "paused"
    assert "sum is wrong" in status.error

"""A server without its lease begins no calls of triggers and writes no effects; both go on when it has the lease."""

from __future__ import annotations

import asyncio
import threading

import pytest

from columnar.coordination import lease_gate
from columnar.coordination.lease_gate import LeaseGate
from columnar.model.mutation import Put, RowMutation
from tests.support.view_house import ViewHouse, by_a, in_view_house
from tests.unit.triggers.test_dispatcher import Bench, on_bench

RETRIES = 5


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_gate, "RETRY_S", 0.001)


class Lease:
    """A lease in the test's hand."""

    def __init__(self) -> None:
        self.is_valid = True
        self.asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.is_valid

    async def retried(self) -> None:
        """Wait until the gate has asked again, some times."""
        wanted = self.asked + RETRIES
        while self.asked < wanted:  # noqa: ASYNC110 - the gate has a timer
            await asyncio.sleep(0.001)


@on_bench()
async def test_calls_of_triggers_wait_for_the_lease(bench: Bench) -> None:
    lease = Lease()
    await bench.add("t")
    bench.keeper.governor.gate = gate = LeaseGate(lease, wait_s=0.003)  # so that each wait expires and begins again
    lease.is_valid = False
    await bench.put(b"r1", b"r2")
    await lease.retried()
    assert bench.main.take() == []
    lease.is_valid = True
    await bench.main.until(lambda: bench.main.sent)
    seen = []
    while len(seen) < 2:
        for number, _, row in bench.main.take():
            seen.append(row)
            bench.main.answer(number)
        await asyncio.sleep(0)
    assert seen == [b"r1", b"r2"]
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert gate.waiting_count == 0


@on_bench()
async def test_a_call_that_waited_for_an_fsync_waits_for_the_lease_too(bench: Bench) -> None:
    lease = Lease()
    bench.keeper.governor.gate = LeaseGate(lease, wait_s=0.003)
    await bench.add("t")
    await bench.triggers.pause("t")
    await bench.put(b"a")
    region, on_disk = bench.region(b"a"), threading.Event()
    sync = region.store.sync
    region.store.sync = lambda: (on_disk.wait(10), sync())[1]  # type: ignore[method-assign]
    written = region.apply(RowMutation(b"a", (Put(b"f", b"a", b"2"),))).durable
    await bench.triggers.resume("t")
    assert len(bench.dispatcher.common.main.calls) == 1, "it waits for the row as it is now"
    lease.is_valid = False
    on_disk.set()
    assert written is not None
    await written
    await lease.retried()
    assert bench.main.take() == []
    lease.is_valid = True
    await bench.main.until(lambda: bench.main.sent)
    assert len(bench.main.take()) == 1


@on_bench()
async def test_a_server_that_stops_leaves_nothing_at_the_gate(bench: Bench) -> None:
    lease = Lease()
    await bench.add("t")
    bench.keeper.governor.gate = gate = LeaseGate(lease, wait_s=0.003)
    lease.is_valid = False
    await bench.put(b"r1")
    await lease.retried()
    while gate.waiting_count != 1:  # noqa: ASYNC110 - the gate may be asking the lease just now
        await asyncio.sleep(0.001)
    await bench.keeper.close()
    while gate.waiting_count:  # noqa: ASYNC110 - the gate has a timer
        await asyncio.sleep(0.001)
    assert bench.main.take() == []


@in_view_house
async def test_effects_of_a_view_wait_for_the_lease(house: ViewHouse) -> None:
    lease = Lease()
    await house.make_source()
    await house.add(by_a())
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.settled("by_a")
    house.keeper.governor.gate = LeaseGate(lease, wait_s=0.003)
    lease.is_valid = False
    await house.put_cells("t", b"2", a=b"x", n=b"4")
    await lease.retried()
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 3}}
    lease.is_valid = True
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 2, "n": 7}}

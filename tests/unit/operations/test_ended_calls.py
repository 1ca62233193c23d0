"""A call that a stop ends takes no other along: both wait for the same fsync."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from columnar.errors import RegionNotLocal, RegionUnavailable
from columnar.model.mutation import Put
from columnar.model.schema import Family, make_table
from columnar.operations import writes
from columnar.operations.access import retried
from columnar.operations.writes import RowWrites
from columnar.runtime.loop_budget import never_disconnected
from columnar.wire.idl import hbase
from columnar.wire.service import CallContext, Later
from tests.support.region_house import House
from tests.support.service_calls import RowCalls, answer_of

TABLE = make_table("t", [Family("a")])
CTX = CallContext(1, "test")
Work = Coroutine[Any, Any, Any]


def batch_over_regions(house: House, _monkeypatch: pytest.MonkeyPatch) -> Work:
    batches = [hbase.BatchMutation(row=row, mutations=[hbase.Mutation(column=b"a:q")]) for row in (b"a", b"z")]
    return answer_of(RowCalls(house).mutateRows(CTX, b"t", batches, {}))


def batch_in_steps(house: House, monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setattr(writes, "STEP_S", -1.0)
    return batch_over_regions(house, monkeypatch)


def batch_that_goes_on_at_another_server(house: House, monkeypatch: pytest.MonkeyPatch) -> Work:
    async def moved(*_arguments: Any) -> Any:
        raise RegionNotLocal("t", "r")

    monkeypatch.setattr(RowWrites, "_continue_writing", moved)
    house.operations.access.others = cast(Any, object())
    applied = house.apply(b"a", Put(b"a", b"q", b"v"))
    written = [(applied, applied.durable)]
    return house.operations.writes._continue_on_all_servers(never_disconnected, [], written, lambda _applied: None)


def call_begun_anew(house: House, _monkeypatch: pytest.MonkeyPatch) -> Work:
    back = asyncio.get_running_loop().create_future()
    back.set_result(None)
    return retried(
        lambda: Later(house.apply(b"a", Put(b"a", b"q", b"v")).durable, None),
        RegionUnavailable("r", back),
        never_disconnected,
    )


@pytest.mark.parametrize(
    "begin", [batch_over_regions, batch_in_steps, batch_that_goes_on_at_another_server, call_begun_anew]
)
def test_whoever_waits_for_the_same_fsync_is_answered(
    begin: Callable[[House, pytest.MonkeyPatch], Work], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        house = House(TABLE, (b"m",))
        house.gate.hold()
        first = house.apply(b"c", Put(b"a", b"q", b"v")).durable
        await asyncio.to_thread(house.gate.entered.wait)  # the others wait for the next fsync
        ended = asyncio.ensure_future(begin(house, monkeypatch))
        for _ in range(50):
            await asyncio.sleep(0)
        shared = house.apply(b"b", Put(b"a", b"q", b"v")).durable
        assert shared is not first
        heard: list[Any] = []
        shared.add_callback(heard.append)  # as a port does
        ended.cancel()
        await asyncio.wait([ended])
        assert ended.cancelled(), "at once: a stop does not wait for the disk"
        house.gate.release()
        await asyncio.wait_for(asyncio.shield(shared), 20)
        assert heard == [shared]
        assert [value for _, value, _ in house.row(b"b")] == [b"v"]
        await house.close()

    asyncio.run(main())

"""Calls that wait for a region while its table is disabled: they leave it alone, and it stays closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import TableNotEnabled
from columnar.flows.applier import _Caller
from columnar.model.mutation import Put, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.operations.access import TableAccess
from columnar.operations.reads import RowQuery
from columnar.operations.row_deletes import delete_rows
from columnar.operations.writes import RowWrites
from columnar.regions.life.region_state import State
from columnar.regions.log.change_record import ChangeRecord
from columnar.regions.write.ingestion import IncomingRows
from columnar.runtime.loop_budget import never_disconnected
from tests.support.memory_house import House, housed
from tests.support.openings import operations_of

Call = Callable[[House], Awaitable[Any]]


async def a_delete(house: House) -> Any:
    return await delete_rows(TableAccess(house.server), b"t", b"", b"")


async def an_ingestion(house: House) -> Any:
    return await RowWrites(TableAccess(house.server)).ingest(house.table, IncomingRows(b"30", b"31", 1, 0, {}))


async def a_read(house: House) -> Any:
    spec = ReadSpec(projection(house.table.schema, []))
    query = RowQuery([b"20"], [spec], keeps_absent=True)
    return await operations_of(house.server).reads.rows(
        _Caller(never_disconnected), house.table, query, lambda found: found
    )


async def a_write(house: House) -> Any:
    writes, put = operations_of(house.server).writes, RowMutation(b"20", (Put(b"f", b"q", b"2"),))
    return await writes.write_rows(_Caller(never_disconnected), house.table, {b"20": put}, lambda applied: applied)


async def a_write_of_several_tables(house: House) -> Any:
    writes, put = operations_of(house.server).writes, RowMutation(b"20", (Put(b"f", b"q", b"2"),))
    return await writes.write_each(_Caller(never_disconnected), [(house.table, put)], lambda applied: applied)


async def a_retry_of_a_dead_letter(house: House) -> Any:
    await house.keeper.dead_letter_store.log_again("t", ChangeRecord(b"20", 0, (), (), "trigger-0"))


CALLS = [a_delete, an_ingestion, a_read, a_write, a_write_of_several_tables, a_retry_of_a_dead_letter]


@pytest.mark.parametrize("call", CALLS)
@housed()
async def test_it_does_nothing(house: House, call: Call) -> None:
    await house.put(b"20")
    (info,) = house.infos
    await house.server.close_regions([info])
    hosting, openings = house.server.hosting, house.server.openings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openings, "open_next", lambda: None)  # not its turn yet
        waiting = asyncio.ensure_future(call(house))
        while hosting.state.state(info.region_id) is not State.OPENING:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        for _ in range(9):  # until it waits for nothing but the region
            await asyncio.sleep(0)
        await house.changes.disable(b"t")
    openings.open_next()
    with pytest.raises(TableNotEnabled):
        await waiting
    assert not house.server.is_open(info)
    await house.changes.enable(b"t")
    assert house.rows_held() == [b"20"]

"""A write that waits while its table is published anew and a region of it is split: each row goes into its region."""

from __future__ import annotations

import asyncio
from typing import Any

from columnar.flows.applier import _Caller
from columnar.model.mutation import Put, RowMutation
from columnar.runtime.loop_budget import never_disconnected
from columnar.storage.api import StoreBusy
from tests.support.memory_house import House, housed
from tests.support.openings import operations_of

ROWS = (b"10", b"60", b"90")


@housed()
async def test_rows_go_where_they_belong(house: House) -> None:
    """As after ``alter``: whoever waits has the table as it was, and knows of no split."""
    await house.put(b"20")
    region, was_called = house.server.all_open()[0], asyncio.Event()

    def refuses(*_given: Any) -> Any:
        was_called.set()
        raise StoreBusy("it is behind")

    region.apply_many = refuses  # type: ignore[method-assign]
    served = house.server.tables.known(b"t")
    by_row = {row: RowMutation(row, (Put(b"f", b"q", b"1"),)) for row in ROWS}
    writing = operations_of(house.server).writes.write_rows(
        _Caller(never_disconnected), served, by_row, lambda applied: applied
    )
    waiting = asyncio.ensure_future(writing)
    await was_called.wait()
    await house.changes.publish(house.catalogue.tables["t"])
    await house.regions.split(house.infos[0], b"50")
    await waiting
    assert house.rows_held() == [b"10", b"20", b"60", b"90"]

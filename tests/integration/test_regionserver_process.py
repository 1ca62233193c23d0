"""A region server in a process of its own, under a master of the test: what it is told, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

from columnar.model.owner import Owner, first_owner, taken_from_dead
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from tests.support.server_children import Child, Master, with_master

TABLE = make_table("t", [Family("a")])
REGIONS = tuple(RegionInfo("t", 10 + n, start, end) for n, (start, end) in enumerate(
    [(b"", b"d"), (b"d", b"m"), (b"m", b"t"), (b"t", b"")]
))  # fmt: skip
ROWS = [letter + b"%02d" % n for letter in (b"a", b"f", b"n", b"x") for n in range(25)]


async def in_thread(what: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(what, *arguments)


async def began(master: Master, child: Child) -> None:
    """It has the table, and owns all of its regions at epoch 1."""
    master.make(*REGIONS)
    await master.publish(child, TABLE, *REGIONS)
    for region in REGIONS:
        await master.open(child, region, first_owner(child.here))


def write(connection: Any, value: bytes) -> None:
    table = connection.table("t")
    with table.batch() as batch:
        for row in ROWS:
            batch.put(row, {b"a:q": value + row})


def read(connection: Any) -> dict[bytes, bytes]:
    return {row: cells[b"a:q"] for row, cells in connection.table("t").scan()}


@with_master
async def test_a_killed_servers_rows_are_all_there_at_the_next(master: Master) -> None:
    one = await master.server("s1")
    await began(master, one)
    client = await master.client(one)
    await in_thread(write, client, b"1")
    await in_thread(write, client, b"2")
    assert await in_thread(read, client) == {row: b"2" + row for row in ROWS}
    one.kill()
    named, lengths = master.named(one), master.sealed(one)
    two = await master.server("s1")
    await master.publish(two, TABLE, *REGIONS)
    for region in REGIONS:
        owner = taken_from_dead(first_owner(one.here), two.here, in_log=(region.encoded, 1) in named)
        await master.open(two, region, owner, **{f"s1_{one.here.number}": lengths})
    again = await master.client(two)
    assert await in_thread(read, again) == {row: b"2" + row for row in ROWS}
    client.close()
    again.close()
    assert Owner(two.here, 2).epoch == 2

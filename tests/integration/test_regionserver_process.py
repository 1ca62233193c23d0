"""A region server in a process of its own, under a master of the test: what it is told, and how it ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import sys
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection
from columnar.errors import NotServingRegion
from columnar.model.owner import first_owner, moved, renumbered, source_closed, taken_from_dead
from columnar.model.owner_messages import Address, Addresses, GivenUp, Rates
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import BeginChange, FinishChange, RegionChange
from columnar.model.route import ChangeRoutes, Route
from columnar.model.schema import Family, make_table
from columnar.wire.idl import hbase
from tests.support.server_children import ORPHANED, Child, Master, alone, with_master

TABLE = make_table("t", [Family("a")])
EDGES = [(b"", b"d"), (b"d", b"m"), (b"m", b"t"), (b"t", b"")]
REGIONS = tuple(RegionInfo("t", 10 + n, start, end) for n, (start, end) in enumerate(EDGES))
ROWS = [letter + b"%02d" % n for letter in (b"a", b"f", b"n", b"x") for n in range(9)]


async def in_thread(what: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(what, *arguments)


async def began(master: Master, child: Child) -> None:
    """It has the table, and owns all of its regions at epoch 1."""
    master.make(*REGIONS)
    await master.publish(child, TABLE, *REGIONS)
    for region in REGIONS:
        await master.open(child, region, first_owner(child.here))
    await master.routes(1, *(Route(region, child.here, 1) for region in REGIONS))


def write(connection: Connection, value: bytes) -> None:
    with connection.table("t").batch() as batch:
        for row in ROWS:
            batch.put(row, {b"a:q": value + row})


def read(connection: Connection) -> dict[bytes, bytes]:
    return {row: cells[b"a:q"] for row, cells in connection.table("t").scan()}


def rows_with(value: bytes) -> dict[bytes, bytes]:
    return {row: value + row for row in ROWS}


@with_master
async def test_what_a_dead_server_acknowledged_is_at_the_next_after_a_power_cut(master: Master) -> None:
    """Their first fsyncs are the stores' own; once they share the server's, that is all that a cut leaves."""
    master.is_shared = True
    one = await master.server("s1")
    await began(master, one)
    client = await master.client(one)
    named = {(region.encoded, 1) for region in REGIONS}
    while master.named(one) != named:
        await in_thread(write, client, b"1")
    logs = [next(folder.glob("*.log")) for folder in (master.data / "regions").iterdir()]
    lengths = {log: log.stat().st_size for log in logs}
    await in_thread(write, client, b"2")
    one.kill()
    client.close()
    for log, length in lengths.items():
        assert log.stat().st_size > length
        os.truncate(log, length)
    two = await master.server("s1")
    await master.publish(two, TABLE, *REGIONS)
    for region in REGIONS:
        owner = taken_from_dead(first_owner(one.here), two.here, in_log=True)
        await master.open(two, region, owner, **{str(one.here): master.sealed(one)})
    client = await master.client(two)
    assert await in_thread(read, client) == rows_with(b"2")
    client.close()


@with_master
async def test_a_region_moves_and_its_old_owner_refuses_that_epoch_for_ever_and_sends_calls_on(master: Master) -> None:
    one, two = await master.server("s1"), await master.server("s2")
    await began(master, one)
    await master.publish(two, TABLE, *REGIONS)
    at_one, at_two = await master.client(one), await master.client(two)
    await in_thread(write, at_one, b"1")
    region = REGIONS[1]
    first = first_owner(one.here)
    assert await master.close(one, region, 1) == GivenUp(1, has_unreplayed_log=False)
    assert await master.close(one, region, 1) == GivenUp(1, has_unreplayed_log=False)  # told twice
    with pytest.raises(NotServingRegion):
        await master.open(one, region, first)
    second = source_closed(moved(first, two.here), is_behind=False)
    master.clock_ms = master.closed_ms + 5_000
    await master.open(two, region, second)
    await master.change_routes(ChangeRoutes(2, routes=(Route(region, two.here, 2),)), one)
    assert await in_thread(at_two.table("t").row, b"f07") == {b"a:q": b"1f07"}
    put = [hbase.Mutation(column=b"a:q", value=b"2")]
    await in_thread(at_one.client.mutateRow, b"t", b"f07", put, {})  # it goes on to the owner
    assert await in_thread(at_one.table("t").row, b"f07") == {b"a:q": b"2"}
    # The move back is called off: the owner stays, at the next epoch, and refuses the one before.
    await master.renumber(two, region, renumbered(moved(second, one.here)))
    assert await master.close(two, region, 2) == GivenUp(2, has_unreplayed_log=True)
    await in_thread(at_two.table("t").put, b"f08", {b"a:q": b"4"})
    assert await master.close(two, region, 4) == GivenUp(4, has_unreplayed_log=False)
    assert master.closed_ms >= master.clock_ms, "an owner follows the clock of the owner before"
    await master.open(one, region, source_closed(moved(first_owner(two.here, 4), one.here), is_behind=False))
    assert await in_thread(at_one.table("t").row, b"f07") == {b"a:q": b"2"}
    assert await in_thread(at_one.table("t").row, b"f08") == {b"a:q": b"4"}
    at_one.close()
    at_two.close()


@with_master
async def test_an_owner_splits_a_region_and_every_server_knows_where_its_halves_are(master: Master) -> None:
    one, two = await master.server("s1"), await master.server("s2", tls_cert="")
    await began(master, one)
    await master.publish(two, TABLE, *REGIONS)
    await master.routes(1, *(Route(region, one.here, 1) for region in REGIONS))
    clients = await master.client(one), await master.client(two)
    await in_thread(write, clients[0], b"1")
    parent, halves = REGIONS[0], (RegionInfo("t", 20, b"", b"a05"), RegionInfo("t", 21, b"a05", b"d"))
    change = RegionChange((parent,), halves, 1)
    routes = ChangeRoutes(2, (parent,), tuple(Route(half, one.here, 1) for half in halves))

    async def commit() -> None:
        await master.change_routes(routes, one, two)  # before the owner hears that its change is committed

    one.committing = commit
    await one.ask(BeginChange(change))
    await one.ask(FinishChange(change))
    heard: Address = Address(one.here, "localhost", one.listening.result().port)
    for child, client in zip((one, two), clients, strict=True):
        await child.ask(Addresses((heard,)))
        regions = await in_thread(client.table("t").regions)
        assert [found["start_key"] for found in regions] == [b"", b"a05", b"d", b"m", b"t"]
        assert {(found["server_name"], found["port"]) for found in regions} == {(b"localhost", heard.port)}
    assert await in_thread(read, clients[0]) == rows_with(b"1")
    rates = await one.ask(Rates())
    assert {rate.region for rate in rates} == {20, 21, 11, 12, 13}
    assert await master.close(one, halves[1], 1) == GivenUp(1, has_unreplayed_log=False)
    for client in clients:
        client.close()


@with_master
async def test_changes_of_tables_go_to_the_master_as_they_came(master: Master) -> None:
    one = await master.server("s1", thrift2_port=0)
    await began(master, one)
    client = await master.client(one)
    assert await in_thread(client.tables) == [b"t"]
    for change in (
        lambda: client.create_table("new", {"a": {}}),
        lambda: client.call("columnarSplit", b"t", b"k"),
        lambda: client.call("columnarListNamespaces"),
        lambda: client.call("columnarSnapshotTake", "s", b"t"),
    ):
        with pytest.raises(Exception, match="does not answer this call; nothing was done"):  # says the test's master
            await in_thread(change)
    for name, message in zip(
        (b"createTable", b"columnarSplit", b"columnarListNamespaces", b"columnarSnapshotTake"), one.called, strict=True
    ):
        assert name in message
    client.close()


@with_master
async def test_a_server_ends_with_its_link_and_when_it_is_told(master: Master) -> None:
    one, two = await master.server("s1"), await master.server("s2")
    await began(master, one)
    client = await master.client(one)
    for value in (b"1", b"2", b"3"):
        await in_thread(write, client, value)
    assert one.seen() > 0
    two.control.close()
    assert two.node_link is not None
    two.node_link.end("the test leaves")
    assert await two.ended(1.0) == ORPHANED
    one.process.terminate()
    assert await one.ended(10.0) == 0
    assert master.sealed(one) == ()  # all is in the regions' own stores
    os.close(master.take_lock())
    client.close()


@with_master
async def test_the_lock_is_held_as_long_as_a_server_lives(master: Master) -> None:
    one = await master.server("s1")
    held = master.take_lock()
    os.close(held)  # the master's own
    other = os.open(master.data / "LOCK", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    one.kill()
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part")
def test_a_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Though somebody else holds the other ends of its sockets."""
    with alone(tmp_path) as (parent, pid):
        server = os.pidfd_open(pid)
        assert not select.select([server], [], [], 0.0)[0]
        parent.kill()
        parent.wait()
        assert select.select([server], [], [], 1.0)[0], "it is still there"
        os.close(server)

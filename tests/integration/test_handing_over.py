"""A region server in a process of its own hands its clients over: scanners, TLS, what is on its way, and the limit."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
from typing import Any

import pytest

from columnar.client import Connection
from columnar.coordination.connection_channel import receive_connection, send_connection
from columnar.limits import MESSAGE_BYTES
from columnar.model.owner import first_owner
from columnar.model.owner_messages import Address, Addresses, HandOver, HandoverResult, ReturnConnections
from columnar.model.region_info import RegionInfo
from columnar.model.route import Route
from columnar.model.schema import Family, make_table
from columnar.roles.ports import THRIFT1_SERVICE, THRIFT2_SERVICE
from tests.support.certificates import Authority
from tests.support.server_children import Child, Master, with_master
from tests.support.stopped_process import stop_process
from tests.support.toy_wire import call, framed, reply_of

TABLE = make_table("t", [Family("a")])
REGION = RegionInfo("t", 10)
LONG_MS = 20_000
SHORT_MS = 50
ROWS = {b"%02d" % n: {b"a:q": b"%d" % n} for n in range(20)}


async def in_thread(what: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(what, *arguments)


async def two_servers(master: Master) -> tuple[Child, Child]:
    """The second owns the only region; both know of each other."""
    one, two = await master.server("s1", thrift2_port=0), await master.server("s2", thrift2_port=0)
    master.make(REGION)
    for child in (one, two):
        await master.publish(child, TABLE, REGION)
    await master.open(two, REGION, first_owner(two.here))
    await master.routes(1, Route(REGION, two.here, 1))
    addresses = Addresses(
        tuple(Address(one.here, "h", one.listening.result().port, one.listening.result().peer) for one in (one, two))
    )
    for child in (one, two):
        await child.ask(addresses)
    return one, two


def pass_on(giver: Child, taker: Child) -> bytes:
    """Hand the next connection that a server gave back to another one; its door."""
    handed = receive_connection(giver.doorbell)
    assert handed is not None
    with handed.connection:
        assert send_connection(taker.doorbell, handed)
    return handed.service


@with_master
async def test_a_scan_goes_on_at_the_server_that_leaves_and_it_waits_for_its_end(master: Master) -> None:
    one, two = await two_servers(master)
    silent, client = await master.client(one, THRIFT2_SERVICE), await master.client(one)
    for row, cells in ROWS.items():
        await in_thread(client.table("t").put, row, cells)
    scan = client.table("t").scan(batch_size=3)
    found = [await in_thread(next, scan)]
    handing = asyncio.ensure_future(one.ask(HandOver(LONG_MS)))
    assert {await in_thread(pass_on, one, two) for _ in range(2)} == {THRIFT1_SERVICE, THRIFT2_SERVICE}
    found += [await in_thread(next, scan) for _ in range(10)]
    assert not handing.done(), "a scanner is open"
    found += await in_thread(list, scan)
    assert dict(found) == ROWS
    assert await handing == HandoverResult(given=2, closed=0, lost=0, scanners=0)
    one.process.terminate()
    assert await one.ended(10.0) == 0
    assert await in_thread(client.table("t").row, b"07") == ROWS[b"07"]
    client.close()
    silent.close()


@with_master
async def test_when_time_is_over_the_answer_says_what_is_left(master: Master) -> None:
    one, two = await two_servers(master)
    client = await master.client(one)
    await in_thread(client.table("t").put, b"r", {b"a:q": b"v"})
    scan = client.table("t").scan(batch_size=1)
    await in_thread(next, scan)
    with socket.create_connection(("127.0.0.1", one.listening.result().port), timeout=20) as slow:
        # A request that is answered, and the beginning of one over the bound, which this server alone can refuse.
        slow.sendall(
            framed(call(b"getTableNames", 1)) + struct.pack(">I", 2 * MESSAGE_BYTES) + call(b"getTableNames", 2)
        )
        assert (await in_thread(reply_of, slow))[2] == 1
        told = await one.ask(HandOver(SHORT_MS))
        assert told == HandoverResult(given=1, closed=0, lost=1, scanners=1)
    assert await in_thread(pass_on, one, two) == THRIFT1_SERVICE
    assert await in_thread(client.table("t").row, b"r") == {b"a:q": b"v"}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", one.listening.result().port))
    scan.close()
    client.close()


@with_master
async def test_a_surplus_of_both_services_goes_back_and_the_rest_is_handed_over_later(master: Master) -> None:
    one, two = await two_servers(master)
    clients = [await master.client(one) for _ in range(6)]
    silent = [await master.client(one, THRIFT2_SERVICE) for _ in range(2)]
    for client in clients:
        assert await in_thread(client.tables) == [b"t"], "the server has it"
    row = {b"a:q": b"v"}
    for n in range(3):
        await in_thread(clients[0].table("t").put, b"%d" % n, row)
    scan = clients[0].table("t").scan(batch_size=1)
    assert await in_thread(next, scan) == (b"0", row)
    assert await one.ask(ReturnConnections(4, LONG_MS)) == 4
    doors = [await in_thread(pass_on, one, two) for _ in range(4)]
    assert sorted(doors) == [THRIFT1_SERVICE] * 3 + [THRIFT2_SERVICE], "each service gives its share"
    for client in clients:
        assert await in_thread(client.tables) == [b"t"]
    assert await one.ask(ReturnConnections(100, SHORT_MS)) == 3
    for _ in range(3):
        await in_thread(pass_on, one, two)
    assert await in_thread(list, scan) == [(b"1", row), (b"2", row)], "its connection stayed"
    late = await master.client(one)
    assert await in_thread(late.tables) == [b"t"]
    handing = asyncio.ensure_future(one.ask(HandOver(LONG_MS)))
    for _ in range(2):
        await in_thread(pass_on, one, two)
    assert await handing == HandoverResult(given=2, closed=0, lost=0, scanners=0), "what went before is not counted"
    for client in [*clients, *silent, late]:
        client.close()


@with_master
async def test_connections_that_wait_in_the_doorbell_come_back_too(master: Master) -> None:
    one, two = await two_servers(master)
    stop_process(one.process.pid)  # it sees all that follows in the same moment
    clients = [await master.client(one) for _ in range(8)]
    handing = asyncio.ensure_future(one.ask(HandOver(LONG_MS)))
    await asyncio.sleep(0)  # it is sent
    one.process.send_signal(signal.SIGCONT)
    assert await handing == HandoverResult(given=8, closed=0, lost=0, scanners=0)
    for _ in clients:
        await in_thread(pass_on, one, two)
    for client in clients:
        assert await in_thread(client.tables) == [b"t"]
        client.close()


@with_master
async def test_tls_connections_are_closed_between_two_requests(master: Master) -> None:
    authority = Authority(master.data.parent, "us")
    pair = authority.sign("server")
    one = await master.server("s1", tls_cert=pair.cert, tls_key=pair.key)
    port = one.listening.result().port
    client: Connection = await in_thread(lambda: Connection("127.0.0.1", port, timeout=15_000, tls=authority.client()))
    assert await in_thread(client.tables) == []
    told = await one.ask(HandOver(LONG_MS))
    assert told == HandoverResult(given=0, closed=1, lost=0, scanners=0)
    with pytest.raises(Exception, match=r"TSocket read 0 bytes|reset|closed|Broken|EOF"):
        await in_thread(client.tables)

"""Forwarded calls where something breaks: links, owners, clients.  No write is done twice, each call ends once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from columnar.cluster import peer_frames
from columnar.cluster.forwarding import RawMessage, UnretriedRequest
from columnar.cluster.forwarding_state import ROUTING_TIMEOUT_MS, State
from columnar.cluster.request_forwarder import RequestForwarder
from columnar.cluster.row_forms import THRIFT1, THRIFT2
from columnar.errors import ForwardToMaster, TableExists
from columnar.model.owner import Incarnation
from columnar.model.route import Route
from columnar.regions.life.region_state import State as Hosted
from columnar.wire.idl2 import SERVICE2, hbase2
from columnar.wire.service import CallContext
from tests.support.peer_cluster import PeerCluster, PeerHouse, clustered, put1
from tests.support.thrift_calls import Client

T = b"t"


async def until(condition: Callable[[], object]) -> None:
    """For what sockets do; the test's own bound of time ends it."""
    while not condition():  # noqa: ASYNC110 - sockets tell only those whom they concern
        await asyncio.sleep(0)


def under_way(house: PeerHouse) -> list[Any]:
    return list(house.forwarding.in_flight.get("t", ()))


def states(house: PeerHouse) -> list[State]:
    return [call.state.state for call in under_way(house)]


async def dies(owner: PeerHouse, gateway: PeerHouse) -> None:
    """The gateway has heard that its link has ended: what it sends from now on is known not to have been sent."""
    await owner.die()
    await until(lambda: owner.me not in gateway.peers._small)


async def held_write(cluster: PeerCluster, client: Client, row: bytes = b"x") -> None:
    """An increment that the owner has carried out, and whose fsync does not end."""
    cluster.engine.gate.hold()
    client.send("atomicIncrement", T, row, b"a:n", 1)
    await until(lambda: states(cluster.houses[0]) == [State.SENT])
    await asyncio.to_thread(cluster.engine.gate.entered.wait)


async def counter(client: Client, row: bytes = b"x") -> int:
    cells = await client("get", T, row, b"a:n", {})
    return int.from_bytes(cells[0].value, "big") if cells else 0


# --- links -------------------------------------------------------------------------------------------


@clustered()
async def test_a_write_on_a_link_that_breaks_is_unknown_and_never_repeated(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    client = await gateway.client()
    await held_write(cluster, client)
    gateway.peers.fenced(owner.me)
    said = (await client.reply()).said
    assert said.startswith("CallTimeoutException: server s2.5 did not answer")
    assert under_way(gateway) == []
    cluster.engine.gate.release()
    assert await counter(client) == 1, "it was carried out once, and is not sent again"


@clustered()
async def test_a_read_on_a_link_that_breaks_goes_on(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    client, writer = await gateway.client(), await owner.client()
    cluster.engine.gate.hold()
    writer.send("mutateRow", T, b"x", put1(b"v"), {})
    await asyncio.to_thread(cluster.engine.gate.entered.wait)
    client.send("get", T, b"x", b"a:q", {})
    await until(lambda: states(gateway) == [State.SENT])
    for link in list(owner.peers._listener.links):
        link.end("cut")
    await until(lambda: states(gateway) == [State.WAITING])
    await until(lambda: states(gateway) == [State.SENT])
    cluster.engine.gate.release()
    assert [cell.value for cell in (await client.reply()).value] == [b"v"]


@clustered(3, (b"h", b"q"))
async def test_calls_to_an_owner_that_died_are_answered_by_the_next(cluster: PeerCluster) -> None:
    gateway, owner, next_one = cluster.houses
    client, other = await gateway.client(), await gateway.client()
    await client("mutateRow", T, b"k", put1(b"v"), {})
    await dies(owner, gateway)
    client.send("get", T, b"k", b"a:q", {})
    other.send("atomicIncrement", T, b"k", b"a:n", 1)
    await until(lambda: states(gateway) == [State.WAITING, State.WAITING])
    gateway.check()
    cluster.take(cluster.infos[1], next_one.me)
    assert [cell.value for cell in (await client.reply()).value] == [b"v"]
    assert (await other.reply()).value == 1


@clustered()
async def test_a_region_that_comes_to_the_gateway_is_served_there(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    clients = [await gateway.client() for _ in range(3)]
    await clients[0]("mutateRow", T, b"x", put1(b"v"), {})
    await dies(owner, gateway)
    large = put1(bytes(100_000), b"a:large")  # its arguments are dropped while it waits
    clients[0].send("get", T, b"x", b"a:q", {})
    clients[1].send("atomicIncrement", T, b"x", b"a:n", 1)
    clients[2].send("mutateRow", T, b"x", large, {})
    await until(lambda: states(gateway) == [State.WAITING] * 3)
    cluster.take(cluster.infos[1], gateway.me)
    assert [cell.value for cell in (await clients[0].reply()).value] == [b"v"]
    assert (await clients[1].reply()).value == 1
    assert (await clients[2].reply()).value is None
    assert len((await clients[0]("get", T, b"x", b"a:large", {}))[0].value) == 100_000
    assert under_way(gateway) == []


@clustered()
async def test_an_answer_over_the_bound_of_a_frame_is_refused_and_its_neighbours_are_answered(
    cluster: PeerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, owner = cluster.houses
    client, other, writer = await gateway.client(), await gateway.client(), await owner.client()
    await client("mutateRow", T, b"x", put1(bytes(10_000)), {})
    monkeypatch.setattr(peer_frames, "PEER_FRAME_BYTES", 5_000)
    client.send("get", T, b"x", b"a:q", {})
    assert (await client.reply()).said.startswith("RequestTooBigException: the answer has 10")
    assert owner.answering.serving_bytes == 0
    cluster.engine.gate.hold()
    writer.send("mutateRow", T, b"x", put1(b"v", b"a:v"), {})
    await asyncio.to_thread(cluster.engine.gate.entered.wait)
    client.send("get", T, b"x", b"a:q", {})
    await until(lambda: owner.answering.serving_bytes)
    other.send("get", T, b"x", b"a:v", {})  # it waits for the same fsync, behind the other
    alone = owner.answering.serving_bytes
    await until(lambda: owner.answering.serving_bytes > alone)
    cluster.engine.gate.release()
    assert (await client.reply()).said.startswith("RequestTooBigException: the answer has 10")
    assert [cell.value for cell in (await other.reply()).value] == [b"v"]
    assert (await writer.reply()).value is None
    assert owner.answering.serving_bytes == 0


# --- routes ------------------------------------------------------------------------------------------


@clustered(3, (b"h", b"q"))
async def test_a_gateway_with_an_old_route_is_told_by_the_old_owner(cluster: PeerCluster) -> None:
    gateway, owner, next_one = cluster.houses
    client = await gateway.client()
    await client("atomicIncrement", T, b"k", b"a:n", 1)
    await cluster.move(cluster.infos[1], next_one.me, heard_by=lambda house: house is not gateway)
    assert await client("atomicIncrement", T, b"k", b"a:n", 1) == 2
    assert owner.answering.misdirected == 1
    assert gateway.routes.find("t", b"k") == Route(
        cluster.infos[1], next_one.me, 2, gateway.routes.find("t", b"k").source
    )  # type: ignore[union-attr]


@clustered()
async def test_a_route_that_is_ahead_of_the_gateway_itself(cluster: PeerCluster) -> None:
    """The master has named it the owner, and has not told it to open the region yet."""
    gateway, owner = cluster.houses
    client, info = await gateway.client(), cluster.infos[1]
    await client("atomicIncrement", T, b"x", b"a:n", 1)
    await owner.give_up(info)
    cluster.publish(Route(info, gateway.me, 2))
    client.send("atomicIncrement", T, b"x", b"a:n", 1)
    await until(lambda: states(gateway) == [State.WAITING])
    gateway.own(info, 2)
    assert (await client.reply()).value == 2


@clustered()
async def test_a_write_that_waits_here_goes_along_when_its_region_leaves(cluster: PeerCluster) -> None:
    """Its handler is within its steps by then: the gateway was the owner."""
    gateway, other = cluster.houses
    client, waiting = await gateway.client(), await gateway.client()
    info = cluster.infos[0]
    cluster.engine.gate.hold()
    client.send("atomicIncrement", T, b"b", b"a:n", 1)
    await asyncio.to_thread(cluster.engine.gate.entered.wait)
    leaving = asyncio.ensure_future(cluster.move(info, other.me))
    await until(lambda: _is_closing(gateway))
    waiting.send("atomicIncrement", T, b"b", b"a:n", 1)
    await until(lambda: sum(one.serving_bytes > 0 for one in gateway.wire.table.connections) == 2)
    cluster.engine.gate.release()
    await leaving
    assert (await client.reply()).value == 1
    assert (await waiting.reply()).value == 2
    assert other.server.open_count() > 0
    assert gateway.forwarding.forwarded == 1


def _is_closing(house: PeerHouse) -> bool:
    return any(house.server.hosting.state_of(region) is Hosted.CLOSING for region in house.server.all_open())


class VirtualTime:
    """A clock that only the test moves, to the moment for which somebody waits."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def options(self) -> dict[str, Any]:
        return {"now_ms": lambda: self.now, "call_later": self._call_later}

    def _call_later(self, delay_s: float, callback: Callable[[], None]) -> Any:
        timer = (self.now + delay_s * 1000, callback)
        self.timers.append(timer)
        return _Cancelled(self.timers, timer)

    def pass_on(self) -> None:
        timer = min(self.timers, key=lambda one: one[0])
        self.timers.remove(timer)
        self.now = max(self.now, int(timer[0]))
        timer[1]()


class _Cancelled:
    def __init__(self, timers: list[Any], timer: Any) -> None:
        self._timers, self._timer = timers, timer

    def cancel(self) -> None:
        if self._timer in self._timers:
            self._timers.remove(self._timer)


@pytest.mark.parametrize("why", ["does not own it", "is dead", "has no address", "no table in the routes"])
@pytest.mark.parametrize("is_write", [False, True])
@clustered()
async def test_an_owner_that_never_comes(cluster: PeerCluster, why: str, is_write: bool) -> None:
    gateway, owner = cluster.houses
    time = VirtualTime()
    gateway.forwarding.now_ms = lambda: time.now
    gateway.forwarding._call_later = time._call_later
    if why == "does not own it":
        owner.disown(cluster.infos[1])
    elif why == "is dead":
        await owner.die()
    elif why == "has no address":
        gateway.peers._address_of = lambda _server: None
    else:
        gateway.routes._tables.clear()
    client, begun = await gateway.client(), time.now
    client.send("atomicIncrement" if is_write else "get", T, b"x", b"a:n", 1 if is_write else {})
    await until(lambda: gateway.forwarding.forwarded)
    tries = 0
    while under_way(gateway):
        if states(gateway) == [State.WAITING]:
            gateway.check()
            tries += 1
            assert len(time.timers) == 1, "one for all"
            time.pass_on()
        await asyncio.sleep(0)
    said = (await client.reply()).said
    assert said.startswith("NotServingRegionException: ")
    assert said.endswith("was not served by any server in time; nothing was done, try again")
    assert begun + ROUTING_TIMEOUT_MS <= time.now <= begun + ROUTING_TIMEOUT_MS + 10
    assert tries < 60
    gateway.check()


# --- clients -----------------------------------------------------------------------------------------


@clustered()
async def test_nothing_is_begun_for_a_client_that_left_while_its_call_waited(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    client, stays = await gateway.client(), await gateway.client()
    owner.disown(cluster.infos[1])
    client.send("atomicIncrement", T, b"x", b"a:n", 1)
    await until(lambda: under_way(gateway) and owner.answering.misdirected)
    await client.close()
    await until(lambda: not under_way(gateway))
    owner.own(cluster.infos[1], 2)
    assert await counter(stays) == 0
    assert gateway.wire.connections == 1


@clustered()
async def test_an_answer_for_a_client_that_left_is_dropped(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    client, stays = await gateway.client(), await gateway.client()
    await held_write(cluster, client)
    client.cut_off()
    await until(lambda: not under_way(gateway))
    cluster.engine.gate.release()
    assert await counter(stays) == 1, "the owner had it"
    gateway.check()
    await until(lambda: owner.answering.serving_bytes == 0)


@clustered()
async def test_a_client_that_sends_no_more_is_answered(cluster: PeerCluster) -> None:
    gateway = cluster.houses[0]
    client = await gateway.client()
    await held_write(cluster, client)
    client.writer.write_eof()
    cluster.engine.gate.release()
    assert (await client.reply()).value == 1


@clustered()
async def test_what_a_call_holds_counts_as_its_connections(cluster: PeerCluster) -> None:
    gateway = cluster.houses[0]
    client = await gateway.client()
    cluster.houses[1].disown(cluster.infos[1])
    client.send("mutateRow", T, b"x", put1(bytes(300_000)), {})
    await until(lambda: states(gateway) == [State.WAITING])
    assert 300_000 < gateway.wire.input_bytes < 310_000
    await client.close()
    await until(lambda: gateway.wire.input_bytes == 0)


# --- the master, and other servers by name -------------------------------------------------------------


def masters_method(house: PeerHouse, answer: Callable[[CallContext], Any]) -> None:
    def handler(ctx: CallContext, *_arguments: object) -> Any:
        return answer(ctx)

    house.service.handlers["disableTable"] = handler  # type: ignore[index]


def hand_on(_ctx: CallContext) -> Any:
    raise ForwardToMaster("disableTable")


@clustered()
async def test_a_method_of_the_master_goes_there(cluster: PeerCluster) -> None:
    gateway, master = cluster.houses
    masters_method(gateway, hand_on)
    client = await gateway.client()
    message = (await client.call("disableTable", T)).said
    assert message == "NotServingRegionException: the master cannot be reached; nothing was done, try again"

    class Leader:
        def send_call(self, call: UnretriedRequest, raw: RawMessage) -> None:
            call.send(gateway.peers.link(master.me, 0), raw)

    gateway.forwarding.leader = Leader()
    masters_method(master, lambda _ctx: None)
    assert await client("disableTable", T) is None

    def fails(_ctx: CallContext) -> None:
        raise TableExists("t")

    masters_method(master, fails)
    assert (await client.call("disableTable", T)).said.startswith("TableExistsException")

    never = asyncio.get_running_loop().create_future()
    masters_method(master, lambda _ctx: never)
    client.send("disableTable", T)
    await until(lambda: master.answering.serving_bytes)
    gateway.peers.fenced(master.me)
    assert (await client.reply()).said.startswith("CallTimeoutException: the master ended")
    gateway.forwarding.leader = None
    never.cancel()


@clustered()
async def test_a_scanner_is_asked_at_the_server_that_opened_it(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    client, direct = await gateway.client(), await owner.client()
    await direct("mutateRow", T, b"x", put1(b"v"), {})
    scanner = await direct("scannerOpen", T, b"m", [], {})
    assert (await client.call("scannerGetList", scanner, 5)).said.startswith("IllegalArgumentException")
    servers: dict[int, Incarnation | None] = {scanner: owner.me, scanner + 1: gateway.me, scanner + 2: None}
    gateway.service.request_forwarder = RequestForwarder(gateway.forwarding, gateway.server, THRIFT1, servers.get)
    assert [row.row for row in await client("scannerGetList", scanner, 5)] == [b"x"]
    for unknown in (scanner + 1, scanner + 2):
        assert (await client.call("scannerGet", unknown)).said.startswith("IllegalArgumentException")
    assert await client("scannerClose", scanner) is None
    assert (await direct.call("scannerGet", scanner)).error is not None


@clustered()
async def test_a_scanner_of_thrift_2_is_closed_at_the_server_that_opened_it(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    client, direct = await gateway.client(service=SERVICE2), await owner.client(service=SERVICE2)
    scanner = await direct("openScanner", T, hbase2.TScan(startRow=b"m"))
    servers: dict[int, Incarnation | None] = {scanner: owner.me, scanner + 1: gateway.me, scanner + 2: None}
    gateway.service2.request_forwarder = RequestForwarder(gateway.forwarding, gateway.server, THRIFT2, servers.get)
    assert await client("getScannerRows", scanner, 1) == []
    assert await client("closeScanner", scanner) is None
    assert (await direct.call("getScannerRows", scanner, 1)).error is not None
    for closed in (scanner, scanner + 1, scanner + 2):
        assert await client("closeScanner", closed) is None, "HBase says nothing to it either"

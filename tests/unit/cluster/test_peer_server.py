"""The side that answers links: as a port answers its clients, in order, within bounds, and never by another server."""

from __future__ import annotations

import asyncio
import struct
from itertools import pairwise
from typing import Any

import pytest

from columnar.cluster import peer_server
from columnar.cluster.peer_frames import Frame
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.refusals import Moved, PeerFault, Refusal, Unknown
from columnar.cluster.row_forms import PROTOCOL_BYTES, THRIFT1, THRIFT2
from columnar.errors import CallerError, CallQueueTooBig, OutcomeUnknown, TableNotFound
from columnar.model.region_messages import CloseTable, MiddleRow, Publish, Withdraw
from columnar.wire.detect import Protocol, Speech
from columnar.wire.idl import SERVICE
from tests.support.peer_cluster import PeerCluster, clustered, put1
from tests.support.thrift_calls import packed, read

T = b"t"
BINARY = Speech(False, Protocol.BINARY)


class Caller:
    """A call on a link, as its caller hears of it."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def frame_written(self) -> None:
        pass

    def not_sent(self) -> None:
        self.ended.set_result("not sent")

    def link_broke(self) -> None:
        self.ended.set_result("link broke")

    def take_reply(self, frame: Frame) -> None:
        self.ended.set_result(bytes(frame.body))

    def refused(self, refusal: Refusal) -> None:
        self.ended.set_result(refusal)


def called(link: PeerLink, message: bytes, protocol: Protocol = Protocol.BINARY, service: int = THRIFT1) -> Caller:
    caller = Caller()
    link.call(service, PROTOCOL_BYTES[protocol], message, caller)
    return caller


def increment(row: bytes, seqid: int = 7) -> bytes:
    return packed(BINARY, SERVICE, "atomicIncrement", (T, row, b"a:n", 1), seqid)


def link_of(cluster: PeerCluster) -> PeerLink:
    """From the first server to the second."""
    return cluster.houses[0].peers.link(cluster.houses[1].me, 0)


@clustered()
async def test_calls_of_a_link_are_carried_out_in_their_order(cluster: PeerCluster) -> None:
    link = link_of(cluster)
    assert await called(link, increment(b"x")).ended, "calls for a region that is not open yet wait each by itself"
    calls = [called(link, increment(b"x", n)) for n in range(50)]
    replies = [read(BINARY, SERVICE, await call.ended) for call in calls]
    assert [(reply.seqid, reply.value) for reply in replies] == [(n, n + 2) for n in range(50)]


@clustered()
async def test_a_row_of_another_server_is_refused_with_its_owner(cluster: PeerCluster) -> None:
    gateway, owner = cluster.houses
    link = link_of(cluster)
    assert await called(link, increment(b"b")).ended == Moved(cluster.infos[0], gateway.me, 1)
    owner.disown(cluster.infos[1])
    assert isinstance(await called(link, increment(b"x")).ended, Unknown), "its own copy names itself"
    owner.routes._tables.clear()
    assert isinstance(await called(link, increment(b"x")).ended, Unknown)
    assert owner.answering.misdirected == 3
    assert owner.forwarding.forwarded == 0, "it is never forwarded again"
    assert owner.answering.serving_bytes == 0


@clustered()
async def test_messages_that_no_client_sends(cluster: PeerCluster) -> None:
    owner, link = cluster.houses[1], link_of(cluster)
    for message in (b"", b"\x80\x01", b"nonsense", increment(b"x")[:-9], increment(b"x") + b"more"):
        refusal = await called(link, message).ended
        assert refusal.hbase_class == "IOException", message
    unknown = struct.pack(">HBBI", 0x8001, 0, 1, 4) + b"none" + struct.pack(">i", 5) + b"\0"
    assert "Invalid method name: 'none'" in str(read(BINARY, SERVICE, await called(link, unknown).ended).result)
    reply_to_nobody = increment(b"x").replace(b"\x80\x01\x00\x01", b"\x80\x01\x00\x02", 1)
    assert read(BINARY, SERVICE, await called(link, reply_to_nobody).ended).kind == 3
    oneway = increment(b"x").replace(b"\x80\x01\x00\x01", b"\x80\x01\x00\x04", 1)
    assert read(BINARY, SERVICE, await called(link, oneway).ended).value == 1, "the gateway drops it"
    assert isinstance(await called(link, b"x", service=3).ended, str | PeerFault | CallerError)
    assert owner.answering.serving_bytes == 0


@clustered()
async def test_a_service_that_is_not_served(cluster: PeerCluster) -> None:
    del cluster.houses[1].answering._wires[THRIFT2]  # type: ignore[attr-defined]
    refusal = await called(link_of(cluster), increment(b"x"), service=THRIFT2).ended
    assert isinstance(refusal, PeerFault)


@clustered()
async def test_calls_over_the_bound_are_refused_and_others_answered(cluster: PeerCluster) -> None:
    owner, link = cluster.houses[1], link_of(cluster)
    assert await called(link, increment(b"x")).ended
    owner.answering._bound_bytes = 3 * len(increment(b"x")) - 1
    cluster.engine.gate.hold()
    calls = [called(link, increment(b"x")) for _ in range(10)]
    refused = [await call.ended for call in calls[3:]]
    assert {type(one) for one in refused} == {CallQueueTooBig}
    cluster.engine.gate.release()
    assert [read(BINARY, SERVICE, await call.ended).value for call in calls[:3]] == [2, 3, 4]
    assert owner.answering.serving_bytes == 0


@clustered()
async def test_many_calls_at_once_are_begun_in_slices(cluster: PeerCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration of the loop begins one of them at least; others go between."""
    owner, link = cluster.houses[1], link_of(cluster)
    assert await called(link, increment(b"x", 0)).ended
    monkeypatch.setattr(peer_server, "SLICE_S", 1e-9)
    calls = [called(link, increment(b"x", n)) for n in range(20)]
    while not owner.answering._waiting:  # noqa: ASYNC110 - the socket tells nobody
        await asyncio.sleep(0)
    waiting = [len(owner.answering._waiting)]
    while waiting[-1]:
        await asyncio.sleep(0)
        waiting.append(len(owner.answering._waiting))
    assert all(before - after <= 1 for before, after in pairwise(waiting))
    assert [read(BINARY, SERVICE, await call.ended).value for call in calls] == list(range(2, 22))


@clustered()
async def test_calls_of_a_link_that_ended_are_not_begun(cluster: PeerCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, link = cluster.houses[1], link_of(cluster)
    assert await called(link, increment(b"x")).ended
    monkeypatch.setattr(peer_server, "SLICE_S", 0.0)
    calls = [called(link, increment(b"x")) for _ in range(9)]
    while len(owner.answering._waiting) < 9:
        await asyncio.sleep(0)
        monkeypatch.setattr(peer_server, "SLICE_S", 0.0)
    link.end("cut")
    assert [await call.ended for call in calls] == ["link broke"] * 9
    for accepted in list(owner.peers._listener.links):
        accepted.end("cut")
    monkeypatch.setattr(peer_server, "SLICE_S", 1.0)
    while owner.answering._waiting:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    assert owner.answering.serving_bytes == 0
    direct = await owner.client()
    (cell,) = await direct("get", T, b"x", b"a:n", {})
    assert int.from_bytes(cell.value, "big") == 1


@clustered()
async def test_asks_are_answered_by_who_registered_for_them(cluster: PeerCluster) -> None:
    owner, link = cluster.houses[1], link_of(cluster)
    seen: list[Any] = []

    async def close_table(message: CloseTable) -> None:
        seen.append(message)
        await asyncio.sleep(0)
        if message.table == "none":
            raise TableNotFound("none")
        if message.table == "bug":
            raise ZeroDivisionError("bug")

    async def middle(_message: MiddleRow) -> bytes:
        return b"m"

    owner.answering.register({CloseTable: close_table, MiddleRow: middle})
    assert await link.send_request(MiddleRow(cluster.infos[1])) == b"m"
    await asyncio.gather(*(link.send_request(CloseTable(f"t{n}")) for n in range(5)))
    assert seen == [CloseTable(f"t{n}") for n in range(5)], "begun in their order"
    with pytest.raises(TableNotFound):
        await link.send_request(CloseTable("none"))
    with pytest.raises(PeerFault, match="ZeroDivisionError"):
        await link.send_request(CloseTable("bug"))
    with pytest.raises(PeerFault, match="Withdraw is not answered here"):
        await link.send_request(Withdraw("t"))
    with pytest.raises(AssertionError):
        owner.answering.register({CloseTable: close_table})
    assert Publish not in owner.answering.handlers


@clustered()
async def test_asks_under_way_end_with_the_server(cluster: PeerCluster) -> None:
    owner, link = cluster.houses[1], link_of(cluster)
    begun = asyncio.Event()

    async def never(_message: CloseTable) -> None:
        begun.set()
        await asyncio.Event().wait()

    owner.answering.register({CloseTable: never})
    asked = asyncio.ensure_future(link.send_request(CloseTable("t")))
    await begun.wait()
    await owner.answering.close()
    with pytest.raises(OutcomeUnknown):
        await asked


@clustered()
async def test_a_link_is_a_client_of_the_service_until_it_ends(cluster: PeerCluster) -> None:
    owner, link = cluster.houses[1], link_of(cluster)
    closed: list[int] = []
    owner.service.connection_closed = closed.append  # type: ignore[method-assign]
    owner.service2.connection_closed = closed.append  # type: ignore[method-assign]
    message = packed(BINARY, SERVICE, "mutateRow", (T, b"x", put1(b"v"), {}))
    await called(link, message).ended
    (client,) = owner.answering._links.values()
    assert client.peer == "server s1.4"
    assert not client.has_ended()
    link.end("cut")
    while owner.peers._listener.links:  # noqa: ASYNC110 - the socket tells nobody
        await asyncio.sleep(0)
    assert client.has_ended()
    assert closed == [client.binary.connection_id] * 2
    assert not owner.answering._links


@clustered()
async def test_background_work_makes_way_for_calls_of_other_servers_clients(cluster: PeerCluster) -> None:
    """The governor looks at how many requests were answered; these come by no port."""
    owner, link = cluster.houses[1], link_of(cluster)
    before = owner.wire.answered
    for _ in range(5):
        assert await called(link, increment(b"x")).ended
    get = packed(BINARY, SERVICE, "get", (T, b"x", b"a:n", {}), 1)
    assert read(BINARY, SERVICE, await called(link, get).ended).value
    assert owner.wire.answered - before == 6
    assert isinstance(await called(link_of(cluster), increment(b"b")).ended, Moved | Unknown)
    assert owner.wire.answered - before == 6, "a call that goes on to another server was not answered here"

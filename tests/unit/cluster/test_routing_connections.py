"""Connections that said ``columnarRoute``: misdirected calls of a single row are refused with HBase's words."""

from __future__ import annotations

import pytest

from columnar.model.record_codec import unpack_records
from columnar.model.region_location import Location, NewOwner, new_owner_of
from columnar.wire.detect import Speech
from columnar.wire.idl import hbase
from columnar.wire.idl2 import SERVICE2
from columnar.wire.idl2 import hbase2 as h2
from tests.support.peer_cluster import PeerCluster, clustered, put1
from tests.support.thrift_calls import SPEECHES
from tests.unit.cluster.test_forwarded_calls import T, calls1


def test_the_words_are_hbases_and_read_back() -> None:
    named = NewOwner("h-1.example", 9097, 17, 42)
    message = f"RegionMovedException: {named.text}"
    assert message == (
        "RegionMovedException: Region moved to: hostname=h-1.example port=9097 startCode=17. As of locationSeqNum=42."
    )
    assert new_owner_of(message) == named
    assert new_owner_of(f"org.apache.hadoop.hbase.exceptions.{message}\n\tat ...") == named
    assert new_owner_of("NotServingRegionException: region x is served by another") is None


@pytest.mark.parametrize("speech", SPEECHES, ids=str)
@clustered()
async def test_each_method_of_a_single_row_is_refused(cluster: PeerCluster, speech: Speech) -> None:
    gateway, owner = cluster.houses
    client = await gateway.client(speech)
    await client("columnarRoute", True)
    words = NewOwner("127.0.0.1", owner.wire.port, owner.me.number, 1)
    for name, args in calls1(b"z"):
        refused = (await client.call(name, *args)).result.io
        assert isinstance(refused, hbase.IOError), name
        assert new_owner_of(_text(refused.message)) == words, name
        assert refused.canRetry is True
    assert gateway.forwarding.forwarded == 0
    assert gateway.service.request_forwarder is not None
    assert gateway.service.request_forwarder.forwarded_calls == {}, "counted are those that went on"
    await client("mutateRow", T, b"a", put1(b"own"), {})
    assert [cell.value for cell in await client("get", T, b"a", b"a:q", {})] == [b"own"]


@clustered()
async def test_other_connections_and_a_connection_that_called_it_off_are_forwarded(cluster: PeerCluster) -> None:
    gateway = cluster.houses[0]
    routing, plain = await gateway.client(), await gateway.client()
    await routing("columnarRoute", True)
    await plain("mutateRow", T, b"z", put1(b"v"), {})
    assert (await routing.call("get", T, b"z", b"a:q", {})).result.io is not None
    await routing("columnarRoute", False)
    assert [cell.value for cell in await routing("get", T, b"z", b"a:q", {})] == [b"v"]
    assert gateway.service.routing == set()


@clustered()
async def test_a_connection_that_ends_is_forgotten(cluster: PeerCluster) -> None:
    gateway = cluster.houses[0]
    client = await gateway.client()
    await client("columnarRoute", True)
    assert len(gateway.service.routing) == 1
    await client.close()
    await gateway.wire.close(5)
    assert gateway.service.routing == set()


@clustered()
async def test_the_other_service_forwards(cluster: PeerCluster) -> None:
    """It has no such method; ids of connections are of all services."""
    client = await cluster.houses[0].client(service=SERVICE2)
    assert (await client("get", T, h2.TGet(row=b"z"))).columnValues == []


@clustered()
async def test_an_owner_of_unknown_address_is_forwarded_to(cluster: PeerCluster) -> None:
    gateway = cluster.houses[0]
    forwarder = gateway.service.request_forwarder
    assert forwarder is not None
    forwarder._owner_of = lambda _table, _row: None
    client = await gateway.client()
    await client("columnarRoute", True)
    await client("mutateRow", T, b"z", put1(b"v"), {})
    assert [cell.value for cell in await client("get", T, b"z", b"a:q", {})] == [b"v"]
    assert forwarder.forwarded_calls == {"mutateRow": 1, "get": 1}


@clustered()
async def test_a_region_that_left_during_a_call_is_refused_too(cluster: PeerCluster) -> None:
    """The handler found out, not the check before it."""
    gateway, owner = cluster.houses
    client = await gateway.client()
    await client("columnarRoute", True)
    gateway.wire.ahead = None
    reply = await client.call("mutateRow", T, b"z", put1(b"v"), {})
    assert new_owner_of(_text(reply.result.io.message)) == NewOwner("127.0.0.1", owner.wire.port, owner.me.number, 1)


@clustered(3, (b"h", b"q"))
async def test_owners_are_listed_in_the_order_of_their_keys(cluster: PeerCluster) -> None:
    gateway = cluster.houses[0]
    client = await gateway.client()
    found = unpack_records(await client("columnarRegionOwners", T), Location)
    ports = [house.wire.port for house in cluster.houses]
    assert found == [
        Location(b"", b"h", "s1", 4, "127.0.0.1", ports[0], 1),
        Location(b"h", b"q", "s2", 5, "127.0.0.1", ports[1], 1),
        Location(b"q", b"", "s3", 6, "127.0.0.1", ports[2], 1),
    ]
    refused = await client.call("columnarRegionOwners", b"none")
    assert _text(refused.result.io.message) == "TableNotFoundException: none"


def _text(message: bytes | str) -> str:
    return message.decode() if isinstance(message, bytes) else message

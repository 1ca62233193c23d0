"""Links between servers: made on demand, two for each peer, to the incarnation that was meant; over TCP by a secret."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from columnar.cluster import link_errors, link_listener, peer_frames
from columnar.cluster import peers as peer_module
from columnar.cluster.hello import HELLO, Hello
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_address import UNIX_PREFIX, TcpAddress
from columnar.cluster.peer_link import State
from columnar.cluster.peers import LARGE_BYTES, LinkTerms, Peers
from columnar.coordination.lease_gate import LeaseGate
from columnar.model.owner import Incarnation
from columnar.model.region_messages import CloseTable
from tests.support.linked_peers import S1, S2, SECRET, Two, linked


async def link_gone(peers: Peers, server: Incarnation) -> None:
    while server in peers._small:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)


@linked
async def test_a_link_is_made_when_something_is_asked_and_stays(two: Two) -> None:
    await two.two.listen(two.address(S2))
    assert not two.one._small
    await asyncio.gather(*(two.one.request_server(S2, CloseTable(f"t{n}")) for n in range(5)))
    assert two.sides[S2].asks == [CloseTable(f"t{n}") for n in range(5)]
    assert len(two.two._listener.links) == 1
    link = two.one.link(S2, 10)
    assert link.peer == Hello("c", S2)
    assert two.one.link(S2, LARGE_BYTES) is link


@linked
async def test_large_messages_have_a_link_of_their_own(two: Two) -> None:
    await two.two.listen(two.address(S2))
    await two.one.request_server(S2, CloseTable("t"))
    await two.one.request_server(S2, CloseTable("t" * 100), LARGE_BYTES + 1)
    assert len(two.two._listener.links) == 2
    assert two.one.link(S2, LARGE_BYTES + 1) is not two.one.link(S2, LARGE_BYTES)


@linked
async def test_what_cannot_be_reached_was_not_sent(two: Two) -> None:
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))
    two.addresses[S2] = None
    await link_gone(two.one, S2)
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))
    assert two.sides[S1].ended


@linked
async def test_a_server_that_listens_later_is_found(two: Two) -> None:
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))
    await two.two.listen(two.address(S2))
    with pytest.raises(NotSent):  # it is not tried again so soon
        await two.one.request_server(S2, CloseTable("t"))
    await link_gone(two.one, S2)
    await two.one.request_server(S2, CloseTable("t"))


@linked
async def test_another_incarnation_is_no_substitute(two: Two) -> None:
    later = two.made(S1)
    await later.listen(two.address(S2))
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))
    assert two.one._small[S2].why == "s1.4 answers in the place of s2.17"
    await later.close()


@linked
async def test_a_server_of_another_cluster_is_left(two: Two) -> None:
    stranger = two.made(S2, "another")
    await stranger.listen(two.address(S2))
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))
    await stranger.close()


@linked
async def test_links_with_a_fenced_server_end_on_both_ways(two: Two) -> None:
    for peers, server in ((two.one, S1), (two.two, S2)):
        await peers.listen(two.address(server))
    await two.two.request_server(S1, CloseTable("t"))
    two.sides[S2].is_silent = True
    asked = asyncio.ensure_future(two.one.request_server(S2, CloseTable("t")))
    await two.sides[S2].came.wait()
    two.one.fenced(S2)
    with pytest.raises(LinkBroke):
        await asked
    assert not two.one._listener.links
    two.addresses[S2] = None
    await link_gone(two.two, S1)


@linked
async def test_a_server_that_leaves_answers_what_was_sent_and_gets_no_more(two: Two) -> None:
    await two.two.listen(two.address(S2))
    await two.one.request_server(S2, CloseTable("before"))
    side = two.sides[S2]
    side.is_silent = True
    asked = [asyncio.ensure_future(two.one.request_server(S2, CloseTable(f"t{n}"))) for n in range(3)]
    asked.append(asyncio.ensure_future(two.one.request_server(S2, CloseTable("large"), LARGE_BYTES + 1)))
    while len(side.owed) < len(asked):
        side.came.clear()
        await side.came.wait()
    leaving = asyncio.ensure_future(two.two.leave())
    await link_gone(two.one, S2)
    with pytest.raises(NotSent):  # the listener is closed: another owner is found later
        await two.one.request_server(S2, CloseTable("after"))
    assert not leaving.done()
    for answer in side.owed:
        answer()
    assert await asyncio.gather(*asked) == [None] * 4
    await leaving
    assert not two.two._listener.links
    assert not two.one._retired


@linked
async def test_a_server_that_leaves_waits_for_a_bounded_time(two: Two) -> None:
    await two.two.listen(two.address(S2))
    two.sides[S2].is_silent = True
    asked = asyncio.ensure_future(two.one.request_server(S2, CloseTable("t")))
    await two.sides[S2].came.wait()
    patience, peer_module.LEAVE_S = peer_module.LEAVE_S, 0.02  # type: ignore[misc]
    try:
        await two.two.leave()
    finally:
        peer_module.LEAVE_S = patience  # type: ignore[misc]
    assert not asked.done()
    await two.two.close()
    with pytest.raises(LinkBroke):
        await asked


@linked
async def test_a_link_to_a_server_that_left_ends_when_the_server_is_fenced(two: Two) -> None:
    await two.two.listen(two.address(S2))
    two.sides[S2].is_silent = True
    asked = asyncio.ensure_future(two.one.request_server(S2, CloseTable("t")))
    await two.sides[S2].came.wait()
    leaving = asyncio.ensure_future(two.two.leave())
    await link_gone(two.one, S2)
    two.one.fenced(S2)
    with pytest.raises(LinkBroke):
        await asked
    await leaving


@linked
async def test_a_peer_that_says_no_hello(two: Two) -> None:
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_unix_server(silent, str(two.address(S2)).removeprefix(UNIX_PREFIX))
    patience, link_listener.GREETING_S = link_listener.GREETING_S, 0.02  # type: ignore[misc]
    try:
        with pytest.raises(NotSent):
            await two.one.request_server(S2, CloseTable("t"))
        await left.wait()
        assert "no hello" in two.one._small[S2].why
    finally:
        link_listener.GREETING_S = patience  # type: ignore[misc]
        server.close()


@linked
async def test_closing_ends_what_waits(two: Two) -> None:
    await two.two.listen(two.address(S2))
    two.sides[S2].is_silent = True
    asked = asyncio.ensure_future(two.one.request_server(S2, CloseTable("t")))
    await two.sides[S2].came.wait()
    await two.two.close()
    with pytest.raises(LinkBroke):
        await asked
    await two.one.close()
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))


# --- TCP -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_links_over_tcp_with_the_secret(host: str) -> None:
    @linked
    async def scene(two: Two) -> None:
        await two.listen_tcp(two.two, host=host)
        await asyncio.gather(*(two.one.request_server(S2, CloseTable(f"t{n}" * 40_000)) for n in range(5)))
        assert [ask.table[:2] for ask in two.sides[S2].asks] == [f"t{n}" for n in range(5)]  # type: ignore[attr-defined]
        (accepted,) = two.two._listener.links
        assert accepted.peer == Hello("c", S1)

    scene()


@pytest.mark.parametrize("cluster", ["c", "another"])
def test_a_hundred_of_a_hundred_strangers_are_refused(cluster: str, caplog: pytest.LogCaptureFixture) -> None:
    """A wrong secret, and another cluster's id with the right secret."""
    rng = random.Random(cluster)

    @linked
    async def scene(two: Two) -> None:
        await two.listen_tcp(two.two)
        for _ in range(100):
            wrong = rng.randbytes(32) if cluster == "c" else SECRET
            stranger = two.made(S1, cluster, wrong)
            link = stranger.link(S2, 10)
            asking = link.send_request(CloseTable("t"))
            with pytest.raises(NotSent):
                await asking
            await stranger.close()
        while two.two._listener.links:  # noqa: ASYNC110 - the socket tells nobody
            await asyncio.sleep(0)

    link_errors.REFUSED_PEERS._logged_s = float("-inf")
    with caplog.at_level("WARNING"):
        scene()
    lines = [record for record in caplog.records if "refused" in record.message]
    assert len(lines) == (1 if cluster == "c" else 0), "once a minute, of 200"


@linked
async def test_nothing_of_a_stranger_is_looked_at(two: Two) -> None:
    """Frames after a hello without its proof, and a call at once, reach nobody, and get no more than a hello."""
    await two.listen_tcp(two.two)
    address = two.address(S2)
    assert isinstance(address, TcpAddress)
    hello = peer_frames.hello(HELLO.encode(Hello("c", S1)) | {"random": b"r" * 16})
    ask = peer_frames.request_frame(1, "close_table", {"table": "t"})
    for data in (
        ask,
        hello + ask,
        hello + peer_frames.proof(b"x" * 32) + ask,
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 5_000,
    ):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(data)
        with suppress(ConnectionResetError):
            received = await reader.read()
            kinds = []
            while received:
                length = int.from_bytes(received[:4], "big")
                kinds.append(received[12])
                received = received[4 + length :]
            assert kinds in ([], [peer_frames.HELLO], [peer_frames.HELLO, peer_frames.PROOF])
        writer.close()
    assert two.sides[S2].asks == []


@linked
async def test_a_link_over_tcp_without_a_secret_ends_on_both_sides(two: Two) -> None:
    await two.listen_tcp(two.two)
    bare = two.made(S1, secret=None)
    with pytest.raises(NotSent):
        await bare.request_server(S2, CloseTable("t"))
    assert "no secret" in bare._small[S2].why
    await bare.close()
    listening = two.made(S2, secret=None)
    await two.listen_tcp(listening)
    with pytest.raises(NotSent):
        await two.one.request_server(S2, CloseTable("t"))
    await listening.close()


@linked
async def test_the_oldest_silent_link_goes_beyond_the_bound(two: Two) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link_listener, "GREETINGS", 3)
        await two.listen_tcp(two.two)
        await two.one.request_server(S2, CloseTable("t"))
        address = two.address(S2)
        assert isinstance(address, TcpAddress)
        silent = [await asyncio.open_connection(address.host, address.port) for _ in range(6)]
        gone = [len(await reader.read()) for reader, _ in silent[:3]]
        assert len(gone) == 3
        await two.one.request_server(S2, CloseTable("u"))
        states = [link.state for link in two.two._listener.links]
        assert (states.count(State.GREETING), states.count(State.OPEN)) == (3, 1)
        for _, writer in silent:
            writer.close()


# --- the gate --------------------------------------------------------------------------------------


@linked
async def test_frames_wait_for_the_lease(two: Two) -> None:
    is_valid = [True]
    gate = LeaseGate(lambda: is_valid[0])
    gated = Peers(Hello("c", S1), two.addresses.get, two.sides[S1], LinkTerms(gate=gate, secret=SECRET))
    await two.listen_tcp(two.two)
    await gated.request_server(S2, CloseTable("t"))
    is_valid[0] = False
    asking = [asyncio.ensure_future(gated.request_server(S2, CloseTable(f"t{n}"))) for n in range(3)]
    while not gate.waiting_count:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    assert len(two.sides[S2].asks) == 1
    gated.check_invariants()
    is_valid[0] = True
    await asyncio.gather(*asking)
    assert two.sides[S2].asks[1:] == [CloseTable(f"t{n}") for n in range(3)]
    await gated.close()

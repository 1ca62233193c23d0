"""Links between servers over Unix sockets: made on demand, two for each peer, to the incarnation that was meant."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from columnar.cluster import link_listener
from columnar.cluster.hello import Hello
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_address import UNIX_PREFIX, PeerAddress, UnixAddress
from columnar.cluster.peer_frames import Frame
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peers import LARGE_BYTES, Peers
from columnar.errors import IllegalArgument
from columnar.model.owner import Incarnation
from columnar.model.region_messages import CloseTable, Message

S1, S2 = Incarnation("s1", 4), Incarnation("s2", 17)


class Answering:
    """Answers asks, unless told to keep silent."""

    def __init__(self) -> None:
        self.asks: list[Message[Any]] = []
        self.ended: list[PeerLink] = []
        self.is_silent = False
        self.came = asyncio.Event()

    def called(self, link: PeerLink, frame: Frame) -> None:
        raise IllegalArgument("nobody calls here")

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        self.asks.append(message)
        self.came.set()
        if not self.is_silent:
            link.send_response(number, message, None)

    def link_ended(self, link: PeerLink) -> None:
        self.ended.append(link)


class Two:
    """Two servers; the addresses of both are in the test's hand."""

    def __init__(self, folder: Path) -> None:
        self.addresses: dict[Incarnation, PeerAddress | None] = {
            server: UnixAddress(str(folder / str(server))) for server in (S1, S2)
        }
        self.sides = {S1: Answering(), S2: Answering()}
        self.one, self.two = self.made(S1), self.made(S2)

    def made(self, server: Incarnation, cluster: str = "c") -> Peers:
        return Peers(Hello(cluster, server), self.addresses.get, self.sides[server])

    def address(self, server: Incarnation) -> PeerAddress:
        found = self.addresses[server]
        assert found is not None
        return found

    async def close(self) -> None:
        for peers in (self.one, self.two):
            peers.check_invariants()
            await peers.close()


def linked(test: Callable[[Two], Awaitable[None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        async def main() -> None:
            with tempfile.TemporaryDirectory(prefix="peers") as folder:
                two = Two(Path(folder))
                try:
                    async with asyncio.timeout(20):
                        await test(two)
                finally:
                    await two.close()

        asyncio.run(main())

    del run.__wrapped__  # type: ignore[attr-defined]
    return run


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

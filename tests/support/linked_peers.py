"""Two servers with links between them, whose addresses a test holds."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import uvloop

from columnar.cluster.hello import Hello
from columnar.cluster.peer_address import PeerAddress, TcpAddress, UnixAddress
from columnar.cluster.peer_frames import Frame
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peer_requests import LeaveLinks
from columnar.cluster.peers import LinkTerms, Peers
from columnar.errors import IllegalArgument
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message

S1, S2 = Incarnation("s1", 4), Incarnation("s2", 17)
SECRET = bytes(range(32))


class Answering:
    """Answers asks, unless told to keep silent."""

    def __init__(self) -> None:
        self.asks: list[Message[Any]] = []
        self.ended: list[PeerLink] = []
        self.is_silent = False
        self.came = asyncio.Event()
        self.owed: list[Callable[[], None]] = []  # answers, while silent
        self.peers: Peers | None = None  # which a server that stops may leave

    def called(self, link: PeerLink, frame: Frame) -> None:
        raise IllegalArgument("nobody calls here")

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        if isinstance(message, LeaveLinks):
            assert self.peers is not None
            assert link.peer is not None
            leaving = asyncio.ensure_future(self.peers.retire_links(link.peer.server, message))
            leaving.add_done_callback(lambda _: link.send_response(number, message, None))
            return
        self.asks.append(message)
        self.came.set()
        if self.is_silent:
            self.owed.append(partial(link.send_response, number, message, None))
        else:
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
        self.sides[S1].peers, self.sides[S2].peers = self.one, self.two

    def made(self, server: Incarnation, cluster: str = "c", secret: bytes | None = SECRET) -> Peers:
        return Peers(Hello(cluster, server), self.addresses.get, self.sides[server], LinkTerms(secret=secret))

    async def listen_tcp(self, peers: Peers, server: Incarnation = S2, host: str = "127.0.0.1") -> None:
        await peers.listen(TcpAddress(host, 0))
        self.addresses[server] = TcpAddress(host, peers.port)

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

        for new_loop in (asyncio.new_event_loop, uvloop.new_event_loop):  # servers run on the second
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(main())

    del run.__wrapped__  # type: ignore[attr-defined]
    return run

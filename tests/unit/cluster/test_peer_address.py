"""The text forms of a peer's address, and the sockets behind it."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest
import uvloop

from columnar.cluster.peer_address import (
    PEER_SILENT_S,
    PeerAddress,
    TcpAddress,
    UnixAddress,
    connect,
    listen,
    parse_address,
    watch_peer,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/columnar-4f/s1.4", UnixAddress("/run/columnar-4f/s1.4")),
        ("10.0.0.1:9096", TcpAddress("10.0.0.1", 9096)),
        ("store-0.columnar:0", TcpAddress("store-0.columnar", 0)),
        ("[fe80::1]:65535", TcpAddress("fe80::1", 65_535)),
    ],
)
def test_an_address_and_its_text(text: str, address: PeerAddress) -> None:
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host:",
        ":9096",
        "host:65536",
        "host:-1",
        "host:9o96",
        "host:٣",
        "::1:9096",
        "[host]:9",
        "[]:9",
        "unix:",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|brackets"):
        parse_address(text)


def test_a_silent_peer_over_tcp_is_noticed_by_the_system() -> None:
    """The options of the two ends of a real link; a cut network cannot be had without namespaces."""

    async def main() -> None:
        ends: list[asyncio.BaseTransport] = []

        class End(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                watch_peer(transport)
                ends.append(transport)

        server = await listen(TcpAddress("127.0.0.1", 0), End)
        port = server.sockets[0].getsockname()[1]
        await connect(TcpAddress("127.0.0.1", port), End)
        while len(ends) < 2:  # noqa: ASYNC110 - the accepted end follows
            await asyncio.sleep(0)
        for end in ends:
            sock = end.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1_000 * PEER_SILENT_S
            idle, probes = (
                sock.getsockopt(socket.IPPROTO_TCP, one) for one in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)
            )
            count = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT)
            assert PEER_SILENT_S <= idle + probes * count <= PEER_SILENT_S + 2
            cast(asyncio.Transport, end).abort()
        server.close()

    for new_loop in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(main())

"""Over the bound of all input: what has begun is answered, what has not is refused, and who waits is not closed."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.runtime.immediate_future import ImmediateFuture
from columnar.wire import connection as connection_module
from columnar.wire.connection import Connection
from columnar.wire.server import WireLimits, WireServer
from columnar.wire.service import Later
from tests.support.toy_wire import ToyService, framed, get, increment

BOUND = 150_000
DONE, REFUSED = "done", "refused"


class Waits(ToyService):
    """Its increments wait for an fsync."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[ImmediateFuture] = []

    def on_atomicIncrement(self, ctx: Any, table: bytes, row: bytes, column: bytes, amount: int) -> Any:
        self.synced.append(ImmediateFuture(asyncio.get_running_loop()))
        return Later(self.synced[-1], 1)


class Client(asyncio.Transport):
    """A client and its connection."""

    def __init__(self, server: WireServer, number: int) -> None:
        super().__init__()
        self._socket, self._peer = socket.socketpair()
        self._received = b""
        self.is_paused = self.is_aborted = False
        self.connection = Connection(server, number)
        self.connection.connection_made(self)

    def sends(self, data: bytes) -> None:
        self.connection.data_received(data)

    def replies(self) -> list[tuple[int, str]]:
        """The seqid of each, and what became of its call."""
        found = []
        while self._received:
            (length,) = struct.unpack(">I", self._received[:4])
            body, self._received = self._received[4 : 4 + length], self._received[4 + length :]
            (name_bytes,) = struct.unpack(">I", body[4:8])
            (seqid,) = struct.unpack(">i", body[8 + name_bytes : 12 + name_bytes])
            found.append((seqid, REFUSED if b"CallQueueTooBigException" in body else DONE))
        return found

    def goes(self) -> None:
        self.connection.begin_close()
        self.connection.connection_lost(None)
        self._socket.close()
        self._peer.close()

    def write(self, data: Any) -> None:
        self._received += bytes(data)

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It takes all at once."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket if name == "socket" else default

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        pass


class House:
    def __init__(self) -> None:
        self.service = Waits()
        self.server = WireServer(self.service, limits=WireLimits(input_bytes=50_000, server_input_bytes=BOUND))
        self.clients: list[Client] = []

    def client(self) -> Client:
        self.clients.append(Client(self.server, len(self.clients)))
        return self.clients[-1]

    async def turns(self) -> None:
        """Everybody who rested has had a turn."""
        await self.server.loop_budget.wait_for_budget()

    async def answers(self) -> None:
        for synced in self.service.synced:
            synced.complete()
        await self.turns()


def scene(play: Callable[[House], Awaitable[None]]) -> Callable[[pytest.MonkeyPatch], None]:
    def test(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection_module, "SLICE_S", 10.0)  # nobody is expensive, on a machine of any load

        async def main() -> None:
            house = House()
            await play(house)
            assert not any(client.is_aborted for client in house.clients)
            for client in house.clients:
                client.goes()
            assert house.server.input_bytes == 0
            await house.server.close(0.0)

        asyncio.run(main())

    return test


def put(seqid: int, size_bytes: int) -> bytes:
    return framed(increment(seqid, b"x" * size_bytes))


async def _whole_requests(house: House) -> None:
    held = [house.client() for _ in range(3)]
    for client in held:
        client.sends(put(1, 48_000))
    late = house.client()
    late.sends(put(1, 48_000))
    assert late.replies() == [(1, REFUSED)]
    assert len(house.service.synced) == 3, "nothing of it was done"
    late.sends(framed(get(2)))
    assert late.replies() == [(2, DONE)], "there is room for what is small"
    await house.answers()
    assert [client.replies() for client in held] == [[(1, DONE)]] * 3
    house.service.synced.clear()
    late.sends(put(3, 48_000))
    await house.answers()
    assert late.replies() == [(3, DONE)]


test_requests_that_fill_the_bound_are_answered_and_the_next_one_is_refused = scene(_whole_requests)


async def _pipelined(house: House) -> None:
    one, two, three = house.client(), house.client(), house.client()
    one.sends(put(1, 60_000) + put(2, 45_000))
    two.sends(put(1, 30_000) + put(2, 30_000))
    assert house.server.input_bytes > BOUND, "the second request of the fullest is refused when its turn comes"
    assert two.is_paused, "read no further, though it has read less ahead than a connection may"
    half = put(1, 40_000)
    three.sends(half[:20_000])  # now the second request of the second client is refused
    three.sends(half[20_000:25_000])  # and now this one: neither of the others has anything more to give
    await house.turns()
    assert house.server.input_bytes < 170_000
    await house.answers()
    assert one.replies() == [(1, DONE), (2, REFUSED)]
    assert two.replies() == [(1, DONE), (2, REFUSED)]
    assert not two.is_paused
    three.sends(half[25_000:])
    await house.turns()
    assert three.replies() == [(1, REFUSED)]
    assert len(house.service.synced) == 2


test_requests_behind_one_that_waits_are_refused_once_and_their_connections_stay = scene(_pipelined)


async def _beginnings(house: House) -> None:
    """The first bytes of a request come when others fill the bound."""
    held = [house.client() for _ in range(2)]
    held[0].sends(put(1, 100_000))
    held[1].sends(put(1, BOUND - 2 - house.server.input_bytes - (len(put(1, 0)) - 4)))
    assert house.server.input_bytes == BOUND - 2
    late = house.client()
    request = put(1, 10_000)
    late.sends(request[:3])  # its form is not known yet
    late.sends(request[3:4_000])
    late.sends(request[4_000:9_000])  # over what is small
    late.sends(request[9_000:])
    await house.turns()
    assert late.replies() == [(1, REFUSED)]
    await house.answers()
    assert [client.replies() for client in held] == [[(1, DONE)]] * 2


test_a_request_that_comes_in_pieces_is_refused_at_its_end = scene(_beginnings)

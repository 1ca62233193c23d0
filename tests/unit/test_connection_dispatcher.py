"""Connections on their way to servers: none is lost where queues are full, no server is up, or one ends meanwhile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from columnar.connections.connection_dispatcher import ConnectionDispatcher
from columnar.connections.listeners import Port, ReturnedConnections
from columnar.coordination.connection_channel import (
    READ_BYTES,
    DispatchedConnection,
    pair,
    receive_connection,
    send_connection,
)
from columnar.coordination.processes import Beat
from columnar.model.owner import Incarnation

S1, S2 = Incarnation("s1", 1), Incarnation("s2", 2)


def on_a_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        asyncio.run(asyncio.wait_for(scenario(), 20))

    test.__doc__ = scenario.__doc__
    return test


class Server:
    """A child in all that counts here, and its own end of the doorbell."""

    def __init__(self) -> None:
        self.doorbell, self.its = pair()
        for end in (self.doorbell, self.its):
            end.setblocking(False)

    def send_connection(self, handed: DispatchedConnection) -> bool:
        return send_connection(self.doorbell, handed)

    def taken(self) -> list[bytes]:
        """What is handed to it now: of each connection what was read before, and what its client has sent since."""
        found = []
        while True:
            try:
                handed = receive_connection(self.its)
            except BlockingIOError:
                return found
            assert handed is not None
            with handed.connection as connection:
                found.append(handed.service + handed.read + connection.recv(100))

    def close(self) -> None:
        self.doorbell.close()
        self.its.close()


class House:
    def __init__(self) -> None:
        self.servers = {S1: Server(), S2: Server()}
        self.up = [S1, S2]
        self.handing_on = ConnectionDispatcher(lambda: {one: self.servers[one] for one in self.up})  # type: ignore[misc]
        for server in self.servers:
            self.handing_on.open.joined(server)
        self.clients: list[socket.socket] = []

    def client(self, says: bytes) -> socket.socket:
        """The side of a server."""
        ours, theirs = socket.socketpair()
        ours.sendall(says)
        self.clients += [ours, theirs]
        return theirs

    def close(self) -> None:
        self.handing_on.close()
        for server in self.servers.values():
            server.close()
        for client in self.clients:
            client.close()


async def until(is_so: Callable[[], object]) -> None:
    while not is_so():  # noqa: ASYNC110 - of sockets
        await asyncio.sleep(0.001)


@on_a_loop
async def test_a_connection_goes_to_the_server_with_the_fewest() -> None:
    house = House()
    house.handing_on.open.said(S1, Beat(1, open=2))
    for n in range(5):
        assert house.handing_on.dispatch(DispatchedConnection(b"1", house.client(b"%d" % n)))
    assert house.servers[S2].taken() == [b"10", b"11", b"13"]
    assert house.servers[S1].taken() == [b"12", b"14"]
    house.up = [S1]
    assert house.handing_on.dispatch(DispatchedConnection(b"2", house.client(b"!"), b"x" * READ_BYTES))
    assert house.servers[S1].taken() == [b"2" + b"x" * READ_BYTES + b"!"]
    house.close()


@on_a_loop
async def test_a_server_that_leaves_has_all_its_connections_taken_though_the_others_queue_is_short() -> None:
    house = House()
    house.up = [S2]
    ended: list[bool] = []
    counted: list[int] = []
    doorbell = house.servers[S1].doorbell.dup()
    ReturnedConnections(doorbell, house.handing_on, lambda: counted.append(1), lambda: ended.append(True)).open()
    sent, taken = 0, list[bytes]()
    while sent < 60:
        handed = DispatchedConnection(b"1", house.client(b"and %d" % sent), b"%d " % sent)
        if send_connection(house.servers[S1].its, handed):
            handed.connection.close()
            sent += 1
        else:
            taken += house.servers[S2].taken()
            await asyncio.sleep(0)
    house.servers[S1].its.close()  # it has ended, with some still in its queue
    house.servers[S1].doorbell.close()

    def all_taken() -> bool:
        taken.extend(house.servers[S2].taken())
        return len(taken) == 60

    await until(all_taken)
    assert taken == [b"1%d and %d" % (n, n) for n in range(60)]
    await until(lambda: ended)
    assert len(counted) == 60
    house.close()


@on_a_loop
async def test_a_connection_waits_until_a_server_is_up() -> None:
    house = House()
    house.up = []
    port = Port.bound(b"2", "127.0.0.1", 0, "--port", house.handing_on)
    port.listen("127.0.0.1", "--port")
    port.open()
    clients = [socket.create_connection(("127.0.0.1", port.port)) for _ in range(3)]
    for client in clients:
        client.sendall(b"hello")
    await until(lambda: port._kept)
    house.up = [S2]
    taken: list[bytes] = []
    await until(lambda: taken.extend(house.servers[S2].taken()) or len(taken) == 3)
    assert taken == [b"2hello"] * 3
    port.close()
    for client in clients:
        client.close()
    house.close()


@on_a_loop
async def test_a_killed_server_with_connections_in_its_queue_does_not_stop_what_it_gave_back_before() -> None:
    house = House()
    house.up = [S2]
    assert house.servers[S1].send_connection(DispatchedConnection(b"1", house.client(b"lost")))
    assert send_connection(house.servers[S1].its, DispatchedConnection(b"1", house.client(b"there")))
    house.servers[S1].its.close()  # the system resets the doorbell, as something in it was not read
    ended: list[bool] = []
    ReturnedConnections(
        house.servers[S1].doorbell.dup(), house.handing_on, lambda: None, lambda: ended.append(True)
    ).open()
    await until(lambda: ended)
    assert house.servers[S2].taken() == [b"1there"]
    house.close()


@on_a_loop
async def test_a_port_that_is_bound_is_nobody_elses_and_refuses_clients_until_it_listens() -> None:
    house = House()
    port = Port.bound(b"2", "127.0.0.1", 0, "--port", house.handing_on)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port.port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port.port))
    port.listen("127.0.0.1", "--port")
    socket.create_connection(("127.0.0.1", port.port)).close()
    port.close()
    house.close()

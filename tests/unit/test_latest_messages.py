"""``RouteBroadcast.send_latest``: a server that is slow gets the newest message, and none of those between."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from columnar.cluster.link_errors import LinkBroke
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import Address, Addresses
from columnar.model.region_messages import Message
from columnar.roles.route_broadcast import RouteBroadcast

QUICK, SLOW = Incarnation("s1", 1), Incarnation("s2", 2)


class HeldServers:
    """Servers that get messages; SLOW answers when ``answer`` is called."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.sent: list[tuple[Incarnation, int]] = []  # and the number of addresses
        self.held: list[asyncio.Future[None]] = []
        self.broadcast = RouteBroadcast(self, self, 1)  # type: ignore[arg-type]  # the methods that it calls
        self.broadcast.greeted = dict.fromkeys((QUICK, SLOW), False)
        self.known = 0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def request_server(self, server: Incarnation, message: Message[None]) -> None:
        assert isinstance(message, Addresses)
        self.sent.append((server, len(message.servers)))
        if server == SLOW:
            held = asyncio.get_running_loop().create_future()
            self.held.append(held)
            await held

    async def learn(self) -> None:
        self.known += 1
        addresses = tuple(Address(Incarnation(f"s{n}", n), "h", n) for n in range(self.known))
        self.broadcast.send_latest(lambda: Addresses(addresses))
        await asyncio.sleep(0)

    async def settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)


def test_a_server_that_has_not_answered_gets_the_newest_message_and_none_of_those_between() -> None:
    async def trial() -> None:
        servers = HeldServers()
        for _ in range(5):
            await servers.learn()
        await servers.settle()
        assert [known for server, known in servers.sent if server == QUICK] == [1, 2, 3, 4, 5]
        assert [known for server, known in servers.sent if server == SLOW] == [1]
        servers.held[0].set_result(None)
        await servers.settle()
        assert [known for server, known in servers.sent if server == SLOW] == [1, 5]
        servers.held[1].set_result(None)
        await asyncio.gather(*servers.tasks)
        await servers.learn()
        assert (SLOW, 6) in servers.sent
        servers.held[2].set_result(None)
        await asyncio.gather(*servers.tasks)

    asyncio.run(trial())


def test_a_server_whose_link_ended_gets_messages_again_once_it_is_back() -> None:
    async def trial() -> None:
        servers = HeldServers()
        await servers.learn()
        await servers.settle()
        servers.held[0].set_exception(LinkBroke("the end"))
        await asyncio.gather(*servers.tasks)
        await servers.learn()
        await servers.settle()
        assert [known for server, known in servers.sent if server == SLOW] == [1, 2]
        servers.held[1].set_result(None)
        await asyncio.gather(*servers.tasks)

    asyncio.run(trial())

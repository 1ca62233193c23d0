"""The start of a node: it ends after its time unless what holds it up has a name, and readiness sees each server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.link_errors import LinkBroke
from columnar.coordination.processes import Beat
from columnar.errors import HostError
from columnar.model.node_messages import ChangeLogLevels, DescribeServers, FollowLeader, ProcessLevels
from columnar.model.owner import Incarnation
from columnar.roles import node as node_module
from columnar.roles.cluster_nodes import UNANSWERED
from columnar.roles.leased_membership import make_node_answers
from columnar.roles.membership import Standing
from columnar.roles.node import Node
from columnar.roles.own_servers import OwnServers

S1 = Incarnation("n1-s1", 3)
S2 = Incarnation("n1-s2", 4)
START_S = 0.3


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_module, "START_S", START_S)
    monkeypatch.setattr(node_module, "DELAY_CHECK_S", 0.01)


class Membership:
    """A membership whose texts a test sets, and whose start ends when the test says so."""

    def __init__(self) -> None:
        self.named = ""
        self.obstacle = ""
        self.served = asyncio.Event()
        self.leader = FollowLeader(1, "h:1")
        self.name = lambda: "n1.2"

    async def until_served(self) -> None:
        await self.served.wait()

    def standing(self) -> Standing:
        return Standing(leader=self.obstacle, delay=self.named)

    def server_joined(self, server: Incarnation) -> None: ...

    def server_ended(self, server: Incarnation, why: str, *, asked: bool) -> None: ...


def _node() -> tuple[Node, Membership]:
    node = Node.__new__(Node)
    membership = Membership()
    node.membership = cast(Any, membership)
    node.lease_page, node.ports = Mock(), Mock()
    node.ports.ready = frozenset({S1})
    node._names = [S1.name]
    node.watched_folder = Mock()
    node.watched_folder.remark.return_value = ""
    node.servers = Mock()
    node.servers.leader_delay, node.servers.is_leaving = "", False
    node.servers.list_strays.return_value = ()
    return node, membership


async def _started(node: Node) -> float:
    """Wait for the start; return the seconds.  Raises what the start raises."""
    begun_s = asyncio.get_running_loop().time()
    await node._until_served(asyncio.get_running_loop().create_future())
    return asyncio.get_running_loop().time() - begun_s


def test_a_start_that_nothing_named_holds_up_ends_after_its_time() -> None:
    async def main() -> None:
        node, membership = _node()
        membership.obstacle = "there is no link with the leader at h:1: no answer"
        with pytest.raises(HostError, match=r"did not start within 0 s: there is no link with .* no answer; see that"):
            await _started(node)

    asyncio.run(main())


def _held_up(where: str, node: Node, membership: Membership, text: str) -> None:
    if where == "folder":
        cast(Mock, node.watched_folder.remark).return_value = text
    elif where == "leader":
        node.servers.leader_delay = text
    else:
        membership.named = text


@pytest.mark.parametrize("where", ["membership", "folder", "leader"])
def test_a_start_waits_while_what_holds_it_up_has_a_name_and_says_so(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        node, membership = _node()
        _held_up(where, node, membership, "it waits for the file system")
        starting = asyncio.ensure_future(_started(node))
        done, _ = await asyncio.wait([starting], timeout=3 * START_S)
        assert not done, starting
        _held_up(where, node, membership, "")
        membership.served.set()
        assert await starting >= 2 * START_S

    asyncio.run(main())
    lines = [record.getMessage() for record in caplog.records]
    assert set(lines) == {"the start takes longer than 0 s, and goes on: it waits for the file system"}
    assert 1 <= len(lines) <= 3, "once in START_S"


def test_a_start_has_its_time_again_after_a_delay() -> None:
    async def main() -> None:
        node, membership = _node()
        membership.named = "a delay"
        starting = asyncio.ensure_future(_started(node))
        loop = asyncio.get_running_loop()
        await asyncio.wait([starting], timeout=2 * START_S)
        membership.named = ""
        ended_s = loop.time()
        with pytest.raises(HostError, match="some regions have no server"):
            await starting
        assert loop.time() - ended_s >= START_S - 0.05

    asyncio.run(main())


def test_a_delay_that_a_leader_named_counts_only_while_it_leads() -> None:
    async def main() -> None:
        node, membership = _node()
        node.servers.leader_delay, membership.obstacle = "node n2.17 is not fenced yet", "the link has ended"
        with pytest.raises(HostError, match="the link has ended"):
            await _started(node)

    asyncio.run(main())


def _servers() -> tuple[OwnServers, Membership]:
    servers = OwnServers([S1.name, S2.name], Mock(), Mock(), lambda: False, 1_000)
    membership = Membership()
    servers._membership = cast(Any, membership)
    servers.watch = Mock()
    living = {server: Mock(is_stopping=False) for server in (S1, S2)}
    cast(Any, servers.processes).living = living
    return servers, membership


def test_a_server_is_a_stray_until_its_beats_name_the_leader_that_the_node_follows() -> None:
    async def main() -> None:
        servers, membership = _servers()
        assert servers.list_strays() == (S1, S2), "no beat has come"
        servers.heard(S1, Beat(1, leader_epoch=1))
        servers.heard(S2, Beat(1))
        assert servers.list_strays() == (S2,)
        servers.heard(S2, Beat(2, leader_epoch=1))
        assert servers.list_strays() == ()
        membership.leader = FollowLeader(2, "h:2")
        assert servers.list_strays() == (S1, S2), "they are linked with the last leader"
        servers.heard(S1, Beat(3, leader_epoch=2))
        servers.processes.living[S2].is_stopping = True
        assert servers.list_strays() == (), "a server that stops takes no clients"
        servers.ended(S1, "by SIGKILL", asked=False)
        assert S1 not in servers._followed

    asyncio.run(main())


def test_a_node_and_its_servers_change_their_levels_and_a_server_that_does_not_answer_is_named() -> None:
    async def request(server: Any, message: Any) -> Any:
        if server == S2:
            raise LinkBroke
        return (ProcessLevels(str(server), " ".join(message.changes)),)

    async def main() -> None:
        servers, _ = _servers()
        cast(Any, servers.processes).request_server = request
        answers = make_node_answers(servers)
        change = ChangeLogLevels(("of.a.test=debug",))
        own, first, second = await answers.handlers[ChangeLogLevels](change)
        assert own.levels.endswith(" of.a.test=debug")
        assert logging.getLogger("of.a.test").level == logging.DEBUG
        assert (first.process, first.levels) == (str(S1), "of.a.test=debug")
        assert (second.process, second.levels) == (str(S2), UNANSWERED)
        await answers.handlers[ChangeLogLevels](ChangeLogLevels(("of.a.test=default",)))
        assert logging.getLogger("of.a.test").level == logging.NOTSET

    asyncio.run(main())


def test_a_node_hears_from_the_leader_what_it_waits_for() -> None:
    async def main() -> None:
        servers, _ = _servers()
        cast(Any, servers.processes).living = {}
        cast(Any, servers.processes).deaths.last.return_value = None
        answers = make_node_answers(servers)
        await answers.handlers[DescribeServers](DescribeServers(is_leaving=True, delay="node n2.17 is not fenced yet"))
        assert (servers.is_leaving, servers.leader_delay) == (True, "node n2.17 is not fenced yet")
        await answers.handlers[DescribeServers](DescribeServers())
        assert (servers.is_leaving, servers.leader_delay) == (False, "")
        await servers.close()

    asyncio.run(main())

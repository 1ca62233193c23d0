"""A node's link to the leader: the sentence on why none is open, and when a leader is only not there yet."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.hello import Hello
from columnar.cluster.link_listener import LinkListener, OnLink
from columnar.cluster.peer_address import UnixAddress
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.peers import LinkTerms
from columnar.cluster.refusals import Unknown
from columnar.coordination.clock_check import ClusterClock
from columnar.coordination.node_record import LeaderRecord
from columnar.model.owner import Incarnation
from columnar.roles.leader_link import LeaderLink
from columnar.roles.leased_membership import LeasedMembership
from columnar.roles.membership import Standing

OWN = Incarnation("n2", 7)
LEADER = Incarnation("n1", 1)
PATIENCE_S = 20.0


class LeaderNode:
    """A node at a socket, which leads from ``epoch`` on if that is not 0."""

    def __init__(self, path: Path, own: Incarnation = LEADER, cluster: str = "c") -> None:
        self.address = UnixAddress(str(path))
        self.epoch = 0
        self._own = own
        self._cluster = cluster
        self._listener = LinkListener(self._make_link, lambda _link: None)
        self._links: list[PeerLink] = []

    def _make_link(self, on_ended: OnLink) -> PeerLink:
        hello = Hello(self._cluster, self._own, leader_epoch=self.epoch)
        why = None if self.epoch else "this node does not lead"
        answers = PeerServer({}, lambda _table, _row: Unknown("none"), itertools.count(1))
        link = PeerLink(hello, lambda _hello: why, answers, on_ended)
        self._links.append(link)
        return link

    async def listen(self) -> None:
        await self._listener.listen(self.address)

    async def close(self) -> None:
        self._listener.begin_close()
        for link in self._links:
            link.end("it ends")
        await self._listener.wait_closed()


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - another side of a socket
            await asyncio.sleep(0.005)


def test_a_link_says_why_no_leader_is_linked(tmp_path: Path) -> None:
    async def main() -> None:
        leader = LeaderNode(tmp_path / "leader")
        link = LeaderLink(Hello("c", OWN), Mock(), Mock(), LinkTerms())
        assert (link.obstacle(), link.delay()) == ("no node leads", "")
        link.follow(3, str(leader.address))
        await _until(lambda: "cannot connect" in link.obstacle())
        assert link.obstacle().startswith(f"there is no link with the leader at {leader.address}: cannot connect: ")
        assert link.delay() == "", "it may be dead"
        await leader.listen()
        early = f"the node at {leader.address} leads, and has not opened the catalogue yet"
        await _until(lambda: link.delay() == early)
        assert link.obstacle() == early
        await leader.close()
        await _until(lambda: link.delay() == "")  # it has died before its catalogue was open
        leader = LeaderNode(tmp_path / "leader")
        leader.epoch = 3
        await leader.listen()
        await _until(lambda: link.is_open)
        assert (link.obstacle(), link.delay()) == ("", "")
        await leader.close()
        await _until(lambda: not link.is_open)
        assert link.obstacle().startswith(f"there is no link with the leader at {leader.address}: ")
        assert link.delay() == ""
        link.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answering", "cluster", "why"),
    [
        (OWN, "c", "n1 leads, and the address is this node's own: give each node its own address with --host"),
        (
            Incarnation("n3", 9),
            "c",
            "n1 leads, and the address is that of node n3: give each node its own address with --host",
        ),
        (LEADER, "d", "n1.1 is of cluster d, not of c"),
    ],
)
def test_a_node_that_never_leads_at_the_leaders_address_is_not_waited_for(
    tmp_path: Path, answering: Incarnation, cluster: str, why: str
) -> None:
    """With the same loopback address for all nodes each one dials itself."""

    async def main() -> None:
        node = LeaderNode(tmp_path / "leader", answering, cluster)
        await node.listen()
        link = LeaderLink(Hello("c", OWN), Mock(), Mock(), LinkTerms())
        link.follow(3, str(node.address), "n1")
        await _until(lambda: why in link.obstacle())
        assert link.obstacle() == f"there is no link with the leader at {node.address}: {why}"
        assert link.delay() == "", "no time ends this"
        link.close()
        await node.close()

    asyncio.run(main())


def test_a_leader_on_loopback_is_named_by_a_node_of_another_machine(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        parts = Mock()
        parts.settings.fence_command = ""
        membership = LeasedMembership(parts, Mock(clock=ClusterClock()), OWN, b"", None, "")
        cast(Any, membership)._link = link = Mock()
        link.obstacle.return_value, link.delay.return_value = "there is no link", ""
        leader = LeaderRecord("", "n1", 3, "127.0.0.1:9096")
        remark = (
            "127.0.0.1:9096, the address of node n1, is another machine for each node: start n1 with its own address, "
            "--host ADDRESS"
        )
        membership._follow_leader(leader)
        membership._follow_leader(leader)
        assert membership.standing().leader == f"there is no link; {remark}"
        assert [record.getMessage() for record in caplog.records] == [remark], "once"
        membership._address.note_listening("127.0.0.1", ["127.0.0.1"], ["localhost:2379"])
        membership._follow_leader(leader)
        assert membership.standing().leader == "there is no link", "both may be on one machine"

    asyncio.run(main())


def test_a_leader_that_resigned_is_not_waited_for(tmp_path: Path) -> None:
    """Its node answers, and leads no more; it is not known whether any node will."""

    async def main() -> None:
        leader = LeaderNode(tmp_path / "leader")
        await leader.listen()
        parts = Mock()
        parts.settings.lease_s, parts.settings.fence_command = 1.5, ""
        parts.folder.cluster_id = "c"
        membership = LeasedMembership(parts, Mock(clock=ClusterClock()), OWN, b"", None, "")
        membership._link._terms = LinkTerms()  # over a Unix socket without a secret
        assert membership.standing() == Standing(leader="no node leads")
        membership._follow_leader(LeaderRecord("", "n1", 3, str(leader.address)))
        early = f"the node at {leader.address} leads, and has not opened the catalogue yet"
        await _until(lambda: membership.standing() == Standing(leader=early, delay=early))
        membership._follow_leader(None)
        assert membership.standing() == Standing(leader="no node leads")
        assert membership.leader is None, "the page says that nobody leads"
        membership._link.close()
        await leader.close()

    asyncio.run(main())


def test_a_leader_without_its_catalogue_says_what_it_waits_for() -> None:
    async def main() -> None:
        parts = Mock()
        parts.settings.fence_command = ""
        membership = LeasedMembership(parts, Mock(clock=ClusterClock()), OWN, b"", None, "")
        why = "it waits for the catalogue's files"
        membership._leadership._term.note_delay(why)
        assert membership.standing() == Standing(catalogue=why, leader=why, delay=why)
        membership._leadership._term.note_delay("")
        membership._leadership.leading = Mock()
        assert membership.standing() == Standing(), "it leads with its catalogue open"
        membership._leadership.leading = None
        membership._leadership.service_silent(0, "no answer")
        silence = "the coordination service does not answer: no answer"
        assert membership.standing() == Standing(service=silence, leader="no node leads", delay=silence)

    asyncio.run(main())

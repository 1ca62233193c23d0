"""Links of members to their leader that are lost: which server may link again, and which is fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.hello import Hello
from columnar.cluster.link_errors import NotSent
from columnar.cluster.peers import LinkTerms
from columnar.model.owner import Incarnation
from columnar.roles import member_links
from columnar.roles.member_links import MemberLinks

S1, S2, N1 = Incarnation("s1", 4), Incarnation("s2", 5), Incarnation("n1", 3)


class OpenLink:
    """A link whose peer has said hello and has proven the secret."""

    def __init__(self, links: MemberLinks, server: Incarnation = S1) -> None:
        self._links = links
        self.peer = Hello("c", server)
        self.why = ""

    def end(self, why: str) -> None:
        if not self.why:
            self.why = why
            self._links._link_ended(cast(Any, self))


class Leader:
    """The events of the links, and the members of a cluster of two servers."""

    def __init__(self) -> None:
        self.bound: set[Incarnation] = set()
        self.events: list[tuple[str, Incarnation]] = []
        self.reasons: list[str] = []
        self.links = MemberLinks(Hello("c", Incarnation("master", 1), leader_epoch=1), Mock(), LinkTerms())
        self.links.follow(self, Mock(), lambda member: member in self.bound)
        for server in (S1, S2):
            self.links.expect(server)

    async def linked(self, member: Incarnation) -> None:
        self.events.append(("linked", member))

    def unlinked(self, member: Incarnation, why: str) -> None:
        self.events.append(("unlinked", member))
        self.reasons.append(why)

    def dial(self, server: Incarnation = S1) -> OpenLink:
        """Open a link, as a process that dials and is not refused at its hello."""
        link = OpenLink(self.links, server)
        refusal = self.links._obstacle(link.peer)
        if refusal is not None:
            link.why = refusal
        else:
            self.links._link_opened(cast(Any, link))
        return link


def _in_loop(main: Callable[[Leader], Coroutine[Any, Any, None]]) -> None:
    async def begin() -> None:
        leader = Leader()
        await main(leader)
        await leader.links.close()

    asyncio.run(begin())


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_server_that_links_again_is_greeted_and_not_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_links, "RELINK_S", 0.0)
    monkeypatch.setattr(member_links, "OUTLIVES_S", 0.0)

    async def main(leader: Leader) -> None:
        leader.dial().end("the connection ended")
        assert not leader.links.is_linked(S1)
        again = leader.dial()
        await leader.links._background.ended()
        assert (again.why, leader.links.is_linked(S1)) == ("", True)
        assert leader.events == [("linked", S1), ("linked", S1)]

    _in_loop(main)


def test_a_server_whose_next_link_is_lost_at_once_may_link_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_links, "RELINK_S", 60.0)

    async def main(leader: Leader) -> None:
        leader.dial().end("the connection ended")
        await _settle()
        leader.dial().end("the connection ended again")
        await _settle()
        assert (leader.dial().why, leader.events) == ("", [("linked", S1)] * 2)
        await leader.links._background.ended()
        assert leader.events == [("linked", S1)] * 3

    _in_loop(main)


def test_a_server_that_does_not_link_again_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_links, "RELINK_S", 0.01)

    async def main(leader: Leader) -> None:
        leader.dial(S2)
        leader.dial().end("the connection ended")
        await leader.links._background.ended()
        assert leader.events == [("linked", S2), ("linked", S1), ("unlinked", S1)]
        assert leader.reasons == ["the connection ended, and it has not linked again within 0.01 s"]

    _in_loop(main)


def test_a_server_that_ends_after_its_link_is_not_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_links, "RELINK_S", 0.2)

    async def main(leader: Leader) -> None:
        leader.dial().end("the connection ended")
        leader.links.end_member(S1)
        await leader.links._background.ended()
        assert leader.events == [("linked", S1)]

    _in_loop(main)


def test_a_server_whose_link_ends_amid_a_change_is_refused_and_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_links, "OUTLIVES_S", 0.01)

    async def main(leader: Leader) -> None:
        link = leader.dial()
        leader.bound.add(S1)
        link.end("the connection ended")
        leader.bound.clear()  # its caller has given up meanwhile: that does not make the outcome known
        again = leader.dial()
        assert again.why == "s1.4 lost its link amid a change, and is to be ended"
        await leader.links._background.ended()
        assert leader.events == [("linked", S1), ("unlinked", S1)]
        assert leader.reasons == ["the connection ended, amid a change"]

    _in_loop(main)


def test_a_node_links_again_whatever_change_is_under_way() -> None:
    """The leader has a bound server ended by its node, over the node's next link."""

    async def main(leader: Leader) -> None:
        leader.links.expect(N1, is_node=True)
        leader.bound.add(N1)
        leader.dial(N1).end("the connection ended")
        assert (leader.dial(N1).why, leader.links.is_linked(N1)) == ("", True)

    _in_loop(main)


def test_a_server_that_dials_again_has_ended_its_earlier_link() -> None:
    """The leader's end of a link may stand for long after the server's end, if the network forgot the connection."""

    async def main(leader: Leader) -> None:
        one, two = leader.dial(), leader.dial()
        await leader.links._background.ended()
        assert (bool(one.why), two.why, leader.links.is_linked(S1)) == (True, "", True)
        assert leader.events == [("linked", S1), ("linked", S1)]

    _in_loop(main)


def test_a_server_that_dials_again_amid_a_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_links, "OUTLIVES_S", 0.01)

    async def main(leader: Leader) -> None:
        leader.dial()
        leader.bound.add(S1)
        again = leader.dial()
        await leader.links._background.ended()
        assert again.why == "s1.4 lost its link amid a change, and is to be ended"
        assert leader.events == [("linked", S1), ("unlinked", S1)]

    _in_loop(main)


def test_a_request_that_was_not_sent_waits_for_the_next_link_or_the_end() -> None:
    async def main(leader: Leader) -> None:
        leader.dial().end("the connection ended")
        with pytest.raises(NotSent):
            await leader.links.request_server(S1, Mock())
        linked, ended = (asyncio.ensure_future(leader.links.relinked(server)) for server in (S1, S2))
        await _settle()
        assert not linked.done()
        leader.dial()
        leader.links.end_member(S2)
        assert (await linked, await ended) == (True, False)
        assert await leader.links.relinked(S2) is False

    _in_loop(main)

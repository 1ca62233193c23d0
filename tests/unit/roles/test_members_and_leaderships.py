"""Links of members that end while they greet, and leaderships of one process that follow each other."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.hello import Hello
from columnar.cluster.peers import LinkTerms
from columnar.errors import OutcomeUnknown
from columnar.model.owner import Incarnation
from columnar.roles.leadership import Leadership, Term
from columnar.roles.member_links import MemberLinks

S1 = Incarnation("s1", 4)


class GreetedLink:
    """A link whose peer has said hello, and has not proven the secret yet."""

    def __init__(self) -> None:
        self.peer = Hello("c", S1)
        self.why = ""

    def end(self, why: str) -> None:
        self.why = why


async def _members(linked: list[Incarnation]) -> MemberLinks:
    links = MemberLinks(Hello("c", Incarnation("master", 1), leader_epoch=1), Mock(), LinkTerms())
    events = Mock()

    async def on_linked(member: Incarnation) -> None:
        linked.append(member)

    events.linked = on_linked
    links.follow(events, Mock(), Mock(return_value=False))
    links.expect(S1)
    return links


def test_a_member_that_ended_while_it_greeted_is_not_linked() -> None:
    async def main() -> None:
        linked: list[Incarnation] = []
        links = await _members(linked)
        link = GreetedLink()
        assert links._obstacle(link.peer) is None
        links.end_member(S1)
        links._link_opened(cast(Any, link))
        await links._background.ended()
        assert (link.why, linked) == ("s1.4 is not known to live yet, or has ended", [])
        assert not links.is_linked(S1)

    asyncio.run(main())


class SlowlyClosed(Leadership):
    """A leadership whose close waits for the test."""

    def begin(self) -> None:
        self.log: list[str] = []
        self.may_close = asyncio.Event()

    async def _lead_once(self, epoch: int) -> None:
        self.log.append(f"lead {epoch}")
        try:
            await asyncio.Event().wait()
        finally:
            await self.may_close.wait()
            self.log.append(f"closed {epoch}")


def _leadership() -> SlowlyClosed:
    leadership = SlowlyClosed(Mock(), Mock(), Incarnation("n1", 1), LinkTerms(), Mock(), Mock())
    leadership.begin()
    return leadership


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_leadership_begins_after_all_earlier_ones_are_closed() -> None:
    async def main() -> None:
        leadership = _leadership()
        for epoch in (1, 2, 3):
            leadership.elected(epoch)
            await _settle()
            if epoch < 3:
                leadership.deposed("another leads")
                await _settle()
        assert leadership.log == ["lead 1"]
        leadership.may_close.set()
        await _settle()
        assert leadership.log == ["lead 1", "closed 1", "lead 3"]
        await leadership.close()
        assert leadership.log[-1] == "closed 3"

    asyncio.run(main())


def test_close_waits_for_an_earlier_leadership_and_none_begins_after_it() -> None:
    async def main() -> None:
        leadership = _leadership()
        leadership.elected(1)
        await _settle()
        leadership.deposed("another leads")
        leadership.elected(2)
        closing = asyncio.ensure_future(leadership.close())
        await _settle()
        assert not closing.done()
        leadership.may_close.set()
        await closing
        leadership.elected(3)
        await _settle()
        assert leadership.log == ["lead 1", "closed 1"]

    asyncio.run(main())


def test_the_gate_of_a_term_that_is_over_stays_closed_while_the_node_leads_again() -> None:
    async def main() -> None:
        leads = [True]
        first, second = Term(lambda: leads[0], Mock()), Term(lambda: leads[0], Mock())
        first.end()
        assert [first.gate.is_open(), second.gate.is_open()] == [False, True]
        leads[0] = False
        assert not second.gate.is_open()
        with pytest.raises(OutcomeUnknown):
            await first.until_leads()

    asyncio.run(main())

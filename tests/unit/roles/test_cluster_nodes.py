"""A leader that has a server ended by the server's node: over which link, and when the whole node is fenced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast
from unittest.mock import Mock

import pytest

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.errors import RetryLater
from columnar.model.node_messages import ChangeLogLevels, DescribeServers, KillServer, ProcessLevels
from columnar.model.owner import Incarnation
from columnar.roles.cluster_nodes import UNANSWERED, ClusterNodes, LeaderParts

N1, N2, S2, S3 = Incarnation("n1", 1), Incarnation("n2", 2), Incarnation("n2-s1", 3), Incarnation("n2-s2", 4)


class Links:
    """Links that answer each request as scripted; ``relinks`` says whether a lost link is made again."""

    def __init__(
        self, *outcomes: Exception | None, relinks: bool = True, is_linked: bool = False, ends_node: bool = False
    ) -> None:
        self.outcomes = list(outcomes)
        self.relinks = relinks
        self.ends_node = ends_node  # while its link is awaited
        self.at_request: Callable[[], None] = lambda: None
        self.linked = is_linked
        self.requests: list[Any] = []
        self.at_relink: Callable[[], None] = lambda: None

    def is_linked(self, _node: Incarnation) -> bool:
        return self.linked

    async def request_server(self, node: Incarnation, message: Any) -> None:
        self.requests.append((node, message))
        self.at_request()
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome

    async def relinked(self, _node: Incarnation, _within_s: float | None = None) -> bool:
        self.at_relink()
        return self.relinks


def _fenced(links: Links, *others: Incarnation, ends_early: bool = False) -> list[Incarnation]:
    """Have the server of the other node killed; return the nodes that were fenced for it.

    ``others``: more servers of that node.  ``ends_early``: the server ends while it is to be killed.
    """
    fenced: list[Incarnation] = []

    async def main() -> None:
        nodes = ClusterNodes(Mock(), N1, cast(Any, links), LeaderParts(fenced.append, Mock(), tuple))
        for server in (S2, *others):
            nodes.add_server(server, N2)
        if ends_early:
            links.at_request = lambda: nodes.remove_server(S2)
        if links.ends_node:
            links.at_relink = lambda: nodes.remove_server(S2)
        await nodes.kill(S2, "its link ended amid a change")
        await nodes.close()

    asyncio.run(main())
    return fenced


KILL = (N2, KillServer(S2, "its link ended amid a change"))


@pytest.mark.parametrize("lost", [NotSent(), LinkBroke()])
def test_a_kill_that_is_lost_with_a_link_is_repeated_over_the_next(lost: Exception) -> None:
    """A network that resets all links at once must not cost the cluster a whole node."""
    links = Links(lost, LinkBroke(), None)
    assert (_fenced(links), links.requests) == ([], [KILL] * 3)


def test_a_node_that_does_not_link_again_is_fenced() -> None:
    assert _fenced(Links(NotSent(), relinks=False)) == [N2]


def test_a_node_that_ends_meanwhile_is_not_fenced() -> None:
    assert _fenced(Links(LinkBroke(), relinks=False, ends_node=True)) == []


@pytest.mark.parametrize("failure", [LinkBroke(), NotSent(), TimeoutError()])
def test_a_node_is_not_fenced_for_a_server_that_has_ended(failure: Exception) -> None:
    """Its other servers live, and serve."""
    assert _fenced(Links(failure, relinks=False), S3, ends_early=True) == []


def test_a_node_that_takes_no_requests_over_an_open_link_is_fenced() -> None:
    assert _fenced(Links(NotSent(), is_linked=True)) == [N2]


@pytest.mark.parametrize("failure", [TimeoutError(), RetryLater("it stops")])
def test_a_node_that_does_not_end_its_server_is_fenced(failure: Exception) -> None:
    assert _fenced(Links(failure)) == [N2]


@pytest.mark.parametrize(
    ("delays", "said"),
    [((), ""), (("n2.17 is not fenced yet", "the log of s3.4 is held back"), "n2.17 is not fenced yet")],
)
def test_every_node_hears_what_the_leader_waits_for(delays: tuple[str, ...], said: str) -> None:
    async def main() -> None:
        links, own, state = Links(NotSent()), Mock(), Mock()
        own.describe_servers.return_value = ()
        state.desired.operator_settings.until_restart = frozenset()
        nodes = ClusterNodes(own, N1, cast(Any, links), LeaderParts(Mock(), state, lambda: delays))
        nodes.zone_of = {N1: "", N2: ""}
        nodes.poll_facts()
        await nodes._background.ended()
        assert links.requests == [(N2, DescribeServers(delay=said))]
        own.describe_servers.assert_called_with(DescribeServers(delay=said))
        await nodes.close()

    asyncio.run(main())


def test_every_node_changes_its_levels_and_one_that_does_not_answer_is_named() -> None:
    n3 = Incarnation("n3", 5)
    asked: list[Any] = []

    class Answering(Links):
        async def request_server(self, node: Incarnation, message: Any) -> Any:
            asked.append((node, message))
            if node == n3:
                raise LinkBroke
            return (ProcessLevels("n2.2", "root=info"), ProcessLevels("n2-s1.3", "root=info"))

    async def change(message: ChangeLogLevels) -> tuple[ProcessLevels, ...]:
        return (ProcessLevels("n1.1", " ".join(message.changes)),)

    async def main() -> tuple[ProcessLevels, ...]:
        own = Mock(change_log_levels=change)
        nodes = ClusterNodes(own, N1, cast(Any, Answering()), LeaderParts(Mock(), Mock(), tuple))
        nodes.zone_of.update({N1: "", N2: "", n3: ""})
        return await nodes.change_log_levels(("root=info",))

    found = asyncio.run(main())
    assert asked == [(N2, ChangeLogLevels(("root=info",))), (n3, ChangeLogLevels(("root=info",)))]
    assert [(one.process, one.levels) for one in found] == [
        ("n1.1", "root=info"),
        ("n2.2", "root=info"),
        ("n2-s1.3", "root=info"),
        ("n3.5", UNANSWERED),
    ]

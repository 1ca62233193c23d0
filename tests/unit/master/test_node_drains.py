"""Drains of whole nodes: all their servers at once, until an operator or a restart ends them, and who leads then."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from columnar.errors import CallerError, NotAllowed
from columnar.master.catalogue_rows import OperatorSettings, operator_settings_from_json, operator_settings_to_json
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import DrainNode, DrainServer, Give, Write
from columnar.master.requests import update_operator_settings
from columnar.model.cluster_status_records import Change
from columnar.model.owner import Incarnation
from tests.support.operated_cluster import OperatedCluster, table_infos

SERVERS = {"s1": "n1.1", "s2": "n1.1", "s3": "n2.2", "s4": "n2.2"}
S1, S2 = Incarnation("s1", 7), Incarnation("s2", 8)


def operated() -> OperatedCluster:
    cluster = OperatedCluster(table_infos("t", 12), 4)
    cluster.settle(SERVERS, "n1.1", "n2.2")
    return cluster


def drain(
    cluster: OperatedCluster,
    node: str = "n2",
    on: bool = True,
    until_restart: bool = False,
    wait_s: float = 60.0,
    dry_run: bool = False,
) -> Change:
    async def drained() -> Change:
        change = await cluster.control.node_drains.drain_node(node, on, until_restart, wait_s, dry_run)
        await asyncio.sleep(0)  # what it has begun beside
        return change

    return asyncio.run(drained())


def regions(cluster: OperatedCluster, *servers: str) -> int:
    return sum(len(cluster.state.current.servers[name].regions) for name in servers)


# --- settings ----------------------------------------------------------------------------------------


def test_settings_are_written_as_ever_and_read_from_older_programs() -> None:
    older = b'{"auto_split": true, "balancer": false, "drained": ["s1"], "unassigned": [7]}'
    settings = OperatorSettings(frozenset({"s1"}), frozenset({7}), balancer=False)
    assert operator_settings_to_json(settings) == older
    assert operator_settings_from_json(older) == settings
    ending = OperatorSettings(frozenset({"s1", "s2"}), until_restart=frozenset({S2, S1}))
    written = (
        b'{"auto_split": true, "balancer": true, "drained": ["s1", "s2"], "unassigned": [], '
        b'"until_restart": ["s1.7", "s2.8"]}'
    )
    assert operator_settings_to_json(ending) == written
    assert operator_settings_from_json(written) == ending


def test_a_drain_of_a_person_outlives_restarts_whatever_follows() -> None:
    until_restart = DrainNode(("s1", "s2"), until_restart=(S1, S2))
    by_hand = update_operator_settings(DrainServer("s1"), OperatorSettings())
    both = update_operator_settings(until_restart, by_hand)
    assert (both.drained, both.until_restart) == (frozenset({"s1", "s2"}), frozenset({S2}))
    assert update_operator_settings(until_restart, both) == both, "it may be repeated"
    again = update_operator_settings(DrainServer("s2"), both)
    assert (again.drained, again.until_restart) == (frozenset({"s1", "s2"}), frozenset())
    ended = update_operator_settings(DrainNode(("s1", "s2"), on=False), both)
    assert ended == OperatorSettings()
    assert update_operator_settings(DrainServer("s2", on=False), both) == by_hand


# --- drains ------------------------------------------------------------------------------------------


def test_a_node_is_emptied_into_others_and_stays_empty() -> None:
    cluster = operated()
    before = regions(cluster, "s3", "s4")
    assert before
    shown = drain(cluster, dry_run=True)
    assert (shown.text, shown.is_done, shown.left) == (f"{before} regions would leave n2.2", False, before)
    change = drain(cluster)
    assert (change.text, change.left, change.is_resigning) == ("n2.2 is empty, and stays so", 0, False)
    assert regions(cluster, "s3", "s4") == 0
    given = [
        one.what for one in cluster.state.plans.decisions if isinstance(one.what, Give) and "drain" in one.what.why
    ]
    assert len(given) == before, "no region went to the node's other server"
    cluster.cluster.run(cluster.cluster.now_ms + 60_000)
    assert regions(cluster, "s3", "s4") == 0
    assert drain(cluster, "n2.2", on=False).text == "n2.2 gets regions again"
    cluster.cluster.run(cluster.cluster.now_ms + 60_000)
    assert regions(cluster, "s3", "s4") == before


def test_a_drain_without_a_wait_says_what_is_left() -> None:
    cluster = operated()
    change = drain(cluster, wait_s=0)
    assert change.left > 0
    assert change.text == f"{change.left} regions left on n2.2"


def restart(cluster: OperatedCluster, name: str) -> None:
    (server,) = (one for one in cluster.cluster.servers if one.name == name)
    cluster.cluster.kill(server, asked=True)
    cluster.cluster.run(cluster.cluster.now_ms + 100)
    cluster.cluster.start(name)
    cluster.cluster.run(cluster.cluster.now_ms + 30_000)


def test_a_drain_until_a_restart_ends_with_each_servers_next_start() -> None:
    cluster = operated()
    before = regions(cluster, "s3")
    change = drain(cluster, until_restart=True)
    assert change.text == "n2.2 is empty until its next start"
    settings = cluster.state.desired.operator_settings
    assert (settings.drained, len(settings.until_restart)) == (frozenset({"s3", "s4"}), 2)
    restart(cluster, "s3")
    state = cluster.state
    assert state.desired.operator_settings.drained == {"s4"}
    assert {one.name for one in state.desired.operator_settings.until_restart} == {"s4"}
    assert (len(state.current.servers["s3"].regions) >= before, len(state.current.servers["s4"].regions)) == (True, 0)
    restart(cluster, "s4")
    assert cluster.state.desired.operator_settings == cluster.cluster.wishes == OperatorSettings()


def test_the_next_leader_ends_the_drain_of_a_server_that_has_restarted_and_no_other() -> None:
    settings = OperatorSettings(frozenset({"s1", "s2"}), until_restart=frozenset({S1, S2}))
    state = ClusterState([(info, None) for info in table_infos("t", 2)], {}, settings, Random(1))
    for server in (S1, Incarnation("s2", S2.number + 1)):
        state.joined(server, 0)
        state.hello(server, {}, {}, 0)
    writes = [one for one in state.begin_planning(10) if isinstance(one, Write)]
    assert writes[0].operator_settings == OperatorSettings(frozenset({"s1"}), until_restart=frozenset({S1}))
    state.hello(S1, {}, {}, 20)  # its link broke
    assert state.desired.operator_settings.drained == {"s1"}


def test_the_end_of_a_drain_that_could_not_be_written_is_written_later() -> None:
    cluster = operated()
    drain(cluster, until_restart=True)
    cluster.cluster.refusing_writes = True
    restart(cluster, "s3")
    cluster.cluster.refusing_writes = False
    cluster.cluster.run(cluster.cluster.now_ms + 60_000)
    cluster.cluster.restart_master()
    assert cluster.cluster.state.desired.operator_settings.drained == {"s4"}


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_cannot_be_is_refused(dry_run: bool) -> None:
    cluster = operated()
    with pytest.raises(CallerError, match=r"there is no node n9; there are n1\.1, n2\.2"):
        drain(cluster, "n9", dry_run=dry_run)
    with pytest.raises(CallerError, match=r"there is no node n2\.1; there are"):
        drain(cluster, "n2.1", dry_run=dry_run)
    cluster.settle(SERVERS, "n1.1", "n2.2", "n3.9")
    with pytest.raises(CallerError, match=r"node n3\.9 has no server yet"):
        drain(cluster, "n3", dry_run=dry_run)
    asyncio.run(cluster.control.drain("s1", True, 60, False))
    asyncio.run(cluster.control.drain("s2", True, 60, False))
    with pytest.raises(NotAllowed, match=r"no other node could take the regions of n2\.2: "):
        drain(cluster, dry_run=dry_run)
    cluster.settle({})
    with pytest.raises(NotAllowed, match="this store runs on one machine and has no nodes"):
        drain(cluster, dry_run=dry_run)


def test_the_node_of_a_name_is_the_one_with_all_of_its_servers() -> None:
    """A server that the node had before its restart, and has no more, belongs to the name too."""
    cluster = operated()
    cluster.settle({**SERVERS, "s4": "n2.1"}, "n1.1", "n2.2")
    assert drain(cluster, "n2").left == 0
    assert cluster.state.desired.operator_settings.drained == {"s3", "s4"}
    drain(cluster, "n2", on=False)
    drain(cluster, "n2.2")
    assert cluster.state.desired.operator_settings.drained == {"s3"}


# --- the leader --------------------------------------------------------------------------------------


def test_a_leader_resigns_when_it_is_empty() -> None:
    cluster = operated()
    change = drain(cluster, "n1", wait_s=0)
    assert change.is_resigning
    assert cluster.ended == [], "it has regions"
    change = drain(cluster, "n1", until_restart=True)
    assert (change.left, change.is_resigning) == (0, True)
    assert change.text.endswith(", and leads until another node does")
    assert cluster.ended == ["resign"]


def test_a_leader_that_nobody_can_follow_stays() -> None:
    cluster = operated()
    cluster.settle(SERVERS, "n1.1")
    change = drain(cluster, "n1")
    assert (change.left, change.is_resigning) == (0, False)
    assert cluster.ended == []


def test_a_leader_whose_drain_ends_before_stays() -> None:
    cluster = operated()

    async def test() -> None:
        drains = cluster.control.node_drains
        assert (await drains.drain_node("n1", True, False, 0, False)).left
        await drains.drain_node("n1", False, False, 0, False)
        await asyncio.sleep(0)

    asyncio.run(test())
    cluster.cluster.run(cluster.cluster.now_ms + 60_000)
    assert cluster.ended == []


def test_an_undrain_or_a_dry_run_has_nobody_resign() -> None:
    cluster = operated()
    drain(cluster, "n1", dry_run=True)
    drain(cluster, "n1", on=False)
    assert cluster.ended == []


def test_random_nodes_end_empty() -> None:
    rng = Random(5)
    cluster = operated()
    for _ in range(6):
        node = rng.choice(["n1", "n2"])
        assert drain(cluster, node, until_restart=rng.random() < 0.5).left == 0
        drain(cluster, node, on=False)
        cluster.cluster.run(cluster.cluster.now_ms + 5_000)


# --- nodes without servers -----------------------------------------------------------------------------


def test_a_node_without_servers_resigns_at_once_and_nothing_is_kept() -> None:
    cluster = operated()
    cluster.settle(SERVERS, "n3.3", "n1.1", "n2.2")
    with pytest.raises(CallerError, match=r"node n3\.3 has no server yet"):
        drain(cluster, "n3")  # it may have some that it has not named
    cluster.without_servers = frozenset({"n3.3"})
    shown = drain(cluster, "n3", dry_run=True)
    assert (shown.text, shown.is_done, cluster.ended) == ("n3.3 has no servers, and only may lead", False, [])
    change = drain(cluster, "n3", until_restart=True)
    assert (change.text, change.left) == ("n3.3 has no servers, and leads until another node does", 0)
    assert (change.is_resigning, cluster.ended) == (True, ["resign"])
    assert cluster.state.desired.operator_settings == OperatorSettings()
    assert drain(cluster, "n3", on=False).text == "n3.3 has no servers"
    cluster.settle(SERVERS, "n1.1", "n2.2", "n3.3")
    assert not drain(cluster, "n3").is_resigning, "another node leads"

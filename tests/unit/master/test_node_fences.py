"""A person's word that the machine of a node is off: who may be named, and what is answered."""

from __future__ import annotations

import asyncio

import pytest

from columnar.errors import CallerError, NotAllowed
from columnar.model.owner import Incarnation
from tests.support.operated_cluster import OperatedCluster, table_infos

N1, N2, N3 = Incarnation("n1", 9), Incarnation("n2", 5), Incarnation("n3", 7)


@pytest.fixture
def cluster() -> OperatedCluster:
    """Three servers on nodes of their own, of which n2 leads."""
    found = OperatedCluster(table_infos("t", 6), 3)
    found.settle({"s1": str(N1), "s2": str(N2), "s3": str(N3)}, str(N2), str(N1), str(N3))
    return found


def fence(cluster: OperatedCluster, name: str, *, dry_run: bool = False) -> str:
    return asyncio.run(cluster.control.processes.fence(name, dry_run)).text


def test_a_node_that_lives_loses_its_lease(cluster: OperatedCluster) -> None:
    text = "n1.9 would count as off: its machine must be off, or cut from the data folder; its lease would end, "
    assert fence(cluster, "n1", dry_run=True) == text + "2 regions for other owners"
    assert cluster.ended == []
    assert fence(cluster, "n1") == "n1.9 counts as off; 2 regions for other owners"
    assert cluster.ended == [f"fence node {N1}"]


def test_a_node_that_waits_for_its_fence_is_meant_before_its_next_start(cluster: OperatedCluster) -> None:
    before = Incarnation("n1", 4)
    cluster.unfenced = (before,)
    assert "n1.4 would count as off" in fence(cluster, "n1", dry_run=True)
    assert "its lease is over, 0 regions for other owners" in fence(cluster, "n1", dry_run=True)
    assert "n1.9 would count as off" in fence(cluster, "n1.9", dry_run=True)
    fence(cluster, "n1")
    assert cluster.ended == [f"fence node {before}"]


def test_the_leader_and_strangers_are_refused(cluster: OperatedCluster) -> None:
    for name in ("n2", "n2.5"):
        with pytest.raises(NotAllowed, match=r"n2\.5 leads, and answers this call, so its machine is not off"):
            fence(cluster, name)
    for name in ("n", "n1.8", "n4", ""):
        with pytest.raises(
            CallerError, match=f"there is no server {name}, and no node that lives or waits for a fence; nodes are n2"
        ):
            fence(cluster, name)
    assert cluster.ended == []


def test_a_server_of_this_name_comes_first(cluster: OperatedCluster) -> None:
    cluster.settle({"s1": "s2.5", "s2": "n1.9"}, "n1.9", "s2.5")
    assert fence(cluster, "s2", dry_run=True).startswith("s2.1 would be ended at once")
    assert fence(cluster, "s2.5", dry_run=True).startswith("s2.5 would count as off")

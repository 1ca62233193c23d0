"""Addresses of nodes that other machines cannot reach are remarked on, and those of one machine are not."""

from __future__ import annotations

import pytest

from columnar.config import RegionServerConfig, StandaloneConfig
from columnar.roles.node_addresses import is_local, leader_remark, own_remark


@pytest.mark.parametrize(
    ("named", "bound", "expected"),
    [
        ("127.0.0.1", ["127.0.0.1"], True),
        ("127.0.0.1", ["0.0.0.0"], True),
        ("10.0.0.1", ["0.0.0.0"], False),
        ("10.0.0.1", ["10.0.0.1"], False),
        ("node1", ["127.0.1.1"], True),  # as Debian's /etc/hosts has it
        ("node1", ["127.0.1.1", "10.0.0.1"], False),
        ("::1", ["::1"], True),
    ],
)
def test_a_node_is_local_if_it_names_itself_so_or_listens_on_loopback_alone(
    named: str, bound: list[str], expected: bool
) -> None:
    assert is_local(named, bound) is expected


@pytest.mark.parametrize(
    ("hosts", "is_remarked_on"),
    [
        (["127.0.0.1:2379", "localhost:2380", "[::1]:2379"], False),
        (["127.0.0.1:2379", "10.0.0.2:2379"], True),
        (["etcd.example:2379"], True),
    ],
)
def test_a_local_node_is_remarked_on_beside_a_service_on_other_machines(hosts: list[str], is_remarked_on: bool) -> None:
    remark = own_remark("127.0.0.1", hosts)
    assert ("start each with its own address, --host ADDRESS" in remark) is is_remarked_on


@pytest.mark.parametrize(
    ("address", "is_own_local", "begin"),
    [
        ("127.0.0.1:9096", True, ""),
        ("10.0.0.1:9096", False, ""),
        ("127.0.0.1:9096", False, "127.0.0.1:9096, the address of node n1, is another machine for each node"),
        ("10.0.0.1:9096", True, "node n1 leads at 10.0.0.1:9096, and no other machine reaches this node"),
        ("unix:/run/a", False, ""),
    ],
)
def test_a_leader_and_a_node_of_which_one_is_local_are_remarked_on(
    address: str, is_own_local: bool, begin: str
) -> None:
    remark = leader_remark("n1", address, is_own_local=is_own_local)
    assert remark.startswith(begin)
    assert bool(remark) is bool(begin)


@pytest.mark.parametrize(("peer_host", "told"), [("10.0.0.2", "10.0.0.2"), ("", "0.0.0.0")])
def test_clients_are_told_the_host_by_which_they_reach_a_server(peer_host: str, told: str) -> None:
    """On one machine the gateway's host is right for all servers, so a client may replace 0.0.0.0 by it."""
    store = StandaloneConfig("data", host="0.0.0.0")
    assert RegionServerConfig("s1", 1, "data", "c", "run", 1, "INFO", store, peer_host=peer_host).named_host == told

"""One rolling restart under clients; ``python -m tests.proofs.rolling --restarts 5`` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs import rolling_nodes
from tests.proofs.rolling import Plan, by_the_log, prove
from tests.support.deep import cases
from tests.support.seeds import seed


def test_a_rolling_restart_fails_no_request(tmp_path: Path) -> None:
    number = seed(20261123)
    print(f"COLUMNAR_SEED={number}")
    verdict = prove(Plan(restarts=1, clients=4, seed=number), tmp_path, lambda _: None)
    print(verdict.counts)
    assert verdict.problems == []
    assert verdict.counts["servers restarted"] == 2


def test_connections_that_end_with_a_server_are_seen() -> None:
    account = by_the_log(
        "s1.2 hands over: 4 connections go on at others, 1 are closed; lost: 2, and 3 open scanners\n"
        "INFO s2.3 columnar.server: stopping\n"
        "WARNING columnar.roles.node_ports: 7 connections have ended with server s2.3\n"
    )
    assert account == {"handed over": 4, "closed": 1, "connections lost": 9, "scanners lost": 3}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets that the other side has closed
@pytest.mark.parametrize(
    "routing",
    cases("rolling restarts of nodes", deep=[True, False], short=[True]),  # False: of whole nodes
)
def test_a_rolling_restart_of_nodes_fails_no_request(tmp_path: Path, *, routing: bool) -> None:
    """Behind a balancer clients may connect again; those that call owners themselves repeat nothing."""
    number = seed(20261127)
    print(f"COLUMNAR_SEED={number}")
    # A busy machine is late for a short lease; a node that stops in order needs none.
    plan = Plan(restarts=1, clients=3, seed=number, nodes=2, is_whole=not routing, routing=routing, lease_s=4)
    verdict = rolling_nodes.prove(plan, tmp_path, lambda _: None)
    print(verdict.counts)
    assert verdict.problems == []

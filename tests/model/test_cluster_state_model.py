"""A cluster in virtual time: deaths, drains, moves, lost reports, refused writes; no acknowledged write is lost.

``PlannedCluster`` checks C2, C3, C4 and C6 wherever they could be broken; ``check`` runs after every event.
"""

from __future__ import annotations

from random import Random

import pytest

from columnar.master.instructions import (
    AssignRegion,
    DrainNode,
    DrainServer,
    MergeRegions,
    MoveRegion,
    SplitRegion,
    UnassignRegion,
)
from columnar.master.placement_records import Phase, ServerState
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo
from tests.support.deep import seeds
from tests.support.planned_cluster import PlannedCluster
from tests.support.seeds import seed

SEEDS = seeds("seeds of the cluster's state", deep=30, short=6)
MINUTES = 2
REGIONS = 12
FAULTS = {"lost": 0.03, "unwritten": 0.02, "unopened": 0.02, "damaged": 0.002, "behind": 0.1, "unchanged": 0.2}


def cluster_of(rng: Random, servers: int, faults: dict[str, float]) -> PlannedCluster:
    infos = [RegionInfo(f"t{n % 3}", n + 2, bytes([n]), bytes([n + 1])) for n in range(REGIONS)]
    cluster = PlannedCluster(infos, rng, seed=rng.randrange(1 << 30), faults=faults)
    cluster.after_event = lambda _outputs: cluster.state.check_invariants()
    for n in range(servers):
        cluster.start(f"s{n + 1}")
    cluster.later(100, lambda: cluster.event("begin_planning"))
    return cluster


def happen(cluster: PlannedCluster, rng: Random) -> None:
    """Let one of the events happen that are possible at any time."""
    what = rng.random()
    regions = sorted(cluster.infos)
    names = sorted(cluster.numbers)
    if what < 0.08 and cluster.servers:
        server = rng.choice(sorted(cluster.servers))
        if rng.random() < 0.3:
            cluster.event("silent", server, "says nothing")
        else:
            cluster.kill(server, asked=rng.random() < 0.3)
        cluster.later(rng.choice((300, 300, 3_000, 30_000)), lambda: come_back(cluster, server.name))
    elif what < 0.10 and cluster.servers:
        cluster.reconnect(rng.choice(sorted(cluster.servers)))
    elif what < 0.11:
        cluster.refusing_writes = True
        cluster.later(rng.randint(10, 3_000), lambda: setattr(cluster, "refusing_writes", False))
    elif what < 0.12:
        cluster.restart_master()
    elif what < 0.20:
        cluster.ask(MoveRegion(rng.choice(regions), rng.choice([None, *names])))
    elif what < 0.24:
        cluster.ask(
            rng.choice((DrainServer(rng.choice(names), rng.choice((True, False))), drained_until_restart(cluster)))
        )
    elif what < 0.28:
        cluster.ask(rng.choice((UnassignRegion, AssignRegion, AssignRegion))(rng.choice(regions)))
    elif what < 0.30:
        cluster.ask(SplitRegion(rng.choice(regions)))
    elif what < 0.31:
        left = cluster.infos[rng.choice(regions)]
        right = [one for one in cluster.infos.values() if one.table == left.table and one.start == left.end]
        if right:
            cluster.ask(MergeRegions(left.region_id, right[0].region_id))
    elif what < 0.40 and cluster.servers:
        server = rng.choice(sorted(cluster.servers))
        rates = [RegionRates(r, rng.random() * 50, 1, 0, 1 << 20, 1 << 30) for r in cluster.servers[server].serving]
        cluster.event("loads", server, rates)
    elif what < 0.43 and cluster.servers:
        server = rng.choice(sorted(cluster.servers))
        for region, epoch in list(cluster.servers[server].serving.items())[:1]:
            cluster.event("unopened", server, region, epoch, "a request could not have it opened", rng.random() < 0.1)
    else:
        cluster.write_somewhere()


def drained_until_restart(cluster: PlannedCluster) -> DrainNode:
    present = tuple(Incarnation(name, number) for name, number in sorted(cluster.numbers.items()))[:2]
    return DrainNode(tuple(one.name for one in present), until_restart=present)


def come_back(cluster: PlannedCluster, name: str) -> None:
    if all(server.name != name for server in cluster.servers):
        cluster.start(name)


def calm_down(cluster: PlannedCluster) -> None:
    """End all faults and bring all servers up: each region must be served, or closed on request."""
    cluster.faults.clear()
    cluster.refusing_writes = False
    cluster.run(cluster.now_ms + 40_000)
    for name in sorted(cluster.numbers):
        come_back(cluster, name)
        cluster.ask(DrainServer(name, on=False))
    cluster.run(cluster.now_ms + 60_000)
    asked = cluster.state.desired.requests.values()
    assert not any(isinstance(one, AssignRegion | UnassignRegion) for one in asked), "it is never answered"
    for region in sorted(cluster.infos):
        cluster.ask(AssignRegion(region))
    cluster.run(cluster.now_ms + 60_000)


@pytest.mark.parametrize("number", range(SEEDS))
def test_whatever_happens_nothing_acknowledged_is_lost(number: int) -> None:
    rng = Random(seed(17_000) + number)
    cluster = cluster_of(rng, rng.randint(1, 4), dict(FAULTS) if number % 3 else {"behind": 0.2})
    while cluster.now_ms < MINUTES * 60_000:
        cluster.run(cluster.now_ms + rng.choice((1, 5, 20, 100, 400)))
        happen(cluster, rng)
    calm_down(cluster)
    served = {region: epoch for server in cluster.servers.values() for region, epoch in server.serving.items()}
    for region, place in cluster.state.current.places.items():
        assert place.phase is Phase.OPEN, (region, place)
        assert place.owner is not None
        assert served[region] == place.owner.epoch
    assert all(one.state is ServerState.UP for one in cluster.state.current.servers.values())
    assert not cluster.state.desired.requests, "every request was answered"
    assert len(cluster.data.logs) <= 2 * len(cluster.servers), "logs that nobody needs are removed"

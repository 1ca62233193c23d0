"""A cluster in virtual time with regions whose opening ends their server, at once or a moment later.

Such a region costs a bounded number of deaths and is named, and all other regions serve.  A region that was only opened
near a death does not count as deadly, whatever other servers are killed.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from columnar.master.instructions import AssignRegion, Open, Renumber
from columnar.master.placement_records import DEATHS_DEADLY, Phase
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from tests.support.deep import seeds
from tests.support.planned_cluster import PlannedCluster, SimulatedServer
from tests.support.seeds import seed

SEEDS = seeds("seeds of deadly regions", deep=10, short=2)
REGIONS = 24
LATELY_MS = 500  # of the notes of openings


class DeadlyCluster(PlannedCluster):
    def __init__(self, infos: list[RegionInfo], rng: Random, deadly: frozenset[int], within_ms: int) -> None:
        super().__init__(infos, rng, seed=rng.randrange(1 << 30))
        self.deadly = deadly
        self.within_ms = within_ms
        self.deaths = 0  # of what was opened
        self.opened_ms: dict[Incarnation, dict[int, int]] = {}
        self._died_ms: dict[Incarnation, int] = {}
        self.after_event = lambda _outputs: self.state.check_invariants()

    def _open(self, server: SimulatedServer, ask: Open | Renumber) -> None:
        super()._open(server, ask)
        self.later(server.busy_until_ms - self.now_ms, lambda: self._has_opened(server, ask.region))

    def _has_opened(self, server: SimulatedServer, region: int) -> None:
        if self.servers.get(server.incarnation) is not server or region not in server.serving:
            return
        self.opened_ms.setdefault(server.incarnation, {})[region] = self.now_ms
        if region in self.deadly:
            self.later(self.rng.randint(0, self.within_ms), lambda: self._dies(server, region))

    def _dies(self, server: SimulatedServer, region: int) -> None:
        if self.servers.get(server.incarnation) is server and region in server.serving:
            self.deaths += 1
            self.kill(server.incarnation)

    def kill(self, server: Incarnation, *, asked: bool = False) -> None:
        if server in self.servers:
            self._died_ms[server] = self.now_ms
            self.later(300, lambda: self.start(server.name))
        super().kill(server, asked=asked)

    def kill_one_of(self, name: str) -> None:
        for server in [one for one in self.servers if one.name == name]:
            self.kill(server)

    def _is_fenced(self, server: Incarnation, asked: bool) -> None:
        died_ms = self._died_ms[server]
        lately = {one for one, at in self.opened_ms.get(server, {}).items() if died_ms - at < LATELY_MS}
        log = self.data.logs.get(server, []) if self.data is not None else []
        named = {(region, epoch) for region, epoch, _ in log}
        self.event("fenced", server, (("1", 64 * len(log)),), named, asked=asked, opened=lately)


def cluster_of(rng: Random, deadly: int, within_ms: int) -> DeadlyCluster:
    infos = [RegionInfo("t", n + 2, bytes([n]), bytes([n + 1])) for n in range(REGIONS)]
    cluster = DeadlyCluster(infos, rng, frozenset(rng.sample(range(2, REGIONS + 2), deadly)), within_ms)
    for n in range(3):
        cluster.start(f"s{n + 1}")
    cluster.later(100, lambda: cluster.event("begin_planning"))
    return cluster


@pytest.mark.parametrize("within_ms", [0, 150, 400])
@pytest.mark.parametrize("deadly", [1, 3])
def test_a_deadly_region_is_closed_and_all_others_serve(deadly: int, within_ms: int) -> None:
    for number in range(SEEDS):
        cluster = cluster_of(Random(f"{seed(31)} {number}"), deadly, within_ms)
        cluster.run(120_000)
        phases = {region: place.phase for region, place in cluster.state.current.places.items()}
        closed = {region for region, phase in phases.items() if phase is Phase.FAILED_OPEN}
        assert closed == cluster.deadly, number
        assert {phase for region, phase in phases.items() if region not in closed} == {Phase.OPEN}, number
        assert cluster.deaths <= deadly * DEATHS_DEADLY, number
        for region in closed:
            assert "died when it opened it" in cluster.state.current.places[region].attempts.failure


def test_a_region_that_was_only_near_is_not_taken_for_a_deadly_one() -> None:
    """Servers are killed at random, some shortly after others, and no region is to blame."""
    for number in range(SEEDS):
        rng = Random(f"{seed(32)} {number}")
        cluster = cluster_of(rng, 0, 0)
        at_ms = 1_000
        while at_ms < 60_000:
            at_ms += rng.choice((400, 1_500, 3_000, 5_000))
            cluster.later(at_ms, partial(cluster.kill_one_of, f"s{rng.randint(1, 3)}"))
        cluster.run(100_000)
        assert {place.phase for place in cluster.state.current.places.values()} == {Phase.OPEN}, number
        assert all(not place.attempts.deaths for place in cluster.state.current.places.values()), number


def test_a_person_may_have_it_tried_again() -> None:
    cluster = cluster_of(Random(seed(33)), 1, 0)
    cluster.run(60_000)
    (region,) = cluster.deadly
    cluster.deadly = frozenset()
    number = cluster.ask(AssignRegion(region))
    cluster.run(70_000)
    assert cluster.answers[number] is None
    assert cluster.state.current.places[region].phase is Phase.OPEN


def test_a_server_that_a_person_stops_dies_of_nothing() -> None:
    cluster = cluster_of(Random(seed(34)), 0, 0)
    cluster.run(400)
    for server in list(cluster.servers):
        cluster.kill(server, asked=True)
    cluster.run(1_000)
    assert all(not place.attempts.deaths for place in cluster.state.current.places.values())

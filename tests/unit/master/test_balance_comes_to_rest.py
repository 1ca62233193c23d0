"""Where loads are steady nothing is moved any more: two minutes of averaging, a round, and that is all."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from columnar.master.instructions import Give, Reason
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo
from tests.support.planned_cluster import PlannedCluster

SERVERS = 4
REGIONS = 80
REPORT_MS = 20_000
JUMP_MS = 10 * 60_000  # long after the starts of the servers
KNOWN_MS = 2 * 60_000  # what averages need, at most
ROUND_MS = REPORT_MS + 10_000
END_MS = 30 * 60_000


def of_steady_loads(popularity: Callable[[int, int], float]) -> PlannedCluster:
    """Run to ``END_MS``; ``popularity``: reads a second of a region, at a time."""
    infos = [RegionInfo("t", n + 2, b"%03d" % n, b"%03d" % (n + 1)) for n in range(REGIONS)]
    cluster = PlannedCluster(infos, Random(1), with_data=False)
    names = [f"s{n + 1}" for n in range(SERVERS)]
    for name in names:
        cluster.start(name)
    cluster.run(1_000)
    cluster.event("begin_planning")

    def report() -> None:
        for name in names:
            server = cluster.state.current.servers[name]
            assert server.incarnation is not None
            rates = [
                RegionRates(region, popularity(region, cluster.now_ms), 0.0, 0.0, 0, 1 << 34)
                for region in server.regions
            ]
            cluster.event("loads", server.incarnation, rates)
        cluster.later(REPORT_MS, report)

    cluster.later(REPORT_MS, report)
    cluster.run(END_MS)
    return cluster


def balanced_at(cluster: PlannedCluster) -> list[int]:
    gifts = [one for one in cluster.state.plans.decisions if isinstance(one.what, Give)]
    return [one.at_ms for one in gifts if one.what.reason is Reason.BALANCE]


def test_a_server_that_is_hardly_over_the_threshold_is_relieved_when_its_load_is_known() -> None:
    """Its share goes from 1 to 1.2005: an average with a long memory would cross 1.2 six minutes later."""
    favourite = 2

    def popularity(region: int, now_ms: int) -> float:
        return 32.648 if region == favourite and now_ms > JUMP_MS else 4.0

    cluster = of_steady_loads(popularity)
    times = balanced_at(cluster)
    assert times, "it is over the threshold"
    assert min(times) > JUMP_MS
    assert max(times) <= JUMP_MS + KNOWN_MS + ROUND_MS


def test_what_a_region_was_asked_for_long_ago_has_no_part_in_its_load() -> None:
    fallen = 2

    def popularity(region: int, now_ms: int) -> float:
        return 30_000.0 if region == fallen and now_ms <= JUMP_MS else 4.0

    cluster = of_steady_loads(popularity)
    assert cluster.state.current.places[fallen].load == 5.0
    times = [at_ms for at_ms in balanced_at(cluster) if at_ms > JUMP_MS]
    assert times, "the server that it had for itself is filled"
    assert max(times) <= JUMP_MS + KNOWN_MS + ROUND_MS

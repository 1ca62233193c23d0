"""What a master counts: moves that are done by their reason, and pauses from one owner's last answer to the next."""

from __future__ import annotations

from columnar.master.instructions import DrainServer, MoveRegion, Reason, UnassignRegion
from columnar.master.placement_records import Phase
from columnar.model.owner import Incarnation
from tests.support.operated_cluster import OperatedCluster, table_infos


def operated() -> OperatedCluster:
    return OperatedCluster(table_infos("t", 6), 3)


def counted(cluster: OperatedCluster) -> dict[Reason, tuple[int, float]]:
    """Moves, and pauses."""
    tallies = cluster.state.tallies
    return {reason: (moves, sum(tallies.pauses[reason].buckets)) for reason, moves in tallies.moves.items()}


def server_of(cluster: OperatedCluster, region: int) -> Incarnation:
    owner = cluster.state.current.places[region].owner
    assert owner is not None
    return owner.server


def test_a_start_and_a_new_table_are_no_moves() -> None:
    assert counted(operated()) == {}


def test_moves_are_counted_by_their_reason_when_they_are_done() -> None:
    cluster = operated()
    source = server_of(cluster, 2).name
    cluster.cluster.ask(MoveRegion(2, None))
    assert counted(cluster) == {}
    cluster.cluster.run(cluster.now_ms() + 1_000)
    assert server_of(cluster, 2).name != source
    assert counted(cluster) == {Reason.REQUESTED: (1, 1)}
    cluster.cluster.ask(DrainServer(server_of(cluster, 2).name))
    cluster.cluster.run(cluster.now_ms() + 2_000)
    assert counted(cluster)[Reason.DRAIN] == (3, 3)


def test_a_pause_is_as_long_as_nobody_serves() -> None:
    cluster = operated()
    died_ms = cluster.now_ms()
    cluster.cluster.kill(server_of(cluster, 2))
    cluster.cluster.run(died_ms + 1_000)
    pauses = cluster.state.tallies.pauses[Reason.DEATH]
    assert sum(pauses.buckets) == 2, "both regions of the server"
    assert 0 < pauses.seconds < 2.0


def test_a_region_that_a_person_closed_has_no_pause() -> None:
    cluster = operated()
    cluster.cluster.ask(UnassignRegion(2))
    cluster.cluster.run(cluster.now_ms() + 5_000)
    assert cluster.state.current.places[2].phase is Phase.OFFLINE
    assert counted(cluster) == {}
    assert not cluster.state.tallies.pauses

"""What people have done to a cluster: refused, shown beforehand, or done when the answer comes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from columnar.errors import CallerError, NotAllowed
from columnar.model.cluster_status_records import BEING_CHANGED
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from tests.support.operated_cluster import OperatedCluster, table_infos

T = TypeVar("T")


def operated(regions: int = 6, servers: int = 3) -> OperatedCluster:
    return OperatedCluster(table_infos("t", regions), servers)


def done(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def info_of(cluster: OperatedCluster, row: bytes) -> RegionInfo:
    return cluster.control.reports.locate_row("t", row).region.info


def server_of(cluster: OperatedCluster, row: bytes) -> str:
    return cluster.control.reports.locate_row("t", row).region.server


def everything(cluster: OperatedCluster) -> object:
    """What a dry run must leave as it is."""
    wishes = cluster.state.desired.operator_settings
    owners = {region: place.owner for region, place in cluster.state.current.places.items()}
    return (
        wishes,
        owners,
        len(cluster.state.plans.decisions),
        list(cluster.ended),
        cluster.state.current.balance.balanced_ms,
    )


def test_a_move_is_answered_when_the_region_serves() -> None:
    cluster = operated()
    source = server_of(cluster, b"b")
    target = "s1" if source != "s1" else "s2"
    before = everything(cluster)
    shown = done(cluster.control.move(info_of(cluster, b"b"), target, True))
    assert (shown.is_done, everything(cluster)) == (False, before)
    assert shown.text == f"region {info_of(cluster, b'b').encoded} of t would move from {source} to {target}"
    change = done(cluster.control.move(info_of(cluster, b"b"), target, False))
    assert (change.is_done, server_of(cluster, b"b")) == (True, target)
    assert [(one.source, one.target) for one in change.moves] == [(source, target)]
    assert cluster.control.reports.locate_row("t", b"b").region.state == "OPEN"
    assert done(cluster.control.move(info_of(cluster, b"b"), target, False)).text.endswith(f"is on {target} already")


def test_a_move_without_a_server_goes_where_its_dry_run_said() -> None:
    cluster = operated()
    source = server_of(cluster, b"b")
    (shown,) = done(cluster.control.move(info_of(cluster, b"b"), "", True)).moves
    (moved,) = done(cluster.control.move(info_of(cluster, b"b"), "", False)).moves
    assert shown.target != source
    assert server_of(cluster, b"b") == moved.target != source


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_cannot_be_is_refused_in_a_dry_run_too(dry_run: bool) -> None:
    cluster = operated()
    info, control = info_of(cluster, b"b"), cluster.control
    with pytest.raises(CallerError, match="server s9 is not up"):
        done(control.move(info, "s9", dry_run))
    with pytest.raises(CallerError, match="there is no server s9"):
        done(control.drain("s9", True, 0, dry_run))
    with pytest.raises(CallerError, match="there is no server s9; there are s1, s2, s3"):
        done(control.processes.restart("s9", dry_run))
    with pytest.raises(CallerError, match="there is no switch 'brakes'"):
        done(control.switch("brakes", True, dry_run))
    with pytest.raises(CallerError, match="dropped, split or merged meanwhile"):
        done(control.move(RegionInfo("t", 999), "s1", dry_run))


def test_a_region_is_closed_until_it_is_assigned() -> None:
    cluster = operated()
    info, before = info_of(cluster, b"b"), everything(cluster)
    assert "would be closed" in done(cluster.control.unassign(info, True)).text
    assert everything(cluster) == before
    done(cluster.control.unassign(info, False))
    assert cluster.control.reports.locate_row("t", b"b").region.state == "OFFLINE"
    assert done(cluster.control.unassign(info, False)).text.endswith("is closed already")
    with pytest.raises(CallerError, match="is not open; 'columnar assign "):
        done(cluster.control.move(info, "s1", True))
    done(cluster.control.assign(info, True))
    assert cluster.control.reports.locate_row("t", b"b").region.state == "OFFLINE"
    done(cluster.control.assign(info, False))
    assert cluster.control.reports.locate_row("t", b"b").region.state == "OPEN"
    assert done(cluster.control.assign(info, False)).text.endswith("already")


def test_a_drain_says_what_is_left() -> None:
    cluster = operated(12)
    before = everything(cluster)
    assert done(cluster.control.drain("s1", True, 0, True)).text == "4 regions would leave s1"
    assert everything(cluster) == before
    begun = done(cluster.control.drain("s1", True, 0.0, False))
    assert 0 < begun.left <= 4
    assert begun.text == f"{begun.left} regions left on s1"
    ended = done(cluster.control.drain("s1", True, 60.0, False))
    assert (ended.left, ended.text) == (0, "s1 is empty, and stays so")
    assert cluster.control.reports.cluster_status().servers[0].regions == 0
    assert done(cluster.control.drain("s1", False, 0.0, False)).text == "s1 gets regions again"
    cluster.cluster.run(cluster.now_ms() + 5_000)
    assert cluster.control.reports.cluster_status().servers[0].regions == 4


def test_the_last_server_is_neither_drained_nor_stopped() -> None:
    cluster = operated(servers=2)
    done(cluster.control.drain("s1", True, 60.0, False))
    for dry_run in (True, False):
        for work in (
            cluster.control.drain("s2", True, 0, dry_run),
            cluster.control.processes.stop("s2", dry_run),
            cluster.control.processes.restart("s2", dry_run),
        ):
            with pytest.raises(NotAllowed, match="no other server is up to take the regions of s2"):
                done(work)


def test_balance_now() -> None:
    cluster = operated(24)
    crowd = cluster.control.reports.server_regions("s1")
    cluster.rated({one.info.start: 300.0 for one in crowd})
    before = everything(cluster)
    shown = done(cluster.control.balance(True))
    assert everything(cluster) == before
    assert {one.source for one in shown.moves} == {"s1"}
    assert shown.text == f"{len(shown.moves)} regions would move"
    change = done(cluster.control.balance(False))
    assert {(one.source, one.info) for one in change.moves} <= {("s1", one.info) for one in crowd}
    assert len(change.moves) == len(shown.moves)
    with pytest.raises(NotAllowed, match="the last round are under way"):
        done(cluster.control.balance(True))
    cluster.cluster.run(cluster.now_ms() + 5_000)
    assert max(one.load for one in cluster.control.reports.cluster_status().servers) < 1_800.0
    assert done(cluster.control.balance(True)).text == "nothing would move"


def test_the_balancer_is_switched_off_and_says_so() -> None:
    cluster = operated()
    assert done(cluster.control.switch("balancer", False, True)).text == "balancer would be off, and is on"
    assert cluster.control.reports.cluster_status().is_balancing
    assert done(cluster.control.switch("balancer", False, False)).text == "balancer is off"
    assert not cluster.cluster.wishes.balancer  # in the catalogue
    assert done(cluster.control.switch("balancer", False, False)).text == "balancer was off already"
    with pytest.raises(NotAllowed, match="the balancer is off; 'columnar balancer on'"):
        done(cluster.control.balance(True))
    done(cluster.control.switch("auto-split", False, False))
    assert (cluster.cluster.wishes.auto_split, cluster.control.reports.cluster_status().is_splitting) == (False, False)


def test_a_restart_empties_the_server_and_brings_its_regions_home() -> None:
    cluster = operated(12)
    at_home = [one.info for one in cluster.control.reports.server_regions("s2")]
    before = everything(cluster)
    assert done(cluster.control.processes.restart("s2", True)).text == (
        "4 regions would leave s2, and come back to its next start"
    )
    assert everything(cluster) == before
    change = done(cluster.control.processes.restart("s2", False))  # stop_server itself holds that the server is empty
    assert cluster.ended == ["stop s2.1", "start s2"]
    assert change.text == "s2 is up again as s2.2, in the place of s2.1; 4 regions at home again"
    assert [one.info for one in cluster.control.reports.server_regions("s2")] == at_home
    assert cluster.state.desired.operator_settings.drained == frozenset()
    assert cluster.state.current.servers["s2"].failures.deaths_ms == ()


def test_a_server_that_stopped_is_started_by_a_restart() -> None:
    cluster = operated()
    change = done(cluster.control.processes.stop("s3", False))
    assert change.text == "s3.1 has stopped; 'columnar restart s3' starts it again"
    assert [one.state for one in cluster.control.reports.cluster_status().servers] == ["up", "up", "down"]
    with pytest.raises(NotAllowed, match="s3 is down"):
        done(cluster.control.processes.stop("s3", False))
    assert done(cluster.control.processes.restart("s3", True)).text == "s3 would be started"
    assert (
        done(cluster.control.processes.restart("s3", False)).text == "s3 is up again as s3.2; 2 regions at home again"
    )


def test_a_drained_server_stays_drained_over_its_restart() -> None:
    cluster = operated()
    done(cluster.control.drain("s1", True, 60.0, False))
    assert done(cluster.control.processes.restart("s1", False)).text == (
        "s1 is up again as s1.2, in the place of s1.1; it is drained, and gets no region"
    )
    assert cluster.control.reports.cluster_status().servers[0].is_drained


def test_a_restart_does_not_wait_for_regions_that_stay_where_they_are() -> None:
    """A region that a person moved stays an hour, also where its server comes back."""
    cluster = operated()
    row = next(row for row in (b"a", b"b", b"c") if server_of(cluster, row) != "s3")
    done(cluster.control.move(info_of(cluster, row), "s3", False))
    there = len(cluster.control.reports.server_regions("s3"))
    before_ms = cluster.now_ms()
    change = done(cluster.control.processes.restart("s3", False))
    assert change.text == (
        f"s3 is up again as s3.2, in the place of s3.1; {there - 1} regions at home again; 1 region not moved again so "
        "soon"
    )
    assert cluster.now_ms() - before_ms < 10_000


def test_one_server_at_a_time() -> None:
    cluster = operated()

    async def both() -> None:
        first = asyncio.ensure_future(cluster.control.processes.restart("s1", False))
        await asyncio.sleep(0)
        with pytest.raises(NotAllowed, match="s1 is being stopped or restarted; wait for it"):
            await cluster.control.processes.stop("s2", False)
        await first
        await cluster.control.processes.stop("s2", False)

    done(both())
    assert cluster.ended == ["stop s1.1", "start s1", "stop s2.1"]


def notes(cluster: OperatedCluster, server: str) -> tuple[str, ...]:
    return next(one.notes for one in cluster.control.reports.cluster_status().servers if one.name == server)


async def over(cluster: OperatedCluster, server: str) -> None:
    while BEING_CHANGED in notes(cluster, server):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)


def test_a_server_whose_own_client_asks_is_restarted_and_stopped_after_the_answer() -> None:
    """It answers its clients before it stops: an answer at the end would wait for itself."""
    cluster = operated()

    async def play() -> None:
        change = await cluster.control.processes.restart("s1", False, "server s1.1")
        assert (change.text, change.is_done) == ("s1.1 begins to restart", False)
        assert cluster.ended == []
        assert notes(cluster, "s1") == (BEING_CHANGED,)
        with pytest.raises(NotAllowed, match="s1 is being stopped or restarted; wait for it"):
            await cluster.control.processes.stop("s2", False, "server s2.1")
        await over(cluster, "s1")
        assert cluster.ended == ["stop s1.1", "start s1"]
        assert (await cluster.control.processes.restart("s1", False, "server s2.1")).is_done
        assert not (await cluster.control.processes.stop("s3", False, "server s3.1")).is_done
        await over(cluster, "s3")

    done(play())
    assert cluster.ended == ["stop s1.1", "start s1", "stop s1.2", "start s1", "stop s3.1"]


def test_a_restart_that_nobody_waits_for_says_why_it_failed() -> None:
    cluster = operated()
    cluster.cluster.event("pause_table_transitions", "t")

    async def play() -> None:
        await cluster.control.processes.restart("s1", False, "server s1.1")
        await over(cluster, "s1")
        (note,) = notes(cluster, "s1")
        assert note.startswith("its last stop or restart failed: s1 is not stopped: 2 regions left on it")
        assert cluster.ended == []

    done(play())


def test_a_server_that_does_not_get_empty_is_not_stopped() -> None:
    cluster = operated()
    cluster.cluster.event("pause_table_transitions", "t")  # a snapshot is taken: nothing moves
    with pytest.raises(NotAllowed, match="s1 is not stopped: 2 regions left on it"):
        done(cluster.control.processes.restart("s1", False))
    assert cluster.ended == []
    assert cluster.state.desired.operator_settings.drained == frozenset()


def test_a_fence_is_a_death() -> None:
    cluster = operated()
    assert done(cluster.control.processes.fence("s1", True)).text == (
        "s1.1 would be ended at once, and 2 regions go to other owners"
    )
    assert cluster.ended == []
    change = done(cluster.control.processes.fence("s1", False))
    assert change.text == "s1.1 answers nothing any more; 2 regions for other owners"
    assert "s1.1 is fenced: a person had it fenced" in {one.text for one in cluster.control.reports.decisions()}
    assert len(cluster.state.current.servers["s1"].failures.deaths_ms) == 1


def test_a_status_begins_with_what_the_shell_cannot_do() -> None:
    cluster = operated()
    cluster.said = ("the data folder does not answer",)
    cluster.state.current.unread_logs[Incarnation("s1", 1)] = "it is not at its place"
    first, second = cluster.control.reports.cluster_status().remarks
    assert first == "the data folder does not answer"
    assert "it is not at its place" in second
    assert first not in cluster.control.reports.cluster_status().faults, "health checks would end what only waits"

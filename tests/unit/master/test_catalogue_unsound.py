"""A catalogue that cannot be written: everybody reads why, and nobody who asks for something waits for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from columnar.errors import CallerError, NotAllowed
from columnar.master.instructions import DrainServer
from columnar.master.placement_records import Phase
from columnar.model.cluster_status_records import Change
from tests.support.operated_cluster import OperatedCluster, table_infos
from tests.support.planned_cluster import Delays

FULL = "the disk is full"
NEVER_MS = 1 << 40


def operated() -> OperatedCluster:
    return OperatedCluster(table_infos("t", 6), 3)


def remark(seconds: float) -> str:
    return (
        f"for {seconds:.1f} s the catalogue could not be written: {FULL}. It is tried every second; until then no "
        "region gets another owner, no server is started, and no wish or table is changed"
    )


def requests(cluster: OperatedCluster, dry_run: bool) -> list[Coroutine[Any, Any, Change]]:
    control = cluster.control
    info = control.reports.locate_row("t", b"b").region.info
    return [
        control.move(info, "", dry_run),
        control.assign(info, dry_run),
        control.unassign(info, dry_run),
        control.drain("s2", True, 60.0, dry_run),
        control.drain("s2", False, 0.0, dry_run),
        control.switch("balancer", False, dry_run),
        control.switch("auto-split", False, dry_run),
        control.processes.restart("s2", dry_run),
        control.processes.stop("s2", dry_run),
    ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_requests_are_refused_at_once_and_change_nothing(dry_run: bool) -> None:
    cluster = operated()
    before = cluster.state.desired.operator_settings
    cluster.cluster.event("unsound", FULL)
    now_ms = cluster.now_ms()
    for request in requests(cluster, dry_run):
        with pytest.raises(CallerError) as refused:
            asyncio.run(request)
        assert refused.value.text == f"nothing was done: {remark(0)}"
    assert cluster.now_ms() == now_ms, "nobody waited"
    assert (cluster.state.desired.operator_settings, cluster.ended) == (before, [])
    cluster.cluster.event("sound")
    for request in requests(cluster, True):
        asyncio.run(request)


@pytest.mark.parametrize("is_written", [True, False])
def test_a_wish_under_way_is_answered_when_the_catalogue_fails(is_written: bool) -> None:
    """Once: ``PlannedCluster`` holds that no request is answered twice."""
    cluster = operated()
    planned = cluster.cluster
    planned.delays = Delays(write_ms=(500, 500))
    number = planned.ask(DrainServer("s2"))
    planned.event("unsound", FULL)
    assert planned.answers[number] == (
        f"it is not known whether the wish will be kept ('columnar servers' shows it later): {remark(0)}"
    )
    planned.refusing_writes = not is_written
    planned.event("sound")
    planned.run(cluster.now_ms() + 600)
    kept = frozenset({"s2"} if is_written else ())
    assert cluster.state.desired.operator_settings.drained == planned.wishes.drained == kept


def test_regions_whose_owner_row_is_not_written_say_so() -> None:
    cluster = operated()
    planned = cluster.cluster
    planned.delays = Delays(write_ms=(NEVER_MS, NEVER_MS))
    victim = cluster.control.reports.locate_row("t", b"b").region
    incarnation = cluster.state.current.servers[victim.server].incarnation
    assert incarnation is not None
    planned.kill(incarnation)
    planned.run(cluster.now_ms() + 1_000)
    waiting = [one for one in cluster.state.current.places.values() if one.phase is Phase.WRITING]
    assert victim.info in [one.info for one in waiting]
    target = cluster.control.reports.locate_row("t", b"b").region.server
    (said, *_) = cluster.control.reports.locate_row("t", b"b").remarks
    assert said.startswith("its owner row is not written: the write has run for ")
    assert said.endswith(f" s, and {target} opens it then"), "the server was told nothing"

    planned.event("unsound", FULL)
    planned.run(cluster.now_ms() + 300_000)
    assert cluster.control.reports.locate_row("t", b"b").remarks == (f"its owner row is not written: {remark(300)}",)
    quiet = next(one.info for one in cluster.state.current.places.values() if one.phase is Phase.OPEN)
    assert cluster.control.reports.locate_row("t", quiet.start).remarks == (remark(300),)
    look = cluster.control.reports.cluster_status()
    assert (look.is_writable, look.remarks[0]) == (False, remark(300))
    assert {one.why for one in cluster.control.reports.transitions()} == {
        f"its owner row is not written: the catalogue cannot be; {incarnation} is gone"
    }
    planned.event("sound")
    look = cluster.control.reports.cluster_status()
    assert (look.is_writable, look.remarks) == (True, ())


def test_a_failure_upon_a_failure_is_as_old_as_the_first() -> None:
    cluster = operated()
    cluster.cluster.event("unsound", FULL)
    cluster.cluster.run(cluster.now_ms() + 5_000)
    cluster.cluster.event("unsound", "the disk fails")
    assert cluster.control.reports.cluster_status().remarks[0] == remark(5)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_server_that_was_to_be_stopped_is_not_left_drained() -> None:
    """The catalogue never hears of it, so a master that dies meanwhile, or whose disk is full, leaves no drain."""
    cluster = operated()
    cluster.cluster.event("pause_table_transitions", "t")  # a snapshot is taken: the server does not get empty

    async def scenario() -> None:
        stopping = asyncio.ensure_future(cluster.control.processes.stop("s1", False))
        await cluster.until(lambda: cluster.state.desired.leaving == {"s1"})
        await turns()  # it waits for the server
        cluster.cluster.event("unsound", FULL)
        cluster.cluster.run(cluster.now_ms() + 31_000)
        assert cluster.control.reports.cluster_status().servers[0].notes[:2] == (
            "it is to stop, 2 regions left on it",
            "it is being stopped or restarted",
        )
        await turns()  # it waits no longer
        with pytest.raises(NotAllowed, match="s1 is not stopped: 2 regions left on it"):
            await stopping
        cluster.cluster.event("sound")
        cluster.cluster.run(cluster.now_ms() + 1_000)

    asyncio.run(scenario())
    assert cluster.state.desired.drained == cluster.cluster.wishes.drained == frozenset()
    assert cluster.ended == []

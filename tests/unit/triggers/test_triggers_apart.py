"""Triggers over several servers: waits vouched for by owners, through moves and deaths; looks that are merged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_requests import LogAgain, TriggerStatuses, Waited, WaitForDelivery
from columnar.errors import TableNotEnabled
from columnar.model.flow_status import TriggerStatus, merged
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from columnar.model.route import Route
from columnar.regions.log.change_record import ChangeRecord
from columnar.triggers import cluster_triggers
from columnar.triggers.cluster_triggers import ClusterTriggers
from columnar.triggers.trigger_peer_handlers import TriggerPeerHandlers

HERE, OTHER, THIRD = Incarnation("s1", 1), Incarnation("s2", 1), Incarnation("s3", 1)
LOW, HIGH = RegionInfo("t", 5, b"", b"m"), RegionInfo("t", 6, b"m", b"")
DELIVERED, TOO_LATE, ELSEWHERE = Waited(True, False), Waited(False, False), Waited(False, True)


def on_a_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        asyncio.run(scenario())

    test.__doc__ = scenario.__doc__
    return test


def look(name: str = "links", **more: Any) -> TriggerStatus:
    fields = {"lag_changes": 1, "lag_seconds": 0.5, "parked_rows": 1, "dead_letters": 2}
    return TriggerStatus(name, "t", "m:f", **{**fields, **more})


class Gateway:
    """Owners that answer what the test says, of regions that the test moves."""

    local_server = HERE

    def __init__(self) -> None:
        self.routes = [Route(LOW, HERE, 1), Route(HIGH, OTHER, 1)]
        self.answers: dict[Incarnation, list[Any]] = {}  # the last one stays
        self.hung: set[Incarnation] = set()
        self.asked: list[tuple[Incarnation, Any]] = []
        self.changing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.apart = ClusterTriggers(cast(TriggerPeerHandlers, self), cast(Any, self), lambda: [HERE, OTHER, THIRD])

    def routes_of(self, _table: str) -> Sequence[Route]:
        return self.routes

    def owner_of(self, _table: str, row: bytes) -> Route | None:
        return next(route for route in self.routes if route.region.contains_row(row))

    def change(self) -> asyncio.Future[None]:
        return self.changing

    def moved(self, routes: list[Route]) -> None:
        self.routes = routes
        changed, self.changing = self.changing, asyncio.get_running_loop().create_future()
        changed.set_result(None)

    async def request_server(self, server: Incarnation, message: Any, _size_bytes: int = 0) -> Any:
        self.asked.append((server, message))
        await asyncio.sleep(0)
        if server in self.hung:
            await asyncio.Event().wait()
        answers = self.answers[server]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def wait(self, message: WaitForDelivery) -> Any:
        return await self.request_server(HERE, message)

    async def trigger_statuses(self, message: TriggerStatuses) -> Any:
        return await self.request_server(HERE, message)

    async def log_again(self, message: LogAgain) -> Any:
        return await self.request_server(HERE, message)

    async def waited(self, timeout_s: float = 5.0) -> bool:
        return await asyncio.wait_for(self.apart.wait_delivered(["t"], "links", "", timeout_s), 10)


@on_a_loop
async def test_each_owner_vouches_for_its_regions() -> None:
    gateway = Gateway()
    gateway.answers = {HERE: [DELIVERED], OTHER: [DELIVERED]}
    assert await gateway.waited()
    assert [(server, ask.regions) for server, ask in gateway.asked] == [(HERE, (LOW,)), (OTHER, (HIGH,))]
    gateway.answers[OTHER] = [TOO_LATE]
    assert not await gateway.waited()


@on_a_loop
async def test_a_region_that_moved_is_asked_for_again_where_it_is_now() -> None:
    gateway = Gateway()

    def leaves() -> Waited:
        gateway.moved([Route(LOW, HERE, 1), Route(HIGH, THIRD, 2)])
        return ELSEWHERE

    gateway.answers = {HERE: [DELIVERED], OTHER: [leaves], THIRD: [DELIVERED]}
    assert await gateway.waited()
    assert [server for server, _ in gateway.asked] == [HERE, OTHER, THIRD], "what was vouched for is not asked again"


@on_a_loop
async def test_regions_that_a_split_made_during_the_wait_are_asked_for() -> None:
    gateway = Gateway()
    halves = [RegionInfo("t", 7, b"m", b"t"), RegionInfo("t", 8, b"t", b"")]

    def splits() -> Waited:
        gateway.moved([Route(LOW, HERE, 1), *(Route(half, OTHER, 1) for half in halves)])
        return ELSEWHERE

    gateway.answers = {HERE: [DELIVERED], OTHER: [splits, DELIVERED]}
    assert await gateway.waited()
    assert gateway.asked[-1][1].regions == tuple(halves)


@pytest.mark.parametrize("failure", [LinkBroke(), NotSent()], ids=["broken", "not sent"])
def test_a_death_is_waited_through_until_the_time_is_over(failure: Exception) -> None:
    @on_a_loop
    async def scenario() -> None:
        gateway = Gateway()
        gateway.answers = {HERE: [DELIVERED], OTHER: [failure]}
        assert not await gateway.waited(0.05)
        gateway.answers[OTHER] = [failure, failure, DELIVERED]
        assert await gateway.waited()

    scenario()


@on_a_loop
async def test_an_error_of_an_owner_ends_the_wait() -> None:
    gateway = Gateway()
    gateway.answers = {HERE: [DELIVERED], OTHER: [TableNotEnabled("t")]}
    with pytest.raises(TableNotEnabled):
        await gateway.waited()


def test_looks_are_merged_and_a_server_that_is_silent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_triggers, "STATUS_TIMEOUT_S", 0.05)

    @on_a_loop
    async def scenario() -> None:
        gateway = Gateway()
        more = (look(lag_changes=4, last_error="no"), look("more"))
        gateway.answers = {HERE: [(look(),)], OTHER: [more], THIRD: [NotSent()]}
        looks, silent = await gateway.apart.trigger_statuses()
        found = [(one.name, one.lag_changes, one.dead_letters, one.last_error) for one in looks]
        assert found == [("links", 5, 4, "no"), ("more", 1, 2, "")]
        assert silent == ["s3.1 (its link has ended)"]
        gateway.hung.add(OTHER)
        looks, silent = await gateway.apart.trigger_statuses()
        assert ([one.name for one in looks], silent) == (["links"], ["s2.1", "s3.1 (its link has ended)"])

    scenario()


def test_the_numbers_of_all_servers_are_those_of_one() -> None:
    one, other = look(lag_seconds=7.0), look(state="paused", lag_seconds=2.0, parked_rows=3)
    (found,) = merged([one, other])
    assert found == look(state="paused", lag_changes=2, lag_seconds=7.0, parked_rows=4, dead_letters=4)


@on_a_loop
async def test_a_dead_row_is_logged_again_by_its_owner() -> None:
    gateway = Gateway()
    gateway.answers = {HERE: [True], OTHER: [False, NotSent(), True]}
    await gateway.apart.log_again("t", ChangeRecord(b"x", 0, (), (), "links"))
    assert [(server, ask.row) for server, ask in gateway.asked] == [(OTHER, b"x")] * 3

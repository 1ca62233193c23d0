"""Loops of the house with little state: one exception at any of their calls, and they do their work all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from columnar.errors import HostError
from columnar.flows import log_upkeep, region_openings
from columnar.flows.region_openings import RegionOpenings
from columnar.master import region_changes, view_changes, view_generations
from columnar.master.placement_records import Phase
from columnar.master.region_changes import RegionChanges
from columnar.master.view_changes import ViewChanges
from columnar.master.view_generations import ViewGenerations
from columnar.model.owner import Incarnation
from columnar.regions import region_upkeep
from columnar.regions import server as region_server
from columnar.regions.region_upkeep import RegionUpkeep
from columnar.regions.server import AsyncWrites
from columnar.roles import (
    cluster_host,
    cluster_loops,
    hosted_tables,
    meta_region,
    route_broadcast,
    serving,
    state_events,
    transition_requests,
)
from columnar.roles.meta_region import MetaRegion
from columnar.roles.serving import Serving
from columnar.runtime.background import Background
from columnar.wire.tls_protocol import Handshakes
from tests.support.hosted_cluster import House, two_servers
from tests.support.injected_faults import Calls, survived
from tests.unit.triggers.test_dispatcher import Bench
from tests.unit.triggers.test_triggers_survive import Worker

Expected = Callable[[], dict[str, int]]


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


def failing_once(then: Callable[..., Any]) -> Callable[..., Any]:
    """Raises at its first call."""
    calls: list[object] = []

    def called(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) == 1:
            raise KeyError("mine")
        return then(*arguments, **named)

    return called


# --- flows ---------------------------------------------------------------------------------------------


async def cursors_are_saved(calls: Calls) -> None:
    bench = Bench(3)
    await bench.start()
    await bench.add("t")
    worker = asyncio.ensure_future(Worker(bench.main).work())
    try:
        with calls.armed():
            await bench.put(b"000", b"005", b"010", b"020")
            assert await bench.keeper.wait_delivered("t", "", 10.0)
            await until(lambda: not any(one.dirty for one in bench.dispatcher.intake.consumers_of("t")))
        await bench.put(b"000")
        assert await bench.keeper.wait_delivered("t", "", 10.0)
        await until(lambda: not any(one.dirty for one in bench.dispatcher.intake.consumers_of("t")))
        logs = [one.region.log for one in bench.dispatcher.intake.consumers_of("t")]
        await until(lambda: all(log.counts.needed[0] <= 1 for log in logs))
    finally:
        worker.cancel()
        await bench.close()


def test_cursors_are_saved(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    monkeypatch.setattr(log_upkeep, "SAVE_S", 0.001)
    monkeypatch.setattr(log_upkeep, "SAVED_AT_ONCE", 2)
    assert survived(cursors_are_saved, log_upkeep) > 20
    assert expected_faults()


def test_regions_with_followers_are_opened(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        opened: list[str] = []
        infos = [SimpleNamespace(encoded=name, table="t", region_id=at) for at, name in enumerate("abc")]
        served = SimpleNamespace(regions=infos, enabled=True)

        async def opens(_served: object, info: Any) -> None:
            opened.append(info.encoded)
            if info.encoded == "b" and opened.count("b") < 3:
                raise KeyError("mine")

        server: Any = SimpleNamespace(
            tables=SimpleNamespace(find=lambda _name: served), serving=lambda _info: served, opened=opens
        )
        background = Background("background work of followers")
        openings = RegionOpenings(server, lambda _table: True, background)
        openings.start(["t"])
        await until(lambda: opened.count("b") == 3)
        assert sorted(opened) == ["a", "b", "b", "b", "c"]
        background.close()

    monkeypatch.setattr("columnar.flows.delivery_state.FIRST_PAUSE_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {region_openings.LOOP: 2}


# --- regions -------------------------------------------------------------------------------------------


def test_unsynced_writes_of_all_regions_are_synced(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        synced: list[int] = []
        syncs = failing_once(lambda: synced.append(1))
        regions = {at: SimpleNamespace(syncs=SimpleNamespace(sync_async_writes=syncs)) for at in range(3)}
        hosting: Any = SimpleNamespace(serving=regions, state=SimpleNamespace(is_stopping=False))
        writes = AsyncWrites(hosting)
        writes.happened()
        await until(lambda: len(synced) == 2)
        writes.happened()
        await until(lambda: len(synced) == 5)

    monkeypatch.setattr(region_server, "ASYNC_SYNC_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {"syncs of ASYNC_WAL writes": 1}


def test_regions_are_swept(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        swept: list[str] = []

        async def sweep_one(_self: object, region: Any, *_: object) -> None:
            swept.append(region)
            if len(swept) == 1:
                raise KeyError("mine")

        monkeypatch.setattr(RegionUpkeep, "_sweep_one", sweep_one)
        server: Any = SimpleNamespace(all_open=failing_once(lambda: ["a", "b"]))
        upkeep = RegionUpkeep(server)
        upkeep.start_sweeping()
        await until(lambda: len(swept) >= 4)
        upkeep.stop()
        assert swept[:4] == ["a", "b", "a", "b"]

    monkeypatch.setattr(region_upkeep, "SWEEP_EVERY_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {region_upkeep.LOOP: 2}


# --- the master ----------------------------------------------------------------------------------------


def test_large_regions_are_split(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        looks: list[int] = []

        async def split(_self: object) -> bool:
            looks.append(1)
            if len(looks) == 1:
                raise KeyError("mine")
            return False

        monkeypatch.setattr(RegionChanges, "split_the_largest", split)
        nothing: Any = SimpleNamespace()
        changes = RegionChanges.__new__(RegionChanges)
        changes._stopping, changes._split_check_due, changes._owner = False, asyncio.Event(), nothing
        looking = asyncio.ensure_future(changes._run_split_checks())
        await until(lambda: len(looks) > 2)
        looking.cancel()

    monkeypatch.setattr(region_changes, "SPLIT_CHECK_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {region_changes.LOOP: 1}


def test_generations_of_views_are_dropped(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        sweeps: list[int] = []

        async def sweep(_self: object) -> None:
            sweeps.append(1)
            if len(sweeps) == 1:
                raise KeyError("mine")

        monkeypatch.setattr(ViewGenerations, "sweep", sweep)
        generations = ViewGenerations.__new__(ViewGenerations)
        sweeping = asyncio.ensure_future(generations._sweep_for_ever())
        await until(lambda: len(sweeps) > 2)
        sweeping.cancel()

    monkeypatch.setattr(view_generations, "SWEEP_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {"sweeps of generations of views": 1}


def test_views_that_are_built_go_live(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        looks: list[int] = []

        async def look(_self: object) -> None:
            looks.append(1)
            if len(looks) == 1:
                raise KeyError("mine")

        monkeypatch.setattr(ViewChanges, "check_view_builds", look)
        changes = ViewChanges.__new__(ViewChanges)
        changes._is_due = True
        await changes._run_build_checks()
        assert len(looks) == 2, "it looks again by itself"

    monkeypatch.setattr(view_changes, "CHECK_RETRY_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {"looks at the builds of views": 1}


def test_the_catalogue_is_repaired(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        repaired: list[str] = []

        async def written(_self: object, _region: object) -> None:
            pass

        monkeypatch.setattr(MetaRegion, "_written_anew", written)
        region: Any = SimpleNamespace()
        meta = MetaRegion(failing_once(lambda: region))
        meta.on_sound = failing_once(lambda: None)

        async def fails() -> None:
            raise KeyError("mine")

        async def undone() -> None:
            repaired.append("undone")

        meta.on_repaired += [fails, undone]
        meta._failed(HostError("full"))
        await meta.sound()
        await until(lambda: repaired)
        assert meta.region is region

    monkeypatch.setattr(meta_region, "RETRY_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {meta_region.LOOP: 3}


async def _all_open(house: House, infos: list[Any], server: Incarnation) -> None:
    def are_open() -> bool:
        return all(
            house.place(info).phase is Phase.OPEN and house.host.tables.owner_of(info) == server for info in infos
        )

    await until(are_open)


async def a_death_of_a_server(calls: Calls) -> None:
    house, one, other = await two_servers()
    infos = await house.create([b"m"])
    with calls.armed():
        asyncio.get_running_loop().call_soon(house.kill, one.here)
        await until(lambda: one.here not in house.servers)
        for _ in range(3):
            await house.rest()
            house.host._ticking.cancel()
            house.host._ticking.soon()
        await _all_open(house, infos, other.here)
    await house.rest()
    assert {house.host.tables.owner_of(info) for info in infos} == {other.here}
    house.host.stop()
    await house.host.close()


def test_the_regions_of_a_dead_server_are_served_again(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Expected
) -> None:
    monkeypatch.setattr(state_events, "AGAIN_S", 0.001)
    guards = (
        "-> StateEvents.event",
        "-> StateEvents._carry_out",
        "-> retry_work",
    )  # no output is lost behind their beginning
    modules = (cluster_host, hosted_tables, route_broadcast, state_events, transition_requests)
    assert survived(a_death_of_a_server, *modules, but=guards) > 10
    assert expected_faults()


def test_servers_are_looked_at_after_an_exception(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        looks: list[int] = []
        watch = cluster_loops.ServerWatch(lambda: 0, lambda _server: False, lambda *_dead: None, lambda: False)
        watch.joined(Incarnation("s1", 1))
        liveness = watch._liveness
        assert liveness is not None
        look = liveness.check_liveness
        monkeypatch.setattr(
            liveness, "check_liveness", failing_once(lambda *args, **named: (looks.append(1), look(*args, **named))[1])
        )
        watch._check_step.cancel()
        watch._check_step.soon()
        await until(lambda: looks)
        assert watch._check_step.is_planned
        watch.stop()

    asyncio.run(run())
    assert expected_faults() == {cluster_loops.WATCH: 1}


# --- the roles -----------------------------------------------------------------------------------------


def test_scanners_expire(monkeypatch: pytest.MonkeyPatch, expected_faults: Expected) -> None:
    async def run() -> None:
        expired: list[int] = []
        role = Serving.__new__(Serving)
        role.scanners = SimpleNamespace(expire=failing_once(lambda: expired.append(1)))  # type: ignore[assignment]
        role._expiring = serving.PlannedStep("expiry of scanners", role._sweep_scanners)
        role._expiring.soon()
        await until(lambda: len(expired) > 1)
        role._expiring.cancel()

    monkeypatch.setattr(serving, "SCANNER_SWEEP_S", 0.001)
    asyncio.run(run())
    assert expected_faults() == {"expiry of scanners": 1}


def test_a_handshake_that_meets_an_exception_holds_up_no_other(expected_faults: Expected) -> None:
    class Shake:
        def __init__(self, step: Callable[[], Any]) -> None:
            self.step = step
            self.refusals: list[str] = []

        def refuse(self, why: str) -> None:
            self.refusals.append(why)

    async def run() -> None:
        stepped: list[int] = []
        held = Handshakes()
        steps = failing_once(lambda: stepped.append(1))
        shakes = [Shake(steps), Shake(steps), Shake(steps)]
        for shake in shakes:
            held.begin_handshake(shake)
            held.step_soon(shake)
        await until(lambda: len(stepped) == 2)
        assert [len(shake.refusals) for shake in shakes] == [1, 0, 0]
        for shake in shakes:
            held.end(shake)

    asyncio.run(run())
    assert expected_faults() == {"TLS handshakes": 1}

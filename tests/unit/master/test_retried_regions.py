"""Regions that stay closed for a cause that may pass are tried again; a region that is not closed ends its server."""

from __future__ import annotations

from random import Random

import pytest

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import (
    AssignRegion,
    Close,
    Fence,
    MoveRegion,
    NotifyServer,
    Open,
    Output,
    UnassignRegion,
    Wake,
    Write,
)
from columnar.master.placement_records import OPENING_TRIES, RETRY_PAUSES_MS, TRIED_KEPT, Phase
from columnar.master.transitions import CLOSING_MS
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo
from tests.support.deep import seeds

NAMES = ("s1", "s2", "s3")
FULL = "the disk is full"


class Cluster:
    """Servers that do at once what they are told; time passes from wake to wake."""

    def __init__(self, regions: int) -> None:
        infos = [RegionInfo("t", n + 2, bytes([n + 1]), bytes([n + 2])) for n in range(regions)]
        self.state = ClusterState([(info, None) for info in infos], {}, OperatorSettings(), Random(1))
        self.now_ms = 0
        self.failing: dict[int, tuple[str, bool]] = {}  # why a region cannot be opened, and whether it is damaged
        self.hanging: set[int] = set()  # regions that are not closed
        self.tries: dict[int, list[int]] = {}  # when
        self.fenced: list[Fence] = []
        self._wake_ms = 0
        for name in NAMES:
            self.state.joined(Incarnation(name, 1), 0)
            self.do(self.state.hello(Incarnation(name, 1), {}, {}, 0))
        self.do(self.state.begin_planning(0))

    def do(self, outputs: list[Output]) -> None:
        for one in outputs:
            if isinstance(one, Write):
                self.do(self.state.row_written(one.number, self.now_ms))
            elif isinstance(one, Wake):
                self._wake_ms = one.at_ms
            elif isinstance(one, Fence):
                self.fenced.append(one)
            elif isinstance(one, NotifyServer):
                self._told(one)
        self.state.check_invariants()

    def _told(self, tell: NotifyServer) -> None:
        region = tell.request.region
        if isinstance(tell.request, Close):
            if region not in self.hanging:
                self.do(self.state.closed(tell.server, region, tell.request.epoch, self.now_ms))
            return
        assert isinstance(tell.request, Open)
        self.tries.setdefault(region, []).append(self.now_ms)
        if region in self.failing:
            why, is_damaged = self.failing[region]
            epoch = tell.request.owner.epoch
            self.do(self.state.failed(tell.server, region, epoch, why, is_damaged, self.now_ms))
        else:
            self.do(self.state.opened(tell.server, region, tell.request.owner.epoch, self.now_ms))

    def run(self, until_ms: int) -> None:
        while self._wake_ms <= until_ms:
            self.now_ms = max(self.now_ms + 1, self._wake_ms)
            self.do(self.state.tick(self.now_ms))
        self.now_ms = until_ms

    def phases(self) -> set[Phase]:
        return {place.phase for place in self.state.current.places.values()}


def failing(regions: int = 1, *, why: str = FULL, is_damaged: bool = False) -> Cluster:
    """Of which none can be opened any more."""
    cluster = Cluster(regions)
    cluster.failing = dict.fromkeys(cluster.state.current.places, (why, is_damaged))
    cluster.tries.clear()
    for region in list(cluster.failing):
        owner = cluster.state.current.places[region].owner
        assert owner is not None
        unopened = cluster.state.unopened(owner.server, region, owner.epoch, why, is_damaged, cluster.now_ms)
        cluster.do(unopened)
    return cluster


def test_a_region_that_the_host_keeps_closed_is_tried_with_growing_pauses_for_ever() -> None:
    cluster = failing()
    cluster.run(3_600_000)
    assert cluster.phases() == {Phase.FAILED_OPEN}
    (times,) = cluster.tries.values()
    pauses = [
        after - before for before, after in zip(times[OPENING_TRIES - 2 :], times[OPENING_TRIES - 1 :], strict=False)
    ]
    for pause, least_ms in zip(pauses, RETRY_PAUSES_MS, strict=False):
        assert least_ms <= pause <= least_ms + 2_000
    assert max(pauses) <= RETRY_PAUSES_MS[-1] + 2_000
    assert len(cluster.state.current.places[2].attempts.tried) <= TRIED_KEPT
    cluster.failing.clear()
    cluster.run(3_600_000 + RETRY_PAUSES_MS[-1] + 2_000)
    assert cluster.phases() == {Phase.OPEN}
    assert cluster.state.current.places[2].attempts.rounds == 0


def test_a_region_that_opens_again_has_all_others_tried_at_once() -> None:
    cluster = failing(seeds("regions that cannot be opened", deep=240, short=30))
    cluster.run(200_000)
    assert cluster.phases() == {Phase.FAILED_OPEN}
    cluster.failing.clear()
    cluster.do(cluster.state.add_request(1, AssignRegion(2), cluster.now_ms))
    cluster.run(cluster.now_ms + 6_000)
    assert cluster.phases() == {Phase.OPEN}


def test_a_disk_that_takes_writes_again_has_them_tried_at_once() -> None:
    cluster = failing(5)
    cluster.do(cluster.state.unsound(FULL, cluster.now_ms))
    cluster.run(200_000)
    cluster.failing.clear()
    cluster.do(cluster.state.sound(cluster.now_ms))
    cluster.run(cluster.now_ms + 1_000)
    assert cluster.phases() == {Phase.OPEN}


def test_damaged_data_waits_for_a_person() -> None:
    cluster = failing(why="a block is damaged", is_damaged=True)
    cluster.run(3_600_000)
    assert cluster.tries == {}, "each server would find the same"
    cluster.failing.clear()
    cluster.do(cluster.state.add_request(1, AssignRegion(2), cluster.now_ms))
    assert cluster.phases() == {Phase.OPEN}


def test_a_region_that_a_person_unassigned_meanwhile_stays_closed() -> None:
    cluster = failing()
    cluster.run(60_000)
    cluster.failing.clear()
    cluster.do(cluster.state.add_request(1, UnassignRegion(2), cluster.now_ms))
    cluster.run(600_000)
    assert cluster.phases() == {Phase.OFFLINE}


@pytest.mark.parametrize("why", ["a person moves it", "it cannot be opened"])
def test_a_server_that_does_not_close_a_region_is_ended(why: str) -> None:
    """Nobody else may open the region before: it stood in CLOSING for ever."""
    cluster = Cluster(3)
    owner = cluster.state.current.places[2].owner
    assert owner is not None
    cluster.hanging = {2}
    if why == "a person moves it":
        target = next(name for name in NAMES if name != owner.server.name)
        cluster.do(cluster.state.add_request(1, MoveRegion(2, target), cluster.now_ms))
    else:
        cluster.do(cluster.state.unopened(owner.server, 2, owner.epoch, FULL, False, cluster.now_ms))
    cluster.run(CLOSING_MS - 2_000)
    assert cluster.fenced == []
    cluster.run(CLOSING_MS + 5_000)
    (fence,) = cluster.fenced
    assert fence.server == owner.server
    assert "has not closed region" in fence.why
    cluster.do(cluster.state.fenced(owner.server, (), (), cluster.now_ms))
    cluster.run(cluster.now_ms + 2_000)
    assert cluster.phases() == {Phase.OPEN}

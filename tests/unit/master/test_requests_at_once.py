"""Requests of two people at once about the same regions: each hears what became of its own, as of one process."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Answer, Merge, MergeRegions, NotifyServer, Output, Split, SplitRegion, Write
from columnar.master.requests import GONE, regions_changed, regions_of
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo

S1 = Incarnation("s1", 2)
INFOS = [RegionInfo("t", 2, b"", b"g"), RegionInfo("t", 3, b"g", b"p"), RegionInfo("t", 4, b"p", b"")]
CHANGES = [
    SplitRegion(2, b"b"),
    SplitRegion(2, b"c"),
    SplitRegion(3),
    MergeRegions(2, 3),
    MergeRegions(3, 4),
]


def of(kind: type, outputs: list[Output]) -> list:
    return [output for output in outputs if isinstance(output, kind)]


def opened() -> ClusterState:
    """Three regions that S1 serves, and an earlier start of it had."""
    dead = Incarnation("s1", 1)
    state = ClusterState([(info, Owner(dead, 8)) for info in INFOS], {}, OperatorSettings(), Random(1))
    state.fenced(dead, (("1", 64),), set(), 0)
    state.joined(S1, 0)
    state.hello(S1, {}, {}, 0)
    for write in of(Write, state.begin_planning(0)):
        for tell in of(NotifyServer, state.row_written(write.number, 10)):
            state.opened(S1, tell.request.region, tell.request.owner.epoch, 20)
    for write in of(Write, state.tick(1_100)):
        state.row_written(write.number, 1_200)
    assert all(place.server == "s1" for place in state.current.places.values())
    return state


def successors(change: Split | Merge) -> list[RegionInfo]:
    if isinstance(change, Merge):
        infos = [info for info in INFOS if info.region_id in change.regions]
        return [RegionInfo("t", 20, infos[0].start, infos[-1].end)]
    parent = next(info for info in INFOS if info.region_id == change.region)
    row = change.row or b"k"
    return [RegionInfo("t", 20, parent.start, row), RegionInfo("t", 21, row, parent.end)]


@pytest.mark.parametrize(("one", "other"), list(product(CHANGES, CHANGES)))
def test_of_two_changes_of_a_region_one_is_done_and_the_other_hears_that_it_is_gone(
    one: SplitRegion | MergeRegions, other: SplitRegion | MergeRegions
) -> None:
    state = opened()
    (change,) = of(Split, outputs := state.add_request(1, one, 2_000)) + of(Merge, outputs)
    second = state.add_request(2, other, 2_001)
    assert of(Answer, second) == [], "it waits, as in one process"
    answers = of(Answer, state.tables.changed(regions_changed(change), successors(change), 2_010))
    if _shares(one, other):
        assert sorted((answer.request, answer.error) for answer in answers) == [(1, None), (2, GONE)]
    else:
        assert [(answer.request, answer.error) for answer in answers] == [(1, None)]


def _shares(one: SplitRegion | MergeRegions, other: SplitRegion | MergeRegions) -> bool:
    return bool(set(regions_of(one)) & set(regions_of(other)))


@pytest.mark.parametrize("request_", [SplitRegion(2, b"b"), MergeRegions(2, 3)])
def test_after_a_failure_the_other_request_has_a_try_of_its_own(request_: SplitRegion | MergeRegions) -> None:
    state = opened()
    (change,) = of(Split, outputs := state.add_request(1, request_, 2_000)) + of(Merge, outputs)
    state.add_request(2, request_, 2_001)
    outputs = state.tables.change_failed(regions_changed(change), "the disk is full", 2_010)
    assert of(Answer, outputs) == [Answer(1, "the disk is full")]
    assert of(type(change), outputs) == [change], "the second is begun"
    outputs = state.tables.changed(regions_changed(change), successors(change), 2_020)
    assert of(Answer, outputs) == [Answer(2, None)]


def test_a_change_that_nobody_asked_for_is_no_success_of_a_request() -> None:
    state = opened()
    state.plans._carry_out(Split(2, None, "it is large"), 2_000)
    state.add_request(1, SplitRegion(2, b"b"), 2_001)
    answers = of(Answer, state.tables.changed([2], successors(Split(2, None, "it is large")), 2_010))
    assert answers == [Answer(1, GONE)]

"""A server's death costs its master what is out of place, however many regions there are: counted, not timed."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from columnar.master.catalogue_rows import OperatorSettings
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Close, NotifyServer, Output, Write
from columnar.master.placement import Current
from columnar.master.placement_records import Phase
from columnar.model.owner import Incarnation
from columnar.model.region_info import RegionInfo

SERVERS = [Incarnation(f"s{number}", 1) for number in (1, 2, 3)]
BACK = Incarnation("s1", 2)


class Cluster:
    """A master's state whose servers open a region after the other, in 2 ms."""

    def __init__(self, regions: int) -> None:
        infos = [RegionInfo("t", number, b"%06d" % number) for number in range(2, regions + 2)]
        self.state = ClusterState([(info, None) for info in infos], {}, OperatorSettings(), Random(1))
        self.now_ms = 0
        self.told = 0
        for server in SERVERS:
            self.join(server)
        self.go_on(self.state.begin_planning(0))
        self.pass_time()

    def join(self, server: Incarnation) -> list[Output]:
        joined = self.state.joined(server, self.now_ms)
        return joined + self.state.hello(server, {}, {}, self.now_ms)

    def go_on(self, outputs: list[Output], comes_back: Incarnation | None = None) -> None:
        todo, tells = deque(outputs), deque[NotifyServer]()
        while todo or tells:
            if todo:
                output = todo.popleft()
                if isinstance(output, Write):
                    todo.extend(self.state.row_written(output.number, self.now_ms))
                elif isinstance(output, NotifyServer):
                    tells.append(output)
                continue
            one = tells.popleft()
            self.told += 1
            self.now_ms += 2
            if isinstance(one.request, Close):
                todo.extend(self.state.closed(one.server, one.request.region, one.request.epoch, self.now_ms))
            else:
                todo.extend(self.state.opened(one.server, one.request.region, one.request.owner.epoch, self.now_ms))
            if comes_back is not None:
                todo.extend(self.join(comes_back))
                comes_back = None

    def pass_time(self) -> None:
        for _ in range(8):
            self.now_ms += 1_100
            self.go_on(self.state.tick(self.now_ms))

    def kill(self) -> None:
        """The first server dies, and the one in its place comes while its regions are being opened."""
        lost = [(one.info.region_id, one.owner.epoch) for one in self.state.current.places.values()
                if one.owner is not None and one.owner.server == SERVERS[0]]  # fmt: skip
        self.go_on(self.state.silent(SERVERS[0], "killed", self.now_ms))
        self.go_on(self.state.fenced(SERVERS[0], (("1", 64),), lost, self.now_ms), BACK)
        self.pass_time()


def costs(regions: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Messages to servers, and how often the planner and transitions ask whether an owner lives."""
    cluster = Cluster(regions)
    asked = 0
    is_alive = Current.is_alive

    def counted(current: Current, server: Incarnation) -> bool:
        nonlocal asked
        asked += 1
        return is_alive(current, server)

    cluster.told = 0
    with monkeypatch.context() as patched:
        patched.setattr(Current, "is_alive", counted)
        cluster.kill()
    cluster.state.check_invariants()
    assert {place.phase for place in cluster.state.current.places.values()} == {Phase.OPEN}
    assert min(len(server.regions) for server in cluster.state.current.servers.values()) >= regions // 3 - 1
    return cluster.told, asked


def test_a_death_among_four_times_as_many_regions_costs_four_times_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    (told, asked), (more_told, more_asked) = costs(600, monkeypatch), costs(2_400, monkeypatch)
    assert more_told <= 4.4 * told
    assert more_asked <= 4.4 * asked

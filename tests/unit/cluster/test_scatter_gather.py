"""Requests for rows of several owners, which move, end and refuse: each row is taken once, and none is sent twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from columnar.cluster import scatter_gather as module
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import Refused
from columnar.cluster.refusals import Unknown
from columnar.cluster.scatter_gather import scatter_gather
from columnar.errors import NotServingRegion, OutcomeUnknown, RegionTooBusy, ServersEnded
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message
from columnar.model.route import Route
from tests.support.deep import seeds

SERVERS = [Incarnation(name, 1) for name in ("s1", "s2", "s3")]
EDGES = (b"", b"d", b"m", b"t", b"")
ROWS = [b"%c%d" % (head, number) for head in b"aekpu" for number in range(4)]


class Cluster:
    """Owners of regions that move at random; a request ends as the seed says."""

    local_server = SERVERS[0]

    def __init__(self, seed: int, faults: float) -> None:
        self.rng = random.Random(seed)
        self.faults = faults
        infos = [RegionInfo("t", number, EDGES[number], EDGES[number + 1]) for number in range(len(EDGES) - 1)]
        self.routes = [Route(info, self.rng.choice(SERVERS), 1) for info in infos]
        self.owners = {route.region: route.server for route in self.routes}
        self.sent: Counter[int] = Counter()  # requests in which a row was, unless nothing was done there
        self.uncertain: set[int] = set()  # rows whose request may have been carried out
        self.taken: Counter[int] = Counter()
        self.under_way = 0
        self._change: asyncio.Future[None] | None = None

    def owner_of(self, _table: str, row: bytes) -> Route:
        return next(route for route in self.routes if route.region.contains_row(row))

    def routes_of(self, _table: str) -> Sequence[Route]:
        return self.routes

    def change(self) -> asyncio.Future[None]:
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        return self._change

    async def request_server(self, server: Incarnation, message: Message[Any], size_bytes: int = 0) -> Any:
        raise AssertionError("the test has requests of its own")

    def move_some(self) -> None:
        at = self.rng.randrange(len(self.routes))
        route, server = self.routes[at], self.rng.choice(SERVERS)
        self.owners[route.region] = server
        if self.rng.random() < 0.7:  # else the copy of the routes is late
            source = OwnershipPeriod(route.server, route.epoch) if self.rng.random() < 0.3 else None
            self.routes[at] = Route(route.region, server, route.epoch + 1, source)
            self.change().set_result(None)

    def catch_up(self) -> None:
        self.routes = [Route(route.region, self.owners[route.region], route.epoch + 1) for route in self.routes]
        self.change().set_result(None)

    async def request(self, server: Incarnation, numbers: list[int], _servers: int) -> list[int]:
        """Answer the numbers of the rows that are not local."""
        assert not self.taken.keys() & set(numbers), "G1"
        self.under_way += 1
        try:
            await asyncio.sleep(0)
            chance = self.rng.random()
            if chance < self.faults / 2:
                raise self.rng.choice([NotSent(), Refused(Unknown("not here"))])
            left = [number for number in numbers if self.owners[self.owner_of("t", ROWS[number]).region] != server]
            self.sent.update(number for number in numbers if number not in left)
            if self.rng.random() < 0.5:
                self.move_some()
            if chance < self.faults:
                self.uncertain.update(numbers)
                raise LinkBroke
            return left
        finally:
            self.under_way -= 1
            if self.rng.random() < 0.3:
                self.catch_up()

    def take(self, numbers: list[int], left: list[int]) -> list[int]:
        self.taken.update(number for number in numbers if number not in left)
        return left


def unsure(server: Incarnation, _numbers: list[int]) -> OutcomeUnknown:
    return OutcomeUnknown(f"{server} did not answer")


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.0001)
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.0005)


@pytest.mark.parametrize("faults", [0.0, 0.1, 0.3])
def test_no_row_that_may_have_been_written_is_sent_again(faults: float) -> None:
    for seed in range(seeds("calls over moving owners", deep=2_000, short=150)):
        cluster = Cluster(seed, faults)
        try:
            asyncio.run(scatter_gather(cluster, "t", ROWS, cluster.request, cluster.take, unsure=unsure))
        except OutcomeUnknown:
            assert cluster.uncertain, seed
        else:
            assert set(cluster.taken) == set(range(len(ROWS))), seed
            assert not cluster.uncertain, seed
        assert max(cluster.sent.values(), default=0) <= 1, f"{seed}: a row was written twice"
        assert max(cluster.taken.values(), default=0) <= 1, seed
        assert cluster.under_way == 0, f"{seed}: G3"


@pytest.mark.parametrize("faults", [0.1, 0.3])
def test_a_call_that_may_repeat_ends_with_all_rows_or_names_one_under_which_two_servers_ended(faults: float) -> None:
    for seed in range(seeds("repeated calls over moving owners", deep=2_000, short=150)):
        cluster, named = Cluster(seed, faults), None
        try:
            asyncio.run(scatter_gather(cluster, "t", ROWS, cluster.request, cluster.take))
        except ServersEnded as error:
            named = ROWS.index(error.row)
        assert named in cluster.uncertain if named is not None else set(cluster.taken) == set(range(len(ROWS))), seed
        assert max(cluster.taken.values(), default=0) <= 1, seed
        assert cluster.under_way == 0, f"{seed}: G3"


def test_an_unknown_outcome_goes_before_other_errors_and_after_all_requests() -> None:
    async def play() -> None:
        cluster = Cluster(1, 0.0)
        cluster.routes = [Route(route.region, SERVERS[at % 3], 1) for at, route in enumerate(cluster.routes)]
        ended: list[str] = []

        async def request(server: Incarnation, _numbers: list[int], servers: int) -> list[int]:
            assert servers == 3
            for _ in range(SERVERS.index(server) * 3):
                await asyncio.sleep(0)
            ended.append(server.name)
            if server is SERVERS[1]:
                raise LinkBroke
            raise RegionTooBusy("its log is full")

        with pytest.raises(OutcomeUnknown, match=r"s2\.1 did not answer"):
            await scatter_gather(cluster, "t", ROWS, request, cluster.take, unsure=unsure)
        assert ended == ["s1", "s2", "s3"]

    asyncio.run(play())


def test_a_call_ends_in_time_and_at_once_for_a_region_that_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNAVAILABLE_TIMEOUT_S", 0.02)

    async def never(_server: Incarnation, _numbers: list[int], _servers: int) -> list[int]:
        raise NotSent

    async def play() -> None:
        cluster = Cluster(1, 0.0)
        with pytest.raises(NotServingRegion, match="not served by any server in time"):
            await scatter_gather(cluster, "t", ROWS, never, cluster.take)
        cluster.routes = [Route(route.region, route.server, 1, None, "its data is damaged") for route in cluster.routes]
        with pytest.raises(NotServingRegion, match="its data is damaged"):
            await scatter_gather(cluster, "t", ROWS, never, cluster.take)

    asyncio.run(play())

"""A copy of the routes against plain lists: changes arrive, arrive twice, get lost or do not fit; owners refuse."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.cluster.routes import Routes
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route

SERVERS = [Incarnation(name, number) for name in ("s1", "s2", "s3") for number in (1, 2)]
TABLES = ("a", "b")
KEYS = [bytes([letter]) for letter in b"bdfhjlnprtvx"]
PROBES = [b"", b"\x00", b"\xff", *KEYS, *(key + b"\x00" for key in KEYS)]


@dataclass
class Master:
    """The catalogue as lists, with every change that it ever made."""

    tables: dict[str, list[Route]] = field(default_factory=dict)
    changes: list[ChangeRoutes] = field(default_factory=list)
    next_id: int = 2
    number: int = 0

    def publish(self, gone: list[RegionInfo], routes: list[Route]) -> None:
        self.number += 1
        self.changes.append(ChangeRoutes(self.number, tuple(gone), tuple(routes)))

    def fresh(self, table: str, start: bytes, end: bytes, server: Incarnation) -> Route:
        self.next_id += 1
        return Route(RegionInfo(table, self.next_id, start, end), server, 1)

    def create(self, table: str, rng: random.Random) -> None:
        if table in self.tables:
            gone = [route.region for route in self.tables.pop(table)]
            self.publish(rng.sample(gone, len(gone)), [])
            return
        cuts = [b"", *sorted(rng.sample(KEYS, rng.randrange(0, 4))), b""]
        routes = [self.fresh(table, a, b, rng.choice(SERVERS)) for a, b in pairwise(cuts)]
        self.tables[table] = list(routes)
        self.publish([], rng.sample(routes, len(routes)))

    def split(self, table: str, rng: random.Random) -> None:
        routes = self.tables.get(table, [])
        key = rng.choice(KEYS)
        for at, route in enumerate(routes):
            info = route.region
            if info.start < key and (not info.end or key < info.end):
                two = [self.fresh(table, info.start, key, route.server), self.fresh(table, key, info.end, route.server)]
                routes[at : at + 1] = two
                self.publish([info], two)
                return

    def merge(self, table: str, rng: random.Random) -> None:
        routes = self.tables.get(table, [])
        if len(routes) > 1:
            at = rng.randrange(len(routes) - 1)
            left, right = routes[at : at + 2]
            one = self.fresh(table, left.region.start, right.region.end, left.server)
            routes[at : at + 2] = [one]
            self.publish([left.region, right.region], [one])

    def move(self, table: str, rng: random.Random) -> None:
        changed = []
        for routes in self.tables.values():
            for at, route in enumerate(routes):
                if rng.random() < 0.4:
                    source = rng.choice([None, route.ownership_period])
                    routes[at] = Route(route.region, rng.choice(SERVERS), route.epoch + 1, source)
                    changed.append(routes[at])
        self.publish([], changed)

    def whole(self, rng: random.Random) -> ReplaceRoutes:
        routes = [route for table in self.tables.values() for route in table]
        return ReplaceRoutes(self.number, tuple(rng.sample(routes, len(routes))))


@dataclass
class Plain:
    """The expected copy: plain lists that are searched from their beginning."""

    number: int = 0
    needs_all: bool = True
    routes: list[Route] = field(default_factory=list)

    def latest(self, new: Route) -> Route:
        same = [held for held in self.routes if held.region == new.region]
        return same[0] if same and same[0].epoch > new.epoch else new

    def replace(self, asked: ReplaceRoutes) -> None:
        self.routes = [self.latest(route) for route in asked.routes]
        self.number, self.needs_all = asked.number, False

    def apply(self, change: ChangeRoutes) -> None:
        if self.needs_all or change.number != self.number + 1:
            return
        fresh = [self.latest(route) for route in change.routes]
        come = [route.region for route in fresh]
        self.routes = [held for held in self.routes if held.region not in (*change.gone, *come)] + fresh
        self.number = change.number

    def moved(self, region: RegionInfo, server: Incarnation, epoch: int) -> bool:
        for at, held in enumerate(self.routes):
            if held.region == region and held.epoch < epoch:
                self.routes[at] = Route(region, server, epoch, held.ownership_period)
                return True
        return False


VERBS = ["create", "split", "split", "split", "merge", "move", "move"]
DELIVERIES = ["next", "next", "next", "twice", "skip", "all", "misfit", "hint", "hint"]


def offer(copy: Routes, plain: Plain, master: Master, how: str, rng: random.Random) -> None:
    if how == "all":
        assert copy.replace(master.whole(rng)).number == master.number
        plain.replace(master.whole(rng))
        return
    if how == "hint":
        hint(copy, plain, master, rng)
        return
    at = plain.number + {"next": 0, "twice": -1, "skip": 1, "misfit": 0}[how]
    if not 0 <= at < len(master.changes):
        return
    change = master.changes[at]
    if how == "misfit" and not plain.needs_all:
        stranger = RegionInfo("a", 1, b"c", b"e")
        change = replace(change, gone=(*change.gone, stranger))
        assert copy.apply(change).needs_all
        plain.needs_all = True
    else:
        held = copy.apply(change)
        plain.apply(change)
        assert (held.number, held.needs_all) == (plain.number, plain.needs_all), how


def hint(copy: Routes, plain: Plain, master: Master, rng: random.Random) -> None:
    known = [*plain.routes, *(route for table in master.tables.values() for route in table)]
    if known:
        region, epoch = rng.choice(known).region, rng.randrange(1, 9)
        server = rng.choice(SERVERS)
        assert copy.moved(region, server, epoch) == plain.moved(region, server, epoch)


def compare(copy: Routes, plain: Plain) -> None:
    copy.check_invariants()
    assert (copy.number, copy.report_version.needs_all) == (plain.number, plain.needs_all)
    for table in TABLES:
        expected = sorted((one for one in plain.routes if one.region.table == table), key=lambda one: one.region.start)
        assert list(copy.of_table(table)) == expected
        for row in PROBES:
            holding = [one for one in expected if one.region.contains_row(row)]
            assert copy.find(table, row) == (holding[0] if holding else None)
    for route in plain.routes:
        assert copy.of(route.region) == route
    assert copy.of(RegionInfo("a", 1)) is None


steps = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from(TABLES), st.lists(st.sampled_from(DELIVERIES), max_size=3)),
    min_size=5,
    max_size=30,
)


@given(steps, st.integers(0, 1 << 30))
@settings(max_examples=150)
def test_a_copy_says_what_lists_say(played: list[Any], number: int) -> None:
    rng, master, plain, copy = random.Random(number), Master(), Plain(), Routes()
    offer(copy, plain, master, "all", rng)
    for verb, table, deliveries in played:
        epochs = {route.region: route.epoch for route in plain.routes}
        getattr(master, verb)(table, rng)
        for how in deliveries:
            offer(copy, plain, master, how, rng)
            compare(copy, plain)
        for route in plain.routes:
            assert route.epoch >= epochs.get(route.region, 0), "R3, of the model itself"
    while plain.number < master.number and not plain.needs_all:
        offer(copy, plain, master, "next", rng)
    compare(copy, plain)
    if plain.number == master.number:
        for routes in master.tables.values():
            for route in routes:
                held = copy.of(route.region)
                assert held is not None
                assert held.epoch >= route.epoch, "a copy that has every change knows every owner"


def test_the_former_owner_of_a_hint_still_answers() -> None:
    copy, region = Routes(), RegionInfo("a", 3)
    copy.replace(ReplaceRoutes(1, (Route(region, SERVERS[0], 4),)))
    assert copy.moved(region, SERVERS[2], 5)
    route = copy.find("a", b"row")
    assert route is not None
    assert (route.server, route.epoch, route.source) == (SERVERS[2], 5, OwnershipPeriod(SERVERS[0], 4))

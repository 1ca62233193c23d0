"""Changes of routes, derived from rows of owners, and servers' copies that get them late, not at all, twice or anew.

The model defines the content of a copy: for each table the regions of the last list in which each region had an owner.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from columnar.cluster.routes import Routes
from columnar.master.publishing import Publishing
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod
from columnar.model.region_info import RegionInfo
from columnar.model.route import ChangeRoutes, Route, route_to
from tests.support.deep import seeds
from tests.support.seeds import seed

SERVERS = [Incarnation(f"s{n}", n) for n in (1, 2, 3)]
TABLES = ("a", "b", "c")
KEYS = [bytes([letter]) for letter in b"bdfhjlnprtvx"]
STEPS = 400
SEEDS = seeds("seeds of publishing", deep=25, short=6)


class Master:
    """The master's ``Publishing``, with the true routes in plain dicts beside it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.publishing = Publishing()
        self.tables: dict[str, list[RegionInfo]] = {}
        self.rows: dict[int, Owner] = {}
        self.covered: dict[str, dict[int, Route]] = {}  # what copies should have
        self.changes: list[ChangeRoutes] = []
        self.next_id = 1

    def ranges(self, table: str, cuts: list[bytes]) -> list[RegionInfo]:
        made = []
        for start, end in pairwise([b"", *cuts, b""]):
            self.next_id += 1
            made.append(RegionInfo(table, self.next_id, start, end))
        return made

    def stand(self, table: str, regions: list[RegionInfo]) -> None:
        if regions:
            self.tables[table] = regions
        else:
            self.tables.pop(table, None)
        self.publishing.stands(table, regions)

    def create(self, table: str) -> None:
        """Create a table, or exchange all regions of a table, as a truncation does."""
        self.stand(table, self.ranges(table, sorted(self.rng.sample(KEYS, self.rng.randrange(4)))))

    def split(self, table: str) -> None:
        regions = self.tables.get(table, [])
        whole = [info for info in regions if info.region_id in self.rows]
        if not whole:
            return
        parent, key = self.rng.choice(whole), self.rng.choice(KEYS)
        if not parent.contains_row(key) or key == parent.start:
            return
        fresh = [
            RegionInfo(table, self.next_id + 1, parent.start, key),
            RegionInfo(table, self.next_id + 2, key, parent.end),
        ]
        self.next_id += 2
        at = regions.index(parent)
        owner = Owner(self.rows[parent.region_id].server, 1)
        self.stand(table, [*regions[:at], *fresh, *regions[at + 1 :]])
        for info in fresh:
            self.own(info, owner)

    def own(self, info: RegionInfo, owner: Owner) -> None:
        self.rows[info.region_id] = owner
        self.publishing.owned(info, owner)

    def move(self, table: str) -> None:
        regions = self.tables.get(table, [])
        if not regions:
            return
        info = self.rng.choice(regions)
        before = self.rows.get(info.region_id)
        source = None if before is None or self.rng.random() < 0.5 else OwnershipPeriod(before.server, before.epoch)
        behind = (OwnershipPeriod(SERVERS[0], 0),) if self.rng.random() < 0.3 else ()
        epoch = 1 if before is None else before.epoch + self.rng.randrange(2)
        self.own(info, Owner(self.rng.choice(SERVERS), epoch, 0, source, behind))

    def own_dropped(self) -> None:
        """Write the owner's row of a region that was dropped meanwhile."""
        self.publishing.owned(RegionInfo("gone", 1_000_000, b"", b""), Owner(SERVERS[0], 1))

    def take(self) -> ChangeRoutes | None:
        for table in TABLES:
            regions = self.tables.get(table, [])
            if all(info.region_id in self.rows for info in regions):
                self.covered[table] = {}
            for info in regions:
                if table in self.covered and info.region_id in self.rows:
                    known = info.region_id in self.covered[table] or self.complete(table)
                    if known:
                        self.covered[table][info.region_id] = route_to(info, self.rows[info.region_id])
        change = self.publishing.take()
        if change is not None:
            self.changes.append(change)
        return change

    def complete(self, table: str) -> bool:
        return all(info.region_id in self.rows for info in self.tables.get(table, []))

    def expected(self) -> dict[int, Route]:
        return {region: route for routes in self.covered.values() for region, route in routes.items()}


def held(copy: Routes) -> dict[int, Route]:
    return {route.region.region_id: route for table in copy.tables for route in copy.of_table(table)}


def bring_up(master: Master, copy: Routes) -> None:
    """Update a copy as a master does: by the change, or by all routes if the copy lags."""
    answer = copy.apply(master.changes[-1])
    if answer.number < master.changes[-1].number:
        copy.replace(master.publishing.everything())


@pytest.mark.parametrize("number", range(SEEDS))
def test_copies_have_each_table_whole_and_as_it_is(number: int) -> None:
    rng = Random(seed(17_100) + number)
    master, copies = Master(rng), [Routes(), Routes()]
    for _ in range(STEPS):
        rng.choice([master.create, master.split, master.move, master.move, master.move])(rng.choice(TABLES))
        if rng.random() < 0.1:
            master.stand(rng.choice(TABLES), [])
        if rng.random() < 0.1:
            master.own_dropped()
        if rng.random() < 0.1:
            copies[rng.randrange(2)] = Routes()
        if rng.random() < 0.5 and master.take() is not None:
            for copy in copies:
                if rng.random() < 0.8:  # else the change is lost, and the next one brings all
                    bring_up(master, copy)
                    copy.check_invariants()
                    assert held(copy) == master.expected()
        master.publishing.check_invariants()
    for table in TABLES:
        for info in master.tables.get(table, []):
            if info.region_id not in master.rows:
                master.own(info, Owner(SERVERS[0], 1))
    master.move(TABLES[0])
    if master.take() is not None:
        bring_up(master, copies[0])
        assert held(copies[0]) == master.expected()
    assert master.publishing.is_complete
    assert {route.region for route in master.publishing.everything().routes} == {
        info for regions in master.tables.values() for info in regions
    }


def test_a_table_comes_in_one_change_when_its_last_region_has_an_owner() -> None:
    publishing, copy = Publishing(), Routes()
    left, right = RegionInfo("t", 2, b"", b"m"), RegionInfo("t", 3, b"m", b"")
    copy.replace(publishing.everything())
    publishing.stands("t", [left, right])
    publishing.owned(left, Owner(SERVERS[0], 1))
    assert publishing.take() is None
    assert not publishing.is_out("t")
    publishing.owned(right, Owner(SERVERS[1], 1))
    change = publishing.take()
    assert change is not None
    assert copy.apply(change).number == 2
    assert [route.server for route in copy.of_table("t")] == SERVERS[:2]
    assert publishing.is_out("t")


def test_a_row_that_says_the_same_to_gateways_makes_no_change() -> None:
    publishing = Publishing()
    info = RegionInfo("t", 2)
    publishing.stands("t", [info])
    publishing.owned(info, Owner(SERVERS[0], 3, 0, None, (OwnershipPeriod(SERVERS[1], 1),)))
    assert publishing.take() is not None
    publishing.owned(info, Owner(SERVERS[0], 3))
    assert publishing.take() is None


def test_a_region_that_stays_closed_says_why_in_its_route_until_it_is_assigned() -> None:
    publishing, copy = Publishing(), Routes()
    low, high = RegionInfo("t", 1, b"", b"m"), RegionInfo("t", 2, b"m", b"")
    publishing.stands("t", [low, high])
    publishing.set_blocked_regions({2: "nobody can open it"})  # before it has ever had an owner
    for info in (low, high):
        publishing.owned(info, Owner(SERVERS[0], 1))
    change = publishing.take()
    assert change is not None
    copy.replace(publishing.everything())
    assert [route.blocked_reason for route in copy.of_table("t")] == ["", "nobody can open it"]
    publishing.owned(high, Owner(SERVERS[0], 1, 0, None, (OwnershipPeriod(SERVERS[1], 1),)))
    assert publishing.take() is None, "a row that is written for another reason opens nothing"
    publishing.set_blocked_regions({1: "a person wants it closed"})
    assert [(route.region, route.blocked_reason) for route in applied(publishing, copy)] == [
        (low, "a person wants it closed"),
        (high, ""),
    ]
    publishing.set_blocked_regions({1: "a person wants it closed"})
    assert publishing.take() is None
    publishing.check_invariants()


def applied(publishing: Publishing, copy: Routes) -> list[Route]:
    """Return the routes of the copy after the next change."""
    change = publishing.take()
    assert change is not None
    assert copy.apply(change).number == change.number
    return list(copy.of_table("t"))

"""Zones: every table's regions are spread over them in proportion to their servers; without zones nothing changes."""

from __future__ import annotations

import hashlib
import time
from random import Random

import pytest

from columnar.master.instructions import Give, Prefer, Reason
from columnar.master.placement import Current, Desired
from columnar.master.placement_records import Phase, Place, ServerState
from columnar.master.planner import plan
from columnar.master.zones import TOLERANCE, ZoneIndex, ZoneShares
from columnar.model.owner import Incarnation, first_owner
from columnar.model.owner_messages import RegionRates
from columnar.model.region_info import RegionInfo
from tests.support.planned_cluster import PlannedCluster

WITHOUT_ZONES = "55e0f2d62e7d31f2f23a70a864d6fe72f8b87f6d53f52e8e03eccb891b3bd1ac"  # of the program without zones
JUST_OVER = TOLERANCE + 1e-6
HOME_MS = 11 * 60_000  # a server that was down this long is no home any more
REST_MS = 40 * 60_000


def of_regions(rng: Random, *, tables: int, regions: int) -> list[RegionInfo]:
    names = [f"t{rng.randrange(tables)}" for _ in range(regions)]
    return [RegionInfo(name, n + 2, b"%05d" % n, b"%05d" % (n + 1)) for n, name in enumerate(names)]


def report(cluster: PlannedCluster, rng: Random, load: float = 1.0) -> None:
    """Report loads every 20 s; ``load``: of the region with the greatest number, the others have less."""
    for server in list(cluster.state.current.servers.values()):
        if server.incarnation in cluster.servers:
            rates = [RegionRates(one, load * rng.random() * one, 0.0, 0.0, 0, 1 << 34) for one in server.regions]
            cluster.event("loads", server.incarnation, rates)
    cluster.later(20_000, lambda: report(cluster, rng, load))


def decisions_of(seed: int, zone: str) -> list[str]:
    """Run a cluster whose loads change and whose servers die and return, all in one zone."""
    rng = Random(seed)
    tables = rng.randint(1, 6)
    infos = [RegionInfo(f"t{n % tables}", n + 2, b"%03d" % n, b"%03d" % (n + 1)) for n in range(rng.randint(1, 120))]
    cluster = PlannedCluster(infos, rng, seed=seed, with_data=False)
    names = [f"s{n + 1}" for n in range(rng.randint(1, 9))]
    cluster.zones = dict.fromkeys(names, zone)
    for name in names:
        cluster.start(name)
    cluster.run(1_000)
    cluster.event("begin_planning")
    cluster.later(20_000, lambda: report(cluster, rng))
    for _ in range(6):
        cluster.run(cluster.now_ms + rng.randint(10_000, 200_000))
        name = rng.choice(names)
        if rng.random() < 0.5 and any(one.name == name for one in cluster.servers):
            cluster.kill(next(one for one in cluster.servers if one.name == name))
        elif not any(one.name == name for one in cluster.servers):
            cluster.start(name)
    cluster.run(cluster.now_ms + 900_000)
    return [f"{one.at_ms} {one.what}" for one in cluster.state.plans.decisions]


@pytest.mark.parametrize("zone", ["", "a"])
def test_without_zones_or_in_a_single_zone_plans_are_as_they_were_before_there_were_zones(zone: str) -> None:
    made = "\n".join(line for seed in range(12) for line in decisions_of(seed, zone))
    assert hashlib.sha256(made.encode()).hexdigest() == WITHOUT_ZONES


# --- clusters of several zones -----------------------------------------------------------------------


class ZonedCluster:
    """A cluster of two to five zones of unequal size, in virtual time."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.zones = [f"z{n}" for n in range(rng.randint(2, 5))]
        infos = of_regions(rng, tables=rng.randint(1, 8), regions=rng.randint(1, 300))
        self.cluster = PlannedCluster(infos, rng, seed=seed, with_data=False)
        for zone in self.zones:
            for n in range(rng.randint(1, 4)):
                self.cluster.zones[f"{zone}-s{n}"] = zone
        for name in self.cluster.zones:
            self.cluster.start(name)
        self.cluster.run(1_000)
        self.cluster.event("begin_planning")

    @property
    def current(self) -> Current:
        return self.cluster.state.current

    def surpluses(self) -> dict[str, dict[str, float]]:
        """Return the surplus of each zone with a server that may have regions, by table."""
        drained = self.cluster.state.desired.drained
        up = [one for one in self.current.servers.values() if one.state is ServerState.UP]
        shares = ZoneShares(self.current.zones, [one for one in up if one.name not in drained])
        return {table: shares.surpluses(table) for table in self.current.zones.tables}

    def worst(self) -> float:
        return max(abs(one) for zones in self.surpluses().values() for one in zones.values())

    def rest(self, for_ms: int = REST_MS) -> None:
        self.cluster.run(self.cluster.now_ms + for_ms)
        assert not self.current.homeless
        self.current.check_invariants()

    def moves(self) -> int:
        return sum(isinstance(one.what, Give) for one in self.cluster.state.plans.decisions)

    def lose(self, zone: str) -> None:
        for server in list(self.cluster.servers):
            if self.cluster.zones[server.name] == zone:
                self.cluster.kill(server)

    def start(self, zone: str) -> None:
        for name, its_zone in self.cluster.zones.items():
            if its_zone == zone:
                self.cluster.start(name)


@pytest.mark.parametrize("seed", range(12))
def test_tables_are_spread_over_zones_when_they_are_made_when_a_zone_is_lost_and_when_it_is_back(seed: int) -> None:
    zoned = ZonedCluster(seed)
    if zoned.rng.random() < 0.5:
        zoned.cluster.later(20_000, lambda: report(zoned.cluster, zoned.rng, 0.1))
    zoned.rest(30_000)
    assert zoned.worst() <= 2 * JUST_OVER, "at once, by the choice of the first owners"
    zoned.rest()
    assert zoned.worst() <= JUST_OVER
    lost = zoned.rng.choice(zoned.zones)
    zoned.lose(lost)
    zoned.rest()
    assert zoned.worst() <= JUST_OVER, "the zones that are left have the regions in proportion"
    zoned.start(lost)
    zoned.rest()
    assert zoned.worst() <= JUST_OVER


@pytest.mark.parametrize("seed", range(4))
def test_a_zone_that_is_back_soon_has_its_regions_again_and_then_nothing_moves(seed: int) -> None:
    zoned = ZonedCluster(seed)
    zoned.rest()
    before = {region: place.server for region, place in zoned.current.places.items()}
    zoned.lose(zoned.zones[0])
    zoned.rest(60_000)
    zoned.start(zoned.zones[0])
    zoned.rest()
    assert {region: place.server for region, place in zoned.current.places.items()} == before
    made = zoned.moves()
    zoned.rest()
    assert zoned.moves() == made


@pytest.mark.parametrize("seed", range(6))
def test_a_drained_server_gives_its_regions_to_zones_that_lack_them(seed: int) -> None:
    zoned = ZonedCluster(seed)
    zoned.rest()
    server = zoned.rng.choice(sorted(zoned.current.servers))
    zoned.cluster.state.desired.leaving.add(server)
    zoned.rest(55_000)
    assert not zoned.current.servers[server].regions
    assert zoned.worst() <= 2 * JUST_OVER, "before any balance, for which it is too soon"


# --- single plans ------------------------------------------------------------------------------------


def begin(current: Current, incarnation: Incarnation, zone: str) -> None:
    server = current.server(incarnation.name)
    current.zones.change_zone(server, zone)
    server.begin(incarnation, 1.0, 0)
    current.server_up(server, 0)


def placed(seed: int) -> tuple[Current, Random]:
    """Return open regions that lie anywhere, on servers of zones of unequal size."""
    rng, current = Random(seed), Current()
    names = []
    for zone in range(rng.randint(2, 4)):
        for n in range(rng.randint(1, 5)):
            names.append(name := f"z{zone}-s{n}")
            begin(current, Incarnation(name, 1), f"z{zone}")
    for info in of_regions(rng, tables=rng.randint(1, 5), regions=rng.randint(1, 200)):
        name = rng.choice(names[: rng.randint(1, len(names))])
        place = Place(info, first_owner(Incarnation(name, 1)))
        current.add_place(place)
        current.set_server(place, name)
        current.set_phase(place, Phase.OPEN, 0)
        current.set_ideal(place, name, "")
        current.set_load(place, 1.0 + rng.random() * rng.choice((0, 1, 20)))
    return current, rng


def squares(shares: ZoneShares, table: str) -> float:
    return sum(one * one for one in shares.surpluses(table).values())


@pytest.mark.parametrize("seed", range(60))
def test_every_move_for_a_table_betters_its_spread_and_no_move_for_load_takes_a_zone_too_far(seed: int) -> None:
    current, rng = placed(seed)
    for round_ in range(300):
        made = plan(Desired(), current, 1_000_000 + round_, rng, balances_now=True)
        chosen = [one for one in made.instructions if isinstance(one, Prefer)]
        if not any("more than its part" in one.why for one in chosen):
            break
        for one in chosen:
            place = current.places[one.region]
            shares = ZoneShares(current.zones, current.servers.values())
            before, worst = squares(shares, place.info.table), shares.surpluses(place.info.table)
            assert place.server != one.server
            current.set_server(place, one.server)
            current.set_ideal(place, one.server, "")
            after = squares(shares, place.info.table)
            if "more than its part" in one.why:
                assert after < before - 1e-9
            elif max(map(abs, worst.values())) <= JUST_OVER:
                assert max(map(abs, shares.surpluses(place.info.table).values())) <= JUST_OVER
        current.zones.check(current.servers.values())
    else:
        raise AssertionError("it never ends")
    shares = ZoneShares(current.zones, current.servers.values())
    assert not shares.uneven_tables()
    assert all(abs(one) <= JUST_OVER for table in current.zones.tables for one in shares.surpluses(table).values())


def test_a_server_that_returns_in_a_different_zone_takes_its_regions_along_in_the_counts() -> None:
    current, _ = placed(1)
    begin(current, Incarnation("z0-s0", 2), "elsewhere")
    current.check_invariants()
    assert all("elsewhere" in current.zones.tables[table] for table in current.servers["z0-s0"].tables)


def test_a_table_of_a_single_region_goes_to_the_zone_with_the_least_loaded_server_whatever_its_size() -> None:
    index = ZoneIndex()
    current, _ = placed(3)
    shares = ZoneShares(index, current.servers.values())
    loads = dict.fromkeys(shares.weights, 5.0) | {"z1": 4.0}
    assert shares.order("new", loads)[0] == "z1"


def test_the_time_of_a_plan_grows_with_the_regions_and_no_faster() -> None:
    times = []
    for regions in (2_000, 20_000):
        current = Current()
        for n in range(60):
            begin(current, Incarnation(f"s{n}", 1), f"z{n % 3}")
        for n in range(regions):
            current.add_place(Place(RegionInfo(f"t{n % 40}", n + 2, b"%05d" % n, b"%05d" % (n + 1)), None))
        begun = time.process_time()
        made = plan(Desired(), current, 1_000_000, Random(1))
        times.append(time.process_time() - begun)
        assert len(made.instructions) == regions
        assert all(isinstance(one, Give) and one.reason is Reason.NEW for one in made.instructions)
    assert times[1] < 25 * times[0]


def test_a_zone_that_lacks_a_whole_region_is_first_however_loaded_its_servers_are() -> None:
    index, current = ZoneIndex(), Current()
    for name, zone in (("s1", "a"), ("s2", "b"), ("s3", "c")):
        begin(current, Incarnation(name, 1), zone)
    for name in ("s1", "s1", "s1", "s2"):
        index.count_region(current.server(name), "t", 1)
    shares = ZoneShares(index, current.servers.values())
    assert shares.order("t", {"a": 1.0, "b": 1.0, "c": 99.0}) == ["c", "b", "a"]


def test_a_region_that_leaves_a_server_stays_in_its_zone_if_the_zone_would_lack_it() -> None:
    current = Current()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        begin(current, Incarnation(name, 1), zone)
    for n, (name, table) in enumerate((("a1", "t"), ("b1", "t"), ("a2", "other"))):
        place = Place(RegionInfo(table, n + 2, b"%d" % n, b"%d" % (n + 1)), first_owner(Incarnation(name, 1)))
        current.add_place(place)
        current.set_server(place, name)
        current.set_phase(place, Phase.OPEN, 0)
        current.set_load(place, 50.0 if table == "other" else 1.0)
    made = plan(Desired(leaving={"a1"}), current, 1_000_000, Random(1))
    assert [(one.region, one.server) for one in made.instructions if isinstance(one, Give)] == [(2, "a2")]

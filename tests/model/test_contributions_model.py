"""Contributions against a dictionary of sources: messages are lost, late and repeated, regions reopen, split and merge.

A source gives to some groups, and later to others; each change makes a message for each group that the source leaves,
enters or gives a different amount to.  Messages arrive in any order, some twice, some again much later.  When all have
arrived, the totals, members and ordered cells follow from the last gifts of the sources.  At any time each row is
consistent in itself.  Tallies arrive in the order of their source, as the changes of a row are delivered, and some are
repeated.

``python -m tests.model.test_contributions_model --seeds 100000`` runs more of them; each failure prints its seed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from columnar.limits import GUARD_MS
from columnar.model.contribution import order_qualifier, unpack, unpack_carried, wrapped
from columnar.model.mutation import Contribute, Operation, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, Table, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.region_reads import get_row
from columnar.regions.region import Region
from columnar.regions.region_upkeep import sweep_region_guards
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.regions.write.guards import Guards
from columnar.storage.memory import MemoryEngine
from tests.support.changing_house import CatalogueRows, ChangingHouse
from tests.support.deep import seeds
from tests.support.held_engine import FakeClock, HeldEngine
from tests.support.openings import region_at_once
from tests.support.region_house import House
from tests.support.seeds import seed

SEED = seed(20261124)
SEEDS = seeds("seeds of contributions", deep=2_000, short=140)
CHANGING_SEEDS = seeds("seeds of contributions beside splits", deep=25, short=8)
STEPS = 24
TOGETHER = 50
GROUPS = (b"g0", b"g1", b"g2", b"g3")
SOURCES = (b"a", b"b\x00", b"c")
TALLIES = (b"t", b"u")
NAMES = [Family("n"), Family("m"), Family("o")]
TABLES = (
    make_table("t", NAMES),
    make_table("t", NAMES, {"DELETE_MARKERS": "1000"}),
    make_table("t", [Family(name, max_versions=3) for name in "nmo"]),
)
ORDERS = (None, b"", b"\x00", b"1", b"\x00\x01")
Given = tuple[dict[bytes, int], bytes | None, tuple[tuple[bytes, bytes], ...]]  # totals, order, carried


class Places:
    """The places of rows: regions of one server, which a subclass opens, reopens and changes."""

    clock: FakeClock
    server: RegionServer
    groups = GROUPS

    @property
    def served(self) -> ServedTable:
        raise NotImplementedError

    def region(self, row: bytes) -> Region:
        return region_at_once(self.server, self.served, row)

    async def apply(self, mutations: list[RowMutation]) -> None:
        for mutation in mutations:
            self.region(mutation.row).apply(mutation)

    async def upset(self, rng: random.Random) -> None:
        """Reopen a region."""
        region = self.region(rng.choice(self.groups))
        await self.server.hosting.quiesce(region)
        self.server.eviction.evict(region)

    async def close(self) -> None:
        raise NotImplementedError

    async def sweep(self, before_ms: int) -> None:
        for row in self.groups:
            await sweep_region_guards(self.region(row), before_ms)

    def read(self, row: bytes, family: bytes) -> dict[bytes, bytes]:
        spec = ReadSpec(projection(self.served.schema, [family]))
        return {column[2:]: value for column, value, _ in get_row(self.region(row), row, spec)}


class Still(Places):
    def __init__(self, table: Table, logged: bool) -> None:
        self.house = House(table, (b"g2",))
        self.server, self.clock = self.house.server, self.house.clock
        if logged:
            families = frozenset({b"n", b"m", b"o"})
            self.server.set_policy("t", LogPolicy(families, families, {b"n": None, b"m": frozenset({b"a"})}))

    @property
    def served(self) -> ServedTable:
        return self.house.served

    async def close(self) -> None:
        await self.house.close()


class Changing(Places):
    """Places whose splits and merges go on beside the messages."""

    def __init__(self, engine: Any) -> None:
        self.clock = FakeClock(10_000)
        self.house = ChangingHouse(engine, "regions", CatalogueRows(), self.clock)
        self.server = self.house.server
        self.changing: asyncio.Task[Any] | None = None
        self.changes = 0

    async def start(self, table: Table) -> None:
        await self.house.start()
        await self.house.changes.create(b"t", list(table.families), dict(table.attributes), splits=[b"g2"])

    @property
    def served(self) -> ServedTable:
        return self.house.table

    def region(self, row: bytes) -> Region:
        return self.server.open_region(self.served, self.served.holding(row))

    async def apply(self, mutations: list[RowMutation]) -> None:
        for mutation in mutations:

            def apply(mutation: RowMutation = mutation) -> Applied:
                return self.region(mutation.row).apply(mutation)

            await retry_until_ready(apply)

    async def upset(self, rng: random.Random) -> None:
        await self.settle()
        infos = self.house.infos
        work: Any
        if len(infos) < 3 and rng.random() < 0.6:
            row = rng.choice(self.groups[1:])
            work = self.house.regions.split(self.served.holding(row), row)
        elif len(infos) > 1:
            at = rng.randrange(len(infos) - 1)
            work = self.house.regions.merge(infos[at], infos[at + 1])
        else:
            return
        self.changing = asyncio.ensure_future(work)
        for _ in range(rng.randrange(6)):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        if self.changing is not None:
            failure = (await asyncio.gather(self.changing, return_exceptions=True))[0]
            self.changes += not isinstance(failure, BaseException)
            self.changing = None
        for info in list(self.house.infos):
            await self._opened(info)

    async def _opened(self, info: RegionInfo) -> None:
        await self.server.opened(self.served, info)

    async def sweep(self, before_ms: int) -> None:
        await self.settle()
        await super().sweep(before_ms)

    async def close(self) -> None:
        await self.settle()
        await self.house.close()


@dataclass(slots=True)
class Message:
    row: bytes
    said: Contribute
    made_ms: int
    to_come: int  # how often it arrives


@dataclass(slots=True)
class Run:
    rng: random.Random
    places: Places
    number: int = 0  # of the sources' last change
    given: dict[bytes, dict[bytes, Given]] = field(default_factory=dict)  # source -> group
    tallied: dict[tuple[bytes, bytes], int] = field(default_factory=dict)  # group, source
    late: list[Message] = field(default_factory=list)
    queues: dict[bytes, list[Message]] = field(default_factory=dict)  # tallies of a source, in order
    keeps_guards: bool = True

    @property
    def groups(self) -> tuple[bytes, ...]:
        return self.places.groups

    async def play(self) -> None:
        for _ in range(STEPS):
            kind = self.rng.random()
            if kind < 0.3:
                self.change(self.rng.choice(SOURCES))
            elif kind < 0.4:
                self.tally(self.rng.choice(TALLIES))
            elif kind < 0.85:
                await self.deliver(self.rng.randrange(1, 4))
            elif kind < 0.9:
                self.places.clock.now_ms += self.rng.choice((1, 50, 2 * GUARD_MS))
            elif kind < 0.94:
                await self.places.upset(self.rng)
            elif kind < 0.97:
                await self.sweep()
            else:
                await self.check_rows()
        while self.late or any(self.queues.values()):
            await self.deliver(3)
        await self.check_rows()
        await self.check_all()
        self.places.clock.now_ms += 3 * GUARD_MS
        await self.sweep()
        await self.check_all()
        for row in self.groups:
            assert all(not unpack(value).is_gone for value in self.places.read(row, b"m").values())
            guards: Guards = self.places.region(row).guards
            assert not guards, "all are gone, and nobody looks for them"

    # --- what sources do -----------------------------------------------------------------------------

    def change(self, source: bytes) -> None:
        self.number += 1
        old = self.given.get(source, {})
        groups = self.rng.sample(self.groups, self.rng.choice((0, 1, 1, 2)))
        new = {group: self.rng.choice((old.get(group), None)) or self.some() for group in groups}
        self.given[source] = new
        for group in old.keys() | new.keys():
            if old.get(group) != new.get(group):
                self.late.append(self.message(group, self.said(source, new.get(group))))

    def some(self) -> Given:
        amounts = (1, 1, -1, 0, 7, (1 << 63) - 1, -(1 << 63))
        names = self.rng.sample((b"n:", b"n:x", b"n:y"), self.rng.randrange(1, 4))
        carried = self.rng.choice(((), ((b"c:d", b"e"),)))
        return {name: self.rng.choice(amounts) for name in names}, self.rng.choice(ORDERS), carried

    def said(self, source: bytes, given: Given | None, *, relative: bool = False) -> Contribute:
        sequence = (self.number // 5, 1, self.number)
        if given is None:
            return Contribute(b"m", source, sequence, None, ())
        amounts, order, carried = given
        totals = tuple((b"n", name[2:]) for name in amounts)
        ordered = b"o" if order is not None else b""
        return Contribute(b"m", source, sequence, tuple(amounts.values()), totals, ordered, order, carried, relative)

    def tally(self, source: bytes) -> None:
        self.number += 1
        group = self.rng.choice(self.groups)
        amount = self.rng.choice((1, 1, 5, -2, 1 << 62))
        key = group, source
        self.tallied[key] = wrapped(self.tallied.get(key, 0) + amount)
        said = self.said(source, ({b"n:x": amount}, None, ()), relative=True)
        self.queues.setdefault(source, []).append(self.message(group, said))

    def message(self, row: bytes, said: Contribute) -> Message:
        return Message(row, said, self.places.clock.now_ms, self.rng.choice((1, 1, 1, 2, 3)))

    # --- what becomes of it ----------------------------------------------------------------------------

    async def deliver(self, count: int) -> None:
        """Deliver some messages, in one mutation for each row."""
        by_row: dict[bytes, list[Operation]] = {}
        for message in self.taken(count):
            by_row.setdefault(message.row, []).append(message.said)
        self.places.clock.now_ms += self.rng.randrange(2)
        await self.places.apply([RowMutation(row, tuple(said)) for row, said in by_row.items()])

    def taken(self, count: int) -> Iterator[Message]:
        for _ in range(count):
            queues = [queue for queue in self.queues.values() if queue]
            if self.late and (not queues or self.rng.random() < 0.7):
                at = self.rng.randrange(len(self.late))
                yield self._arrived(self.late, at)
            elif queues:
                yield self._arrived(self.rng.choice(queues), 0)

    def _arrived(self, held: list[Message], at: int) -> Message:
        message = held[at]
        message.to_come -= 1
        if not message.to_come:
            del held[at]
        return message

    async def sweep(self) -> None:
        now_ms = self.places.clock.now_ms
        if self.keeps_guards:
            await self.places.sweep(min([now_ms - GUARD_MS, *(message.made_ms for message in self.open())]))
        else:
            await self.places.sweep(now_ms + 1)

    def open(self) -> Iterable[Message]:
        yield from self.late
        for queue in self.queues.values():
            yield from queue

    # --- looking -----------------------------------------------------------------------------------

    async def check_rows(self) -> None:
        """Check that the totals and ordered cells of each row follow from its members, at any time."""
        await self._settled()
        for row in self.groups:
            found = {source: unpack(value) for source, value in self.places.read(row, b"m").items()}
            totals: dict[bytes, int] = {}
            for member in found.values():
                for total, amount in member.amounts:
                    totals[total] = wrapped(totals.get(total, 0) + amount)
            ordered = {
                order_qualifier(member.order, source): member.carried
                for source, member in found.items()
                if member.ordered
            }
            assert self._totals(row) == {total: value for total, value in totals.items() if value}
            assert self._ordered(row) == ordered

    async def check_all(self) -> None:
        """Check after all messages have arrived that rows follow from the sources."""
        await self._settled()
        for row in self.groups:
            totals: dict[bytes, int] = {}
            ordered, members = {}, set()
            for source, groups in self.given.items():
                if row in groups:
                    amounts, order, carried = groups[row]
                    members.add(source)
                    if order is not None:
                        ordered[order_qualifier(order, source)] = carried
                    for total, amount in amounts.items():
                        totals[total] = wrapped(totals.get(total, 0) + amount)
            for (group, source), amount in self.tallied.items():
                if group == row:
                    members.add(source)
                    totals[b"n:x"] = wrapped(totals.get(b"n:x", 0) + amount)
            assert self._totals(row) == {total: value for total, value in totals.items() if value}
            assert self._ordered(row) == ordered
            found = self.places.read(row, b"m").items()
            assert {source for source, value in found if not unpack(value).is_gone} == members

    async def _settled(self) -> None:
        if isinstance(self.places, Changing):
            await self.places.settle()

    def _totals(self, row: bytes) -> dict[bytes, int]:
        cells = self.places.read(row, b"n").items()
        return {b"n:" + name: int.from_bytes(value, "big", signed=True) for name, value in cells}

    def _ordered(self, row: bytes) -> dict[bytes, Any]:
        return {name: unpack_carried(value) for name, value in self.places.read(row, b"o").items()}


async def still(numbers: range, *, keeps_guards: bool = True) -> int:
    """Play runs on one server, each with rows of its own; return how many fail if guards are not kept."""
    rng, wrong = random.Random(numbers.start), 0
    places = Still(rng.choice(TABLES), rng.random() < 0.3)
    for number in numbers:
        places.groups = tuple(group + b"/%d" % number for group in GROUPS)
        try:
            await Run(random.Random(number), places, keeps_guards=keeps_guards).play()
        except AssertionError as error:
            if keeps_guards:
                raise AssertionError(f"seed {number} of {numbers}: {error}") from error
            wrong += 1
    await places.close()
    return wrong


async def changing(number: int) -> int:
    rng = random.Random(number)
    places = Changing(HeldEngine(MemoryEngine()))
    await places.start(rng.choice(TABLES))
    try:
        await Run(rng, places).play()
    except AssertionError as error:
        raise AssertionError(f"seed {number}: {error}") from error
    finally:
        await places.close()
    return places.changes


def several(first: int, count: int) -> Iterator[range]:
    """Yield ranges of seeds that share a server."""
    for start in range(first, first + count, TOGETHER):
        yield range(start, min(start + TOGETHER, first + count))


def test_totals_are_what_the_sources_give() -> None:
    async def main() -> None:
        for numbers in several(SEED, SEEDS):
            await still(numbers)

    asyncio.run(main())


def test_totals_survive_splits_and_merges() -> None:
    async def main() -> int:
        return sum([await changing(SEED + number) for number in range(CHANGING_SEEDS)])

    assert asyncio.run(main()) > CHANGING_SEEDS // 2, "splits and merges that were carried out"


def test_without_guards_the_model_finds_what_goes_wrong() -> None:
    """Guards are removed while older messages are under way, which the model must notice."""

    async def main() -> int:
        return sum([await still(numbers, keeps_guards=False) for numbers in several(SEED, 200)])

    assert asyncio.run(main())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=SEED)
    asked = parser.parse_args()

    async def many() -> None:
        for numbers in several(asked.first, asked.seeds):
            await still(numbers)
            await changing(numbers.start)

    asyncio.run(many())
    print(f"{asked.seeds} seeds from {asked.first}: nothing wrong")

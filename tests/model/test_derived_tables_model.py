"""Random histories with timestamps of the clients' own: without lag the tables of triggers equal their recomputation.

Puts and deletes lie hours before and ahead of the clock, which stands still at times and is an hour back after some
restarts; regions split and merge.  Calls of triggers fall in the middle, come again, and ghosts of dead workers
write late.  COLUMNAR_MODEL_SEEDS says how many runs; each prints its seed.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from columnar.errors import CallerError, RetryLater
from columnar.flows import delivery_state
from columnar.model.mutation import Append, Delete, Operation, Put, RowMutation
from columnar.model.schema import Family
from columnar.model.trigger_registration import Registration
from columnar.storage.memory import MemoryEngine
from tests.support import derived_pages, trigger_functions
from tests.support.changing_house import CatalogueRows
from tests.support.deep import seeds
from tests.support.deriving_house import Derived, DerivingHouse, Function
from tests.support.held_engine import FakeClock
from wikka_port import schema, triggers
from wikka_port.names import page_key
from wikka_port.next_revision import draft_after
from wikka_port.page_rows import page_cells, revision_cells

SEEDS = int(os.environ.get("COLUMNAR_MODEL_SEEDS") or seeds("seeds of derived tables", deep=8, short=3))
FIRST = int(os.environ.get("COLUMNAR_SEED", "20261123"))
MORE_SEEDS = 20  # until regions have changed: a split of a region with one row is refused, and threads take their turns
STEPS = 50
HOUR_MS = 3_600_000
NAMES = ("Alpha", "Beta", "Gamma", "Delta")
Rows = dict[bytes, dict[bytes, bytes]]


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_state, "FIRST_PAUSE_S", 0.0)


class History:
    """A run; a subclass defines the writes and the expected tables."""

    families: tuple[Family, ...]
    functions: Mapping[str, Function]
    source = b"t"

    def __init__(self, seed: int) -> None:
        print(f"seed {seed}")
        self.rng, self.clock = random.Random(seed), FakeClock(10**12)
        self.engine, self.rows = MemoryEngine(), CatalogueRows()
        self.derived = Derived(self.rng, self.source)
        self.done: Counter[str] = Counter()
        self.highest_stamps: dict[bytes, int] = {}

    def registrations(self) -> list[Registration]:
        raise NotImplementedError

    def operations(self) -> tuple[bytes, tuple[Operation, ...]] | None:
        """Return a row and the operations on it."""
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def attributes(self) -> dict[str, str]:
        return {}

    def timestamp(self) -> int | None:
        far = self.rng.choice((-2 * HOUR_MS, -HOUR_MS, -1, 0, 1, HOUR_MS, 2 * HOUR_MS))
        return self.rng.choice((None, self.clock.now_ms + far))

    async def play(self) -> None:
        await self.open()
        attributes = self.attributes()
        await self.house.make_deriving(list(self.families), self.registrations(), attributes)
        for _ in range(STEPS):
            await self.step()
        await self.house.drain()
        self.check()
        await self.house.close()

    async def open(self) -> None:
        self.house = DerivingHouse(self.engine, self.rows, self.clock, self.derived, self.functions, self.rng)
        await self.house.start()

    async def step(self) -> None:
        kind = self.rng.random()
        if kind < 0.6:
            writing = self.operations()
            if writing is not None:
                await self.house.apply(RowMutation(*writing))
        elif kind < 0.7:
            self.clock.now_ms += self.rng.choice((1, 1, 20, HOUR_MS))
        elif kind < 0.78:
            self.derived.haunt()
        elif kind < 0.84:
            await self.change()
        elif kind < 0.9:
            await self.restart()
        elif kind < 0.93:
            await self.house.drain()
            self.check()
        for _ in range(self.rng.randrange(6)):
            await asyncio.sleep(0)

    async def restart(self) -> None:
        """Restart under a clock that may be an hour behind, with logs that may be empty."""
        if self.rng.random() < 0.5:
            await self.house.drain()
            self.house.keeper.dispatcher.intake.upkeep.save_all()
        await self.house.close()
        self.clock.now_ms -= self.rng.choice((0, 0, HOUR_MS))
        await self.open()
        self.done["restarts"] += 1

    async def change(self) -> None:
        rng, infos = self.rng, self.house.infos
        try:
            if len(infos) < 3 or rng.random() < 0.5:
                await self.house.regions.split(rng.choice(infos), None)
            else:
                at = rng.randrange(len(infos) - 1)
                await self.house.regions.merge(infos[at], infos[at + 1])
            self.done["changes of regions"] += 1
        except (CallerError, RetryLater) as refused:
            self.done[str(refused)[:30]] += 1


class Index(History):
    """An index: a row for each value of f:v, with a cell for each row with that value."""

    families = (Family("f"), Family("g"))
    functions = MappingProxyType({"index": trigger_functions.index})
    row_names = (b"a", b"b", b"d", b"e")
    values: tuple[bytes, ...] = (b"x", b"y", b"z")

    def registrations(self) -> list[Registration]:
        return [Registration("index", "t", "m:f", ("f",), before=True, attempts=1_000)]

    def attributes(self) -> dict[str, str]:
        if self.rng.random() < 0.4:
            self.families = (Family("f", max_versions=3), Family("g"))
            return {}
        return self.rng.choice(({}, {"DELETE_MARKERS": "36000000"}))

    def operations(self) -> tuple[bytes, tuple[Operation, ...]] | None:
        rng = self.rng
        some: list[Operation] = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            kind = rng.random()
            if kind < 0.55:
                some.append(Put(b"f", b"v", rng.choice(self.values), self.timestamp()))
            elif kind < 0.75:
                some.append(Delete(b"f", rng.choice((b"v", None)), self.timestamp()))
            elif kind < 0.85:
                some.append(Delete(b"f", b"v", None, exact=True))
            elif kind < 0.95:
                some.append(Append(b"f", b"v", b""))
            else:
                some.append(Put(b"g", b"v", b"none of its business", self.timestamp()))
        return rng.choice(self.row_names), tuple(some)

    def check(self) -> None:
        expected: Rows = {}
        for row in self.row_names:
            value = self.derived.source_row(row).get(b"f:v")
            if value is not None:
                expected.setdefault(value, {})[b"i:" + row] = b""
        assert self.derived.tables.visible(b"index") == expected


class TagIndex(Index):
    """An index by the pieces of the value, from the images of each change, without a read of the row."""

    functions = MappingProxyType({"tags": trigger_functions.keep_tags})
    values = (b"x", b"x,y", b"y,z", b"")

    def registrations(self) -> list[Registration]:
        return [
            Registration(
                "tags", "t", "m:f", ("f",), before=True, attempts=1_000, row=False, columns=("f:v",), images=True,
                from_where=self.rng.choice(("now", "beginning")),
            )
        ]  # fmt: skip

    def check(self) -> None:
        expected: Rows = {}
        for row in self.row_names:
            for tag in filter(None, self.derived.source_row(row).get(b"f:v", b"").split(b",")):
                expected.setdefault(tag, {})[b"i:" + row] = b""
        assert self.derived.tables.visible(b"index") == expected


class Pages(History):
    """The wiki's own functions; pages are saved at times of the savers' own and deleted as by a raw client."""

    families = (Family("meta"), Family("body"), Family("user"), Family("note"))
    functions = MappingProxyType({one.name: derived_pages.of_one_change(one.call) for one in triggers.REGISTRATIONS})
    source = schema.PAGES

    def registrations(self) -> list[Registration]:
        return [
            Registration(
                one.name, "t", "m:f", tuple(f.decode() for f in one.families), before=one.before, attempts=1_000
            )
            for one in triggers.REGISTRATIONS
        ]

    def operations(self) -> tuple[bytes, tuple[Operation, ...]] | None:
        rng, name = self.rng, self.rng.choice(NAMES)
        key = page_key(name)
        at = self.timestamp()
        if rng.random() < 0.35:
            return key, tuple(Delete(family.bytes_name, None, at) for family in self.families)
        body = " ".join(f"[[{link}]]" for link in NAMES if rng.random() < 0.4)
        time_ms = self.clock.now_ms if at is None else at
        draft = draft_after(self.derived.source_row(key), name=name, body=body, author="Ann", note="", time_ms=time_ms)
        cells = {**page_cells(draft), schema.VERSIONCOUNT: draft.head.pack()}
        revision = schema.revision_row(key, draft.head)
        self.derived.tables.table(schema.REVISIONS)._put(revision, revision_cells(draft), draft.time_ms)
        puts = ((column.partition(b":"), value) for column, value in cells.items())
        return key, tuple(Put(family, qualifier, value, draft.time_ms) for (family, _, qualifier), value in puts)

    def check(self) -> None:
        pages = {page_key(name): self.derived.source_row(page_key(name)) for name in NAMES}
        pages = {key: cells for key, cells in pages.items() if cells}
        expected, tables = derived_pages.Derived.of(pages), self.derived.tables
        assert tables.visible(schema.BACKLINKS) == expected.backlinks
        assert tables.visible(schema.NAMES) == expected.names
        assert tables.visible(schema.TERMS) == expected.terms
        assert tables.visible(schema.DOCS) == expected.docs
        expected.check_wanted(tables, self.derived)


@pytest.mark.parametrize("kind", [Index, TagIndex, Pages])
def test_random_histories(kind: type[History]) -> None:
    done: Counter[str] = Counter()

    async def main(seed: int) -> None:
        history = kind(seed)
        async with asyncio.timeout(60):
            await history.play()
        done.update(history.done)

    def has_both() -> bool:
        return min(done["restarts"], done["changes of regions"]) > 0

    for seed in range(FIRST, FIRST + SEEDS + MORE_SEEDS):
        if seed >= FIRST + SEEDS and has_both():
            break
        asyncio.run(main(seed))
    print(dict(done))
    assert has_both(), "the histories have something in them"


def test_what_a_client_wrote_hours_ahead_does_not_outrank_what_comes_after_it() -> None:
    async def main() -> None:
        history = Index(0)
        await history.open()
        await history.house.make_deriving(list(history.families), history.registrations())
        now = history.clock.now_ms
        steps: tuple[Any, ...] = (
            Put(b"f", b"v", b"x", now + HOUR_MS),
            Delete(b"f", b"v", now + 2 * HOUR_MS),
            Put(b"f", b"v", b"x"),
        )
        for step in steps:
            await history.house.apply(RowMutation(b"a", (step,)))
            await history.house.drain()
        assert history.derived.source_row(b"a") == {b"f:v": b"x"}
        history.check()
        await history.house.close()

    asyncio.run(main())

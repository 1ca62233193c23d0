"""The region against a dictionary: generated mutations, clocks, sweeps, restarts and crashes.

After every step everything readable is read in every way and compared.  A crash keeps a prefix of the writes since the
last fsync (storage promise S2): exactly the acknowledged mutations and that prefix must be there, each whole and with
its change record.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from columnar.errors import CallerError, NoSuchColumnFamily, NotALong, OutcomeUnknown
from columnar.model.attributes import TableChange, altered
from columnar.model.mutation import (
    Append,
    CompareOp,
    Condition,
    Delete,
    Durability,
    Increment,
    Put,
    RowMutation,
    RowPuts,
)
from columnar.model.read import ReadSpec, ScanSpec, projection
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, Table, make_table
from columnar.operations.access import TableAccess
from columnar.operations.scanners import Scanner
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import Sequence, unpack
from columnar.regions.read.region_reads import get_column, get_row
from columnar.regions.read.row_reader import RowCursor, wire_cells
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.sweeper import sweep
from columnar.regions.tables import ServedTable
from columnar.regions.write import column_draft
from columnar.regions.write.applied import Applied
from columnar.storage.commit import Committer
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine
from tests.support.deep import seeds
from tests.support.held_engine import FakeClock, HeldEngine
from tests.support.openings import opened_at_once
from tests.support.region_house import rows_of
from tests.support.row_model import Refused, RowModel

PLAIN = make_table("t", [Family("a"), Family("b", max_versions=3), Family("c", max_versions=3, ttl_s=1)])
KEPT = make_table(
    "t",
    [Family("a", ttl_s=1, min_versions=1), Family("b", max_versions=4, min_versions=2, ttl_s=1), Family("c")],
)
# Nothing is surplus where so many are kept: of versions that expire by themselves it depends on when surplus ones went.
BRIEF = make_table("t", [Family("a"), Family("b", max_versions=99), Family("c", max_versions=99)])
ALTERED = make_table("t", [Family("a"), Family("b", max_versions=3), Family("c", max_versions=3)])
CHANGES = [
    TableChange(change={"b": {"VERSIONS": "1"}}),
    TableChange(change={"b": {"VERSIONS": "3"}, "c": {"VERSIONS": "1", "COMPRESSION": "ZSTD", "IN_MEMORY": "true"}}),
    TableChange(change={"c": {"VERSIONS": "3", "BLOCKCACHE": "false", "BLOCKSIZE": "4096", "BLOOMFILTER": "NONE"}}),
    TableChange(drop=frozenset({"b"})),
    TableChange(drop=frozenset({"c"}), add=(Family("d", max_versions=3),)),
    TableChange(add=(Family("b", max_versions=3),)),
    TableChange(add=(Family("c"),), drop=frozenset({"b"})),
    TableChange(drop=frozenset({"d"}), attributes={"DURABILITY": "SYNC_WAL"}),
]
MARKED = make_table("t", [Family("a"), Family("b")], {"DELETE_MARKERS": "100000"})
ROWS = [b"r", b"r\x00", b"r\x00\x01", b"s\xff"]
QUALIFIERS = [b"", b"q", b"q\x00", b"\xff"]
PHASES = (Phase.explicit, Phase.generate)  # shrinking plays hundreds of crashes: switch it on to hunt
EXAMPLES = int(os.environ.get("COLUMNAR_MODEL_EXAMPLES") or seeds("examples of a region", deep=100, short=30))
START = 10_000
INFO = RegionInfo("t", 7)


@pytest.fixture(autouse=True, scope="module")
def _surplus_versions_go_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_draft, "TRIM_AFTER", 2)
        yield


class Harness:
    """A region on one engine, its model, and the states to which a crash may return."""

    def __init__(self, table: Table, engine: Any, memory: MemoryEngine | None, folder: str, *, logged: bool) -> None:
        self.table, self.engine, self.memory, self.folder = table, HeldEngine(engine), memory, folder
        self.clock = FakeClock(START)
        self.model = RowModel(table)
        self.logged = logged
        self.given = 0
        self.loaded = 0
        self.columns: dict[tuple[tuple[bytes, bytes], ...], tuple[tuple[bytes, bytes], ...]] = {}
        self.durable = Sequence(0, 0, 0)  # the last that was acknowledged
        self.last = self.written = Sequence(0, 0, 0)  # of this opening: the last given, the last that wrote
        self.waiting: list[asyncio.Future[None]] = []
        self.states: list[RowModel] = []  # after each batch that no fsync covers yet, the oldest first
        self.committer = Committer(asyncio.get_running_loop(), threads=1)
        self.open()

    def open(self) -> None:
        self.clock.now_ms += 1  # an opening takes longer than a millisecond
        self.server = RegionServer(self.engine, self.folder, self.committer, self.clock)
        self.log_all()
        served = ServedTable(self.table, True, [INFO])
        self.server.folders.make([INFO.encoded])
        self.server.tables.install(served)
        self.region: Region = opened_at_once(self.server, served, INFO)
        self.rebase()
        self.last = self.written = self.durable
        self.watch_clock()

    def rebase(self) -> None:
        """Begin the states anew when no mutation waits: no unsynced batch (a new epoch, a sweep) is visible then."""
        unsynced = len(self.memory.disks[self.server.folder_of(INFO)].unsynced) if self.memory is not None else 0
        self.states = [self.model.clone()] * (unsynced + 1)

    # --- steps -------------------------------------------------------------------------------------

    def watch_clock(self) -> None:
        """Note the time that the region gives to each mutation; rows of a logged table never get a time twice (I4)."""
        stamps = self.region.logging.stamps
        give = stamps.give

        def noted(batch: Any, row: bytes, now_ms: int) -> int:
            self.given = give(batch, row, now_ms)
            assert self.given >= now_ms
            assert self.given > self.model.stamps.get(row, -1), "a change of a row is later than the one before"
            return self.given

        stamps.give = noted  # type: ignore[method-assign]
        give_step = stamps.give_step

        def noted_step(batch: Any, names: list[bytes], now_ms: int) -> int:
            self.given = give_step(batch, names, now_ms)
            assert self.given >= now_ms
            assert all(self.given > self.model.stamps.get(row, -1) for row in names)
            return self.given

        stamps.give_step = noted_step  # type: ignore[method-assign]

    def apply(self, mutation: RowMutation) -> Applied:
        """Apply a mutation, every second time in the form of a bulk load if possible."""
        plain = not mutation.conditions and mutation.durability is Durability.SYNC
        puts = [one for one in mutation.operations if isinstance(one, Put) and one.timestamp is one.ttl_ms is None]
        if plain and len(puts) == len(mutation.operations):
            self.loaded += 1
            if self.loaded % 2:
                named = tuple((put.family, put.qualifier) for put in puts)
                columns = self.columns.setdefault(named, named)  # as rows of one call share them
                return self.region.apply_many([RowPuts(mutation.row, columns, [put.value for put in puts])])
        return self.region.apply(mutation)

    async def mutate(self, mutation: RowMutation, acknowledge: bool) -> None:
        if not acknowledge:
            self.engine.gate.hold()
        self.given = self.clock.now_ms
        touched = {one.family for one in (*mutation.operations, *mutation.conditions)}
        if not touched <= self.region.views.keys():
            with suppress(NoSuchColumnFamily):
                assert self.region.apply(mutation).failed_condition is not None
            return
        try:
            applied = self.apply(mutation)
        except NotALong:
            with pytest.raises(Refused):
                self.model.apply(mutation, self.given, logged=self.logged)
            return
        expected = self.model.apply(mutation, self.given, logged=self.logged)
        assert (applied.failed_condition, [value for _, value, _ in applied.results]) == expected
        assert applied.sequence > max(self.durable, self.last), "sequences only grow"
        self.last = applied.sequence
        if expected[0] is None:
            self.written = applied.sequence
            self.states.append(self.model.clone())
            assert applied.durable is not None
            self.waiting.append(applied.durable)
        if acknowledge:
            await self.settle()

    async def mutate_group(self, mutations: list[RowMutation], acknowledge: bool) -> None:
        """Mutate several rows in one step: all of them or none, in memory and after a crash."""
        if not acknowledge:
            self.engine.gate.hold()
        self.given = self.clock.now_ms
        try:
            found = self.region.apply_group(mutations)
        except NotALong:
            with pytest.raises(Refused):
                self.model.apply_group(mutations, self.given, logged=self.logged)
            return
        row, condition, told = self.model.apply_group(mutations, self.given, logged=self.logged)
        assert (found.failed_row, found.applied.failed_condition) == (row, condition)
        assert [[value for _, value, _ in step.results] if step is not None else [] for step in found.steps] == told
        if any(found.steps):
            self.last = self.written = found.applied.sequence
            self.states.append(self.model.clone())
            assert found.applied.durable is not None
            self.waiting.append(found.applied.durable)
        if acknowledge:
            await self.settle()

    async def settle(self) -> None:
        """Let every fsync through."""
        self.engine.gate.release()
        await self.server.hosting.quiesce(self.region)
        for durable in self.waiting:
            await durable
        self.waiting = []
        self.durable = self.written
        self.rebase()

    async def crash(self, draw: int) -> None:
        assert self.memory is not None
        path = self.server.folder_of(INFO)
        unsynced = len(self.memory.disks[path].unsynced)
        assert unsynced + 1 == len(self.states), "one mutation, one batch"
        keep = draw % (unsynced + 1)
        self.memory.crash(path, keep=keep)
        self.model = self.states[keep].clone()
        self.engine.gate.fail()
        for durable in self.waiting:
            with pytest.raises(OutcomeUnknown):
                await durable
        self.waiting = []
        self.engine.gate.release()
        self.committer.close()
        self.committer = Committer(asyncio.get_running_loop(), threads=1)
        self.open()

    def log_all(self) -> None:
        families = frozenset(family.bytes_name for family in self.table.families)
        if self.logged:
            self.server.set_policy("t", LogPolicy(families, families))

    async def restart(self) -> None:
        await self.settle()
        await self.server.close()
        self.open()

    async def alter(self, change: TableChange, while_closed: bool) -> None:
        await self.settle()
        try:
            table = altered(self.table, change)
        except CallerError:
            return
        if while_closed:
            await self.server.close()
        self.table = table
        self.model.alter(table)
        if while_closed:
            self.open()
        else:
            self.server.tables.install(ServedTable(table, True, [INFO]))
            self.log_all()
            self.clock.now_ms += 1
            await self.server.upkeep.follow_schema("t")
            (region,) = self.server.all_open()
            if region is not self.region:  # the engine took some of it at an opening only
                self.region = region
                self.last = self.written = self.durable
                self.watch_clock()
        self.rebase()

    # --- looking -----------------------------------------------------------------------------------

    async def check(self) -> None:
        self.check_rows()
        self.check_scans()
        self.check_log()
        if not self.waiting:
            await self.check_scanner()

    def check_rows(self) -> None:
        region, model, now = self.region, self.model, self.clock.now_ms
        everything = projection(self.table, [])
        for row in ROWS:
            assert get_row(region, row, ReadSpec(everything)) == model.row(row, now)
            for low, high in ((0, now), (now - 3, now + 1), (0, START - 4)):
                found = get_row(region, row, ReadSpec(everything, (low, high)))
                assert found == model.row(row, now, low, high), (row, low, high)
            for family in self.table.families:
                name = family.bytes_name
                for qualifier in QUALIFIERS:
                    spec = ReadSpec(projection(self.table, [name + b":" + qualifier]), max_versions=5)
                    expected = [(value, at) for at, value in model.versions(row, name, qualifier, now)][:5]
                    assert get_column(region, row, name, qualifier, spec) == expected
                spec = ReadSpec(projection(self.table, [name + b":q", name + b":"]))
                wanted = (name + b":", name + b":q")
                assert get_row(region, row, spec) == [cell for cell in model.row(row, now) if cell[0] in wanted]
            ranges = ((b"b", (now - 5, now - 1)),)
            several = ReadSpec(everything, (0, now), max_versions=2, family_ranges=ranges)
            assert get_row(region, row, several) == model.versions_in(row, now, several)

    def check_scans(self) -> None:
        spec = ReadSpec(projection(self.table, []))
        expected = [(row, cells) for row in self.model.rows() if (cells := self.model.row(row, self.clock.now_ms))]
        for reverse in (False, True):
            cursor = RowCursor.over(self.region.store, self.region.views, spec.projection, b"", None, reverse=reverse)
            found = []
            while (step := cursor.next_row()) is not None:
                cells = wire_cells(self.region.store, step[0], step[1], spec, self.clock.now_ms)
                found += [(step[0], cells)] if cells else []
            assert found == (expected[::-1] if reverse else expected)

    async def check_scanner(self) -> None:
        now, read = self.clock.now_ms, ReadSpec(projection(self.table, []))
        for reverse in (False, True):
            spec = ScanSpec(b"r\x00", b"", read, reversed=reverse)
            scanner = Scanner(TableAccess(self.server), b"t", spec, None)
            rows = await rows_of(scanner, 100)
            inside = [row for row in self.model.rows() if (row <= b"r\x00" if reverse else row >= b"r\x00")]
            expected = [(row, cells) for row in inside if (cells := self.model.row(row, now))]
            assert rows == (expected[::-1] if reverse else expected)

    def check_log(self) -> None:
        """Check D6: there is a record for each stored mutation, in their order, and for no other."""
        stored = self.region.store.scan("log", b"", None)
        assert [unpack(data).row for _, data in stored] == self.model.log

    async def close(self) -> None:
        await self.settle()
        await self.server.close()
        self.committer.close()


# --- what hypothesis draws -------------------------------------------------------------------------

# One row and one column are drawn more often than others: what goes wrong goes wrong on cells written again.
rows = st.sampled_from([*ROWS, ROWS[0], ROWS[0], ROWS[0], ROWS[0]])
qualifiers = st.sampled_from([*QUALIFIERS, b"q", b"q", b"q", b"q"])
timestamps = st.one_of(st.none(), st.integers(-6, 6).map(lambda delta: START + delta))
values = st.sampled_from([b"", b"x", b"yy", (5).to_bytes(8, "big"), b"\xff" * 8])
amounts = st.sampled_from([0, 1, -7, (1 << 63) - 1])


def operations(families: list[bytes], ttl_families: list[bytes]) -> st.SearchStrategy[Any]:
    family = st.sampled_from(families)
    return st.one_of(
        st.builds(Put, family, qualifiers, values, timestamps, st.none()),
        st.builds(Put, family, qualifiers, values, timestamps, st.none()),
        st.builds(Put, st.sampled_from(ttl_families), qualifiers, values, timestamps, st.integers(1, 8)),
        st.builds(Delete, family, st.one_of(st.none(), qualifiers), timestamps, st.booleans()),
        st.builds(Increment, family, qualifiers, amounts),
        st.builds(Append, family, qualifiers, values),
    )


def steps(table: Table, ttl_families: tuple[bytes, ...] = (b"a",)) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    families = [family.bytes_name for family in table.families]
    ops = operations(families, list(ttl_families))
    condition = st.builds(Condition, st.sampled_from(families), qualifiers, st.sampled_from(CompareOp), values)
    mutation = st.builds(
        lambda row, some, conditions: RowMutation(row, tuple(some), tuple(conditions)),
        rows,
        st.lists(ops, min_size=1, max_size=5),
        st.one_of(st.just([]), st.just([]), st.lists(condition, max_size=2)),
    )
    group = st.lists(mutation, min_size=2, max_size=4, unique_by=lambda one: one.row).map(_some_only_checked)
    return st.lists(
        st.one_of(
            st.tuples(st.just("group"), group, st.booleans()),
            st.tuples(st.just("mutate"), mutation, st.booleans()),
            st.tuples(st.just("mutate"), mutation, st.booleans()),
            st.tuples(st.just("mutate"), mutation, st.booleans()),
            st.tuples(st.just("tick"), st.sampled_from([1, 2, 5, 300, 1000])),
            st.tuples(st.just("crash"), st.integers(0, 40)),
            st.tuples(st.just("restart")),
            st.tuples(st.just("sweep")),
        ),
        min_size=4,
        max_size=14,
    )


def _some_only_checked(mutations: list[RowMutation]) -> list[RowMutation]:
    """Take the operations from the last of the rows with conditions: whether these hold decides for the others."""
    checked = [one for one in mutations if one.conditions]
    return [RowMutation(one.row, (), one.conditions) if one in checked[1:] else one for one in mutations]


async def play(harness: Harness, played: list[tuple[Any, ...]]) -> None:
    for verb, *rest in played:
        if verb == "mutate":
            await harness.mutate(*rest)
        elif verb == "group":
            await harness.mutate_group(*rest)
        elif verb == "tick":
            harness.clock.now_ms += rest[0]
        elif verb == "crash" and harness.memory is not None:
            await harness.crash(*rest)
        elif verb == "sweep":
            await harness.settle()
            await sweep(harness.region.store, harness.table, harness.region.views, harness.clock.now_ms)
            harness.rebase()
        elif verb == "restart":
            await harness.restart()
        elif verb == "alter":
            await harness.alter(*rest)
        await harness.check()
    await harness.close()


def run(table: Table, make: Callable[[], tuple[Any, MemoryEngine | None, str]], played: Any, *, logged: bool) -> None:
    async def main() -> None:
        engine, memory, folder = make()
        await play(Harness(table, engine, memory, folder, logged=logged), played)

    asyncio.run(main())


def in_memory() -> tuple[Any, MemoryEngine | None, str]:
    engine = MemoryEngine()
    return engine, engine, "folder"


@given(steps(PLAIN), st.booleans())
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_region_in_memory_with_crashes(played: Any, logged: bool) -> None:
    run(PLAIN, in_memory, played, logged=logged)


@given(steps(BRIEF, (b"a", b"b", b"b", b"c")), st.booleans())
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_region_whose_newest_versions_expire_by_themselves(played: Any, logged: bool) -> None:
    run(BRIEF, in_memory, played, logged=logged)


@given(steps(MARKED), st.booleans())
@settings(max_examples=EXAMPLES // 2, phases=PHASES)
def test_region_with_delete_markers_and_crashes(played: Any, logged: bool) -> None:
    run(MARKED, in_memory, played, logged=logged)


@pytest.fixture(scope="module")
def rocks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[Any, None, str]]:
    engine, folder = RocksEngine(), tmp_path_factory.mktemp("rocks")
    made = iter(range(1_000_000))
    return lambda: (engine, None, str(Path(folder) / str(next(made))))


@given(steps(PLAIN), st.booleans())
@settings(max_examples=EXAMPLES // 4, phases=PHASES)
def test_region_on_rocksdb(rocks: Any, played: Any, logged: bool) -> None:
    run(PLAIN, rocks, played, logged=logged)


def focused_steps(*more: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Return steps on few cells that are written again and again, because only then versions and schemas matter."""
    family, qualifier = st.sampled_from([*[b"b"] * 7, b"a", b"c", b"d"]), st.sampled_from([*[b"q"] * 5, b""])
    put = st.builds(Put, family, qualifier, values, st.one_of(st.none(), timestamps), st.none())
    operation = st.one_of(put, put, st.builds(Delete, family, st.one_of(st.none(), qualifier), timestamps))
    mutation = operation.map(lambda one: RowMutation(ROWS[0], (one,)))
    mutate = st.tuples(st.just("mutate"), mutation, st.booleans())
    tick = st.tuples(st.just("tick"), st.sampled_from([1, 2, 500, 1000]))
    rare = st.one_of(
        st.tuples(st.just("crash"), st.integers(0, 40)), st.tuples(st.just("restart")), st.tuples(st.just("sweep"))
    )
    return st.lists(st.one_of(*[mutate] * 6, tick, tick, rare, *more), min_size=12, max_size=24)


@given(focused_steps(), st.booleans())
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_region_with_min_versions_and_crashes(played: Any, logged: bool) -> None:
    run(KEPT, in_memory, played, logged=logged)


alterations = st.tuples(st.just("alter"), st.sampled_from([*CHANGES[:2] * 3, *CHANGES]), st.booleans())


@given(focused_steps(alterations, alterations), st.booleans())
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_region_whose_table_is_altered(played: Any, logged: bool) -> None:
    run(ALTERED, in_memory, played, logged=logged)


@given(focused_steps(alterations, alterations), st.booleans())
@settings(max_examples=EXAMPLES // 10, phases=PHASES)
def test_region_on_rocksdb_whose_table_is_altered(rocks: Any, played: Any, logged: bool) -> None:
    run(ALTERED, rocks, played, logged=logged)

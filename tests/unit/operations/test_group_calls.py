"""Calls about groups of rows: all rows or none, reads that are looked at again, bounds, and the change log."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.errors import CallerError, IllegalArgument, NotALong, NotServingRegion, RequestTooBig, TableReadOnly
from columnar.limits import ROW_GROUP_BYTES, ROW_GROUP_CELLS
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, Table, make_table
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import ChangeRecord, SequenceRange, parse_token, unpack
from columnar.storage.api import StoreBusy
from columnar.thrift.group_methods import GroupMethods
from columnar.wire.idl import columnar
from columnar.wire.service import CallContext, Later
from tests.support.region_house import House
from tests.support.service_calls import answer_of

CTX = CallContext(1, "test")
GROUPED = {"ROW_GROUP": "until:/"}
TABLE = make_table("t", [Family("a"), Family("b", max_versions=3)], GROUPED)
EXISTS, ABSENT = columnar.CompareOp.EXISTS, columnar.CompareOp.ABSENT


def put(column: bytes, value: bytes = b"v") -> Any:
    return columnar.RowOperation(column=column, value=value)


def row(name: bytes, *operations: Any, conditions: tuple[Any, ...] = ()) -> Any:
    return columnar.CheckedRow(row=name, conditions=list(conditions), operations=list(operations))


DELETE_A = columnar.RowOperation(kind=1, column=b"a")


def add_one(column: bytes) -> Any:
    return columnar.RowOperation(kind=2, column=column, amount=1)


def expect(column: bytes, op: Any = EXISTS) -> Any:
    return columnar.Condition(column=column, op=op)


class Calls(House):
    """A server with the methods of groups."""

    def __init__(self, table: Table, splits: tuple[bytes, ...] = ()) -> None:
        super().__init__(table, splits)
        self._methods = GroupMethods(self.operations)
        for info in self.served.regions:
            self.region(info.start)

    async def mutate(self, *rows: Any, group: bytes = b"g/", reads: Any = ()) -> Any:
        return await answer_of(self._methods.columnarMutateGroup(CTX, b"t", group, list(rows), list(reads)))

    async def read_group(self, *columns: bytes, group: bytes = b"g/", rows: Any = ()) -> Any:
        return await answer_of(self._methods.columnarReadGroup(CTX, b"t", group, list(columns), list(rows)))

    async def seen(self, *columns: bytes, **asked: Any) -> Any:
        """Return a read in the form in which a write asks whether it still holds."""
        found = await self.read_group(*columns, **asked)
        return columnar.GroupRead(rows=list(asked.get("rows", ())), columns=found.columns, digest=found.digest)

    def held(self, group: bytes = b"g/") -> dict[bytes, dict[bytes, bytes]]:
        names = (b"1", b"2", b"3")
        held = {group + n: {column: value for column, value, _ in House.row(self, group + n)} for n in names}
        return {name: cells for name, cells in held.items() if cells}

    def records(self) -> list[ChangeRecord]:
        return [unpack(data) for _, data in self.region(b"g/").store.scan("log", b"", None)]


def served(
    table: Table = TABLE, splits: tuple[bytes, ...] = ()
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def run(**given: Any) -> None:
            calls = Calls(table, splits)
            try:
                await test(calls, **given)
            finally:
                await calls.close()

        def wrapped(**given: Any) -> None:
            asyncio.run(run(**given))

        wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
        known = inspect.signature(test)
        wrapped.__signature__ = known.replace(parameters=list(known.parameters.values())[1:])  # type: ignore[attr-defined]
        return wrapped

    return decorate


@served()
async def test_all_conditions_are_looked_at_before_anything_is_written(calls: Calls) -> None:
    await calls.mutate(row(b"g/2", put(b"a:q", b"old")))
    refused = await calls.mutate(
        row(b"g/1", put(b"a:q")),
        row(b"g/2", put(b"a:q", b"new"), conditions=(expect(b"a:q"), expect(b"b:q"))),
        row(b"g/3", conditions=(expect(b"a:q"),)),
    )
    assert (refused.applied, refused.failedRow, refused.failedCondition, refused.failedRead) == (False, 1, 1, -1)
    assert refused.rows == []
    assert calls.held() == {b"g/2": {b"a:q": b"old"}}
    # A condition of the last row sees the store as it was before the call.
    done = await calls.mutate(
        row(b"g/1", put(b"a:q", b"1"), columnar.RowOperation(kind=2, column=b"a:n", amount=5)),
        row(b"g/2", DELETE_A),
        row(b"g/3", conditions=(expect(b"a:q", ABSENT),)),
    )
    assert done.applied
    assert [len(one.counters) for one in done.rows] == [1, 0, 0]
    first, last = (parse_token(one.sequence) for one in done.rows[:2])
    assert first < last
    assert done.sequence == SequenceRange(first, last).token
    assert done.rows[2].sequence == "", "nothing was done with it"
    assert calls.held() == {b"g/1": {b"a:q": b"1", b"a:n": (5).to_bytes(8, "big")}}


@served()
async def test_an_error_in_the_last_row_leaves_the_first_as_it_was(calls: Calls) -> None:
    await calls.mutate(row(b"g/2", put(b"a:n", b"no number")))
    with pytest.raises(NotALong):
        await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/2", add_one(b"a:n")))
    assert calls.held() == {b"g/2": {b"a:n": b"no number"}}


@served()
async def test_rows_are_of_the_group_of_the_call(calls: Calls) -> None:
    with pytest.raises(IllegalArgument, match="row h/1 is of the group h/, not of the group g/ of the call"):
        await calls.mutate(row(b"g/1", put(b"a:q")), row(b"h/1", put(b"a:q")))
    with pytest.raises(IllegalArgument, match="row g is of the group g, not of the group g/"):
        await calls.mutate(row(b"g", put(b"a:q")), group=b"g/1")
    with pytest.raises(IllegalArgument, match="names each row once"):
        await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/1", put(b"a:r")))
    with pytest.raises(IllegalArgument, match="not of the group g/ of the call"):
        await calls.read_group(rows=[b"h/1"])
    with pytest.raises(IllegalArgument, match="not of the group g/ of the call"):
        await calls.mutate(reads=[columnar.GroupRead(rows=[b"h/1"], columns=[], digest=b"")])
    with pytest.raises(IllegalArgument, match="needs a row"):
        await calls.mutate()
    assert calls.held() == {}
    assert (await calls.mutate(row(b"g/1", put(b"a:q")), group=b"g/any")).applied
    assert (await calls.mutate(row(b"g", put(b"a:q")), group=b"g")).applied, "a row without the delimiter"
    assert [one.row for one in (await calls.read_group(group=b"g")).rows] == [b"g"]
    assert [one.row for one in (await calls.read_group(group=b"g/7")).rows] == [b"g/1"]


@served(make_table("t", [Family("a")]))
async def test_a_table_without_groups_says_what_to_do(calls: Calls) -> None:
    for call in (lambda: calls.mutate(row(b"g/1", put(b"a:q"))), calls.read_group):
        with pytest.raises(IllegalArgument, match="no groups of rows: set ROW_GROUP first, for example"):
            await call()


# --- reads that are looked at again --------------------------------------------------------------------

CHANGES = {
    "a changed cell": (row(b"g/1", put(b"a:q", b"new")), True),
    "a new row": (row(b"g/3", put(b"a:q")), True),
    "a new cell": (row(b"g/2", put(b"a:other")), True),
    "a row that went": (row(b"g/2", DELETE_A), True),
    "a cell of another family": (row(b"g/2", put(b"b:q")), False),
    "a row of another family": (row(b"g/3", put(b"b:q")), False),
}


@pytest.mark.parametrize("change", CHANGES)
@served()
async def test_a_read_holds_until_something_of_it_changes(calls: Calls, change: str) -> None:
    """Also what was not there: rows and cells that have come since."""
    await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/2", put(b"a:q")))
    whole = await calls.seen(b"a")
    changing, is_seen = CHANGES[change]
    assert (await calls.mutate(changing)).applied
    found = await calls.mutate(row(b"g/1", put(b"b:done")), reads=[await calls.seen(), whole])
    assert (found.applied, found.failedRead) == ((False, 1) if is_seen else (True, -1))
    assert (b"b:done" in calls.held().get(b"g/1", {})) is not is_seen
    assert (await calls.mutate(reads=[await calls.seen(b"a")])).applied


@served()
async def test_a_read_of_named_rows_sees_these_alone(calls: Calls) -> None:
    await calls.mutate(row(b"g/1", put(b"a:q")))
    two = await calls.seen(rows=[b"g/2", b"g/1"])
    absent = await calls.seen(b"a:none", rows=[b"g/1"])
    await calls.mutate(row(b"g/3", put(b"a:q")), row(b"g/1", put(b"b:q"), conditions=(expect(b"a:q"),)))
    assert (await calls.mutate(reads=[absent, two])).failedRead == 1, "g/1 has a cell more"
    assert (await calls.mutate(reads=[absent])).applied
    two = await calls.seen(rows=[b"g/2", b"g/1"])
    await calls.mutate(row(b"g/3", put(b"a:q", b"again")))
    assert (await calls.mutate(reads=[two])).applied
    await calls.mutate(row(b"g/2", put(b"a:q")))
    assert (await calls.mutate(reads=[two])).failedRead == 0


@served()
async def test_a_cell_put_back_to_its_value_is_a_change(calls: Calls) -> None:
    await calls.mutate(row(b"g/1", put(b"a:q", b"1")))
    seen = await calls.seen()
    calls.clock.now_ms += 1
    await calls.mutate(row(b"g/1", put(b"a:q", b"1")))
    assert not (await calls.mutate(reads=[seen])).applied


@served(make_table("t", [Family("a", ttl_s=1), Family("b")], GROUPED))
async def test_a_cell_that_expires_is_a_change(calls: Calls) -> None:
    await calls.mutate(row(b"g/1", put(b"a:q", b"1")), row(b"g/2", put(b"b:q")))
    seen = await calls.seen()
    assert [one.row for one in (await calls.read_group()).rows] == [b"g/1", b"g/2"]
    calls.clock.now_ms += 1_001
    assert [one.row for one in (await calls.read_group()).rows] == [b"g/2"]
    assert (await calls.mutate(reads=[seen])).failedRead == 0


# --- durability ----------------------------------------------------------------------------------------


@served()
async def test_an_answer_waits_for_the_fsync_of_what_it_tells(calls: Calls) -> None:
    methods = GroupMethods(calls.operations)
    nothing = await calls.seen()
    calls.gate.hold()
    written = methods.columnarMutateGroup(CTX, b"t", b"g/", [row(b"g/1", put(b"a:q")), row(b"g/2", put(b"a:q"))], [])
    read = methods.columnarReadGroup(CTX, b"t", b"g/", [], [])
    refused = methods.columnarMutateGroup(
        CTX, b"t", b"g/", [row(b"g/1", put(b"a:q"), conditions=(expect(b"a:q", ABSENT),))], []
    )
    changed = methods.columnarMutateGroup(CTX, b"t", b"g/", [row(b"g/3", put(b"a:q"))], [nothing])
    holds = methods.columnarMutateGroup(CTX, b"t", b"g/", [row(b"g/1", conditions=(expect(b"a:q"),))], [])
    other = methods.columnarReadGroup(CTX, b"t", b"h/", [], [])
    assert not isinstance(other, Later), "no row of that group waits"
    for waiting in (written, read, refused, changed, holds):
        assert isinstance(waiting, Later)
        assert not waiting.future.done()
    await asyncio.to_thread(calls.gate.entered.wait)
    syncs = calls.gate.syncs
    calls.gate.release()
    assert (await answer_of(written)).applied
    assert [one.row for one in (await answer_of(read)).rows] == [b"g/1", b"g/2"]
    assert not (await answer_of(refused)).applied
    assert (await answer_of(changed)).failedRead == 0
    assert (await answer_of(holds)).applied
    assert calls.gate.syncs - syncs <= 1, "all of them share one"


@served()
async def test_a_busy_engine_is_waited_for(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    region = calls.region(b"g/")
    apply, refusals = region.apply_group, [StoreBusy(""), StoreBusy("")]

    def busy(mutations: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return apply(mutations)

    region.apply_group = busy  # type: ignore[method-assign]
    assert (await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/2", put(b"a:q")))).applied
    assert refusals == []
    assert list(calls.held()) == [b"g/1", b"g/2"]


@served(make_table("t", [Family("a")], {**GROUPED, "READONLY": "true"}))
async def test_a_table_that_takes_no_writes_takes_none(calls: Calls) -> None:
    with pytest.raises(TableReadOnly):
        await calls.mutate(row(b"g/1", put(b"a:q")))


@served(splits=(b"g/", b"h"))
async def test_a_group_that_regions_cut_is_not_served(calls: Calls) -> None:
    """As in the moment in which the rule of a table is another than that of its regions."""
    assert (await calls.mutate(row(b"g/1", put(b"a:q")))).applied
    info = calls.region(b"g/").info
    calls.region(b"g/").info = RegionInfo("t", info.region_id, b"g/", b"g/2")
    for call in (lambda: calls.mutate(row(b"g/1", put(b"a:q"))), calls.read_group):
        with pytest.raises(NotServingRegion, match="group g/ is not in one region now"):
            await call()
    calls.region(b"g/").info = info


# --- bounds --------------------------------------------------------------------------------------------


@served()
async def test_reads_and_writes_are_bounded(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("columnar.operations.group_calls.ROW_GROUP_CELLS", 8)
    monkeypatch.setattr("columnar.regions.write.group_writes.ROW_GROUP_CELLS", 6)
    monkeypatch.setattr("columnar.regions.read.group_reads.ROW_GROUP_CELLS", 6)
    five = [put(b"a:%d" % n) for n in range(5)]
    assert (await calls.mutate(row(b"g/1", *five), row(b"g/2", put(b"a:q")))).applied
    with pytest.raises(RequestTooBig, match="9 rows, operations and conditions of a group as one step, at most 8"):
        await calls.mutate(row(b"g/1", *five[:3], conditions=(expect(b"a:0"),) * 6))
    for call in (
        calls.mutate(reads=[columnar.GroupRead(rows=[b"g/%d" % n for n in range(8)], columns=[], digest=b"")]),
        calls.mutate(*(row(b"g/%d" % n) for n in range(9))),
        calls.read_group(rows=[b"g/%d" % n for n in range(9)]),
    ):
        with pytest.raises(RequestTooBig, match="at most 8 are allowed; nothing was done"):
            await call
    with pytest.raises(RequestTooBig, match="over 6 columns that it reads or writes"):
        await calls.mutate(row(b"g/1", DELETE_A), row(b"g/3", put(b"a:q"), put(b"a:r")))
    assert len((await calls.read_group(b"a", rows=[b"g/1", b"g/2"])).rows) == 2
    await calls.mutate(row(b"g/3", put(b"a:q")))
    with pytest.raises(RequestTooBig, match=r"over 6 cells or \d+ bytes of the group g/, .* or scan"):
        await calls.read_group()
    assert len((await calls.read_group(b"a", rows=[b"g/1", b"g/3"])).rows) == 2
    assert len((await calls.read_group(b"b")).rows) == 0
    with pytest.raises(RequestTooBig):
        await calls.read_group(b"a:0")  # the cells of the family are passed, though they are not wanted
    with pytest.raises(RequestTooBig):
        await calls.read_group(*[b"a:none%d" % n for n in range(4)], rows=[b"g/8", b"g/9"])
    with pytest.raises(RequestTooBig):
        await calls.mutate(
            reads=[columnar.GroupRead(rows=[], columns=[b"b"], digest=(await calls.read_group(b"b")).digest)] * 7
        )
    assert calls.held().keys() == {b"g/1", b"g/2", b"g/3"}


@served()
async def test_bytes_are_bounded(calls: Calls) -> None:
    large = bytes(ROW_GROUP_BYTES // 3)
    for number in range(3):
        await calls.mutate(row(b"g/%d" % number, put(b"a:q", large)))
    with pytest.raises(RequestTooBig):
        await calls.read_group()
    with pytest.raises(RequestTooBig, match="bytes into the group g/ as one step"):
        await calls.mutate(*(row(b"g/%d" % number, put(b"a:q", large)) for number in range(3)))
    append = columnar.RowOperation(kind=3, column=b"a:q", value=b"x")
    with pytest.raises(RequestTooBig, match="appended cells of over"):
        await calls.mutate(*(row(b"g/%d" % number, append) for number in range(3)))
    assert [len(calls.held()[b"g/1"][b"a:q"]), len(calls.held()[b"g/2"][b"a:q"])] == [len(large)] * 2
    assert ROW_GROUP_CELLS == 10_000


# --- the change log ------------------------------------------------------------------------------------


def follow(calls: Calls, *families: bytes) -> None:
    calls.server.set_policy("t", LogPolicy(frozenset(families), frozenset()))


@served()
async def test_all_records_but_the_last_say_that_more_follow(calls: Calls) -> None:
    follow(calls, b"a")
    await calls.mutate(row(b"g/1", put(b"a:q")))
    calls.clock.now_ms += 10
    await calls.mutate(
        row(b"g/1", put(b"a:q")),
        row(b"g/0", put(b"b:q")),  # nobody follows that family
        row(b"g/2", put(b"b:q"), put(b"a:q")),
        row(b"g/9", conditions=(expect(b"a:q", ABSENT),)),
        row(b"g/3", put(b"a:q")),
        row(b"g/4", put(b"b:q")),
    )
    assert [(one.row, one.more_follows) for one in calls.records()] == [
        (b"g/1", False),
        (b"g/1", True),
        (b"g/2", True),
        (b"g/3", False),
    ]
    before = calls.records()
    assert not (await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/2", conditions=(expect(b"b:none"),)))).applied
    with pytest.raises(CallerError):
        await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/2", add_one(b"a:q")))
    assert calls.records() == before


@served()
async def test_the_records_of_a_step_have_one_stamp_above_those_before(calls: Calls) -> None:
    """A restore to a moment takes records by their stamps: it takes a step whole, or not at all."""
    follow(calls, b"a")
    for _ in range(3):
        await calls.put(b"g/2", *(operation(b"x") for operation in (_put,)))
    await calls.mutate(row(b"g/1", put(b"a:q")), row(b"g/2", put(b"a:q")), row(b"g/3", put(b"a:q")))
    await calls.mutate(row(b"g/3", put(b"a:q")), row(b"g/1", put(b"a:q")))
    stamps = [(one.row[-1:], one.stamp - calls.clock.now_ms) for one in calls.records()]
    assert stamps == [(b"2", 0), (b"2", 1), (b"2", 2), (b"1", 3), (b"2", 3), (b"3", 3), (b"3", 4), (b"1", 4)]
    assert calls.region(b"g/").logging.stamps.mark(0) >= calls.clock.now_ms + 4, "the mark covers them after a restart"
    stored = calls.region(b"g/").mark(b"stamp")
    assert stored is not None
    assert int.from_bytes(stored, "big") == calls.clock.now_ms + 4


def _put(value: bytes) -> Any:
    from columnar.model.mutation import Put

    return Put(b"a", b"q", value)

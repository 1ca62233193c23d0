"""A sync of a module's triggers at the master and its owners: cursors are kept, and a kill leaves each old or new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from columnar.errors import CallerError, IllegalArgument
from columnar.model.mutation import Put
from columnar.model.trigger_registration import Registration
from tests.unit.triggers.test_asked_changes import delivered, put, written
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_trigger_changes import Killed, killed_at, stored

KEPT = Registration("kept", "t", "m:kept", ("f",), row=False, images=True, columns=("f:a",), of_module="m")
GONE = replace(KEPT, name="gone", function="m:gone")
NEW = replace(KEPT, name="new", function="m:new")
CHANGED = replace(KEPT, columns=("f:a", "f:b"), side_by_side=2, before=True)


async def sync(bench: Bench, wanted: Sequence[Registration], removed: Sequence[str] = ()) -> None:
    doing = asyncio.ensure_future(bench.triggers.sync(wanted, removed))
    while not doing.done():
        for link in bench.links:
            for parts in [parts for parts in link.sent if parts[0] in ("check", "reload")]:
                link.sent.remove(parts)
                link.listener.take_frame(["checked", parts[1], None])
        await asyncio.sleep(0)
    await doing


def registrations(bench: Bench) -> dict[str, Registration]:
    return {one.name: one.registration for one in bench.triggers.derivations.all}


@on_bench()
async def test_a_changed_trigger_keeps_its_place_and_goes_by_its_new_settings(bench: Bench) -> None:
    await sync(bench, [KEPT])
    assert len(await written(bench, (b"r1", (put(b"a", b"1"),)))) == 1
    await bench.triggers.pause("kept")
    await bench.apply(b"r2", put(b"a", b"1"), put(b"b", b"1"))
    await sync(bench, [CHANGED])
    assert registrations(bench) == {"kept": CHANGED}
    await bench.apply(b"r3", Put(b"f", b"b", b"2"))
    await bench.triggers.resume("kept")
    waiting, fresh = await delivered(bench)
    assert (waiting.row, waiting.is_backfill) == (b"r2", True), "its record lacks f:b: the row as it is"
    assert waiting.after == {b"f:a": b"1", b"f:b": b"1"}
    assert (fresh.row, fresh.is_backfill, fresh.before, fresh.after) == (b"r3", False, {}, {b"f:b": b"2"})
    bench.keeper.dispatcher.intake.consumers_of("kept")[0].state.check_invariants()


@on_bench()
async def test_a_sync_adds_and_removes_at_once(bench: Bench) -> None:
    await sync(bench, [KEPT, GONE])
    await sync(bench, [CHANGED, NEW], ["gone"])
    assert stored(bench) == {"kept": "running", "new": "running"}
    changes = await written(bench, (b"r", (put(b"a", b"1"),)))
    assert [change.row for change in changes] == [b"r", b"r"]
    await sync(bench, [], ["kept", "new"])
    assert stored(bench) == {}


@on_bench()
async def test_a_change_in_flight_comes_again_by_the_new_settings(bench: Bench) -> None:
    await sync(bench, [KEPT])
    await bench.apply(b"r", put(b"a", b"1"))
    ((old_call, _, _),) = bench.main.take()
    await sync(bench, [replace(KEPT, side_by_side=2)])
    bench.main.answer(old_call)
    (change,) = await delivered(bench)
    assert (change.row, change.attempt) == (b"r", 1)


@pytest.mark.parametrize("step", ["written", "marked", "running"])
def test_a_kill_in_the_middle_leaves_each_old_or_new(step: str) -> None:
    @on_bench(regions=2)
    async def run(bench: Bench) -> None:
        await sync(bench, [KEPT, GONE])
        await bench.put(b"00")
        await killed_at(bench, step, lambda: sync(bench, [CHANGED, NEW], ["gone"]))
        await bench.restart()
        is_whole = step == "running"
        assert registrations(bench) == ({"kept": CHANGED, "new": NEW} if is_whole else {"kept": CHANGED})
        bench.triggers.derivations.check_invariants()
        await sync(bench, [CHANGED, NEW], [])
        assert stored(bench) == {"kept": "running", "new": "running"}

    run()


def test_a_kill_before_the_write_leaves_all_as_it_was() -> None:
    @on_bench()
    async def run(bench: Bench) -> None:
        await sync(bench, [KEPT, GONE])
        write = bench.rows.write

        async def dies(*_args: object) -> None:
            raise Killed

        bench.catalogue.derivations._write = dies  # type: ignore[assignment]
        with pytest.raises(Killed):
            await sync(bench, [CHANGED, NEW], ["gone"])
        bench.catalogue.derivations._write = write
        await bench.restart()
        assert registrations(bench) == {"gone": GONE, "kept": KEPT}

    run()


@on_bench()
async def test_what_cannot_be_done_changes_nothing(bench: Bench) -> None:
    await sync(bench, [KEPT])
    for wanted, message in (
        ([replace(CHANGED), replace(NEW, table="none")], "none"),
        ([CHANGED, replace(NEW, look=(("x", "none", "row"),))], "no table none"),
        ([replace(KEPT, table="out")], "on table t, not out"),
        ([CHANGED, replace(NEW, writes=("t",))], "follow its own changes"),
    ):
        with pytest.raises(CallerError, match=message):
            await sync(bench, wanted)
    with pytest.raises(IllegalArgument, match="by no sync"):
        await sync(bench, [], ["hand"])
    assert registrations(bench) == {"kept": KEPT}

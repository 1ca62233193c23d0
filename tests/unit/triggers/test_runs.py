"""Runs: changes of a quick trigger that are sent together, each with an outcome, a time and a blame of its own."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from columnar.triggers.frames import pack
from tests.support.fake_links import runs
from tests.support.openings import region_at_once
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did, out, put
from tests.unit.triggers.test_worker import CHANGE, Store, entered, start

__all__ = ["start"]  # a fixture
ROWS = [b"%02d" % n for n in range(6)]


async def run_of(bench: Bench, rows: list[bytes] = ROWS, name: str = "t", **settings: Any) -> int:
    """The number of a run's first change; the run has all the rows."""
    await bench.add(name, **settings)
    bench.dispatcher.common.main.imported("m")
    bench.dispatcher.common.fair._triggers[name].costs.mean_s = 1e-5
    bench.dispatcher.pause(name)
    await bench.put(*rows)
    bench.dispatcher.resume(name)
    found = [call for call in runs(*bench.main.sent) if call[1] == name]
    ((number, _, _, _, changes, _, _, _),) = found
    assert [change[1] for change in changes] == rows
    bench.main.sent.clear()
    return int(number)


def done(bench: Bench, number: int, *effects: list[Any]) -> None:
    """Successive changes of a run are done, from this number on."""
    bench.main.listener.take_frame(["did", [[number, list(effects), 100, 50]]])


@on_bench()
async def test_a_run_is_one_call_and_each_effect_bears_the_stamp_of_its_change(bench: Bench) -> None:
    number = await run_of(bench)
    done(bench, number, *[[put(b"x-" + row)] for row in ROWS[:4]])
    done(bench, number + 4, [], [put(b"x-05")])
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    stamps = [out(bench, b"x-" + row)[b"f:a"][1] for row in (*ROWS[:4], ROWS[5])]
    assert stamps == sorted(set(stamps))
    assert bench.dispatcher.calls_in_flight() == 0
    bench.dispatcher.state.check_invariants()


@on_bench()
async def test_a_change_of_a_run_fails_and_goes_on_alone(bench: Bench) -> None:
    number = await run_of(bench, attempts=1)
    done(bench, number, [], [])
    did(bench, number + 2, "failed", error="Error: no")
    did(bench, number + 3, "more", put(b"x"))
    done(bench, number + 4, [], [])
    await bench.main.until(lambda: bench.main.sent)
    assert bench.main.sent == [("go", number + 3)]
    did(bench, number + 3, "done", put(b"y"))
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert [letter.row for letter in await bench.keeper.dead_letters("t", 10)] == [ROWS[2]]
    assert out(bench, b"y")
    bench.dispatcher.state.check_invariants()


@on_bench()
async def test_a_change_that_hangs_is_blamed_alone(bench: Bench) -> None:
    number = await run_of(bench, timeout_ms=250)  # longer than a slow machine takes for the lines below
    done(bench, number, [put(b"x")])
    bench.main.listener.take_frame(["began", [number + 1]])
    done(bench, number + 2, [])
    await bench.main.until(lambda: bench.main.kills)
    bench.main.die()
    bench.main.start()
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert consumer.source.suspects == {one for one, attempts in consumer.state.cursor().open if attempts}
    assert [attempts for _, attempts in consumer.state.cursor().open] == [1, 0, 0, 0]
    assert [row for _, _, row in bench.main.take()] == ROWS[3:]
    await bench.settle()
    assert out(bench, b"x"), "what was done before it is done"


@on_bench()
async def test_changes_of_a_run_in_a_dead_worker_run_alone(bench: Bench) -> None:
    number = await run_of(bench, attempts=2)
    done(bench, number, [], [], [])
    bench.main.die("ended with status 3")
    bench.main.start()
    seen = []
    for _ in range(3):
        await bench.ward.until(lambda: bench.ward.sent)
        ((call_id, _, row),) = bench.ward.take()
        seen.append(row)
        if row == ROWS[4]:
            bench.ward.die("ended with status 3")
            bench.ward.start()
        else:
            bench.ward.answer(call_id)
            bench.ward.start()
    assert seen == ROWS[3:]
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    assert [attempts for _, attempts in consumer.state.cursor().open] == [1]


@on_bench()
async def test_an_effect_that_cannot_be_written_fails_its_change_alone(bench: Bench) -> None:
    number = await run_of(bench, attempts=1)
    effects = [[put(b"x-" + row)] for row in ROWS]
    effects[1] = [put(b"x", table=b"nowhere")]
    effects[2] = [[9, b"what", b"is", b"this"]]
    done(bench, number, *effects)
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert [letter.row for letter in await bench.keeper.dead_letters("t", 10)] == ROWS[1:3]
    assert all(out(bench, b"x-" + row) for row in (ROWS[0], *ROWS[3:]))


@on_bench()
async def test_a_target_that_is_unavailable_holds_up_its_change_alone(bench: Bench) -> None:
    number = await run_of(bench)
    target = region_at_once(bench.server, bench.out, b"x")
    target.refuses_writes = True
    done(bench, number, *[[put(b"x")] if row == ROWS[3] else [] for row in ROWS])
    (consumer,) = bench.dispatcher.intake.consumers_of("t")
    while consumer.state.open_count > 1:  # noqa: ASYNC110 - steps are iterations of the loop
        await asyncio.sleep(0)
    target.refuses_writes = False
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert out(bench, b"x")


@on_bench()
async def test_a_run_of_a_removed_trigger_changes_nothing(bench: Bench) -> None:
    number = await run_of(bench)
    bench.main.listener.take_frame(["began", [number + 2]])
    await bench.triggers.remove("t")
    done(bench, number, [put(b"x")], [put(b"x")])
    did(bench, number + 2, "done", put(b"x"))
    done(bench, number + 3, [], [], [])
    await bench.settle()
    assert out(bench, b"x") == {}
    assert bench.dispatcher.calls_in_flight() == 0
    assert bench.dispatcher.common.fair.running_count == 0


@on_bench()
async def test_a_rated_trigger_gets_no_run_over_its_rate(bench: Bench) -> None:
    await bench.add("t", rate="2/s")
    bench.dispatcher.common.main.imported("m")
    bench.dispatcher.common.fair._triggers["t"].costs.mean_s = 1e-5
    await bench.put(*ROWS)
    assert 1 <= len(bench.main.take()) <= 2


# --- in the worker -------------------------------------------------------------------------------------


def send_run(store: Store, number: int, function: str, count: int) -> None:
    changes = [[CHANGE[0], b"r%d" % at, *CHANGE[2:]] for at in range(count)]
    call = [number, function, f"allowed_triggers:{function}", 8, changes, None, False, ""]
    store.ours.sendall(pack("run", [call]))


def outcomes_of(store: Store, count: int) -> dict[int, str]:
    """What became of so many changes, by number."""
    found: dict[int, str] = {}
    while len(found) < count:
        outcome = store.outcome()
        if len(outcome) == 4:
            found |= {outcome[0] + at: "done" for at in range(len(outcome[1]))}
        else:
            found[outcome[0]] = outcome[1]
    return found


def test_changes_of_a_run_are_done_in_succession(start: Any) -> None:
    store = start()
    assert store.call(1, "one")[1] == "done"
    send_run(store, 2, "one", 10)
    send_run(store, 12, "one", 10)
    assert outcomes_of(store, 20) == dict.fromkeys(range(2, 22), "done")


@pytest.mark.parametrize(("function", "what"), [("raises", "failed"), ("later", "later"), ("many", "more")])
def test_changes_of_a_run_that_are_not_done_have_outcomes_of_their_own(start: Any, function: str, what: str) -> None:
    store = start()
    assert store.call(1, function)[1] == what
    send_run(store, 2, function, 3)
    found = outcomes_of(store, 3)
    assert found == dict.fromkeys(range(2, 5), what)


def test_the_computing_of_a_run_is_measured_and_its_waiting_is_not(start: Any) -> None:
    def computes(change: Any) -> None:
        ends_s = time.thread_time() + (0.001 if change.row != b"r5" else 0.02)  # one of them loses the lead
        while time.thread_time() < ends_s:
            pass

    store, count = start(), 12
    vars(sys.modules["allowed_triggers"]).update(computes=computes, naps=lambda _change: time.sleep(0.001))
    for first, function in ((1, "computes"), (1 + count, "naps")):
        assert store.call(99, function)[1] == "done"  # the calls of a function that nobody knows are run one by one
        send_run(store, first, function, count)
        computed_s, over = 0.0, 0
        while over < count:
            outcome = store.outcome()
            over += len(outcome[1]) if len(outcome) == 4 else 1
            computed_s += outcome[-1] / 1e6
        if function == "computes":
            assert 0.031 <= computed_s < 0.045
        else:
            assert computed_s < 0.006


@pytest.mark.parametrize("function", ["waits", "waits_with_client"])
def test_a_change_of_a_run_that_blocks_holds_up_nobody(start: Any, function: str) -> None:
    store = start()
    assert store.call(99, "one")[1] == "done"
    send_run(store, 1, function, 4)
    entered(4)
    assert store.call(98, "one")[1] == "done", "of another trigger"
    while len([one for one in store.began if one < 90]) < 4:
        store.hear()
    sys.modules["allowed_triggers"].gate.set()
    assert outcomes_of(store, 4) == dict.fromkeys(range(1, 5), "done")
    assert sorted(one for one in store.began if one < 90) == [1, 2, 3, 4]

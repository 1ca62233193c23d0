"""Cycles: a declared cycle is refused with its path, an undeclared one fails the change that closes it, and an allowed
one ends after HOPS changes."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.model.flow_graph import HOPS, check_no_cycle, with_places
from columnar.model.queue_service import service_of
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did, put


async def deliver(bench: Bench, *effects: Any) -> None:
    """Answer the calls there are, and those that their effects lead to, with these effects, until nothing moves."""
    while calls := bench.main.take():
        for call_id, _, _ in calls:
            did(bench, call_id, "done", *effects)
        await bench.settle()


@on_bench()
async def test_a_trigger_that_yields_into_its_own_source_does_not_run_for_ever(bench: Bench) -> None:
    await bench.add("t", attempts=1)
    await bench.put(b"a")
    await deliver(bench, put(b"next", table=b"t"))
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    (letter,) = await bench.keeper.dead_letters("t", 10)
    assert "t/f -> trigger t -> t/f" in letter.error
    assert "--allow-cycle" in letter.error
    assert bench.region(b"next").log.last_logged == bench.region(b"a").log.last_logged, "nothing was written"


@on_bench()
async def test_an_undeclared_cycle_through_another_trigger_is_found_where_it_closes(bench: Bench) -> None:
    await bench.add("there", attempts=1)
    await bench.add("back", table="out", attempts=1)
    await bench.put(b"a")
    ((there, name, _),) = bench.main.take()
    assert name == "there"
    did(bench, there, "done", put(b"x"))
    await bench.settle()
    ((back, name, _),) = bench.main.take()
    assert name == "back"
    did(bench, back, "done", put(b"b", table=b"t"))
    await bench.settle()
    assert await bench.keeper.dead_letters("there", 10) == []
    (letter,) = await bench.keeper.dead_letters("back", 10)
    assert "out/f -> trigger back -> t/f -> trigger there -> out/f" in letter.error


@on_bench()
async def test_an_allowed_cycle_ends_after_so_many_changes(bench: Bench) -> None:
    await bench.add("t", allow_cycle=True)
    await bench.put(b"a")
    runs = 0
    while calls := bench.main.take():
        for call_id, _, row in calls:
            runs += 1
            did(bench, call_id, "done", put(row + b"a", table=b"t"))
        await bench.settle()
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert runs == HOPS + 1, "the client's change, and as many as it may lead to"
    (letter,) = await bench.keeper.dead_letters("t", 10)
    assert letter.row == b"a" * (HOPS + 1)
    assert letter.attempts == 1, "another attempt would end in the same way"
    assert f"{HOPS} changes" in letter.error


@on_bench()
async def test_a_definition_that_comes_later_counts_for_effects_that_were_seen_before(bench: Bench) -> None:
    await bench.add("there", attempts=1)
    await bench.put(b"a")
    await deliver(bench, put(b"x"))
    await bench.add("back", table="out", writes=("t",), attempts=1)
    await bench.put(b"b")
    await deliver(bench, put(b"y"))
    (letter,) = await bench.keeper.dead_letters("there", 10)
    assert "t/f -> trigger there -> out/f -> trigger back -> t/f" in letter.error


@on_bench()
async def test_a_cycle_of_declared_writes_is_refused_with_its_path(bench: Bench) -> None:
    await bench.add("there", writes=("out:f",))
    assert bench.triggers.derivations.known("there").registration.writes == ("out/f",)
    with pytest.raises(IllegalArgument, match="out/f -> trigger back -> t/f -> trigger there -> out/f"):
        await bench.add("back", table="out", writes=("t",))
    with pytest.raises(IllegalArgument, match="there is no table nowhere"):
        await bench.add("lost", writes=("nowhere/f",))
    await bench.add("back", table="out", writes=("t",), allow_cycle=True)
    await bench.put(b"a")
    ((there, _, _),) = bench.main.take()
    did(bench, there, "done", put(b"x"))
    await bench.settle()
    ((back, _, _),) = bench.main.take()
    did(bench, back, "done", put(b"b", table=b"t"))
    await bench.settle()
    assert [name for _, name, _ in bench.main.take()] == ["there"], "it goes round, as was allowed"


@on_bench()
async def test_a_cycle_may_be_allowed_while_the_trigger_runs(bench: Bench) -> None:
    await bench.add("t", attempts=100)
    await bench.put(b"a")
    ((call_id, _, _),) = bench.main.take()
    did(bench, call_id, "done", put(b"b", table=b"t"))
    await bench.triggers.add_trigger(bench.registration("t", attempts=100, allow_cycle=True))
    await bench.main.until(lambda: bench.main.sent)  # its pause is over
    ((call_id, _, row),) = bench.main.take()
    assert row == b"a", "the change that failed"
    did(bench, call_id, "done", put(b"b", table=b"t"))
    await bench.settle()
    assert [row for _, _, row in bench.main.take()] == [b"b"]


@on_bench()
async def test_queues_and_topics_are_places_to_write_and_close_no_cycle(bench: Bench) -> None:
    await bench.add("there", writes=("queue:jobs", "topic:edits", "out:f"))
    assert bench.triggers.derivations.known("there").registration.writes == ("out/f", "queue:jobs", "topic:edits")
    back = service_of("jobs", "m:f", writes=("t", "queue:jobs"))
    back = with_places(back, ["t"])
    assert back.writes == ("queue:jobs", "t")
    check_no_cycle(back, bench.triggers.checks.graph())
    for wrong in ("queue:a/b", "topic:a b"):
        with pytest.raises(IllegalArgument, match="name has 1 to"):
            await bench.add("lost", writes=(wrong,))
    with pytest.raises(IllegalArgument, match="there is no table queue"):
        await bench.add("lost", writes=("queue:",))

"""A module whose import held up or ended a worker rests until a process of its own has imported it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import TriggerError
from columnar.runtime.faults import FAULTS
from columnar.triggers import module_checks, worker_state
from columnar.triggers.module_checks import SourceTrial
from tests.support.fake_links import FakeLink, runs
from tests.unit.triggers.test_dispatcher import Bench, on_bench


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_checks, "LONGEST_TRIAL_PAUSE_S", 0.001)


async def trial_of(bench: Bench, before: list[FakeLink]) -> FakeLink:
    """The next process that imports and does nothing else."""
    while True:
        for link in bench.trials:
            if link not in before and link.sent:
                before.append(link)
                return link
        await asyncio.sleep(0.001)


def test_an_import_that_hangs_is_tried_by_a_process_of_its_own_and_its_triggers_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_state, "IMPORT_S", 0.01)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t", timeout_ms=10, attempts=1)
        seen = [*bench.trials]
        monkeypatch.setattr(FakeLink, "trials_end_well", False)
        await bench.put(b"a")
        assert [row for _, _, row in bench.main.take()] == [b"a"]
        await bench.main.until(lambda: bench.main.kills)  # nothing was heard of the import
        bench.main.die()
        bench.main.start()
        trial = await trial_of(bench, seen)
        assert trial.sent == [("check", 0, "m:f")]
        await bench.put(b"b")
        await bench.settle()
        assert runs(*bench.main.sent) == [], "no worker imports it meanwhile"
        assert "importing its module took over" in bench.dispatcher.obstacle("t")
        assert bench.keeper.trigger_statuses()[0].state == "blocked"
        trial.listener.take_frame(["checked", 0, "SyntaxError: no"])
        trial = await trial_of(bench, seen)
        assert "m:f cannot be used: SyntaxError: no" in bench.dispatcher.state.pauses.untrusted["m"]
        trial.listener.worker_gone("ended with status 3")
        trial = await trial_of(bench, seen)
        assert "the process that imported it ended with status 3" in bench.dispatcher.state.pauses.untrusted["m"]
        trial.listener.take_frame(["checked", 0, None])
        await bench.main.until(lambda: runs(*bench.main.sent))
        assert "m" not in bench.dispatcher.state.pauses.untrusted
        assert await bench.keeper.dead_letters("t", 10) == []

    run()


def test_a_reload_ends_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source that it takes up was imported by a process already."""
    monkeypatch.setattr(module_checks, "pause_s", lambda _tries: 60.0)
    monkeypatch.setattr(module_checks, "LONGEST_TRIAL_PAUSE_S", 60.0)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t")
        bench.dispatcher.trials.begin_trial("m", "why")
        await bench.put(b"a")
        await bench.settle()
        assert bench.main.take() == []
        bench.dispatcher.trials.proven()
        await bench.main.until(lambda: bench.main.sent)
        assert [row for _, _, row in bench.main.take()] == [b"a"]
        assert bench.dispatcher.obstacle("t") == ""

    run()


@on_bench()
async def test_a_module_without_triggers_is_trusted_again(bench: Bench) -> None:
    bench.dispatcher.trials.begin_trial("gone", "why")
    while "gone" in bench.dispatcher.state.pauses.untrusted:  # noqa: ASYNC110 - no event tells of it
        await asyncio.sleep(0.001)
    assert bench.trials == []


def test_a_silent_worker_that_imports_is_ended_as_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import in C code holds up every trigger of the worker: it does not get the long time of an import."""
    monkeypatch.setattr(worker_state, "IMPORT_S", 1_000.0)
    monkeypatch.setattr(worker_state, "SILENCE_S", 0.02)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t", timeout_ms=10)
        await bench.put(b"a")
        await bench.main.until(lambda: bench.main.kills)

    run()


def test_a_module_that_no_worker_has_is_imported_by_a_process_of_its_own_before_it_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeLink, "trials_end_well", False)

    @on_bench()
    async def run(bench: Bench) -> None:
        adding = asyncio.ensure_future(bench.triggers.add_trigger(bench.registration("t")))
        trial = await trial_of(bench, [])
        trial.listener.worker_gone("ended with status 3")
        with pytest.raises(TriggerError, match="m:f cannot be used: the process that imported it ended with status 3"):
            await adding
        assert bench.main.sent == [], "no worker met it"

    run()


def test_trials_go_on_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its triggers would rest for ever."""
    left = [2]
    problem_with = SourceTrial.problem_with

    async def fails_first(trial: SourceTrial, functions: Any) -> str | None:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("as told")
        return await problem_with(trial, functions)

    @on_bench()
    async def run(bench: Bench) -> None:
        await bench.add("t")
        monkeypatch.setattr(SourceTrial, "problem_with", fails_first)
        bench.dispatcher.trials.begin_trial("m", "why")
        await bench.put(b"a")
        await bench.main.until(lambda: bench.main.sent)
        assert left == [0]
        assert dict(FAULTS.counts())[module_checks.LOOP] == 2
        FAULTS.forget()

    run()

"""Triggers go on after an exception at any call of those who feed them: one change fails by it, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from columnar.flows import delivery_state, governor
from columnar.model.read import ReadSpec, projection
from columnar.regions import region
from columnar.regions.read.region_reads import get_row
from columnar.triggers import (
    call_effects,
    call_sender,
    dispatcher,
    dispatcher_state,
    intake,
    pool_state,
    retry_state,
    worker_process,
    worker_state,
)
from tests.support.fake_links import FakeLink
from tests.support.injected_faults import DRAWN, Calls, survived
from tests.unit.triggers.test_dispatcher import Bench

ROWS = [b"%02d" % n for n in range(6)]
_USED_US = 100


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_state, "FIRST_PAUSE_S", 0.001)
    for module in (dispatcher, intake, governor):
        monkeypatch.setattr(module, "AGAIN_S", 0.001)
    monkeypatch.setattr(region, "FEED_AGAIN_S", 0.001)


class Worker:
    """What a worker does with its calls: puts a cell, in one slice or two; some raise, and it dies once."""

    def __init__(self, link: FakeLink) -> None:
        self.link = link
        self.resting: dict[int, list[Any]] = {}
        self.has_died = False

    async def work(self) -> None:
        while True:
            await self.link.until(lambda: self.link.sent or not self.link.is_up)
            if not self.link.is_up:
                await self._end()
                continue
            sent, self.link.sent = self.link.sent, []
            for parts in sent:
                self._do(*parts)

    def _soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """In a callback of the loop, as what comes from a socket."""
        asyncio.get_running_loop().call_soon(call, *arguments)

    async def _end(self) -> None:
        self.link.sent.clear()
        self.resting.clear()
        self._soon(self.link.listener.worker_gone, "ended by SIGKILL")
        await asyncio.sleep(0.002)  # starting takes its time: longer than a second try to hear of the end
        self.link.is_up = True
        self._soon(self.link.listener.worker_ready)

    def _do(self, kind: str, *rest: Any) -> None:
        if kind == "run":
            for call in rest[0]:
                self._run(call)
        elif kind in ("go", "drop") and rest[0] not in self.resting:
            self.link.is_up = False  # of a worker before this one: it ends, as the program does
        elif kind in ("go", "drop"):
            effects = self.resting.pop(rest[0])
            self._answer(rest[0], "done", effects if kind == "go" else [])

    def _run(self, call: list[Any]) -> None:
        number, trigger, changes = call[0], call[1], call[4]
        rows = [change[1] for change in changes]
        if len(changes) > 1 and trigger != "batch":
            self._run_one_by_one(number, trigger, call)
            return
        effects: list[Any] = [[1, b"out", trigger.encode() + b"-" + row, {b"f:a": b"1"}] for row in rows]
        if ROWS[1] in rows and not self.has_died:
            self.has_died = True
            self.link.is_up = False
        elif ROWS[2] in rows and trigger == "plain":
            self.resting[number] = effects
            self._answer(number, "more", [])
        elif ROWS[3] in rows and changes[0][7] == 1:
            self._answer(number, "failed", [], "KeyError: mine")
        elif trigger == "batch":
            self._answer(number, "done", [[at, one] for at, one in enumerate(effects)])
        else:
            self._answer(number, "done", effects)

    def _run_one_by_one(self, number: int, trigger: str, call: list[Any]) -> None:
        """A run: what is quiet at its end is one outcome."""
        rows = [change[1] for change in call[4]]
        at = max([at for at, row in enumerate(rows) if row in ROWS[1:4]], default=-1) + 1
        for one in range(at):
            if self.link.is_up:
                self._run([number + one, *call[1:4], [call[4][one]], None, False, call[7]])
        if self.link.is_up and rows[at:]:
            effects = [[[1, b"out", trigger.encode() + b"-" + row, {b"f:a": b"1"}]] for row in rows[at:]]
            self._soon(self.link.listener.take_frame, ["did", [[number + at, effects, _USED_US, 0]]])

    def _answer(self, number: int, what: str, effects: list[Any], error: str | None = None) -> None:
        frame = ["did", [[number, what, effects, error, "", None, _USED_US, 0]]]
        self._soon(self.link.listener.take_frame, frame)


async def two_triggers(calls: Calls) -> None:
    bench = Bench()
    await bench.start()
    workers = [asyncio.ensure_future(Worker(link).work()) for link in bench.links if await _added(bench, link)]
    try:
        with calls.armed():
            await bench.put(*ROWS)
            assert await bench.keeper.wait_delivered("", "", 10.0)
        await bench.put(b"later")
        assert await bench.keeper.wait_delivered("", "", 10.0)
        await bench.settle()
        await _check(bench)
    finally:
        for worker in workers:
            worker.cancel()
        await bench.close()


async def _added(bench: Bench, link: FakeLink) -> bool:
    if link is bench.main:
        await bench.add("plain", attempts=5, side_by_side=2)
        await bench.add("batch", attempts=5, batch=2)
    return True


async def _check(bench: Bench) -> None:
    for name in ("plain", "batch"):
        letters = {letter.row for letter in await bench.keeper.dead_letters(name, 10)}
        assert not letters, "an exception of the store is one attempt"
        (consumer,) = bench.dispatcher.intake.consumers_of(name)
        consumer.state.check_invariants()
        for row in (*ROWS, b"later"):
            assert _has_effect(bench, name.encode() + b"-" + row), f"{name} {row!r}"
    for held in (bench.dispatcher.common.main, bench.dispatcher.common.quarantine):
        assert (held.calls, held.running_bytes, held.working) == ({}, 0, 0)
    fair = bench.dispatcher.common.fair
    bench.dispatcher.state.check_invariants()
    assert fair.running_count == 0
    assert not bench.dispatcher.state.retries.applying


def _has_effect(bench: Bench, row: bytes) -> bool:
    (found,) = bench.server.open_regions_of("out")
    return bool(get_row(found, row, ReadSpec(projection(bench.out.schema, []))))


def test_triggers_survive_an_exception_at_each_call_of_the_dispatcher(
    expected_faults: Callable[[], dict[str, int]],
) -> None:
    assert survived(two_triggers, dispatcher, intake, call_sender) > 50
    assert expected_faults()[dispatcher.LOOP] > DRAWN // 4


def test_triggers_survive_an_exception_at_each_call_of_its_state(expected_faults: Callable[[], dict[str, int]]) -> None:
    assert survived(two_triggers, dispatcher_state, retry_state) > 50
    assert expected_faults()[dispatcher.LOOP] > DRAWN // 3


def test_triggers_survive_an_exception_at_each_call_of_a_pool(expected_faults: Callable[[], dict[str, int]]) -> None:
    assert survived(two_triggers, pool_state, worker_state) > 50
    assert expected_faults()[dispatcher.LOOP] > DRAWN // 3


def test_triggers_survive_an_exception_at_each_call_for_their_effects(
    expected_faults: Callable[[], dict[str, int]],
) -> None:
    assert survived(two_triggers, call_effects, worker_process) > 20
    assert expected_faults()


async def _a_timer_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, begun_anew = Bench(), list[str]()
    await bench.start()
    await bench.add("own", process="label")
    (consumer,) = bench.dispatcher.intake.consumers_of("own")
    state, source = bench.dispatcher.state, consumer.source
    recover = state.recover
    monkeypatch.setattr(state, "recover", lambda pool, *rest: (begun_anew.append(pool.label), recover(pool, *rest)))

    def fail() -> None:
        raise KeyError("mine")

    monkeypatch.setattr(source, "wake", fail)
    due_s = asyncio.get_running_loop().time()
    source.plan_wake(due_s)
    state.timers.plan(due_s, source)
    bench.dispatcher._pass_time()
    assert begun_anew == ["label"]
    monkeypatch.undo()
    await bench.close()


def test_an_exception_in_the_timer_of_a_label_begins_the_pool_of_that_label_anew(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Callable[[], dict[str, int]]
) -> None:
    asyncio.run(_a_timer_raises(monkeypatch))
    assert expected_faults() == {dispatcher.LOOP: 1}

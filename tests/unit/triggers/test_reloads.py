"""Workers take up changed source, whatever becomes of them meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from columnar.runtime.log_lines import change_levels
from columnar.triggers import module_checks
from tests.support.fake_links import FakeLink
from tests.unit.triggers.test_dispatcher import Bench, on_bench


async def asked(link: FakeLink) -> int:
    """The number by which the worker is asked to reload."""
    await link.until(lambda: any(parts[0] == "reload" for parts in link.sent))
    (number,) = [parts[1] for parts in link.sent if parts[0] == "reload"]
    assert isinstance(number, int)
    return number


async def label(bench: Bench) -> FakeLink:
    """The worker of a trigger with a process of its own, which runs a call."""
    await bench.add("apart", process="hog", timeout_ms=600_000)
    await bench.put(b"a")
    link, ward = bench.links[2:]
    ward.is_up = bench.ward.is_up = False  # as there are no suspects
    await link.until(lambda: link.sent)
    link.sent.clear()
    return link


@on_bench()
async def test_a_worker_that_ends_meanwhile_begins_with_changed_source(bench: Bench) -> None:
    link = await label(bench)
    reloading = asyncio.ensure_future(bench.keeper.reload())
    bench.main.listener.take_frame(["checked", await asked(bench.main), None])
    await asked(link)
    link.die()
    await asyncio.wait_for(reloading, 5.0)


def test_a_worker_that_keeps_the_interpreter_is_ended_and_begins_with_changed_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is wrong with the module: the sync or the reload that asked for it goes on."""
    monkeypatch.setattr(module_checks, "CHECK_TIMEOUT_S", 0.05)

    @on_bench()
    async def run(bench: Bench) -> None:
        link = await label(bench)
        reloading = asyncio.ensure_future(bench.keeper.reload())
        bench.main.listener.take_frame(["checked", await asked(bench.main), None])
        await reloading
        assert (link.kills, bench.main.kills) == (1, 0)

    run()


@on_bench()
async def test_a_check_ends_with_its_worker_alone(bench: Bench) -> None:
    link = await label(bench)
    checking = asyncio.ensure_future(bench.keeper.check_function("m:f"))
    await bench.main.until(lambda: any(parts[0] == "check" for parts in bench.main.sent))
    link.die()
    await asyncio.sleep(0)
    assert not checking.done()
    (number,) = [parts[1] for parts in bench.main.sent if parts[0] == "check"]
    bench.main.listener.take_frame(["checked", number, "SyntaxError: why"])
    assert await checking == "SyntaxError: why"


@on_bench()
async def test_workers_take_levels_at_once_and_at_their_start(bench: Bench) -> None:
    bench.main.sent.clear()
    bench.main.start()
    assert not any(parts[0] == "levels" for parts in bench.main.sent), "no logger has a level of its own"
    change_levels(["of.functions=debug"])
    try:
        bench.dispatcher.sender.send_levels()
        bench.main.die()
        bench.main.start()
        assert [parts for parts in bench.main.sent if parts[0] == "levels"] == [
            ("levels", {"of.functions": "DEBUG"})
        ] * 2
    finally:
        change_levels(["of.functions=default"])

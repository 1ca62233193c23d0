"""Changes that failed together and come again together, on the loop that serves.

uvloop gives a handle that knows no time for what is due within a millisecond.
"""

from __future__ import annotations

import asyncio

import uvloop

from columnar.triggers.dispatcher import Dispatcher
from tests.support.fake_links import runs
from tests.unit.triggers.test_dispatcher import Bench


def due_in(bench: Bench, dispatcher: Dispatcher, seconds: float) -> None:
    """The oldest ready change of the trigger has failed, and comes again so long from now."""
    (consumer,) = dispatcher.intake.consumers_of("a")
    now_s = asyncio.get_running_loop().time()
    delivery = consumer.state.take(now_s)
    assert delivery is not None
    consumer.state.put_off([delivery.sequence], now_s + seconds)
    dispatcher.state.queue(consumer.source, now_s)
    dispatcher._carry_out()


def test_pauses_that_end_within_a_millisecond_are_planned() -> None:
    async def run() -> None:
        bench = Bench()
        await bench.start()
        try:
            await bench.add("a")
            dispatcher = bench.dispatcher
            dispatcher.pause("a")
            await bench.put(b"x", b"y", b"z")
            (consumer,) = dispatcher.intake.consumers_of("a")
            consumer.fill()
            due_in(bench, dispatcher, 0.0003)
            due_in(bench, dispatcher, 0.0004)
            due_in(bench, dispatcher, 0.0002)
            dispatcher.resume("a")
            async with asyncio.timeout(20):
                await bench.main.until(lambda: len(runs(*bench.main.sent)) == 3)
            assert sorted(row for _, _, row in bench.main.take()) == [b"x", b"y", b"z"]
        finally:
            await bench.close()

    uvloop.run(run())

"""Long waits end with their server, are short afterwards, and end with their callers."""

from __future__ import annotations

import asyncio

import pytest

from columnar.runtime.long_waits import ENDING_WAIT_S, LongWaits


def test_an_end_answers_every_wait_once() -> None:
    async def main() -> None:
        waits, ended = LongWaits(), list[str]()
        waits.on_end(lambda: ended.append("end"))
        running = [asyncio.ensure_future(waits.run(asyncio.sleep(60, "waited"), in_vain="ended")) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waits.bounded_s(60) == 60
        waits.end_waits()
        waits.end_waits()
        assert await asyncio.gather(*running) == ["ended"] * 3
        assert ended == ["end"]
        assert (waits.running_count, waits.bounded_s(60), waits.bounded_s(0.1)) == (0, ENDING_WAIT_S, 0.1)
        assert await waits.run(asyncio.sleep(0, "done"), in_vain="ended") == "done", "one that comes later"

    asyncio.run(main())


def test_a_wait_ends_with_its_caller_and_its_errors_are_the_callers() -> None:
    async def fails() -> None:
        raise ValueError("the wait's own")

    async def main() -> None:
        waits, inner = LongWaits(), asyncio.get_running_loop().create_future()

        async def wait() -> None:
            await inner

        caller = asyncio.ensure_future(waits.run(wait(), in_vain=None))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await asyncio.sleep(0)
        assert inner.cancelled()
        assert waits.running_count == 0
        with pytest.raises(ValueError, match="the wait's own"):
            await waits.run(fails(), in_vain=None)

    asyncio.run(main())

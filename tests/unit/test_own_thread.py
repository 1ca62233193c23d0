"""Blocking calls in threads of their own: nothing holds them up, and they hold nothing up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from columnar.runtime.own_thread import call_in_own_thread

WAIT_S = 20.0


def test_a_call_returns_or_raises_as_if_it_were_called() -> None:
    def fail() -> None:
        raise ValueError("a test")

    async def main() -> None:
        name = await call_in_own_thread(lambda: threading.current_thread().name, "the name")
        assert name == "the name"
        assert await call_in_own_thread(lambda: None, "nothing") is None
        with pytest.raises(ValueError, match="a test"):
            await call_in_own_thread(fail, "failing")

    asyncio.run(main())


def test_a_call_that_blocks_holds_neither_the_loop_nor_its_end() -> None:
    goes_on, left = threading.Event(), threading.Event()

    def block() -> None:
        goes_on.wait(WAIT_S)
        left.set()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await call_in_own_thread(block, "blocked")

    asyncio.run(main())  # closes the loop, and its executor
    assert not left.is_set()
    goes_on.set()
    assert left.wait(WAIT_S), "it reports to a loop that is closed, and fails nothing"


def test_a_full_executor_of_the_loop_holds_no_call_up() -> None:
    goes_on = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        blocked = asyncio.ensure_future(asyncio.to_thread(goes_on.wait, WAIT_S))
        assert await asyncio.wait_for(call_in_own_thread(lambda: 7, "called"), WAIT_S / 2) == 7
        assert not blocked.done()
        goes_on.set()
        await blocked

    asyncio.run(main())

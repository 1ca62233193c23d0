"""Work that may take long: it is reported once, and has ended when its caller continues, however the caller ends."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest

from columnar.runtime.slow_work import report_if_slow

LONG_S = 20.0


def test_slow_work_is_reported_once_and_quick_work_is_not() -> None:
    async def main() -> None:
        reports: list[str] = []

        async def work(pause_s: float) -> int:
            await asyncio.sleep(pause_s)
            return 7

        assert await report_if_slow(work(0), LONG_S, lambda: reports.append("quick")) == 7
        assert await report_if_slow(work(0.05), 0.01, lambda: reports.append("slow")) == 7
        assert reports == ["slow"]

    asyncio.run(main())


def test_an_error_of_the_work_is_its_callers() -> None:
    async def main() -> None:
        async def work() -> None:
            raise ValueError("a test")

        with pytest.raises(ValueError, match="a test"):
            await report_if_slow(work(), LONG_S, lambda: None)

    asyncio.run(main())


@pytest.mark.parametrize("limit_s", [0.0, LONG_S], ids=["was reported", "is not slow yet"])
def test_cancelled_work_has_ended_before_its_caller_goes_on(limit_s: float) -> None:
    """As the start of a leader, whose catalogue is closed before the stores under it are."""

    async def main() -> None:
        closed: list[str] = []
        begun = asyncio.Event()

        async def work() -> None:
            try:
                begun.set()
                await asyncio.sleep(LONG_S)
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                closed.append("what the work has opened")

        async def lead() -> None:
            async with AsyncExitStack() as undo:
                undo.callback(closed.append, "what the caller has opened before")
                await report_if_slow(work(), limit_s, lambda: None)

        task = asyncio.ensure_future(lead())
        await begun.wait()
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert closed == ["what the work has opened", "what the caller has opened before"]

    asyncio.run(main())


def test_cancelled_work_of_a_thread_is_not_waited_for() -> None:
    async def main(goes_on: threading.Event) -> None:
        begun = threading.Event()

        def block() -> None:
            begun.set()
            goes_on.wait(LONG_S)

        task = asyncio.ensure_future(report_if_slow(asyncio.to_thread(block), LONG_S, lambda: None))
        while not begun.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.001)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=LONG_S / 2)
        assert done
        assert not goes_on.is_set()
        goes_on.set()

    asyncio.run(main(threading.Event()))

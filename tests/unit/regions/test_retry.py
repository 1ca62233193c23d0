"""Writers that wait for an engine that is behind take turns: they cost no more than one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from columnar.errors import RegionUnavailable
from columnar.regions.life import retry
from columnar.regions.life.retry import retry_until_ready
from columnar.storage.api import StoreBusy


class Engine:
    """Behind for so many tries, then not."""

    def __init__(self, store: str, tries: int) -> None:
        self.store, self.left, self.tries = store, tries, 0
        self.taken: list[int] = []

    def write(self, number: int) -> Callable[[], int]:
        def step() -> int:
            self.tries += 1
            if self.left > 0:
                self.left -= 1
                busy = StoreBusy("behind")
                busy.store = self.store
                raise busy
            self.taken.append(number)
            return number

        return step


WRITERS = 50


def test_one_tries_for_all_and_they_go_in_order() -> None:
    async def main() -> None:
        engine = Engine("a", WRITERS + 20)
        done = await asyncio.gather(*[retry_until_ready(engine.write(number)) for number in range(WRITERS)])
        assert done == engine.taken == list(range(WRITERS))
        assert engine.tries == WRITERS + 20 + WRITERS, "each once at first, one again and again, each once at last"

    asyncio.run(main())
    assert not retry._lines


def test_another_store_has_a_line_of_its_own() -> None:
    async def main() -> None:
        stuck, other = Engine("a", 1 << 30), Engine("b", 3)
        waiting = [asyncio.ensure_future(retry_until_ready(stuck.write(number))) for number in range(WRITERS)]
        assert await asyncio.wait_for(retry_until_ready(other.write(1)), 10) == 1
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(main())
    assert not retry._lines, "who was cancelled waits no more"


def test_a_region_that_is_opened_anew_stands_in_nobodys_way() -> None:
    """It is busy without an engine."""

    async def main() -> None:
        stuck, other = Engine("", 1 << 30), Engine("", 3)
        waiting = asyncio.ensure_future(retry_until_ready(stuck.write(0)))
        assert await asyncio.wait_for(retry_until_ready(other.write(1)), 10) == 1
        waiting.cancel()

    asyncio.run(main())


def test_patience_with_a_region_that_is_opened_anew_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "STALL_TIMEOUT_S", 0.02)

    async def main() -> None:
        stuck, soon = Engine("", 1 << 30), Engine("", 1)
        async with asyncio.timeout(10):
            with pytest.raises(StoreBusy):
                await retry_until_ready(stuck.write(0))
            assert await retry_until_ready(soon.write(1)) == 1

    asyncio.run(main())


def test_patience_with_a_region_that_is_away_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it was away at once or after the engine was behind; who waited for it does not take it from others."""
    monkeypatch.setattr(retry, "UNAVAILABLE_TIMEOUT_S", 0.02)

    async def main() -> None:
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        engine = Engine("a", 1)

        def away() -> int:
            raise RegionUnavailable("r", gate)

        def away_later() -> int:
            return engine.write(0)() if engine.left else away()

        async with asyncio.timeout(10):
            for step in (away, away_later):
                with pytest.raises(RegionUnavailable):
                    await retry_until_ready(step)
        assert not gate.done()

    asyncio.run(main())
    assert not retry._lines


def test_patience_ends_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "STALL_TIMEOUT_S", 0.02)

    async def main() -> None:
        stuck = Engine("a", 1 << 30)
        ended = await asyncio.gather(
            *[retry_until_ready(stuck.write(n)) for n in range(WRITERS)], return_exceptions=True
        )
        assert [type(one) for one in ended] == [StoreBusy] * WRITERS
        assert stuck.tries < 3 * WRITERS

    asyncio.run(main())
    assert not retry._lines


def test_who_finds_its_region_away_is_in_nobodys_way() -> None:
    async def main() -> None:
        engine = Engine("a", 3)
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        was_busy: list[bool] = []

        def away() -> int:
            if not was_busy:
                was_busy.append(True)
                busy = StoreBusy("behind")
                busy.store = "a"
                raise busy
            if not gate.done():
                raise RegionUnavailable("r", gate)
            return 0

        first = asyncio.ensure_future(retry_until_ready(away))
        await asyncio.sleep(0)
        assert await asyncio.wait_for(retry_until_ready(engine.write(1)), 10) == 1
        assert not first.done()
        gate.set_result(None)
        assert await first == 0

    asyncio.run(main())

"""Whoever waits for a prompt future hears of it in the turn in which it is resolved; one that fails harms no other."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from columnar.runtime.immediate_future import ImmediateFuture


def test_all_who_asked_hear_at_once_in_their_order() -> None:
    async def scene() -> None:
        future = ImmediateFuture(asyncio.get_running_loop())
        heard: list[Any] = []

        def note(number: int, done: asyncio.Future[None]) -> None:
            heard.append((number, done.result()))

        for number in range(3):
            future.add_callback(partial(note, number))
        future.complete()
        assert heard == [(0, None), (1, None), (2, None)]
        await future

    asyncio.run(scene())


def test_who_comes_after_it_hears_in_the_next_turn() -> None:
    async def scene() -> None:
        future = ImmediateFuture(asyncio.get_running_loop())
        heard: list[Any] = []
        future.complete()
        future.add_callback(heard.append)
        assert heard == []
        await asyncio.sleep(0)
        assert heard == [future]

    asyncio.run(scene())


def test_one_that_fails_is_told_to_the_loop_and_the_others_hear_all_the_same() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        reported: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _loop, context: reported.append(context))
        future = ImmediateFuture(loop)
        heard: list[Any] = []

        def fails(_done: object) -> None:
            raise KeyError("mine")

        future.add_callback(fails)
        future.add_callback(heard.append)
        future.complete()
        assert heard == [future]
        (context,) = reported
        assert isinstance(context["exception"], KeyError)
        assert "fails" in context["message"]

    asyncio.run(scene())


def test_a_failure_reaches_those_who_await_and_warns_nobody_where_none_does() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        reported: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _loop, context: reported.append(context))
        awaited, alone = ImmediateFuture(loop), ImmediateFuture(loop)
        heard: list[Any] = []
        awaited.add_callback(lambda done: heard.append(done.exception()))
        waiting = asyncio.ensure_future(asyncio.wait_for(asyncio.shield(awaited), 10))
        await asyncio.sleep(0)
        failure = OSError("the disk is gone")
        awaited.complete(failure)
        alone.complete(failure)
        assert heard == [failure]
        with pytest.raises(OSError, match="the disk is gone"):
            await waiting
        del alone
        await asyncio.sleep(0)
        assert reported == []

    asyncio.run(scene())

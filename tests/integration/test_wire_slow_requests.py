"""The time of a slow request as the wire reports it: worked on, and waited, and for what."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from columnar.model.measures import RequestTime
from columnar.wire.service import Later
from tests.support.toy_wire import Running, get

WAIT_S = 20.0


class Slow:
    """A server for which each request is slow, and one connection to it."""

    def __init__(self) -> None:
        self.running = Running()
        self.times: list[RequestTime] = []
        self.running.service.was_slow = lambda _ctx, _method, _args, time, _result: self.times.append(time)  # type: ignore[method-assign]
        self.running.server.slow_after_s = 0.0
        self._socket = socket.create_connection(("127.0.0.1", self.running.port), WAIT_S)

    def time_of(self, handler: Callable[..., Any] | None = None) -> tuple[RequestTime, int]:
        """Return the time of a request that ``handler`` answers, and the size of its answer."""
        if handler is not None:
            self.running.server.handlers["get"] = handler
        self._socket.sendall(get(1))
        return (answer := len(self._socket.recv(65_536))) and self.times[-1], answer

    def close(self) -> None:
        self._socket.close()
        self.running.stop()


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.close()


PAUSE_S = 0.05


def _later(*_args: Any) -> Later:
    loop = asyncio.get_running_loop()
    synced = loop.create_future()
    loop.call_later(PAUSE_S, synced.set_result, None)
    return Later(synced, [])


async def _steps(*_args: Any) -> list[Any]:
    await asyncio.sleep(PAUSE_S)
    return []


@pytest.mark.parametrize(("handler", "waits_for"), [(_later, "fsync"), (_steps, "steps")])
def test_a_request_that_paused_says_for_what(handler: Any, waits_for: str, slow: Slow) -> None:
    time, size = slow.time_of(handler)
    assert (time.waited_for, time.reply_bytes) == (waits_for, size)
    assert 0.8 * PAUSE_S <= time.waited_s <= time.took_s


def test_the_pause_of_a_request_is_not_that_of_the_next_one(slow: Slow) -> None:
    handler = slow.running.server.handlers["get"]
    slow.time_of(_later)
    time, size = slow.time_of(handler)
    assert time == RequestTime(time.took_s, reply_bytes=size)


def test_a_request_that_is_tried_again_waited_for_its_region(slow: Slow) -> None:
    def moving(*_args: Any) -> Any:
        raise ZeroDivisionError

    slow.running.service.retry_or_forward = lambda *_call: _steps()  # type: ignore[method-assign]
    time, _ = slow.time_of(moving)
    assert (time.waited_for, time.waited_s >= 0.8 * PAUSE_S) == ("region", True)

"""Calls of a service by another port of its process: results, errors, awaited and large ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from columnar.wire.framing import INLINE_BYTES
from columnar.wire.idl import hbase
from columnar.wire.local_calls import CallFailed, LocalService
from columnar.wire.server import WireServer
from tests.support.toy_wire import ToyService

Call = Callable[..., Awaitable[Any]]


def with_service(test: Callable[[ToyService, WireServer, Call], Awaitable[None]]) -> None:
    async def inside() -> None:
        toy = ToyService()
        server = WireServer(toy)
        service = LocalService(server, 77)
        try:
            async with asyncio.timeout(20):
                await test(toy, server, partial(service.call_method, "peer", "", lambda: False))
        finally:
            await server.close(0)

    asyncio.run(inside())


def test_results_come_as_the_idl_has_them() -> None:
    async def test(toy: ToyService, server: WireServer, call: Call) -> None:
        toy.rows[b"r"] = {b"a:x": (b"value", 5)}
        (row,) = await call("getRowWithColumns", b"t", b"r", [b"a:x"], {})
        assert (row.row, row.columns[b"a:x"].value) == (b"r", b"value")
        assert await call("getTableNames") == [b"t1", b"t2"]
        assert [cell.value for cell in await call("get", b"t", b"none", b"a:x", {})] == []
        assert server.answered == 3, "they count as those of clients"

    with_service(test)


def test_awaited_and_large_calls() -> None:
    async def test(toy: ToyService, _server: WireServer, call: Call) -> None:
        toy.gate = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(call("atomicIncrement", b"t", b"r", b"a:x", 4))
        await asyncio.sleep(0)
        assert not waiting.done()
        toy.gate.set_result(None)
        assert await waiting == 5
        value = b"v" * (INLINE_BYTES + 1)
        batch = hbase.BatchMutation(b"large", [hbase.Mutation(column=b"a:x", value=value)])
        assert await call("mutateRows", b"t", [batch], {}) is None
        assert toy.rows[b"large"][b"a:x"][0] == value

    with_service(test)


def test_errors_have_their_class_and_say_whether_to_retry() -> None:
    async def test(_toy: ToyService, _server: WireServer, call: Call) -> None:
        with pytest.raises(CallFailed) as raised:
            await call("get", b"t", b"caller", b"a:x", {})
        failed = raised.value
        assert (failed.kind, failed.text, failed.can_retry) == ("DoNotRetryIOException", "bad row", False)
        with pytest.raises(CallFailed, match="its log says why") as raised:
            await call("get", b"t", b"bug", b"a:x", {})
        assert raised.value.kind == ""

    with_service(test)


def test_a_caller_that_is_cancelled_harms_no_other_one() -> None:
    async def test(toy: ToyService, server: WireServer, call: Call) -> None:
        toy.gate = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(call("atomicIncrement", b"t", b"r", b"a:x", 4))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        toy.gate.set_result(None)
        for _ in range(5):  # the call itself goes on, and its answer is dropped
            await asyncio.sleep(0)
        assert server.answered == 1
        assert await call("getTableNames") == [b"t1", b"t2"]

    with_service(test)

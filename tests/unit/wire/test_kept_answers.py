"""The answer of a list passes the user's filter, however often its handler was called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any, cast

import pytest

from columnar.bench import calls
from columnar.errors import RegionUnavailable
from columnar.operations.access import retried
from columnar.wire.codec import Request
from columnar.wire.raw_calls import RawCall
from columnar.wire.server import WireServer
from columnar.wire.service import CallContext, Handler, Keep

MESSAGE = calls.call("getTableNames")[4:]  # without the frame's head


class Lists:
    """A service that lists tables, once the region of their rows is available."""

    slow_after_s = float("inf")

    def __init__(self, *, has_steps: bool) -> None:
        self.handlers = {"getTableNames": self.list_tables}
        self.available = asyncio.get_running_loop().create_future()
        self._has_steps = has_steps

    def list_tables(self, _ctx: CallContext) -> list[bytes] | Awaitable[list[bytes]]:
        if not self.available.done():
            raise RegionUnavailable("t,,1", self.available)
        return self._gathered() if self._has_steps else [b"open", b"secret"]

    async def _gathered(self) -> list[bytes]:
        return [b"open", b"secret"]

    def retry_or_forward(self, handler: Handler, ctx: CallContext, request: Request, error: Exception) -> Any:
        return retried(partial(handler, ctx, *request.args), cast(RegionUnavailable, error), ctx.has_gone)

    def may_be_forwarded(self, _method: str) -> bool:
        return False


class Rights:
    def list_filter(self, ctx: CallContext, method: str) -> Keep:
        assert (ctx.user, method) == ("ann", "getTableNames")
        return lambda names: [name for name in names if name != b"secret"]


class Caller:
    def __init__(self) -> None:
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def replied(self, reply: bytes) -> None:
        self.reply.set_result(reply)


@pytest.mark.parametrize("has_steps", [False, True])
@pytest.mark.parametrize("is_available", [True, False])
def test_a_list_passes_its_filter_also_after_a_retry(is_available: bool, has_steps: bool) -> None:
    async def main() -> bytes:
        lists, caller = Lists(has_steps=has_steps), Caller()
        server = WireServer(cast(Any, lists))
        server.rights = cast(Any, Rights())
        if is_available:
            lists.available.set_result(None)
        RawCall(server, CallContext(0, "peer", user="ann"), cast(Any, caller)).begin_call(MESSAGE, 0, len(MESSAGE))
        if not is_available:
            assert not caller.reply.done()
            lists.available.set_result(None)
        reply = await caller.reply
        await server.close(0.0)
        return reply

    reply = asyncio.run(main())
    assert b"open" in reply
    assert b"secret" not in reply

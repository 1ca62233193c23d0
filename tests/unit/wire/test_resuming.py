"""Requests that waited for the same fsync go on, all of them, in their order, and not all in one turn of the loop."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from columnar.wire.codec import Request
from columnar.wire.connection import LARGE_BYTES, Connection, Waiting
from columnar.wire.server import RESUMED_AT_ONCE, WireServer
from columnar.wire.service import Later


class NothingToServe:
    """As much of a Service as a server wants at its making."""

    handlers: dict[str, Any]
    slow_after_s = 1.0

    def __init__(self) -> None:
        self.handlers = {}


class Noting:
    """In a connection's place."""

    def __init__(self, seen: list[int]) -> None:
        self._seen = seen

    def resume(self, request: Request, _future: object, _started: float, _later: object) -> None:
        self._seen.append(request.seqid)


def test_every_request_goes_on_some_in_each_turn() -> None:
    count = 2 * RESUMED_AT_ONCE + 1

    async def main() -> None:
        server = WireServer(cast(Any, NothingToServe()))
        synced = asyncio.get_running_loop().create_future()
        seen: list[int] = []
        connection = cast(Connection, Noting(seen))
        for number in range(count):
            request = Request(None, b"mutateRow", 1, number, [], 1)
            server.resume_after(synced, Waiting(connection, request, 0.0, None))
        await asyncio.sleep(0)
        assert seen == [], "nobody goes on before the fsync has ended"
        synced.set_result(None)
        for turn in (1, 2):
            await asyncio.sleep(0)
            assert len(seen) == turn * RESUMED_AT_ONCE
        await asyncio.sleep(0)
        assert seen == list(range(count))
        await server.close(0.0)

    asyncio.run(main())


def test_a_large_request_lets_its_rows_go_while_its_answer_waits() -> None:
    async def main() -> None:
        server = WireServer(cast(Any, NothingToServe()))
        connection = Connection(server, 1)
        for size, kept in ((LARGE_BYTES, [b"t", ["row", "row"]]), (LARGE_BYTES + 1, [b"t", [None, None]])):
            synced = asyncio.get_running_loop().create_future()
            request = Request(None, b"mutateRows", 1, 1, [b"t", ["row", "row"]], size)
            connection._pending(request, synced, 0.0, Later(synced, None))
            assert request.args == kept
            synced.cancel()
        await server.close(0.0)

    asyncio.run(main())

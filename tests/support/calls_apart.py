"""Helpers for tests of clients' calls to several servers that own the regions of a table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.model.schema import Family, make_table
from columnar.wire.idl import hbase
from columnar.wire.service import CallContext
from tests.support.held_engine import FakeClock
from tests.support.owned_servers import OwnedServers

TABLE = make_table("t", [Family("a", max_versions=3), Family("b"), Family("c", ttl_s=1)])
CTX = CallContext(1, "test")
ROWS = [b"c", b"h", b"q", b"x"]  # of a, b, c and a again


def in_cluster(play: Callable[[OwnedServers], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        cluster = OwnedServers(TABLE, (b"g", b"p", b"w"), ("a", "b", "c"), FakeClock(), **options)
        try:
            await play(cluster)
        finally:
            await cluster.close()

    asyncio.run(main())


def batches(*rows: bytes, value: bytes = b"v") -> list[Any]:
    return [hbase.BatchMutation(row=row, mutations=[hbase.Mutation(column=b"a:q", value=value)]) for row in rows]


async def put(cluster: OwnedServers, *rows: bytes, at: int = 0, value: bytes = b"v", ctx: CallContext = CTX) -> Any:
    return await cluster.servers[at].services.call("mutateRows", ctx, b"t", batches(*rows, value=value), {})


async def names(cluster: OwnedServers, *rows: bytes, at: int = 0) -> list[bytes]:
    found = await cluster.servers[at].services.call("getRows", CTX, b"t", list(rows), {})
    return [row.last_key if hasattr(row, "last_key") else row[0] for row in found.rows]


async def a_while() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def only(kind: type[Message[Any]], failure: Exception) -> Callable[[Incarnation, Message[Any]], Exception | None]:
    """Return a function that fails requests of this kind with ``failure``."""
    return lambda _server, message: failure if isinstance(message, kind) else None


def info_of(cluster: OwnedServers, row: bytes) -> Any:
    return next(info for info in cluster.infos if info.contains_row(row))

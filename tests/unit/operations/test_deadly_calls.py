"""Calls under which an owner ends: they are repeated once, and refused with their row when the next one ends, too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from columnar.cluster.link_errors import LinkBroke
from columnar.errors import ServersEnded
from tests.support.calls_apart import CTX, a_while, in_cluster, names, put
from tests.support.owned_servers import OwnedServers

ROWS = [b"c", b"h", b"x"]

Work = Callable[[OwnedServers], Awaitable[Any]]


async def _scan(cluster: OwnedServers) -> Any:
    services = cluster.servers[0].services
    scanner = await services.call("scannerOpen", CTX, b"t", b"h", [], {})
    return await services.call("scannerGetList", CTX, scanner, 9)


WORKS: dict[str, Work] = {
    "rows": lambda cluster: names(cluster, *ROWS),
    "scan": _scan,
    "delete": lambda cluster: cluster.servers[0].services.call("delete_rows", CTX, b"t", b"g", b"i"),
}


@pytest.mark.parametrize("work", WORKS)
def test_what_two_owners_ended_under_is_refused_with_its_row(work: str) -> None:
    async def play(cluster: OwnedServers) -> None:
        await put(cluster, *ROWS)
        ended: list[str] = []

        def ends(server: Any, _message: Any) -> Exception | None:
            if server.name not in "bc":
                return None
            ended.append(server.name)
            return LinkBroke()

        cluster.after = ends
        calling = asyncio.ensure_future(WORKS[work](cluster))
        await a_while()
        assert not calling.done(), "it is repeated once"
        await cluster.move(cluster.infos[1], cluster.servers[2])
        with pytest.raises(ServersEnded, match=r"row '.*' of table t, the last one c\.22") as caught:
            await calling
        assert caught.value.wire_message.startswith("DoNotRetryIOException: two servers ended")
        assert "c" in ended

    in_cluster(play)

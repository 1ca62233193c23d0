"""Looks at several servers at once: what each says, and who said nothing in time.  Owned by the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol, TypeVar

from columnar.errors import ColumnarError
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.routing.link_errors import LinkBroke, NotSent
from columnar.routing.peer_link import Refused
from columnar.routing.refusals import PeerFault

R = TypeVar("R")

LOOK_S: Final = 2.0  # a server that does not answer a look within it is named as silent


class Links(Protocol):
    async def ask(self, server: Incarnation, message: Message[R]) -> R: ...


async def looks_at(
    servers: Iterable[Incarnation], links: Links, message: Message[R], within_s: float = LOOK_S
) -> tuple[dict[Incarnation, R], list[Incarnation]]:
    """(answers, the servers without one), in the order of ``servers``."""
    asked = {server: asyncio.ensure_future(links.ask(server, message)) for server in servers}
    if asked:
        await asyncio.wait(asked.values(), timeout=within_s)
    found: dict[Incarnation, R] = {}
    silent: list[Incarnation] = []
    for server, look in asked.items():
        try:
            if not look.done():
                look.cancel()
                silent.append(server)
            else:
                found[server] = look.result()
        except (NotSent, LinkBroke, Refused, PeerFault, ColumnarError):
            silent.append(server)
    return found, silent

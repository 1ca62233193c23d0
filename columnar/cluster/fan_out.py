"""Status requests to several servers at once: their answers, and the servers without one.  Owned by the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import Refused
from columnar.cluster.refusals import PeerFault
from columnar.cluster.value_codec import BadValue
from columnar.errors import ColumnarError
from columnar.model import unanswered
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message

R = TypeVar("R")

STATUS_TIMEOUT_S: Final = 2.0  # a server that does not answer a status request within it is named as silent


class Links(Protocol):
    async def request_server(self, server: Incarnation, message: Message[R]) -> R: ...


@dataclass(frozen=True, slots=True)
class Unanswered:
    server: Incarnation
    why: str = ""  # empty: nothing came in time

    @property
    def by_name(self) -> str:
        return unanswered.entry(self.server.name, self.why)

    def __str__(self) -> str:
        return unanswered.entry(str(self.server), self.why)


async def gather_status(
    servers: Iterable[Incarnation], links: Links, message: Message[R], within_s: float = STATUS_TIMEOUT_S
) -> tuple[dict[Incarnation, R], list[Unanswered]]:
    """(answers, the servers without one), in the order of ``servers``."""
    requests = {server: asyncio.ensure_future(links.request_server(server, message)) for server in servers}
    if requests:
        await asyncio.wait(requests.values(), timeout=within_s)
    found: dict[Incarnation, R] = {}
    lacking: list[Unanswered] = []
    for server, request in requests.items():
        try:
            if not request.done():
                request.cancel()
                lacking.append(Unanswered(server))
            else:
                found[server] = request.result()
        except (NotSent, LinkBroke):
            lacking.append(Unanswered(server, "its link has ended"))
        except ColumnarError as error:
            lacking.append(Unanswered(server, error.text))
        except (Refused, PeerFault, BadValue) as error:
            lacking.append(Unanswered(server, str(error)))
    return found, lacking

"""RPC handlers of a master on the control links of its servers: for requests, and for calls that servers forward.

    request Commit, Backfilled, Listening, CannotOpen
    call    a method of the master, as the client sent it (``master_service``)

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from columnar.cluster.peer_frames import Frame
from columnar.cluster.peer_link import PeerLink
from columnar.cluster.peer_server import PeerServer
from columnar.cluster.refusals import Unknown
from columnar.errors import ColumnarError
from columnar.model.owner import Incarnation
from columnar.model.owner_messages import CannotOpen, Listening
from columnar.model.region_messages import Backfilled, Commit, Message, Peer
from columnar.wire.server import WireServer

_log = logging.getLogger(__name__)


class MasterRpcHandlers:
    """An ``Answerer``."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[type[Any], Callable[[Incarnation, Any], Awaitable[Any]]] = {}
        self._calls: PeerServer | None = None

    def lead(
        self,
        master: Peer,
        services: Mapping[int, WireServer],
        listening: Callable[[Incarnation, Listening], Awaitable[None]],
        cannot_open: Callable[[Incarnation, CannotOpen], Awaitable[None]],
    ) -> None:
        """Set the handlers before any server has a link.  ``services``: THRIFT1 and, if it is served, THRIFT2."""
        self._calls = PeerServer(services, _no_row, itertools.count(1))
        self._answers = {
            Commit: lambda _server, message: master.request_peer(message),
            Backfilled: lambda _server, message: master.request_peer(message),
            Listening: listening,
            CannotOpen: cannot_open,
        }

    @property
    def kinds(self) -> frozenset[type[Any]]:
        """The classes of messages that have an answer."""
        return frozenset(self._answers)

    def called(self, link: PeerLink, frame: Frame) -> None:
        assert self._calls is not None, "led before"
        self._calls.called(link, frame)

    def link_ended(self, link: PeerLink) -> None:
        if self._calls is not None:
            self._calls.link_ended(link)

    def handle_request(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        task = asyncio.ensure_future(self._answer(link, number, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, link: PeerLink, number: int, message: Message[Any]) -> None:
        assert link.peer is not None, "it has said hello"
        try:
            answer = await self._answers[type(message)](link.peer.server, message)
        except Exception as error:  # noqa: BLE001 - the server gets the error
            if not isinstance(error, ColumnarError):
                _log.exception("an ask of server %s failed", link.peer.server)
            link.refuse(number, error)
        else:
            link.send_response(number, message, answer)

    async def close(self) -> None:
        """Cancel the requests under way.  Call when no server is left that waits for an answer."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


def _no_row(_table: str, _row: bytes) -> Unknown:
    return Unknown("the master serves no rows")

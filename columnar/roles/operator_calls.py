"""The service of a node's private socket: it sends the calls of operators to the leader, over the node's link.

A client of the socket is the store's own user on this machine, so it is ``ROOT``, and may end servers.  The leader
takes the node's word for that (``row_forms.THRIFT1_OPERATOR``).  A call is sent once: without a leader for some seconds
it is refused.  The socket's place, ``DATA/nodes/NAME/run.json``, is how the command line finds it.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

from columnar.cluster.forwarding import LeaderCalls, UnretriedRequest, raw_message
from columnar.cluster.method_routing import METHOD_ROUTES, MethodRoute
from columnar.cluster.row_forms import THRIFT1, THRIFT1_OPERATOR
from columnar.errors import ForwardToMaster
from columnar.model.measures import RequestTime
from columnar.roles.master_service import CATALOGUE_READ_METHODS
from columnar.roles.membership import ControlSocket, NodeParts
from columnar.storage.cluster_file import NODES
from columnar.thrift.service import to_wire
from columnar.wire.codec import Request
from columnar.wire.server import WireServer
from columnar.wire.service import CallContext, ForwardedReply, Handler

METHODS: Final = frozenset(
    name
    for name, route in METHOD_ROUTES[THRIFT1].items()
    if route is MethodRoute.MASTER or name in CATALOGUE_READ_METHODS
)


class OperatorService:
    """The ``Service`` of the private socket's wire."""

    slow_after_s = float("inf")  # the leader logs slow calls

    def __init__(self, leader: LeaderCalls) -> None:
        self._leader = leader
        self.handlers: dict[str, Callable[..., Any]] = dict.fromkeys(METHODS & METHOD_ROUTES[THRIFT1].keys(), _forward)

    def missing(self) -> list[str]:
        return []

    def translate(self, method: str, error: Exception) -> Any | None:
        return to_wire(method, error)

    def retry_or_forward(
        self, handler: Handler, ctx: CallContext, request: Request, error: Exception
    ) -> Awaitable[Any] | ForwardedReply | None:
        if not isinstance(error, ForwardToMaster) or not request.buffer:
            return None
        call = UnretriedRequest("the leader")
        self._leader.send_call(call, raw_message(request, THRIFT1_OPERATOR, ctx))
        return call

    def may_be_forwarded(self, method: str) -> bool:
        return True

    def was_slow(self, ctx: CallContext, method: str, args: list[Any], time: RequestTime, result: Any) -> None:
        """Note nothing: no call is slow here."""

    def connection_closed(self, connection_id: int) -> None:
        """Free nothing: a connection has no resources here."""


def _forward(_ctx: CallContext, *_args: Any) -> Any:
    raise ForwardToMaster("every call")


async def open_operator_socket(parts: NodeParts, node: str, leader: LeaderCalls) -> ControlSocket:
    """Take the calls of operators on this machine to the node of this name.  Raises HostError."""
    place = os.path.join(parts.folder.path, NODES, node)
    await asyncio.to_thread(os.makedirs, place, exist_ok=True)
    control = ControlSocket(WireServer(OperatorService(leader)), parts.folder, parts.run_folder, place)
    await control.open_socket()
    return control

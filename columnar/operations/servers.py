"""The servers of a cluster, this one among them, to which a gateway sends the parts of a call."""

from __future__ import annotations

from typing import TypeVar

from columnar.cluster.owners import Owners
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.operations.operation_peer_handlers import OperationPeerHandlers

R = TypeVar("R")


class Servers:
    def __init__(self, owners: Owners, handlers: OperationPeerHandlers) -> None:
        self.owners = owners
        self._local_handlers = handlers

    async def request_server(self, server: Incarnation, message: Message[R], size_bytes: int = 0) -> R:
        """Send the request, to the local handlers if this server is meant.  As ``Owners.request_server``."""
        if server == self.owners.local_server:
            return await self._local_handlers.handle_request(message)
        return await self.owners.request_server(server, message, size_bytes)

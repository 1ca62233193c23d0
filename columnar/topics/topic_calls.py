"""Calls of the store's own Thrift methods, as topics need them: for a client, on whatever server a row is.

Calls are done within the process (``wire.local_calls``): they are checked, forwarded to the owner of the row, retried
and counted as those of any client.  A call that the store cannot do raises ``wire.local_calls.CallFailed``.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from columnar.model.topic import HEADS, TOPICS_TABLE
from columnar.wire.local_calls import CallFailed, LocalService

TABLE: Final = TOPICS_TABLE.encode()
_NO_TABLE: Final = "TableNotFoundException"


@dataclass(frozen=True, slots=True)
class TopicClient:
    """The sender of a request: for the log, the rights, and so that a wait ends with the client."""

    peer: str
    user: str
    has_gone: Callable[[], bool]


class TopicCalls:
    def __init__(self, service: LocalService) -> None:
        self._service = service

    async def call_store(self, client: TopicClient, method: str, *args: Any) -> Any:
        """Return the result of a method."""
        return await self._service.call_method(client.peer, client.user, client.has_gone, method, *args)

    async def call_or_none(self, client: TopicClient, method: str, *args: Any) -> Any:
        """Return the result of a method; None if there is no table of topics yet."""
        try:
            return await self.call_store(client, method, *args)
        except CallFailed as failed:
            if failed.kind != _NO_TABLE:
                raise
            return None

    async def call_prepared(self, client: TopicClient, method: str, *args: Any) -> Any:
        """Do ``call_store``, and make the table of topics if this is their first use in the store."""
        try:
            return await self.call_store(client, method, *args)
        except CallFailed as failed:
            if failed.kind != _NO_TABLE:
                raise
        await self.call_store(client, "columnarTopicPrepare")
        return await self.call_store(client, method, *args)

    async def read_heads(self, client: TopicClient, row: bytes) -> dict[bytes, bytes]:
        """Return the heads of a row by qualifier; none if there is no table of topics yet."""
        rows = await self.call_or_none(client, "getRowWithColumns", TABLE, row, [HEADS], {})
        return {column.partition(b":")[2]: cell.value for one in rows or () for column, cell in one.columns.items()}

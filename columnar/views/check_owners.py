"""The owners of regions as a check sees them: a request is repeated until the owner of its region has answered it.

Every request of a check may be repeated: walks and reads change nothing.  Contributions that are set again as of a
higher sequence, and groups that are corrected again from their stored members, have the same result.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from columnar.cluster.peer_requests import EntriesSnapshot, EntriesSnapshots
from columnar.cluster.scatter_gather import Owners, scatter_gather
from columnar.errors import ColumnarError, NotServingRegion
from columnar.flows.applier import Applier
from columnar.flows.effects import WRITE_BYTES
from columnar.model.mutation import RowMutation
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message
from columnar.views.view_check_peer_handlers import ViewCheckPeerHandlers

LOCAL_TRIES: Final = 100  # in one process, for a region that is split or merged at each try

R = TypeVar("R")


class CheckOwners:
    def __init__(
        self,
        local_handlers: ViewCheckPeerHandlers,
        applier: Applier,
        wait: Callable[[str], Awaitable[bool]],
        owners: Owners | None = None,
    ) -> None:
        """``wait`` waits until a view has all changes written so far, and returns False at its timeout."""
        self._local_handlers = local_handlers
        self._applier = applier
        self._wait = wait
        self._others = owners

    async def request_owner(self, table: str, row: bytes, message: Message[R]) -> R:
        """Return the answer of the owner of the row's region."""
        answers: list[R] = await self._request_owners(table, [row], lambda _: message, _one)
        return answers[0]

    async def request_snapshots(
        self, table: str, rows: Sequence[bytes], of: Callable[[Sequence[int]], Message[EntriesSnapshots]]
    ) -> list[EntriesSnapshot]:
        """Return a snapshot for each row; ``of`` makes a server's request from the indexes of its rows."""
        return await self._request_owners(table, rows, of, _each)

    async def _request_owners(
        self,
        table: str,
        rows: Sequence[bytes],
        of: Callable[[Sequence[int]], Message[Any]],
        answers_of: Callable[[Any], Sequence[Any | None]],
    ) -> list[Any]:
        found: list[Any | None] = [None] * len(rows)

        async def request(server: Incarnation, numbers: list[int], _servers: int) -> Any:
            assert self._others is not None, "a cluster"
            return await self._others.request_server(server, of(numbers))

        def take(numbers: list[int], answer: Any) -> list[int]:
            for number, one in zip(numbers, answers_of(answer), strict=False):
                found[number] = one
            return [number for number in numbers if found[number] is None]

        if self._others is not None:
            await scatter_gather(self._others, table, rows, request, take)
            return found
        left = list(range(len(rows)))
        for _ in range(LOCAL_TRIES):  # the handler waits for a region that is split or merged
            message = of(left)
            left = take(left, await self._local_handlers.answers[type(message)](message))
            if not left:
                return found
            await asyncio.sleep(0)
        raise NotServingRegion("a region changes whenever the check looks at it; check again later")

    async def write_rows(self, table: str, writes: Sequence[RowMutation]) -> None:
        """Write durably; contributions may be written again after an unknown outcome."""
        applied: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_applied(error: ColumnarError | None) -> None:
            if not applied.done():
                applied.set_result(None) if error is None else applied.set_exception(error)

        name = table.encode()
        several = [(name, one) for one in writes]
        job = self._applier.apply(several, len(writes) * WRITE_BYTES, on_applied, f"check:{table}", writer_view=table)
        try:
            await applied
        finally:
            self._applier.give_up(job)

    async def caught_up(self, view: str) -> bool:
        """Wait until the view has all changes written so far.  Returns False at the timeout."""
        return await self._wait(view)


def _one(answer: Any) -> Sequence[Any | None]:
    return [None if answer.is_not_local else answer]


def _each(answer: EntriesSnapshots) -> Sequence[EntriesSnapshot | None]:
    return answer

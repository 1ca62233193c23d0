"""Nodes over one compare-and-set store in memory, whose calls a test makes fail; threads and time are real."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from columnar.coordination.cas import Condition, Versioned
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.lease import LeaseTimes
from columnar.coordination.lease_page import LeasePage
from columnar.coordination.node_coordination import NodeCoordination
from columnar.coordination.node_record import (
    NodeRecord,
    decode_node_record,
)
from columnar.coordination.server_page import ServerPage, ServerPages
from tests.support.heard_coordination import HeardCoordination

TIMES = LeaseTimes.of_lease(600)
LONG = LeaseTimes(20_000, 100, 40, 22_000, 8_000)  # nothing may wait for such a lease
RARELY = LeaseTimes(20_000, 10_000, 40, 22_000, 8_000)  # nor for such a renewal


class FailingStore:
    """A client of the store in memory, which a test makes fail before or after the call takes effect."""

    def __init__(self, store: CasMemory, before: Callable[[str, str], None], after: Callable[[str, str], None]) -> None:
        self._store = store
        self._before = before
        self._after = after

    def create_key(self, key: str, value: bytes) -> int:
        self._before("create", key)
        version = self._store.create_key(key, value)
        self._after("create", key)
        return version

    def put_key(self, key: str, value: bytes, version: int) -> int:
        self._before("put", key)
        new = self._store.put_key(key, value, version)
        self._after("put", key)
        return new

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        self._before("delete", key)
        self._store.delete_key(key, version, also)
        self._after("delete", key)

    def read_key(self, key: str) -> Versioned | None:
        self._before("read", key)
        return self._store.read_key(key)

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        self._before("list", folder)
        return self._store.list_keys(folder)

    def close(self) -> None:
        pass


class Node:
    """A node's coordination with its page and what it has heard."""

    def __init__(self, store: CasMemory, name: str, times: LeaseTimes = TIMES) -> None:
        self.store = store
        self.heard = HeardCoordination()
        self.page = LeasePage.create()
        self.pages = ServerPages()
        self.server, descriptor = ServerPage.create()
        os.close(descriptor)
        self.pages.add_server(f"{name}-s1.1", self.server)
        self.before: Callable[[str, str], None] = lambda _call, _key: None
        self.after: Callable[[str, str], None] = lambda _call, _key: None
        self.coordination = NodeCoordination(self._connect, "memory://test", lambda: "10.0.0.1", times)
        self.record = NodeRecord("", name, self.coordination.next_number(), f"{name}:9096", (f"{name}-s1.1",))

    def _connect(self) -> FailingStore:
        return FailingStore(
            self.store, lambda call, key: self.before(call, key), lambda call, key: self.after(call, key)
        )

    async def start(self, *, may_lead: bool = True, epoch_floor: int = 0) -> None:
        await self.coordination.start(
            self.record,
            self.page,
            self.heard,
            self.pages,
            may_lead=may_lead,
            epoch_floor=epoch_floor,
            client=f"client of {self.record.node}",
        )

    def die(self) -> None:
        """Stop the threads where they are, as the death of the process does."""
        for thread in (self.coordination._renewal, self.coordination._candidate):
            if thread is not None:
                thread.stop()

    def stored(self) -> NodeRecord | None:
        found = self.store.read_key(self.record.key)
        return None if found is None else decode_node_record(found.value)


@asynccontextmanager
async def nodes(*names: str, times: LeaseTimes = TIMES) -> AsyncIterator[list[Node]]:
    """Make nodes of one store, and stop whatever of them was started."""
    store = CasMemory()
    made = [Node(store, name, times) for name in names]
    try:
        yield made
    finally:
        for node in made:
            await node.coordination.withdraw()
            node.page.close()


def run(test: Coroutine[None, None, None]) -> None:
    asyncio.run(test)
    assert [one.name for one in threading.enumerate() if one.name.startswith(("renewal", "election"))] == []

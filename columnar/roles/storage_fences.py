"""The storage fences of a leader: a node that ended by time is shut out of the folder before others get its regions.

    recorded   the node's mount has a record in the coordination service (``node_record.MountRecord``)
    pending    the node has ended by time; the fence runs, and runs again after a pause if it fails.  The logs of the
               node's servers are not taken over, so their regions wait
    fenced     the fence has succeeded; or a person says that the machine is off; or none is needed: no command is
               configured, the node has no record, or the fence would shut out a living node.  The record is deleted

Invariants:
    S1. ``until_fenced`` returns for a server only when its node is fenced.
    S2. A record is deleted only when its node is fenced.  So if a leader dies, the next one runs the fence, perhaps for
        the second time.

A takeover makes a new generation of each region's folder, with or without a storage fence (``region_takeover``): a
command that does nothing loses no write.  The fence is what makes a takeover quick on file systems that hold back the
files of a dead client.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from columnar.coordination.api import MountRecords
from columnar.coordination.node_record import MOUNTS, MountRecord
from columnar.errors import ColumnarError
from columnar.model.owner import Incarnation
from columnar.roles.fence_commands import FenceFailed, StorageFence
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

T = TypeVar("T")
LOOP: Final = "storage fences"
AT_ONCE: Final = 4  # commands that run at the same time
FIRST_PAUSE_S: Final = 0.5  # after a failure; it doubles up to
LONGEST_PAUSE_S: Final = 10.0
NAMED_AFTER_S: Final = 1.0  # a fence that takes longer, or has failed, is named to operators


@dataclass
class _Pending:
    since_s: float
    settled: asyncio.Future[None]
    by_hand: asyncio.Future[None]
    record: MountRecord | None = None  # None: it was not read yet
    failure: str = ""  # of the last try
    tries: int = 0


class StorageFences:
    """The fences of one leadership.  Call ``stop`` when it is over."""

    def __init__(self, fence: StorageFence | None, records: MountRecords) -> None:
        self._fence = fence
        self._records = records
        # Threads of the loop's executor may all wait for the file system, until this fence has succeeded.
        self._executor = ThreadPoolExecutor(1, "records of mounts")
        self._pending: dict[Incarnation, _Pending] = {}
        self._by_hand: set[Incarnation] = set()  # nodes whose leases were not over when a person spoke
        self._permits = asyncio.Semaphore(AT_ONCE)
        self._work = Background(LOOP)
        self._is_closed = False

    # --- nodes that have ended -----------------------------------------------------------------------

    async def begin_all(self, named: Iterable[str] = ()) -> None:
        """Begin the fences that earlier leaders have not finished.  Call when all other nodes' leases are over.

        ``named``: keys of mounts whose nodes may have ended since; their ends are reported.  Raises ColumnarError.
        """
        _, others = await self._call(self._records.list_mounts)
        for key in sorted(others.keys() - set(named)):
            self.begin_fence(Incarnation(others[key].node, others[key].incarnation))

    def begin_fence(self, node: Incarnation) -> None:
        """Begin the fence of a node that ended by time, unless it has begun."""
        if node not in self._pending and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._pending[node] = pending = _Pending(loop.time(), loop.create_future(), loop.create_future())
            if node in self._by_hand:
                pending.by_hand.set_result(None)
            self._work.spawn(self._fence_node(node, pending))

    def forget(self, node: Incarnation) -> None:
        """Delete the record of a node that withdrew after its servers had ended, and perhaps could not delete it."""
        if not self._is_closed:
            self._work.spawn(self._forget(f"{MOUNTS}/{node}"))

    async def until_fenced(self, server: Incarnation) -> None:
        """Wait until the node of a server that ended by time is fenced."""
        while waited := [pending.settled for node, pending in self._pending.items() if is_node_of(node, server)]:
            await asyncio.wait(waited)

    def pending(self) -> tuple[Incarnation, ...]:
        """Return the nodes that have ended by time and are not fenced yet."""
        return tuple(self._pending)

    def fence_by_hand(self, node: Incarnation) -> bool:
        """Take a person's word that the machine of the node is off; return whether its fence was pending.

        If the lease of the node is not over yet, the word counts when it is.
        """
        pending = self._pending.get(node)
        if pending is None:
            self._by_hand.add(node)
        elif not pending.by_hand.done():
            pending.by_hand.set_result(None)
        return pending is not None

    def remarks(self) -> tuple[str, ...]:
        """Return sentences for operators about the fences that take long."""
        now_s = asyncio.get_running_loop().time()
        pending = self._pending.items()
        late = ((node, one) for node, one in pending if one.failure or now_s - one.since_s >= NAMED_AFTER_S)
        return tuple(_remark(node, one, now_s) for node, one in late)

    def stop(self) -> None:
        """End the fences under way; the next leader begins them again."""
        self._is_closed = True
        self._work.close()
        self._executor.shutdown(wait=False)

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    # --- the fence of one node -----------------------------------------------------------------------

    async def _fence_node(self, node: Incarnation, pending: _Pending) -> None:
        by_hand = pending.by_hand
        while not by_hand.done():
            if await self._either(self._try_fence(node, pending), by_hand):
                break
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(pending.tries, 8))
            pending.tries += 1
            await asyncio.wait([by_hand], timeout=pause_s)
        if by_hand.done():
            _log.warning("node %s counts as fenced: a person says that its machine is off", node)
        self._pending.pop(node)
        pending.settled.set_result(None)
        await self._forget(f"{MOUNTS}/{node}")

    async def _either(self, work: Awaitable[bool], by_hand: asyncio.Future[None]) -> bool:
        """Return the result of the work, or True as soon as a person speaks; then the work is cancelled."""
        trying = asyncio.ensure_future(work)
        try:
            both: list[asyncio.Future[Any]] = [trying, by_hand]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return by_hand.done() or await trying
        finally:
            if not trying.done():
                trying.cancel()
                await asyncio.wait([trying])

    async def _try_fence(self, node: Incarnation, pending: _Pending) -> bool:
        """Fence the node; tell whether it is fenced."""
        try:
            async with self._permits:
                await self._run_fence(node, pending)
            FAULTS.went_well(LOOP)
            return True
        except FenceFailed as failed:
            why = str(failed)
        except ColumnarError as error:
            why = error.text
        except Exception as fault:  # noqa: BLE001 - regions wait for this fence, and for others
            FAULTS.met(LOOP, fault)
            why = f"a fault of the program: {fault}"
        if why != pending.failure:
            _log.error("node %s is not fenced at the file system: %s; trying again", node, why)
        pending.failure = why
        return False

    async def _run_fence(self, node: Incarnation, pending: _Pending) -> None:
        """Run the fence if one is needed.  Raises FenceFailed, ColumnarError."""
        living, others = await self._call(self._records.list_mounts)
        key = f"{MOUNTS}/{node}"
        record = pending.record = others.get(key) or living.get(key)
        if record is None:
            return
        if self._fence is None:
            if record.client:
                text = "its regions wait until CephFS ends the session of %s, after 60 s by default"
                _log.warning("node %s is not fenced at the file system (--fence-command): " + text, node, record.client)
            return
        sparing = self._fence.find_sparing(record, (one for name, one in living.items() if name != key))
        if sparing is not None:
            text = f"node {sparing.node}.{sparing.incarnation} lives there"
            _log.warning("node %s is not fenced at the file system: %s. Its regions' files are copied", node, text)
            return
        await self._fence.fence_mount(record)
        _log.warning("node %s is fenced at the file system", node)

    async def _forget(self, key: str) -> None:
        while not self._is_closed:
            try:
                await self._call(lambda: self._records.forget_mount(key))
                return
            except ColumnarError as error:
                _log.warning("the record %s stays for now: %s", key, error.text)
            await asyncio.sleep(LONGEST_PAUSE_S)


def is_node_of(node: Incarnation, server: Incarnation) -> bool:
    """Tell whether the server may be the node's: of its name, and started after it.

    Numbers of nodes and servers come from one counter.
    """
    name, _, number = server.name.rpartition("-s")
    return name == node.name and number.isdigit() and node.number < server.number


def _remark(node: Incarnation, pending: _Pending, now_s: float) -> str:
    record = pending.record
    place = ""
    if record is not None:
        place = f" ({', '.join(filter(None, [record.address, record.client]))})"
    text = f"node {node}{place} is not fenced at the file system yet, for {now_s - pending.since_s:.0f} s"
    why = f": {pending.failure}; it is tried again" if pending.failure else ""
    return f"{text}, and its regions wait{why}. If its machine is off, 'columnar fence {node.name}' says so"

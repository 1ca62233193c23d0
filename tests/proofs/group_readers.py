"""Members of a group of readers beside the clients of ``region_clients``: together they get each write once.

Members leave and join anew; with kills they also die with changes that they have not committed.  Since each write of a
client puts a cell that nobody writes again, the group must get each write: in a row of the snapshot, or as a change.

    missing        a write that was acknowledged and that no member committed, long after the last write
    after commit   a write that a member got although a commit of it was acknowledged before
    repeat         a write that came twice although nobody died

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Final

from columnar.model.change_events import ChangeEvent, RowEvent, unpack_events
from columnar.streams.group_bytes import unpack_progress
from columnar.wire.idl import columnar, hbase
from tests.proofs.region_clients import AsyncConnection, Crowd, Unanswered, column_of, row_of

GROUP: Final = "proof"
WAIT_MS: Final = 200
AGAIN_S: Final = 0.02
EXAMPLES: Final = 3
LEAVES: Final = 0.03  # how often, of pulls
DIES: Final = 0.01
END_S: Final = 90.0  # after the last write: three leases

Key = tuple[bytes, bytes]  # row, column


class GroupLedger:
    """What all members got and committed."""

    def __init__(self, crowd: Crowd, *, may_fail: bool) -> None:
        """``may_fail``: servers are killed, so requests may fail, and members die."""
        self.crowd = crowd
        self.may_fail = may_fail
        self.got: set[Key] = set()
        self.committed: set[Key] = set()
        self.starts: list[bytes] = []  # of the group's ranges, as far as members had them
        self.counts: Counter[str] = Counter()

    def note_ranges(self, starts: Iterable[bytes]) -> None:
        self.starts = sorted({*self.starts, *starts})

    def range_of(self, row: bytes) -> bytes:
        return self.starts[bisect_right(self.starts, row) - 1]

    def note_write(self, key: Key) -> None:
        if key in self.committed:
            self.note_problem("after commit", key)
        elif key in self.got:
            self.counts["repeats"] += 1
            if not self.may_fail:
                self.note_problem("unexcused repeats", key)
        self.got.add(key)

    def note_problem(self, what: str, key: Key) -> None:
        self.counts[what] += 1
        if self.counts[what] <= EXAMPLES:
            self.crowd.problem(f"group: {what.upper()}: {key[1].decode()} of {key[0].decode()}")

    def missing(self) -> set[Key]:
        due = {
            (row_of(client.prefix, n), column_of(n))
            for client in self.crowd.clients
            for n in client.journal.acknowledged()
        }
        return due - self.committed


class GroupMember:
    def __init__(self, ledger: GroupLedger, number: int, port: Callable[[], int]) -> None:
        self._ledger = ledger
        self._number = number
        self._lives = 0
        self._connection = AsyncConnection(port)
        self._rng = random.Random(f"group member {ledger.crowd.seed} {number}")
        self.is_over = False

    async def run(self) -> None:
        """Read until all that was acknowledged is committed; END_S after ``is_over`` what is missing is a problem."""
        ends_s: float | None = None
        try:
            while True:
                self._join()
                while not self._is_at_end():
                    if self.is_over:
                        ends_s = ends_s or monotonic() + END_S
                        if monotonic() > ends_s:
                            break
                    if not await self._work_once():
                        break
                if self._is_at_end() or (ends_s is not None and monotonic() > ends_s):
                    break
        finally:
            self._connection.close()

    def _is_at_end(self) -> bool:
        return self.is_over and not self._ledger.missing()

    def _join(self) -> None:
        self._lives += 1
        self._member = f"m{self._number}-{self._lives}"
        self._position = b""
        self._epochs: dict[bytes, int] = {}  # of the ranges in the position, by start
        self._uncommitted: dict[Key, tuple[bytes, int]] = {}  # range and epoch in which the write came

    async def _work_once(self) -> bool:
        """Pull and perhaps commit; return False if the member has left or died."""
        rng, counts = self._rng, self._ledger.counts
        if self._ledger.may_fail and rng.random() < DIES:
            counts["deaths"] += 1
            return False
        if rng.random() < LEAVES:
            counts["leaves"] += 1
            await self._commit(leaves=True)
            return False
        request = columnar.ChangesRequest(
            position=self._position,
            start="beginning",
            waitMs=WAIT_MS,
            maxBytes=rng.choice((2_000, 50_000, 0)),
            group=GROUP,
            member=self._member,
        )
        reply = await self._ask("columnarChanges", request)
        if reply is None:
            return True
        counts["pulls"] += 1
        self._position = reply.position
        progress = unpack_progress(reply.position, self._ledger.crowd.table.decode())
        self._epochs = {one.start: one.epoch for one in progress}
        self._ledger.note_ranges(self._epochs)
        for event in unpack_events(reply.events):
            self._take(event)
        if self._uncommitted and rng.random() < 0.7:
            await self._commit(leaves=False)
        return True

    def _take(self, event: Any) -> None:
        if isinstance(event, RowEvent):
            keys = [(event.row, column) for column, _, _ in event.cells]
        elif isinstance(event, ChangeEvent):
            keys = [(event.row, entry.column) for entry in event.entries]
        else:
            self._ledger.crowd.problem("group: it was told to forget rows")
            return
        for key in keys:
            self._ledger.note_write(key)
            start = self._ledger.range_of(key[0])
            self._uncommitted[key] = (start, self._epochs[start])

    async def _commit(self, *, leaves: bool) -> None:
        request = columnar.CommitRequest(group=GROUP, member=self._member, position=self._position, leaves=leaves)
        while (reply := await self._ask("columnarCommit", request)) is None:
            pass  # the outcome is unknown, so the commit is sent again
        counts = self._ledger.counts
        counts["commits"] += 1
        taken = self._epochs.items() - {(one, self._epochs[one]) for one in reply.refused}
        self._ledger.committed |= {key for key, came_in in self._uncommitted.items() if came_in in taken}
        counts["writes committed"] = len(self._ledger.committed)
        if reply.refused:
            counts["refused commits"] += 1
            if not self._ledger.may_fail:
                self._ledger.crowd.problem(f"group: a commit was refused of {len(reply.refused)} ranges")
        self._uncommitted.clear()

    async def _ask(self, method: str, request: Any) -> Any:
        """Return the answer, or None if the request failed."""
        try:
            return await self._connection.ask(method, self._ledger.crowd.table, request)
        except (Unanswered, TimeoutError, hbase.IOError, hbase.IllegalArgument) as error:
            self._ledger.counts["failed requests"] += 1
            if not self._ledger.may_fail:
                self._ledger.crowd.problem(f"group: a request failed: {getattr(error, 'message', None) or error!r}")
            await asyncio.sleep(AGAIN_S)
            return None

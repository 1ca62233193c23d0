"""Readers of a change stream beside the clients of ``region_clients``: each takes one snapshot after the other.

A snapshot begins at the beginning and ends with a reply at the log's end, after random rounds.  Since each write of a
client puts a cell that nobody writes again, a reader must have each write once: in a row of the snapshot, or as a
change.

    gap      a write that was acknowledged before the last request began, which the reader has not got
    repeat   a write that came twice
    order    a change of a row with a lower sequence of its origin, or a lower stamp, than one before

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from columnar.flows.position import unpack
from columnar.model.change_events import ChangeEvent, ForgetEvent, RowEvent, unpack_events
from columnar.wire.idl import columnar, hbase
from tests.proofs.region_clients import AsyncConnection, Crowd, Unanswered, column_of, row_of

WAIT_MS: Final = 200
AGAIN_S: Final = 0.02
EXAMPLES: Final = 3
MOST_ROUNDS: Final = 40  # of a snapshot, after it was at the end

Key = tuple[bytes, bytes]  # row, column


class StreamReader:
    def __init__(self, crowd: Crowd, number: int, port: Callable[[], int], *, may_fail: bool) -> None:
        """``may_fail``: servers are killed, so requests may fail."""
        self._crowd = crowd
        self._connection = AsyncConnection(port)
        self._rng = random.Random(f"stream reader {crowd.seed} {number}")
        self._may_fail = may_fail
        self.is_over = False
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        try:
            while not self.is_over:
                await self._snapshot()
        finally:
            self._connection.close()

    async def _snapshot(self) -> None:
        position, rounds = b"", self._rng.randrange(MOST_ROUNDS)
        seen: dict[Key, bytes] = {}
        last: dict[bytes, tuple[tuple[int, int, int], int]] = {}  # by row: sequence and stamp
        while True:
            due = self._acknowledged()
            request = columnar.ChangesRequest(
                position=position, start="beginning", waitMs=WAIT_MS, maxBytes=self._rng.choice((2_000, 50_000, 0))
            )
            try:
                reply = await self._connection.ask("columnarChanges", self._crowd.table, request)
            except (Unanswered, TimeoutError, hbase.IOError, hbase.IllegalArgument) as error:
                self.counts["failed requests"] += 1
                if not self._may_fail:
                    self._problem(f"a request failed: {getattr(error, 'message', None) or error!r}")
                await asyncio.sleep(AGAIN_S)
                continue
            for event in unpack_events(reply.events):
                self._take(event, seen, last)
            position = reply.position
            rounds -= 1
            is_at_end = not reply.events or reply.upToMs > 0
            if is_at_end and (rounds < 0 or self.is_over):
                break
        self.counts["snapshots"] += 1
        self.counts["writes seen"] += len(seen)
        missing = [key for key, value in due.items() if seen.get(key) != value]
        self.counts["gaps"] += len(missing)
        for row, column in missing[:EXAMPLES]:
            self._problem(f"GAP: {column.decode()} of {row.decode()} was acknowledged before; {unpack(position)}")

    def _acknowledged(self) -> dict[Key, bytes]:
        return {
            (row_of(client.prefix, n), column_of(n)): b"%d" % n
            for client in self._crowd.clients
            for n in client.journal.acknowledged()
        }

    def _take(self, event: Any, seen: dict[Key, bytes], last: dict[bytes, tuple[tuple[int, int, int], int]]) -> None:
        if isinstance(event, RowEvent):
            self.counts["rows"] += 1
            for column, _, value in event.cells:
                self._see((event.row, column), value, seen)
            last[event.row] = (event.sequence, 0)
        elif isinstance(event, ChangeEvent):
            self.counts["changes"] += 1
            sequence, stamp = last.get(event.row, ((0, 0, 0), 0))
            if event.sequence <= sequence or event.stamp <= stamp:
                self._problem(
                    f"ORDER: {event.row.decode()} has {event.sequence} {event.stamp} after {sequence} {stamp}"
                )
            last[event.row] = (event.sequence, event.stamp)
            for entry in event.entries:
                self._see((event.row, entry.column), entry.value, seen)
        elif isinstance(event, ForgetEvent):
            self._problem("a snapshot was told to forget rows")

    def _see(self, key: Key, value: bytes, seen: dict[Key, bytes]) -> None:
        if key in seen:
            self.counts["repeats"] += 1
            if self.counts["repeats"] <= EXAMPLES:
                self._problem(f"REPEAT: {key[1].decode()} of {key[0].decode()} came twice")
        seen[key] = value

    def _problem(self, text: str) -> None:
        self._crowd.problem(f"stream: {text}")

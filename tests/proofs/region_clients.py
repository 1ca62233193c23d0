"""Clients of a store that may be killed: one for each region, each with a connection of its own, all on one loop.

A client writes and reads its region in turn, at a steady pace or, while it is hot, HOT_PERIOD_S after its last answer.
Each write puts its number into a cell that nobody writes again, so a write that comes late undoes nothing:

    write n of a client   row PREFIX/n//CHANGES_OF_ROW, column f:n%CHANGES_OF_ROW, value n

An answer is lost with its connection, or by a ``CallTimeoutException``; then the write may be stored or not.  A refused
write must not be stored, and an acknowledged write must be stored for ever: ``Crowd.missing`` names violations.

Owned by the loop, except ``missing``.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from columnar.bench.calls import FRAME_HEAD, call, mutation
from columnar.client.errors import hbase_class
from columnar.wire.idl import hbase
from tests.proofs.asking import UNDECIDED
from tests.support.thrift_replies import unpacked

CHANGES_OF_ROW: Final = 50
FAMILY: Final = b"f"
HOT_PERIOD_S: Final = 0.005
ANSWER_S: Final = 30.0  # a store answers within so long, whatever dies
PATIENCE_S: Final = 2 * ANSWER_S
AGAIN_S: Final = 0.01  # between attempts to connect, and after a refusal
EXAMPLES: Final = 5


class Unanswered(Exception):
    """The connection was lost, or could not be made."""


class AsyncConnection:
    """A connection with one call at a time, which reconnects with the next call after a loss."""

    def __init__(self, port: Callable[[], int]) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, *args: Any) -> Any:
        """Return the answer.

        Raises Unanswered, IOError and IllegalArgument of the store, and TimeoutError after ANSWER_S.
        """
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = self._streams = self._streams or await asyncio.open_connection(
                    "127.0.0.1", self._port()
                )
                writer.write(call(method, *args))
                size = int.from_bytes(await reader.readexactly(FRAME_HEAD), "big")
                reply = await reader.readexactly(size)
        except TimeoutError:
            self.close()
            raise
        except (OSError, EOFError) as error:
            self.close()
            raise Unanswered(repr(error)) from None
        return unpacked(method, reply)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


@dataclass(slots=True)
class Journal:
    """The outcomes of a client's writes, by their numbers."""

    sent: int = 0
    unsure: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)

    def acknowledged(self) -> Iterable[int]:
        return (n for n in range(self.sent) if n not in self.unsure and n not in self.refused)


def row_of(prefix: bytes, number: int) -> bytes:
    return b"%s/%06d" % (prefix, number // CHANGES_OF_ROW)


def column_of(number: int) -> bytes:
    return b"%s:%02d" % (FAMILY, number % CHANGES_OF_ROW)


class RegionClient:
    def __init__(self, crowd: Crowd, prefix: bytes, number: int) -> None:
        self.prefix = prefix
        self.journal = Journal()
        self.is_hot = False
        self.longest_s = 0.0  # of the calls since ``heat``
        self.answered_at = 0.0  # the end of the first call that was begun after ``Crowd.mark`` and succeeded
        self._next_answer: asyncio.Future[None] | None = None
        self._crowd = crowd
        self._connection = AsyncConnection(lambda: crowd.port)
        self._rng = random.Random(f"region client {crowd.seed} {number}")
        self._urged = asyncio.Event()
        self._last = -1  # acknowledged

    def urge(self) -> None:
        """Begin the next call now."""
        self._urged.set()

    async def heat(self) -> None:
        """Make the client hot; return when it was answered once."""
        self.is_hot = True
        self.urge()
        await self.answered_again()
        self.longest_s = 0.0

    async def cool(self) -> float:
        """Stop being hot; return the longest call since ``heat`` when a call under way is answered."""
        await self.answered_again()
        self.is_hot = False
        return self.longest_s

    async def answered_again(self) -> None:
        """Return after the next answer, or after PATIENCE_S without one."""
        self._next_answer = asyncio.get_running_loop().create_future()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._next_answer, PATIENCE_S)

    async def run(self) -> None:
        await self._pause(self._rng.uniform(0, self._crowd.period_s))
        while not self._crowd.is_over:
            begun = time.monotonic()
            ask = self._write if self._last < 0 or self._rng.random() < 0.5 else self._read
            if not await self._asked(ask, begun):
                await asyncio.sleep(AGAIN_S)
            else:
                await self._pause(HOT_PERIOD_S if self.is_hot else self._crowd.period_s * self._rng.uniform(0.5, 1.5))
        self.close()

    def close(self) -> None:
        self._connection.close()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._urged.wait(), seconds)
        self._urged.clear()

    async def _asked(self, ask: Callable[[], Any], begun: float) -> bool:
        """Make a call; return False if it failed."""
        counts = self._crowd.counts
        try:
            await ask()
        except Unanswered:
            counts["unanswered"] += 1
            return False
        except (hbase.IOError, hbase.IllegalArgument) as error:
            counts["outcome unknown" if hbase_class(error) == UNDECIDED else "refused"] += 1
            self._crowd.failure(error.message)
            return False
        except TimeoutError:
            self._crowd.problem(f"no answer within {ANSWER_S:.0f} s, for a row of {self.prefix.decode()}")
            return False
        ended = time.monotonic()
        self.longest_s = max(self.longest_s, ended - begun)
        if not self.answered_at and begun >= self._crowd.marked_at:
            self.answered_at = ended
            self._crowd.is_answered()
        if self._next_answer is not None and not self._next_answer.done():
            self._next_answer.set_result(None)
        counts["answered"] += 1
        self._crowd.took(ended - begun)
        return True

    async def _write(self) -> None:
        number, journal = self.journal.sent, self.journal
        journal.sent += 1
        journal.unsure.add(number)  # until it is known
        mutations = [mutation(column_of(number), b"%d" % number)]
        try:
            await self._connection.ask("mutateRow", self._crowd.table, row_of(self.prefix, number), mutations)
        except (hbase.IOError, hbase.IllegalArgument) as error:
            if hbase_class(error) != UNDECIDED:
                journal.unsure.discard(number)
                journal.refused.add(number)
            raise
        journal.unsure.discard(number)
        self._last = number

    async def _read(self) -> None:
        number = self._last
        row, column = row_of(self.prefix, number), column_of(number)
        found = await self._connection.ask("getRowWithColumns", self._crowd.table, row, [column])
        values = [cells.columns[column].value for cells in found if column in cells.columns]
        if values != [b"%d" % number]:
            self._crowd.problem(
                f"LOST: {column.decode()} of {row.decode()} was acknowledged, and a read finds {values}"
            )


class Crowd:
    """The clients of a table's regions; ``port`` may change while they are at work."""

    def __init__(self, table: bytes, prefixes: Sequence[bytes], per_second: float, seed: int) -> None:
        self.table = table
        self.seed = seed
        self.port = 0
        self.period_s = len(prefixes) / per_second
        self.is_over = False
        self.marked_at = math.inf
        self._missing = 0  # clients that were not answered since ``mark``
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.failures: list[str] = []  # the first of them
        self.longest_s = 0.0
        self.clients = [RegionClient(self, prefix, n) for n, prefix in enumerate(prefixes)]
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, port: int) -> None:
        self.port, self.is_over = port, False
        self._tasks = [asyncio.ensure_future(client.run()) for client in self.clients]

    async def end(self) -> None:
        """What a client does that is not a failure of the store is raised here."""
        self.is_over = True
        for client in self.clients:
            client.urge()
        await asyncio.gather(*self._tasks)
        self._tasks = []

    async def cut_off(self) -> None:
        """End the clients of a dead store, without waiting for answers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self.clients:
            client.close()
        self._tasks = []

    def mark(self) -> float:
        """Let all clients call at once, and measure when each is answered; return the moment.

        What a client does that is not a failure of the store is raised here.
        """
        for task in self._tasks:
            if task.done():
                task.result()
        self._missing, self._all_answered = len(self.clients), asyncio.Event()
        self.marked_at = time.monotonic()
        for client in self.clients:
            client.answered_at = 0.0
            client.urge()
        return self.marked_at

    async def all_answered(self, within_s: float) -> list[float]:
        """Return the seconds since ``mark`` until each client was answered; infinite if not within ``within_s``."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_answered.wait(), within_s)
        return [c.answered_at - self.marked_at if c.answered_at else float("inf") for c in self.clients]

    def is_answered(self) -> None:
        """Note that a client was answered for the first time since ``mark``."""
        self._missing -= 1
        if not self._missing:
            self._all_answered.set()

    def took(self, seconds: float) -> None:
        self.longest_s = max(self.longest_s, seconds)

    def failure(self, text: str) -> None:
        if len(self.failures) < EXAMPLES:
            self.failures.append(text)

    def problem(self, text: str) -> None:
        self.counts["problems"] += 1
        if len(self.problems) < EXAMPLES:
            self.problems.append(text)

    @property
    def failed(self) -> int:
        return self.counts["unanswered"] + self.counts["refused"] + self.counts["outcome unknown"]

    # --- in the end --------------------------------------------------------------------------------------

    def acknowledged(self) -> int:
        return sum(1 for client in self.clients for _ in client.journal.acknowledged())

    def missing(self, rows: Iterable[tuple[bytes, dict[bytes, bytes]]]) -> list[str]:
        """Return the acknowledged writes that the rows of the table lack, or have with wrong values."""
        there = {(row, column): value for row, cells in rows for column, value in cells.items()}
        return [
            f"{column_of(n).decode()} of {row_of(client.prefix, n).decode()}"
            for client in self.clients
            for n in client.journal.acknowledged()
            if there.get((row_of(client.prefix, n), column_of(n))) != b"%d" % n
        ]


def prefixes(count: int) -> list[bytes]:
    """Return a prefix for each region of a table that is split at all prefixes but the first."""
    return [b"%04d" % n for n in range(count)]


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

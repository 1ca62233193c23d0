"""(pure) Dealing: who sends which request, and the requests that a worker has ahead.

    request n of the plan -> worker n mod N of those alive, in blocks, as far ahead as time and its credits allow

A lost worker's requests that it cannot have begun come back, and go to the others before the plan goes on.

Invariants:
    D1. Each request is dealt once; again only if it came back.
    D2. No worker is dealt more than its room.  The plan waits for the worker whose request is next.
    D3. A worker's requests ahead are in the order of their starts, also after a takeover.

Knows nothing of frames' bytes, sockets and clocks.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from wikibench.pacing import Planned

from .frames import BLOCK_BYTES, BLOCK_REQUESTS, size_of

AHEAD_S: Final = 10.0
AHEAD_REQUESTS: Final = 65_536  # a worker
CREDIT_STEP: Final = BLOCK_REQUESTS  # a worker grants so many at once
LONG_CHARS: Final = 400  # 256 requests with shorter addresses and texts always fit in a frame


class Dealer:
    """The plan, and the requests that came back."""

    def __init__(self, plan: Iterable[Planned]) -> None:
        self.last_start_s = 0.0  # of what has been dealt
        self._plan = iter(plan)
        self._next: Planned | None = None
        self._is_exhausted = False
        self._returned: deque[Planned] = deque()
        self._workers: list[int] = []
        self._position = 0  # index of the worker that is dealt the next request

    def prepare(self) -> None:
        """Read up to the first request, which may be far into the trace."""
        self._next = next(self._plan, None)
        self._is_exhausted = self._next is None

    @property
    def is_exhausted(self) -> bool:
        """Whether all of the plan has been dealt, and nothing has come back."""
        return self._is_exhausted and not self._returned

    def add(self, worker: int) -> None:
        """Deal to one more worker; call before the first step."""
        self._workers.append(worker)

    def remove(self, worker: int, returned: Iterable[Planned]) -> None:
        """Deal nothing more to the worker; the requests that it cannot have begun come back, by their starts."""
        at = self._workers.index(worker)
        del self._workers[at]
        if self._workers:
            self._position = (self._position - (at < self._position)) % len(self._workers)
        self._returned = deque(heapq.merge(self._returned, returned, key=lambda row: row.start_s))

    def step(self, room: Mapping[int, int], horizon_s: float) -> list[tuple[int, list[Planned], bool]]:
        """Deal up to a block to each worker: workers, requests, and whether they came back.

        ``room`` has how many more each worker may be dealt; nothing that starts after ``horizon_s`` is dealt.
        """
        if not self._workers:
            return []
        if self._returned:
            return [(worker, rows, True) for worker, rows in self._shared(self._redealt(horizon_s), room)]
        return [(worker, rows, False) for worker, rows in self._shared(self._onward(horizon_s), room)]

    def _shared(self, rows: Iterator[Planned], room: Mapping[int, int]) -> list[tuple[int, list[Planned]]]:
        workers, at = self._workers, self._position
        shares: list[list[Planned]] = [[] for _ in workers]
        limits = [min(BLOCK_REQUESTS, room[worker]) for worker in workers]
        long_bytes = 0
        count = len(workers)
        while len(shares[at]) < limits[at] and long_bytes < BLOCK_BYTES:
            row = next(rows, None)
            if row is None:
                break
            shares[at].append(row)
            at = at + 1 if at + 1 < count else 0
            if len(row.request.url) > LONG_CHARS or len(row.request.flag) > LONG_CHARS:
                long_bytes += size_of(row)
        self._position = at
        return [(worker, share) for worker, share in zip(workers, shares, strict=True) if share]

    def _onward(self, horizon_s: float) -> Iterator[Planned]:
        while (row := self._next) is not None and row.start_s <= horizon_s:
            self._next = next(self._plan, None)
            self.last_start_s = row.start_s
            yield row
        self._is_exhausted = self._next is None

    def _redealt(self, horizon_s: float) -> Iterator[Planned]:
        while self._returned and self._returned[0].start_s <= horizon_s:
            yield self._returned.popleft()


class Ahead:
    """The requests that a worker has ahead."""

    def __init__(self) -> None:
        self.received = 0
        self.taken = 0
        self._rows: deque[Planned] = deque()

    def __len__(self) -> int:
        return len(self._rows)

    def first(self) -> Planned | None:
        return self._rows[0] if self._rows else None

    def take_first(self) -> Planned:
        self.taken += 1
        return self._rows.popleft()

    def add(self, rows: Sequence[Planned], *, is_takeover: bool = False) -> None:
        """Append requests; those of a takeover go between the others, by their starts."""
        self.received += len(rows)
        if is_takeover:
            self._rows = deque(heapq.merge(self._rows, rows, key=lambda row: row.start_s))
        else:
            self._rows.extend(rows)

    @property
    def granted(self) -> int:
        """The requests that may be dealt, since the beginning."""
        return self.taken - self.taken % CREDIT_STEP + AHEAD_REQUESTS


class Dealt:
    """The controller's copy of what a worker was dealt and may not have begun."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: deque[Sequence[Planned]] = deque()

    def add(self, rows: Sequence[Planned]) -> None:
        self.count += len(rows)
        self._rows.append(rows)

    def forget(self, before_s: float) -> None:
        """Forget blocks all of whose requests start before: they cannot be taken over any more."""
        while self._rows and self._rows[0][-1].start_s < before_s:
            self._rows.popleft()

    def take_from(self, start_s: float) -> list[Planned]:
        """Return the requests that start at ``start_s`` or later, which are then not dealt, by their starts."""
        found = [row for rows in self._rows for row in rows if row.start_s >= start_s]
        self._rows.clear()
        self.count -= len(found)
        return sorted(found, key=lambda row: row.start_s)

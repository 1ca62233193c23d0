"""(pure) The line of jobs that write: owners take queue turns by their writes so far, divided by their share.

A write is an operation on a row.

Start-time fair queueing, as in ``fair_share``: an owner with a million writes before it delays another owner's few by
its part of a step, not by all of them.  The jobs of one owner go in their order.

Knows nothing of what a job is.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_REMEMBERED: Final = 1_024  # owners without jobs, before those are forgotten that have no more to pay


class _Owner(Generic[T]):
    __slots__ = ("jobs", "name", "share", "tag")

    def __init__(self, name: str) -> None:
        self.name = name
        self.share = 1
        self.tag = 0.0  # virtual writes: when its next write starts
        self.jobs: deque[T] = deque()


class WriteLine(Generic[T]):
    def __init__(self) -> None:
        self._owners: dict[str, _Owner[T]] = {}
        self._heap: list[tuple[float, int, _Owner[T]]] = []  # of owners with jobs, one entry each
        self._virtual = 0.0
        self._highest = 0.0  # tag of any owner
        self._serial = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, name: str, share: int, job: T) -> None:
        owner = self._owners.get(name)
        if owner is None:
            self._forget()
            owner = self._owners[name] = _Owner(name)
        owner.share = share
        owner.jobs.append(job)
        if len(owner.jobs) == 1:
            owner.tag = max(owner.tag, self._virtual)
            self._enter(owner)

    def _enter(self, owner: _Owner[T]) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (owner.tag, self._serial, owner))

    def first(self) -> T:
        """Return the job that is next in the line.  There is one."""
        return self._heap[0][2].jobs[0]

    def wrote(self, count: int, *, is_over: bool) -> None:
        """Count writes of ``first``; ``is_over``: it leaves the line."""
        self._virtual, _, owner = heapq.heappop(self._heap)
        owner.tag += count / owner.share
        self._highest = max(self._highest, owner.tag)
        if is_over:
            owner.jobs.popleft()
        if owner.jobs:
            self._enter(owner)
        elif not self._heap:
            self._virtual = self._highest  # no owner waits: no owner has anything to pay

    def _forget(self) -> None:
        if len(self._owners) >= _REMEMBERED:
            kept = {one.name: one for one in self._owners.values() if one.jobs or one.tag > self._virtual}
            self._owners = kept

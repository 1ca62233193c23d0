"""(pure) The queue of jobs that write: owners take queue turns by their operations so far, divided by their share.

Start-time fair queueing, as in ``fair_share``: an owner with a million queued writes delays an owner with a few by its
part of a step, not by all its writes.  The jobs of one owner are written in their order.

Knows nothing of the jobs, of regions and of clocks.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_REMEMBERED: Final = 1_024  # owners; beyond it those are forgotten that have no jobs and whose tag has been reached


class _Owner(Generic[T]):
    __slots__ = ("jobs", "name", "share", "tag")

    def __init__(self, name: str) -> None:
        self.name = name
        self.share = 1
        self.tag = 0.0  # virtual writes: when its next write starts
        self.jobs: deque[T] = deque()

    def add_job(self, share: int, job: T, virtual: float) -> bool:
        """Add a job; return whether the owner had none.  Then the job starts at ``virtual`` at the earliest."""
        self.share = share
        self.jobs.append(job)
        if len(self.jobs) > 1:
            return False
        self.tag = max(self.tag, virtual)
        return True

    def charge(self, count: int) -> None:
        self.tag += count / self.share


class WriteLine(Generic[T]):
    """The queue of the jobs of all owners, as the module describes it."""

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
        if owner.add_job(share, job, self._virtual):
            self._serial += 1
            heapq.heappush(self._heap, (owner.tag, self._serial, owner))

    def first(self) -> T:
        """Return the next job.  Call it only while the queue has jobs."""
        return self._heap[0][2].jobs[0]

    def wrote(self, count: int, *, is_over: bool) -> None:
        """Count writes of the first job; ``is_over`` removes that job.  If this raises, nothing has changed."""
        virtual, _, owner = self._heap[0]
        owner.charge(count)
        self._virtual = virtual
        self._highest = max(self._highest, owner.tag)
        if is_over:
            owner.jobs.popleft()
        if owner.jobs:
            self._serial += 1
            heapq.heapreplace(self._heap, (owner.tag, self._serial, owner))
            return
        heapq.heappop(self._heap)
        if not self._heap:
            self._virtual = self._highest  # no owner waits, so no owner is ahead of its share

    def _forget(self) -> None:
        if len(self._owners) >= _REMEMBERED:
            kept = {one.name: one for one in self._owners.values() if one.jobs or one.tag > self._virtual}
            self._owners = kept

"""The writes of a region that wait for an fsync, in groups that one fsync makes durable, and the fsyncs that replies
wait for.

Invariants:
    I1. ``barrier`` returns the fsync that a reply must wait for: a read never returns writes that a crash
        can lose.  Writes that requested no fsync raise no barrier.
    I2. A write is acknowledged only if this server still has the lease after the fsync (D10).

Owned by the loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from columnar.errors import OutcomeUnknown
from columnar.model.region_info import RegionInfo
from columnar.regions.log.change_log import ChangeLog
from columnar.runtime.faults import FAULTS
from columnar.runtime.immediate_future import ImmediateFuture
from columnar.storage.api import Store
from columnar.storage.commit import Committer

LOOP: Final = "acknowledgements of a region"


class SyncGroup:
    """The rows that one fsync makes durable."""

    __slots__ = ("acknowledged", "rows", "synced", "whole")

    def __init__(self, synced: ImmediateFuture) -> None:
        self.synced = synced  # the committer's
        # Completes after the fsync and the check of the lease.  Shared: nobody may cancel it.
        self.acknowledged = ImmediateFuture(synced.get_loop())
        self.rows: set[bytes] = set()
        self.whole = False  # any row may be in the group

    def take_all(self) -> None:
        self.whole = True


class SyncGroups:
    def __init__(
        self, info: RegionInfo, store: Store, log: ChangeLog, committer: Committer, feed: Callable[[], None]
    ) -> None:
        """``feed`` is called when more of the log is durable."""
        self.is_ours: Callable[[], bool] = lambda: True  # checks the lease; a cluster replaces it (D10)
        self.touched: set[bytes] | None = None  # rows written while a split or merge copies the region
        self._info = info
        self._store = store
        self._log = log
        self._committer = committer
        self._feed = feed
        self._groups: deque[SyncGroup] = deque()
        self._last_ns: deque[int] = deque()  # the log's last n for each group
        self._has_unsynced = False  # writes that requested no fsync

    def join(self, rows: Iterable[bytes] = (), *, whole: bool = False) -> ImmediateFuture:
        """Return the future of the acknowledgement of all writes so far.

        ``rows`` are written now; ``whole`` means any row.
        """
        synced = self._committer.durable(self._store)
        groups = self._groups
        if not groups or groups[-1].synced is not synced:
            groups.append(SyncGroup(synced))
            self._last_ns.append(0)
            synced.add_callback(self._ended)
        group = groups[-1]
        group.rows.update(rows)
        self._last_ns[-1] = self._log.last_n
        if whole:
            group.take_all()
        self._has_unsynced = False
        return group.acknowledged

    def note_unsynced(self, rows: Collection[bytes]) -> None:
        """Note a write that requested no fsync."""
        self._has_unsynced = True
        if self.touched is not None:
            self.touched.update(rows)

    def sync_async_writes(self) -> asyncio.Future[None] | None:
        """Begin an fsync if unsynced writes wait for one; consumers get these writes' changes after it."""
        return self.join() if self._has_unsynced else None

    def _ended(self, synced: asyncio.Future[None]) -> None:
        """Acknowledge the group's writes if the fsync succeeded and the lease is still ours (I2)."""
        group, last_n = self._groups.popleft(), self._last_ns.popleft()
        assert group.synced is synced, "fsyncs of one store end in order"
        failure = synced.exception()
        if failure is None and not self._is_surely_ours():
            failure = OutcomeUnknown(f"the lease of region {self._info.encoded} was lost; read before you repeat")
        if failure is not None:
            group.acknowledged.complete(failure)
            return
        self._log.note_durable(last_n)
        if self.touched is not None:
            self.touched |= group.rows
        group.acknowledged.complete()
        self._feed()

    def _is_surely_ours(self) -> bool:
        try:
            return self.is_ours()
        except Exception as fault:  # noqa: BLE001 - writers would wait for ever
            FAULTS.met(LOOP, fault)
            return False

    # --- what replies wait for -----------------------------------------------------------------------

    def barrier(self, row: bytes) -> asyncio.Future[None] | None:
        """Return the fsync that a reply about ``row`` must wait for, or None (I1)."""
        for group in reversed(self._groups):
            if row in group.rows or group.whole:
                return group.acknowledged
        return None

    def barrier_any(self) -> asyncio.Future[None] | None:
        """Return the fsync that a reply about a range of rows must wait for, or None."""
        return self._groups[-1].acknowledged if self._groups else None

    def barrier_between(self, start: bytes, stop: bytes) -> asyncio.Future[None] | None:
        """Return the fsync that a reply about the rows ``start <= row < stop`` must wait for, or None.

        An empty ``stop`` is the table's end.  O(rows that wait for an fsync).
        """
        for group in reversed(self._groups):
            if group.whole or any(start <= row and (not stop or row < stop) for row in group.rows):
                return group.acknowledged
        return None

    @property
    def is_quiet(self) -> bool:
        """Whether no write waits for its fsync: the region may be closed."""
        return not self._groups and not self._has_unsynced and self._committer.is_idle(self._store)

    # --- rows for a copier -----------------------------------------------------------------------------

    def take_touched(self) -> list[bytes]:
        """Return the rows written since the last call, ascending.

        The first call begins to note rows and returns none.
        """
        rows, self.touched = sorted(self.touched or ()), set()
        return rows

    def end_touched(self) -> None:
        self.touched = None

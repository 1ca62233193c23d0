"""The logs of dead servers that regions of this server lack.

A log is read when a store is to be opened with it, and dropped when no region lacks it any more.

Invariants (``check_invariants``):
    L1. A dead log is in memory only while a region of this server lacks records of it.
    L2. A region lacks a log until its store was opened with that log, or this server will not open its store.
    L3. A log in memory was read up to the greatest reported length of each segment.  A live server continues to write,
        so it reports greater lengths for a region that it closes later, and the greatest when it has died.

Knows regions only by their ids, and nothing of the source of the unreplayed logs.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from columnar.errors import ColumnarError, HostError
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.owner_messages import Segments
from columnar.storage.dead_logs import DeadLog, DeadLogs, read_repeatedly
from columnar.storage.ownership import THIS_RUN, LogPart

_log = logging.getLogger(__name__)


class OwnLog(Protocol):
    """The log of this server process."""

    def unreplayed_parts(self, region: str) -> tuple[LogPart, ...]: ...

    def brought_in(self, region: str) -> None: ...


class Logs(Protocol):
    """``storage.process_stores.ServerStores``."""

    @property
    def server_log(self) -> OwnLog: ...

    @property
    def dead_logs(self) -> DeadLogs: ...

    def dead_log(self, incarnation: str, lengths: tuple[tuple[str, int], ...]) -> DeadLog: ...


class LackingLogs:
    def __init__(self, local_server: Incarnation, logs: Logs) -> None:
        self._local_server = local_server
        self._logs = logs
        self._sealed: dict[str, Segments] = {}  # greatest reported lengths of segments, by incarnation
        self._read_to: dict[str, Segments] = {}  # of the logs in memory
        self._unreadable: dict[str, DeadLog] = {}  # logs of which a reading failed, or is under way
        self._lacking: dict[int, tuple[LogPart, ...]] = {}  # by region id
        self._needed: dict[str, set[int]] = {}  # region ids by log

    def __contains__(self, region_id: int) -> bool:
        return region_id in self._lacking

    def know(self, sealed: Iterable[tuple[Incarnation, Segments]]) -> None:
        """Note the segment lengths of dead logs.  Reports may come out of order: a segment's greatest length counts."""
        for server, lengths in sealed:
            longest = dict(self._sealed.get(str(server), ()))
            for name, length in lengths:
                longest[name] = max(length, longest.get(name, 0))
            self._sealed[str(server)] = tuple(sorted(longest.items()))

    def lacks(self, region_id: int, unreplayed_logs: Iterable[OwnershipPeriod]) -> None:
        """Mark the region as lacking the logs of these ownership periods.

        Periods of this server are in the log of this process.
        """
        parts = []
        for period in unreplayed_logs:
            name = THIS_RUN if period.server == self._local_server else str(period.server)
            parts.append(LogPart(name, period.epoch))
            if name != THIS_RUN:
                self._needed.setdefault(name, set()).add(region_id)
        self._lacking[region_id] = tuple(parts)

    def parts_of(self, region_id: int) -> tuple[LogPart, ...]:
        """Return the parts of logs that the region's store is to be opened with now.

        A log that is missing or cannot be read raises an error only when the store is opened.
        """
        parts = self._lacking.get(region_id, ())
        for part in parts:
            lengths = self._sealed.get(part.log)
            is_added = self._logs.dead_logs.of(part.log) is not None
            if lengths is None or (is_added and self._read_to.get(part.log) == lengths):
                continue
            try:
                self._logs.dead_logs.add_log(part.log, self._logs.dead_log(part.log, lengths))
                self._read_to[part.log] = lengths
            except HostError as error:
                _log.error("regions lack what %s wrote: %s", part.log, error.text)
                self._read_to.pop(part.log, None)
                self._logs.dead_logs.drop(part.log)  # it was read to a smaller extent
        return parts

    async def load(self, region_id: int) -> None:
        """Read the region's logs in a thread: 16 MiB take 24 ms.  Opening the store raises the same error again.

        If a log cannot be read, one region retries the reading, for all regions that lack the log.
        """
        for part in self.parts_of(region_id):
            log = self._logs.dead_logs.of(part.log)
            if log is None or log.is_loaded:
                continue
            is_first = self._unreadable.get(part.log) is not log
            self._unreadable[part.log] = log
            with suppress(ColumnarError):
                await (read_repeatedly(log.load) if is_first else asyncio.to_thread(log.load))
                self._unreadable.pop(part.log, None)

    def has_all(self, region_id: int) -> None:
        """Mark the region as lacking no log: its store was opened with its logs, or will not be opened locally (L2)."""
        for part in self._lacking.pop(region_id):
            needed = self._needed.get(part.log)
            if needed is None:
                continue
            needed.discard(region_id)
            if not needed:
                del self._needed[part.log]
                self._read_to.pop(part.log, None)
                self._unreadable.pop(part.log, None)
                self._logs.dead_logs.drop(part.log)

    def check_invariants(self) -> None:
        lacked = {part.log for parts in self._lacking.values() for part in parts} - {THIS_RUN}
        assert lacked == set(self._needed), "L1"
        assert all(self._needed.values()), "L1"
        assert self._read_to.keys() <= self._needed.keys(), "L1"
        assert self._unreadable.keys() <= self._needed.keys(), "L1"

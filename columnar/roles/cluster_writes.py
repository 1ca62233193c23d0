"""Writes of owners into the catalogue, one after the other, and the report of each outcome.

A write that the disk refuses is reported when the disk equals the catalogue in memory again: never while the outcome is
unknown.  So is a write that met an unexpected exception, for its rows may be on disk or not.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from columnar.errors import ColumnarError
from columnar.master import instructions as do
from columnar.master.catalogue import Catalogue
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

LOOP: Final = "the writes of the master"
AGAIN_S: Final = 0.1  # after an unexpected exception
Report = Callable[[do.Write], None]


class OwnerWrites:
    def __init__(
        self, catalogue: Catalogue, sound: Callable[[], Awaitable[None]], written: Report, not_written: Report
    ) -> None:
        """``sound``: returns when the catalogue's disk equals the catalogue in memory."""
        self._catalogue = catalogue
        self._sound = sound
        self._written = written
        self._not_written = not_written
        self._waiting: deque[do.Write] = deque()  # as many as there were events during one fsync
        self._writer: asyncio.Task[None] | None = None
        self._repair: asyncio.Future[None] | None = None  # the writer waits for it: the disk refused a write
        self._is_stopping = False

    def add(self, write: do.Write) -> None:
        self._waiting.append(write)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.ensure_future(self._write_all())

    async def _write_all(self) -> None:
        while self._waiting:
            write = self._waiting.popleft()
            try:
                await self._catalogue.write_owners(write)
            except ColumnarError as error:
                _log.error("owners of %d regions are not written: %s", len(write.owners), error.text)
                await self._repaired()
                self._report(self._not_written, write)
            except Exception as fault:  # noqa: BLE001 - the queued writes continue
                FAULTS.met(LOOP, fault)
                await self._repaired()
                self._report(self._not_written, write)
            else:
                self._report(self._written, write)

    async def _repaired(self) -> None:
        if not self._is_stopping:
            self._repair = asyncio.ensure_future(self._sound())
            await asyncio.wait([self._repair])  # or ``stop`` has cancelled it

    def _report(self, report: Report, write: do.Write) -> None:
        try:
            report(write)
        except Exception as fault:  # noqa: BLE001 - regions wait for it
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self._report, report, write)

    def stop(self) -> None:
        """A disk that refuses writes is not waited for any more."""
        self._is_stopping = True
        if self._repair is not None:
            self._repair.cancel()

    async def close(self) -> None:
        """Wait until the write under way has finished."""
        if self._writer is not None:
            await asyncio.wait([self._writer])

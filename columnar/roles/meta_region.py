"""The only region of the catalogue, which repairs itself after its disk has failed.

    sound --a write or an fsync fails--> unsound --every RETRY_S: reopened, written, synced--> sound

After a failed fsync other regions are closed, and opened again from the disk.  This region follows the catalogue in
memory, as the whole process does: the catalogue in memory has not applied the change, but the disk may have.  Therefore
the disk is restored to the state in memory (``Catalogue.repairs``).  The change was answered with "outcome unknown",
and the restoration undoes it.

Invariant: while the region is unsound, no change is begun, because on top of half a change it could leave half a table.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from columnar.errors import ColumnarError, DamagedData, HostError, ProgramFault
from columnar.master.catalogue import Rows
from columnar.model.mutation import RowMutation
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.region_reads import rows_of
from columnar.regions.region import Region
from columnar.regions.replace.region_copier import copy_open_region
from columnar.runtime.faults import FAULTS, surviving

_log = logging.getLogger(__name__)

LOOP: Final = "the repair of the catalogue"
RETRY_S: Final = 1.0  # the same as for regions whose disk takes no writes
_ADVICE: Final = "; read before you repeat"  # in errors to writers of rows


async def at_once() -> None:
    """Return immediately: the ``until_writable`` of a process that has no other work while its folder stalls."""


@dataclass(frozen=True, slots=True)
class CatalogueTerms:
    """The terms on which a process has the catalogue open."""

    until_writable: Callable[[], Awaitable[None]] = at_once  # returns when a write would not stall the loop
    # Returns when this process leads, as checked after the call.  Raises OutcomeUnknown if it does not lead any more:
    # another leader may have read the catalogue before the write.
    until_leads: Callable[[], Awaitable[None]] = at_once
    generation: int = 0  # of the catalogue's folder


class MetaRegion:
    """The region's rows, and durable writes to them.  Owned by the loop."""

    def __init__(self, open_region: Callable[[], Region], terms: CatalogueTerms | None = None) -> None:
        self._open_region = open_region
        self._terms = terms if terms is not None else CatalogueTerms()
        self._region: Region | None = None
        self._failure = ""  # the reason why the region is unsound
        self._repairing: asyncio.Task[None] | None = None
        self._closing: asyncio.Future[None] | None = None  # the close of a failed store, in a thread
        self._sound = asyncio.Event()
        self._sound.set()
        self.newest_ms = 0  # the highest timestamp read
        self.repairs_wanted: Callable[[Rows], list[RowMutation]] = lambda _found: []  # the catalogue's ``repairs``
        self.on_unsound: Callable[[str], None] = lambda _failure: None  # gets the reason, once until ``on_sound``
        self.on_sound: Callable[[], None] = lambda: None
        self.on_repaired: list[Callable[[], Awaitable[None]]] = []  # after an unknown change was undone

    def open_meta(self) -> None:
        """Open the region; must be called first.  Takes some 6 ms.  Raises HostError, DamagedData."""
        self._region = self._open_region()

    @property
    def region(self) -> Region:
        """The open region.  Raises HostError while the region is unsound."""
        if self._failure or self._region is None:
            raise HostError(
                "no table can be made, changed or dropped until the disk takes writes of the catalogue, which is tried "
                f"every second: {self._failure}"
            )
        return self._region

    def read_all(self) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        assert self._region is not None, "read when it was opened"
        return self._rows_of(self._region)

    def _rows_of(self, region: Region) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        for row, cells in rows_of(region):
            self.newest_ms = max(self.newest_ms, *(timestamp for _, _, timestamp in cells))
            yield row, {column: value for column, value, _ in cells}

    async def write_rows(self, mutations: list[RowMutation]) -> None:
        """Write the rows and wait for the fsync.  Raises OutcomeUnknown if it failed, or if another process leads."""
        await self._terms.until_writable()
        region = self.region
        try:
            applied = await retry_until_ready(lambda: region.apply_many(mutations))
        except (HostError, DamagedData) as error:
            self._failed(error)
            raise
        except ColumnarError:
            raise
        except Exception as fault:  # the repair undoes its partial writes on disk
            FAULTS.met(LOOP, fault)
            self._failed(ProgramFault(fault))
            raise
        assert applied.durable is not None, "the catalogue is always synced"
        applied.durable.add_done_callback(self._synced)
        await asyncio.shield(applied.durable)
        await self._terms.until_leads()

    def _synced(self, durable: asyncio.Future[None]) -> None:
        failure = durable.exception()
        if failure is not None:
            self._failed(failure)

    def _failed(self, failure: BaseException) -> None:
        if not self._failure:
            self._sound.clear()
            self._failure = f"the catalogue was not synced ({failure})"
            _log.critical(
                "%s. The tables are served; none can be made, changed or dropped until the disk takes writes again",
                self._failure,
            )
            self._repairing = asyncio.ensure_future(self._repair())
            self.on_unsound(str(failure).removesuffix(_ADVICE))

    async def _repair(self) -> None:
        while self._failure:
            with surviving(LOOP):
                await self._close_broken()
            await asyncio.sleep(RETRY_S)
            with surviving(LOOP), suppress(ColumnarError):  # after a failure the region stays unsound
                self._region = region = self._open_region()
                await self._written_anew(region)
                self._failure = ""
        self._sound.set()
        with surviving(LOOP):
            self.on_sound()
        _log.warning("the catalogue is whole: tables can be made, changed and dropped again")
        for repaired in self.on_repaired:
            try:
                await repaired()
            except ColumnarError as error:  # the other callbacks still have changes to undo
                _log.error("the catalogue is whole, but what waited for that goes on later: %s", error.text)
            except Exception as fault:  # noqa: BLE001 - as above
                FAULTS.met(LOOP, fault)

    async def _written_anew(self, region: Region) -> None:
        mutations = self.repairs_wanted(self._rows_of(region))
        applied = await retry_until_ready(lambda: region.apply_many(mutations))
        assert applied.durable is not None, "the catalogue is always synced"
        await asyncio.shield(applied.durable)

    async def sound(self) -> None:
        """Wait until the disk equals the catalogue in memory, when a change of unknown outcome is undone."""
        await self._sound.wait()

    async def copy(self, path: str) -> None:
        """Copy the region's present state on disk to ``path``."""
        await copy_open_region(self.region, path)

    async def _close_broken(self) -> None:
        """Close the broken store in a thread, because the engine may need a second."""
        region, self._region = self._region, None
        if region is not None:
            region.leave()
            self._closing = asyncio.get_running_loop().run_in_executor(None, region.store.close)
            await asyncio.shield(self._closing)

    async def close(self, quiesce: Callable[[Region], Awaitable[None]]) -> None:
        """Close the region.  ``quiesce`` returns when none of its writes waits for an fsync."""
        if self._repairing is not None:
            self._repairing.cancel()
            with suppress(asyncio.CancelledError):
                await self._repairing
        if self._closing is not None:
            await self._closing
        if self._region is not None:
            await quiesce(self._region)  # a repair's fsync may be under way
            self._region.close()

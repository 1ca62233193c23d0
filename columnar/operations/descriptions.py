"""Descriptions of tables and regions by their names, with the state of each region; upkeep of regions.

Owned by the loop.  Only the sizes of closed regions are read from the disk by a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from columnar.cluster.row_forms import RegionState
from columnar.errors import IllegalArgument, TableNotFound, abbreviate
from columnar.model.region_info import RegionInfo, write_fault_text
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.api import StoreClosed
from columnar.storage.durable_files import size_of


class Others(Protocol):
    """The regions of other servers; a standalone has none (``operations.distributed_calls``)."""

    def tend(self, regions: Sequence[RegionInfo], work: str) -> Awaitable[None]: ...

    def states(self, tables: Sequence[str]) -> Awaitable[tuple[dict[RegionInfo, RegionState], list[str]]]:
        """Return the states of open regions from their servers, and the servers that did not answer in time."""


class Descriptions:
    def __init__(self, server: RegionServer) -> None:
        self.others: Others | None = None
        self._server = server
        self._tables = server.tables

    def connect_others(self, others: Others) -> None:
        self.others = others

    # --- tables ------------------------------------------------------------------------------------

    def find(self, name: bytes | None) -> ServedTable | None:
        return self._tables.find(name)

    def known(self, name: bytes | None) -> ServedTable:
        """Return the table, enabled or not.

        Raises TableNotFound, or IllegalArgument if ``name`` cannot be a table's name.
        """
        return self._tables.known(name)

    def find_meant(self, name: bytes | None) -> ServedTable | None:
        """Return the table as ``find`` does, by a name from a client, which may be an alias."""
        return self._tables.meant(name)

    def meant(self, name: bytes | None) -> ServedTable:
        """Return the table as ``known`` does, by a name from a client, which may be an alias."""
        return self._tables.meant_known(name)

    def all(self) -> list[ServedTable]:
        """Return all tables, sorted by name."""
        return self._tables.all()

    def of_users(self) -> list[ServedTable]:
        return [served for served in self._tables.all() if not served.schema.is_system]

    def names_of_users(self) -> dict[bytes, bool]:
        """Return the names by which clients may name tables, aliases among them, and whether each is enabled."""
        return {name: served.enabled for name, served in self._tables.names() if not served.schema.is_system}

    def faults(self) -> tuple[str, ...]:
        """Return one line about the regions of this server that cannot be written, or none."""
        found = self._server.read_only.write_faults()
        return (write_fault_text(len(found), found[0].info, found[0].why),) if found else ()

    def unwritable_count(self) -> int:
        return len(self._server.read_only.write_faults())

    def write_fault(self, info: RegionInfo) -> str:
        """Return why a region of this server cannot be written; an empty text if it can."""
        return next((fault.why for fault in self._server.read_only.write_faults() if fault.info == info), "")

    # --- regions -----------------------------------------------------------------------------------

    def region_named(self, name: bytes) -> tuple[ServedTable, RegionInfo]:
        """Return the region with this full or encoded name, and its table.  Raises TableNotFound if there is none."""
        for served in self._tables.all():
            for info in served.regions:
                if name in (info.name, info.encoded.encode()):
                    return served, info
        raise TableNotFound(f"{abbreviate(name)}; neither a table nor a region has this name")

    def regions_named(self, name: bytes | None) -> list[tuple[ServedTable, RegionInfo]]:
        """Return the regions of the table ``name``, or the one region ``name`` (observed row 31).

        Raises TableNotFound if neither exists.
        """
        served = self._tables.find(name)
        if served is not None:
            return [(served, info) for info in served.regions]
        return [self.region_named(name or b"")]

    def given_region(self, name: bytes | None) -> RegionInfo:
        """Return the region that a caller named, as ``region_named``; raises IllegalArgument if ``name`` is empty."""
        if not name:
            raise IllegalArgument("say which region, by its name or its encoded name")
        return self.region_named(name)[1]

    def open_count(self) -> int:
        return self._server.open_count()

    def states_of(self, tables: Iterable[ServedTable]) -> list[RegionState]:
        """Return the states of all regions of the tables, in order; takes some 20 microseconds for each open region."""
        opened = {region.info.region_id: region for region in self._server.all_open()}
        states = []
        for served in tables:
            for info in served.regions:
                folder, region = self._server.folder_of(info), opened.get(info.region_id)
                if region is None or not region.is_open:
                    states.append(RegionState(info, folder))
                    continue
                log, size_bytes = region.log.counts, region.store.files.size_bytes()
                states.append(
                    RegionState(
                        info, folder, True, region.reads, region.writes, log.records, log.size_bytes, size_bytes
                    )
                )
        return states

    async def with_sizes(self, tables: Iterable[ServedTable]) -> list[RegionState]:
        """Return ``states_of`` with the sizes of closed regions, too; in a cluster the owners report their regions."""
        return (await self.everywhere(list(tables)))[0]

    async def everywhere(self, tables: list[ServedTable]) -> tuple[list[RegionState], list[str]]:
        """Return ``with_sizes``, and the servers that did not answer in time, whose regions are reported as closed."""
        states, silent = self.states_of(tables), list[str]()
        if self.others is not None:
            said, silent = await self.others.states([served.schema.name for served in tables])
            states = [said.get(state.info, state) for state in states]
        return await self._sized(states), silent

    async def _sized(self, states: list[RegionState]) -> list[RegionState]:
        """Add the sizes of closed regions, which takes a thread some 50 microseconds for each."""
        closed = [state.folder for state in states if not state.is_open]
        if not closed:
            return states
        sizes = dict(zip(closed, await asyncio.get_running_loop().run_in_executor(None, _sizes, closed), strict=True))
        return [state if state.is_open else replace(state, size_bytes=sizes[state.folder]) for state in states]

    async def largest_region(self, served: ServedTable) -> RegionInfo:
        return max(await self.with_sizes([served]), key=lambda state: state.size_bytes).info


def _sizes(folders: list[str]) -> list[int]:
    return [size_of(folder) for folder in folders]


# --- upkeep ------------------------------------------------------------------------------------------


FLUSH: Final = "flush"
COMPACT: Final = "compact"
MAJOR_COMPACT: Final = "major_compact"


class Upkeep:
    """Flushes and compacts on request, a table's regions one after the other, or one region.

    Each method returns when the work is done; a region that was split, merged or dropped meanwhile is skipped.
    """

    def __init__(self, server: RegionServer, descriptions: Descriptions) -> None:
        self._server = server
        self._descriptions = descriptions
        self.others: Others | None = None

    def connect_others(self, others: Others) -> None:
        self.others = others

    async def flush(self, name: bytes | None) -> None:
        """Flush the open regions; closed regions have no memtable.  Raises errors of ``Descriptions.regions_named``."""
        await self._each(name, FLUSH)

    async def compact(self, name: bytes | None) -> None:
        await self._each(name, COMPACT)

    async def major_compact(self, name: bytes | None) -> None:
        """Compact all files of the regions, which removes surplus versions, expired cells and old delete markers."""
        await self._each(name, MAJOR_COMPACT)

    async def _each(self, name: bytes | None, work: str) -> None:
        regions = [info for _, info in self._descriptions.regions_named(name)]
        if self.others is not None:
            await self.others.tend(regions, work)
            return
        for info in regions:
            await self.tend(info, work)

    async def tend(self, info: RegionInfo, work: str) -> None:
        """Do ``work`` on a region of this server.

        Raises RegionNotLocal, or IllegalArgument for work that this version does not know.
        """
        upkeep = self._server.upkeep
        work_methods = {FLUSH: Region.flush, COMPACT: upkeep.compact, MAJOR_COMPACT: upkeep.major_compact}
        done: Callable[[Region], Awaitable[None]] | None = work_methods.get(work)
        if done is None:
            raise IllegalArgument(f"a region cannot '{work}'")
        while work != FLUSH or self._server.is_open(info) or not self._server.owns(info):
            # Work on earlier regions took time: the table may be disabled or dropped by now.
            current = self._descriptions.find(info.table.encode())
            if current is None or not current.enabled or info not in current.regions:
                break
            try:
                await done(await self._server.opened(current, info))
                break
            except StoreClosed:  # the region was closed meanwhile: open it again if it still exists
                continue

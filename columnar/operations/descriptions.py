"""Descriptions of tables and regions, by their names, with the state of each region; upkeep of regions.

Owned by the loop, but for the sizes of closed regions, which a thread reads from the disk.
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
        """Open regions, as the servers say that have them, and the servers that did not answer in time."""


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
        """Enabled or not.  TableNotFound; IllegalArgument for what can be no table's name."""
        return self._tables.known(name)

    def find_meant(self, name: bytes | None) -> ServedTable | None:
        """As ``find``, of a name that a client gave: it may be an alias."""
        return self._tables.meant(name)

    def meant(self, name: bytes | None) -> ServedTable:
        """As ``known``, of such a name."""
        return self._tables.meant_known(name)

    def all(self) -> list[ServedTable]:
        """By name, ascending."""
        return self._tables.all()

    def of_users(self) -> list[ServedTable]:
        return [served for served in self._tables.all() if not served.schema.is_system]

    def names_of_users(self) -> dict[bytes, bool]:
        """Return the names by which clients may name tables, aliases among them, and whether each is enabled."""
        return {name: served.enabled for name, served in self._tables.names() if not served.schema.is_system}

    def faults(self) -> tuple[str, ...]:
        """Return one line about the regions of this server that cannot be written."""
        found = self._server.read_only.write_faults()
        return (write_fault_text(len(found), found[0].info, found[0].why),) if found else ()

    def unwritable_count(self) -> int:
        return len(self._server.read_only.write_faults())

    def write_fault(self, info: RegionInfo) -> str:
        """Return why a region of this server cannot be written; empty: it can."""
        return next((fault.why for fault in self._server.read_only.write_faults() if fault.info == info), "")

    # --- regions -----------------------------------------------------------------------------------

    def region_named(self, name: bytes) -> tuple[ServedTable, RegionInfo]:
        """By its full name or its encoded one.  TableNotFound."""
        for served in self._tables.all():
            for info in served.regions:
                if name in (info.name, info.encoded.encode()):
                    return served, info
        raise TableNotFound(f"{abbreviate(name)}; neither a table nor a region has this name")

    def regions_named(self, name: bytes | None) -> list[tuple[ServedTable, RegionInfo]]:
        """The regions of a table, or the one region (observed row 31).  TableNotFound."""
        served = self._tables.find(name)
        if served is not None:
            return [(served, info) for info in served.regions]
        return [self.region_named(name or b"")]

    def given_region(self, name: bytes | None) -> RegionInfo:
        """As ``region_named``; IllegalArgument where there is no name."""
        if not name:
            raise IllegalArgument("say which region, by its name or its encoded name")
        return self.region_named(name)[1]

    def open_count(self) -> int:
        return self._server.open_count()

    def states_of(self, tables: Iterable[ServedTable]) -> list[RegionState]:
        """All regions of these tables, in order; some 20 microseconds for each open one."""
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
        """As ``states_of``, with the sizes of closed regions; of a cluster's regions as their owners say."""
        return (await self.everywhere(list(tables)))[0]

    async def everywhere(self, tables: list[ServedTable]) -> tuple[list[RegionState], list[str]]:
        """As ``with_sizes``, and the servers that did not answer in time: their regions are said to be closed."""
        states, silent = self.states_of(tables), list[str]()
        if self.others is not None:
            said, silent = await self.others.states([served.schema.name for served in tables])
            states = [said.get(state.info, state) for state in states]
        return await self._sized(states), silent

    async def _sized(self, states: list[RegionState]) -> list[RegionState]:
        """With the sizes of closed regions: some 50 microseconds in a thread for each."""
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
    """Flushes and compactions on request, of a table's regions one after the other, or of one region.

    Each returns when it is done; a region that was split, merged or dropped meanwhile is passed over.
    """

    def __init__(self, server: RegionServer, descriptions: Descriptions) -> None:
        self._server = server
        self._descriptions = descriptions
        self.others: Others | None = None

    def connect_others(self, others: Others) -> None:
        self.others = others

    async def flush(self, name: bytes | None) -> None:
        """Flush the open regions; closed ones have no memtable.  Errors as of ``Descriptions.regions_named``."""
        await self._each(name, FLUSH)

    async def compact(self, name: bytes | None) -> None:
        await self._each(name, COMPACT)

    async def major_compact(self, name: bytes | None) -> None:
        """Really major: surplus versions, expired cells and old markers are gone."""
        await self._each(name, MAJOR_COMPACT)

    async def _each(self, name: bytes | None, work: str) -> None:
        regions = [info for _, info in self._descriptions.regions_named(name)]
        if self.others is not None:
            await self.others.tend(regions, work)
            return
        for info in regions:
            await self.tend(info, work)

    async def tend(self, info: RegionInfo, work: str) -> None:
        """Work on a region of this server.  RegionNotLocal; IllegalArgument: a newer version knows such work."""
        upkeep = self._server.upkeep
        work_methods = {FLUSH: Region.flush, COMPACT: upkeep.compact, MAJOR_COMPACT: upkeep.major_compact}
        done: Callable[[Region], Awaitable[None]] | None = work_methods.get(work)
        if done is None:
            raise IllegalArgument(f"a region cannot '{work}'")
        while work != FLUSH or self._server.is_open(info) or not self._server.owns(info):
            # The regions before took their time: the table may be disabled or dropped by now.
            current = self._descriptions.find(info.table.encode())
            if current is None or not current.enabled or info not in current.regions:
                break
            try:
                await done(await self._server.opened(current, info))
                break
            except StoreClosed:  # it was closed meanwhile: open it again, if it is still there
                continue

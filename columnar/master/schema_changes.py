"""Create, enable, disable, drop: one change at a time, each committed by one write of the catalogue.

The order of steps makes each change repeatable after a crash at any instruction: a table exists
from the moment its rows are in the catalogue; its regions are announced there before they have
folders, and have folders before they are the table's, so that one without was lost; folders of a
dropped table are named in the catalogue until they are gone.

Invariant: where nobody knows whether rows or families of a table go, it is not served until that is known
(``catalogue_mended``, or a restart): what is written meanwhile could go with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from typing import Protocol

from columnar.errors import (
    ColumnarError,
    IllegalArgument,
    NamespaceNotFound,
    OutcomeUnknown,
    TableExists,
    TableNotDisabled,
    TableNotEnabled,
    TableNotFound,
    shown,
)
from columnar.limits import ROW_KEY_BYTES
from columnar.master.catalogue import Catalogue
from columnar.model.region_info import RegionInfo
from columnar.model.schema import (
    SYSTEM_NAMESPACE,
    Family,
    Table,
    checked_table,
    checked_table_name,
    make_table,
    namespace_of,
    table_name_text,
)

_log = logging.getLogger(__name__)


class RegionHost(Protocol):
    """Whoever serves regions: here the server in the same process, in a cluster every server."""

    def install(self, table: Table, enabled: bool, regions: list[RegionInfo]) -> None:
        """Serve the table (again), from now on in this state."""

    async def close_table(self, name: str) -> None:
        """Return when no region of the table is open any more."""

    async def close_regions(self, infos: list[RegionInfo]) -> None:
        """Return when none of these regions, which no table has any more, is open."""

    def remove(self, name: str) -> None: ...

    def make_regions(self, infos: list[RegionInfo]) -> None:
        """Called in a thread: return when each has its folder, after a power cut too.  HostError."""

    def destroy_region(self, info: RegionInfo) -> None: ...

    async def table_dropping(self, name: str) -> None:
        """Say and settle what becomes of the table's triggers; after it they are gone."""


class SchemaChanges:
    def __init__(self, catalogue: Catalogue, host: RegionHost) -> None:
        self._catalogue = catalogue
        self._host = host
        self._one_at_a_time = asyncio.Lock()
        self._unsure: list[str] = []  # tables out of service until ``catalogue_mended``

    @property
    def lock(self) -> asyncio.Lock:
        """Held by every change of the catalogue, wherever it is made."""
        return self._one_at_a_time

    def start(self) -> None:
        """Serve every table of the catalogue; finish what a crash left of dropped ones."""
        for name in sorted(self._catalogue.tables):
            entry = self._catalogue.tables[name]
            self._host.install(entry.schema, entry.enabled, entry.regions)

    async def finish_drops(self) -> None:
        for info in list(self._catalogue.dropped):
            _log.info("removing what is left of region %s of %s", info.encoded, info.table)
            self._host.destroy_region(info)
            await self._catalogue.forget_dropped([info])

    async def create(
        self,
        name: bytes,
        families: list[Family],
        attributes: Mapping[str, str] | None = None,
        splits: list[bytes] | None = None,
        *,
        system: bool = False,
    ) -> None:
        """TableExists, IllegalArgument, NamespaceNotFound; else the table serves when this returns."""
        text = checked_table_name(name)
        table = checked_table(make_table(text, families, attributes))
        starts = starts_of(splits or [])
        async with self._one_at_a_time:
            self.check_namespace(namespace_of(text), system=system)
            if text in self._catalogue.tables:
                raise TableExists(text)
            async with self.announced(text, ranges_from(starts)) as regions:
                await asyncio.to_thread(self._host.make_regions, regions)
            await self._catalogue.adopt(table, regions)
            self._host.install(table, True, regions)
        _log.info("table %s created with %d families in %d regions", text, len(table.families), len(starts))

    def check_namespace(self, namespace: str, *, system: bool = False) -> None:
        """NamespaceNotFound, where no table of a user (or of the system) may be."""
        if namespace == SYSTEM_NAMESPACE and not system:
            raise NamespaceNotFound(f"{namespace} is the system's own; make the table in another")
        if namespace not in self._catalogue.namespaces:
            raise NamespaceNotFound(f"{namespace}; make it first (columnar namespace create {namespace})")

    async def enable(self, name: bytes) -> None:
        async with self._one_at_a_time:
            text = self._known(name)
            entry = self._catalogue.tables[text]
            if entry.enabled:
                raise TableNotDisabled(text)
            await self._catalogue.set_enabled(text, True)
            self._host.install(entry.schema, True, entry.regions)

    async def disable(self, name: bytes) -> None:
        """When this returns no request reads or writes the table any more."""
        async with self._one_at_a_time:
            text = self._known(name)
            entry = self._catalogue.tables[text]
            if not entry.enabled:
                raise TableNotEnabled(text)
            if entry.schema.is_system:
                raise IllegalArgument(f"{text} is a table of the system and stays enabled")
            await self._catalogue.set_enabled(text, False)
            self._host.install(entry.schema, False, entry.regions)
            await self._host.close_table(text)

    async def drop(self, name: bytes) -> None:
        async with self._one_at_a_time:
            text = self._known(name)
            if self._catalogue.tables[text].enabled:
                raise TableNotDisabled(text)
            await self._host.table_dropping(text)
            regions = await self._catalogue.drop(text)
            self._host.remove(text)
            for info in regions:
                self._host.destroy_region(info)
            await self._catalogue.forget_dropped(regions)
        _log.info("table %s dropped with its %d regions", text, len(regions))

    @asynccontextmanager
    async def announced(self, table: str, ranges: list[tuple[bytes, bytes]]) -> AsyncIterator[list[RegionInfo]]:
        """Regions to be, whose folders are made within; where that fails they go.  Then ``Catalogue.adopt`` them."""
        regions = await self._catalogue.reserve(table, ranges)
        try:
            yield regions
        except (OSError, ColumnarError):
            await self._forget(regions)
            raise

    async def _forget(self, regions: list[RegionInfo]) -> None:
        try:
            for info in regions:
                await asyncio.to_thread(self._host.destroy_region, info)
            await self._catalogue.forget_dropped(regions)
        except ColumnarError as error:
            _log.error("what was begun of %d regions goes at the next start: %s", len(regions), error.text)

    @contextmanager
    def losing(self, name: str) -> Iterator[None]:
        """Around the catalogue's write of a change that takes rows from a table, where it is there already."""
        try:
            yield
        except OutcomeUnknown:
            entry = self._catalogue.tables.get(name)
            if entry is not None:
                _log.error("table %s is not served until it is known what became of its change", name)
                self._unsure.append(name)
                self._host.install(entry.schema, False, entry.regions)
            raise

    def catalogue_mended(self) -> None:
        """What it was told last, of unknown outcome, was taken back: tables are served as they were."""
        unsure, self._unsure = self._unsure, []
        for name in unsure:
            entry = self._catalogue.tables[name]
            self._host.install(entry.schema, entry.enabled, entry.regions)

    def _known(self, name: bytes | None) -> str:
        name = name or b""
        text = table_name_text(name)
        if text not in self._catalogue.tables:
            raise TableNotFound(shown(name))
        return text


def ranges_from(starts: list[bytes]) -> list[tuple[bytes, bytes]]:
    """(start, end) of each: it ends where the next one begins, the last never."""
    return list(pairwise([*starts, b""]))


def starts_of(splits: list[bytes]) -> list[bytes]:
    """Start keys of the regions that the split points make."""
    if any(not split or len(split) > ROW_KEY_BYTES for split in splits):
        raise IllegalArgument(f"a split point has 1 to {ROW_KEY_BYTES} bytes")
    if len(set(splits)) != len(splits):
        raise IllegalArgument("split points must differ from each other")
    return [b"", *sorted(splits)]

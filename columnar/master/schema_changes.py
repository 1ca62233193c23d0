"""Create, enable, disable, drop: one change at a time, each committed by one write of the catalogue.

The order of steps makes each change repeatable after a crash at any instruction: a table exists
from the moment its rows are in the catalogue; its regions are announced there before they have
folders, and have folders before they are the table's, so that one without was lost; folders of a
dropped table are named in the catalogue until they are gone.

Invariant: if it is unknown whether rows or families of a table are removed, the table is not served until that is known
(``catalogue_repaired``, or a restart): rows written meanwhile could be removed with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise

from columnar.errors import (
    ColumnarError,
    IllegalArgument,
    NamespaceNotFound,
    NotAllowed,
    OutcomeUnknown,
    TableExists,
    TableNotDisabled,
    TableNotEnabled,
    TableNotFound,
    abbreviate,
)
from columnar.limits import ROW_KEY_BYTES
from columnar.master.catalogue import Catalogue, TableEntry
from columnar.master.trigger_changes import TriggerChanges
from columnar.model import region_messages as messages
from columnar.model.derivations import ViewSet
from columnar.model.inert_attributes import MOST_REGIONS, MOST_TABLES, bound
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Peer
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
from columnar.storage.region_folders import RegionFolders

_log = logging.getLogger(__name__)


class SchemaChanges:
    def __init__(self, catalogue: Catalogue, owner: Peer, folders: RegionFolders, triggers: TriggerChanges) -> None:
        self._catalogue = catalogue
        self._owner = owner
        self._folders = folders
        self.triggers = triggers
        self._one_at_a_time = asyncio.Lock()
        self._unsure: list[str] = []  # tables out of service until ``catalogue_repaired``

    @property
    def lock(self) -> asyncio.Lock:
        """Return the lock that is held by every change of the catalogue, in any module."""
        return self._one_at_a_time

    async def start(self) -> None:
        """Have every table of the catalogue served."""
        for name in sorted(self._catalogue.tables):
            await self.publish(self._catalogue.tables[name])

    async def publish(self, entry: TableEntry, *, is_served: bool = True) -> None:
        """Return when the table is served as the catalogue says; not ``is_served``: as a disabled one."""
        is_enabled = entry.enabled and is_served
        await self._owner.request_peer(messages.Publish(entry.schema, is_enabled, tuple(entry.regions)))

    async def finish_drops(self) -> None:
        """Remove what a crash left of drops."""
        regions = list(self._catalogue.dropped)
        for info in regions:
            _log.info("removing what is left of region %s of %s", info.encoded, info.table)
        await self._remove(regions)

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
        table = checked_table(make_table(checked_table_name(name), families, attributes))
        async with self._one_at_a_time:
            await self.make(table, starts_of(splits or []), system=system)

    async def make(self, table: Table, starts: list[bytes], views: ViewSet | None = None, *, system: bool) -> None:
        """Make a table, under ``lock``.  ``views``: the views from now on, if the table is a view's.  TableExists."""
        text = table.name
        self.check_free(text, system=system)
        check_regions(self._catalogue, text, len(starts))
        async with self.announced(text, ranges_from(starts)) as regions:
            await self.make_folders(regions)
        await self._catalogue.adopt(table, regions, *([] if views is None else [views]))
        await self.publish(self._catalogue.tables[text])
        _log.info("table %s created with %d families in %d regions", text, len(table.families), len(starts))

    def check_free(self, text: str, *, system: bool = False) -> None:
        """TableExists, also where readers of a view see another table by the name; NamespaceNotFound, NotAllowed."""
        self.check_namespace(namespace_of(text), system=system)
        if text in self._catalogue.tables or self._catalogue.derivations.views.swap_of(text) is not None:
            raise TableExists(text)
        check_table(self._catalogue, namespace_of(text))

    def check_namespace(self, namespace: str, *, system: bool = False) -> None:
        """NamespaceNotFound, where no table of a user (or of the system) may be."""
        if namespace == SYSTEM_NAMESPACE and not system:
            raise NamespaceNotFound(f"{namespace} is the system's own; make the table in another")
        if namespace not in self._catalogue.namespaces.names:
            raise NamespaceNotFound(f"{namespace}; make it first (columnar namespace create {namespace})")

    async def enable(self, name: bytes) -> None:
        async with self._one_at_a_time:
            text = self._known(name)
            entry = self._catalogue.tables[text]
            if entry.enabled:
                raise TableNotDisabled(text)
            await self._catalogue.set_enabled(text, True)
            await self.publish(entry)

    async def disable(self, name: bytes) -> None:
        """Disable the table; no request reads or writes it any more when this returns."""
        async with self._one_at_a_time:
            text = self._known(name)
            entry = self._catalogue.tables[text]
            if not entry.enabled:
                raise TableNotEnabled(text)
            if entry.schema.is_system:
                raise IllegalArgument(f"{text} is a table of the system and stays enabled")
            check_not_kept(entry.schema, "disabled")
            await self._catalogue.set_enabled(text, False)
            await self.publish(entry)
            await self._owner.request_peer(messages.CloseTable(text))

    async def drop(self, name: bytes, *, disable: bool = False) -> None:
        """Drop a table with its triggers.  With ``disable`` also an enabled one, which stays enabled if refused."""
        async with self.triggers.lock, self._one_at_a_time:
            text = self._known(name)
            entry = self._catalogue.tables[text]
            check_not_kept(entry.schema, "dropped")
            if disable and entry.schema.is_system:
                raise IllegalArgument(f"{text} is a table of the system and stays")
            if entry.enabled and not disable:
                raise TableNotDisabled(text)
            self.check_no_reader(text)
            await self.forget(text)

    async def forget(self, text: str, views: ViewSet | None = None) -> None:
        """Drop the table with its triggers.  Under the locks of triggers and catalogue.

        ``views``: the views from now on, if one is dropped with the table; its owners stop maintaining it.
        """
        gone, triggers = self.triggers.watchers(text), self._catalogue.derivations.triggers
        async with self.losing(text):
            left = triggers.without([one.name for one in gone])
            regions = await self._catalogue.drop(text, left, *([] if views is None else [views]))
        await self.triggers.say_undelivered(text, gone)
        if views is not None:
            await self._owner.request_peer(messages.PublishViews(views))
        await self._owner.request_peer(messages.Withdraw(text))
        await self.triggers.publish()
        await self._remove(regions)
        _log.info("table %s dropped with its %d regions", text, len(regions))

    def check_no_reader(self, table: str) -> None:
        """NotAllowed: a view reads it."""
        readers = self._catalogue.derivations.views.readers(table)
        if readers:
            view = readers[0].name
            raise NotAllowed(
                f"{table} is not dropped: view {view} follows it; drop the view first (columnar view drop {view})"
            )

    @asynccontextmanager
    async def announced(self, table: str, ranges: list[tuple[bytes, bytes]]) -> AsyncIterator[list[RegionInfo]]:
        """Regions to be, whose folders are made within; where that fails they go.  Then ``Catalogue.adopt`` them."""
        regions = await self._catalogue.reserve(table, ranges)
        try:
            yield regions
        except (OSError, ColumnarError):
            await self._forget(regions)
            raise

    async def make_folders(self, regions: Sequence[RegionInfo]) -> None:
        """Make the regions' folders durably, also over a power cut.  HostError."""
        await asyncio.to_thread(self._folders.make_beside_others, [info.encoded for info in regions])

    async def close_dropped(self, regions: list[RegionInfo]) -> None:
        """Regions that no table has any more: closed, removed with their folders, forgotten."""
        await self._owner.request_peer(messages.CloseRegions(tuple(regions)))
        await self._remove(regions)

    async def _remove(self, regions: list[RegionInfo]) -> None:
        """Remove regions that no server has open: their folders, in a thread as files may be large, then their rows."""
        for info in regions:
            await asyncio.to_thread(self._folders.destroy, info.encoded)
        await self._catalogue.forget_dropped(regions)

    async def _forget(self, regions: list[RegionInfo]) -> None:
        try:
            await self._remove(regions)
        except ColumnarError as error:
            _log.error("what was begun of %d regions goes at the next start: %s", len(regions), error.text)

    @asynccontextmanager
    async def losing(self, name: str) -> AsyncIterator[None]:
        """Surround the catalogue's write of a change that removes rows from an existing table."""
        try:
            yield
        except OutcomeUnknown:
            entry = self._catalogue.tables.get(name)
            if entry is not None:
                _log.error("table %s is not served until it is known what became of its change", name)
                self._unsure.append(name)
                await self.publish(entry, is_served=False)
            raise

    async def catalogue_repaired(self) -> None:
        """Serve tables as they were, after the catalogue's last change, of unknown outcome, is undone."""
        async with self._one_at_a_time:  # none of them is dropped meanwhile
            unsure, self._unsure = self._unsure, []
            for name in unsure:
                if name in self._catalogue.tables:
                    await self.publish(self._catalogue.tables[name])

    def _known(self, name: bytes | None) -> str:
        name = name or b""
        text = table_name_text(name)
        if text not in self._catalogue.tables:
            raise TableNotFound(abbreviate(name))
        return text


def check_not_kept(table: Table, what: str) -> None:
    """NotAllowed: the table is a view, and changes with its sources alone."""
    if table.kept_by:
        raise NotAllowed(
            f"{table.name} is a view and is not {what} as a table: change its sources, or drop it with "
            f"columnar view drop {table.kept_by}"
        )


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


def check_table(catalogue: Catalogue, namespace: str) -> None:
    """NotAllowed: the namespace has all the tables that it takes."""
    _check(catalogue, namespace, 1, MOST_TABLES)


def check_regions(catalogue: Catalogue, table: str, more: int) -> None:
    """Raise NotAllowed if the table's namespace does not take ``more`` regions."""
    if more > 0:
        _check(catalogue, namespace_of(table), more, MOST_REGIONS)


def _check(catalogue: Catalogue, namespace: str, more: int, key: str) -> None:
    most = bound(catalogue.namespaces.configurations.get(namespace, {}), key)
    if most is None:
        return
    entries = [one for name, one in catalogue.tables.items() if namespace_of(name) == namespace]
    count = len(entries) if key == MOST_TABLES else sum(len(one.regions) for one in entries)
    if count + more > most:
        what = "tables" if key == MOST_TABLES else "regions"
        raise NotAllowed(
            f"namespace {namespace} has {count} {what}, and takes {most} ({key}): drop some, or raise it with "
            f"columnar namespace alter {namespace} {key}={count + more}"
        )

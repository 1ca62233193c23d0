"""Creation, enabling, disabling and drops of tables: one change at a time, committed by one write of the catalogue.

The order of steps makes each change repeatable after a crash at any instruction.  A table exists from the moment its
rows are in the catalogue.  The catalogue announces its regions before their folders are made, and the folders are made
before the table has the regions; so if a table's region has no folder, the folder was lost.  The catalogue names the
folders of a dropped table until they are removed.

Invariant: if it is unknown whether rows or families of a table are removed, the table is not served until that is known
(``catalogue_repaired``, or a restart): rows written meanwhile could be removed too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
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
from columnar.master.feed_changes import FeedChanges
from columnar.master.trigger_changes import TriggerChanges
from columnar.model import region_messages as messages
from columnar.model.derivations import ViewSet
from columnar.model.inert_attributes import MOST_REGIONS, MOST_TABLES, bound
from columnar.model.lease import LEASES_TABLE
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Peer
from columnar.model.rights import RightsRecord, with_creator
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
        self.feeds = FeedChanges(catalogue, owner, triggers)
        self._one_at_a_time = asyncio.Lock()
        self._published_rights: RightsRecord | None = None
        self.follow_rights: Callable[[RightsRecord], object] = lambda _record: None  # called with each published record
        self._unsure: list[str] = []  # tables out of service until ``catalogue_repaired``

    @property
    def lock(self) -> asyncio.Lock:
        """Return the lock that is held by every change of the catalogue, in any module."""
        return self._one_at_a_time

    async def publish_rights(self) -> None:
        """Publish users and rights if they have changed; return when they are in force on every server."""
        record = self._catalogue.rights.record
        if record is not self._published_rights:
            self.follow_rights(record)
            await self._owner.request_peer(messages.PublishRights(*record.as_tuples()))
            self._published_rights = record

    async def start(self) -> None:
        """Publish users and rights, then every table of the catalogue; clients may change tables meanwhile."""
        async with self._one_at_a_time:
            await self.publish_rights()
        for name in sorted(self._catalogue.tables):
            async with self._one_at_a_time:
                entry = self._catalogue.tables.get(name)
                if entry is not None:
                    await self.publish(entry)

    async def publish(self, entry: TableEntry, *, is_served: bool = True) -> None:
        """Publish the table as the catalogue has it, or as disabled unless ``is_served``; return when owners follow."""
        is_enabled = entry.enabled and is_served
        await self._owner.request_peer(messages.Publish(entry.schema, is_enabled, tuple(entry.regions)))

    async def finish_drops(self) -> None:
        """Remove the dropped regions that a crash left, with their folders."""
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
        creator: str = "",
    ) -> None:
        """Create a table, which serves when this returns.  ``creator``: a user who gets all rights on it.

        Raises TableExists, IllegalArgument, NamespaceNotFound, or NotAllowed over a bound of the namespace.
        """
        table = checked_table(make_table(checked_table_name(name), families, attributes))
        if system and table.name == LEASES_TABLE:
            table = replace(table, kept_by=table.name)  # a client that wrote it could give a token again
        starts = starts_of(splits or [])
        check_groups_whole(table, starts)
        async with self._one_at_a_time:
            await self.make(table, starts, system=system, creator=creator)

    async def make(
        self, table: Table, starts: list[bytes], views: ViewSet | None = None, *, system: bool, creator: str = ""
    ) -> None:
        """Make a table; the caller holds ``lock``.  Raises TableExists.

        ``views``: the new set of views, if the table is a view's.
        """
        text = table.name
        self.check_free(text, system=system)
        check_regions(self._catalogue, text, len(starts))
        with_creator(self._catalogue.rights.record, creator, text)  # refused before anything is made
        async with self.announced(text, ranges_from(starts)) as regions:
            await self.make_folders(regions)
        await self._catalogue.adopt(table, regions, *([] if views is None else [views]), creator=creator)
        await self.publish_rights()
        await self.publish(self._catalogue.tables[text])
        _log.info("table %s created with %d families in %d regions", text, len(table.families), len(starts))

    def check_free(self, text: str, *, system: bool = False) -> None:
        """Raise TableExists if a table has the name, or if readers of a view see a different table by the name.

        Raises NamespaceNotFound, and NotAllowed if the namespace is full.
        """
        self.check_namespace(namespace_of(text), system=system)
        if text in self._catalogue.tables or self._catalogue.derivations.views.swap_of(text) is not None:
            raise TableExists(text)
        check_table(self._catalogue, namespace_of(text))

    def check_namespace(self, namespace: str, *, system: bool = False) -> None:
        """Raise NamespaceNotFound if the namespace is missing, or is the system's own without ``system``."""
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
        """Disable the table; once this returns, no request reads or writes it."""
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
        """Drop a table with its triggers.

        ``disable``: drop an enabled table too; if the drop is refused, the table stays enabled.
        """
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
        """Drop the table with its triggers.  The caller holds the locks of triggers and catalogue.

        ``views``: the new set of views, if a view is dropped with the table; owners of regions stop maintaining the
        view.
        """
        gone, triggers = self.triggers.watchers(text), self._catalogue.derivations.triggers
        async with self.losing(text):
            left = triggers.without([one.name for one in gone])
            regions = await self._catalogue.drop(text, left, *([] if views is None else [views]))
        await self.triggers.say_undelivered(text, gone)
        if views is not None:
            await self._owner.request_peer(messages.PublishViews(views))
        await self._owner.request_peer(messages.Withdraw(text))
        await self.publish_rights()
        await self.triggers.publish()
        await self._remove(regions)
        _log.info("table %s dropped with its %d regions", text, len(regions))

    def check_no_reader(self, table: str) -> None:
        """Raise NotAllowed if a view or a feed reads the table."""
        feeds = self._catalogue.derivations.feeds.readers(table)
        if feeds:
            feed = feeds[0].name
            raise NotAllowed(
                f"{table} is not dropped: feed {feed} follows it; drop the feed first (columnar feed drop {feed})"
            )
        readers = self._catalogue.derivations.views.readers(table)
        if readers:
            view = readers[0].name
            raise NotAllowed(
                f"{table} is not dropped: view {view} follows it; drop the view first (columnar view drop {view})"
            )

    @asynccontextmanager
    async def announced(self, table: str, ranges: list[tuple[bytes, bytes]]) -> AsyncIterator[list[RegionInfo]]:
        """Reserve regions, whose folders the body makes; if the body fails, regions and folders are removed.

        After the body the caller lets ``Catalogue.adopt`` give the regions to the table.
        """
        regions = await self._catalogue.reserve(table, ranges)
        try:
            yield regions
        except (OSError, ColumnarError):
            await self._forget(regions)
            raise

    async def make_folders(self, regions: Sequence[RegionInfo]) -> None:
        """Make the regions' folders so that they survive a power cut.  Raises HostError."""
        await asyncio.to_thread(self._folders.make_beside_others, [info.encoded for info in regions])

    async def close_dropped(self, regions: list[RegionInfo]) -> None:
        """Close regions that no table has any more, remove their folders, and forget them."""
        await self._owner.request_peer(messages.CloseRegions(tuple(regions)))
        await self._remove(regions)

    async def _remove(self, regions: list[RegionInfo]) -> None:
        """Remove regions that no server has open: first folders, in a thread as files may be large, then rows."""
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
        """Surround the catalogue's write of a change that removes rows or families from an existing table.

        If the outcome of the write is unknown, the table is not served until ``catalogue_repaired``.
        """
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
        """Serve the tables that ``losing`` withdrew.  Called after the change of unknown outcome is undone on disk."""
        async with self._one_at_a_time:  # no such table is dropped meanwhile
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
    """Raise NotAllowed if the table is a view: only changes of its sources change it."""
    if table.kept_by:
        raise NotAllowed(
            f"{table.name} is a view and is not {what} as a table: change its sources, or drop it with "
            f"columnar view drop {table.kept_by}"
        )


def ranges_from(starts: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return (start, end) of each region: a region ends where the next begins, and the last has no end."""
    return list(pairwise([*starts, b""]))


def starts_of(splits: list[bytes]) -> list[bytes]:
    """Return the start keys of the regions that the split points make.  Raises IllegalArgument."""
    if any(not split or len(split) > ROW_KEY_BYTES for split in splits):
        raise IllegalArgument(f"a split point has 1 to {ROW_KEY_BYTES} bytes")
    if len(set(splits)) != len(splits):
        raise IllegalArgument("split points must differ from each other")
    return [b"", *sorted(splits)]


def check_groups_whole(table: Table, starts: Iterable[bytes]) -> None:
    """Raise IllegalArgument if a region that begins at one of ``starts`` would cut a group of rows (ROW_GROUP)."""
    groups = table.row_groups
    cut = groups.cut_by(starts) if groups is not None else None
    if groups is not None and cut is not None:
        group = abbreviate(groups.group_of(cut))
        raise IllegalArgument(
            f"a region of {table.name} would begin at {abbreviate(cut)}, within the group {group}, and "
            f"ROW_GROUP={groups} keeps a group in one region; let it begin at {group}"
        )


def check_table(catalogue: Catalogue, namespace: str) -> None:
    """Raise NotAllowed if the namespace takes no additional table."""
    _check(catalogue, namespace, 1, MOST_TABLES)


def check_regions(catalogue: Catalogue, table: str, more: int) -> None:
    """Raise NotAllowed if the table's namespace does not take ``more`` additional regions."""
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

"""Changes of a table's schema, truncation, and changes of namespaces: each is one atomic write of the catalogue.

Regions follow the catalogue after the write.  If a crash comes in between, they follow at their next opening
(``columnar.regions.spaces``), and the former rows of a truncated table are removed at the next start, like
the rows of a dropped table.

Triggers, views and logs limit what is allowed, so that a derived table equals what recomputing it gives:
    * a family that a trigger follows is not dropped, and the attributes that make its cells vanish or return by
      themselves (TTL, MIN_VERSIONS) are not changed unless the trigger allows that: no trigger would be called for
      these cells;
    * the same holds for a family that a view reads; a source of a view is not truncated, and the view's own table is
      not changed at all: its rows follow from its sources;
    * a table with a trigger, with CHANGE_LOG or with DELETE_MARKERS is not truncated: its rows are
      deleted one by one instead (``columnar.operations.row_deletes``), and these deletes are logged like all others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext

from columnar.errors import (
    IllegalArgument,
    NamespaceExists,
    NamespaceNotFound,
    NotAllowed,
    TableNotFound,
    abbreviate,
)
from columnar.master.catalogue import BUILT_IN_NAMESPACES, Catalogue, TableEntry
from columnar.master.schema_changes import SchemaChanges, check_not_kept, ranges_from
from columnar.model import region_messages as messages
from columnar.model.attributes import TableChange, altered, expiry_changes
from columnar.model.inert_attributes import checked_configuration
from columnar.model.region_messages import Peer
from columnar.model.rights import without_namespace
from columnar.model.schema import Table, checked_namespace, namespace_of, table_name_text

_log = logging.getLogger(__name__)


class Alterations:
    def __init__(self, catalogue: Catalogue, owner: Peer, changes: SchemaChanges) -> None:
        self._catalogue = catalogue
        self._owner = owner
        self._changes = changes
        self._triggers = changes.triggers
        self._lock = changes.lock

    # --- tables ------------------------------------------------------------------------------------

    async def alter(self, name: bytes, change: TableChange) -> None:
        """Change the table's schema atomically; its regions serve meanwhile, and have the new schema at the end."""
        async with self._triggers.lock, self._lock:
            entry = self._of_user(name, "changed")
            before, after = entry.schema, altered(entry.schema, change)
            self._check_watched(before, after, change)
            self._check_read(before, after, change)
            _check_groups(entry, after)
            if after == before:
                return
            async with self._changes.losing(after.name) if change.drop else nullcontext():
                entry = await self._catalogue.alter(after)
                await self._changes.publish_rights()
            await self._changes.publish(entry)
            await self._owner.request_peer(messages.FollowSchema(after.name))
        _log.info("table %s altered", after.name)

    def _check_watched(self, before: Table, after: Table, change: TableChange) -> None:
        expiring = expiry_changes(before, after)
        for watcher in self._triggers.watchers(before.name):
            trigger, families = watcher.name, watcher.registration.families_read
            gone = sorted(families & change.drop)
            if gone:
                raise NotAllowed(
                    f"family {gone[0]} of {before.name} is not dropped: trigger {trigger} reads it; "
                    f"remove it first (columnar trigger remove {trigger})"
                )
            unheard = sorted(families & set(expiring))
            if unheard and not watcher.registration.allow_expiry:
                raise NotAllowed(
                    f"TTL and MIN_VERSIONS of family {unheard[0]} of {before.name} stay: cells would vanish or come "
                    f"back without trigger {trigger} hearing of it; remove it, alter, add it --from beginning, or let "
                    "it allow that (--allow-expiry)"
                )

    def _check_read(self, before: Table, after: Table, change: TableChange) -> None:
        expiring = set(expiry_changes(before, after))
        for view in self._catalogue.derivations.views.readers(before.name):
            lost = sorted(view.families_of(before.name) & (change.drop | expiring))
            if lost:
                what = "is not dropped" if lost[0] in change.drop else "keeps its TTL and MIN_VERSIONS"
                raise NotAllowed(
                    f"family {lost[0]} of {before.name} {what}: view {view.name} reads it, and would not hear of cells "
                    f"that vanish; drop the view first (columnar view drop {view.name}), alter, add it again"
                )

    async def truncate(self, name: bytes, preserve_splits: bool, *, enable: bool = False) -> int:
        """Remove all rows in one atomic step; return the number of regions that the table had.

        ``enable``: the same step enables a disabled table, as HBase's truncation does.
        """
        async with self._triggers.lock, self._lock:
            entry = self._of_user(name, "truncated")
            self._check_unheard(entry.schema)
            table, starts = entry.schema, [info.start for info in entry.regions] if preserve_splits else [b""]
            async with self._changes.announced(table.name, ranges_from(starts)) as regions:
                await self._changes.make_folders(regions)
                await self._owner.request_peer(messages.PrepareRegions(table, tuple(regions)))
            # Rows written until the new regions serve count as written before the truncation: they are removed too.
            async with self._changes.losing(table.name):
                old = await self._catalogue.adopt(table, regions, enable=enable)
            await self._changes.publish(self._catalogue.tables[table.name])
            await self._changes.close_dropped(old)
        _log.info("table %s truncated: %d regions in place of %d", table.name, len(starts), len(old))
        return len(old)

    def _check_unheard(self, table: Table) -> None:
        instead = f"delete its rows instead, which is logged (columnar delete-rows {table.name} --all)"
        watchers = self._triggers.watchers(table.name)
        if watchers:
            name = watchers[0].name
            raise NotAllowed(f"{table.name} is not truncated: trigger {name} would not hear of it; {instead}")
        readers = self._catalogue.derivations.views.readers(table.name)
        if readers:
            view = readers[0].name
            raise NotAllowed(
                f"{table.name} is not truncated: view {view} would not hear of it; {instead}, "
                f"or drop the view, truncate and add it again (columnar view drop {view})"
            )
        feeds = self._catalogue.derivations.feeds.readers(table.name)
        if feeds:
            raise NotAllowed(f"{table.name} is not truncated: feed {feeds[0].name} would not hear of it; {instead}")
        if table.change_log_s is not None:
            raise NotAllowed(f"{table.name} is not truncated: CHANGE_LOG keeps its changes for readers; {instead}")
        if table.takes_sends:
            raise NotAllowed(f"{table.name} is not truncated: messages of its changes may be on their way; {instead}")
        if table.delete_markers_ms is not None:
            raise NotAllowed(
                f"{table.name} is not truncated: DELETE_MARKERS guards it against late writes of triggers; {instead}"
            )

    def _of_user(self, name: bytes, what: str) -> TableEntry:
        text = table_name_text(name)
        entry = self._catalogue.tables.get(text)
        if entry is None:
            raise TableNotFound(abbreviate(name))
        if entry.schema.is_system:
            raise IllegalArgument(f"{text} is a table of the system and is not {what}")
        check_not_kept(entry.schema, what)
        return entry

    # --- namespaces --------------------------------------------------------------------------------

    async def create_namespace(self, name: bytes, configuration: Mapping[str, str] | None = None) -> None:
        text, checked = checked_namespace(name), checked_configuration(configuration or {})
        async with self._lock:
            if text in self._catalogue.namespaces.names:
                raise NamespaceExists(f"{text}; there is nothing to make")
            await self._catalogue.namespaces.create_namespace(text, checked)

    async def alter_namespace(self, name: bytes, change: Mapping[str, str], *, replace: bool = False) -> None:
        """Change the configuration: an empty value removes its key, ``replace`` all keys missing in ``change``."""
        async with self._lock:
            text = self._known(name)
            before = {} if replace else self._catalogue.namespaces.configurations.get(text, {})
            checked = checked_configuration({key: value for key, value in {**before, **change}.items() if value})
            if checked != self._catalogue.namespaces.configurations.get(text, {}):
                await self._catalogue.namespaces.configure_namespace(text, checked)

    def configuration_of(self, name: bytes) -> dict[str, str]:
        """Return the configuration of the namespace.  Raises NamespaceNotFound."""
        return dict(self._catalogue.namespaces.configurations.get(self._known(name), {}))

    async def drop_namespace(self, name: bytes) -> None:
        """Drop an empty namespace."""
        async with self._lock:
            text = self._known(name)
            if text in BUILT_IN_NAMESPACES:
                raise NotAllowed(f"namespace {text} is always there and cannot be dropped")
            tables = self.tables_of(name)
            if tables:
                raise NotAllowed(
                    f"only empty namespaces can be dropped; {text} has {len(tables)} tables, drop {tables[0]} first"
                )
            rights = self._catalogue.rights
            granted = without_namespace(rights.record, text)
            await self._catalogue.namespaces.drop_namespace(text, *rights.changes_to(granted))
            rights.take_written(granted)
            await self._changes.publish_rights()

    def namespaces(self) -> list[str]:
        return sorted(self._catalogue.namespaces.names)

    def tables_of(self, name: bytes) -> list[str]:
        """Return the sorted names of the namespace's tables.  Raises NamespaceNotFound."""
        namespace = self._known(name)
        return sorted(table for table in self._catalogue.tables if namespace_of(table) == namespace)

    def _known(self, name: bytes) -> str:
        text = name.decode(errors="replace")
        if text not in self._catalogue.namespaces.names:
            raise NamespaceNotFound(f"{abbreviate(name)}; columnar namespace list shows those there are")
        return text


def _check_groups(entry: TableEntry, after: Table) -> None:
    """Raise NotAllowed if a region of the table begins within a group of rows of the altered table (ROW_GROUP)."""
    groups = after.row_groups
    if groups is None or groups == entry.schema.row_groups:
        return
    cut = groups.cut_by(info.start for info in entry.regions)
    if cut is not None:
        raise NotAllowed(
            f"{after.name} does not get ROW_GROUP={groups}: a region begins at {abbreviate(cut)}, within the group "
            f"{abbreviate(groups.group_of(cut))}; merge it with the region before it first (columnar merge)"
        )

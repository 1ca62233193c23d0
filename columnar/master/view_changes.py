"""Add and drop views (``derivation_changes``), and notice when they are built.

    add     one write adds the table, and the view as ADDING -> every owner serves the table, logs changes for the view
            and marks where the view begins -> BUILDING on disk -> owners follow, and backfill the view with the
            existing rows -> an owner reports that a region is backfilled (``Backfilled``) -> all owners are asked for
            their backfilled regions -> LIVE on disk if every region of every source is backfilled
    drop    one write removes the view and its table -> owners stop maintaining the view -> its regions are removed

Invariant: LIVE is written when every region of every source, as the catalogue has the regions then, is backfilled.  A
view that is called off is removed with its table.

Knows nothing of definitions.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from columnar.errors import ColumnarError, IllegalArgument, TableExists, TableNotEnabled
from columnar.master.catalogue import Catalogue
from columnar.master.derivation_changes import DerivationChanges
from columnar.master.schema_changes import SchemaChanges
from columnar.model import region_messages as messages
from columnar.model.attributes import OWN_COMPRESSION
from columnar.model.derivations import KeptView, Trigger, ViewSet
from columnar.model.flow_graph import Flow, Graph
from columnar.model.region_messages import Peer
from columnar.model.schema import Table
from columnar.model.view_generations import base_of, role_of
from columnar.runtime.faults import FAULTS

_log = logging.getLogger(__name__)

CHECK_RETRY_S: Final = 0.1  # after an unexpected exception


class Declaring(NamedTuple):
    """Definitions as the master needs them (``views.declaring``)."""

    declared: Callable[[bytes, ViewSet, Mapping[str, Table], Graph], KeptView]
    table_of: Callable[[KeptView], Table]


class ViewChanges(DerivationChanges[ViewSet]):
    def __init__(
        self,
        catalogue: Catalogue,
        owner: Peer,
        changes: SchemaChanges,
        declaring: Callable[[], Declaring],
        before_first: Callable[[], Awaitable[None]],
    ) -> None:
        """``declaring``: imports ``views.declaring``, which a store without views does not need.

        ``before_first``: called before the data folder gets a view.
        """
        super().__init__(catalogue, owner, changes.triggers.lock)
        self._changes = changes
        self._declaring = declaring
        self._before_first = before_first
        self._build_check_task: asyncio.Task[None] | None = None
        self._is_due = False  # something may have been built since the last check
        changes.triggers.checks.add_flows(self._flows)

    @property
    def derivations(self) -> ViewSet:
        return self._catalogue.derivations.views

    def publication(self) -> messages.PublishViews:
        return messages.PublishViews(self.derivations)

    async def forget_derivations(self, names: Sequence[str]) -> None:
        for name in names:
            async with self._changes.lock:
                await self._drop(name)

    async def start(self) -> None:
        await super().start()
        self._schedule_build_check()

    def watchers(self, table: str) -> list[Trigger]:
        """Return the triggers of a table; they stay while ``lock`` is held."""
        return self._changes.triggers.watchers(table)

    def _flows(self) -> list[Flow]:
        return [one.flow for one in self.derivations.all]

    # --- changes -----------------------------------------------------------------------------------

    async def add_view(self, definition: bytes, *, table: str = "") -> None:
        """Add a view; if the very same view exists, nothing changes.

        Returns when the view is on disk and every later change is logged for it.  ``table``: the table of the
        generation, if it is not the first (``view_generations``).
        """
        declaring = self._declaring()
        async with self.lock:
            await self.settle()
            tables = {name: entry.schema for name, entry in self._catalogue.tables.items()}
            view = declaring.declared(definition, self.derivations, tables, self._changes.triggers.checks.graph())
            existing = self.derivations.find(self.derivations.live_table(view.name))
            if table:
                if existing is None or base_of(table) != view.name:
                    raise IllegalArgument(f"{table} is no generation of view {view.name}")
                view = replace(view, name=table)
            elif existing is not None:
                if existing.definition == view.definition and not existing.unusable_reason:
                    return
                raise IllegalArgument(
                    f"view {view.name} exists with another definition; drop it first (columnar view drop {view.name})"
                )
            self._check_sources(view)
            await self._before_first()
            await self._add(view, declaring.table_of(view))

    def _check_sources(self, view: KeptView) -> None:
        if view.name in self._catalogue.tables:
            raise TableExists(view.name)
        for read in view.reads:
            entry = self._catalogue.tables[read.table]
            if not entry.enabled:
                raise TableNotEnabled(read.table)

    async def _add(self, view: KeptView, table: Table) -> None:
        async with self._changes.lock:
            await self._changes.make(table, [b""], self.derivations.adding(view), system=False)
        await self.take_up([view.name], "building")
        self._schedule_build_check()
        _log.info("view %s is being built", view.name)

    async def drop(self, name: str) -> None:
        """Drop a view with all its generations; or one generation, if ``name`` is its table and no reader sees it."""
        async with self.lock:
            await self.settle()
            tables = [one.name for one in self.derivations.generations(name)]
            if not tables:
                if self.derivations.find(name) is None:
                    self.derivations.known(name)  # raises
                if role_of(name, self.derivations.swaps) == "live":
                    raise IllegalArgument(
                        f"readers of {base_of(name)} see {name}; drop the view, or swap another one in"
                    )
                tables = [name]
            live = self.derivations.live_table(name)
            async with self._changes.lock:
                for table in tables:
                    self._changes.check_no_reader(table)
                for table in sorted(tables, key=lambda one: one != live):  # the alias is removed with the live table
                    await self._drop(table)
        _log.info("view %s dropped", name)

    async def drop_table(self, table: str) -> None:
        """Drop a generation that no reader sees any more."""
        async with self.lock, self._changes.lock:
            if self.derivations.find(table) is not None and role_of(table, self.derivations.swaps) != "live":
                self.at("dropping")
                await self._drop(table)
                self.at("dropped")

    async def compress_tables(self) -> None:
        """Set the compression of new views on the families of views that an earlier version made.

        The files of a region follow when they are compacted.
        """
        for name in [view.name for view in self.derivations.all]:
            async with self.lock, self._changes.lock:
                entry = self._catalogue.tables.get(name)
                if entry is None or all(family.compression == OWN_COMPRESSION for family in entry.schema.families):
                    continue
                families = tuple(replace(family, compression=OWN_COMPRESSION) for family in entry.schema.families)
                await self._changes.publish(await self._catalogue.alter(replace(entry.schema, families=families)))
                await self._owner.request_peer(messages.FollowSchema(name))
            how = f"columnar compact {name} --major writes its files anew"
            _log.info("view %s is compressed by %s from now on; %s", name, OWN_COMPRESSION, how)

    async def write_views(self, views: ViewSet) -> None:
        """Write this set of views and send it to every owner.  The caller holds the lock."""
        self.at("deciding")
        await self._catalogue.derivations.write_derivations(views)
        self.at("decided")
        await self.publish()
        self.at("told")

    async def _drop(self, name: str) -> None:
        """Drop the view and its table.  The caller holds both locks."""
        without = self.derivations.without([name])
        if name in self._catalogue.tables:
            await self._changes.forget(name, without)
        else:
            await self._catalogue.derivations.write_derivations(without)
            await self.publish()

    async def catalogue_repaired(self) -> None:
        """Call off half-made views and check builds, as the disk takes writes again."""
        await super().catalogue_repaired()
        self._schedule_build_check()

    # --- builds --------------------------------------------------------------------------------------

    async def request_peer(self, _message: messages.Backfilled) -> None:
        """Answer an owner that reports a backfilled region: check builds soon."""
        self._schedule_build_check()

    def _schedule_build_check(self) -> None:
        self._is_due = True
        if self.derivations.building() and (self._build_check_task is None or self._build_check_task.done()):
            self._build_check_task = asyncio.ensure_future(self._run_build_checks())

    async def _run_build_checks(self) -> None:
        while self._is_due:
            self._is_due = False
            try:
                await self.check_view_builds()
            except ColumnarError as error:  # the next backfilled region, or the disk when it works, triggers a check
                _log.warning("how far views are built is asked again later: %s", error.text)
            except Exception as fault:  # noqa: BLE001 - a view that is built would never be live
                FAULTS.met("looks at the builds of views", fault)
                await asyncio.sleep(CHECK_RETRY_S)
                self._is_due = True

    async def check_view_builds(self) -> None:
        """Make a view live when all regions of its sources are backfilled."""
        names = tuple(one.name for one in self.derivations.building())
        backfilled = await self._owner.request_peer(messages.BackfilledRegions(names))
        async with self.lock:
            for view in self.derivations.building():
                if view.name in names and self._is_built(view, frozenset(backfilled.get(view.name, ()))):
                    await self._catalogue.derivations.write_derivations(self.derivations.with_state(view.name, "live"))
                    await self.publish()
                    _log.info("view %s is built", view.name)

    def _is_built(self, view: KeptView, backfilled: frozenset[int]) -> bool:
        entries = [self._catalogue.tables[read.table] for read in view.reads]
        return all(info.region_id in backfilled for entry in entries for info in entry.regions)

    async def close(self) -> None:
        """Begin no more checks."""
        if self._build_check_task is not None:
            self._build_check_task.cancel()
            await asyncio.wait([self._build_check_task])

"""The views of a process, whose modules are loaded when its master first sends a view.

A store without views knows that it has none, and forgets the cursors of dropped views.  Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

from columnar.errors import ColumnarError
from columnar.flows.applier import Applier
from columnar.flows.follower import Kind
from columnar.flows.follower_name import FollowerName
from columnar.flows.governor import Governor
from columnar.flows.hub import Hub
from columnar.model.derivations import VIEW, ViewSet
from columnar.model.flow_graph import Flow
from columnar.model.flow_status import ViewStatus
from columnar.regions.server import RegionServer

if TYPE_CHECKING:
    from columnar.views.view_manager import ViewManager


_log = logging.getLogger(__name__)

GUARDS_S: Final = 5.0  # how long a sweep of guards waits for a lagging view; sweeps repeat (``region_upkeep``)


def view_key(name: str) -> str:
    """Return the key of a view's followers, used between servers (``cluster.peer_requests.WaitForDelivery``)."""
    return FollowerName(VIEW, name).key


def _nobody(_view: str) -> None:
    """Ignore the backfilled view."""


class LocalViews:
    def __init__(self, server: RegionServer, hub: Hub, applier: Applier, governor: Governor) -> None:
        self._server = server
        self._hub = hub
        self._applier = applier
        self._governor = governor
        self._assigned_views: ViewSet | None = None  # None: the master has not sent any yet
        self._manager: ViewManager | None = None
        # (tables, key of the view, seconds): ``cluster_triggers`` with ``saved``.  None if this process has all
        # regions.
        self.wait_saved_in_cluster: Callable[[list[str], str, float], Awaitable[bool]] | None = None
        self.on_backfilled: Callable[[str], None] = _nobody  # a view has all rows of one more local region
        server.upkeep.keep_guards(self.guards_needed_from)
        hub.register(
            Kind(VIEW, True, self._is_removed, flows=self._flows, named=self._named, awaited=self._awaited_tables)
        )

    @property
    def views(self) -> ViewSet:
        return self._assigned_views if self._assigned_views is not None else ViewSet()

    async def follow_views(self, views: ViewSet) -> None:
        """Keep these views from now on (``PublishViews``)."""
        async with self._hub.lock:
            self._assigned_views = views
            self._server.tables.name_also(views.aliases())
            if views.all and self._manager is None:
                from columnar.views.view_manager import ViewManager  # most stores have no views

                self._manager = ViewManager(self._hub, self._applier, self._governor, self._notify_backfilled)
            if self._manager is not None:
                await self._manager.follow_views(views)

    def _notify_backfilled(self, view: str) -> None:
        self.on_backfilled(view)

    def _is_removed(self, name: str, number: int) -> bool:
        return self._assigned_views is not None and self._assigned_views.is_removed(name, number)

    def _flows(self) -> list[Flow]:
        return [one.flow for one in self.views.in_use()]

    def backfilled_regions(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Return for each view the local regions of which it has all rows (``BackfilledRegions``)."""
        manager = self._manager
        return {} if manager is None else {name: manager.backfilled_region_ids(name) for name in names}

    async def guards_needed_from(self, table: str, now_ms: int) -> int | None:
        """Return the time from which on withdrawals may still collide with late writes (``regions.guards.NeededFrom``).

        Returns None if the table is no view.  Returns 0 if all guards are needed: while the view is built or lags.
        """
        served = self._server.tables.named(table)
        if served is None or not served.schema.kept_by:
            return None
        view = self.views.find(served.schema.kept_by)
        if view is None or view.state != "live" or self._manager is None:
            return 0
        try:
            return now_ms if await self._is_saved(view.name) else 0
        except ColumnarError as error:  # a source is disabled, or a disk refuses
            _log.info("guards of view %s stay: %s", view.name, error.text)
            return 0

    async def _is_saved(self, name: str) -> bool:
        """Return whether the view has all changes written so far, and the cursors of all sources say so on disk."""
        tables = self._hub.awaited_tables(FollowerName(VIEW, name))
        if self.wait_saved_in_cluster is not None:
            return await self.wait_saved_in_cluster(tables, view_key(name), GUARDS_S)
        return await self.wait_delivered(name, "", GUARDS_S) and await self._hub.saved(FollowerName(VIEW, name))

    # --- copies ----------------------------------------------------------------------------------------

    def quiesce_views(self) -> None:
        """Quiesce the views while the hub's cursors are paused."""
        if self._manager is not None:
            self._manager.quiesce_views()

    def has_quiesced(self) -> bool:
        return self._manager is None or self._manager.has_quiesced()

    def resume_views(self) -> None:
        if self._manager is not None:
            self._manager.resume_views()

    # --- status and waits ------------------------------------------------------------------------------

    def view_statuses(self) -> tuple[ViewStatus, ...]:
        return () if self._manager is None else self._manager.view_statuses()

    def _named(self, name: str) -> str | None:
        """Return the view's generation with readers, or None.  Raises ViewError if it rests."""
        return self.views.named(self.views.live_table(name))

    def _awaited_tables(self, name: str) -> list[str]:
        """Return the sources of the view.  Raises ViewError."""
        return [read.table for read in self.views.known(name).reads]

    async def wait_delivered(self, name: str, token: str, timeout_s: float) -> bool:
        """Wait until the view has a source's change ``token`` (empty: all written so far).

        Returns False at the timeout.
        """
        return await self._hub.wait_delivered(FollowerName(VIEW, name), token, timeout_s)

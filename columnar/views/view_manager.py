"""The views of one owner of regions: local followers of their sources, as the master assigns views (``local_views``).

Views are a kind of follower: the hub follows their sources (``flows.hub``), the applier writes their tables.
Owned by the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from columnar.errors import ColumnarError
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Follower, Subscription, mark_beginning
from columnar.flows.follower_name import FollowerName
from columnar.flows.governed_follower import FollowerServices
from columnar.flows.governor import Governor
from columnar.flows.hub import Hub
from columnar.model.derivations import VIEW, KeptView, ViewSet
from columnar.model.flow_status import ViewStatus
from columnar.model.view_definition import from_json
from columnar.regions.region import Region
from columnar.regions.write.images import union
from columnar.views.contributions import Rules, rules_of
from columnar.views.follower import MAX_IN_FLIGHT, ViewFollower

_log = logging.getLogger(__name__)

NO_VIEWS: Final = ViewSet()


def follower_name(name: str) -> FollowerName:
    return FollowerName(VIEW, name)


class ViewManager:
    def __init__(self, hub: Hub, applier: Applier, governor: Governor, on_backfilled: Callable[[str], None]) -> None:
        """``on_backfilled`` is called with the name of a view being built when it has all rows of a local region."""
        self._hub = hub
        self._on_backfilled = on_backfilled
        self._applier = applier
        self._services = FollowerServices(
            governor, hub.upkeep.is_intake_paused, hub.listener.step_follower, self._progressed, hub.figures
        )
        self._assigned_views = NO_VIEWS
        self._unreadable: dict[str, str] = {}  # view name -> why it has no follower here
        self._backfilled: dict[tuple[str, int], set[int]] = {}  # by name and number: regions that are backfilled

    # --- notifications of the master -----------------------------------------------------------------

    async def follow_views(self, views: ViewSet) -> None:
        """Keep these views from now on.  Call it under the hub's lock."""
        steps = views.steps_from(self._assigned_views)
        self._assigned_views = views
        for view in steps.gone:
            self._hub.unsubscribe(follower_name(view.name))
            self._backfilled.pop((view.name, view.number), None)
            self._unreadable.pop(view.name, None)
        for view, before in steps.followed:
            if before is None or not before.is_in_use:
                for subscription in self._subscriptions(view):
                    await self._hub.follow(subscription)
        for view in steps.begun:
            for subscription in self._subscriptions(view):
                await self._hub.begin_subscription(subscription)

    def _subscriptions(self, view: KeptView) -> list[Subscription]:
        """Return a subscription to each source.  An unreadable view has none, and its cursors in the logs stay."""
        try:
            rules = rules_of(from_json(view.definition))
        except ColumnarError as error:
            _log.error("view %s is not kept here: %s", view.name, error.text)
            self._unreadable[view.name] = error.text
            return []
        return [self._subscription(view, table, rules) for table in sorted({one.table for one in rules})]

    def _subscription(self, view: KeptView, table: str, rules: Iterable[Rules]) -> Subscription:
        name = follower_name(view.name)
        mine = tuple(one for one in rules if one.table == table)
        images = union(one.images for one in mine)
        return Subscription(
            name,
            view.number,
            table,
            frozenset(images),
            frozenset(),
            partial(self._follower, name, mine),
            images=images,
            prepare=partial(_mark, name, view.number),
            in_order=ViewFollower.in_order,
            open_changes=MAX_IN_FLIGHT,
            lasting=images,
        )

    def _follower(
        self, name: FollowerName, rules: tuple[Rules, ...], region: Region, state: DeliveryState
    ) -> ViewFollower:
        return ViewFollower(name, rules, region, state, self._services, self._applier)

    # --- services for followers ------------------------------------------------------------------------

    def _progressed(self, follower: Follower) -> None:
        view = self._assigned_views.find(follower.name.name)
        if view is not None and follower.is_prepared:
            self._note_backfilled(view, follower.region.info.region_id)
        self._hub.upkeep.note_progress(follower)

    def _note_backfilled(self, view: KeptView, region_id: int) -> None:
        backfilled = self._backfilled.setdefault((view.name, view.number), set())
        if region_id not in backfilled:
            backfilled.add(region_id)
            if view.state == "building":
                self._on_backfilled(view.name)

    # --- copies ----------------------------------------------------------------------------------------

    def quiesce_views(self) -> None:
        """Stop taking changes while cursors are paused; changes that were taken go to the applier."""
        for follower in self._followers():
            follower.pause_intake()

    def has_quiesced(self) -> bool:
        return all(follower.is_quiescent for follower in self._followers())

    def resume_views(self) -> None:
        for follower in self._followers():
            self._hub.listener.step_follower(follower)

    def _followers(self, name: str = "") -> list[ViewFollower]:
        """Return the followers of a view on open regions, or of all views if the name is empty."""
        return [one for one in self._hub.followers.of(follower_name(name)) if isinstance(one, ViewFollower)]

    # --- status ----------------------------------------------------------------------------------------

    def view_statuses(self) -> tuple[ViewStatus, ...]:
        return tuple(self._view_status(view.name) for view in self._assigned_views.all)

    def _view_status(self, name: str) -> ViewStatus:
        found = self._followers(name)
        missing = self._hub.followers.missing(follower_name(name)).values()
        errors = [self._unreadable.get(name, ""), *(one.why for one in missing)]
        errors += [one.state.last_error for one in found if one.state.open_count or not one.is_prepared]
        return ViewStatus(
            name,
            sum(one.lag.changes for one in found),
            max((one.lag.seconds for one in found), default=0.0),
            sum(one.progress.rejected for one in found),
            sum(one.progress.rows for one in found),
            next(filter(None, errors), ""),
        )

    def backfilled_region_ids(self, name: str) -> list[int]:
        """Return the ids of local regions that are backfilled for the view."""
        view = self._assigned_views.find(name)
        if view is None:
            return []
        return sorted(self._backfilled.get((name, view.number), ()))


def _mark(name: FollowerName, number: int, region: Region) -> None:
    """Begin the view's cursor at the present end of the log, unless the region has a cursor of the view.

    A region has no such cursor if no server owned it when the view was added.  The view gets the region's rows as they
    are.  Earlier records have no images for the view.
    """
    if region.log.cursors.cursor(name.key) is None:
        mark_beginning(region, name, number)

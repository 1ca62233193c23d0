"""The hub of followers: which kinds follow which tables of a server, and which data these tables log.

A kind of follower registers once; its registrations subscribe to tables.  A table logs the union of the data that its
subscriptions want.  ``region_followers``, the server's listener, manages followers on open regions; ``log_upkeep`` does
cursors, trimming and backpressure; ``waiting`` does waits.

A subscription begins in two steps, between which its registration becomes durable:

    begin     its table logs, and each region gets a cursor where the follower begins: at once, or when it opens
    follow    it has a follower on each open region

Invariant I1: before a registration is durable, its table logs the changes, and every open region has a cursor where the
follower begins; the first follower begins afterwards.  So every change for a registered follower is in a log.  In a
region without the cursor a follower begins with the whole log.

Kinds know nothing of each other.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from columnar.errors import ColumnarError, RegionNotLocal, TableNotEnabled
from columnar.flows.at_hand import ALL_AT_HAND_BYTES
from columnar.flows.backpressure import LogBounds
from columnar.flows.figures import Figures
from columnar.flows.follower import Kind, Subscription, begin_after, undelivered
from columnar.flows.follower_name import OUTBOX_NAME, FollowerName
from columnar.flows.followers import Followers
from columnar.flows.kinds import Kinds
from columnar.flows.log_upkeep import LogUpkeep
from columnar.flows.region_followers import RegionFollowers
from columnar.flows.region_openings import RegionOpenings
from columnar.flows.subscriptions import Subscriptions
from columnar.flows.waiting import Waits
from columnar.limits import LOG_TAILS_BYTES
from columnar.model.flow_graph import Flow
from columnar.model.flow_status import FlowStatus
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.runtime.background import Background

LOG_IMAGES: Final = "its attribute CHANGE_LOG_IMAGES"  # as a reader of images
_log = logging.getLogger(__name__)


class Hub:
    def __init__(
        self,
        server: RegionServer,
        bounds: LogBounds | None = None,
        tails_bytes: int = LOG_TAILS_BYTES,
        at_hand_bytes: int = ALL_AT_HAND_BYTES,
    ) -> None:
        """Pass the bounds of the tails of change logs and of the changes that followers have at hand, in memory."""
        self._server = server
        self._kinds = kinds = Kinds()
        self._status_sources: list[Callable[[], Iterable[FlowStatus]]] = []  # of flows without followers
        self._subscriptions = subscriptions = Subscriptions()
        self.follow_sends: Callable[[str], Subscription] | None = None  # makes the subscription of a table's outbox
        self.background = Background("background work of followers")
        self.followers = Followers()
        self.figures = Figures()
        self.upkeep = LogUpkeep(self.followers, kinds.promises, bounds or LogBounds())
        self._openings = RegionOpenings(server, subscriptions.is_followed, self.background)
        self.waits = Waits(server, self.followers, subscriptions, self._openings)
        self.listener = RegionFollowers(
            kinds,
            subscriptions,
            self.followers,
            self.upkeep,
            self._openings,
            self.background,
            tails_bytes,
            at_hand_bytes,
        )

    @property
    def lock(self) -> asyncio.Lock:
        """The lock that serializes begins and ends of subscriptions."""
        return self.listener.lock

    # --- life ----------------------------------------------------------------------------------------

    def register(self, kind: Kind) -> None:
        self._kinds.register(kind)

    def flows(self) -> list[Flow]:
        """Return the registrations of all kinds that this server knows, as parts of the flow graph."""
        return self._kinds.flows()

    def add_status_source(self, source: Callable[[], Iterable[FlowStatus]]) -> None:
        """Have ``flow_statuses`` show these flows, too; they follow no log."""
        self._status_sources.append(source)

    def flow_statuses(self) -> list[FlowStatus]:
        """Return the status of each flow on this server, also of idle flows."""
        now_s = time.monotonic()
        followers = [
            flow_status_of(one, *self._kinds.stands(one), self.followers, self.figures, now_s) for one in self.flows()
        ]
        return [*followers, *(status for source in self._status_sources for status in source())]

    def start(self) -> None:
        """Open the regions that may have something to deliver, in the background."""
        self._openings.start(self._subscriptions.tables())

    def stop(self) -> None:
        """Begin no more followers and open no more regions; ``close`` follows when all have stopped."""
        self._openings.stop()
        self.background.close()

    def close(self) -> None:
        """Save all cursors and end all timers."""
        self.listener.close()

    # --- tables --------------------------------------------------------------------------------------

    def table_installed(self, table: str) -> None:
        """Follow the table, which is served from now on; delivery of waiting changes in its logs continues."""
        outbox = self._begin_outbox(table)
        self._apply_policy(table)
        if outbox is not None:
            for region in self._server.open_regions_of(table):
                self.listener.begin_follower(outbox, region)
        self._openings.open_soon(table)

    def _begin_outbox(self, table: str) -> Subscription | None:
        """Return the subscription of the table's outbox if the table takes sends since now.

        No cursor is written: an outbox without one begins with the whole log, which has no sends of an earlier time.
        """
        served = self._server.tables.find(table.encode())
        if self.follow_sends is None or served is None or not served.schema.takes_sends:
            self._subscriptions.remove_one(OUTBOX_NAME, table)  # a dropped table of the name took sends, perhaps
            return None
        if self._subscriptions.is_subscribed(OUTBOX_NAME, table):
            return None
        subscription = self.follow_sends(table)
        self._subscriptions.add_subscription(subscription)
        return subscription

    def schema_followed(self, table: str) -> None:
        """Apply a changed schema to the table's regions: a log that no follower reads any more is removed."""
        if self._server.policy_of(table) is None:
            for region in self._server.open_regions_of(table):
                self.upkeep.save(region)

    def _apply_policy(self, table: str) -> None:
        policy = self._subscriptions.wanted(table)
        served = self._server.tables.find(table.encode())
        if served is not None and served.schema.change_log_s is not None:
            families = frozenset(family.bytes_name for family in served.schema.families)
            policy = replace(policy, families=families, is_whole=True)
            if served.schema.logs_images:
                askers = {**dict.fromkeys(families, LOG_IMAGES), **policy.askers}
                policy = replace(policy, images=dict.fromkeys(families), askers=askers)
        self._server.set_policy(table, policy if policy.families or policy.sends else None)

    async def undelivered(self, table: str, names: Sequence[FollowerName]) -> dict[FollowerName, int]:
        """Count the undelivered changes of a table to be dropped, by follower, and close the table's regions."""
        lags = dict.fromkeys(names, 0)
        served = self._server.tables.find(table.encode())
        if served is None or not lags:
            return lags
        self._server.set_policy(table, None)
        for info in served.regions:
            try:
                region = await self._server.opened(served, info)  # without a policy, so that no follower begins
            except RegionNotLocal:
                continue  # its owner counts
            for name in lags:
                lags[name] += undelivered(region, name)
            await asyncio.sleep(0)
        await self._server.close_table(table)
        return lags

    async def saved(self, name: FollowerName) -> bool:
        """Save the cursors of the subscription's local followers durably; return False if cursors may not move now.

        The cursor of a closed region was saved when the region closed.
        """
        found = self.followers.of(name)
        if self.upkeep.is_saving_paused or any(self.followers.is_paused(one.region.info.region_id) for one in found):
            return False
        await asyncio.gather(*(one.save_durably() for one in found))
        return True

    # --- waits ---------------------------------------------------------------------------------------

    def named(self, name: str) -> list[FollowerName]:
        """Return the registrations, of any kind, that a client means by the name.  Raises if one of them rests."""
        return self._kinds.named(name)

    def awaited_tables(self, name: FollowerName, token: str = "") -> list[str]:
        """Return the tables whose changes the registration gets; an empty name stands for all of its kind.

        A disabled table is left out if none of the changes of ``token`` is of it.  Raises TableNotEnabled if one may
        be, or without a token, and the kind's error if there is no such registration.
        """
        tables = self._kinds.awaited_tables(name)
        if not name.name:
            return tables
        disabled = [table for table in tables if not self._server.tables.known(table.encode()).enabled]
        if disabled:
            written = self.waits.written_tables(token)
            for table in disabled:
                if written is None or table in written:
                    raise TableNotEnabled(table)
        return [table for table in tables if table not in disabled]

    async def wait_delivered(self, name: FollowerName, token: str, timeout_s: float) -> bool:
        """Wait until the changes of ``token`` (empty: all written so far) are delivered; return False on timeout.

        Raises as ``awaited_tables``.
        """
        self.awaited_tables(name, token)
        return await self.waits.wait(name, token, timeout_s)

    def sending_tables(self) -> list[str]:
        """Return the tables that take sends."""
        return [served.schema.name for served in self._server.tables.all() if served.schema.takes_sends]

    # --- subscriptions -------------------------------------------------------------------------------

    async def begin_subscription(self, subscription: Subscription) -> None:
        """Log for the subscription from now on, and write cursors where it begins.

        The caller holds ``lock``, and calls ``follow`` next, or ``unsubscribe`` after an error.  Returns when every
        further change in the local regions is logged (I1).
        """
        self._subscriptions.begin_subscription(subscription)
        self._apply_policy(subscription.table)
        served = self._server.tables.enabled(subscription.table.encode())
        for info in served.regions:
            try:
                region = await self._server.opened(served, info)
            except RegionNotLocal:
                continue  # its owner writes the cursor
            self._kinds.forget_follower(region, subscription.name)
            await asyncio.shield(begin_after(region, subscription.name, subscription.number))

    async def follow(self, subscription: Subscription) -> None:
        """Begin followers of a durable registration: in open regions now, and in other regions when they open.

        The caller holds ``lock``.
        """
        self._subscriptions.add_subscription(subscription)
        self._apply_policy(subscription.table)
        for region in self._server.open_regions_of(subscription.table):
            if region.is_open and region.log_policy is not None:
                self.listener.begin_follower(subscription, region)
                await asyncio.sleep(0)
        self._openings.open_soon(subscription.table)

    async def follow_anew(self, subscription: Subscription) -> None:
        """Restart the followers of a subscription, which may want different data now.

        Each follower begins as in ``follow``: after ``Subscription.prepare``, at its cursor.
        """
        for follower in self.followers.of(subscription.name):
            self.upkeep.save(follower.region)
            self.listener.drop(follower)
        await self.follow(subscription)

    def unsubscribe(self, name: FollowerName) -> None:
        """Drop the followers and cursors of a removed registration; cursors in closed regions when these open."""
        self.figures.forget_follower(name)
        removed = self._subscriptions.remove(name)
        if not removed:
            return
        for follower in self.followers.of(name):
            self.listener.drop(follower)
        for table in [one.table for one in removed]:
            for region in self._server.open_regions_of(table):
                if name.key in region.log.cursors.cursor_names():
                    self._forget(region, name)
            self._apply_policy(table)

    def _forget(self, region: Region, name: FollowerName) -> None:
        try:
            self._kinds.forget_follower(region, name)
        except ColumnarError as error:
            _log.info("%s keeps its place in region %s until it opens: %s", name, region.info.encoded, error.text)
        self.upkeep.save(region)  # the log is shorter now, or ends


def flow_status_of(
    flow: Flow, state: str, dead: int, followers: Followers, figures: Figures, now_s: float
) -> FlowStatus:
    """Return the status of a flow on this server; ``dead`` is the number of its dead letters known here."""
    name = FollowerName(flow.kind, flow.name)
    local, done = followers.of(name), figures.of(name, now_s)
    errors = [*(one.state.last_error for one in local), *(one.why for one in followers.missing(name).values())]
    return FlowStatus(
        kind=flow.kind,
        name=flow.name,
        reads=tuple(map(str, flow.reads)),
        writes=tuple(map(str, flow.writes)),
        seen=tuple(map(str, flow.seen)),
        state=state,
        lag_changes=sum(one.lag.changes for one in local),
        lag_seconds=max((one.lag.seconds for one in local), default=0.0),
        rate_per_s=done.rate_per_s(now_s),
        delivered=done.delivered,
        failed=done.failed,
        parked=sum(one.state.parked_count for one in local),
        dead=dead,
        runs=done.runs.numbers,
        idle_s=done.idle_s(now_s),
        error=next(filter(None, errors), ""),
    )

"""The hub of followers: who follows which tables of a server, and what those tables log.

A kind of follower registers once; its registrations subscribe to tables.  A table logs the union of what its
subscriptions want.  Followers on open regions are ``region_followers``'s, which is the server's listener; cursors,
trimming and backpressure ``log_upkeep``'s, waits ``waiting``'s.

Invariant I1: a subscription's table logs its changes, and every region knows where the follower begins, before the
registration is durable; the first follower comes after.  So there is no moment in which a change of a registered
follower is not in a log.

Kinds are strangers to each other.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from columnar.flows.background import Background
from columnar.flows.backpressure import LogBounds
from columnar.flows.follower import Kind, Subscription, begin_after, undelivered
from columnar.flows.follower_name import FollowerName
from columnar.flows.followers import Followers
from columnar.flows.kinds import Kinds
from columnar.flows.log_upkeep import LogUpkeep
from columnar.flows.region_followers import RegionFollowers
from columnar.flows.region_openings import RegionOpenings
from columnar.flows.subscriptions import Subscriptions
from columnar.flows.waiting import Waits
from columnar.regions.hooks import LogPolicy
from columnar.regions.server import RegionServer


class Hub:
    def __init__(self, server: RegionServer, bounds: LogBounds | None = None) -> None:
        self._server = server
        self._kinds = kinds = Kinds()
        self._subscriptions = subscriptions = Subscriptions()
        self.background = Background()
        self.followers = Followers()
        self.upkeep = LogUpkeep(self.followers, kinds.promises, bounds or LogBounds())
        self._openings = RegionOpenings(server, subscriptions.is_followed, self.background)
        self.waits = Waits(server, self.followers, subscriptions, self._openings)
        self.listener = RegionFollowers(
            kinds, subscriptions, self.followers, self.upkeep, self._openings, self.background
        )

    @property
    def lock(self) -> asyncio.Lock:
        """While it is held nobody begins or ends to follow a table."""
        return self.listener.lock

    # --- life ----------------------------------------------------------------------------------------

    def register(self, kind: Kind) -> None:
        self._kinds.register(kind)

    def load(self, subscriptions: Sequence[Subscription]) -> None:
        """Take the subscriptions of one kind; from now on their tables log.  To be called before the first request."""
        for subscription in subscriptions:
            self._subscriptions.add(subscription)
        for table in {subscription.table for subscription in subscriptions}:
            self._apply_policy(table)

    def start(self) -> None:
        """Open the regions that may have something to deliver, in the background."""
        self._openings.start(self._subscriptions.tables())

    def stop(self) -> None:
        """No follower is begun any more, nor a region opened; ``close`` follows when all have stopped."""
        self._openings.stop()
        self.background.close()

    def close(self) -> None:
        """Cursors are saved."""
        self.listener.close()

    # --- tables --------------------------------------------------------------------------------------

    def table_installed(self, table: str) -> None:
        """Begin to serve the table in this state; delivery of waiting changes in its logs continues."""
        self._apply_policy(table)
        self._openings.open_soon(table)

    def schema_followed(self, table: str) -> None:
        """Its regions serve by another schema: a log that nobody reads any more ends."""
        if self._server.policy_of(table) is None:
            for region in self._server.open_regions_of(table):
                self.upkeep.save(region)

    def _apply_policy(self, table: str) -> None:
        families, before = self._subscriptions.wanted(table)
        served = self._server.tables.find(table.encode())
        if served is not None and served.schema.change_log_s is not None:
            families = frozenset(family.bytes_name for family in served.schema.families)
        self._server.set_policy(table, LogPolicy(families, before) if families else None)

    async def table_dropped(self, table: str, gone: Sequence[FollowerName]) -> dict[FollowerName, int]:
        """How many changes these had still to see, who followed it until now.  Its regions are closed afterwards."""
        self._server.set_policy(table, None)
        lags = dict.fromkeys(gone, 0)
        if lags:
            served = self._server.tables.known(table.encode())
            for info in served.regions:
                region = await self._server.opened(served, info)  # without a policy: nothing is delivered any more
                for name in lags:
                    lags[name] += undelivered(region, name)
                    self._kinds.forget(region, name)
                await asyncio.sleep(0)
            await self._server.close_table(table)
        return lags

    # --- subscriptions -------------------------------------------------------------------------------

    async def subscribe(self, subscription: Subscription, record: Callable[[], Awaitable[None]]) -> None:
        """Follow the table from now on.  ``record`` makes the registration durable.

        The caller holds ``lock``.  Returns when every change is caught (I1).
        """
        table, name = subscription.table, subscription.name
        try:
            with self._subscriptions.beginning(subscription):
                self._apply_policy(table)
                served = self._server.tables.enabled(table.encode())
                for info in served.regions:
                    region = await self._server.opened(served, info)
                    self._kinds.forget(region, name)
                    await asyncio.shield(begin_after(region, name, subscription.number))
                await record()
                self._subscriptions.add(subscription)
        finally:
            self._apply_policy(table)
        await self._open_followers(subscription)

    async def _open_followers(self, subscription: Subscription) -> None:
        """In the open regions at once; in one that was closed meanwhile when it is opened."""
        served = self._server.tables.find(subscription.table.encode())
        if served is None or not served.enabled:
            return
        for info in served.regions:
            self.listener.follow(subscription, await self._server.opened(served, info))
            await asyncio.sleep(0)

    def unsubscribe(self, name: FollowerName) -> None:
        """Its removal is recorded: its followers are dropped, and their cursors in open regions."""
        subscription = self._subscriptions.remove(name)
        for follower in self.followers.of(name):
            self.listener.drop(follower)
            self._kinds.forget(follower.region, name)
            self.upkeep.save(follower.region)  # the log is shorter now, or ends
        self._apply_policy(subscription.table)

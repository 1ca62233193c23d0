"""The queues and topics of a server, made when they are first needed, and the lags of groups of readers.

Most stores have neither, so nothing is imported before.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from columnar.errors import IllegalArgument
from columnar.flows.follower_name import trigger
from columnar.flows.hub import Hub
from columnar.flows.refreshed_statuses import RefreshedStatuses
from columnar.model.flow_status import FlowStatus
from columnar.model.queue_place import QUEUES_TABLE
from columnar.model.send import Send
from columnar.model.topic import TOPICS_TABLE
from columnar.model.trigger_registration import Registration
from columnar.operations.access import TableAccess
from columnar.operations.system_tables import SystemTables
from columnar.regions.server import RegionServer
from columnar.triggers.queue_registrations import QueueRegistrations
from columnar.triggers.trigger_manager import TriggerManager

if TYPE_CHECKING:
    from columnar.cluster.scatter_gather import Owners
    from columnar.flows.follower import Subscription
    from columnar.queues.lease_settling import LeaseSettling
    from columnar.queues.message_delivery import Target
    from columnar.queues.queue_pushes import QueuePushes
    from columnar.queues.served_queues import ServedQueues
    from columnar.roles.outboxes import Outboxes
    from columnar.topics.topic_pushes import TopicPushes


PUSHED_AT_ONCE: Final = 8  # messages of effects: a call has at most 16 MiB


class ServerQueues:
    """Desks, pushes, ends of leases, and served queues."""

    def __init__(self, access: TableAccess, manager: TriggerManager) -> None:
        self.owners: Callable[[], Owners | None] = _no_others  # returns None if this process has all regions
        self._access = access
        self._manager = manager
        self._pushes: QueuePushes | None = None
        self._settling: LeaseSettling | None = None
        registrations: QueueRegistrations = manager.queues
        registrations.make_serving = self._make_served

    def pushes(self) -> QueuePushes:
        if self._pushes is None:
            from columnar.queues.dead_letter_moves import DeadLetterMoves
            from columnar.queues.queue_desks import QueueDesks
            from columnar.queues.queue_pushes import QueuePushes
            from columnar.queues.queue_status import QueueFlows

            desks = QueueDesks(self._access)
            self._pushes = QueuePushes(desks, self._owners)
            desks.move_dead_to(DeadLetterMoves(self._pushes.push).begin_moves)
            self._manager.hub.add_status_source(QueueFlows(desks.usable_desks).flow_statuses)
        return self._pushes

    async def push_sends(self, target: bytes, sends: Sequence[Send]) -> None:
        """Push the messages of an effect to their queue; return when they are on disk.

        Raises IllegalArgument if the queue does not take one of them.
        """
        from columnar.roles.outboxes import queued_message

        if self._access.find(QUEUES_TABLE.encode()) is None:
            raise IllegalArgument("there are no queues yet; columnar queue stats NAME makes their table")
        messages = [queued_message(one.name, one) for one in sends]
        for first in range(0, len(messages), PUSHED_AT_ONCE):
            await self.pushes().push(target.partition(b":")[2], messages[first : first + PUSHED_AT_ONCE])

    def settling(self) -> LeaseSettling:
        if self._settling is None:
            from columnar.queues.lease_settling import LeaseSettling

            self._settling = LeaseSettling(self.pushes().desks, self._owners)
        return self._settling

    def _make_served(self) -> ServedQueues:
        from columnar.queues.served_queues import ServedQueues

        manager = self._manager
        served = ServedQueues(
            self.pushes().desks,
            self.settling(),
            self._target,
            manager.governor,
            manager.hub.figures,
            self._regions_change,
        )
        manager.hub.add_status_source(served.flow_statuses)
        return served

    def _target(self, registration: Registration) -> Target:
        """Return the target of a served queue: its function, or its URL."""
        if not registration.url:
            from columnar.triggers.message_consumer import MessageConsumer

            return MessageConsumer(registration, self._manager.dispatcher)
        from columnar.queues.http_target import HttpTarget

        return HttpTarget(registration, self._manager.hub.figures.of(trigger(registration.name), time.monotonic()))

    def _owners(self) -> Owners | None:
        return self.owners()

    def _regions_change(self) -> asyncio.Future[None] | None:
        owners = self.owners()
        return owners.change() if owners is not None else None


class ServerTopics:
    """The topics of a server, made at their first use: most stores have none."""

    def __init__(self, access: TableAccess, hub: Hub, tables: SystemTables) -> None:
        self._access = access
        self._hub = hub
        self._tables = tables
        self._pushes: TopicPushes | None = None

    def pushes(self, owners: Callable[[], Owners | None]) -> TopicPushes:
        """Return this server's topics; ``owners`` returns None if this process has all regions."""
        if self._pushes is None:
            from columnar.topics.partitions import Partitions
            from columnar.topics.topic_pushes import TopicPushes
            from columnar.topics.topic_status import TopicFlows

            partitions = Partitions(self._access)
            self._pushes = TopicPushes(partitions, self._tables, owners)
            partitions.begin_retention()
            self._hub.add_status_source(TopicFlows(partitions.desks.usable_desks).flow_statuses)
        return self._pushes


class ReaderLags:
    """The lags of groups in topics and in changes of tables, among the flows of a server."""

    def __init__(self, server: RegionServer, hub: Hub, tables: SystemTables) -> None:
        self._server = server
        self._tables = tables
        self._topics = RefreshedStatuses(hub.background, self._has_topics, self._of_topics)
        self._changes = RefreshedStatuses(hub.background, self._has_changes, self._of_changes)

    def flow_statuses(self) -> list[FlowStatus]:
        return [*self._topics.flow_statuses(), *self._changes.flow_statuses()]

    def _has_topics(self) -> bool:
        return bool(self._server.open_regions_of(TOPICS_TABLE))

    def _has_changes(self) -> bool:
        return any(region.table.change_log_s is not None for region in self._server.all_open())

    async def _of_topics(self) -> list[FlowStatus]:
        from columnar.topics.group_lags import GroupLags

        return await GroupLags(self._tables).local_statuses(self._server.open_regions_of(TOPICS_TABLE))

    async def _of_changes(self) -> list[FlowStatus]:
        from columnar.streams.group_lags import local_statuses
        from columnar.streams.group_rows import GroupRows

        regions = [region for region in self._server.all_open() if region.table.change_log_s is not None]
        return await local_statuses(GroupRows(self._tables), regions)


class ServerMessages:
    """The queues and topics of a server, which keep messages for those that read them."""

    def __init__(self, access: TableAccess, manager: TriggerManager) -> None:
        self.queues = ServerQueues(access, manager)
        self.topics = ServerTopics(access, manager.hub, manager.system)
        self._hub = manager.hub
        self._outboxes: Outboxes | None = None
        self._hub.follow_sends = self.follow_sends
        manager.applier.connect_queues(self.queues.push_sends)

    def _topic_pushes(self) -> TopicPushes:
        return self.topics.pushes(lambda: self.queues.owners())

    def follow_sends(self, table: str) -> Subscription:
        """Return the subscription of the outbox of a table that takes sends."""
        if self._outboxes is None:
            from columnar.roles.outboxes import Outboxes

            self._outboxes = Outboxes(self._hub, self.queues.pushes, self._topic_pushes)
        return self._outboxes.subscription(table)


def _no_others() -> Owners | None:
    return None

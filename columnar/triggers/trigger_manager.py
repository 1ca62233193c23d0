"""The triggers of one owner of regions: takes the master's notifications, and gives status to the wire and the pages.

The master has the registrations (``master.trigger_changes``) and sends all of them to every owner after each change.
Triggers are one kind of follower: the hub follows their tables (``flows.hub``), the dispatcher has their functions
called (``dispatcher``).  Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from columnar.errors import RegionNotLocal
from columnar.flows.applier import Applier
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Kind, Subscription
from columnar.flows.follower_name import TRIGGER, trigger
from columnar.flows.governor import Governor
from columnar.flows.hub import Hub
from columnar.model.derivations import Replay, Trigger, Triggers
from columnar.model.flow_graph import Flow, flow_of
from columnar.model.flow_status import TriggerStatus, status_of
from columnar.model.region_messages import NOWHERE
from columnar.model.trigger_registration import Registration
from columnar.operations.system_tables import SystemTables
from columnar.operations.table_operations import TableOperations
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.regions.write.images import union
from columnar.triggers import replaying
from columnar.triggers.consumer import BACKFILL, Consumer
from columnar.triggers.dead_letter_store import DeadLetterStore
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.dispatcher import Dispatcher
from columnar.triggers.effect_places import EffectPlaces
from columnar.triggers.lookup_prefetch import LookupPrefetch
from columnar.triggers.owner_rights import OwnerRights
from columnar.triggers.queue_registrations import QueueRegistrations, of_tables
from columnar.triggers.worker_process import MakeLink, WorkerProcess

if TYPE_CHECKING:
    from columnar.rights.rights_check import RightsHolder
    from columnar.wire.sockets import PrivateSocket

_log = logging.getLogger(__name__)


class TriggerManager:
    def __init__(
        self,
        server: RegionServer,
        hub: Hub,
        modules: tuple[str, ...],
        operations: TableOperations,
        rights: RightsHolder | None = None,
    ) -> None:
        """Workers take functions from ``modules``; ``operations`` writes effects; ``rights`` is None if off."""
        self.hub = hub
        self.governor = Governor()
        self.applier = Applier(operations.access, operations.writes, self.governor, hub.background)
        self._lookup_prefetch = LookupPrefetch(operations.access)
        self._server = server
        self._modules = modules
        self._triggers: Triggers | None = None  # None: the master has not sent any yet
        self.queues = QueueRegistrations()
        self.system = SystemTables(server)
        self.dead_letter_store = DeadLetterStore(server, self.system)
        self.places_of_effects = EffectPlaces(lambda: self.triggers, hub.flows)
        self._owner_rights = OwnerRights(rights)
        self.dispatcher = Dispatcher(
            hub.followers,
            hub.upkeep,
            self.dead_letter_store.add_letter,
            hub.figures,
            self.places_of_effects,
            self._owner_rights,
        )
        marks = (BACKFILL, replaying.REPLAY)
        hub.register(
            Kind(
                TRIGGER,
                True,
                self._is_removed,
                marks,
                self.flows,
                self._stands,
                lambda name: self.triggers.named(name),
                lambda name: self.triggers.awaited_tables(name),
            )
        )

    # --- start and stop ----------------------------------------------------------------------------

    async def load(self) -> None:
        """Count the dead letters.  Call before the first request is served."""
        await self.dead_letter_store.load()

    def start(self, host: str, port: int, private: PrivateSocket | None = None) -> None:
        """Start delivering, as the store listens now; workers connect to ``private``, or if None to the port."""
        self.start_with(lambda listener: WorkerProcess(listener, host, port, self._modules, private))

    def start_with(self, make_link: MakeLink) -> None:
        self.dispatcher.attach(make_link, self.applier, self.governor)
        self.hub.start()
        self.queues.start(self.triggers)

    async def close(self) -> None:
        self.hub.stop()
        await self.dispatcher.close()
        await self.queues.close()
        self.governor.close()
        self.hub.close()

    # --- notifications of the master -----------------------------------------------------------------

    async def follow_triggers(self, triggers: Triggers) -> None:
        """Follow ``triggers`` instead of the previous ones from now on (``PublishTriggers``)."""
        async with self.hub.lock:
            previous, self._triggers = self.triggers, triggers
            self.places_of_effects.follow()
            self._owner_rights.follow()
            steps = self.queues.serve_queues(triggers.steps_from(previous))
            for one in steps.gone:
                self.hub.unsubscribe(trigger(one.name))
                self.dispatcher.forget_trigger(one.name)
            for one, before in steps.followed:
                await self._let_run(one, before)
            for one in steps.begun:
                await self.hub.begin_subscription(self._subscription(one))

    async def _let_run(self, one: Trigger, before: Trigger | None) -> None:
        """Pause or resume the trigger as its state says.  To resume also retries a log that could not be read."""
        if one.state == "paused":
            self.dispatcher.pause(one.name)
        elif self.dispatcher.is_paused(one.name):
            self.dispatcher.resume(one.name)
        if before is None or not before.is_in_use:
            await self.hub.follow(self._subscription(one))
        elif one.replay != before.replay or one.registration != before.registration:
            await self.hub.follow_anew(self._subscription(one))

    def _subscription(self, one: Trigger) -> Subscription:
        registration, families = one.registration, one.registration.family_bytes
        touched_before = registration.before and not registration.images
        scope = registration.scope()
        return Subscription(
            trigger(one.name),
            one.number,
            registration.table,
            families,
            families if touched_before else frozenset(),
            partial(self._consumer, registration, one.replay),
            scope.images,
            None
            if one.replay is None
            else partial(replaying.carry_out, trigger(one.name), one.replay, starts=one.starts),
            lasting={} if registration.allow_expiry else union((scope.touched, scope.images)),
        )

    def _consumer(
        self, registration: Registration, replay: Replay | None, region: Region, state: DeliveryState
    ) -> Consumer:
        repeats_to = replaying.repeats_to(region, trigger(registration.name))
        spawn = self.hub.background.spawn
        from_ms = replay.from_ms if replay is not None else 0
        return Consumer(registration, region, state, self.dispatcher, spawn, self._lookup_prefetch, repeats_to, from_ms)

    def _is_removed(self, name: str, number: int) -> bool:
        return self._triggers is not None and self._triggers.is_removed(name, number)

    async def check_function(self, function: str) -> str | None:
        """Have a worker import the function; return what is wrong with it, or None (``CheckFunction``)."""
        return await self.dispatcher.checks.problem_with(function)

    async def check_source(self, functions: tuple[str, ...]) -> str | None:
        """Have a separate process import the functions from disk; return a problem, or None (``CheckSource``)."""
        return await self.dispatcher.checks.problem_with_source(functions)

    async def reload(self) -> None:
        """Have the workers import changed source (``ReloadFunctions``)."""
        self.dispatcher.trials.proven()
        await self.dispatcher.checks.reload()

    async def undelivered(self, table: str, names: tuple[str, ...]) -> dict[str, int]:
        """Return how many local changes of a table to be dropped each trigger has not received (``Undelivered``)."""
        async with self.hub.lock:
            lags = await self.hub.undelivered(table, [trigger(name) for name in names])
        return {name.name: lag for name, lag in lags.items()}

    async def reach(self, table: str) -> int:
        """Return the time since which all local logs of a table are whole (``LogReach``).

        Returns NOWHERE if no such time is known for one of the logs.  An empty log is whole from now on.
        """
        served, reaches = self._server.tables.enabled(table.encode()), 0
        for info in served.regions:
            try:
                region = await self._server.opened(served, info)
            except RegionNotLocal:
                continue  # its owner answers for it
            if region.table.change_log_s is not None:
                region.log.retention.vouch(region.log.written_to, region.now_ms, region.table.change_log_s)
            reached = region.log.retention.earliest_whole_time()
            reaches = max(reaches, NOWHERE if reached is None else reached)
            await asyncio.sleep(0)
        return reaches

    # --- status ------------------------------------------------------------------------------------

    @property
    def triggers(self) -> Triggers:
        return self._triggers if self._triggers is not None else Triggers()

    def registrations(self) -> list[Registration]:
        return [one.registration for one in self.triggers.in_use()]

    def flows(self) -> list[Flow]:
        """Return the triggers as parts of the flow graph, with the places that their local effects wrote to."""
        return [flow_of(one, self.places_of_effects.seen(one.name)) for one in of_tables(self.registrations())]

    def _stands(self, name: str) -> tuple[str, int]:
        state = "blocked" if self.dispatcher.obstacle(name) else "running"
        return "paused" if self.dispatcher.is_paused(name) else state, self.dead_letter_store.count_of(name)

    def trigger_statuses(self) -> list[TriggerStatus]:
        """Return every trigger as the wire, the page and the metrics show it."""
        unusable = [one for one in self.triggers.all if one.unusable_reason]
        return [*map(self._status, self.registrations()), *map(_unusable, unusable)]

    def _status(self, registration: Registration) -> TriggerStatus:
        if registration.queue:
            return self.queues.status(registration)
        name, now_s = registration.name, time.monotonic()
        state, letters = self._stands(name)
        consumers = self.dispatcher.intake.consumers_of(name)
        missing = self.hub.followers.missing(trigger(name)).values()
        errors = [self.dispatcher.obstacle(name), *(consumer.state.last_error for consumer in consumers)]
        errors += [one.why for one in missing]
        return replace(
            status_of(registration),
            state=state,
            lag_changes=sum(consumer.lag.changes for consumer in consumers),
            lag_seconds=max((consumer.lag.seconds for consumer in consumers), default=0.0),
            parked_rows=sum(consumer.state.parked_count for consumer in consumers),
            dead_letters=letters,
            last_error=next(filter(None, errors), ""),
            rate_per_s=self.hub.figures.of(trigger(name), now_s).rate_per_s(now_s),
        )

    async def wait_delivered(self, name: str, token: str, timeout_s: float) -> bool:
        """Wait until the change ``token`` (empty: every change written so far) is delivered; return False on timeout.

        An empty name stands for all triggers.
        """
        return await self.hub.wait_delivered(trigger(name), token, timeout_s)

    # --- dead letters ------------------------------------------------------------------------------

    async def dead_letters(self, name: str, limit: int) -> list[DeadLetter]:
        return await self.dead_letter_store.found(name, limit)

    async def retry(self, name: str, row: bytes, *, as_it_was: bool = False) -> int:
        return await self.dead_letter_store.retry(self.triggers.known(name).registration, row, as_it_was=as_it_was)


def _unusable(one: Trigger) -> TriggerStatus:
    unknown = status_of(Registration(one.name, "", "", ()))
    return replace(unknown, state="unreadable", last_error=one.unusable_reason)

"""The triggers of a store, administered: what the wire's trigger methods, the pages and the start call.

Triggers are one kind of follower: the hub follows their tables (``flows.hub``), the feeder has their functions called
(``feeder``), the registry keeps their registrations (``registry``).  Owned by the loop.
"""

from __future__ import annotations

import logging
from asyncio import Lock
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from columnar.errors import IllegalArgument, TableNotEnabled, TriggerError
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Kind, Subscription
from columnar.flows.follower_name import TRIGGER, trigger
from columnar.flows.hub import Hub
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.triggers.burials import Burials
from columnar.triggers.consumer import BACKFILL, Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.feeder import Feeder
from columnar.triggers.function_checks import FunctionChecks
from columnar.triggers.lane import MakeLink
from columnar.triggers.registration import Registration, checked
from columnar.triggers.registry import Registry
from columnar.triggers.system_tables import SystemTables
from columnar.triggers.worker_link import WorkerLink

if TYPE_CHECKING:
    from columnar.wire.private_socket import PrivateSocket

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Summary:
    name: str
    table: str
    function: str
    state: str
    lag_changes: int
    lag_seconds: float
    parked: int
    letters: int
    error: str
    registration: Registration


class TriggerKeeper:
    def __init__(self, server: RegionServer, hub: Hub, modules: tuple[str, ...]) -> None:
        self.hub = hub
        self._server = server
        self._modules = modules
        self._system = SystemTables(server)
        self._registry = Registry(server.tables, self._system)
        self.burials = Burials(server, self._system)
        self.feeder = Feeder(hub.followers, hub.upkeep, self.burials.bury)
        self._checks = FunctionChecks(self.feeder)
        hub.register(Kind(TRIGGER, True, self._registry.is_removed, (BACKFILL,)))

    # --- start and stop ----------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the registrations; from now on their tables log.  Before the first request is served."""
        for name in await self._registry.load():
            self.feeder.pause(name)
        await self.burials.load()
        self.hub.load([self._subscription(registration) for registration in self._registry.all()])

    def start(self, host: str, port: int, private: PrivateSocket | None = None) -> None:
        """The store listens, with TLS at ``private`` too: start delivering."""
        self.start_with(lambda listener: WorkerLink(listener, host, port, self._modules, private))

    def start_with(self, make_link: MakeLink) -> None:
        self.feeder.attach(make_link)
        self.hub.start()

    async def close(self) -> None:
        self.hub.stop()
        await self.feeder.close()
        self.hub.close()

    # --- tables ------------------------------------------------------------------------------------

    @property
    def lock(self) -> Lock:
        """While it is held no trigger is added or removed."""
        return self.hub.lock

    async def table_dropping(self, table: str) -> None:
        """A dropped table takes its triggers with it; the log says what they had not delivered."""
        async with self.lock:
            registrations = self._registry.of_table(table)
            for registration in registrations:
                await self._remove(registration)
            lags = await self.hub.table_dropped(table, [trigger(registration.name) for registration in registrations])
        for name, lag in lags.items():
            _log.warning("table %s is dropped: %s goes with it, %d changes undelivered", table, name, lag)

    # --- registrations -----------------------------------------------------------------------------

    def _subscription(self, registration: Registration, number: int | None = None) -> Subscription:
        families = registration.family_bytes
        return Subscription(
            trigger(registration.name),
            self._registry.number_of(registration.name) if number is None else number,
            registration.table,
            families,
            families if registration.before else frozenset(),
            partial(self._consumer, registration),
        )

    def _consumer(self, registration: Registration, region: Region, state: DeliveryState) -> Consumer:
        return Consumer(registration, region, state, self.feeder, self.hub.background.spawn)

    async def add(self, registration: Registration) -> None:
        """The very same one again changes nothing.  Returns when it is on disk and every change is caught."""
        checked(registration, self._modules)
        async with self.lock:
            held = self._registry.find(registration.name)
            if held == registration:
                return
            if held is not None:
                raise IllegalArgument(f"trigger {registration.name} exists with other settings; remove it first")
            served = self._system.access.table(registration.table.encode())
            if served.schema.is_system:
                raise IllegalArgument(f"{served.schema.name} is a table of the system; triggers go on your own")
            for family in registration.family_bytes:
                served.schema.family(family)
            problem = await self._checks.problem_with(registration.function)
            if problem is not None:
                raise TriggerError(f"{registration.function} cannot be used: {problem}")
            await self._register(registration)

    async def _register(self, registration: Registration) -> None:
        if self._registry.rests(registration.name):
            await self._registry.remove(registration.name)
        number = await self._registry.begin()
        record = partial(self._registry.add, registration, number)
        try:
            await self.hub.subscribe(self._subscription(registration, number), record)
        finally:
            if self._registry.find(registration.name) is None:
                self._registry.call_off(number)

    async def remove(self, name: str) -> None:
        async with self.lock:
            if self._registry.rests(name):
                await self._registry.remove(name)
            else:
                await self._remove(self._registry.known(name))
        _log.info("trigger %s removed", name)

    async def _remove(self, registration: Registration) -> None:
        name = registration.name
        try:
            await self._registry.remove(name)
        finally:
            if self._registry.find(name) is None:
                self.hub.unsubscribe(trigger(name))
                self.feeder.resume(name)  # the next of that name begins running

    async def pause(self, name: str) -> None:
        async with self.lock:
            await self._registry.write_state(name, "paused")
            self.feeder.pause(name)

    async def resume(self, name: str) -> None:
        async with self.lock:
            await self._registry.write_state(name, "running")
            self.feeder.resume(name)

    # --- looks -------------------------------------------------------------------------------------

    def registrations(self) -> list[Registration]:
        return self._registry.all()

    def summaries(self) -> list[Summary]:
        """Every trigger as the wire, the page and the metrics show it."""
        resting = [_resting(name, why) for name, why in self._registry.resting().items()]
        return [*(self._summary(registration) for registration in self.registrations()), *resting]

    def _summary(self, registration: Registration) -> Summary:
        name = registration.name
        consumers = self.feeder.consumers_of(name)
        return Summary(
            name,
            registration.table,
            registration.function,
            "paused" if self.feeder.is_paused(name) else "running",
            sum(consumer.lag_changes for consumer in consumers),
            max((consumer.lag_seconds for consumer in consumers), default=0.0),
            sum(consumer.state.parked_count for consumer in consumers),
            self.burials.count_of(name),
            next((c.state.last_error for c in consumers if c.state.last_error), ""),
            registration,
        )

    async def wait(self, name: str, token: str, timeout_s: float) -> bool:
        """Until the change ``token`` (empty: everything written now) is delivered; False: not in time.

        An empty name stands for all triggers.
        """
        if name:
            table = self._registry.known(name).table
            if not self._server.tables.known(table.encode()).enabled:
                raise TableNotEnabled(table)
        return await self.hub.waits.wait(trigger(name), token, timeout_s)

    # --- dead letters ------------------------------------------------------------------------------

    async def dead_letters(self, name: str, limit: int) -> list[DeadLetter]:
        return await self.burials.found(name, limit)

    async def retry(self, name: str, row: bytes) -> int:
        self._registry.known(name)
        return await self.burials.retry(name, row)


def _resting(name: str, why: str) -> Summary:
    return Summary(name, "", "", "unreadable", 0, 0.0, 0, 0, why, Registration(name, "", "", ()))

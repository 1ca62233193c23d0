"""The triggers of a store: registrations in their table, consumers on the regions, administration.

``ChangeListener`` of the region server, and what the wire's trigger methods call.  Owned by the loop.

A trigger's table logs its changes, and every region knows where the trigger begins, before its
registration is durable; the first consumer comes after.  So there is no moment in which a change of a
registered trigger is not in a log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from columnar.errors import ColumnarError, IllegalArgument, TableNotEnabled, TriggerError
from columnar.flows.delivery_state import pause_s
from columnar.model.region_info import RegionInfo
from columnar.regions.change_record import Sequence
from columnar.regions.hooks import LogPolicy
from columnar.regions.patience import patiently
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.triggers.burials import Burials
from columnar.triggers.consumer import Consumer, begin_after, forget, undelivered
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.feeder import Feeder, Key
from columnar.triggers.function_checks import FunctionChecks
from columnar.triggers.handover import Handover
from columnar.triggers.lane import MakeLink
from columnar.triggers.log_brake import LONGEST_DELAY_S, LogBounds
from columnar.triggers.registration import Registration, checked
from columnar.triggers.registry import Registry
from columnar.triggers.system_tables import SystemTables
from columnar.triggers.waiting import HasPassed, checked_token, held_while_it_runs, until_passed
from columnar.triggers.worker_link import WorkerLink

if TYPE_CHECKING:
    from columnar.wire.private_socket import PrivateSocket

_log = logging.getLogger(__name__)

COUNTED_AT_ONCE: Final = 10_000  # records of a log


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
    def __init__(self, server: RegionServer, modules: tuple[str, ...], bounds: LogBounds | None = None) -> None:
        self._server = server
        self._modules = modules
        self._system = SystemTables(server)
        self.burials = Burials(server, self._system)
        self.feeder = Feeder(self.burials.bury, bounds or LogBounds())
        self._checks = FunctionChecks(self.feeder)
        handover = self._handover = Handover(self.feeder)
        self.merge_obstacle = handover.merge_obstacle  # of regions.hooks.ChangeListener, as are these two
        self.merged_cursors, self.regions_replaced = handover.merged_cursors, handover.regions_replaced
        self._registry = Registry(server.tables, self._system)
        self._adding: Registration | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._openings: set[asyncio.Task[None]] = set()
        self._away: dict[int, asyncio.Task[None]] = {}  # regions to be opened again, by region id
        self._backfills: dict[Key, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._serves = False

    # --- start and stop ----------------------------------------------------------------------------

    def load(self) -> None:
        """Read the registrations; from now on their tables log.  Before the first request is served."""
        for name in self._registry.load():
            self.feeder.pause(name)
        self.burials.load()
        for table in self._registry.tables():
            self._apply_policy(table)

    def start(self, host: str, port: int, private: PrivateSocket | None = None) -> None:
        """The store listens, with TLS at ``private`` too: start delivering."""
        self.start_with(lambda listener: WorkerLink(listener, host, port, self._modules, private))

    def start_with(self, make_link: MakeLink) -> None:
        """Open the regions that may have something to deliver, in the background."""
        self._serves = True
        self.feeder.attach(make_link)
        for table in self._registry.tables():
            self._open_soon(table)

    def _open_soon(self, table: str) -> None:
        served = self._server.tables.find(table.encode())
        if served is not None and served.enabled:
            task = self._spawn(self._open_all(served.regions))
            self._openings.add(task)
            task.add_done_callback(self._openings.discard)

    async def _open_all(self, regions: list[RegionInfo]) -> None:
        for info in regions:
            try:
                self._open(info)
            except ColumnarError as error:  # it holds up no other
                _log.error("region %s of %s cannot be opened: %s", info.encoded, info.table, error.text)
                self._open_later(info)
            await asyncio.sleep(0)

    def _open(self, info: RegionInfo) -> None:
        served = self._server.tables.find(info.table.encode())
        is_wanted = self._serves and served is not None and served.enabled and bool(self._registry.of_table(info.table))
        if served is not None and is_wanted and self._server.tables.serves(info):
            self._server.open_region(served, info)

    def _open_later(self, info: RegionInfo) -> None:
        held_while_it_runs(self._away, info.region_id, self._spawn(self._try_to_open(info)))

    async def _try_to_open(self, info: RegionInfo) -> None:
        tries = 0
        while True:
            tries += 1
            await asyncio.sleep(pause_s(tries))
            try:
                return self._open(info)
            except ColumnarError as error:
                _log.info("region %s still cannot be opened: %s", info.encoded, error.text)

    async def close(self) -> None:
        self._serves = False
        for task in self._tasks:
            task.cancel()
        await self.feeder.close()

    # --- tables ------------------------------------------------------------------------------------

    @property
    def lock(self) -> asyncio.Lock:
        """Whoever holds it knows that no trigger is added or removed."""
        return self._one_at_a_time

    def table_installed(self, table: str) -> None:
        """It is served from now on, in this state: what waits in its logs goes on."""
        self._apply_policy(table)
        if self._serves and self._registry.of_table(table):
            self._open_soon(table)

    def schema_followed(self, table: str) -> None:
        """Its regions serve by another schema: a log that nobody reads any more ends."""
        if self._server.policy_of(table) is None:
            for region in self._server.open_regions_of(table):
                self.feeder.upkeep.save(region)

    async def table_dropping(self, table: str) -> None:
        """A dropped table takes its triggers with it; what they had not delivered is said, and gone with it."""
        async with self._one_at_a_time:
            registrations = self._registry.of_table(table)
            for registration in registrations:
                await self._remove(registration)
            self._server.set_policy(table, None)
            if registrations:
                await self._say_what_is_lost(table, registrations)

    async def _say_what_is_lost(self, table: str, registrations: list[Registration]) -> None:
        served = self._server.tables.known(table.encode())
        lags = dict.fromkeys((registration.name for registration in registrations), 0)
        for info in served.regions:
            region = self._server.open_region(served, info)  # without a policy: nothing is delivered any more
            for name in lags:
                lags[name] += undelivered(region, name)
            await asyncio.sleep(0)
        await self._server.close_table(table)
        for name, lag in lags.items():
            _log.warning("table %s is dropped: trigger %s goes with it, %d changes undelivered", table, name, lag)

    # --- regions.hooks.ChangeListener --------------------------------------------------------------

    def region_opened(self, region: Region) -> None:
        for name in region.log.cursors():
            if self._is_gone(region, name):  # it was removed while the region was closed
                forget(region, name)
        for registration in self._registry.of_table(region.info.table):
            self._consume(registration, region)
        self.feeder.upkeep.opened(region)
        self._spawn(self._count_inherited(region))

    def _is_gone(self, region: Region, cursor: str) -> bool:
        if self._adding is not None and self._adding.name == cursor:
            return False
        return self._registry.is_removed(cursor, region.log.number_of(cursor))

    def changes_durable(self, region: Region) -> None:
        self.feeder.changes_durable(region)

    def may_close(self, region: Region) -> bool:
        return all(consumer.is_idle for consumer in self.feeder.consumers_in(region))

    def region_closing(self, region: Region) -> None:
        served = self._server.tables.find(region.info.table.encode())
        is_served = self._serves and served is not None and served.enabled
        if is_served and not self.may_close(region):
            self._open_later(region.info)
        self.region_leaving(region)

    def region_leaving(self, region: Region) -> None:
        self.feeder.upkeep.save(region)
        self.feeder.upkeep.forget(region)
        for consumer in list(self.feeder.consumers_in(region)):
            self._drop(consumer)

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        async with self._one_at_a_time:
            yield

    def _consume(self, registration: Registration, region: Region) -> None:
        consumer = self.feeder.add(registration, region)
        self._begin_backfill(consumer)

    def _begin_backfill(self, consumer: Consumer) -> None:
        key = (consumer.registration.name, consumer.region.info.region_id)
        if key not in self._backfills and consumer.needs_backfill:
            held_while_it_runs(self._backfills, key, self._spawn(self._backfill(consumer)))

    async def hold(self, region: Region, patience_s: float) -> str:
        for consumer in self.feeder.consumers_in(region):
            self._end_backfill(consumer)
        return await self._handover.hold(region, patience_s)

    def release(self, region: Region) -> None:
        self._handover.release(region)
        for consumer in self.feeder.consumers_in(region):
            self._begin_backfill(consumer)

    def _drop(self, consumer: Consumer) -> None:
        self._end_backfill(consumer)
        self.feeder.drop(consumer)

    def _end_backfill(self, consumer: Consumer) -> None:
        backfill = self._backfills.pop((consumer.registration.name, consumer.region.info.region_id), None)
        if backfill is not None:
            backfill.cancel()  # the next one begins where its mark stands

    async def _count_inherited(self, region: Region) -> None:
        """Count what earlier openings left in the log, in steps: the brake must know it."""
        try:
            while region.is_open and region.log.count_step(COUNTED_AT_ONCE):  # noqa: ASYNC110 - it counts
                await asyncio.sleep(0)
        finally:
            if region.is_open:
                self.feeder.upkeep.brake(region)
                self.feeder.upkeep.soon(region)

    async def _backfill(self, consumer: Consumer) -> None:
        region = consumer.region
        while True:
            waiting = await patiently(consumer.backfill_step)
            if waiting is None:
                _log.info("trigger %s: backfill of %s is logged", consumer.registration.name, region.info.encoded)
                return
            await asyncio.shield(waiting)
            await self._brake_backfill(region)

    async def _brake_backfill(self, region: Region) -> None:
        """The log is long already: feel the brake as every writer does."""
        if region.write_delay_s > 0:
            await asyncio.sleep(region.write_delay_s)
        while region.refuses_writes and region.is_open:  # noqa: ASYNC110 - as a writer that is told to try later
            await asyncio.sleep(LONGEST_DELAY_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("background work of triggers failed", exc_info=task.exception())

    # --- registrations -----------------------------------------------------------------------------

    def _apply_policy(self, table: str) -> None:
        registrations = self._registry.of_table(table)
        if self._adding is not None and self._adding.table == table:
            registrations.append(self._adding)
        families = frozenset(f for r in registrations for f in r.family_bytes)
        before = frozenset(f for r in registrations if r.before for f in r.family_bytes)
        served = self._server.tables.find(table.encode())
        if served is not None and served.schema.change_log_s is not None:
            families = frozenset(family.bytes_name for family in served.schema.families)
        self._server.set_policy(table, LogPolicy(families, before) if families else None)

    async def add(self, registration: Registration) -> None:
        """The very same one again changes nothing.  Returns when it is on disk and every change is caught."""
        checked(registration, self._modules)
        async with self._one_at_a_time:
            held = self._registry.find(registration.name)
            if held == registration:
                return
            if held is not None:
                raise IllegalArgument(f"trigger {registration.name} exists with other settings; remove it first")
            served = self._server.tables.enabled(registration.table.encode())
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
        self._adding = registration
        try:
            self._apply_policy(registration.table)
            served = self._server.tables.enabled(registration.table.encode())
            for info in served.regions:
                await asyncio.shield(begin_after(self._server.open_region(served, info), registration.name, number))
            await self._registry.add(registration, number)
        except BaseException:
            self._registry.call_off(number)
            raise
        finally:
            self._adding = None
            self._apply_policy(registration.table)
        await self._open_consumers(registration)

    async def _open_consumers(self, registration: Registration) -> None:
        """In the open regions at once; in one that was closed meanwhile when it is opened."""
        served = self._server.tables.find(registration.table.encode())
        if served is None or not served.enabled:
            return
        for info in served.regions:
            self._consume(registration, self._server.open_region(served, info))
            await asyncio.sleep(0)

    async def remove(self, name: str) -> None:
        async with self._one_at_a_time:
            if self._registry.rests(name):
                await self._registry.remove(name)
            else:
                await self._remove(self._registry.known(name))
        _log.info("trigger %s removed", name)

    async def _remove(self, registration: Registration) -> None:
        try:
            await self._registry.remove(registration.name)
        finally:
            if self._registry.find(registration.name) is None:
                self._end(registration)

    def _end(self, registration: Registration) -> None:
        for consumer in self.feeder.consumers_of(registration.name):
            self._drop(consumer)
            forget(consumer.region, registration.name)
            self.feeder.upkeep.save(consumer.region)  # the log is shorter now, or ends
        self.feeder.resume(registration.name)  # the next of that name begins running
        self._apply_policy(registration.table)

    async def pause(self, name: str) -> None:
        async with self._one_at_a_time:
            await self._registry.write_state(name, "paused")
            self.feeder.pause(name)

    async def resume(self, name: str) -> None:
        async with self._one_at_a_time:
            await self._registry.write_state(name, "running")
            self.feeder.resume(name)

    # --- looks -------------------------------------------------------------------------------------

    def registrations(self) -> list[Registration]:
        return self._registry.all()

    def summaries(self) -> list[Summary]:
        """Every trigger as the wire, the page and the metrics tell of it."""
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

    # --- waiting -----------------------------------------------------------------------------------

    async def wait(self, name: str, token: str, timeout_s: float) -> bool:
        """Until the change ``token`` (empty: everything written now) is delivered; False: not in time.

        Rows that a backfill has still to log count as written.
        """
        if name:
            table = self._registry.known(name).table
            if not self._server.tables.known(table.encode()).enabled:
                raise TableNotEnabled(table)
        deadline = time.monotonic() + timeout_s
        if token:
            sequence = checked_token(token)
            await self._server.all_there(timeout_s)
            if not self.feeder.consumers_at(sequence.origin):
                await self._settled(deadline, [sequence.origin])
            targets = self._target_of(name, sequence)
        else:
            if not (await self._server.all_there(timeout_s) and await self._settled(deadline, list(self._away))):
                return False
            backfills = [task for (trigger, _), task in self._backfills.items() if trigger == name or not name]
            if backfills:
                await asyncio.wait(backfills, timeout=max(0.0, deadline - time.monotonic()))
            targets = self._targets(name)
        left_s = max(0.0, deadline - time.monotonic())
        return await until_passed(self.feeder, targets, lambda held: self._registry.find(held) is not None, left_s)

    async def _settled(self, deadline: float, regions: list[int]) -> bool:
        """Regions that are being opened for their triggers are open; False: not in time."""
        tasks = [*self._openings, *(self._away[region_id] for region_id in regions if region_id in self._away)]
        if not tasks:
            return True
        _, missing = await asyncio.wait(tasks, timeout=max(0.0, deadline - time.monotonic()))
        return not missing

    def _target_of(self, name: str, sequence: Sequence) -> dict[Key, HasPassed]:
        return {
            (consumer.registration.name, consumer.region.info.region_id): lambda c: c.state.is_delivered(sequence)
            for consumer in self._handover.waiting_for(name, sequence)
        }

    def _targets(self, name: str) -> dict[Key, HasPassed]:
        targets: dict[Key, HasPassed] = {}
        for consumer in self.feeder.consumers_of(name):
            consumer.region.sync_async_writes()
            key = (consumer.registration.name, consumer.region.info.region_id)
            targets[key] = partial(_is_past, consumer.region.log.last_to_wait_for)
        return targets

    # --- dead letters ------------------------------------------------------------------------------

    def dead_letters(self, name: str, limit: int) -> list[DeadLetter]:
        return self.burials.found(name, limit)

    async def retry(self, name: str, row: bytes) -> int:
        self._registry.known(name)
        return await self.burials.retry(name, row)


def _resting(name: str, why: str) -> Summary:
    return Summary(name, "", "", "unreadable", 0, 0.0, 0, 0, why, Registration(name, "", "", ()))


def _is_past(target: Sequence, consumer: Consumer) -> bool:
    return not consumer.needs_backfill and consumer.state.is_past(target)

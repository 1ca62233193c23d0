"""The triggers of a store: registrations in their table, consumers on the regions, administration.

``ChangeListener`` of the region server, and what the wire's trigger methods call.  Owned by the loop.

A registration is durable before the first consumer exists, and the table logs its changes from
before that: so there is no moment in which a change of a registered trigger is not in a log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from columnar.errors import IllegalArgument, TriggerError
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.read import ReadSpec, projection
from columnar.regions.change_record import ChangeRecord, Sequence, parse_token
from columnar.regions.hooks import LogPolicy
from columnar.regions.patience import patiently
from columnar.regions.region import Region
from columnar.regions.row_reader import RowCursor, wire_cells
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.layout import range_start
from columnar.triggers import dead_letters
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.feeder import Feeder
from columnar.triggers.registration import (
    DEAD_LETTERS_TABLE,
    INFO,
    TRIGGERS_TABLE,
    Registration,
    checked,
    from_json,
    to_json,
)
from columnar.triggers.worker_link import WorkerLink

_log = logging.getLogger(__name__)

CHECK_TIMEOUT_S: Final = 20.0  # importing a module may take its time
LETTERS_PER_CALL: Final = 10_000


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
    def __init__(self, server: RegionServer, modules: tuple[str, ...]) -> None:
        self._server = server
        self._modules = modules
        self.feeder = Feeder(self._bury)
        self.feeder.on_checked = self._checked
        self._registrations: dict[str, Registration] = {}
        self._by_table: dict[str, list[Registration]] = {}
        self._checks: dict[int, asyncio.Future[str | None]] = {}
        self._last_check = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self.letters: dict[str, int] = {}  # dead letters by trigger

    # --- start and stop ----------------------------------------------------------------------------

    def load(self) -> None:
        """Read the registrations; from now on their tables log.  Before the first request is served."""
        for row, cells in self._system_rows(TRIGGERS_TABLE):
            registration = from_json(cells[b"info:registration"])
            if self._server.tables.find(registration.table.encode()) is None:
                _log.warning("trigger %s is on table %s, which is gone: it rests", row.decode(), registration.table)
                continue
            self._know(registration)
            if cells[b"info:state"] == b"paused":
                self.feeder.pause(registration.name)
        for _, cells in self._system_rows(DEAD_LETTERS_TABLE):
            letter = dead_letters.from_cell(cells[b"info:letter"])
            self.letters[letter.trigger] = self.letters.get(letter.trigger, 0) + 1
        for table in self._by_table:
            self._apply_policy(table)

    def start(self, host: str, port: int) -> None:
        """The store listens: open the regions that may have something to deliver, in the background."""
        self.feeder.link = WorkerLink(self.feeder, host, port, self._modules)
        self._opening = asyncio.ensure_future(self._open_all())

    async def _open_all(self) -> None:
        for table in list(self._by_table):
            served = self._server.tables.find(table.encode())
            if served is None or not served.enabled:
                continue
            for info in served.regions:
                self._server.open_region(served, info)
                await asyncio.sleep(0)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        for task in self._tasks:
            task.cancel()
        await self.feeder.close()

    # --- regions.hooks.ChangeListener --------------------------------------------------------------

    def region_opened(self, region: Region) -> None:
        for registration in self._by_table.get(region.info.table, ()):
            self._consume(registration, region)
        self._spawn(self._count_inherited(region))

    def changes_durable(self, region: Region) -> None:
        self.feeder.changes_durable(region)

    def region_closing(self, region: Region) -> None:
        self.feeder.save_region(region)
        for consumer in list(self.feeder.consumers_in(region)):
            self.feeder.drop(consumer)

    def _consume(self, registration: Registration, region: Region) -> Consumer:
        consumer = self.feeder.add(registration, region)
        if consumer.needs_backfill:
            self._spawn(self._backfill(consumer))
        return consumer

    async def _count_inherited(self, region: Region) -> None:
        """Count what earlier openings left in the log, in steps: the brake must know it."""
        after: Sequence | None = None
        while True:
            records = size = 0
            for sequence, length in region.log.inherited(after):
                after = sequence
                records, size = records + 1, size + length
                if records >= LETTERS_PER_CALL:
                    break
            region.log.records += records
            region.log.size_bytes += size
            if records < LETTERS_PER_CALL:
                return
            await asyncio.sleep(0)

    async def _backfill(self, consumer: Consumer) -> None:
        region = consumer.region
        while (waiting := await patiently(consumer.backfill_step)) is not None:
            await asyncio.shield(waiting)
            if region.write_delay_s > 0:  # the log is long already: feel the brake as every writer does
                await asyncio.sleep(region.write_delay_s)
        _log.info("trigger %s: backfill of region %s is in the log", consumer.registration.name, region.info.encoded)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("background work of triggers failed", exc_info=task.exception())

    # --- registrations -----------------------------------------------------------------------------

    def _know(self, registration: Registration) -> None:
        self._registrations[registration.name] = registration
        self._by_table.setdefault(registration.table, []).append(registration)

    def _forget(self, registration: Registration) -> None:
        del self._registrations[registration.name]
        self._by_table[registration.table].remove(registration)
        if not self._by_table[registration.table]:
            del self._by_table[registration.table]

    def _apply_policy(self, table: str) -> None:
        registrations = self._by_table.get(table, ())
        families = frozenset(f for r in registrations for f in r.family_bytes)
        before = frozenset(f for r in registrations if r.before for f in r.family_bytes)
        self._server.set_policy(table, LogPolicy(families, before) if families else None)

    async def add(self, registration: Registration) -> None:
        """The very same one again changes nothing.  Returns when it is on disk and every change is caught."""
        checked(registration, self._modules)
        async with self._one_at_a_time:
            held = self._registrations.get(registration.name)
            if held == registration:
                return
            if held is not None:
                raise IllegalArgument(f"trigger {registration.name} exists with other settings; remove it first")
            served = self._server.tables.known(registration.table.encode())
            if served.schema.is_system:
                raise IllegalArgument(f"{served.schema.name} is a table of the system; triggers go on your own")
            for family in registration.family_bytes:
                served.schema.family(family)
            problem = await self._problem_with(registration.function)
            if problem is not None:
                raise TriggerError(f"{registration.function} cannot be used: {problem}")
            await self._register(registration, served)

    async def _register(self, registration: Registration, served: ServedTable) -> None:
        self._know(registration)
        self._apply_policy(registration.table)
        await self._write(
            TRIGGERS_TABLE,
            RowMutation(
                registration.name.encode(),
                (Put(INFO, b"registration", to_json(registration)), Put(INFO, b"state", b"running")),
            ),
        )
        for info in served.regions if served.enabled else ():
            region = self._server.open_region(served, info)
            consumer = self.feeder.add(registration, region)
            consumer.begin_now()
            self._consume(registration, region)
            await asyncio.sleep(0)

    async def remove(self, name: str) -> None:
        registration = self._known(name)
        async with self._one_at_a_time:
            await self._write(TRIGGERS_TABLE, RowMutation(name.encode(), (Delete(INFO, None),)))
            for consumer in self.feeder.consumers_of(name):
                self.feeder.drop(consumer)
                consumer.region.log.drop_cursor(name)
            self._forget(registration)
            self._apply_policy(registration.table)
        _log.info("trigger %s removed", name)

    async def pause(self, name: str) -> None:
        self._known(name)
        await self._write(TRIGGERS_TABLE, RowMutation(name.encode(), (Put(INFO, b"state", b"paused"),)))
        self.feeder.pause(name)

    async def resume(self, name: str) -> None:
        self._known(name)
        await self._write(TRIGGERS_TABLE, RowMutation(name.encode(), (Put(INFO, b"state", b"running"),)))
        self.feeder.resume(name)

    async def table_dropping(self, table: str) -> None:
        """A dropped table takes its triggers with it; what they had not delivered is said, and gone with it."""
        for registration in list(self._by_table.get(table, ())):
            lag = sum(consumer.lag_changes for consumer in self.feeder.consumers_of(registration.name))
            _log.warning(
                "table %s is dropped: trigger %s is removed with it, %d changes undelivered",
                table,
                registration.name,
                lag,
            )
            await self.remove(registration.name)

    def _known(self, name: str) -> Registration:
        held = self._registrations.get(name)
        if held is None:
            raise TriggerError(f"there is no trigger {name}; columnar trigger list shows those there are")
        return held

    # --- does a function exist ---------------------------------------------------------------------

    async def _problem_with(self, function: str) -> str | None:
        """Ask the worker to import it."""
        link = self.feeder.link
        assert link is not None, "triggers are added while the store serves"
        deadline = asyncio.get_running_loop().time() + CHECK_TIMEOUT_S
        while not link.is_up:
            link.want()
            if asyncio.get_running_loop().time() > deadline:
                return "the trigger worker does not start; the store's log says why"
            await asyncio.sleep(0.01)
        self._last_check += 1
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._checks[self._last_check] = answer
        link.send("check", self._last_check, function)
        try:
            return await asyncio.wait_for(answer, CHECK_TIMEOUT_S)
        except TimeoutError:
            return f"importing it takes more than {CHECK_TIMEOUT_S:.0f} s, or ended the worker"
        finally:
            self._checks.pop(self._last_check, None)

    def _checked(self, check_id: int, problem: str | None) -> None:
        waiting = self._checks.get(check_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(problem)

    # --- looks -------------------------------------------------------------------------------------

    def registrations(self) -> list[Registration]:
        return [self._registrations[name] for name in sorted(self._registrations)]

    def summaries(self) -> list[Summary]:
        """Every trigger as the wire, the page and the metrics tell of it."""
        return [self._summary(registration) for registration in self.registrations()]

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
            self.letters.get(name, 0),
            next((c.state.last_error for c in consumers if c.state.last_error), ""),
            registration,
        )

    async def wait(self, name: str, token: str, timeout_s: float) -> bool:
        """Until the change ``token`` (empty: everything written now) is delivered; False: not in time."""
        if name:
            self._known(name)
        if self._opening is not None:
            await asyncio.shield(self._opening)
        is_delivered = self._one_delivered(name, token) if token else self._all_delivered(name)
        if is_delivered():
            return True
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if not done.done() and is_delivered():
                done.set_result(None)

        unwatch = self.feeder.watch(look)
        try:
            await asyncio.wait_for(done, timeout_s)
            return True
        except TimeoutError:
            return False
        finally:
            unwatch()

    def _one_delivered(self, name: str, token: str) -> Callable[[], bool]:
        try:
            sequence = parse_token(token)
        except ValueError:
            raise IllegalArgument(f"'{token[:40]}' is no sequence of ours") from None
        consumers = [c for c in self.feeder.consumers_of(name) if c.region.info.region_id == sequence.origin]
        return lambda: all(consumer.state.is_delivered(sequence) for consumer in consumers)

    def _all_delivered(self, name: str) -> Callable[[], bool]:
        targets = []
        for consumer in self.feeder.consumers_of(name):
            consumer.region.sync_async_writes()
            last = consumer.region.log.last_logged
            if last is not None:
                targets.append((consumer, last))
            elif consumer.state.open_count:
                targets.append((consumer, consumer.region.log.written_to))
        return lambda: all(consumer.state.is_past(target) for consumer, target in targets)

    # --- dead letters ------------------------------------------------------------------------------

    async def _bury(self, letter: DeadLetter) -> None:
        await self._write(DEAD_LETTERS_TABLE, dead_letters.writing(letter))
        self.letters[letter.trigger] = self.letters.get(letter.trigger, 0) + 1

    def dead_letters(self, name: str, limit: int) -> list[DeadLetter]:
        found: list[DeadLetter] = []
        start, stop = dead_letters.rows_of(name)
        for row, cells in self._system_rows(DEAD_LETTERS_TABLE, start):
            if len(found) >= min(limit, LETTERS_PER_CALL) or (stop and row >= stop):
                break
            found.append(dead_letters.from_cell(cells[b"info:letter"]))
        return found

    async def retry(self, name: str, row: bytes) -> int:
        """Deliver dead rows again as they are now; a letter goes once its row is in the log again."""
        self._known(name)
        taken = 0
        for letter in self.dead_letters(name, LETTERS_PER_CALL):
            if row and letter.row != row:
                continue
            served = self._server.tables.enabled(letter.table.encode())
            region = self._server.region_for(served, letter.row)
            record = ChangeRecord(letter.row, region.now_ms, (), (), name)
            await asyncio.shield(await patiently(lambda r=region, c=record: r.log_records([c], {})))  # type: ignore[misc]
            await self._write(DEAD_LETTERS_TABLE, dead_letters.removing(letter))
            self.letters[name] -= 1
            taken += 1
        return taken

    # --- the system's own tables -------------------------------------------------------------------

    def _served(self, table: str) -> ServedTable:
        return self._server.tables.enabled(table.encode())

    async def _write(self, table: str, mutation: RowMutation) -> None:
        region = self._server.region_for(self._served(table), mutation.row)
        applied = await patiently(lambda: region.apply(mutation))
        assert applied.durable is not None, "tables of the system are synced"
        await asyncio.shield(applied.durable)

    def _system_rows(self, table: str, start: bytes = b"") -> Any:
        """(row, {column: value}) of a table of the system, which has one region."""
        served = self._served(table)
        region = self._server.region_for(served, start)
        spec = ReadSpec(projection(served.schema, ()))
        cursor = RowCursor(region.store, region.views, spec.projection, range_start(start), None, reverse=False)
        while (found := cursor.next_row()) is not None:
            row, raw = found
            cells = wire_cells(region.store, row, raw, spec, region.now_ms)
            if cells:
                yield row, {column: value for column, value, _ in cells}

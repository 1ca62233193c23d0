"""Add, remove, change, pause, resume and replay triggers (``derivation_changes``).

    add     a worker of one owner imports the function, then as any derivation: ADDING, RUNNING
    sync    as add, of several at once; changed and removed triggers are in the first write

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from columnar.errors import ColumnarError, IllegalArgument, TableNotEnabled, TableNotFound, TriggerError, abbreviate
from columnar.master.catalogue import Catalogue
from columnar.master.derivation_changes import DerivationChanges
from columnar.model import region_messages as messages
from columnar.model.derivations import BEGINNING, Trigger, Triggers, check_bounded
from columnar.model.flow_graph import Flow, Graph, check_no_cycle, flow_of, place_of, with_places
from columnar.model.region_messages import Peer
from columnar.model.schema import Table
from columnar.model.trigger_registration import MOST_PROCESSES, Registration, checked
from columnar.model.trigger_sync import Plan, plan_of
from columnar.model.view_generations import base_of

_log = logging.getLogger(__name__)


class TriggerChanges(DerivationChanges[Triggers]):
    def __init__(self, catalogue: Catalogue, owner: Peer, modules: tuple[str, ...]) -> None:
        """``modules``: those of which functions may be triggers."""
        super().__init__(catalogue, owner, asyncio.Lock())
        self._modules = modules
        self.other_flows: Callable[[], Iterable[Flow]] = tuple  # of other kinds, as parts of the graph

    @property
    def derivations(self) -> Triggers:
        return self._catalogue.derivations.triggers

    def publication(self) -> messages.PublishTriggers:
        return messages.PublishTriggers(self.derivations)

    async def forget_derivations(self, names: Sequence[str]) -> None:
        await self._write(self.derivations.without(names))

    async def _write(self, triggers: Triggers) -> None:
        await self._catalogue.derivations.write_derivations(triggers)
        await self.publish()

    def watchers(self, table: str) -> list[Trigger]:
        """Return the triggers of a table, by name; they stay while ``lock`` is held."""
        return self.derivations.of_table(table)

    # --- changes -----------------------------------------------------------------------------------

    async def add_trigger(self, registration: Registration) -> None:
        """The very same one again changes nothing.  Returns when it is on disk and every change is caught."""
        checked(registration, self._modules)
        async with self.lock:
            await self.settle()
            registration = with_places(registration, self._catalogue.tables)
            existing = self.derivations.find(registration.name)
            if existing is not None and not existing.unusable_reason:
                if existing.registration == registration:
                    return
                await self._change(existing.registration, registration)
                return
            self._check_table(registration)
            self._check_processes(registration)
            check_no_cycle(registration, self.graph())
            await self._check_function(registration.function)
            await self._check_start(registration)
            await self._begin(self.derivations, [registration])

    async def _change(self, registered: Registration, wanted: Registration) -> None:
        """Change what it says of its effects, which it may while it runs; anything else is another trigger."""
        free = {"writes": wanted.writes, "allow_cycle": wanted.allow_cycle, "allow_expiry": wanted.allow_expiry}
        if replace(registered, **free) != wanted:  # type: ignore[arg-type]  # each of its field's type
            raise IllegalArgument(f"trigger {wanted.name} exists with other settings; remove it first")
        check_no_cycle(wanted, self.graph())
        if not wanted.allow_expiry:
            self._check_lasting(wanted, self._catalogue.tables[wanted.table].schema)
        await self._write(self.derivations.with_registration(wanted))

    async def sync(self, wanted: Sequence[Registration], removed: Sequence[str]) -> None:
        """Make the triggers of a module as it declares them (``model.trigger_sync``).  A kill leaves each old or new.

        A single write of the catalogue has all changed and removed triggers, and the added ones as ADDING.  Workers
        take up the module's present source.
        """
        for one in wanted:
            checked(one, self._modules)
        async with self.lock:
            await self.settle()
            declared = [with_places(one, self._catalogue.tables) for one in wanted]
            plan = plan_of([one.registration for one in self.derivations.usable()], declared, removed)
            fresh = [*plan.added, *(change.wanted for change in plan.changed)]
            replaced = {*plan.removed, *(one.name for one in fresh)}
            self._check_all(fresh, replaced)
            for one in plan.added:
                await self._check_start(one)
            if declared:
                await self._take_up_source([*declared, *self._of_others(declared, replaced)])
            if not plan.is_empty:
                await self._carry_out(plan)

    def _of_others(self, declared: Sequence[Registration], replaced: set[str]) -> list[Registration]:
        """The triggers of other modules, which must not lose the source that they run.

        Triggers of the same module that were added by hand do not hinder its author.
        """
        modules = {one.module for one in declared}
        stay = [one.registration for one in self.derivations.in_use() if one.name not in replaced]
        return [one for one in stay if one.module not in modules]

    def _check_all(self, fresh: list[Registration], replaced: set[str]) -> None:
        flows = [flow_of(one.registration) for one in self.derivations.usable() if one.name not in replaced]
        for one in fresh:
            self._check_table(one)
            others = [flow_of(other) for other in fresh if other.name != one.name]
            check_no_cycle(one, Graph([*flows, *others, *self.other_flows()]))
        self._check_processes(*fresh)

    async def _carry_out(self, plan: Plan) -> None:
        wanted = self.derivations.without(plan.removed)
        for change in plan.changed:
            wanted = wanted.with_registration(change.wanted)
        await self._begin(wanted, plan.added)
        _log.info("triggers: %d added, %d changed, %d removed", len(plan.added), len(plan.changed), len(plan.removed))

    def graph(self) -> Graph:
        """All flows as they are declared."""
        return Graph([*(flow_of(one.registration) for one in self.derivations.usable()), *self.other_flows()])

    def _check_table(self, registration: Registration) -> None:
        name = registration.table
        entry = self._catalogue.tables.get(name)
        if not name:
            raise IllegalArgument("table name is empty")
        self._check_generation(name)
        if entry is None:
            raise TableNotFound(abbreviate(name.encode()))
        if not entry.enabled:
            raise TableNotEnabled(name)
        if entry.schema.is_system:
            raise IllegalArgument(f"{name} is a table of the system; triggers go on your own")
        for read in sorted(registration.families_read):
            entry.schema.family(read.encode("latin-1"))
        if not registration.allow_expiry:
            self._check_lasting(registration, entry.schema)
        whole = [family for family, columns in registration.scope().images.items() if columns is None]
        check_bounded(entry.schema, whole, f"trigger {registration.name}")

        for label, lookup_table, _ in registration.look:
            if lookup_table not in self._catalogue.tables:
                raise IllegalArgument(f"look '{label}': there is no table {lookup_table}; create it first")
        for place in map(place_of, registration.writes):
            if place.family and place.table in self._catalogue.tables:
                self._catalogue.tables[place.table].schema.family(place.family.encode())

    def _check_lasting(self, registration: Registration, table: Table) -> None:
        """IllegalArgument: cells that the trigger reads expire without a change that it could follow."""
        for name in sorted(registration.families_read):
            family = table.family(name.encode("latin-1"))
            if family.ttl_s is not None:
                raise IllegalArgument(
                    f"trigger {registration.name}: cells of {table.name}, family {family.name}, expire after "
                    f"{family.ttl_s} s, and no change tells of it: what is derived from them would stay for ever. "
                    "Use a family without TTL; or give the derived table's family the same TTL, or derive nothing that "
                    "has to go with the cells, and add it with --allow-expiry (@on: allow_expiry=True)"
                )

    def _check_generation(self, name: str) -> None:
        """IllegalArgument: the table is one of a view that its readers do not see, which will be dropped or was."""
        views, base = self._catalogue.derivations.views, base_of(name)
        live = views.live_table(base)
        if name != live and (views.find(name) is not None or views.swap_of(name) is not None):
            raise IllegalArgument(f"readers of view {base} see {live}, not {name}: name {live} as the trigger's table")

    def _check_processes(self, *registrations: Registration) -> None:
        labels = {one.registration.process for one in self.derivations.all if one.registration.process}
        more = {one.process for one in registrations if one.process} - labels
        if more and len(labels | more) > MOST_PROCESSES:
            raise TriggerError(
                f"triggers may have {MOST_PROCESSES} processes of their own; take one of their labels: "
                + ", ".join(sorted(labels))
            )

    async def _check_function(self, function: str) -> None:
        problem = await self._owner.request_peer(messages.CheckFunction(function))
        if problem is not None:
            raise TriggerError(f"{function} cannot be used: {problem}")

    async def _begin(self, wanted: Triggers, added: Sequence[Registration]) -> None:
        """Write ``wanted`` with those that are added, and return when every change for these is caught."""
        for registration in added:
            wanted = wanted.adding(registration)
        await self._catalogue.derivations.write_derivations(wanted)
        await self.take_up([one.name for one in added], "running")

    async def reload(self) -> None:
        """Workers run the source of all functions as it is now, from the next call on.

        TriggerError: some function could not be had from it; all go on as they are.
        """
        async with self.lock:
            await self._take_up_source([one.registration for one in self.derivations.in_use()])

    async def _take_up_source(self, users: Sequence[Registration]) -> None:
        """Have workers take up the source of ``users``.  TriggerError: a function is missing; nothing is taken.

        Source may be wrong in a way that ends its process, so a process of its own tries it.
        """
        functions = tuple(sorted({one.function for one in users}))
        if not functions:
            return
        problem = await self._owner.request_peer(messages.CheckSource(functions))
        if problem is not None:
            names = ", ".join(sorted(one.name for one in users if problem.startswith(f"{one.function} ")))
            of = f" (trigger {names})" if names else ""
            raise TriggerError(
                f"{problem}{of}; nothing was taken up, and functions run as before: correct the source, or remove the "
                "trigger, and try again"
            )
        await self._owner.request_peer(messages.ReloadFunctions())

    async def remove(self, name: str) -> None:
        async with self.lock:
            await self.settle()
            if self.derivations.find(name) is None:
                self.derivations.known(name)  # raises
            await self._write(self.derivations.without([name]))
        _log.info("trigger %s removed", name)

    async def pause(self, name: str) -> None:
        await self._set_state(name, "paused")

    async def resume(self, name: str) -> None:
        await self._set_state(name, "running")

    async def _set_state(self, name: str, state: str) -> None:
        async with self.lock:
            await self.settle()
            self.derivations.known(name)
            await self._write(self.derivations.with_state(name, state))

    async def replay(self, name: str, from_ms: int) -> None:
        """Replay the changes since a time, or (BEGINNING) every row, to a trigger.  TriggerError: the log is shorter.

        Returns when the replay request is on disk, and every open region begins with it.
        """
        if from_ms < 0:
            raise IllegalArgument(
                f"a replay begins at a time (milliseconds since 1970) or at {BEGINNING}, not {from_ms}"
            )
        async with self.lock:
            await self.settle()
            table = self.derivations.known(name).registration.table
            if from_ms != BEGINNING:
                else_ = f"columnar trigger replay {name} --from beginning shows it every row as it is now"
                await self._check_reach(table, from_ms, else_)
            await self._catalogue.derivations.write_derivations(self.derivations.with_replay(name, from_ms))
            self.at("replayed")
            await self.publish()
        _log.info("trigger %s is shown %s again", name, f"changes since {from_ms}" if from_ms else "every row")

    async def _check_start(self, registration: Registration) -> None:
        start_ms = registration.start_ms
        if start_ms is not None:
            else_ = f"trigger {registration.name} that starts from the beginning is shown every row as it is now"
            await self._check_reach(registration.table, start_ms, else_)

    async def _check_reach(self, table: str, from_ms: int, else_: str) -> None:
        """TriggerError: the log does not go back so far; ``else_``: what does."""
        reach = await self._owner.request_peer(messages.LogReach(table))
        if reach <= from_ms:
            return
        if reach == messages.NOWHERE:
            raise TriggerError(
                f"the log of {table} keeps no changes that are delivered; {else_}; "
                f"columnar alter {table} --set CHANGE_LOG=86400 keeps those of a day from now on"
            )
        begins = datetime.fromtimestamp(reach / 1_000, UTC).isoformat(timespec="seconds")
        raise TriggerError(f"the log of {table} reaches back to {begins} only; {else_}")

    async def say_undelivered(self, table: str, gone: Sequence[Trigger]) -> None:
        """The table is dropped with these triggers: the log says what they had not delivered."""
        if not gone:
            return
        try:
            lags = await self._owner.request_peer(messages.Undelivered(table, tuple(one.name for one in gone)))
        except ColumnarError as error:
            _log.warning("table %s is dropped: how far its triggers had come is not known: %s", table, error.text)
            return
        for name, lag in sorted(lags.items()):
            _log.warning("table %s is dropped: trigger %s goes with it, %d changes undelivered", table, name, lag)

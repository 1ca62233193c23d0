"""Add, remove, change, pause, resume and replay triggers (``derivation_changes``).

    add     a worker of one owner imports the function; then as any derivation: ADDING on disk, later RUNNING
    sync    as add, for several triggers at once; the first write also has the changed and removed triggers

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from columnar.errors import ColumnarError, IllegalArgument, TriggerError
from columnar.master.catalogue import Catalogue
from columnar.master.derivation_changes import DerivationChanges
from columnar.master.trigger_checks import TriggerChecks
from columnar.model import region_messages as messages
from columnar.model.derivations import BEGINNING, Trigger, Triggers
from columnar.model.flow_graph import check_no_cycle, with_places
from columnar.model.region_messages import Peer
from columnar.model.trigger_registration import Registration, checked
from columnar.model.trigger_sync import Plan, plan_of

_log = logging.getLogger(__name__)


class TriggerChanges(DerivationChanges[Triggers]):
    def __init__(self, catalogue: Catalogue, owner: Peer, modules: tuple[str, ...]) -> None:
        """``modules``: the modules whose functions may be triggers."""
        super().__init__(catalogue, owner, asyncio.Lock())
        self._modules = modules
        self.checks = TriggerChecks(catalogue, owner)

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
        """Add a trigger; if the very same trigger exists, of whatever owner, nothing changes.

        Returns when the trigger is on disk and every later change is logged for it.
        """
        if registration.queue:
            from columnar.model.queue_service import checked_service  # most stores serve no queue

            checked_service(registration, self._modules)
        else:
            checked(registration, self._modules)
        async with self.lock:
            await self.settle()
            registration = with_places(registration, self._catalogue.tables)
            existing = self.derivations.find(registration.name)
            if existing is not None and not existing.unusable_reason:
                wanted = replace(registration, owner=existing.registration.owner)
                if existing.registration != wanted:
                    await self._change(existing.registration, wanted)
                return
            self.checks.check_table(registration)
            self.checks.check_processes(registration)
            check_no_cycle(registration, self.checks.graph())
            await self.checks.check_function(registration)
            await self.checks.check_start(registration)
            await self._begin(self.derivations, [registration])

    async def _change(self, registered: Registration, wanted: Registration) -> None:
        """Change the declared effects of a trigger while it runs.  Raises IllegalArgument if anything else differs.

        A served queue may change in everything: no log says where its target is.
        """
        if wanted.queue:
            check_no_cycle(wanted, self.checks.graph())
            self.checks.check_processes(wanted)
            await self.checks.check_function(wanted)
            await self._write(self.derivations.with_registration(wanted))
            return
        free = {"writes": wanted.writes, "allow_cycle": wanted.allow_cycle, "allow_expiry": wanted.allow_expiry}
        if replace(registered, **free) != wanted:  # type: ignore[arg-type]  # each of its field's type
            raise IllegalArgument(f"trigger {wanted.name} exists with other settings; remove it first")
        check_no_cycle(wanted, self.checks.graph())
        if not wanted.allow_expiry:
            self.checks.check_lasting(wanted, self._catalogue.tables[wanted.table].schema)
        await self._write(self.derivations.with_registration(wanted))

    async def sync(self, wanted: Sequence[Registration], removed: Sequence[str]) -> None:
        """Make the triggers of a module as the module declares them (``model.trigger_sync``).

        A single write of the catalogue has all changed and removed triggers, and the added ones as ADDING, so after a
        kill each trigger is the old or the new one.  Workers take up the module's present source.
        """
        for one in wanted:
            checked(one, self._modules)
        async with self.lock:
            await self.settle()
            declared = [with_places(one, self._catalogue.tables) for one in wanted]
            plan = plan_of([one.registration for one in self.derivations.usable()], declared, removed)
            fresh = [*plan.added, *(change.wanted for change in plan.changed)]
            replaced = {*plan.removed, *(one.name for one in fresh)}
            self.checks.check_all(fresh, replaced)
            for one in plan.added:
                await self.checks.check_start(one)
            if declared:
                await self._take_up_source([*declared, *self._of_others(declared, replaced)])
            if not plan.is_empty:
                await self._carry_out(plan)

    def _of_others(self, declared: Sequence[Registration], replaced: set[str]) -> list[Registration]:
        """Return the triggers of other modules, which must not lose the source that they run.

        Triggers of the declaring module that were added by hand are left out, so as not to hinder the module's author.
        """
        modules = {one.module for one in declared}
        stay = [one.registration for one in self.derivations.in_use() if one.name not in replaced]
        return [one for one in stay if one.module not in modules]

    async def _carry_out(self, plan: Plan) -> None:
        wanted = self.derivations.without(plan.removed)
        for change in plan.changed:
            wanted = wanted.with_registration(change.wanted)
        await self._begin(wanted, plan.added)
        _log.info("triggers: %d added, %d changed, %d removed", len(plan.added), len(plan.changed), len(plan.removed))

    async def _begin(self, wanted: Triggers, added: Sequence[Registration]) -> None:
        """Write ``wanted`` with the ``added`` triggers; return when every later change is logged for these."""
        for registration in added:
            wanted = wanted.adding(registration)
        await self._catalogue.derivations.write_derivations(wanted)
        await self.take_up([one.name for one in added], "running")

    async def reload(self) -> None:
        """Have workers run the present source of all functions from the next call on.

        Raises TriggerError if the source lacks a function; then all functions run as before.
        """
        async with self.lock:
            await self._take_up_source([one.registration for one in self.derivations.in_use()])

    async def _take_up_source(self, users: Sequence[Registration]) -> None:
        """Have workers take up the source of ``users``.

        Raises TriggerError if a function is missing; then no source is taken up.  Faulty source may end the process
        that imports it, so a process of its own tries it first.
        """
        functions = tuple(sorted({one.function for one in users if not one.url}))
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
        """Replay the changes since ``from_ms``, or every row (BEGINNING), to a trigger.

        Returns when the replay request is on disk, and every open region begins the replay.  Raises TriggerError if
        the log does not reach back to ``from_ms``.
        """
        if from_ms < 0:
            raise IllegalArgument(
                f"a replay begins at a time (milliseconds since 1970) or at {BEGINNING}, not {from_ms}"
            )
        async with self.lock:
            await self.settle()
            registration = self.derivations.known(name).registration
            if registration.queue:
                raise IllegalArgument(f"{name} serves a queue, whose messages are gone when they are done: no replay")
            table = registration.table
            if from_ms != BEGINNING:
                else_ = f"columnar trigger replay {name} --from beginning shows it every row as it is now"
                await self.checks.check_reach(table, from_ms, else_)
            await self._catalogue.derivations.write_derivations(self.derivations.with_replay(name, from_ms))
            self.at("replayed")
            await self.publish()
        _log.info("trigger %s is shown %s again", name, f"changes since {from_ms}" if from_ms else "every row")

    async def say_undelivered(self, table: str, gone: Sequence[Trigger]) -> None:
        """Log how many changes each of these triggers, which are dropped with the table, had not delivered."""
        if not gone:
            return
        try:
            lags = await self._owner.request_peer(messages.Undelivered(table, tuple(one.name for one in gone)))
        except ColumnarError as error:
            _log.warning("table %s is dropped: how far its triggers had come is not known: %s", table, error.text)
            return
        for name, lag in sorted(lags.items()):
            _log.warning("table %s is dropped: trigger %s goes with it, %d changes undelivered", table, name, lag)

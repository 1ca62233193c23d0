"""Checks of triggers before they are added, changed or replayed: their tables, flows, processes, functions and logs.

A failed check raises an error that says what helps.  Callers hold ``DerivationChanges.lock``.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from columnar.errors import IllegalArgument, TableNotEnabled, TableNotFound, TriggerError, abbreviate
from columnar.master.catalogue import Catalogue
from columnar.model import region_messages as messages
from columnar.model.derivations import Triggers, check_bounded
from columnar.model.flow_graph import Flow, Graph, check_no_cycle, flow_of, place_of
from columnar.model.region_messages import Peer
from columnar.model.schema import Table
from columnar.model.trigger_registration import MOST_PROCESSES, Registration
from columnar.model.view_generations import base_of


class TriggerChecks:
    def __init__(self, catalogue: Catalogue, owner: Peer) -> None:
        self._catalogue = catalogue
        self._owner = owner
        self._other_flows: Callable[[], Iterable[Flow]] = tuple

    def add_flows(self, other_flows: Callable[[], Iterable[Flow]]) -> None:
        """Set ``other_flows``, which returns the graph's flows of other kinds of derivations."""
        self._other_flows = other_flows

    @property
    def _triggers(self) -> Triggers:
        return self._catalogue.derivations.triggers

    def check_all(self, fresh: list[Registration], replaced: set[str]) -> None:
        flows = [flow_of(one.registration) for one in self._triggers.usable() if one.name not in replaced]
        for one in fresh:
            self.check_table(one)
            others = [flow_of(other) for other in fresh if other.name != one.name]
            check_no_cycle(one, Graph([*flows, *others, *self._other_flows()]))
        self.check_processes(*fresh)

    def graph(self) -> Graph:
        """Return the graph of all flows as they are declared."""
        return Graph(
            [
                *(flow_of(one.registration) for one in self._triggers.usable()),
                *self._other_flows(),
            ]
        )

    def check_table(self, registration: Registration) -> None:
        name = registration.table
        entry = self._catalogue.tables.get(name)
        if not name:
            raise IllegalArgument("table name is empty")
        self._check_generation(name)
        if entry is None:
            raise TableNotFound(abbreviate(name.encode()))
        if not entry.enabled:
            raise TableNotEnabled(name)
        if entry.schema.is_system and not registration.queue:
            raise IllegalArgument(f"{name} is a table of the system; triggers go on your own")
        for read in sorted(registration.families_read):
            entry.schema.family(read.encode("latin-1"))
        if not registration.allow_expiry:
            self.check_lasting(registration, entry.schema)
        whole = [family for family, columns in registration.scope().images.items() if columns is None]
        check_bounded(entry.schema, whole, f"trigger {registration.name}")

        for label, lookup_table, _ in registration.look:
            if lookup_table not in self._catalogue.tables:
                raise IllegalArgument(f"look '{label}': there is no table {lookup_table}; create it first")
        for place in map(place_of, registration.writes):
            if place.family and place.table in self._catalogue.tables:
                self._catalogue.tables[place.table].schema.family(place.family.encode())

    def check_lasting(self, registration: Registration, table: Table) -> None:
        """Raise IllegalArgument if cells that the trigger reads expire without a change that it could follow."""
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
        """Raise IllegalArgument if the table is a view's generation without readers: it will be dropped, or was."""
        views, base = self._catalogue.derivations.views, base_of(name)
        live = views.live_table(base)
        if name != live and (views.find(name) is not None or views.swap_of(name) is not None):
            raise IllegalArgument(f"readers of view {base} see {live}, not {name}: name {live} as the trigger's table")

    def check_processes(self, *registrations: Registration) -> None:
        labels = {one.registration.process for one in self._triggers.all if one.registration.process}
        more = {one.process for one in registrations if one.process} - labels
        if more and len(labels | more) > MOST_PROCESSES:
            raise TriggerError(
                f"triggers may have {MOST_PROCESSES} processes of their own; take one of their labels: "
                + ", ".join(sorted(labels))
            )

    async def check_function(self, registration: Registration) -> None:
        function = registration.function
        if registration.url:
            return
        problem = await self._owner.request_peer(messages.CheckFunction(function))
        if problem is not None:
            raise TriggerError(f"{function} cannot be used: {problem}")

    async def check_start(self, registration: Registration) -> None:
        start_ms = registration.start_ms
        if start_ms is not None:
            else_ = f"trigger {registration.name} that starts from the beginning is shown every row as it is now"
            await self.check_reach(registration.table, start_ms, else_)

    async def check_reach(self, table: str, from_ms: int, else_: str) -> None:
        """Raise TriggerError if the table's change log does not reach back to ``from_ms``.

        ``else_``: for the message, what the user can do instead.
        """
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

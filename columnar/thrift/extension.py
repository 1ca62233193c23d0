"""Our own methods, named ``columnar...``: atomic steps on a row, tables with attributes, status."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from columnar.cluster.row_forms import Figures
from columnar.errors import IllegalArgument, TableExists
from columnar.memory_plan import MemoryPart
from columnar.model.mutation import Increment, RowMutation
from columnar.model.queue_place import FAMILY, QUEUES_TABLE, ROW_GROUP
from columnar.model.schema import Family
from columnar.model.topic import BATCHES, HEADS, ROWS_ALONE, TOPICS_TABLE
from columnar.operations.table_operations import TableOperations
from columnar.operations.writes import Outcomes
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied
from columnar.thrift import translate
from columnar.thrift.tables import family_of
from columnar.thrift.writes import WriteMethods
from columnar.version import PYTHON, VERSION, known
from columnar.wire.idl import columnar, hbase

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.schema_changes import SchemaChanges


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts in ``columnarStatus`` beside the counters of the server."""

    data_folder: str
    started_s: float  # time.time()
    connections: Callable[[], int]
    requests: Callable[[], dict[str, int]]
    memory: Callable[[], tuple[MemoryPart, ...]]


class ExtensionMethods:
    def __init__(
        self,
        operations: TableOperations,
        mutations: WriteMethods,
        changes: SchemaChanges,
        facts: Facts,
    ) -> None:
        self._access = operations.access
        self._writes = operations.writes
        self._descriptions = operations.descriptions
        self._scanners = operations.scanners
        self._mutations = mutations
        self._changes = changes
        self._facts = facts
        self.others: Callable[[], Awaitable[tuple[list[Figures], list[str]]]] | None = None  # None: there are none
        self.remarks: Callable[[], list[str]] = list

    def columnarCheckAndMutate(
        self, ctx: Any, table: bytes, row: bytes, conditions: Any, operations: Any, attributes: Any
    ) -> Any:
        """Check the conditions and apply the operations, in the given order, as one atomic step."""
        served = self._access.meant(table)
        translate.check_changing_attributes(attributes)
        mutation = _checked_mutation(served, row, conditions, operations)
        if mutation.sends:
            translate.check_places(self._access, (mutation,))

        def answer(applied: Applied | None) -> Any:
            assert applied is not None, "one row"
            return _result(mutation, applied)

        return self._writes.write_row(ctx, served, mutation, answer)

    def columnarCheckAndMutateRows(self, _ctx: Any, table: bytes, rows: Any) -> Any:
        served = self._access.meant(table)
        mutations = [_checked_mutation(served, one.row, one.conditions, one.operations) for one in rows or ()]
        if len({one.row for one in mutations}) < len(mutations):
            raise IllegalArgument("columnarCheckAndMutateRows names each row once")
        translate.check_places(self._access, mutations)

        def answer(outcomes: Outcomes) -> Any:
            return [
                columnar.CheckedRowResult(result=None if applied is None else _result(mutation, applied))
                for mutation, applied in zip(mutations, outcomes, strict=True)
            ]

        return self._writes.write_checked(served, mutations, answer)

    def columnarMutateRows(self, ctx: Any, table: bytes, batches: Any, attributes: Any, timestamp: Any) -> Any:
        is_one_row = len(batches or ()) < 2

        def answer(applied: Applied | None) -> str:
            return applied.token(is_one_row=is_one_row) if applied is not None else ""

        return self._mutations.mutate_rows(ctx, table, batches, timestamp, attributes, answer)

    def columnarCreateTable(self, ctx: Any, table: bytes, families: Any, attributes: Any, splits: Any) -> Any:
        if not families:
            raise IllegalArgument("a table needs at least one column family")
        made = [family_of(one) for one in families]
        return self._changes.create(table or b"", made, attributes or {}, list(splits or ()), creator=ctx.user)

    async def columnarQueuePrepare(self, _ctx: Any) -> None:
        """Make the table of queues, unless it is there."""
        family = Family(FAMILY.decode())
        with suppress(TableExists):
            await self._changes.create(QUEUES_TABLE.encode(), [family], {"ROW_GROUP": ROW_GROUP}, system=True)

    async def columnarTopicPrepare(self, _ctx: Any) -> None:
        """Make the table of topics, unless it is there."""
        families = [Family(one.decode()) for one in (BATCHES, HEADS)]
        with suppress(TableExists):
            await self._changes.create(TOPICS_TABLE.encode(), families, {"ROW_GROUP": ROWS_ALONE}, system=True)

    async def columnarStatus(self, _ctx: Any) -> Any:
        """Return the sums over all servers.  Servers that do not answer in time are named and not included."""
        sizes: Counter[str] = Counter()
        asking = asyncio.ensure_future(self.others()) if self.others is not None else None
        states, unasked = await self._descriptions.everywhere(self._descriptions.all())
        for state in states:
            sizes[state.info.table] += state.size_bytes
        others, silent = await asking if asking is not None else ([], [])
        return self._status(sizes, [self.figures(), *others], sorted({*unasked, *silent}))

    def figures(self) -> Figures:
        """Return the figures of this process."""
        facts = self._facts
        opened, remarks = self._descriptions.open_count(), self._descriptions.faults()
        memory = tuple([(one.name, one.used_bytes, one.limit_bytes) for one in facts.memory()])
        return Figures(opened, len(self._scanners), facts.connections(), facts.requests(), remarks, memory)

    def _status(self, sizes: Counter[str], figures: list[Figures], silent: list[str]) -> Any:
        facts = self._facts
        requests: Counter[str] = Counter()
        for one in figures:
            requests.update(one.requests)
        return columnar.StatusReport(
            version=VERSION,
            build=known().text,
            python=PYTHON,
            dataFolder=facts.data_folder,
            uptimeSeconds=time.time() - facts.started_s,
            tables=[
                columnar.TableStatus(
                    name=served.schema.name.encode(),
                    enabled=served.enabled,
                    regions=len(served.regions),
                    sizeBytes=sizes[served.schema.name],
                    attributes=dict(served.schema.attributes),
                )
                for served in self._descriptions.all()
            ],
            openRegions=sum(one.open_regions for one in figures),
            openScanners=sum(one.open_scanners for one in figures),
            connections=sum(one.connections for one in figures),
            requests=dict(requests),
            silentServers=silent,
            remarks=[*self.remarks(), *(remark for one in figures for remark in one.remarks)],
            memory=_summed(figures),
        )


def _summed(figures: Iterable[Figures]) -> list[Any]:
    """Return the parts of the servers' memory plans, each summed."""
    used: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for name, used_bytes, limit_bytes in (part for one in figures for part in one.memory):
        used[name] += used_bytes
        most[name] += limit_bytes
    return [columnar.MemoryPart(name=name, usedBytes=used[name], limitBytes=limit) for name, limit in most.items()]


def _checked_mutation(served: ServedTable, row: bytes | None, conditions: Any, operations: Any) -> RowMutation:
    mutation = translate.row_mutation(served.schema, row, conditions, operations)
    if not mutation.operations:
        raise IllegalArgument("checkAndMutate needs at least one operation")
    return mutation


def _result(mutation: RowMutation, applied: Applied) -> Any:
    increments = sum(isinstance(one, Increment) for one in mutation.operations)  # the results of increments come first
    return columnar.CheckAndMutateResult(
        applied=applied.failed_condition is None,
        timestamp=applied.timestamp,
        sequence=applied.sequence.token,
        counters=[hbase.TCell(value, stamp) for _, value, stamp in applied.results[:increments]],
        failedCondition=-1 if applied.failed_condition is None else applied.failed_condition,
    )

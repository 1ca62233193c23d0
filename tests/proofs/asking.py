"""The interface of a table for the proofs: a few methods on rows, each of which is answered, refused, or lost.

``Asking`` is the interface; ``StoreClient`` calls a real store through ``columnar.client`` and happybase's own methods.
``lying.py`` has stand-ins that break promises, for the tests of the checkers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

import happybase
from thriftpy2.thrift import TException

from columnar.client import Connection, Delete, Put, Table
from columnar.client.errors import AlreadyExists, GroupConflict, IllegalArgument, IOError, hbase_class
from columnar.client.row_groups import Transaction
from tests.proofs.group_semantics import (
    AMOUNT,
    COUNT,
    Census,
    GroupAnswer,
    GroupCall,
    GroupChange,
    GroupRead,
    RowCall,
    Transfer,
    amount_of,
)
from tests.proofs.killed_store import KilledStore
from tests.proofs.row_semantics import Call, Change, Changed, Read

assert happybase.__version__  # importing happybase is what makes Hbase_thrift importable

import Hbase_thrift  # noqa: E402

T = TypeVar("T")
AnyCall = Call | GroupCall
Cells = dict[bytes, bytes]
TIMEOUT_MS: Final = 30_000
PATIENCE_S: Final = 120.0  # with a store that says no to what it should do
REFUSED_PAUSE_S: Final = 0.05
UNDECIDED: Final = "CallTimeoutException"  # the store itself does not know whether it is on disk


class Lost(Exception):
    """No answer came.  The call was done or never will be, which the raiser of this error has made sure of."""


class Refused(Exception):
    """The store refused with a declared error; nothing was changed."""


class Asking(Protocol):
    def put_rows(self, rows: Sequence[tuple[bytes, Cells]]) -> None:
        """Put rows, each as a step of its own: after a lost call any of the rows may be stored."""

    def perform(self, row: bytes, call: AnyCall) -> Any:
        """Return the answer to a call on the row, or to one on the group of that name."""

    def page(self, start: bytes, rows: int, batch: int, *, backwards: bool = False) -> list[tuple[bytes, Cells]]:
        """Return the first ``rows`` from ``start`` on, fetched by ``batch``; fewer only at the end of the table.

        When reading backwards, an empty ``start`` is the table's end.
        """

    def close(self) -> None: ...


class StoreClient:
    """A client of one thread, which makes a new connection when the old one is lost."""

    def __init__(self, store: KilledStore, table: bytes) -> None:
        self._store = store
        self._table = table
        self._connection: Connection | None = None
        self._generation = 0

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def ask(self, question: Callable[[Connection], T]) -> T:
        connection = self._connected()
        try:
            return question(connection)
        except (IOError, IllegalArgument) as error:
            if hbase_class(error) != UNDECIDED:
                raise Refused(error.message) from None
            lost: Exception = error
        except AlreadyExists as error:
            raise Refused(str(error)) from None
        except (TException, OSError, EOFError) as error:
            lost = error
        self.close()
        self._store.settle(self._generation, repr(lost))
        raise Lost(repr(lost)) from lost

    def _connected(self) -> Connection:
        while self._connection is None:
            port, self._generation = self._store.where()
            try:
                self._connection = Connection("127.0.0.1", port, timeout=TIMEOUT_MS, routing=self._store.routing)
            except (TException, OSError) as error:
                self._store.settle(self._generation, repr(error))  # nothing was sent; the next process may be asked
                continue
            if self._store.where()[1] != self._generation:
                self.close()  # whose process is at the other end is not known
        return self._connection

    # --- Asking ------------------------------------------------------------------------------------

    def put_rows(self, rows: Sequence[tuple[bytes, Cells]]) -> None:
        def send(connection: Connection) -> None:
            batch = connection.table(self._table).batch()
            for row, cells in rows:
                batch.put(row, cells)
            batch.send()

        self.ask(send)

    def page(self, start: bytes, rows: int, batch: int, *, backwards: bool = False) -> list[tuple[bytes, Cells]]:
        def scan(connection: Connection) -> list[tuple[bytes, Cells]]:
            table = connection.table(self._table)
            return list(table.scan(row_start=start, batch_size=batch, limit=rows, reverse=backwards))

        return self.ask(scan)

    def perform(self, row: bytes, call: AnyCall) -> Any:
        if isinstance(call, RowCall):
            return self.perform(call.row, call.call)
        if not isinstance(call, Read | Change):
            return self.ask(lambda connection: in_group(connection.table(self._table), row, call))
        if isinstance(call, Read):
            return tuple(sorted(self.ask(lambda connection: self._read(connection, row, call)).items()))
        return self.ask(lambda connection: self._change(connection, row, call))

    def _read(self, connection: Connection, row: bytes, call: Read) -> Cells:
        table, columns = connection.table(self._table), list(call.columns) or None
        if call.way == "rows":
            return dict(dict(table.rows([row], columns)).get(row, {}))
        if call.way == "scan":
            return dict(dict(table.scan(row_start=row, row_stop=row + b"\0", columns=columns)).get(row, {}))
        if call.way == "cells":
            found = {column: table.cells(row, column, versions=1) for column in call.columns}
            return {column: values[0] for column, values in found.items() if values}
        return dict(table.row(row, columns))

    def _change(self, connection: Connection, row: bytes, call: Change) -> Changed:
        table, client = connection.table(self._table), connection.client
        first: Any = call.operations[0]
        if call.way == "put":
            table.put(row, {one.column: one.value for one in call.operations if isinstance(one, Put)})
        elif call.way == "mutateRows":
            batch = table.batch()
            batch.put(row, {one.column: one.value for one in call.operations if isinstance(one, Put)})
            batch.send()
        elif call.way == "delete":
            table.delete(row, [one.column for one in call.operations if isinstance(one, Delete)])
        elif call.way == "deleteAllRow":
            table.delete(row)
        elif call.way == "atomicIncrement":
            return Changed(True, (table.counter_inc(row, first.column, first.amount),))
        elif call.way == "append":
            asked = Hbase_thrift.TAppend(self._table, row, [first.column], [first.value])
            return Changed(True, (client.append(asked)[0].value,))
        elif call.way == "checkAndPut":
            condition = call.conditions[0]
            mutation = Hbase_thrift.Mutation(column=first.column, value=first.value)
            done = client.checkAndPut(self._table, row, condition.column, condition.value, mutation, {})
            return Changed(bool(done))
        else:
            result = table.check_and_mutate(row, call.conditions, call.operations)
            return Changed(result.applied, tuple(result.counters))
        return Changed(True)


def in_group(table: Table, group: bytes, call: GroupRead | GroupChange | Transfer | Census) -> GroupAnswer:
    """Make a call on several rows of a group.  Raises Refused if a transaction met others at each try."""
    if isinstance(call, GroupRead):
        return tuple((row, tuple(sorted(cells.items()))) for row, cells in table.group(group).rows().items())
    if isinstance(call, GroupChange):
        done = table.mutate_group({row: (change.conditions, change.operations) for row, change in call.rows})
        return Changed(done.applied, tuple(number for row in done.rows.values() for number in row.counters))

    def transfer(tx: Transaction) -> tuple[int, int]:
        assert isinstance(call, Transfer)
        held = amount_of(tx.row(call.source, [AMOUNT])), amount_of(tx.row(call.target, [AMOUNT]))
        if held[0] >= call.amount:
            tx.put(call.source, {AMOUNT: b"%d" % (held[0] - call.amount)})
            tx.put(call.target, {AMOUNT: b"%d" % (held[1] + call.amount)})
        return held

    def count(tx: Transaction) -> int:
        assert isinstance(call, Census)
        rows = tx.rows()
        tx.put(call.row, {COUNT: b"%d" % len(rows)})
        return len(rows)

    try:
        return table.transact(group, transfer) if isinstance(call, Transfer) else table.transact(group, count)
    except GroupConflict as conflict:
        raise Refused(str(conflict)) from None


def until_answered(ask: Callable[[], T]) -> T:
    """Repeat a call that may be done twice while its answer is lost or refused.  Raises Refused after PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except Lost:
            continue
        except Refused:
            if time.monotonic() > deadline:
                raise
            threading.Event().wait(REFUSED_PAUSE_S)

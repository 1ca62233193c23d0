"""Calls about groups of rows through two connections, and what they answer: the same wherever the groups are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from columnar.client import Append, Connection, Delete, Expect, GroupConflict, Increment, Put, Table
from columnar.client.errors import IllegalArgument, IOError
from columnar.client.row_groups import Transaction

ATTRIBUTES: Final = {"ROW_GROUP": "until:/"}
SPLITS: Final = [b"b/", b"c", b"d/"]
GROUPS: Final = [b"a/", b"b/", b"c/", b"d/"]  # of different regions


def scenario(one: Connection, other: Connection, name: str) -> list[Any]:
    """Make the table ``name`` and return the answers, without sequences and times."""
    one.create_table(name, {"f": {}, "g": {"max_versions": 3}}, attributes=ATTRIBUTES, splits=SPLITS)
    tables = (one.table(name), other.table(name))
    return [_of_group(*tables[:: 1 if number % 2 else -1], group) for number, group in enumerate(GROUPS)]


def _of_group(one: Table, other: Table, group: bytes) -> list[Any]:
    first, second, third = (group + row for row in (b"1", b"2", b"3"))
    said: list[Any] = []

    def mutate(table: Table, rows: Any) -> None:
        found = table.mutate_group(rows)
        counters = {row: result.counters for row, result in found.rows.items()}
        said.append((found.applied, counters, bool(found.sequence), found.failed_row, found.failed_condition))

    mutate(one, {first: ((), [Put(b"f:x", b"1"), Increment(b"f:n", 2)]), second: ((), [Append(b"g:log", b"a")])})
    mutate(other, {second: ([Expect.absent(b"f:x")], [Put(b"f:x", b"2")]), first: ([Expect(b"f:x", b"0")], [])})
    mutate(other, {second: ([Expect.absent(b"f:x")], [Put(b"f:x", b"2")]), first: ([Expect(b"f:x", b"1")], [])})
    mutate(one, {first: ([Expect(b"f:x", b"1")], [])})
    said.append(one.group(third).rows())
    said.append(other.group(group).rows(columns=[b"g", b"f:x"]))
    said.append(_refusal(lambda: one.mutate_group({first: ((), [Put(b"f:x", b"")]), b"z/1": ((), [])})))
    said.append(_refusal(lambda: one.mutate_group({first: ((), [Put(b"none:x", b"")])})))
    no_counter = {first: ((), [Put(b"f:x", b"")]), second: ((), [Increment(b"f:x")])}
    said.append(_refusal(lambda: other.mutate_group(no_counter)))
    calls: list[list[bytes]] = []

    def moves(tx: Transaction) -> list[bytes]:
        rows = tx.rows(columns=[b"f"])
        if not calls:
            one.put(third, {b"f:x": b"between"})  # a row that the transaction has not seen
        calls.append(list(rows))
        tx.delete(first, [b"f"])
        tx.append(third, b"g:log", b"b")
        return list(rows)

    said.append((other.transact(group, moves), calls))
    said.append(one.transact(third, lambda tx: (tx.row(first), tx.row(third, columns=[b"g:log"]))))
    said.append(_refusal(lambda: one.transact(group, lambda tx: _disturbed(tx, other, group), tries=2)))
    said.append(other.group(group).rows())
    mutate(other, {row: ((), [Delete(b"f"), Delete(b"g")]) for row in (first, second, third)})
    said.append(one.group(group).rows())
    return said


def _disturbed(tx: Transaction, other: Table, group: bytes) -> None:
    tx.row(group + b"9")
    other.counter_inc(group + b"9", b"f:n")
    tx.put(group + b"8", {b"f:never": b"written"})


def _refusal(call: Callable[[], Any]) -> str:
    try:
        call()
    except (IOError, IllegalArgument, GroupConflict) as error:
        return str(error)
    return "no refusal"

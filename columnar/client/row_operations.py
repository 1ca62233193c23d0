"""Conditions and operations on one row, as a program gives them, and as the wire has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from columnar.client.errors import IOError, WrongArgument, hbase_class
from columnar.model.queue_place import QUEUES_TABLE
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

_NO_TABLE: Final = "TableNotFoundException"

_OPS: Final = {
    "<": 0,
    "<=": 1,
    "=": 2,
    "!=": 3,
    ">=": 4,
    ">": 5,
    "exists": 6,
    "absent": 7,
    "absent or empty": 8,
    "fence": 9,
}


@dataclass(frozen=True, slots=True)
class Expect:
    """The condition ``column op value``.

    A cell with an empty value exists.  ``absent`` is the negation of ``exists``, and ``!=`` that of ``=``.  HBase's
    checkAndPut without a value is ``absent or empty``.
    """

    column: bytes
    value: bytes | None = None
    op: Literal["<", "<=", "=", "!=", ">=", ">", "exists", "absent", "absent or empty", "fence"] = "="

    def __post_init__(self) -> None:
        if self.op not in _OPS:
            raise WrongArgument(f"'{self.op}' is no operator of a condition; use one of {' '.join(_OPS)}")

    @staticmethod
    def absent(column: bytes) -> Expect:
        return Expect(column, None, "absent")

    @staticmethod
    def absent_or_empty(column: bytes) -> Expect:
        return Expect(column, None, "absent or empty")

    @staticmethod
    def fence(column: bytes, token: bytes) -> Expect:
        """Return the condition that ``column`` has no higher token than ``token``, a lease's ``token_bytes``.

        With ``Put(column, token)`` in the same call a write of an earlier holder is refused from then on.
        """
        return Expect(column, token, "fence")

    @staticmethod
    def exists(column: bytes) -> Expect:
        return Expect(column, None, "exists")


@dataclass(frozen=True, slots=True)
class Put:
    column: bytes
    value: bytes
    timestamp: int | None = None  # milliseconds; None: the server's clock
    ttl_ms: int | None = None


def puts(cells: Mapping[bytes, bytes], timestamp: int | None = None) -> list[Put]:
    """Return the puts of ``cells``, all with the same timestamp."""
    return [Put(column, value, timestamp) for column, value in cells.items()]


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes cells of a column, or of a whole family, whose timestamps are not above ``timestamp``."""

    column: bytes
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Increment:
    column: bytes
    amount: int = 1


@dataclass(frozen=True, slots=True)
class Append:
    column: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class Contribute:
    """Sets the amounts that a source contributes to totals of the row; exact even if repeated or late.

    The server stores the contribution in the cell ``members:source``.  A sequence not above the stored sequence changes
    nothing; a higher one adds the difference of the amounts to each total.  With ``order`` the source also has a cell
    in the family ``ordered``, sorted by the order's bytes, which contains ``carry``.  Families with a time to live are
    refused.
    """

    source: bytes
    sequence: int | str  # rises with each change of the source: a number, or ``Change.sequence`` of a trigger
    amounts: Mapping[bytes, int] | None  # by the column of each total, a counter; None withdraws the source
    members: bytes = b"m"
    order: bytes | None = None
    ordered: bytes = b"o"
    carry: Mapping[bytes, bytes] = field(default_factory=dict)
    relative: bool = False  # the amounts are added to the source's earlier amounts


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a message if and only if the other operations change the row, as part of the same atomic step.

    ``target`` is ``queue:NAME`` or ``topic:NAME``; the table needs the attribute SENDS.  Without a ``name`` the change
    names the message, so that it is in the queue once, whatever fails and is repeated meanwhile.  A record for a topic
    has a ``key`` and headers, and none of the other fields.
    """

    target: str | bytes
    body: bytes
    name: str | bytes = b""  # of which the queue takes one message
    group: str | bytes = b""
    priority: int = 0  # 0 to 255; the highest is popped first
    delay_ms: int = 0
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    key: str | bytes = b""


Operation = Put | Delete | Increment | Append | Contribute | Send


@dataclass(frozen=True, slots=True)
class CheckResult:
    applied: bool
    timestamp: int  # of all cells whose operation has no timestamp
    sequence: str  # opaque; for ``Triggers.wait``
    counters: list[int]  # new values of the increments, in their order
    failed_condition: int | None  # index of the first unmet condition


def change_rows(connection: Connection, operations: Iterable[Operation], method: str, *args: Any) -> Any:
    """Call a method that changes rows; the first use of queues in a store makes their table."""
    try:
        return connection.call(method, *args)
    except IOError as error:
        if hbase_class(error) != _NO_TABLE or not any(isinstance(one, Send) for one in operations):
            raise
        if QUEUES_TABLE not in str(error):
            raise
    connection.call("columnarQueuePrepare")
    return connection.call(method, *args)


def condition_to_wire(expected: Expect) -> Any:
    return columnar.Condition(column=expected.column, op=_OPS[expected.op], value=expected.value)


def check_result(result: Any) -> CheckResult:
    return CheckResult(
        result.applied,
        result.timestamp,
        text_of(result.sequence),
        [int.from_bytes(cell.value, "big", signed=True) for cell in result.counters],
        None if result.failedCondition < 0 else result.failedCondition,
    )


def to_wire(operation: Operation) -> Any:
    make = columnar.RowOperation
    if isinstance(operation, Put):
        return make(
            kind=0,
            column=operation.column,
            value=operation.value,
            timestamp=operation.timestamp,
            ttlMs=operation.ttl_ms,
        )
    if isinstance(operation, Delete):
        return make(kind=1, column=operation.column, timestamp=operation.timestamp)
    if isinstance(operation, Increment):
        return make(kind=2, column=operation.column, amount=operation.amount)
    if isinstance(operation, Contribute):
        column = operation.members + b":" + operation.source
        return make(kind=4, column=column, contribution=_contribution(operation))
    if isinstance(operation, Append):
        return make(kind=3, column=operation.column, value=operation.value)
    if isinstance(operation, Send):
        return make(kind=5, column=b"", send=_sent(operation))
    raise WrongArgument(f"{operation!r} is no operation: give Put, Delete, Increment, Append, Contribute or Send")


def _sent(send: Send) -> Any:
    return columnar.SentMessage(
        target=_bytes(send.target),
        body=send.body,
        key=_bytes(send.key),
        name=_bytes(send.name),
        group=_bytes(send.group),
        priority=send.priority,
        delayMs=send.delay_ms,
        headers=dict(send.headers),
    )


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _contribution(said: Contribute) -> Any:
    sequence = (0, 0, said.sequence) if isinstance(said.sequence, int) else _numbers(said.sequence)
    return columnar.Contribution(
        sequence=list(sequence),
        amounts=dict(said.amounts or {}),
        withdrawn=said.amounts is None,
        relative=said.relative,
        orderFamily=said.ordered if said.order is not None else b"",
        order=said.order,
        carry=dict(said.carry),
    )


def _numbers(token: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in token.split("-"))
    except ValueError:
        raise ValueError(f"a sequence is a number, or that of a change, as 7-1-42; not {token!r}") from None


def text_of(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value

"""(pure) Writes of rows as plain data for msgpack, and back, checked.

    writes     {"shapes": [[[family, qualifier], ...], ...], "rows": [puts | mutation, ...]}
    puts       [row, number of its shape, [value, ...]]              ``RowPuts``: a value for each column of the shape
    mutation   [row, nil, is synced, [operation, ...]]               ``RowMutation`` without conditions
               [row, nil, is synced, [operation, ...], hops]         ... of a flow
    operation  [0, family, qualifier, value, timestamp | nil, ttl_ms | nil]      put
               [1, family, qualifier | nil, timestamp | nil, exact]              delete
               [2, family, qualifier, amount]                                    increment
               [3, family, qualifier, value]                                     append
               [4, family, source, [origin, epoch, n], amounts | nil, [total, ...], order family, order | nil,
                [[column, value], ...], relative]                           contribution, of totals [family, qualifier]
               [5, as 4 ..., part]                                              contribution of a later part of a change

Rows of a bulk load share their columns, so a shape travels once.  Packing a put takes 0.5 us, a value of a shape
nothing but its bytes.

Knows nothing of the effect of a write, nor of its checks.
"""

from __future__ import annotations

from typing import Any, Final

from columnar.cluster.value_codec import BOOL, BYTES, INT, TRIPLE, BadValue, Codec, maybe, pair, several
from columnar.model.mutation import (
    Append,
    Contribute,
    Delete,
    Durability,
    Increment,
    Operation,
    Put,
    RowMutation,
    RowPuts,
    RowWrite,
)

_PUT, _DELETE, _INCREMENT, _APPEND, _CONTRIBUTE, _CONTRIBUTE_PART = range(6)
_Columns = tuple[tuple[bytes, bytes], ...]
_SHAPES: Final = several(several(pair(BYTES, BYTES)))
_VALUES: Final = several(BYTES)
_MAYBE_INT: Final = maybe(INT)
_MAYBE_BYTES: Final = maybe(BYTES)
_MAYBE_INTS: Final = maybe(several(INT))
_PAIRS: Final = several(pair(BYTES, BYTES))
_CONTRIBUTION: Final[tuple[Codec[Any], ...]] = (
    BYTES, BYTES, TRIPLE, _MAYBE_INTS, _PAIRS, BYTES, _MAYBE_BYTES, _PAIRS, BOOL,
)  # fmt: skip
_FIELDS: Final[dict[int, tuple[Codec[Any], ...]]] = {
    _PUT: (BYTES, BYTES, BYTES, _MAYBE_INT, _MAYBE_INT),
    _DELETE: (BYTES, _MAYBE_BYTES, _MAYBE_INT, BOOL),
    _INCREMENT: (BYTES, BYTES, INT),
    _APPEND: (BYTES, BYTES, BYTES),
    _CONTRIBUTE: _CONTRIBUTION,
    _CONTRIBUTE_PART: (*_CONTRIBUTION, INT),  # a server that does not know parts refuses it, as it must
}
_MADE: Final[dict[int, Any]] = {
    _PUT: Put, _DELETE: Delete, _INCREMENT: Increment, _APPEND: Append, _CONTRIBUTE: Contribute,
    _CONTRIBUTE_PART: Contribute,
}  # fmt: skip


def _encode(writes: tuple[RowWrite, ...]) -> dict[str, Any]:
    shapes: list[_Columns] = []
    numbers: dict[int, int] = {}  # by the identity of the columns, which rows of one call share
    rows: list[list[Any]] = []
    for write in writes:
        if isinstance(write, RowPuts):
            number = numbers.get(id(write.columns))
            if number is None:
                number = numbers[id(write.columns)] = len(shapes)
                shapes.append(write.columns)
            rows.append([write.row, number, write.values])
        else:
            assert not write.conditions, "a call with a condition concerns one row, and goes to its owner as it came"
            is_synced = write.durability is Durability.SYNC
            sent: list[Any] = [write.row, None, is_synced, [_plain(operation) for operation in write.operations]]
            rows.append([*sent, write.hops] if write.hops else sent)
    return {"shapes": _SHAPES.encode(tuple(shapes)), "rows": rows}


def _plain(operation: Operation) -> list[Any]:
    if isinstance(operation, Put):
        return [
            _PUT,
            operation.family,
            operation.qualifier,
            operation.value,
            operation.timestamp,
            operation.ttl_ms,
        ]
    if isinstance(operation, Delete):
        return [_DELETE, operation.family, operation.qualifier, operation.timestamp, operation.exact]
    if isinstance(operation, Increment):
        return [_INCREMENT, operation.family, operation.qualifier, operation.amount]
    if isinstance(operation, Append):
        return [_APPEND, operation.family, operation.qualifier, operation.value]
    kind = _CONTRIBUTE_PART if operation.part else _CONTRIBUTE
    return [kind, *[one.encode(value) for one, value in zip(_FIELDS[kind], operation.fields, strict=False)]]


def _decode(plain: Any) -> tuple[RowWrite, ...]:
    if type(plain) is not dict or "rows" not in plain:
        raise BadValue("no writes")
    shapes = _SHAPES.decode(plain.get("shapes", []))
    return tuple([_write(one, shapes) for one in _list(plain["rows"], 0)])


def _write(plain: Any, shapes: tuple[_Columns, ...]) -> RowWrite:
    parts = _list(plain, 3)
    row, shape = BYTES.decode(parts[0]), _MAYBE_INT.decode(parts[1])
    if shape is None:
        durability = Durability.SYNC if BOOL.decode(parts[2]) else Durability.ASYNC
        operations = tuple([_operation(one) for one in _list(_list(parts, 4)[3], 0)])
        return RowMutation(row, operations, (), durability, INT.decode(parts[4]) if len(parts) > 4 else 0)
    values = list(_VALUES.decode(parts[2]))
    if not 0 <= shape < len(shapes) or len(values) != len(shapes[shape]):
        raise BadValue("values without their columns")
    return RowPuts(row, shapes[shape], values)


def _operation(plain: Any) -> Operation:
    parts = _list(plain, 1)
    kind = INT.decode(parts[0])
    fields = _FIELDS.get(kind)
    if fields is None:
        raise BadValue(f"{kind} is no operation that this version knows")
    sent = _list(parts, 1 + len(fields))
    made: Operation = _MADE[kind](*[codec.decode(value) for codec, value in zip(fields, sent[1:], strict=False)])
    return made


def _list(plain: Any, least: int) -> list[Any]:
    if type(plain) is not list or len(plain) < least:
        raise BadValue("no list, or a short one, within writes")
    return plain


WRITES: Final[Codec[tuple[RowWrite, ...]]] = Codec(_encode, _decode)

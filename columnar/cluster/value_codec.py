"""(pure) Codecs between our values and plain data for msgpack: each is derived from a type, and checks on decoding.

    record       map of names to values         tuple, list    list
    bytes, str, bool, int, float                as they are    ``X | None``   nil or X
    Incarnation  "s2.17"                        Literal        its text
    Table, Registration                         bin: its JSON in the catalogue

A record is a dataclass or a named tuple; its map has the class's fields by name.  Names that the reader does not know
come from a newer version and are skipped.  A missing field takes the default of its class; if it has no default,
decoding raises BadValue.

Writes of rows have a form of their own:

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
               [6, target, key, name, group, delay_ms, priority, body, [[key, value], ...]]     a send of the change

Rows of a bulk load share their columns, so a shape is sent once.  Packing a put takes 0.5 us; a value of a shape costs
nothing but its bytes.

Knows nothing of messages, nor of the effect of a write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import call
from types import NoneType, UnionType
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from columnar.errors import DamagedData
from columnar.model import schema, trigger_registration
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
from columnar.model.owner import Incarnation, incarnation_of
from columnar.model.schema import Table
from columnar.model.send import Send
from columnar.model.trigger_registration import Registration

V = TypeVar("V")

# Fields whose name on the wire is older than their name in the class: of one class, or of all classes that have them.
_KEYS: Final = {
    "Scanned.is_not_local": "elsewhere",
    "TriggerStatus.dead_letters": "letters",
    "TriggerStatus.last_error": "error",
    "TriggerStatus.parked_rows": "parked",
    "TriggerStatus.table_name": "table",
    "ViewStatus.built_rows": "rows_built",
    "ViewStatus.last_error": "error",
    "ViewStatus.rejected_rows": "rejected",
    "ViewStatus.table": "name",
    "blocked_reason": "shut",
    "has_unreplayed_log": "is_behind",
    "is_after_row": "past",
    "is_not_local": "is_elsewhere",
    "not_local_rows": "elsewhere",
    "unreplayed_logs": "behind",
    "unusable_reason": "rests",
}
# Fields that are not sent: what the master read from a damaged catalogue, and what a gateway knows of a view itself.
_UNSENT: Final = frozenset(
    {
        "Trigger.row_cells",
        "Feed.row_cells",
        "FeedSet.numbers_data",
        "KeptView.row_cells",
        "Triggers.numbers_data",
        "ViewSet.numbers_data",
        "ViewStatus.definition_json",
        "ViewStatus.generation",
        "ViewStatus.role",
        "ViewStatus.silent_servers",
        "ViewStatus.state",
    }
)
# The types of fields whose annotations, in compiled modules, name a tuple or a union without its members.
ERASED: Final[dict[str, Any]] = {
    "Projection.families": tuple[tuple[bytes, tuple[bytes, ...] | None], ...],
    "ReadSpec.time_range": tuple[int, int],
    "ReadSpec.family_ranges": tuple[tuple[bytes, tuple[int, int]], ...],
    "ScanSpec.filter_string": bytes | None,
}


class BadValue(ValueError):
    """Plain data that is no value of the expected kind."""


class Codec(Generic[V]):
    """An encoder and a decoder; ``decode`` raises BadValue.  Constant."""

    __slots__ = ("decode", "encode")

    def __init__(self, encode: Callable[[V], Any], decode: Callable[[Any], V]) -> None:
        self.encode = encode
        self.decode = decode


def codec_of(kind: Any) -> Codec[Any]:
    """Return the codec of a type, given as in an annotation.  Raises TypeError if such values cannot be sent."""
    found = _CODECS.get(kind)
    if found is None:
        found = _CODECS[kind] = _derived(kind)
    return found


def _derived(kind: Any) -> Codec[Any]:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union) and args[1:] == (NoneType,):
        return _maybe(codec_of(args[0]))
    if origin is tuple and args[1:] == (...,):
        return _several(codec_of(args[0]), tuple)
    if origin is tuple:
        return _tuple([codec_of(arg) for arg in args])
    if origin is list:
        return _several(codec_of(args[0]), list)
    if origin is dict and args[0] is str:
        return _by_name(codec_of(args[1]))
    if origin is Literal:
        return _literal(args)
    return _record(kind)


def fields_of(kind: Any) -> tuple[str, ...]:
    """Return the fields of a record that are sent.  Raises TypeError unless it is a dataclass or a named tuple."""
    names = getattr(kind, "_fields", None) or tuple(field.name for field in fields(kind))
    return tuple(name for name in names if f"{kind.__name__}.{name}" not in _UNSENT)


# --- plain values ------------------------------------------------------------------------------------


def _same(value: V) -> V:
    return value


def _plain(kind: type[V]) -> Codec[V]:
    def decode(plain: Any) -> V:
        if type(plain) is not kind:
            raise BadValue(f"{type(plain).__name__} in the place of {kind.__name__}")
        return plain

    return Codec(_same, decode)


def _decode_float(plain: Any) -> float:
    if type(plain) not in (float, int):
        raise BadValue(f"{type(plain).__name__} in the place of a number")
    return float(plain)


def _decode_nothing(plain: Any) -> None:
    """Ignore the value: a newer version may answer something where this one expects nothing."""


def _literal(texts: tuple[str, ...]) -> Codec[str]:
    def decode(plain: Any) -> str:
        if plain not in texts:
            raise BadValue(f"{plain!r} is none of {', '.join(texts)}")
        return TEXT.decode(plain)

    return Codec(_same, decode)


# --- compositions ------------------------------------------------------------------------------------


def _maybe(one: Codec[Any]) -> Codec[Any]:
    encode, decode = one.encode, one.decode
    return Codec(
        _same if encode is _same else lambda value: None if value is None else encode(value),
        lambda plain: None if plain is None else decode(plain),
    )


def _several(one: Codec[Any], made: Callable[[list[Any]], Any]) -> Codec[Any]:
    encode, decode = one.encode, one.decode

    def decode_list(plain: Any) -> Any:
        return made([decode(item) for item in _items(plain)])

    if encode is _same:
        return Codec(list, decode_list)
    return Codec(lambda values: [encode(value) for value in values], decode_list)


def _tuple(parts: list[Codec[Any]]) -> Codec[Any]:
    encoders, decoders = [part.encode for part in parts], [part.decode for part in parts]
    count = len(parts)

    def decode(plain: Any) -> Any:
        return tuple(map(call, decoders, _items(plain, count)))  # values that a newer version appends are ignored

    if all(encode is _same for encode in encoders):
        return Codec(list, decode)
    return Codec(lambda values: list(map(call, encoders, values)), decode)


def _by_name(one: Codec[Any]) -> Codec[dict[str, Any]]:
    encode, decode = one.encode, one.decode
    return Codec(
        lambda values: {name: encode(value) for name, value in values.items()},
        lambda plain: {TEXT.decode(name): decode(value) for name, value in _map(plain).items()},
    )


def _record(made: type[V]) -> Codec[V]:
    name = made.__name__
    hints = get_type_hints(made)
    parts = []
    for field in fields_of(made):
        codec = codec_of(ERASED.get(f"{name}.{field}", hints[field]))
        key = _KEYS.get(f"{name}.{field}") or _KEYS.get(field, field)
        parts.append((field, key, codec.encode, codec.decode))

    def encode(value: V) -> dict[str, Any]:
        return {key: encode(getattr(value, field)) for field, key, encode, _ in parts}

    def decode(plain: Any) -> V:
        found = _map(plain)
        known: dict[str, Any] = {}
        for field, key, _, decode in parts:
            if key in found:
                try:
                    known[field] = decode(found[key])
                except BadValue as error:
                    raise BadValue(f"{name}.{field}: {error}") from None
        try:
            return made(**known)
        except TypeError:
            lacking = ", ".join(sorted({part[0] for part in parts} - known.keys()))
            raise BadValue(f"{name} without {lacking}") from None

    return Codec(encode, decode)


def _items(plain: Any, least: int = 0) -> list[Any]:
    if type(plain) is not list:
        raise BadValue(f"{type(plain).__name__} in the place of a list")
    if len(plain) < least:
        raise BadValue(f"{len(plain)} values in the place of {least}")
    return plain


def _map(plain: Any) -> dict[Any, Any]:
    if type(plain) is not dict:
        raise BadValue(f"{type(plain).__name__} in the place of a map")
    return plain


# --- values of the model -----------------------------------------------------------------------------


def _decode_incarnation(plain: Any) -> Incarnation:
    try:
        return incarnation_of(TEXT.decode(plain))
    except ValueError as error:
        raise BadValue(str(error)) from None


def _decode_table(plain: Any) -> Table:
    """Decode a schema.  Raises BadValue, or DamagedData if a newer version set attributes unknown to this one."""
    try:
        return schema.from_json(BYTES.decode(plain))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadValue(f"no schema of a table: {error}") from None


def _decode_registration(plain: Any) -> Registration:
    try:
        return trigger_registration.from_json(BYTES.decode(plain))
    except DamagedData as error:
        raise BadValue(error.text) from None


# --- writes ------------------------------------------------------------------------------------------

_PUT, _DELETE, _INCREMENT, _APPEND, _CONTRIBUTE, _CONTRIBUTE_PART, _SEND = range(7)
_MADE: Final[dict[int, Any]] = {
    _PUT: Put, _DELETE: Delete, _INCREMENT: Increment, _APPEND: Append, _CONTRIBUTE: Contribute,
    _CONTRIBUTE_PART: Contribute, _SEND: Send,
}  # fmt: skip
_Columns: TypeAlias = tuple[tuple[bytes, bytes], ...]


def _encode_writes(writes: tuple[RowWrite, ...]) -> dict[str, Any]:
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
            sent: list[Any] = [write.row, None, is_synced, [_encode_operation(one) for one in write.operations]]
            for send in write.sends:  # as operations: a server that does not know sends refuses them, as it must
                sent[3].append([_SEND, *send[:-1], [list(header) for header in send.headers]])
            rows.append([*sent, write.hops] if write.hops else sent)
    return {"shapes": [[list(column) for column in columns] for columns in shapes], "rows": rows}


def _encode_operation(operation: Operation) -> list[Any]:
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


def _decode_writes(plain: Any) -> tuple[RowWrite, ...]:
    if type(plain) is not dict or "rows" not in plain:
        raise BadValue("no writes")
    shapes = _SHAPES.decode(plain.get("shapes", []))
    return tuple([_decode_write(one, shapes) for one in _parts(plain["rows"], 0)])


def _decode_write(plain: Any, shapes: tuple[_Columns, ...]) -> RowWrite:
    parts = _parts(plain, 3)
    row, shape = BYTES.decode(parts[0]), _SHAPE.decode(parts[1])
    if shape is None:
        durability = Durability.SYNC if _BOOL.decode(parts[2]) else Durability.ASYNC
        decoded = [_decode_operation(one) for one in _parts(_parts(parts, 4)[3], 0)]
        operations: tuple[Any, ...] = tuple([one for one in decoded if type(one) is not Send])
        sends = tuple([one for one in decoded if isinstance(one, Send)])
        return RowMutation(row, operations, (), durability, _INT.decode(parts[4]) if len(parts) > 4 else 0, sends)
    values = _VALUES.decode(parts[2])
    if not 0 <= shape < len(shapes) or len(values) != len(shapes[shape]):
        raise BadValue("values without their columns")
    return RowPuts(row, shapes[shape], values)


def _decode_operation(plain: Any) -> Operation | Send:
    parts = _parts(plain, 1)
    kind = _INT.decode(parts[0])
    fields = _FIELDS.get(kind)
    if fields is None:
        raise BadValue(f"{kind} is no operation that this version knows")
    sent = _parts(parts, 1 + len(fields))
    made: Operation | Send = _MADE[kind](*[codec.decode(value) for codec, value in zip(fields, sent[1:], strict=False)])
    return made


def _parts(plain: Any, least: int) -> list[Any]:
    if type(plain) is not list or len(plain) < least:
        raise BadValue("no list, or a short one, within writes")
    return plain


BYTES: Final = _plain(bytes)
TEXT: Final = _plain(str)
_BOOL: Final = _plain(bool)
_INT: Final = _plain(int)
OWN_CODECS: Final[dict[Any, Codec[Any]]] = {
    bytes: BYTES,
    str: TEXT,
    bool: _BOOL,
    int: _INT,
    float: Codec(_same, _decode_float),
    None: Codec(_same, _decode_nothing),
    NoneType: Codec(_same, _decode_nothing),
    Incarnation: Codec(str, _decode_incarnation),
    Table: Codec(schema.to_json, _decode_table),
    Registration: Codec(trigger_registration.to_json, _decode_registration),
    tuple[RowWrite, ...]: Codec(_encode_writes, _decode_writes),
}
_CODECS: Final = dict(OWN_CODECS)  # and those that were derived
_SHAPE: Final = codec_of(int | None)
_SHAPES: Final = codec_of(tuple[_Columns, ...])
_VALUES: Final = codec_of(list[bytes])
_CONTRIBUTION: Final = (
    bytes, bytes, tuple[int, int, int], tuple[int, ...] | None, _Columns, bytes, bytes | None, _Columns, bool,
)  # fmt: skip
_FIELDS: Final[dict[int, list[Codec[Any]]]] = {
    kind: [codec_of(field) for field in fields]
    for kind, fields in {
        _PUT: (bytes, bytes, bytes, int | None, int | None),
        _DELETE: (bytes, bytes | None, int | None, bool),
        _INCREMENT: (bytes, bytes, int),
        _APPEND: (bytes, bytes, bytes),
        _CONTRIBUTE: _CONTRIBUTION,
        _SEND: (bytes, bytes, bytes, bytes, int, int, bytes, tuple[tuple[bytes, bytes], ...]),
        _CONTRIBUTE_PART: (*_CONTRIBUTION, int),  # a server that does not know parts refuses it, as it must
    }.items()
}

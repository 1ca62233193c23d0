"""(pure) Values of ours as plain data for msgpack, and back, checked.

    record       map of names to values         tuple     list
    frozenset    list, ascending                ``X | None``   nil or X
    bytes, str, bool, int, float                as they are
    Incarnation  "s2.17"                        Table     bin: its JSON in the catalogue

A map may have names that the reader does not know: they come from a newer version and are skipped.  A missing name
takes the default of the value's class; without a default it is a BadValue.

Each codec names its fields by hand: annotations of compiled classes do not say what a tuple holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from columnar.model import schema
from columnar.model.owner import Incarnation, OwnershipPeriod, incarnation_of
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Table

V = TypeVar("V")
W = TypeVar("W")


class BadValue(ValueError):
    """Plain data that is no value of the expected kind."""


class Codec(Generic[V]):
    """``decode`` raises BadValue.  Constant."""

    __slots__ = ("decode", "encode")

    def __init__(self, encode: Callable[[V], Any], decode: Callable[[Any], V]) -> None:
        self.encode = encode
        self.decode = decode


def _same(value: V) -> V:
    return value


def _plain(kind: type[V]) -> Codec[V]:
    def decode(plain: Any) -> V:
        if type(plain) is not kind:
            raise BadValue(f"{type(plain).__name__} in the place of {kind.__name__}")
        return plain

    return Codec(_same, decode)


BYTES: Final = _plain(bytes)
TEXT: Final = _plain(str)
BOOL: Final = _plain(bool)
INT: Final = _plain(int)


def _decode_float(plain: Any) -> float:
    if type(plain) not in (float, int):
        raise BadValue(f"{type(plain).__name__} in the place of a number")
    return float(plain)


def _decode_nothing(plain: Any) -> None:
    """A newer version may answer something where this one expects nothing."""


FLOAT: Final[Codec[float]] = Codec(_same, _decode_float)
NOTHING: Final[Codec[None]] = Codec(_same, _decode_nothing)


def maybe(one: Codec[V]) -> Codec[V | None]:
    encode, decode = one.encode, one.decode
    return Codec(
        lambda value: None if value is None else encode(value),
        lambda plain: None if plain is None else decode(plain),
    )


def several(one: Codec[V]) -> Codec[tuple[V, ...]]:
    encode, decode = one.encode, one.decode

    def decode_list(plain: Any) -> tuple[V, ...]:
        return tuple([decode(item) for item in _items(plain)])

    if encode is _same:
        return Codec(list, decode_list)
    return Codec(lambda values: [encode(value) for value in values], decode_list)


def pair(left: Codec[V], right: Codec[W]) -> Codec[tuple[V, W]]:
    def decode(plain: Any) -> tuple[V, W]:
        items = _items(plain)
        if len(items) < 2:
            raise BadValue(f"{len(items)} values in the place of two")
        return left.decode(items[0]), right.decode(items[1])

    return Codec(lambda value: [left.encode(value[0]), right.encode(value[1])], decode)


def _decode_triple(plain: Any) -> tuple[int, int, int]:
    items = _items(plain)
    if len(items) < 3:
        raise BadValue(f"{len(items)} values in the place of three")
    return INT.decode(items[0]), INT.decode(items[1]), INT.decode(items[2])


TRIPLE: Final[Codec[tuple[int, int, int]]] = Codec(list, _decode_triple)


def by_name(one: Codec[V]) -> Codec[dict[str, V]]:
    def decode(plain: Any) -> dict[str, V]:
        return {TEXT.decode(name): one.decode(value) for name, value in _map(plain).items()}

    return Codec(lambda values: {name: one.encode(value) for name, value in values.items()}, decode)


def record(made: Callable[..., V], fields: dict[str, Codec[Any]], **keys: str) -> Codec[V]:
    """Return the codec of a value that ``made`` makes of its fields, by name.

    ``keys``: the keys on the wire of fields that have another name there.
    """
    name = getattr(made, "__name__", "value")
    key_of = {field: keys.get(field, field) for field in fields}

    def encode(value: V) -> dict[str, Any]:
        return {key_of[field]: codec.encode(getattr(value, field)) for field, codec in fields.items()}

    def decode(plain: Any) -> V:
        found = _map(plain)
        known: dict[str, Any] = {}
        for field, codec in fields.items():
            key = key_of[field]
            if key in found:
                try:
                    known[field] = codec.decode(found[key])
                except BadValue as error:
                    raise BadValue(f"{name}.{field}: {error}") from None
        try:
            return made(**known)
        except TypeError:
            lacking = ", ".join(sorted(fields.keys() - known.keys()))
            raise BadValue(f"{name} without {lacking}") from None

    return Codec(encode, decode)


def _items(plain: Any) -> list[Any]:
    if type(plain) is not list:
        raise BadValue(f"{type(plain).__name__} in the place of a list")
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
    """DamagedData, the operator's, where a newer version has set attributes that this one does not know."""
    try:
        return schema.from_json(BYTES.decode(plain))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadValue(f"no schema of a table: {error}") from None


TABLE: Final[Codec[Table]] = Codec(schema.to_json, _decode_table)
INCARNATION: Final[Codec[Incarnation]] = Codec(str, _decode_incarnation)
REGION: Final = record(RegionInfo, {"table": TEXT, "region_id": INT, "start": BYTES, "end": BYTES})
OWNERSHIP_PERIOD: Final = record(OwnershipPeriod, {"server": INCARNATION, "epoch": INT})

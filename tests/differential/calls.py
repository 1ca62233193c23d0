"""(pure) One call of the Thrift 1 service as a plain value: what is generated, recorded, shrunk and replayed.

A ``Call`` holds its arguments in the order of the IDL, structs as dicts of their fields.  Bytes stay bytes;
in the text form (one JSON list) they are latin-1.  A scanner that the server has yet to number is a
``Scanner``: the endpoint that runs the calls knows which number its server gave.

Knows nothing of connections, or of which calls make sense.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from thriftpy2.thrift import TType

from columnar.wire.idl import hbase


class Scanner(NamedTuple):
    """The scanner that the ``number``-th opening of the session gave."""

    number: int


@dataclass(frozen=True, slots=True)
class Call:
    kind: str  # for the summary
    method: str
    args: tuple[Any, ...]
    opens: Scanner | None = None  # what its answer is remembered as

    @property
    def table(self) -> bytes | None:
        """The table that it names, where it names one."""
        first = self.args[0] if self.args else None
        if isinstance(first, list):
            first = first[0] if first else None
        if isinstance(first, dict):
            first = first.get("table")
        return first if isinstance(first, bytes) else None

    @property
    def scanner(self) -> Scanner | None:
        """The scanner that it moves or closes."""
        return self.args[0] if self.args and isinstance(self.args[0], Scanner) else None

    def __str__(self) -> str:
        opened = f"  -> scanner {self.opens.number}" if self.opens else ""
        return f"{self.method}({', '.join(map(repr, self.args))}){opened}"


def to_text(call: Call) -> str:
    return json.dumps([call.kind, call.method, _plain(call.args), call.opens.number if call.opens else None])


def from_text(text: str) -> Call:
    kind, method, args, opens = json.loads(text)
    read = tuple(
        Scanner(value["$scanner"]) if isinstance(value, dict) and "$scanner" in value else _typed(field, value)
        for value, field in zip(args, _fields(method), strict=True)
    )
    return Call(kind, method, read, Scanner(opens) if opens is not None else None)


def to_thrift(call: Call) -> list[Any]:
    """The arguments as thriftpy2 takes them; scanners are left for the caller to fill in."""
    return [
        value if isinstance(value, Scanner) else _struct(field, value)
        for value, field in zip(call.args, _fields(call.method), strict=True)
    ]


def renamed(call: Call, tables: Mapping[bytes, bytes]) -> Call:
    """The same call on other tables."""
    return Call(call.kind, call.method, tuple(_renamed(arg, tables) for arg in call.args), call.opens)


def _renamed(value: Any, tables: Mapping[bytes, bytes]) -> Any:
    if isinstance(value, bytes):
        return tables.get(value, value)
    if isinstance(value, list):
        return [_renamed(one, tables) for one in value]
    if isinstance(value, dict):
        return {name: _renamed(one, tables) for name, one in value.items()}
    return value


def _fields(method: str) -> list[tuple[int, Any]]:
    """(type, what it is made of) of each argument."""
    return _members(getattr(hbase.Hbase, method + "_args").thrift_spec)


def _members(spec: Mapping[int, Any]) -> list[tuple[int, Any]]:
    return [(field[0], field[2] if len(field) > 3 else None) for _, field in sorted(spec.items())]


def _element(of: Any) -> tuple[int, Any]:
    """The type of a container's element: a number, or (number, what it is made of)."""
    return of if isinstance(of, tuple) else (of, None)


def _plain(value: Any) -> Any:
    if isinstance(value, Scanner):
        return {"$scanner": value.number}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {_plain(name): _plain(one) for name, one in value.items()}
    return value


def _typed(field: tuple[int, Any], value: Any) -> Any:
    """What ``_plain`` made of a value, back again."""
    kind, of = field
    if value is None:
        return None
    if kind == TType.BINARY:
        return value.encode("latin-1")
    if kind == TType.LIST:
        return [_typed(_element(of), one) for one in value]
    if kind == TType.MAP:
        return {name.encode("latin-1"): one.encode("latin-1") for name, one in value.items()}
    if kind == TType.STRUCT:
        fields = {spec[1]: _members({1: spec})[0] for spec in of.thrift_spec.values()}
        return {name: _typed(fields[name], one) for name, one in value.items()}
    return value


def _struct(field: tuple[int, Any], value: Any) -> Any:
    kind, of = field
    if value is None:
        return None
    if kind == TType.LIST:
        return [_struct(_element(of), one) for one in value]
    if kind == TType.STRUCT:
        fields = {spec[1]: _members({1: spec})[0] for spec in of.thrift_spec.values()}
        return of(**{name: _struct(fields[name], one) for name, one in value.items()})
    return value

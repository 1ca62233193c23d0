"""(pure) Classes made from a parsed interface definition: structs, exceptions, enumerations and a service.

After each change of an IDL, ``make idl`` has thriftpy2 parse it into a JSON file beside it.  A server therefore starts
without a parser, 60 ms sooner, and uses 6 MB less memory.  The JSON has this form:

    type       := number | "Name" | [15, type] | [14, type] | [13, key type, value type]
    field      := [id, name, type, default, required]
    definition := {"enums": {name: {member: value}}, "structs": {name: [field]},
                   "exceptions": {name: [field]}, "services": {name: service}}
    service    := {"extends": name or null, "methods": {name: signature}}
    signature  := {"args": [field], "result": [field], "oneway": true?}   result 0: the success

In ``type``, a number is Thrift's own number of the type.

The classes have ``thrift_spec`` and ``default_spec`` in thriftpy2's form, so thriftpy2's clients and codecs accept
them.  Their constructors take the fields in the order of the IDL file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from columnar.wire.sent_puts import Mutation

I32: Final = 8
STRUCT: Final = 12
MAP: Final = 13

Spec = dict[int, tuple[Any, ...]]  # field id -> (type, name[, inner], required)
Defaults = list[tuple[str, Any]]

_WRITTEN_OUT: Final[dict[str, Any]] = {"Mutation": Mutation}


class Struct:
    """Base class of all structs; two structs are equal if their fields are."""

    thrift_spec: ClassVar[Spec] = {}
    default_spec: ClassVar[Defaults] = []

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # they can be changed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def read(self, protocol: Any) -> None:
        """Read the fields; called by thriftpy2's clients."""
        protocol.read_struct(self)

    def write(self, protocol: Any) -> None:
        protocol.write_struct(self)


class WireError(Struct, Exception):
    """Base of the exceptions that an IDL declares."""

    message: Any  # text; bytes if thriftpy2's client was told not to decode text
    __hash__ = Exception.__hash__  # type: ignore[assignment]

    def __str__(self) -> str:
        return repr(self)


class Enumeration:
    """Base of the enumerations; members are plain numbers."""

    _VALUES_TO_NAMES: ClassVar[dict[int, str]] = {}
    _NAMES_TO_VALUES: ClassVar[dict[str, int]] = {}


class Signature:
    """Arguments and results of a method; the result's field 0 is the success."""

    __slots__ = ("args", "args_defaults", "oneway", "result", "result_defaults")

    def __init__(
        self, args: Spec, args_defaults: Defaults, result: Spec, result_defaults: Defaults, oneway: bool
    ) -> None:
        self.args = args
        self.args_defaults = args_defaults
        self.result = result
        self.result_defaults = result_defaults
        self.oneway = oneway


class ServiceDefinition:
    """A service: ``signatures`` maps its methods to their signatures.

    The attributes that thriftpy2's client reads are made at first use: ``thrift_services``, ``NAME_args`` and
    ``NAME_result``.
    """

    def __init__(self, name: str, signatures: dict[str, Signature]) -> None:
        self.__name__ = name
        self.signatures = signatures
        self.thrift_services = list(signatures)

    def __getattr__(self, name: str) -> type[Struct]:
        method, _, part = name.rpartition("_")
        signature = self.signatures.get(method)
        if signature is None or part not in ("args", "result"):
            raise AttributeError(f"{self.__name__} has no {name}")
        if part == "args":
            made = _struct(name, signature.args, signature.args_defaults)
        else:
            made = _struct(name, signature.result, signature.result_defaults)
            made.oneway = signature.oneway  # type: ignore[attr-defined]
        setattr(self, name, made)
        return made


def load(text: bytes) -> dict[str, SimpleNamespace]:
    """Return the definitions of a JSON file by name, each with its types and services as attributes.

    A definition may name types of earlier definitions.
    """
    known: dict[str, Any] = {}
    return {name: SimpleNamespace(**_definition(definition, known)) for name, definition in json.loads(text).items()}


def _definition(definition: Mapping[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, members in definition["enums"].items():
        made[name] = known[name] = _enumeration(name, members)
    for base, kind in ((Struct, "structs"), (WireError, "exceptions")):
        for name, fields in definition[kind].items():
            spec, defaults = _specs(fields, known)
            made[name] = known[name] = _struct(name, spec, defaults, base)
    for name, service in definition["services"].items():
        inherited = known[service["extends"]].signatures if service["extends"] else {}
        own = {method: _signature(said, known) for method, said in service["methods"].items()}
        made[name] = known[name] = ServiceDefinition(name, inherited | own)
    return made


def _signature(said: Mapping[str, Any], known: Mapping[str, Any]) -> Signature:
    return Signature(*_specs(said["args"], known), *_specs(said["result"], known), said.get("oneway", False))


def _specs(fields: Iterable[list[Any]], known: Mapping[str, Any]) -> tuple[Spec, Defaults]:
    spec: Spec = {}
    defaults: Defaults = []
    for number, name, kind, default, required in fields:
        inner = _inner(kind, known)
        spec[number] = (inner[0], name, inner[1], required) if isinstance(inner, tuple) else (inner, name, required)
        defaults.append((name, default))
    return spec, defaults


def _inner(kind: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(kind, int):
        return kind
    if isinstance(kind, str):
        of = known[kind]
        return (I32 if issubclass(of, Enumeration) else STRUCT, of)
    if kind[0] == MAP:
        return (MAP, (_inner(kind[1], known), _inner(kind[2], known)))
    return (kind[0], _inner(kind[1], known))


def _struct(name: str, spec: Spec, defaults: Defaults, base: type[Struct] = Struct) -> type[Struct]:
    by_hand: type[Struct] | None = _WRITTEN_OUT.get(name)
    if by_hand is not None and by_hand.thrift_spec == spec and by_hand.default_spec == defaults:
        return by_hand
    return type(
        name, (base,), {"thrift_spec": spec, "default_spec": defaults, "__init__": _constructor(name, defaults)}
    )


def _constructor(name: str, defaults: Defaults) -> Callable[..., None]:
    """Return ``def __init__(self, field=default, ...)``, compiled from source text to be as fast as written by hand."""
    if not defaults:
        return lambda self: None
    arguments = ", ".join(f"{field}={default!r}" for field, default in defaults)
    body = "; ".join(f"self.{field} = {field}" for field, _ in defaults)
    made: dict[str, Any] = {}
    source = compile(f"def __init__(self, {arguments}): {body}", f"<constructor of {name}>", "exec")
    exec(source, made)  # noqa: S102 - names and defaults of our own IDL
    function: Callable[..., None] = made["__init__"]
    return function


def _enumeration(name: str, members: Mapping[str, int]) -> type[Enumeration]:
    names = dict(members)
    values = {value: member for member, value in names.items()}
    return type(name, (Enumeration,), {**names, "_VALUES_TO_NAMES": values, "_NAMES_TO_VALUES": names})

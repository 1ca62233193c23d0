"""Parsing of interface definitions: ``python -m columnar.wire.parsing`` writes their JSONs (``make idl``).

    columnar/thrift/hbase.thrift, columnar.thrift  ->  columnar.json
    columnar/thrift/hbase2.thrift                  ->  hbase2.json

Run it after each change of an IDL; a test compares the JSONs with the IDLs.  ``definitions`` states the JSONs' form.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
import thriftpy2

from columnar.wire.definitions import MAP

FILES: Final = Path(__file__).parents[1] / "thrift"
PARSED: Final = {"columnar.json": ("hbase.thrift", "columnar.thrift"), "hbase2.json": ("hbase2.thrift",)}


def parsed(sources: tuple[str, ...], folder: Path = FILES) -> str:
    """Return the text of the JSON; the last source includes the sources before it."""
    definitions: dict[str, Any] = {}
    for source in sources:
        name = source.removesuffix(".thrift")
        definitions[name] = _definition(thriftpy2.load(str(folder / source), module_name=f"parsed_{name}_thrift"))
    return _lines(definitions, "", depth=3) + "\n"


def _lines(value: dict[str, Any], indent: str, depth: int) -> str:
    """Return JSON with a line for each struct, enumeration or method, so that a change of the IDL changes few lines."""
    if not depth or not value:
        return json.dumps(value)
    inner = indent + " "
    members = (f"{inner}{json.dumps(key)}: {_member(member, inner, depth)}" for key, member in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def _member(member: Any, indent: str, depth: int) -> str:
    if not isinstance(member, dict):
        return json.dumps(member)
    return _lines(member, indent, depth + 1 if "methods" in member else depth - 1)


def _definition(module: ModuleType) -> dict[str, Any]:
    meta: Any = vars(module)["__thrift_meta__"]
    unions = meta["unions"]  # read and written as structs
    structs = {cls.__name__: _fields(cls) for cls in sorted(meta["structs"] + unions, key=_line)}
    exceptions = {cls.__name__: _fields(cls) for cls in meta["exceptions"]}
    enums = {cls.__name__: cls._NAMES_TO_VALUES for cls in meta["enums"]}
    services = {service.__name__: _service(service) for service in meta["services"]}
    return {"enums": enums, "structs": structs, "exceptions": exceptions, "services": services}


def _line(cls: Any) -> int:
    """Return the line of ``cls`` in its file; all types that ``cls`` names come before it."""
    number: int = cls.__thrift_lineno__
    return number


def _service(service: Any) -> dict[str, Any]:
    base = service.__mro__[1]
    own = [name for name in service.thrift_services if f"{name}_args" in vars(service)]
    return {
        "extends": base.__name__ if base is not object else None,
        "methods": {name: _signature(service, name) for name in own},
    }


def _signature(service: Any, name: str) -> dict[str, Any]:
    result = getattr(service, f"{name}_result")
    said: dict[str, Any] = {"args": _fields(getattr(service, f"{name}_args")), "result": _fields(result)}
    if result.oneway:
        said["oneway"] = True
    return said


def _fields(cls: Any) -> list[list[Any]]:
    by_name = {field[1]: (number, field) for number, field in cls.thrift_spec.items()}
    found = []
    for name, default in cls.default_spec:
        number, field = by_name[name]
        found.append([number, name, _type(field), default, field[-1]])
    return found


def _type(field: tuple[Any, ...]) -> Any:
    return field[0] if len(field) == 3 else _spec((field[0], field[2]))


def _spec(spec: Any) -> Any:
    if isinstance(spec, int):
        return spec
    kind, inner = spec
    if isinstance(inner, type):
        return inner.__name__
    if kind == MAP:
        return [kind, _spec(inner[0]), _spec(inner[1])]
    return [kind, _spec(inner)]


def main() -> None:
    for name, sources in PARSED.items():
        (FILES / name).write_text(parsed(sources), encoding="utf-8")
        click.echo(f"{FILES / name}: parsed {', '.join(sources)}")


if __name__ == "__main__":
    main()

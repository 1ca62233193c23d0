"""A validator of the keywords of JSON Schema that the schemas in ``tests/data`` have, and what makes extracts.

A keyword that an extract has and the validator does not know is an error: ``reduced`` drops those that refuse nothing.
``allOf`` of definitions with ``unevaluatedProperties`` is one object with all properties, as ``merged`` makes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = dict[str, Any]
_IGNORED: Final = frozenset({"description", "title", "default", "deprecated", "format", "$schema", "$id", "$defs"})
_IGNORED_HERE: Final = re.compile(r"x-kubernetes-\S+")
_NESTED: Final = ("items", "additionalProperties")
_NAMED: Final = ("properties", "patternProperties")
_LISTED: Final = ("oneOf", "anyOf", "allOf")
_KNOWN: Final = frozenset({
    *_NESTED, *_NAMED, *_LISTED, "type", "required", "enum", "$ref", "pattern", "minimum", "maximum", "uniqueItems",
    "unevaluatedProperties",
})  # fmt: skip
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def errors_by(schema: Schema, value: Any, definitions: Mapping[str, Schema], path: str) -> Iterator[str]:
    """Yield what the schema refuses, each with its path."""
    if "$ref" in schema:
        yield from errors_by(definitions[schema["$ref"]], value, definitions, path)
        return
    if "oneOf" in schema:
        if sum(not list(errors_by(one, value, definitions, path)) for one in schema["oneOf"]) != 1:
            yield f"{path}: {value!r} is not of one of the types"
        return
    if "anyOf" in schema and all(list(errors_by(one, value, definitions, path)) for one in schema["anyOf"]):
        yield f"{path}: {value!r} is of none of the types"
    types = schema.get("type", [])
    if types and not any(_is_of(value, one) for one in ([types] if isinstance(types, str) else types)):
        yield f"{path}: {value!r} is not {types}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, list):
        if schema.get("uniqueItems") and any(one in value[:number] for number, one in enumerate(value)):
            yield f"{path}: an item is there twice"
        for number, one in enumerate(value):
            yield from errors_by(schema.get("items", {}), one, definitions, f"{path}[{number}]")
    elif isinstance(value, dict):
        yield from _errors_in_object(schema, value, definitions, path)
    elif isinstance(value, str):
        if "pattern" in schema and re.search(schema["pattern"], value) is None:
            yield f"{path}: {value!r} does not match {schema['pattern']}"
    elif _is_of(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is out of range"


def _errors_in_object(
    schema: Schema, value: dict[str, Any], definitions: Mapping[str, Schema], path: str
) -> Iterator[str]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    others = schema.get("additionalProperties", True)
    yield from (f"{path}: {name} is missing" for name in schema.get("required", []) if name not in value)
    for name, one in value.items():
        matching = [its for pattern, its in patterns.items() if re.search(pattern, name)]
        if name in known:
            matching.append(known[name])
        for its in matching:
            yield from errors_by(its, one, definitions, f"{path}.{name}")
        if not matching and others is False:
            yield f"{path}: there is no {name}"
        elif not matching and isinstance(others, dict):
            yield from errors_by(others, one, definitions, f"{path}.{name}")


def _is_of(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


# --- extracts ----------------------------------------------------------------------------------------------


def reduced(schema: Any) -> Any:
    """Return the schema without the keywords that refuse nothing, and with references by name."""
    if not isinstance(schema, dict):
        return schema
    found = {key: one for key, one in schema.items() if key not in _IGNORED and not _IGNORED_HERE.fullmatch(key)}
    assert found.keys() <= _KNOWN, f"the validator does not know {found.keys() - _KNOWN}"
    for key in set(_NESTED) & found.keys():
        found[key] = reduced(found[key])
    for key in set(_NAMED) & found.keys():
        found[key] = {name: reduced(one) for name, one in found[key].items()}
    for key in set(_LISTED) & found.keys():
        found[key] = [reduced(one) for one in found[key]]
    if "$ref" in found:
        found["$ref"] = found["$ref"].rpartition("/")[2]
    return found


def merged(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Return the reduced schema of an object with ``allOf`` as one of its own properties and those of its parts."""
    parts = [definitions[one["$ref"]] for one in schema["allOf"]]
    found = {key: one for key, one in schema.items() if key not in ("allOf", "unevaluatedProperties")}
    found["type"] = "object"
    found["additionalProperties"] = schema["unevaluatedProperties"]
    for key in _NAMED:
        found[key] = {name: one for part in [*parts, schema] for name, one in part.get(key, {}).items()}
    assert not any(one.keys() - {*_NAMED, "type"} for one in parts), "a part has more than properties"
    return found


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for one in schema.values():
            yield from references(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from references(one)

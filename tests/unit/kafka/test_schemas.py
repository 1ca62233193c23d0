"""The tables of Kafka's messages, against the definitions that Kafka's own project writes its messages from.

kafka-python has those definitions as they are, JSON with comments.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from columnar.kafka.schemas import APIS, Api, Array, Field

pytest.importorskip("kafka", reason="kafka-python is not installed: make dev")

_NUMBERS = {"int8", "int16", "int32", "int64", "bool"}


def load_json(name: str) -> Any:
    """Return a definition, without its comments."""
    text = resources.files("kafka.protocol.schemas.resources").joinpath(f"{name}.json").read_text()
    return json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))


def is_in(versions: str, version: int) -> bool:
    first, separator, last = versions.partition("-")
    if versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    return int(first) <= version <= int(last if separator else first)


def defined(fields: list[dict[str, Any]], version: int, common: dict[str, Any]) -> list[Any]:
    """Return the kinds of the fields of a version, as ``ours`` does; tagged fields may be left out by anybody."""
    found = []
    for field in fields:
        if not is_in(field["versions"], version) or is_in(field.get("taggedVersions", "none"), version):
            continue
        kind = field["type"]
        is_nullable = is_in(field.get("nullableVersions", "none"), version)
        is_array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        if kind not in _NUMBERS | {"string", "bytes", "records", "uuid"}:
            kind = defined(field.get("fields") or common[kind], version, common)
        kind = "bytes" if kind == "records" else kind
        found.append((["array", kind] if is_array else kind, is_nullable))
    return found


def ours(fields: tuple[Field, ...], version: int) -> list[Any]:
    found = []
    for field in fields:
        if field.is_in(version):
            kind: Any = field.kind.of if isinstance(field.kind, Array) else field.kind
            kind = ours(kind, version) if isinstance(kind, tuple) else kind
            is_array = isinstance(field.kind, Array)
            found.append((["array", kind] if is_array else kind, version >= field.nullable))
    return found


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_fields_are_those_of_kafka_in_each_version(api: Api) -> None:
    for kind, fields in (("Request", api.request), ("Response", api.response)):
        schema = load_json(f"{api.name}{kind}")
        assert schema["apiKey"] == api.number
        common = {one["name"]: one["fields"] for one in schema.get("commonStructs", [])}
        for version in range(api.first, api.last + 1):
            assert ours(fields, version) == defined(schema["fields"], version, common), f"{kind} version {version}"
            assert (version >= api.flexible) == is_in(schema["flexibleVersions"], version)


def test_names_of_fields_are_unique_in_each_struct() -> None:
    def check(fields: tuple[Field, ...]) -> None:
        names = [field.name for field in fields]
        assert len(names) == len(set(names))
        for field in fields:
            kind = field.kind.of if isinstance(field.kind, Array) else field.kind
            if isinstance(kind, tuple):
                check(kind)

    for api in APIS.values():
        check(api.request)
        check(api.response)

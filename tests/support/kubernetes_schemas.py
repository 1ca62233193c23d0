"""The schemas of the few kinds of Kubernetes objects that ``packaging`` has, and a validator of what they use.

``tests/data/kubernetes.json`` is an extract of the strict schemas of Kubernetes 1.37, without the descriptions, as the
package ``kubernetes-validate`` has them.  The package itself takes 22 MB, and all environments would have it.  To renew
the extract: ``pip download --no-deps kubernetes-validate``, then

    python -m tests.support.kubernetes_schemas kubernetes_validate-1.37.0-py3-none-any.whl
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[1] / "data" / "kubernetes.json"
RELEASE: Final = "v1.37.0"
KINDS: Final = {
    "v1 Service": "service-v1",
    "v1 PersistentVolumeClaim": "persistentvolumeclaim-v1",
    "v1 ConfigMap": "configmap-v1",
    "v1 Secret": "secret-v1",
    "apps/v1 StatefulSet": "statefulset-apps-v1",
    "policy/v1 PodDisruptionBudget": "poddisruptionbudget-policy-v1",
    "storage.k8s.io/v1 StorageClass": "storageclass-storage-v1",
    "networking.k8s.io/v1 NetworkPolicy": "networkpolicy-networking-v1",
}
_USED: Final = frozenset({"type", "properties", "additionalProperties", "required", "items", "enum", "$ref", "oneOf"})
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def errors_in(document: Any) -> list[str]:
    """Return what the schema of the document's kind refuses, each with its path."""
    schemas = json.loads(DATA.read_text())
    kind = f"{document.get('apiVersion')} {document.get('kind')}"
    if kind not in schemas["kinds"]:
        return [f"no schema of {kind!r}"]
    return list(_errors(document, schemas["kinds"][kind], schemas["definitions"], kind.split()[1]))


def _errors(value: Any, schema: dict[str, Any], definitions: dict[str, Any], path: str) -> Iterator[str]:
    if "$ref" in schema:
        yield from _errors(value, definitions[schema["$ref"]], definitions, path)
        return
    if "oneOf" in schema:
        if sum(not list(_errors(value, one, definitions, path)) for one in schema["oneOf"]) != 1:
            yield f"{path}: {value!r} is not of one of the types"
        return
    types = schema.get("type", [])
    if types and not any(_is_of(value, one) for one in ([types] if isinstance(types, str) else types)):
        yield f"{path}: {value!r} is not {types}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _errors(one, schema.get("items", {}), definitions, f"{path}[{number}]")
    elif isinstance(value, dict):
        yield from _errors_in_object(value, schema, definitions, path)


def _errors_in_object(
    value: dict[str, Any], schema: dict[str, Any], definitions: dict[str, Any], path: str
) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{path}: {name} is missing" for name in schema.get("required", []) if name not in value)
    for name, one in value.items():
        if name in known:
            yield from _errors(one, known[name], definitions, f"{path}.{name}")
        elif others is False:
            yield f"{path}: there is no {name}"
        elif isinstance(others, dict):
            yield from _errors(one, others, definitions, f"{path}.{name}")


def _is_of(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


# --- the extract -------------------------------------------------------------------------------------------


def _extract(wheel: Path) -> dict[str, Any]:
    folder = f"kubernetes_validate/kubernetes-json-schema/{RELEASE}-local-strict"
    with zipfile.ZipFile(wheel) as archive:
        every = json.loads(archive.read(f"{folder}/_definitions.json"))["$defs"]
        kinds = {kind: _reduced(json.loads(archive.read(f"{folder}/{name}.json"))) for kind, name in KINDS.items()}
    definitions: dict[str, Any] = {}
    wanted = list(_references(list(kinds.values())))
    while wanted:
        name = wanted.pop()
        if name not in definitions:
            definitions[name] = _reduced(every[name])
            wanted += _references(definitions[name])
    source = f"Kubernetes {RELEASE}, Apache License 2.0, by {wheel.name}; see tests/support/kubernetes_schemas.py"
    return {"source": source, "kinds": kinds, "definitions": definitions}


def _reduced(schema: Any) -> Any:
    """Return the schema with the keywords that the validator knows, and references by name."""
    if not isinstance(schema, dict):
        return schema
    found = {key: one for key, one in schema.items() if key in _USED}
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = _reduced(found[key])
    if "properties" in found:
        found["properties"] = {name: _reduced(one) for name, one in found["properties"].items()}
    if "oneOf" in found:
        found["oneOf"] = [_reduced(one) for one in found["oneOf"]]
    if "$ref" in found:
        found["$ref"] = found["$ref"].rpartition("/")[2]
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for one in schema.values():
            yield from _references(one)
    elif isinstance(schema, list):
        for one in schema:
            yield from _references(one)


if __name__ == "__main__":
    DATA.write_text(json.dumps(_extract(Path(sys.argv[1])), separators=(",", ":"), sort_keys=True) + "\n")

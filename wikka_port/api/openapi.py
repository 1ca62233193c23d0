"""(pure) The description of the API in OpenAPI 3.1, made from ``operations`` and the types in ``records``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from wikka_port.api import records
from wikka_port.api.operations import OPERATIONS, PREFIX, Operation

_REF: Final = "#/components/schemas/{name}"
_SAID: Final[Mapping[int, str]] = {
    200: "Done.",
    201: "Made.",
    202: "Kept until an administrator has looked at it; `url` shows what becomes of it.",
    204: "Done; there is no body.",
    304: "The caller has this state.",
    400: "The request cannot be understood.",
    401: "No valid key came with a request that needs one.",
    403: "The key has not the scope, or the account not the right.",
    404: "There is no such thing, or the caller may not know of it.",
    409: "The state of the wiki does not allow it; the detail says why.",
    411: "A Content-Length is missing.",
    412: "The thing is not in the state that the request names; `current` has the page as it is.",
    413: "Too large.",
    415: "The wiki takes no content of this type.",
    416: "The file has no such part.",
    422: "A parameter or a field has a value that it cannot have.",
    428: "The request does not say which state it changes.",
    429: "Too many changes in a short time; `Retry-After` says when the next one can come.",
    500: "The wiki has a fault, which is logged.",
    503: "The store is away, or the wiki is busy; `Retry-After` says when to come again.",
}
_HEADERS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "": (),
    "read": (("If-None-Match", "The ETag of the state that the caller has."),),
    "change": (("If-Match", "The ETag of the state that is changed, or *."),),
    "put": (
        ("If-Match", "The ETag of the state that is changed, or *."),
        ("If-None-Match", "* if there is nothing yet."),
    ),
}


@cache
def description() -> bytes:
    """Return the description as JSON."""
    types = sorted({one for operation in OPERATIONS for one in _types_of(operation)}, key=lambda one: one.__name__)
    _, schemas = msgspec.json.schema_components([*types, records.Problem], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    key = "A key of an account, which its settings make: /-/keys."
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "The wiki",
            "version": "1",
            "description": (
                "Pages, revisions, files, searches and changes. Who sends no key reads what visitors without an "
                "account read. Refusals are problem details (RFC 9457)."
            ),
        },
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": key}},
        },
    }
    return msgspec.json.encode(document)


def _types_of(operation: Operation) -> set[type]:
    found: set[type] = {one for one in operation.answers.values() if one is not None}
    return found | ({operation.body} if operation.body else set())


def _described(operation: Operation) -> dict[str, Any]:
    key: list[dict[str, list[str]]] = [{"key": []}]
    found: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.says,
        "description": f"Scope: {operation.scope}.",
        "security": key if operation.needs_key else [*key, {}],
        "parameters": [*_parameters(operation.parameters), *_headers(operation)],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(operation.body)}}}
    elif operation.takes_content:
        found["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    return found


def _ref(one: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=one.__name__)}


def _parameters(given: type[records.Parameters]) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(given)
    of_type = schema["$defs"][given.__name__]
    found = []
    for name, kind in of_type["properties"].items():
        is_required = name in of_type.get("required", ())
        said = {key: value for key, value in kind.items() if key != "description"}
        one = {"name": name, "in": "query", "required": is_required, "schema": _without_null(said)}
        found.append(one | ({"description": kind["description"]} if "description" in kind else {}))
    return found


def _without_null(kind: dict[str, Any]) -> dict[str, Any]:
    """Return the type of a parameter that may be left out; a query has no null."""
    kinds = [one for one in kind.get("anyOf", ()) if one != {"type": "null"}]
    return kinds[0] if kinds else kind


def _headers(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": said}
        for name, said in _HEADERS[operation.preconditions]
    ]


def _responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in operation.answers.items():
        found[str(status)] = {"description": _SAID[status]}
        if kind is not None:
            found[str(status)]["content"] = {"application/json": {"schema": _ref(kind)}}
    if operation.sends_content:
        found["200"]["content"] = {"*/*": {}}
        found["206"] = {"description": "A part of the content.", "content": {"*/*": {}}}
    if operation.preconditions == "read":
        found["304"] = {"description": _SAID[304]}
    for status in operation.statuses:
        content = {} if status in (411, 416) else {"application/problem+json": {"schema": _ref(records.Problem)}}
        found[str(status)] = {"description": _SAID[status]} | ({"content": content} if content else {})
    return found

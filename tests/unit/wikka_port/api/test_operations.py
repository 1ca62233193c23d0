"""Every operation against its own description: statuses, types of answers, and inputs that it must refuse."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final, Never

import msgspec
import pytest

from tests.support.api_client import ALL, ApiClient, ApiScene
from wikka_port.api.openapi import description
from wikka_port.api.operations import OPERATIONS, PREFIX, Operation
from wikka_port.api.records import Problem
from wikka_port.moving.refusals import Busy

SEED: Final = 39
# Correct parameters and bodies, by operation.
NAME: Final = {"name": "Page"}
FILE: Final = {"page": "Page", "name": "Plan.txt"}
NOTICE: Final = f"{8_249_999_999_999}{'0' * 16}"
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    **{key: {} for key in ("readMe", "listWatches", "readInbox", "markRead")},
    "unwatch": {"id": "bpage"},
    "clearInbox": {"until": NOTICE},
    "removeNotice": {"id": NOTICE},
    "listPages": {"prefix": "P"},
    "search": {"q": "text"},
    "listChanges": {},
    **{key: {**NAME, "number": 1} for key in ("readRevision", "removeComment", "editComment")},
    **dict.fromkeys(("readFile", "removeFile", "readContent"), FILE),
    "eraseVersion": {**FILE, "version": 1, "sure": True},
    "eraseRevision": {**NAME, "number": 1, "sure": True},
    "writeContent": {**FILE, "note": "why"},
}
BODIES: Final[dict[str, dict[str, Any]]] = {
    "writePage": {"text": "A new text."},
    "movePage": {"to": "Moved"},
    "writeRights": {"owner": "Rita"},
    "addComment": {"text": "A comment."},
    "editComment": {"text": "Another comment."},
    "markRead": {"until": NOTICE},
}
# tests/integration/test_wiki_api_store.py has these, on a store that moves.
MOVES: Final = ("movePage", "deletePage", "eraseRevision")
BY_ADMINISTRATORS: Final = ("eraseVersion",)
WRONG: Final = ("", "\x00", "a\u202eb", "x" * 5_000, "-1", "0", "1e9", "[]", "null", "/", "~", "%2F", "..")


@pytest.fixture
def scene() -> ApiScene:
    made = ApiScene()
    rita = made.program("Rita")
    rita.save("Page", "A text.")
    _send(rita, _operation("addComment"))
    _send(rita, _operation("writeContent"), headers={"If-None-Match": "*"})
    return made


def _operation(name: str) -> Operation:
    return next(one for one in OPERATIONS if one.id == name)


def _send(program: ApiClient, one: Operation, headers: dict[str, str] | None = None, **given: Any) -> Any:
    """Send a correct request, with parts of it replaced by ``given``."""
    wanted: dict[str, Any] = {"query_string": PARAMETERS.get(one.id, NAME)}
    if one.body is not None and "data" not in given:
        wanted["json"] = BODIES[one.id]
    if one.takes_content:
        wanted["data"] = b"a text"
    state = {"If-Match": "*"} if one.preconditions in ("put", "change") else {}
    return program.call(one.method, one.path, headers=state if headers is None else headers, **{**wanted, **given})


def _check(one: Operation, answer: Any) -> None:
    """Assert that the description has the answer's status, and that its body is of the described type."""
    if answer.status_code in (*one.answers, 206, 304):
        kind = one.answers.get(answer.status_code)
        if kind is not None:
            msgspec.json.decode(answer.data, type=kind, strict=True)
        return
    assert answer.status_code in one.statuses, (one.id, answer.status, answer.text)
    assert answer.content_type == "application/problem+json"
    said = msgspec.json.decode(answer.data, type=Problem)
    assert said.status == answer.status_code
    assert said.detail


@pytest.mark.parametrize("one", [one for one in OPERATIONS if one.id not in MOVES], ids=lambda one: one.id)
def test_a_correct_request_is_answered_as_described(one: Operation) -> None:
    made = ApiScene()
    rita = made.program("Rita")
    rita.save("Page", "A text.")
    _send(rita, _operation("addComment"))
    _send(rita, _operation("writeContent"), headers={"If-None-Match": "*"})
    answer = _send(made.program("Ada") if one.id in BY_ADMINISTRATORS else rita, one)
    assert answer.status_code in one.answers, answer.text
    _check(one, answer)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.id)
def test_no_request_without_a_key_changes_anything(scene: ApiScene, one: Operation) -> None:
    answer = _send(scene.anonymous, one)
    assert answer.status_code in (200, 304) if not one.needs_key else answer.status_code == 401
    _check(one, answer)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.id)
def test_a_key_without_the_scope_is_told_so(scene: ApiScene, one: Operation) -> None:
    scopes = [scope for scope in ALL if scope != one.scope]
    answer = _send(scene.program("Rita", *scopes), one)
    assert answer.status_code == 403
    _check(one, answer)


@pytest.mark.parametrize("name", ["readFile", "readContent", "listBacklinks", "writeContent"])
def test_files_of_a_page_that_is_being_moved_are_refused_as_described(
    scene: ApiScene, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def page_row(of: str) -> Never:
        raise Busy(of)

    rita, one = scene.program("Rita"), _operation(name)
    monkeypatch.setattr(scene.wiki.files.committing._pages, "page_row", page_row)
    answer = _send(rita, one, **({"query_string": {**NAME, "file": "Plan.txt"}} if name == "listBacklinks" else {}))
    assert answer.status_code == 409
    _check(one, answer)


def _wrong(rng: random.Random, one: Operation) -> Iterator[dict[str, Any]]:
    """Yield changes of a correct request that make it wrong, or odd."""
    right = PARAMETERS.get(one.id, NAME)
    for name in (*one.parameters.__struct_fields__, "unknown"):
        for value in WRONG:
            yield {"query_string": {**right, name: value}}
    yield {"query_string": [(name, value) for name, value in right.items() for _ in range(2)]}
    yield {"query_string": {}}
    if one.body is None:
        return
    body = BODIES[one.id]
    for field in (*one.body.__struct_fields__, "unknown"):
        for value in (None, 1, [], {}, True, rng.choice(WRONG), "x" * 5_000):
            yield {"json": {**body, field: value}}
    for data in (b"", b"{", b"\xff", b"[]", rb'{"text": "\ud83d"}'):
        yield {"data": data, "content_type": "application/json"}
    yield {"data": b"text=x", "content_type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.id)
def test_a_wrong_request_has_a_described_answer(scene: ApiScene, one: Operation) -> None:
    rng, rita = random.Random(SEED), scene.program("Rita")
    for given in _wrong(rng, one):
        if one.id in MOVES:
            given = {"query_string": {"name": "Absent"}, **given}
            if dict(given["query_string"]).get("name") == "Page":
                continue  # a page, which the store behind this test cannot move
        answer = _send(rita, one, **given)
        _check(one, answer)
        assert answer.status_code != 500, given


def test_other_methods_and_addresses_are_problems_too(scene: ApiScene) -> None:
    for one in OPERATIONS:
        answer = scene.anonymous.call("PATCH", one.path)
        assert (answer.status_code, answer.content_type) == (405, "application/problem+json")
        assert one.method in answer.headers["Allow"]
    for path in ("/nothing", "/page/", "/page/rights/x", "/"):
        assert scene.anonymous.get(path).status_code == 404, path
    head = scene.anonymous.call("HEAD", "/page", query_string=NAME)
    assert (head.status_code, head.data) == (200, b"")


def test_the_description_has_each_operation_and_type() -> None:
    said = msgspec.json.decode(description())
    assert said["openapi"] == "3.1.0"
    assert said["servers"] == [{"url": PREFIX}]
    found = {operation["operationId"] for path in said["paths"].values() for operation in path.values()}
    assert found == {one.id for one in OPERATIONS}
    assert len(found) == len(OPERATIONS)
    for reference in _references(said):
        kind, name = reference.removeprefix("#/components/").split("/")
        assert name in said["components"][kind], reference


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)

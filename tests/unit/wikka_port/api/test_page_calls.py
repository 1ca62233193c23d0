"""Pages by the API: saves under preconditions, what a caller without a right sees, and repeated requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.api_client import ApiClient, ApiScene
from wikka_port.antispam.policy import DEFAULT_POLICY, changed_policy
from wikka_port.antispam.stored_policy import write_policy
from wikka_port.api.preconditions import precondition_in
from wikka_port.rights.rules import PageRights, Privilege


@pytest.fixture
def scene() -> ApiScene:
    return ApiScene()


@pytest.fixture
def rita(scene: ApiScene) -> ApiClient:
    return scene.program("Rita", "read", "write")


def test_a_page_is_made_read_and_changed(scene: ApiScene, rita: ApiClient) -> None:
    made = rita.save("A/B", "One [[Other]].", note="first", format="markdown", language="de")
    assert made.status_code == 201
    assert made.json | {"time": 0, "etag": ""} == {
        "name": "A/B",
        "number": 1,
        "time": 0,
        "author": "Rita",
        "signed": "key",
        "note": "first",
        "minor": False,
        "format": "markdown",
        "language": "de",
        "text": "One [[Other]].",
        "etag": "",
    }
    assert made.headers["ETag"] == made.json["etag"]
    changed = rita.save("A/B", "Two.", made.json["etag"], minor=True)
    assert (changed.status_code, changed.json["number"], changed.json["minor"]) == (200, 2, True)
    assert (changed.json["format"], changed.json["language"]) == ("markdown", "de")  # they stay
    read = scene.anonymous.get("/page", name="A/B")
    assert read.json == changed.json
    assert scene.anonymous.get("/page", {"If-None-Match": read.headers["ETag"]}, name="A/B").status_code == 304
    old = scene.anonymous.get("/page/revision", name="A/B", number=1).json
    assert (old["text"], old["note"]) == ("One [[Other]].", "first")


def test_an_edit_of_somebody_else_is_never_overwritten(scene: ApiScene, rita: ApiClient) -> None:
    etag = rita.save("Page", "One.").json["etag"]
    scene.program("Ada").save("Page", "Ada's.", etag)
    refused = rita.save("Page", "Rita's.", etag)
    assert refused.status_code == 412
    assert refused.content_type == "application/problem+json"
    assert refused.json["current"]["text"] == "Ada's."
    assert rita.save("Page", "Rita's.", refused.headers["ETag"]).status_code == 200
    assert rita.save("Page", "Anew.").status_code == 412  # If-None-Match: *
    assert rita.save("Page", "Whatever there is.", "*").status_code == 200
    for foreign in ('"1.x"', '"99999999999.0123456789abcdef"', 'W/"1.0123456789abcdef"', "nothing"):
        assert rita.save("Page", "No.", foreign).status_code == 412, foreign
    assert rita.save("Missing", "No.", "*").status_code == 412
    assert scene.wiki.page("Page").body == "Whatever there is."


@pytest.mark.parametrize("headers", [{}, {"If-Match": "*", "If-None-Match": "*"}, {"If-None-Match": '"1.a"'}])
def test_a_change_without_a_state_is_refused(rita: ApiClient, scene: ApiScene, headers: dict[str, str]) -> None:
    rita.save("Page", "One.")
    changes: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("PUT", "/page", {"json": {"text": "x"}}),
        ("DELETE", "/page", {}),
        ("POST", "/page/move", {"json": {"to": "Elsewhere"}}),
    )
    for method, path, given in changes:
        answer = rita.call(method, path, query_string={"name": "Page"}, headers=headers, **given)
        assert answer.status_code == 428, (method, path)
    assert scene.wiki.page("Page").body == "One."


def test_a_first_edit_is_marked_if_the_wiki_says_so(scene: ApiScene, rita: ApiClient) -> None:
    policy = changed_policy(DEFAULT_POLICY, {"first_edits": "mark"})
    write_policy(scene.wiki.rows, "", policy, by="Ada", now_ms=1)
    made = rita.save("Page", "One.")
    assert made.json["note"] == "First edits"
    again = rita.save("Page", "One.")
    assert (again.json["note"], again.json["number"]) == ("First edits", 1)
    assert rita.save("Page", "Two.", made.json["etag"], note="why").json["note"] == "First edits: why"
    assert scene.program("Ada").save("Page", "Three.", "*").json["note"] == ""


def test_a_request_that_is_sent_twice_saves_once(scene: ApiScene, rita: ApiClient) -> None:
    first, again = rita.save("Page", "One."), rita.save("Page", "One.")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json == again.json
    etag = first.json["etag"]
    two, repeated = rita.save("Page", "Two.", etag), rita.save("Page", "Two.", etag)
    assert two.json == repeated.json
    assert scene.wiki.page("Page").number == 2


def test_a_hidden_page_is_as_one_that_is_not_there(scene: ApiScene, rita: ApiClient) -> None:
    rita.save("Hidden", "secret text")
    scene.wiki.rights.change("Hidden", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
    scene.wiki.rights.change_rules("Closed", {Privilege.READ: "Rita"}, scene.wiki.rights.rules())
    other = scene.program("Ada", "read", "write")  # an administrator's key without "admin" has no more rights
    scene.accounts.directory.make("Otto", status="active")
    for program in (scene.program("Otto"), scene.anonymous, other):
        said = [_as_named(program, path, name) for path in _READ for name in ("Hidden", "Absent", "ClosedAbsent")]
        assert all(one == said[0] for one in said)
        assert said[0][0] == 404
    assert scene.program("Ada").get("/page", name="Hidden").json["text"] == "secret text"
    otto = scene.program("Otto")
    for method, path, given in _CHANGES:
        headers = {"If-Match": "*"}
        found = [
            otto.call(method, path, query_string={"name": name}, headers=headers, **given)
            for name in ("Hidden", "ClosedAbsent", "Absent")
        ]
        assert [one.status_code for one in found] == [412 if (method, path) == ("PUT", "/page") else 404] * 3
        assert len({one.text for one in found}) == 1
    for name in ("Hidden", "ClosedAbsent"):
        assert otto.save(name, "mine").status_code == 404
        assert otto.save(name, "mine", '"some other"').json["detail"] == "There is no page of this name."
    assert "Hidden" not in otto.get("/pages").text + otto.get("/search", q="secret").text + otto.get("/changes").text


_READ = ("/page", "/page/revisions", "/page/backlinks", "/page/files")
_CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("PUT", "/page", {"json": {"text": "mine"}}),
    ("DELETE", "/page", {}),
    ("POST", "/page/move", {"json": {"to": "Elsewhere"}}),
    ("PUT", "/page/rights", {"json": {"owner": "Otto"}}),
)


def _as_named(program: ApiClient, path: str, name: str) -> tuple[int, str]:
    answer = program.get(path, name=name)
    return answer.status_code, answer.text.replace(name, "")


def test_who_may_read_and_not_write_is_told_so(scene: ApiScene, rita: ApiClient) -> None:
    rita.save("Lent", "Rita's.")
    scene.wiki.rights.change("Lent", PageRights("Rita"), "Rita", {Privilege.WRITE: "Rita"})
    scene.accounts.directory.make("Otto", status="active")
    otto = scene.program("Otto")
    refused = otto.save("Lent", "Otto's.", "*")
    assert (refused.status_code, refused.json["detail"]) == (403, "You may not edit this page.")
    assert otto.get("/page/rights", name="Lent").status_code == 403
    assert scene.wiki.page("Lent").body == "Rita's."


def test_keys_and_their_scopes(scene: ApiScene) -> None:
    reads = scene.program("Rita", "read")
    refused = reads.save("Page", "x")
    assert (refused.status_code, refused.json["detail"]) == (403, "The key has not the scope “write”.")
    nobody = scene.anonymous.save("Page", "x")
    assert (nobody.status_code, nobody.headers["WWW-Authenticate"]) == (401, "Bearer")
    for token in ("wk_x.y", reads.token[:-1], reads.token + "A", "x", f"wk_{'A' * 2_000}.{'x' * 43}"):
        wrong = ApiClient(scene.web.client, token).get("/me")
        assert (wrong.status_code, wrong.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"'), token
    basic = scene.anonymous.get("/me", {"Authorization": "Basic cml0YTp4"})
    assert basic.status_code == 401
    short = scene.program("Rita", days=1)
    scene.web.now += 24 * 3600
    assert short.get("/me").status_code == 401
    assert reads.get("/me").json == {"name": "Rita", "scopes": ["read"], "administrator": False}
    assert scene.program("Ada").get("/me").json["administrator"]
    assert not scene.program("Ada", "write", "read").get("/me").json["administrator"]


def test_a_cookie_of_a_browser_signs_nobody_in(scene: ApiScene) -> None:
    browser = scene.web.signed_in("Otto")
    answer = browser.client.put("/api/v1/page?name=Page", json={"text": "x"}, headers={"If-None-Match": "*"})
    assert answer.status_code == 401
    assert browser.client.get("/api/v1/me").json["name"] is None


def test_rights_are_read_and_set(scene: ApiScene) -> None:
    rita = scene.program("Rita")
    rita.save("Page", "x")
    now = rita.get("/page/rights", name="Page")
    assert now.json == {
        "name": "Page",
        "owner": "Rita",
        "read": None,
        "write": None,
        "comment_read": None,
        "comment_post": None,
        "etag": now.headers["ETag"],
    }
    given = {"owner": "Rita", "read": "Rita\nMembers", "write": "Rita"}

    def put(body: dict[str, Any], etag: str) -> Any:
        return rita.call("PUT", "/page/rights", query_string={"name": "Page"}, json=body, headers={"If-Match": etag})

    done = put(given, now.headers["ETag"])
    assert done.status_code == 200, done.text
    assert (done.status_code, done.json["read"], done.json["write"]) == (200, "Rita\nMembers", "Rita")
    assert done.json == rita.get("/page/rights", name="Page").json
    assert put(given, now.headers["ETag"]).status_code == 412
    assert put({"owner": "Nobody known"}, "*").status_code == 422
    assert put({"owner": "Rita", "read": "Rita\n+Members+"}, "*").status_code == 422
    assert scene.wiki.rights.of(["Page"])["Page"].lists[Privilege.READ] == "Rita\nMembers"
    there = scene.wiki.rights.of(["Page"])["Page"]
    scene.wiki.rights.change("Page", there, "Rita", {Privilege.WRITE: "Rita, Otto"}, token="moved-1")
    beside = put({"owner": "Rita", "read": "+", "write": "Rita, Otto"}, "*")
    assert (beside.status_code, beside.json["write"]) == (200, "Rita, Otto"), "a list that stays is not looked at"
    refused = put({"owner": "Rita", "write": "Rita, Otto, Mia"}, "*")
    assert (refused.status_code, "Edit the page: Line 1" in refused.text) == (422, True)


def test_a_name_with_an_ending_is_another_form_of_the_page(scene: ApiScene, rita: ApiClient) -> None:
    rita.save("Page", "A **bold** word.", format="markdown")
    assert scene.web.get("/Page.md").text == "A **bold** word."
    assert json.loads(scene.web.get("/Page.json").text) == rita.get("/page", name="Page").json
    rita.save("Wikka", "A //word//.", format="wikka")
    assert scene.web.get("/Wikka.md").text.strip() == "A *word*."
    rita.save("Page.md", "A page of its own.")
    assert "A page of its own." in scene.web.get("/Page.md").text
    assert scene.web.get("/Nothing.md").status_code == 404
    scene.wiki.rights.change("Wikka", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
    assert scene.web.get("/Wikka.json").status_code == 403  # as the page itself


def test_preconditions() -> None:
    assert precondition_in(None, None) is None
    assert precondition_in("*", "*") is None
    assert precondition_in("", '"1.a"') is None
    new = precondition_in(None, " * ")
    assert new is not None
    assert new.is_for_new
    assert new.revision is None
    one = precondition_in('"12.0123456789abcdef"', None)
    assert one is not None
    assert one.revision == (12, "0123456789abcdef")
    assert not one.is_for_any

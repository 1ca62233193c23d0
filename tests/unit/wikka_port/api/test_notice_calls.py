"""Watches and the inbox by the API, and the feed of the inbox by a key of its own."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.api_client import ApiClient, ApiScene
from wikka_port.accounts.api_keys import KeyNotMade
from wikka_port.limits import WATCHES_MAX
from wikka_port.notices import watching
from wikka_port.rights.rules import PageRights, Privilege

ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def scene() -> ApiScene:
    made = ApiScene(public_url="https://wiki.example")
    made.accounts.directory.make("Otto", status="active")
    made.program("Rita").save("Page", "A text.")
    return made


def watch(program: ApiClient, **given: Any) -> Any:
    return program.call("PUT", "/watch", query_string=given)


def edit(program: ApiClient, text: str, **fields: Any) -> None:
    assert program.save("Page", text, program.etag("Page"), **fields).status_code == 200


def inbox(program: ApiClient, **given: Any) -> list[tuple[str, str, int, str, bool]]:
    found = program.get("/inbox", **given).json["notices"]
    return [(one["kind"], one["page"], one["number"], one["text"], one["unread"]) for one in found]


def feed(scene: ApiScene, token: str, **given: str) -> Any:
    return scene.anonymous.client.get("/-/inbox.xml", query_string={"key": token, **given})


def test_watches_begin_once_and_end(scene: ApiScene) -> None:
    otto = scene.program("Otto")
    begun = watch(otto, name="Page")
    assert (begun.status_code, begun.json["name"], begun.json["below"]) == (200, "Page", False)
    scene.web.now += 60
    assert watch(otto, name="Page").json == begun.json, "a second one changes nothing"
    below = watch(otto, name="/Docs/", below="true")
    assert (below.json["id"], below.json["name"], below.json["below"]) == ("bdocs", "Docs", True)
    assert watch(otto, name="", below="true").json["name"] == ""
    assert [one["name"] for one in otto.get("/watches").json["watches"]] == ["Page", "", "Docs"]
    assert scene.program("Rita").get("/watches").json == {"watches": []}
    for _ in range(2):
        assert otto.call("DELETE", "/watch", query_string={"id": below.json["id"]}).status_code == 204
    assert [one["name"] for one in otto.get("/watches").json["watches"]] == ["Page", ""]


def test_what_cannot_be_watched(scene: ApiScene, monkeypatch: pytest.MonkeyPatch) -> None:
    otto = scene.program("Otto")
    scene.wiki.rights.change("Page", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
    assert watch(otto, name="Page").json == watch(otto, name="Nothing").json, "neither is there for him"
    assert watch(otto, name="Nothing").status_code == 404
    assert watch(otto, name="").status_code == 422
    assert watch(scene.program("Otto", "read"), name="", below="true").status_code == 403
    monkeypatch.setattr(watching, "WATCHES_MAX", 1)
    assert watch(otto, name="A", below="true").status_code == 200
    refused = watch(otto, name="B", below="true")
    assert (refused.status_code, str(WATCHES_MAX) in refused.json["detail"]) == (409, True)


def test_the_inbox_is_read_marked_and_cleared(scene: ApiScene) -> None:
    otto, rita = scene.program("Otto"), scene.program("Rita")
    watch(otto, name="Page")
    for number, text in enumerate(("Once.", "Twice.", "Thrice."), 1):
        scene.web.now += 60
        edit(rita, text, note=f"note {number}")
    assert inbox(otto) == [("edit", "Page", 4 - one, f"note {3 - one}", True) for one in range(3)]
    first = otto.get("/inbox", limit=1).json
    assert first["unread"] == 3
    assert [one[2] for one in inbox(otto, before=first["next"], limit=5)] == [3, 2]
    assert otto.get("/inbox", limit=5).json["next"] is None
    second = otto.get("/inbox").json["notices"][1]["id"]
    assert otto.call("POST", "/inbox/read", json={"until": second}).status_code == 204
    assert [one[4] for one in inbox(otto)] == [True, False, False]
    assert otto.get("/inbox").json["unread"] == 1
    assert otto.call("DELETE", "/inbox/notice", query_string={"id": second}).status_code == 204
    assert [one[2] for one in inbox(otto)] == [4, 2]
    assert otto.call("DELETE", "/inbox", query_string={"until": second}).status_code == 204
    assert [one[2] for one in inbox(otto)] == [4]
    assert inbox(rita) == []


def test_comments_and_mentions_and_rights(scene: ApiScene) -> None:
    otto, rita = scene.program("Otto"), scene.program("Rita")
    rita.call("POST", "/page/comments", query_string={"name": "Page"}, json={"text": "Look, @Otto, WORTGEHEIM."})
    (one,) = otto.get("/inbox").json["notices"]
    assert (one["kind"], one["number"], one["mention"], one["author"]) == ("comment", 1, True, "Rita")
    scene.wiki.rights.change("Page", PageRights("Rita"), "Rita", {Privilege.COMMENT_READ: "Rita"})
    hidden = otto.get("/inbox")
    assert (hidden.json["notices"], hidden.json["unread"], "WORTGEHEIM" in hidden.text) == ([], 0, False)


def test_a_deleted_comment_is_no_unread_notice(scene: ApiScene) -> None:
    otto, rita = scene.program("Otto"), scene.program("Rita")
    watch(otto, name="Page")
    rita.call("POST", "/page/comments", query_string={"name": "Page"}, json={"text": "An abusive comment."})
    assert otto.get("/inbox").json["unread"] == 1
    place, state = {"name": "Page", "number": 1}, {"If-Match": "*"}
    assert rita.call("DELETE", "/page/comment", query_string=place, headers=state).status_code == 204
    found = otto.get("/inbox").json
    assert (found["notices"], found["unread"]) == ([], 0)


def test_the_feed_has_the_notices_of_its_key_and_no_other_key_opens_it(scene: ApiScene) -> None:
    otto, rita = scene.program("Otto"), scene.program("Rita")
    watch(otto, name="Page")
    edit(rita, "Once.", note="why <b> & how")
    token = scene.program("Otto", "feed").token
    answer = feed(scene, token)
    assert (answer.status_code, answer.content_type) == (200, "application/atom+xml; charset=utf-8")
    assert answer.headers["Cache-Control"] == "private, no-cache"
    tree = ElementTree.fromstring(answer.text)
    (entry,) = tree.iter(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "Rita edited Page"
    assert entry.findtext(f"{ATOM}id") == "https://wiki.example/Page/diff?a=1&b=2"
    assert entry.findtext(f"{ATOM}summary") == "why <b> & how"
    assert token not in answer.text
    assert "of=Otto" in tree.findtext(f"{ATOM}id", "")
    assert feed(scene, token, format="rss").content_type == "application/rss+xml; charset=utf-8"
    again = scene.anonymous.client.get(
        "/-/inbox.xml", query_string={"key": token}, headers={"If-None-Match": answer.headers["ETag"]}
    )
    assert again.status_code == 304
    assert "<entry>" not in feed(scene, scene.program("Rita", "feed").token).text
    for wrong in ("", "x", otto.token, scene.program("Otto", "read").token, token[:-1], "wk_b3R0bw." + "A" * 43):
        refused = feed(scene, wrong)
        assert (refused.status_code, "Page" in refused.text) == (403, False), wrong
    scene.wiki.rights.change("Page", PageRights("Rita"), "Rita", {Privilege.READ: "Rita"})
    assert "<entry>" not in feed(scene, token).text
    otto_account = scene.accounts.directory.account("Otto")
    assert otto_account is not None
    scene.accounts.keys.end_all(otto_account.row)
    assert feed(scene, token).status_code == 403


def test_a_key_for_the_feed_does_nothing_else(scene: ApiScene) -> None:
    program = scene.program("Otto", "feed")
    for path in ("/me", "/inbox", "/watches", "/pages"):
        assert program.get(path).status_code == 403, path
    assert watch(program, name="Page").status_code == 403
    with pytest.raises(KeyNotMade):
        scene.program("Otto", "feed", "read")
    assert scene.anonymous.get("/inbox").status_code == 401

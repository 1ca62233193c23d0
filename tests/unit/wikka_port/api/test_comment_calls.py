"""Comments by the API: rights, repetitions, answers and removals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.api_client import ApiClient, ApiScene
from wikka_port import limits
from wikka_port.api.records import comment_etag
from wikka_port.comments.comment_rows import REMOVED, VISIBLE, Comment
from wikka_port.rights.guarded_comments import GuardedComments
from wikka_port.rights.rules import PageRights, Privilege


@pytest.fixture
def scene() -> ApiScene:
    made = ApiScene()
    made.accounts.directory.make("Otto", status="active")
    made.program("Rita").save("Page", "A text.")
    return made


def add(program: ApiClient, text: str, **fields: Any) -> Any:
    return program.call("POST", "/page/comments", query_string={"name": "Page"}, json={"text": text, **fields})


def remove(program: ApiClient, number: int, etag: str = "*") -> int:
    place, headers = {"name": "Page", "number": number}, {"If-Match": etag}
    return program.call("DELETE", "/page/comment", query_string=place, headers=headers).status_code


def change(program: ApiClient, text: str, etag: str = "*") -> Any:
    place, headers = {"name": "Page", "number": 1}, {"If-Match": etag}
    return program.call("PUT", "/page/comment", query_string=place, json={"text": text}, headers=headers)


def test_a_comment_is_added_answered_and_removed(scene: ApiScene) -> None:
    rita, otto = scene.program("Rita"), scene.program("Otto")
    first = add(otto, "First **words**.")
    assert (first.status_code, first.json["number"], first.json["signed"]) == (201, 1, "key")
    second = add(rita, "An answer.", answers=1)
    assert second.json["answers"] == 1
    found = scene.anonymous.get("/page/comments", name="Page").json
    assert [(one["author"], one["text"]) for one in found["comments"]] == [
        ("Otto", "First **words**."),
        ("Rita", "An answer."),
    ]
    assert (found["count"], found["parts"]) == (2, 1)
    assert remove(otto, 2) == 403
    assert remove(otto, 1) == 204
    assert remove(otto, 7) == 404
    assert scene.anonymous.get("/page/comments", name="Page").json["count"] == 1
    assert scene.anonymous.get("/page/comments", name="Page", part=2).json["comments"] == []
    assert add(rita, "Too late.", answers=1).status_code == 409
    owner_sees = rita.get("/page/comments", name="Page").json["comments"]
    assert [(one["state"], one["text"]) for one in owner_sees] == [("deleted", ""), ("shown", "An answer.")]


def test_a_removal_of_the_comment_of_somebody_else_is_in_the_audit(scene: ApiScene) -> None:
    rita, otto = scene.program("Rita"), scene.program("Otto")
    for number in (1, 2):
        assert add(otto, f"Words {number}.").status_code == 201
    assert (remove(otto, 1), remove(rita, 2)) == (204, 204)
    noted = [one for one in scene.accounts.audit.recent(9) if one.what == "delete comment"]
    assert [(one.user, one.by, one.note) for one in noted] == [("Otto", "Rita", "Page#c2")]


def test_one_id_is_one_text(scene: ApiScene) -> None:
    otto = scene.program("Otto")
    assert [add(otto, "Words.", id="mine").status_code for _ in range(2)] == [201, 201]
    other = add(otto, "Other words.", id="mine")
    assert (other.status_code, "comment 1 has the text" in other.json["detail"]) == (409, True)
    found = scene.anonymous.get("/page/comments", name="Page").json["comments"]
    assert [one["text"] for one in found] == ["Words."]


def test_every_change_of_a_comment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COMMENT_BURST", 3)
    monkeypatch.setattr(limits, "COMMENTS_PER_MINUTE", 1.0)
    scene = ApiScene()
    rita = scene.program("Rita")
    rita.save("Page", "A text.")
    assert (add(rita, "One.").status_code, change(rita, "Uno.").status_code, remove(rita, 1)) == (201, 200, 204)
    refused = add(rita, "Two.")
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert (change(rita, "Eins.").status_code, remove(rita, 1)) == (429, 429)


def test_an_own_comment_is_changed_for_a_while(scene: ApiScene) -> None:
    otto, rita = scene.program("Otto"), scene.program("Rita")
    add(otto, "Frist.")
    assert change(rita, "Hers.").status_code == 403
    done = change(otto, "First.")
    assert (done.status_code, done.json["text"], done.json["edited"] > 0) == (200, "First.", True)
    assert change(otto, " ").status_code == 422
    scene.web.now += 2 * 3600  # the clock of the store behind this test goes ahead
    assert change(otto, "Late.").status_code == 409
    assert scene.anonymous.get("/page/comments", name="Page").json["comments"][0]["text"] == "First."


def test_a_change_of_a_comment_names_its_state(scene: ApiScene, monkeypatch: pytest.MonkeyPatch) -> None:
    otto, rita = scene.program("Otto"), scene.program("Rita")
    made = add(otto, "Frist.")
    first = made.json["etag"]
    assert made.headers["ETag"] == first
    for method, given in (("PUT", {"json": {"text": "x"}}), ("DELETE", {})):
        place = {"name": "Page", "number": 1}
        assert otto.call(method, "/page/comment", query_string=place, **given).status_code == 428
    second = change(otto, "First.", first)
    assert (second.status_code, second.json["text"]) == (200, "First.")
    assert second.json["etag"] == second.headers["ETag"] != first
    assert change(otto, "First.", first).json == second.json, "sent twice"
    late = change(otto, "Over it.", first)
    assert (late.status_code, late.json["detail"]) == (412, "The comment was changed meanwhile.")
    assert remove(rita, 1, first) == 412
    (read,) = scene.anonymous.get("/page/comments", name="Page").json["comments"]
    assert (read["text"], read["etag"]) == ("First.", second.json["etag"])
    edit = GuardedComments.edit

    def edited_before(self: GuardedComments, number: int, text: str, now_ms: int, check: Any) -> None:
        edit(self, number, "Another program's.", now_ms)
        edit(self, number, text, now_ms, check)

    with monkeypatch.context() as patched:
        patched.setattr(GuardedComments, "edit", edited_before)
        assert change(otto, "Over it.", read["etag"]).status_code == 412
    (read,) = scene.anonymous.get("/page/comments", name="Page").json["comments"]
    assert read["text"] == "Another program's."
    assert remove(rita, 1, second.json["etag"]) == 412
    assert remove(rita, 1, read["etag"]) == 204
    assert remove(rita, 1, read["etag"]) == 204, "sent twice"
    (gone,) = rita.get("/page/comments", name="Page").json["comments"]
    assert gone["text"] == ""
    assert gone["etag"] != read["etag"]


def test_the_state_of_a_removed_comment_says_nothing_of_its_text() -> None:
    given = {"number": 1, "time_ms": 5, "author": "Ada", "signed": "key", "path": "0000001", "token": ""}
    one, two = (Comment(text=text, state=REMOVED, **given) for text in ("a secret", "another"))
    assert comment_etag(one) == comment_etag(two)
    assert comment_etag(replace(one, state=VISIBLE)) != comment_etag(replace(two, state=VISIBLE))


def test_a_comment_that_is_sent_twice_is_added_once(scene: ApiScene) -> None:
    otto = scene.program("Otto")
    once, again = add(otto, "One.", id="my id 1"), add(otto, "One.", id="my id 1")
    assert once.json == again.json
    assert add(scene.program("Rita"), "Hers.", id="my id 1").json["number"] == 2
    assert add(otto, "One.").json["number"] == 3


def test_who_may_not_read_or_write_comments(scene: ApiScene) -> None:
    rita, otto = scene.program("Rita"), scene.program("Otto")
    add(rita, "For Rita.")
    scene.wiki.rights.change("Page", PageRights("Rita"), "Rita", {Privilege.COMMENT_POST: "Rita"})
    assert add(otto, "No.").status_code == 403
    rights = scene.wiki.rights.of(["Page"])["Page"]
    scene.wiki.rights.change("Page", rights, "Rita", {Privilege.COMMENT_READ: "Rita"})
    for program in (otto, scene.anonymous):
        refused = program.get("/page/comments", name="Page")
        assert (refused.status_code, "For Rita" in refused.text) == (403, False)
    rights = scene.wiki.rights.of(["Page"])["Page"]
    scene.wiki.rights.change("Page", rights, "Rita", {Privilege.READ: "Rita"})
    for program in (otto, scene.anonymous):
        hidden = program.get("/page/comments", name="Page")
        assert hidden.json == program.get("/page/comments", name="Nothing").json
    assert (
        scene.anonymous.call("POST", "/page/comments", query_string={"name": "Page"}, json={"text": "x"}).status_code
        == 401
    )


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 200_000, "\x00"])
def test_what_is_no_comment_is_refused(scene: ApiScene, text: str) -> None:
    assert add(scene.program("Otto"), text).status_code in (413, 422)
    assert scene.anonymous.get("/page/comments", name="Page").json["count"] == 0

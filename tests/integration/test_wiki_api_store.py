"""The API on a real store: moves, jobs, changes that are followed, keys and their ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_client import ApiClient, ApiScene
from tests.support.stored_wiki import stored_wiki
from wikka_port.accounts.tables import AUDIT
from wikka_port.api.list_calls import LATE_MS
from wikka_port.moving.mover import Mover


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[ApiScene]:
    with stored_wiki(tmp_path) as wiki:
        yield ApiScene(wiki=wiki)


def test_a_page_is_moved_with_its_links_and_deleted(scene: ApiScene) -> None:
    rita = scene.program("Rita")
    assert rita.save("Old", "A text.").status_code == 201
    assert rita.save("Linking", "To [[Old]].").status_code == 201
    given = {"query_string": {"name": "Old"}, "json": {"to": "New", "links": True}}
    moved = rita.call("POST", "/page/move", headers={"If-Match": rita.etag("Old")}, **given)
    assert moved.status_code == 200, moved.text
    assert moved.json is not None
    assert moved.json["name"] == "New"
    assert moved.json["job"]
    assert rita.get("/page", name="New").json["text"] == "A text."
    stale = rita.call("DELETE", "/page", query_string={"name": "New"}, headers={"If-Match": '"7.0123456789abcdef"'})
    assert stale.status_code == 412
    assert stale.json["current"]["text"] == "A text."
    gone = rita.call("DELETE", "/page", query_string={"name": "New"}, headers={"If-Match": rita.etag("New")})
    assert gone.json == {"name": "New"}
    assert rita.get("/page", name="New").status_code == 404


def test_administrators_erase_a_revision_when_they_are_sure(scene: ApiScene) -> None:
    rita, ada = scene.program("Rita"), scene.program("Ada")
    rita.save("Page", "a secret")
    rita.save("Page", "harmless", rita.etag("Page"))

    def erased(program: ApiClient, **given: Any) -> int:
        wanted = {"name": "Page", "number": 1, "sure": "true", **given}
        return program.call("DELETE", "/page/revision", query_string=wanted).status_code

    assert (erased(scene.anonymous), erased(rita), erased(ada, sure="false")) == (401, 403, 409)
    assert (erased(ada, number=2), erased(ada, number=9), erased(ada, name="Nothing")) == (409, 409, 404)
    assert rita.get("/page/revision", name="Page", number=1).json["text"] == "a secret"
    assert erased(ada, reason="by mistake") == 204
    assert erased(ada) == 204, "again changes nothing"
    assert rita.get("/page/revision", name="Page", number=1).status_code == 404
    assert rita.get("/page", name="Page").json["text"] == "harmless"
    notes = [cells[b"a:note"] for _, cells in scene.wiki.rows.scan(AUDIT) if cells[b"a:what"] == b"erase revision"]
    assert b"Page: revision 1. by mistake" in notes


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/page"), ("POST", "/page/move")])
def test_an_edit_that_comes_between_is_neither_deleted_nor_moved(
    scene: ApiScene, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    """The edit is saved after the call has read the page, and before it moves it."""
    rita, wiki = scene.program("Rita"), scene.wiki
    rita.save("Page", "One.")
    given: dict[str, Any] = {"query_string": {"name": "Page"}, **({"json": {"to": "New"}} if method == "POST" else {})}
    intended = Mover._attempted

    def edited_before(self: Mover, name: str, *rest: Any) -> Any:
        page = wiki.page(name)
        wiki.save(name, f"Ada's {page.number}.", author="Ada", base=page.number)
        return intended(self, name, *rest)

    monkeypatch.setattr(Mover, "_attempted", edited_before)
    late = rita.call(method, path, headers={"If-Match": rita.etag("Page")}, **given)
    assert late.status_code == 412, late.text
    assert late.json is not None
    assert late.json["current"]["text"] == "Ada's 1."
    assert late.headers["ETag"] == rita.etag("Page")
    assert rita.get("/page", name="Page").json["text"] == "Ada's 1."
    assert wiki.mover.journal.opened() == {}
    whatever = rita.call(method, path, headers={"If-Match": "*"}, **given)
    assert whatever.status_code == 200, whatever.text
    gone = rita.get("/page", name="Page")
    assert gone.status_code == 404 or gone.json["text"].startswith("#REDIRECT [[New")


def test_who_follows_changes_gets_each_of_them_and_no_hidden_one(scene: ApiScene) -> None:
    rita, web = scene.program("Rita"), scene.web
    token = scene.anonymous.get("/changes").json["next"]
    clock = [1_750_000_100_000]

    def save(name: str, text: str, **given: object) -> None:
        clock[0] += 1
        page = scene.wiki.page(name)
        scene.wiki.save(name, text, author="Rita", base=page.number if page else 0, time_ms=clock[0], **given)

    for number in range(25):
        save("Open", f"text {number}")
        save("Hidden", f"secret {number}", **({"owner": "Rita"} if number == 0 else {}))
    done = rita.call(
        "PUT",
        "/page/rights",
        query_string={"name": "Hidden"},
        json={"owner": "Rita", "read": "Rita"},
        headers={"If-Match": "*"},
    )
    assert done.status_code == 200, done.text
    web.now = clock[0] / 1000 + LATE_MS / 1000 + 1
    for program, expected in ((scene.anonymous, {"Open": 25}), (rita, {"Open": 25, "Hidden": 25})):
        seen: dict[str, list[int]] = {}
        since, more = token, True
        while more:
            answer = program.get("/changes", since=since, limit=7).json
            for change in answer["changes"]:
                seen.setdefault(change["name"], []).append(change["number"])
            assert answer["next"] < since or not answer["changes"]
            since, more = answer["next"], answer["more"]
        assert {name: len(numbers) for name, numbers in seen.items()} == expected
        assert all(numbers == sorted(numbers) for numbers in seen.values())
        assert program.get("/changes", since=since).json["changes"] == []


def test_a_change_that_was_entered_late_is_not_left_out(scene: ApiScene) -> None:
    web, wiki = scene.web, scene.wiki
    now_ms = int(web.now * 1000)
    wiki.save("Quick", "a", author="Ann", base=0, time_ms=now_ms - 1_000)
    first = scene.anonymous.get("/changes").json
    assert [one["name"] for one in first["changes"]] == ["Quick"]
    wiki.save("Slow", "b", author="Ann", base=0, time_ms=now_ms - 2_000)  # its save began before and ended after
    second = scene.anonymous.get("/changes", since=first["next"]).json
    assert {one["name"] for one in second["changes"]} >= {"Slow"}


def test_a_new_password_and_a_ban_end_keys(scene: ApiScene) -> None:
    rita = scene.program("Rita")
    assert rita.get("/me").json["name"] == "Rita"
    account = scene.accounts.directory.account("Rita")
    assert account is not None
    scene.accounts.directory.set_password(account, "another hash")
    assert rita.get("/me").status_code == 401
    other = scene.program("Rita")
    scene.accounts.directory.set_status(account, "banned")
    assert other.get("/me").status_code == 401
    scene.accounts.directory.set_status(account, "active")
    assert other.get("/me").status_code == 401


def test_edits_by_key_are_signed_anew_when_the_account_ends(scene: ApiScene) -> None:
    rita = scene.program("Rita")
    rita.save("Mine", "by a program")
    assert scene.wiki.page("Mine").signed == "key"
    scene.wiki.rename_edits("Rita", "Former user 1")
    assert scene.wiki.page("Mine").author == "Former user 1"
    assert scene.wiki.revisions("Mine")[0].author == "Former user 1"

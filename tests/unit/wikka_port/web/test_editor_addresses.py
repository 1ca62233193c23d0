"""What the editor's script asks for beside drafts: a preview, names, actions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.actions import ACTIONS
from wikka_port.limits import PREVIEW_BURST
from wikka_port.rights.rules import Privilege

TABLE = (Path(__file__).parents[4] / "docs/wiki.md").read_text().partition("\nActions: ")[2]


@pytest.fixture
def web() -> WikiClient:
    return WikiClient()


def test_a_preview_is_the_inside_of_the_page(web: WikiClient) -> None:
    web.wiki.save("There", "x", author="a", base=0)
    form = web.form("/P/edit")
    body = "==== Head ====\r\n**bold** <b> [[There]] [[Missing]] {{nosuchaction}}"
    answer = web.post("/-/preview", {**form, "name": "P", "body": body})
    assert (answer.status_code, answer.mimetype, answer.headers["Cache-Control"]) == (200, "text/html", "no-store")
    assert "<strong>bold</strong> &lt;b&gt;" in answer.text
    assert '<a href="/There">' in answer.text
    assert 'href="/Missing/edit" class="missing"' in answer.text
    assert "There is no action nosuchaction" in answer.text
    assert "<html" not in answer.text
    assert "Content-Security-Policy" in answer.headers
    assert web.wiki.page("P") is None


def test_a_preview_is_for_who_may_edit_the_page_or_suggest_a_change(web: WikiClient) -> None:
    form = web.form("/P/edit")
    web.wiki.save("P", "secret", author="a", base=0)
    web.wiki.rights.change("P", web.wiki.page("P").rights, "", {Privilege.WRITE: "Ada"})
    suggested = web.post("/-/preview", {**form, "name": "P", "body": "mine"})
    assert (suggested.status_code, "mine" in suggested.text) == (200, True)
    web.wiki.rights.change("P", web.wiki.page("P").rights, "", {Privilege.WRITE: "Ada", Privilege.READ: "Ada"})
    answer = web.post("/-/preview", {**form, "name": "P", "body": "mine"})
    assert (answer.status_code, json.loads(answer.text).keys()) == (403, {"error"})
    elsewhere = web.post("/-/preview", {**form, "name": "Q", "body": '{{include page="P"}} mine'})
    assert (elsewhere.status_code, "mine" in elsewhere.text) == (200, True)


@pytest.mark.parametrize("csrf", ["", "0." + "0" * 64])
def test_a_preview_needs_a_token_of_ours(web: WikiClient, csrf: str) -> None:
    form = web.form("/P/edit")
    answer = web.post("/-/preview", {**form, "csrf": csrf, "name": "P", "body": "x"})
    assert answer.status_code == 403
    fresh = json.loads(answer.text)["token"]
    assert web.post("/-/preview", {**form, "csrf": fresh, "name": "P", "body": "x"}).status_code == 200
    assert web.get("/-/preview").status_code == 405


def test_previews_are_bounded_in_size_and_rate() -> None:
    web = WikiClient(max_text_bytes=1_000)
    form = {**web.form("/P/edit"), "name": "P"}
    assert web.post("/-/preview", {**form, "body": "x" * 1_001}).status_code == 413
    assert web.post("/-/preview", {**form, "body": "x" * 90_000}).status_code == 413
    statuses = [web.post("/-/preview", {**form, "body": "x"}).status_code for _ in range(PREVIEW_BURST)]
    assert (set(statuses[:-1]), statuses[-1]) == ({200}, 429)


def test_a_preview_works_while_the_store_is_away(web: WikiClient) -> None:
    form = web.form("/P/edit")
    web.wiki.away = True
    answer = web.post("/-/preview", {**form, "name": "P", "body": "[[There]]"})
    assert (answer.status_code, 'href="/There"' in answer.text) == (200, True)


def test_the_actions_that_are_run_with_their_attributes(web: WikiClient) -> None:
    answer = web.get("/-/actions")
    told = {one["name"]: tuple(one["attributes"]) for one in json.loads(answer.text)}
    of_the_markup = {"toc": ("levels", "title", "links"), "notoc": (), "redirect": ("target",)}
    assert told == {name: action.attributes for name, action in ACTIONS.items()} | of_the_markup
    for name, given in told.items():
        if not given:
            continue
        row = re.search(rf"^\| `{name}` \| there \| (.*) \|$", TABLE, re.M)
        assert row is not None, name
        assert all(f"`{one}" in row[1] for one in given) or "as `" in row[1], name

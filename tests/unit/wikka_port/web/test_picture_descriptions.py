"""Descriptions of pictures by the editor: of a page that is saved, and of one that is not yet."""

from __future__ import annotations

import re
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.support.file_forms import PNG, upload
from tests.support.wiki_client import WikiClient


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("HomePage", "A text.", author="Ann", base=0)
    return made


def described(web: WikiClient, page: str, **alts: str) -> tuple[int, str]:
    """Send the form of descriptions as it is on the page, with words for the pictures ``alts`` (without ``.png``)."""
    html = web.get(page + "/files").text
    found = re.findall(r'name="file" value="([^"]*)"><input type="hidden" name="seen" value="([^"]*)"', html)
    words = [alts.get(name.removesuffix(".png"), "") for name, _ in found]
    names, tokens = [name for name, _ in found], [token for _, token in found]
    answer = describe(web, page, file=names, seen=tokens, alt=words)
    return answer.status_code, answer.text


def describe(web: WikiClient, page: str, **lists: list[str]) -> TestResponse:
    form: dict[str, Any] = {"csrf": web.form(page + "/files")["csrf"], "describe": "1"}
    return web.post(page + "/files", {**form, **lists})


@pytest.mark.parametrize("page", ["/HomePage", "/New"])
def test_several_pictures_get_a_description_each(web: WikiClient, page: str) -> None:
    upload(web, ("a.png", PNG), ("b.png", PNG + b"b"), ("c.png", PNG + b"c"), ("d.txt", b"words"), page=page)
    shown = web.get(page + "/files?added=4").text
    assert '<details class="describe" open>' in shown
    assert "Say what 3 pictures show" in shown
    status, text = described(web, page, a="  the \n harbour ", c="the pier")
    assert (status, "2 descriptions are saved." in text) == (200, True)
    if page == "/New":
        web.save(page, "[[a.png]] [[b.png]] [[c.png]]")
    files = web.wiki.files.files_of(page[1:])
    assert {name: one.alt for name, one in files.items()} == {
        "a.png": "the harbour",
        "b.png": "",
        "c.png": "the pier",
        "d.txt": "",
    }
    assert "Say what 1 picture shows" in web.get(page + "/files").text


def by_script(web: WikiClient, page: str, **alts: str) -> int:
    return describe(web, page, file=[f"{one}.png" for one in alts], alt=[*alts.values()]).status_code


def shown_words(web: WikiClient, page: str) -> list[str]:
    return re.findall(r'<q class="change-note">([^<]*)</q>', web.get(page + "/files").text)


@pytest.mark.parametrize("page", ["/HomePage", "/New"])
def test_without_a_token_only_what_has_no_description_gets_one(web: WikiClient, page: str) -> None:
    upload(web, ("a.png", PNG), page=page)
    assert by_script(web, page, a="first") == 200
    assert by_script(web, page, a="second") == 200
    assert shown_words(web, page) == ["first"]
    assert by_script(web, page, none="words") == 409
    assert web.post(page + "/files", {"describe": "1", "file": "a.png", "alt": "third"}).status_code == 403
    assert shown_words(web, page) == ["first"]


def test_a_picture_that_changed_meanwhile_is_named_and_the_others_are_described(web: WikiClient) -> None:
    upload(web, ("a.png", PNG), ("b.png", PNG + b"b"))
    html = web.get("/HomePage/files").text
    found = dict(re.findall(r'name="file" value="([^"]*)"><input type="hidden" name="seen" value="([^"]*)"', html))
    upload(web, ("a.png", PNG + b"2"), replace="yes")
    answer = describe(web, "/HomePage", file=[*found], seen=[*found.values()], alt=["old", "new"])
    assert (answer.status_code, "a.png was changed" in answer.text) == (409, True)
    assert 'name="alt" value="old"' in answer.text, "what was typed comes back"
    assert {name: one.alt for name, one in web.wiki.files.files_of("HomePage").items()} == {"a.png": "", "b.png": "new"}

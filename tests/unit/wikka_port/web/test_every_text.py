"""Every text that people see can be said in another language, and German has all of them."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import polib
import pytest

from tests.support.marked_language import CODE, unmarked, write_marked_language
from tests.support.wiki_scene import ROLES, Scene, posts, walk
from wikka_port.texts import files

# Words of the pages, the people and the dates of a Scene.
CONTENT = (
    *(
        "HomePage",
        "Home",
        "Page",
        "Guarded",
        "Free",
        "Lent",
        "Wanted",
        "Gone",
        "Fresh",
        "Farm",
        "farm",
        "https",
        "New",
        "page",
        "Old",
    ),
    *(
        "Ann",
        "Rita",
        "Root",
        "text",
        "with",
        "and",
        "part",
        "of",
        "it",
        "Nobody",
        "again",
        "WORTGEHEIM",
        "recentchanges",
    ),
    *("Plan", "txt"),
    *("Wiki", "UTC", "Visitor", "typed", "mail", "example", "test", "WikkaWiki", "Markdown", "Wikka"),
)


def test_german_says_everything() -> None:
    path = resources.files("wikka_port") / "languages" / "de.po"
    held = path.read_text(encoding="utf-8")
    made = files.up_to_date(polib.pofile(held), files.texts(), "de")
    assert list(files.problems(made)) == [], "python -m wikka_port texts wikka_port/languages/de.po, and translate"
    assert files.written(made) == held, "python -m wikka_port texts wikka_port/languages/de.po"
    assert len(made) > 500


@pytest.mark.parametrize("role", ROLES)
def test_no_page_shows_a_text_that_cannot_be_translated(role: str, tmp_path: Path) -> None:
    write_marked_language(tmp_path)
    scene = Scene(language=CODE, languages=tmp_path)
    found: dict[str, list[str]] = {}
    seen = 0
    for path, html in walk(scene, role):
        seen += html.count("⟦")
        if words := unmarked(html, CONTENT):
            found[path] = words
    for one in posts(scene, role):  # what each form says of a token that is not its own
        answer = scene.browsers[role].client.post(one.form.action or one.page, data={**one.fields(), "csrf": "0.0"})
        if answer.mimetype == "text/html" and (words := unmarked(answer.text, CONTENT)):
            found[one.label] = words
    assert found == {}
    assert seen > 500, "the pages are in that language"


@pytest.mark.parametrize("role", ROLES)
def test_a_page_in_german_is_whole(role: str) -> None:
    scene = Scene(language="de")
    for path, html in walk(scene, role):
        assert '<html lang="de"' in html or path.endswith("/html"), path
        assert not re.search(
            r"%\(\w+\)s|⟦|\{\w+\}(?!\})", re.sub(r"<(code|textarea|pre)\b.*?</\1>", "", html, flags=re.S)
        ), path

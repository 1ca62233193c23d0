"""Access for everybody, in short: axe, the keyboard alone, 400 % zoom.  The whole: ``tests.proofs.wiki_access``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import axe
from tests.support.deep import IS_DEEP, cases
from tests.support.keyboard import choose_file_at, press_at, tab_to
from tests.support.seen_pages import (
    REFUSED,
    Seen,
    missing_forms,
    named,
    pages,
    refused_pages,
    rich_scene,
    running_scene,
    show,
)
from tests.support.wiki_scene import Scene

LONGEST_S = 900 if IS_DEEP else 120  # a deep run has all pages
SHORT = ("read", "conflict", "search", "acls", "edit", "recentchanges", "settings", "history", "missing")


@pytest.fixture(scope="module")
def wiki() -> Iterator[tuple[Scene, str]]:
    with running_scene() as running:
        yield running


def test_every_form_is_on_a_page_that_is_looked_at() -> None:
    scene = rich_scene()
    assert missing_forms(scene) == [], "seen_pages has to show them"
    assert refused_pages(scene) == REFUSED
    assert len({seen.name for seen in pages()}) == len(pages()) >= 40


@pytest.mark.timeout(LONGEST_S)
@pytest.mark.parametrize("mode", sorted(axe.MODES))
def test_axe_finds_nothing(browser: Any, wiki: tuple[Scene, str], mode: str) -> None:
    scene, url = wiki
    context = browser.new_context(bypass_csp=True, **axe.MODES[mode])
    page = context.new_page()
    found = {}
    share = SHORT[sorted(axe.MODES).index(mode) :: len(axe.MODES)]
    for name in cases(f"pages for axe, {mode}", deep=[seen.name for seen in pages()], short=share):
        show(page, url, scene, named(name))
        found[name] = axe.findings(page)
    context.close()
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize("mode", sorted(axe.MODES))
def test_axe_finds_nothing_in_suggestions_and_in_names_near_a_missing_page(
    browser: Any, wiki: tuple[Scene, str], mode: str
) -> None:
    scene, url = wiki
    scene.wiki.save(f"Suggested {mode}", "text\n\n=====Suggested heading=====\nmore", author="Rita", base=0)
    context = browser.new_context(bypass_csp=True, base_url=url, **axe.MODES[mode])
    page = context.new_page()
    page.goto(f"/suggested_{mode}")
    assert page.is_visible(f"text=Suggested {mode}")
    page.keyboard.press("/")
    page.keyboard.type("suggested")
    page.wait_for_selector("#suggestions [role=option]:has(span)")
    page.keyboard.press("ArrowDown")
    assert axe.findings(page) == []
    context.close()


def test_at_400_percent_nothing_scrolls_sideways(browser: Any, wiki: tuple[Scene, str]) -> None:
    """1280 px at 400 % are 320 px of the style sheet."""
    scene, url = wiki
    context = browser.new_context(viewport={"width": 320, "height": 256})
    page = context.new_page()
    wide = {}
    for name in SHORT:
        show(page, url, scene, named(name))
        if over := px_too_wide(page):
            wide[name] = over
    context.close()
    assert wide == {}


def px_too_wide(page: Any) -> int:
    over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return max(0, int(over))


@pytest.mark.timeout(LONGEST_S)
def test_a_narrow_page_without_its_scripts_has_no_fault_either(browser: Any, wiki: tuple[Scene, str]) -> None:
    """No script of the wiki is loaded; axe itself needs that scripts can run."""
    scene, url = wiki
    narrow = browser.new_context(bypass_csp=True, viewport={"width": 320, "height": 600}, color_scheme="dark")
    narrow.route("**/*.js", lambda route: route.abort())
    page = narrow.new_page()
    found = {}
    every = [seen.name for seen in pages()]
    for name in cases("pages for axe, narrow and without scripts", deep=every, short=SHORT[::3]):
        show(page, url, scene, named(name))
        found[name] = [*axe.findings(page), *([f"{over} px too wide"] if (over := px_too_wide(page)) else [])]
    narrow.close()
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_reading_editing_conflict_and_rights_by_keyboard_alone(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    context = browser.new_context(base_url=url)
    page = context.new_page()
    scene.wiki.save("By keys", "one\n\ntwo\n", author="Rita", base=0, owner="Rita")
    show(page, url, scene, Seen("by keys", "registered", "/By_keys"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the link to the text
    page.wait_for_url("**#content")
    press_at(page, '.tabs a[href="/By_keys/edit"]')
    page.wait_for_selector("#body")
    page.wait_for_load_state("load")  # the script that hears Ctrl+Enter runs by then
    scene.wiki.save("By keys", "eins\n\ntwo\n", author="Grace", base=1)
    page.focus("#body")
    page.keyboard.press("Control+A")
    page.keyboard.type("uno")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".conflict")
    press_at(page, "button[name=save]")
    page.wait_for_selector(".provenance")
    assert scene.wiki.page("By keys").author == "Rita"
    press_at(page, '.tabs a[href="/By_keys/acls"]')
    page.wait_for_selector("#list-write")
    press_at(page, "[name=own_write]", "Space")
    tab_to(page, "#list-write")
    page.keyboard.press("Control+A")
    page.keyboard.type("Rita")
    press_at(page, "button[name=save]")
    page.wait_for_url("**/By_keys")
    assert scene.wiki.page("By keys").rights.lists == {"write": "Rita"}
    context.close()


def test_an_upload_by_keyboard_alone(browser: Any, wiki: tuple[Scene, str], tmp_path: Path) -> None:
    scene, url = wiki
    picture = tmp_path / "Plan.csv"
    picture.write_text("a,b\n1,2\n")
    context = browser.new_context(base_url=url)
    page = context.new_page()
    scene.wiki.save("With files", "words", author="Rita", base=0, owner="Rita")
    show(page, url, scene, Seen("with files", "registered", "/With_files"))
    press_at(page, 'a[href="/With_files/files"]')
    page.wait_for_url("**/With_files/files")
    page.wait_for_load_state("load")
    choose_file_at(page, "main input[type=file]", picture)
    press_at(page, "main form button[type=submit], main form button.primary")
    page.wait_for_url("**/With_files/files?added=1")
    assert axe.findings(page) == []
    (version,) = scene.wiki.files.versions("With files", "Plan.csv")
    assert version.author == "Rita"
    context.close()

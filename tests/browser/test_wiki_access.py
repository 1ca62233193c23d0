"""Access for everybody, in short: axe, the keyboard alone, 400 % zoom.  The whole: ``tests.proofs.wiki_access``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import axe
from tests.support.seen_pages import REFUSED, Seen, missing_forms, pages, refused_pages, rich_scene, show
from tests.support.wiki_scene import Scene
from tests.support.wiki_server import running_wiki

SHORT = ("read", "conflict", "search", "acls", "edit", "recentchanges", "settings", "history", "missing")


@pytest.fixture(scope="module")
def wiki() -> Iterator[tuple[Scene, str]]:
    scene = rich_scene()
    with running_wiki(scene.wiki) as server:
        yield scene, server.url


def named(name: str) -> Seen:
    return next(seen for seen in pages() if seen.name == name)


def test_every_form_is_on_a_page_that_is_looked_at() -> None:
    scene = rich_scene()
    assert missing_forms(scene) == [], "seen_pages has to show them"
    assert refused_pages(scene) == REFUSED
    assert len(pages()) >= 30


@pytest.mark.parametrize("mode", sorted(axe.MODES))
def test_axe_finds_nothing(browser: Any, wiki: tuple[Scene, str], mode: str) -> None:
    scene, url = wiki
    context = browser.new_context(bypass_csp=True, **axe.MODES[mode])
    page = context.new_page()
    found = {}
    for name in SHORT[sorted(axe.MODES).index(mode) :: len(axe.MODES)]:
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
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if over > 0:
            wide[name] = over
    context.close()
    assert wide == {}


def tab_to(page: Any, wanted: str, most: int = 120) -> None:
    """By the Tab key alone, as somebody without a mouse; what has the focus must show it."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", wanted):
            ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert ring != "none", f"{wanted} has the focus and does not show it"
            return
    raise AssertionError(f"Tab never came to {wanted}")


def test_reading_editing_conflict_and_rights_by_keyboard_alone(browser: Any, wiki: tuple[Scene, str]) -> None:
    scene, url = wiki
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.set_default_timeout(10_000)
    scene.wiki.save("By keys", "one\n\ntwo\n", author="Rita", base=0, owner="Rita")
    show(page, url, scene, Seen("by keys", "registered", "/By_keys"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the link to the text
    assert page.url.endswith("#content")
    tab_to(page, '.tabs a[href="/By_keys/edit"]')
    page.keyboard.press("Enter")
    page.wait_for_selector("#body")
    page.wait_for_load_state("load")  # the script that hears Ctrl+Enter runs by then
    scene.wiki.save("By keys", "eins\n\ntwo\n", author="Grace", base=1)
    page.focus("#body")
    page.keyboard.press("Control+A")
    page.keyboard.type("uno")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".conflict")
    tab_to(page, "button[name=save]")
    page.keyboard.press("Enter")
    page.wait_for_selector(".provenance")
    assert scene.wiki.page("By keys").author == "Rita"
    tab_to(page, '.tabs a[href="/By_keys/acls"]')
    page.keyboard.press("Enter")
    page.wait_for_selector("#list-write")
    tab_to(page, "[name=own_write]")
    page.keyboard.press("Space")
    tab_to(page, "#list-write")
    page.keyboard.press("Control+A")
    page.keyboard.type("Rita")
    tab_to(page, "button[name=save]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/By_keys")
    assert scene.wiki.page("By keys").rights.lists == {"write": "Rita"}
    context.close()


def test_an_upload_by_keyboard_alone(browser: Any, wiki: tuple[Scene, str], tmp_path: Path) -> None:
    scene, url = wiki
    picture = tmp_path / "Plan.csv"
    picture.write_text("a,b\n1,2\n")
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.set_default_timeout(10_000)
    scene.wiki.save("With files", "words", author="Rita", base=0, owner="Rita")
    show(page, url, scene, Seen("with files", "registered", "/With_files"))
    tab_to(page, 'a[href="/With_files/files"]')
    page.keyboard.press("Enter")
    page.wait_for_url("**/With_files/files")
    page.wait_for_load_state("load")
    tab_to(page, "main input[type=file]")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(picture)
    tab_to(page, "main form button[type=submit], main form button.primary")
    page.keyboard.press("Enter")
    page.wait_for_url("**/With_files/files?added=1")
    assert axe.findings(page) == []
    (version,) = scene.wiki.files.versions("With files", "Plan.csv")
    assert version.author == "Rita"
    context.close()

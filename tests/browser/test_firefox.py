"""The wiki in Firefox: what people do there most, as in Chromium, and no page with an error of a script or the policy.

Checks of the other modules are run once more, beside some that are written for Firefox.  Playwright does not switch
scripts off there, has no phones and no forced colours, and an event of pasting that a script makes has no contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tests.browser import test_editor_drafts_in_browser as drafts
from tests.browser import test_editor_files_in_browser as files
from tests.browser import test_editor_in_browser as editor
from tests.browser import test_wiki_accounts_in_browser as accounts
from tests.browser import test_wiki_in_browser as desk
from tests.browser.conftest import Playwright, opened_firefox_of, quiet_pages
from tests.browser.test_reading_in_browser import TABLE
from tests.support import axe
from tests.support.attack.unsafe_server import unsafe_server
from tests.support.deep import cases
from tests.support.seen_pages import pages, rich_scene, show
from tests.support.wiki_server import WikiServer, running_wiki

POLICY = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by the policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));"""
PAPER = {"light": "rgb(252, 252, 250)", "dark": "rgb(20, 24, 27)"}
HOSTILE = '""<img src=x onerror="console.log(1)"><script>console.log(2)</script>"" [[javascript:console.log(3) | x]]'


def reading(open_page: Any, server: WikiServer, expect: Any) -> None:
    server.wiki.save("Table", f"# Tables\n\n{TABLE}\n\nSee [[Port]].", author="Ann", base=0, markup="markdown")
    server.wiki.save("Port", "====The port====\nA **quay** and cranes.", author="Ann", base=0)
    page = open_page(viewport={"width": 1280, "height": 800})
    page.goto("/Table")
    rivers, head = page.locator(".content tbody td:first-child"), page.locator(".content thead th").nth(1)
    expect(rivers).to_have_text(["Elbe", "Ems", "Äller"])
    head.locator("button").click()
    expect(rivers).to_have_text(["Äller", "Ems", "Elbe"])
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.locator(".content a", has_text="Port").hover()
    page.locator(".card").wait_for()
    assert "A quay and cranes." in page.locator(".card").inner_text()
    page.locator(".content a", has_text="Port").click()
    page.wait_for_selector(".content strong:text('quay')")


def pasted_words_become_markup(open_page: Any, server: WikiServer, expect: Any) -> None:
    server.wiki.save("Port", "A **quay** of stone.", author="Ann", base=0)
    page = open_page()
    page.goto("/Port")
    page.locator(".content").select_text()
    page.keyboard.press("Control+c")
    page.goto("/Draft/edit")
    page.wait_for_selector(".toolbar")
    page.focus("#body")
    page.keyboard.press("Control+v")
    expect(page.locator("#body")).to_have_value("A **quay** of stone.")


def a_file_is_dropped_into_the_text(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("P", "Before and after.", author="Ann", base=0)
    files.test_a_dropped_file_is_named_in_the_text_and_added_to_the_page(open_page, server)


def a_tool_writes_markup_and_the_preview_stands_beside_it(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/Draft/edit")
    page.wait_for_selector(".toolbar")
    page.focus("#body")
    page.keyboard.type("word")
    page.keyboard.press("Control+a")
    page.click("[data-tool=bold]")
    page.wait_for_selector(".preview.live strong:text('word')")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == "**word**"


def a_comment_is_previewed_and_sent(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Tides", "Of the sea.", author="Ada", base=0)
    page = open_page()
    page.goto("/Tides/comments")
    page.fill("textarea[name=body]", "Brackish water [[Tides]]")
    page.click("button[name=preview]")
    page.wait_for_selector(".preview a:has-text('Tides')")
    page.click("button[name=send]")
    page.wait_for_selector(".comments a:has-text('Tides')")


def a_file_is_sent_in_parts(open_page: Any, server: WikiServer, tmp_path: Path) -> None:
    server.wiki.save("P", "A text.", author="Ann", base=0)
    large = tmp_path / "Long ünï.csv"
    large.write_bytes(b"".join(b"%09d\n" % number for number in range(1_000_000)))
    page = open_page()
    page.goto("/P/files")
    page.set_input_files("input[type=file]", large)
    page.click("button:text('Upload')")
    page.wait_for_url("**/P/files?added=1")
    (version,) = server.wiki.files.versions("P", "Long ünï.csv")
    assert b"".join(server.wiki.files.content(version)) == large.read_bytes()


def hostile_markup_runs_nothing(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Hostile", HOSTILE, author="<img src=x onerror=console.log(4)>", note=HOSTILE, base=0)
    page = open_page()
    for place in ("/Hostile", "/Hostile/revisions", "/-/recentchanges"):
        page.goto(place)
    assert page.locator("main script, main [onerror]").count() == 0


def no_page_has_an_error(firefox: Any) -> None:
    scene = rich_scene()
    with running_wiki(scene.wiki) as server, quiet_pages(firefox, server, script=POLICY) as open_one:
        page = open_one()
        for seen in pages():
            show(page, server.url, scene, seen)
            assert axe.findings(page) == [], seen.name


Check = Callable[..., None]
SHORT: list[Check] = [
    reading,
    accounts.test_a_session_that_ends_during_an_edit_costs_no_text,
    a_tool_writes_markup_and_the_preview_stands_beside_it,
    desk.test_edits_in_two_windows_are_merged,
    desk.test_names_are_offered_while_one_is_typed_and_chosen_by_keys,
    a_comment_is_previewed_and_sent,
    a_file_is_sent_in_parts,
    hostile_markup_runs_nothing,
]
DEEP: list[Check] = [
    *SHORT,
    no_page_has_an_error,
    pasted_words_become_markup,
    a_file_is_dropped_into_the_text,
    partial(editor.test_tools_and_keys_write_the_markup_of_the_page, markup="wikka", cases=editor.TOOLS),
    partial(editor.test_tools_and_keys_write_the_markup_of_the_page, markup="markdown", cases=editor.MARKDOWN),
    editor.test_a_tool_is_taken_back_by_undo_and_done_again_by_redo,
    editor.test_names_of_pages_are_completed,
    editor.test_the_preview_follows_the_text,
    editor.test_a_conflict_takes_the_place_of_the_editor_and_can_be_saved,
    drafts.test_a_draft_is_sent_after_a_pause_and_said_to_be_kept_after_the_answer,
    drafts.test_a_cut_network_is_said_and_the_draft_follows,
    drafts.test_a_network_cut_during_a_save_costs_nothing,
    drafts.test_leaving_a_page_keeps_what_was_typed_last,
    drafts.test_a_copy_of_the_browser_is_offered_compared_and_gone_on_with,
    drafts.test_a_draft_that_is_thrown_away_does_not_come_back,
    partial(drafts.test_a_draft_is_thrown_away_after_the_text_that_is_on_its_way, breaks_off=False),
    desk.test_create_edit_and_read,
    desk.test_preview_keeps_what_was_typed,
    partial(desk.test_conflict_in_three_windows_loses_nothing, script=True),
    desk.test_choose_two_revisions_and_compare,
    desk.test_search_leads_to_the_page_or_offers_it,
    desk.test_names_are_offered_for_one_character_of_chinese,
    desk.test_a_heading_is_offered_with_its_page_and_leads_to_its_section,
    accounts.test_a_field_of_another_form_is_not_left_behind_unnoticed,
]


@pytest.fixture
def open_page(firefox: Any, server: WikiServer) -> Iterator[Callable[..., Any]]:
    with quiet_pages(firefox, server, script=POLICY) as open_one:
        yield open_one


@pytest.fixture
def expect() -> Any:
    return pytest.importorskip("playwright.sync_api").expect


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__).removeprefix("test_")


@pytest.mark.timeout(300)  # of a busy machine, for the one that looks at all pages
@pytest.mark.parametrize("check", cases("checks in Firefox", deep=DEEP, short=SHORT), ids=name_of)
def test_in_firefox(
    check: Check, firefox: Any, open_page: Any, server: WikiServer, expect: Any, tmp_path: Path
) -> None:
    given = {"firefox": firefox, "open_page": open_page, "server": server, "expect": expect, "tmp_path": tmp_path}
    check(**{name: given[name] for name in signature(check).parameters if name in given})


@pytest.mark.parametrize("looks", cases("colours in Firefox", deep=["light", "dark"], short=["light"]))
def test_the_colours_of_the_system(
    playwright_driver: Playwright, firefox: Any, server: WikiServer, expect: Any, tmp_path: Path, looks: str
) -> None:
    server.wiki.save("Page", "Some words.", author="Ada", base=0)

    def look(browser: Any) -> None:
        with quiet_pages(browser, server, script=POLICY) as open_one:
            page = open_one(color_scheme=looks)
            page.goto("/Page")
            expect(page.locator("body")).to_have_css("background-color", PAPER[looks])

    if looks == "light":
        look(firefox)
    else:
        with opened_firefox_of(playwright_driver, tmp_path, looks) as dark:
            look(dark)


def test_what_the_policy_refuses_and_what_fails_are_noticed(firefox: Any) -> None:
    context = firefox.new_context()
    page = context.new_page()
    page.add_init_script(POLICY)
    with unsafe_server() as url:
        with page.expect_console_message(lambda said: "refused by the policy: script-src" in said.text):
            page.goto(f"{url}/strict")
        with page.expect_event("pageerror", lambda error: "__ran" in str(error)):
            page.goto(url)
    context.close()

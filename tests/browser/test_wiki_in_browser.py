"""The wiki as people use it: in a real browser, on a desk and on a phone, in daylight and in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.rich_page import RICH_PAGE
from tests.support.wiki_server import WikiServer

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Callable[..., Any]]:
    with quiet_pages(browser, server, 404, 409) as opened:
        yield opened


def rich(server: WikiServer) -> None:
    server.wiki.save("TidalRivers", RICH_PAGE, author="Ada", base=0)
    server.wiki.save("TidalRivers", RICH_PAGE.replace("twice", "two times"), author="Grace", note="words", base=1)


def test_create_edit_and_read(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/New_page")
    page.click("text=Create this page")
    page.fill("#body", "======A title======\nLinks to OtherPage.")
    page.fill("[name=note]", "begun")
    page.click("button[name=save]")
    page.wait_for_selector(".provenance")
    assert page.inner_text(".content h1").startswith("A title")
    page.click("a.missing")
    page.wait_for_url("**/OtherPage/edit")  # the script that hears Ctrl+Enter runs by then
    page.fill("#body", "Other.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".provenance")
    page.goto("/OtherPage/backlinks")
    assert page.inner_text(".names") == "New page"
    page.goto("/-/recentchanges")
    assert "begun" in page.inner_text("main")


def test_preview_keeps_what_was_typed(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/Draft/edit")
    text = '\n\nTwo empty lines, **bold**, <b>&amp;</b> and "quotes".\n'
    page.fill("#body", text)
    page.fill("[name=note]", "a note")
    page.click("button[name=preview]")
    assert page.inner_text(".preview strong") == "bold"
    assert page.input_value("#body") == text
    assert page.input_value("[name=note]") == "a note"
    page.click("button[name=save]")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == text
    assert server.wiki.page("Draft").author.startswith("Visitor ")


def test_edits_in_two_windows_are_merged(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Merged", "first line\nsecond line", author="x", base=0)
    one, two = open_page(), open_page()
    for page in (one, two):
        page.goto("/Merged/edit")
    one.fill("#body", "first line of one\nsecond line")
    one.click("button[name=save]")
    one.wait_for_selector(".provenance")
    two.fill("#body", "first line\nsecond line of two")
    two.click("button[name=save]")
    two.wait_for_selector(".banner.merged")
    assert server.wiki.page("Merged").body == "first line of one\nsecond line of two"
    two.click("text=What the other edit changed")
    two.wait_for_selector(".diff.side")
    assert "of one" in two.inner_text(".diff ins")


@pytest.mark.parametrize("script", [True, False])
def test_conflict_in_three_windows_loses_nothing(open_page: Any, server: WikiServer, script: bool) -> None:
    name = f"Both{script}"
    server.wiki.save(name, "first line\n\nsecond line", author="x", base=0)
    three = [open_page(java_script_enabled=script) for _ in range(3)]
    for page in three:
        page.goto(f"/{name}/edit")
    for number, page in enumerate(three, 1):
        page.fill("#body", f"first line of {number}\n\nsecond line")
        page.click("button[name=save]")
        if number == 1:
            page.wait_for_selector(".provenance")
            continue
        page.wait_for_selector(".conflict")
        assert page.input_value("#body") == f"first line of {number}\n\nsecond line"
        assert page.input_value("#theirs") == server.wiki.page(name).body
        assert "first line of 1" in page.inner_text(".place")
        page.click("button[value=save][name=choose]")
        assert page.url.endswith(f"/{name}/edit"), "the browser asks for a choice first"
        page.check("input[value=both]")
        page.click("button[value=edit][name=choose]" if number == 3 else "button[value=save][name=choose]")
        if number == 3:
            page.wait_for_selector(".conflict", state="detached")
            page.click("button[name=save]")
        page.wait_for_selector(".provenance")
    assert server.wiki.page(name).body == "first line of 1\nfirst line of 2\nfirst line of 3\n\nsecond line"


def test_a_section_is_edited_while_another_is_saved(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Parts", "===== One =====\nfirst\n\n===== Two =====\nsecond", author="x", base=0)
    page = open_page(java_script_enabled=False)
    page.goto("/Parts")
    with page.expect_navigation():
        page.click("#s-two .edit-section")
    assert page.input_value("#body") == "===== Two =====\nsecond"
    server.wiki.save("Parts", "===== One =====\n1st\n\n===== Two =====\nsecond", author="x", base=1)
    page.fill("#body", "===== Two =====\n2nd")
    page.click("button[name=save]")
    page.wait_for_selector(".banner.merged")
    assert server.wiki.page("Parts").body == "===== One =====\n1st\n\n===== Two =====\n2nd"


def test_a_draft_is_kept_and_gone_on_with_without_script(open_page: Any, server: WikiServer) -> None:
    page = open_page(java_script_enabled=False)
    page.goto("/Kept/edit")
    page.fill("#body", "not ready")
    page.click("button[name=keep]")
    page.wait_for_selector(".banner.kept")
    page.goto("/Kept/edit")
    assert page.input_value("#body") == ""
    with page.expect_navigation():
        page.click("text=Go on with it")
    assert page.input_value("#body") == "not ready"
    page.click("button[name=save]")
    page.wait_for_selector(".provenance")
    page.goto("/Kept/edit")
    assert page.query_selector(".banner") is None


def test_choose_two_revisions_and_compare(open_page: Any, server: WikiServer) -> None:
    rich(server)
    page = open_page()
    page.goto("/TidalRivers/revisions")
    page.click("text=Compare the chosen")
    page.wait_for_selector(".diff.side")
    assert "twice" in page.inner_text(".diff .old del >> nth=0")
    page.click('.switch a:has-text("Inline")')
    page.wait_for_selector(".diff.inline")
    assert "two times" in page.inner_text(".diff.inline .insert >> nth=0")


def test_reading_and_editing_need_no_script(open_page: Any, server: WikiServer) -> None:
    page = open_page(java_script_enabled=False)
    page.goto("/Plain/edit")
    page.fill("#body", "without script")
    with page.expect_navigation():
        page.click("button[name=save]")
    assert "without script" in page.inner_text(".content")


def test_search_leads_to_the_page_or_offers_it(open_page: Any, server: WikiServer) -> None:
    rich(server)
    page = open_page()
    page.goto("/")
    page.fill("header [name=q]", "TidalRivers")
    page.keyboard.press("Enter")
    page.wait_for_selector(".provenance")
    page.fill("header [name=q]", "tidal")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=you can create it")
    assert "TidalRivers" in page.inner_text(".hits")


def test_names_are_offered_while_one_is_typed_and_chosen_by_keys(open_page: Any, server: WikiServer) -> None:
    rich(server)
    page = open_page()
    page.goto("/-/recentchanges")
    page.keyboard.press("/")
    page.keyboard.type("tidal")
    option = page.wait_for_selector("#suggestions [role=option]")
    assert option.inner_text() == "TidalRivers"
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("header [name=q]", "aria-activedescendant") == "suggestion-0"
    page.keyboard.press("Escape")
    assert page.is_hidden("#suggestions")
    page.keyboard.type(" ")
    page.keyboard.press("Backspace")
    page.wait_for_selector("#suggestions [role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/TidalRivers")
    page.keyboard.press("Control+k")
    page.keyboard.type("zzzz nothing")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=you can create it")


def test_names_are_offered_for_one_character_of_chinese(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("潮汐", "海の動き", author="Ann", base=0)
    page = open_page()
    page.goto("/-/recentchanges")
    page.keyboard.press("/")
    page.keyboard.insert_text("潮")
    assert page.wait_for_selector("#suggestions [role=option]").inner_text() == "潮汐"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".provenance")
    assert page.inner_text(".content h1, .content p") == "海の動き"


def test_a_heading_is_offered_with_its_page_and_leads_to_its_section(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Moon", "intro\n====Crew of it====\nthree men", author="Ann", base=0)
    page = open_page()
    page.goto("/Moon")
    page.keyboard.press("/")
    page.keyboard.type("crew")
    option = page.wait_for_selector("#suggestions [role=option]")
    assert option.inner_text() == "Crew of it in Moon"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/Moon#s-crew-of-it")
    assert page.is_hidden("#suggestions")


def test_what_escape_has_closed_stays_closed_when_a_later_answer_comes(open_page: Any, server: WikiServer) -> None:
    rich(server)
    page = open_page()
    page.goto("/-/recentchanges")
    held: list[Any] = []
    page.route("**/-/suggest?*q=tidal", lambda route: held.append(route))
    page.keyboard.press("/")
    page.keyboard.insert_text("tida")
    page.wait_for_selector("#suggestions [role=option]")
    with page.expect_request("**/-/suggest?*q=tidal"):
        page.keyboard.insert_text("l")
    page.keyboard.press("Escape")
    assert page.is_hidden("#suggestions")
    with page.expect_response("**/-/suggest?*q=tidal") as late:
        held[0].continue_()
    assert late.value.finished() is None
    page.evaluate("new Promise((done) => setTimeout(done))")  # what was waiting for the answer has run by then
    assert page.is_hidden("#suggestions")


def test_a_name_that_is_chosen_stays_so_when_a_later_answer_comes(open_page: Any, server: WikiServer) -> None:
    rich(server)
    page = open_page()
    page.goto("/-/recentchanges")
    page.keyboard.press("/")
    page.keyboard.type("tida")
    page.wait_for_selector("#suggestions [role=option]")
    page.keyboard.press("ArrowDown")
    page.evaluate("document.getElementById('suggestion-0').dataset.earlier = ''")
    page.keyboard.type("l")
    page.wait_for_selector("#suggestion-0:not([data-earlier])")
    assert page.get_attribute("header [name=q]", "aria-activedescendant") == "suggestion-0"
    assert page.get_attribute("#suggestion-0", "aria-selected") == "true"
    page.keyboard.press("Enter")
    page.wait_for_url("**/TidalRivers")


PLACES = ["", "/edit", "/revisions", "/diff", "/diff?style=inline", "/history", "/backlinks", "/revert"]


def test_phone_width_never_scrolls_sideways(open_page: Any, server: WikiServer) -> None:
    rich(server)
    server.wiki.save(
        "W" * 200, "x" * 400 + "\n" + "%%\n" + "y" * 400 + "\n%%\n||" + "z" * 300 + "||", author="a", base=0
    )
    page = open_page(**PHONE)
    places = [f"/{name}{place}" for name in ("TidalRivers", "W" * 200, "Nowhere") for place in PLACES]
    for place in [*places, "/-/recentchanges", "/-/pageindex", "/-/wantedpages", "/-/search?q=river"]:
        page.goto(place)
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, place


def _luminance(page: Any, selector: str, what: str) -> float:
    colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{what}")
    red, green, blue = (int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(open_page: Any, server: WikiServer, scheme: str) -> None:
    rich(server)
    page = open_page(color_scheme=scheme)
    page.goto("/TidalRivers")
    ground = _luminance(page, "body", "backgroundColor")
    assert (ground < 0.05) == (scheme == "dark")
    for selector in ("body", ".content a:not(.missing)", "a.missing", ".tabs a", ".provenance"):
        ink = _luminance(page, selector, "color")
        contrast = (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05)
        assert contrast >= 4.5, (selector, contrast)


def test_the_keyboard_reaches_the_text_first(open_page: Any, server: WikiServer) -> None:
    rich(server)
    page = open_page()
    page.goto("/TidalRivers")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0


def test_hostile_page_runs_no_script(open_page: Any, server: WikiServer) -> None:
    body = '""<img src=x onerror="window.bad=1"><script>window.bad=1</script>"" [[javascript:window.bad=1 | here]]'
    server.wiki.save(
        "Hostile<script>window.bad=1</script>", body, author="<img src=x onerror=bad()>", note=body, base=0
    )
    page = open_page()
    for place in ("/Hostile%3Cscript%3Ewindow.bad=1%3C~2Fscript%3E", "/-/recentchanges", "/-/pageindex"):
        page.goto(place)
        assert page.evaluate("typeof window.bad") == "undefined"

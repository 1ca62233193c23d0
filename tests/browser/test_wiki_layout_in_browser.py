"""The layout of pages as a person sees it: what stands in line, what has room, and what says that it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support.wiki_server import WikiServer

SCREENS = {
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
PAGE = """=====Short=====
A sentence with a note[^1^] and x""<sup>2</sup>"" and H""<sub>2</sub>""O, long enough to take several lines on each of
the two screens, with ""<sup>[12]</sup>"" a reference as imports write them.

====A heading that is so long that it needs two lines on every screen, however wide it may be, with all its words====
""" + "".join("||" + "||".join(["a cell with words"] * 12) + "||\n" for _ in range(3))
BEHIND_WORDS = """() => [...document.querySelectorAll(".content .edit-section")].map((edit) => {
    const words = document.createRange();
    words.selectNode(edit.parentElement.firstChild);
    const last = [...words.getClientRects()].at(-1);
    return edit.getBoundingClientRect().left - last.right;
})"""
LINES = """(selector) => {
    const one = document.querySelector(selector);
    return one.clientHeight / parseFloat(getComputedStyle(one).lineHeight);
}"""


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    server.wiki.save("Page", PAGE, author="Ann", base=0)
    with quiet_pages(browser, server) as open_one:
        yield open_one


def box(page: Any, selector: str) -> dict[str, float]:
    found: dict[str, float] = page.locator(selector).first.bounding_box()
    return found


@pytest.mark.parametrize("screen", SCREENS)
def test_edit_stands_behind_the_words_of_its_heading(open_page: Any, screen: str) -> None:
    page = open_page(**SCREENS[screen])
    page.goto("/Page")
    gaps = page.evaluate(BEHIND_WORDS)
    assert len(gaps) == 2
    assert all(0 <= gap <= 12 for gap in gaps), gaps


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("path", ["/Page", "/Page/edit", "/-/recentchanges"])
def test_the_header_is_in_line_with_the_text(open_page: Any, screen: str, path: str) -> None:
    page = open_page(**SCREENS[screen])
    page.goto(path)
    assert abs(box(page, ".brand")["x"] - box(page, ".page-head")["x"]) < 1
    head, search = box(page, ".page-head"), box(page, "form.search")
    assert abs(search["x"] + search["width"] - head["x"] - head["width"]) < 1


@pytest.mark.parametrize("screen", SCREENS)
def test_raised_and_lowered_letters_stretch_no_line(open_page: Any, screen: str) -> None:
    page = open_page(**SCREENS[screen])
    page.goto("/Page")
    lines = page.evaluate(LINES, ".content h2 + p")
    assert lines > 1.5
    assert abs(lines - round(lines)) < 0.06, lines


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_wide_table_shows_at_its_edges_that_it_scrolls(open_page: Any, scheme: str) -> None:
    page = open_page(**SCREENS["phone"], color_scheme=scheme)
    page.goto("/Page")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    table = page.locator(".content .table")
    assert table.evaluate("(one) => one.scrollWidth > one.clientWidth")
    assert (
        table.evaluate("(one) => getComputedStyle(one).backgroundAttachment") == "local, local, scroll, scroll, scroll"
    )
    seen = [table.screenshot()]
    table.evaluate("(one) => { one.style.background = 'none'; }")
    assert table.screenshot() != seen[0], "the shade is seen"


@pytest.mark.parametrize("screen", SCREENS)
def test_two_notices_of_kept_text_leave_the_editor_its_room(open_page: Any, server: WikiServer, screen: str) -> None:
    page = open_page(**SCREENS[screen])
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/Fresh/edit")
    page.wait_for_selector(".toolbar")
    page.fill("#body", "some text")
    page.click("button[name=keep]")
    page.wait_for_selector(".kept-status:not(:empty)")
    page.evaluate("""() => wikkaEditor.copies.write({
        page: "Fresh", as: "", id: "0123456789abcdef", body: "more text, not kept", note: "", base: "0", section: "",
        base_token: "", format: "wikka", written: "wikka", time: Date.now(), confirmed: null,
    })""")
    page.goto("/Fresh/edit")
    page.wait_for_selector(".banner.copy")
    head, text, bar = box(page, ".page-head"), box(page, "#body"), box(page, ".save-bar")
    notices = page.locator(".banner.kept")
    assert notices.count() == 2
    for n in range(2):
        assert abs(notices.nth(n).bounding_box()["width"] - head["width"]) < 1
    assert bar["y"] - text["y"] >= 160, "of the text in sight"
    writing = box(page, ".writing")
    assert abs(writing["width"] - head["width"]) < 1
    assert text["width"] > 0.45 * writing["width"]


def test_the_bar_that_saves_is_low_on_a_phone(open_page: Any) -> None:
    page = open_page(**SCREENS["phone"])
    page.goto("/Page/edit")
    page.wait_for_selector(".toolbar")
    assert box(page, ".save-bar")["height"] <= 115
    assert page.get_by_label("What did you change?").is_visible()
    assert page.is_visible("[name=format]")

"""What a script adds to reading: tables that sort, first words of a page behind a link, the tree of pages in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support import axe
from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_server import running_wiki

DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}}
ROWS = [("Elbe", "1,094", "1.5 %", "2024-02-01"), ("Ems", "371", "12 %", "2023-12-31"), ("Äller", "260.5", "-3 %", "")]
TABLE = "| River | Length | Share | Seen |\n|---|---:|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in ROWS)
LONG = "| n | m |\n|---|---|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(80))
ODD = "| [[Port]] | x |\n|---|---|\n| a | b |\n| c | d |\n| e | f |\n"


@pytest.fixture
def wiki() -> MemoryWiki:
    wiki = MemoryWiki()
    save = wiki.save
    save("Table", f"# Tables\n\n{TABLE}\n\n{LONG}\n\n{ODD}", author="Ann", base=0, markup="markdown")
    port = "====The port====\nA **quay** and cranes.\n----[[Port/Pier]] [[Nowhere]] [[Empty]]"
    save("Port", port, author="Ann", base=0)
    save("Port/Pier", "Go to [[Port]] or [[Port/Crane]].", author="Ann", base=0)
    crane = "=====One=====\na\n=====Two=====\nb\n=====Three=====\nc\n" + "\n\nlong\n" * 80
    save("Port/Crane", crane, author="Ann", base=0)
    save("Empty", "", author="Ann", base=0)
    return wiki


@pytest.fixture
def open_page(browser: Any, wiki: MemoryWiki) -> Iterator[Any]:
    with running_wiki(wiki) as server, quiet_pages(browser, server) as open_one:
        yield open_one


def column(page: Any, number: int) -> list[str]:
    found: list[str] = page.eval_on_selector(
        ".content table",
        "(table, n) => [...table.tBodies[0].rows].map((row) => row.cells[n].textContent.trim())",
        number,
    )
    return found


@pytest.mark.parametrize(
    ("number", "up", "down"),
    [
        (0, ["Äller", "Elbe", "Ems"], ["Ems", "Elbe", "Äller"]),
        (1, ["260.5", "371", "1,094"], ["1,094", "371", "260.5"]),
        (2, ["-3 %", "1.5 %", "12 %"], ["12 %", "1.5 %", "-3 %"]),
        (3, ["2023-12-31", "2024-02-01", ""], ["2024-02-01", "2023-12-31", ""]),
    ],
)
def test_a_table_is_sorted_by_its_head(open_page: Any, number: int, up: list[str], down: list[str]) -> None:
    page = open_page(**DESK)
    page.goto("/Table")
    before = column(page, number)
    head = page.locator(".content table").first.locator("thead th").nth(number)
    for wanted, said in ((up, "ascending"), (down, "descending"), (before, None)):
        head.locator("button").focus()
        page.keyboard.press("Enter")
        assert column(page, number) == wanted
        assert head.get_attribute("aria-sort") == said


def test_the_head_of_a_long_table_stays_in_sight(open_page: Any) -> None:
    page = open_page(**DESK)
    page.goto("/Table")
    box = page.locator(".content .table").nth(1)
    box.evaluate("(box) => box.scrollTo(0, 900)")
    head, around = box.locator("thead th").first.bounding_box(), box.bounding_box()
    assert abs(head["y"] - around["y"]) < 3
    assert around["height"] < 0.9 * 800
    linked = page.locator(".content table").nth(2).locator("th:first-child")
    assert linked.locator("a").count() == 1
    assert linked.locator("button").count() == 0, "a head with a link sorts nothing"


def test_a_link_that_is_pointed_at_shows_the_first_words_of_its_page(open_page: Any) -> None:
    page = open_page(**DESK)
    page.clock.install()
    page.goto("/Port~2FPier")
    link, card = page.locator(".content a", has_text="Port").first, page.locator(".card")
    link.hover()
    card.wait_for()
    assert card.inner_text().split("\n")[0] == "Port"
    assert "A quay and cranes." in card.inner_text()
    assert link.get_attribute("aria-describedby") == "card"
    card.hover()  # the pointer can go over to it
    page.clock.run_for(600)
    assert card.is_visible()
    page.keyboard.press("Escape")
    assert card.is_hidden()
    assert link.get_attribute("aria-describedby") is None
    page.locator(".content a", has_text="Crane").focus()
    card.wait_for()
    page.locator(".tabs a").first.focus()
    card.wait_for(state="hidden")


def test_the_tree_opens_in_place_and_stays_open_on_the_next_page(open_page: Any) -> None:
    page = open_page(**DESK)
    page.goto("/Port~2FPier")
    page.locator("details.tree > summary").press("Enter")
    page.locator(".tree-list a").first.wait_for()
    assert page.locator(".tree-list a").all_inner_texts() == ["Port", "Crane", "Pier"]
    tree, text = page.locator("details.tree").bounding_box(), page.locator("article.content").bounding_box()
    assert tree["x"] >= text["x"] + text["width"], "it stands beside the text"
    page.locator(".tree-list a", has_text="Crane").click()
    page.wait_for_url("**/Port~2FCrane")
    page.locator(".tree-list a[aria-current]").wait_for()
    assert page.locator(".tree-list a[aria-current]").inner_text() == "Crane"
    page.locator("details.tree > summary").press("Enter")
    page.wait_for_function("localStorage.getItem('wikka-tree') === null")  # the event comes after the key
    page.goto("/Port~2FPier")
    assert page.locator(".tree-list").count() == 0


@pytest.mark.parametrize("looks", ["light", "dark", "forced"])
@pytest.mark.parametrize("width", [320, 1280, 1920])
def test_what_the_script_adds_has_no_findings(open_page: Any, looks: str, width: int) -> None:
    colours = {"forced_colors": "active"} if looks == "forced" else {"color_scheme": looks}
    page = open_page(viewport={"width": width, "height": 800}, bypass_csp=True, **colours)
    for path in ("/Table", "/Port~2FPier/tree", "/Port~2FCrane"):
        page.goto(path)
        if path.endswith("Crane"):
            page.locator("details.tree > summary").press("Enter")
            page.locator(".tree-list a").first.wait_for()
        assert axe.findings(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_without_a_script_the_tree_is_a_page(open_page: Any) -> None:
    page = open_page(**PHONE, java_script_enabled=False)
    page.goto("/Port~2FPier")
    page.locator("details.tree > summary").click()
    with page.expect_navigation():
        page.locator("details.tree a").click()
    assert page.locator(".tree-list a").all_inner_texts() == ["Port", "Crane", "Pier"]

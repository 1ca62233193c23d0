"""The report of a replay in a real browser: light, dark, phone, paper, no script; nothing is fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.made_report import made_report
from wikibench.experiments.tables import Page, Row, Table, html_of
from wikibench.report import write_page


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_page(tmp_path_factory.mktemp("report") / "report.html", made_report(120, 30)).as_uri()


@contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A page that has been opened; at its end the console has said nothing, and nothing but the page was requested."""
    context = browser.new_context(**options)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: request.url == url or said.append(request.url))
    page.goto(url)
    yield page
    context.close()
    assert said == []


def drawn_over_time(page: Any) -> Any:
    page.wait_for_selector("[data-plot=failures] canvas")
    return page.locator("[data-plot=latency] .u-over")


@pytest.mark.parametrize(
    "options",
    [{}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}, "has_touch": True}],
    ids=["light", "dark", "phone"],
)
def test_plots_are_drawn_and_fit_the_window(browser: Any, url: str, options: dict[str, Any]) -> None:
    with opened(browser, url, **options) as page:
        drawn_over_time(page)
        assert page.locator(".chart canvas").count() == 4
        assert page.locator("svg:visible").count() == 0
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width == 0


def test_a_zoom_and_the_cursor_are_of_all_plots_over_time(browser: Any, url: str) -> None:
    with opened(browser, url) as page:
        box = drawn_over_time(page).bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] * 0.25, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=4)
        page.mouse.up()
        page.wait_for_selector("#zoom-whole:enabled")
        scales = "page.then(({charts}) => ['latency', 'rate', 'failures'].map((name) => charts[name].scales.x.min))"
        least = page.evaluate(scales)
        assert least[0] == pytest.approx(30, abs=2)
        assert least[1] == pytest.approx(least[0], abs=0.5)
        assert least[2] == pytest.approx(least[0], abs=0.5)
        page.mouse.move(box["x"] + box["width"] * 0.5, middle)
        seconds = page.locator("[data-plot=latency], [data-plot=rate], [data-plot=failures]").locator(
            ".u-series:first-child .u-value"
        )
        assert len(set(seconds.all_inner_texts())) == 1
        page.click("#zoom-whole")
        page.wait_for_selector("#zoom-whole:disabled")
        assert page.evaluate(scales) == [0, 0, 0]


def test_a_click_or_a_key_on_a_name_hides_its_line(browser: Any, url: str) -> None:
    with opened(browser, url) as page:
        drawn_over_time(page)
        name = page.locator("[data-plot=latency] .u-legend th").nth(1)
        name.click()
        assert name.get_attribute("aria-pressed") == "false"
        name.press("Enter")
        assert name.get_attribute("aria-pressed") == "true"


def test_without_script_and_on_paper_there_are_drawings_and_tables(browser: Any, url: str) -> None:
    with opened(browser, url, java_script_enabled=False) as page:
        assert page.locator("svg:visible").count() == 4
        page.locator("[data-plot=rate] summary").click()
        assert page.locator("[data-plot=rate] tbody tr:visible").count() > 100
    with opened(browser, url, color_scheme="dark") as page:
        drawn_over_time(page)
        page.emulate_media(media="print")
        assert page.locator("svg:visible").count() == 4
        assert page.locator("canvas:visible").count() == 0
        ink = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
        assert ink == "#22262b"


def test_an_experiment_has_its_figures_on_paper_and_every_result_on_the_screen(browser: Any, tmp_path: Path) -> None:
    rows = tuple(Row(f"system {number}", ("7", "3.5")) for number in range(12))
    tables = tuple(Table(f"Table {number}", ("", "a", "b"), rows, ()) for number in range(3))
    page = Page("Rates", "What was measured.", (("machine", "2 cores"),), tables)
    drawing = '<svg viewBox="0 0 480 300"></svg>'
    file = tmp_path / "index.html"
    file.write_text(html_of(page, "", [drawing] * 3), "utf-8")
    with opened(browser, file.as_uri()) as shown:
        sheets = shown.pdf(format="A4").count(b"/Type /Page\n")
        assert sheets > 1
    file.write_text(html_of(page, '{"figures": 7}\n' * 3_000, [drawing] * 3), "utf-8")
    with opened(browser, file.as_uri()) as shown:
        shown.click("summary")
        assert shown.is_visible("pre")
        assert shown.pdf(format="A4").count(b"/Type /Page\n") == sheets
        shown.emulate_media(media="print")
        assert [shown.is_visible(one) for one in ("pre", "table >> nth=2", "svg >> nth=2")] == [False, True, True]


def test_no_text_of_a_report_becomes_markup(browser: Any, tmp_path: Path) -> None:
    report = made_report(5, 5)
    report["trace"]["file"] = report["command_line"] = "</script><script>console.log(1)</script><img src=x onerror=x>"
    with opened(browser, write_page(tmp_path / "report.html", report).as_uri()) as page:
        page.wait_for_selector("[data-plot=rate] canvas")
        assert page.locator("img").count() == 0

"""The pages of servers in a real browser: nothing sticks out of a phone, dark is dark, and /where answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
import waitress

from columnar.model.flow_status import FlowStatus, TriggerStatus
from columnar.model.measures import Family, SlowRequest
from columnar.storage.watched_folder import Room
from columnar.webui.cluster_pages import cluster_pages
from columnar.webui.cluster_status import PageStatus
from columnar.webui.flow_page import RIGHT
from tests.support.operated_cluster import OperatedCluster, table_infos

T = TypeVar("T")


class TwoServers:
    """One of them is silent."""

    def room(self) -> Room | None:
        return Room(7, 9)

    def measures(self) -> tuple[dict[str, tuple[Family, ...]], list[str]]:
        return {}, []

    def flows(self) -> tuple[list[FlowStatus], list[str]]:
        looks = [
            FlowStatus(
                "trigger", "spread-to-all-the-followers", ("posts/t",), ("timeline/in",), (), "running", 0, 0.0, 812.5
            ),
            FlowStatus(
                "trigger", "notify", ("timeline/in",), (), ("mail",), "paused", 12_345, 61.0, 0.0, dead=3, error="no"
            ),
            FlowStatus("view", "posts_by_author", ("posts/t",), ("posts_by_author/v",), rate_per_s=9.0, idle_s=2.0),
            FlowStatus("trigger", "back", ("mail/f",), ("posts/t",)),
            FlowStatus(
                "trigger",
                "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
                ("posts/t",),
                ("mmmmmmmmmmmmmmmmmmmmmmmmmmmmmm/f",),
                (),
                "paused",
                123_456_789,
                86_400.0,
                1_234_567.8,
                dead=12_345,
            ),
        ]
        return looks, ["s2"]

    def slow_requests(self) -> tuple[list[SlowRequest], list[str]]:
        about = "table=pages region=8f14e45fceea167a5a36dedd4bea2543 row=" + "long" * 40 + "; peer=127.0.0.1:4711"
        return [SlowRequest(1_764_176_531_000, 12_345, "getRowsWithColumns", about, "s1")], ["s2"]

    def triggers(self) -> tuple[list[TriggerStatus], list[str]]:
        error = "Traceback: " + "a long way down, " * 20 + "ValueError: no"
        looks = [
            TriggerStatus(f"links-of-{n}", "pages", "wiki:links", "running", n, 0.5, 0, n, error) for n in range(3)
        ]
        return looks, ["s2"]


PATHS = (
    "/servers",
    "/servers/s2",
    "/tables/pages",
    "/where?table=pages&row=b",
    "/transitions",
    "/decisions",
    "/requests",
    "/triggers",
    "/flows",
)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    cluster = OperatedCluster(table_infos("pages", 8), 3)
    cluster.rated({b"b": 300.0, b"d": 40.0})

    def ask(question: Callable[[], T], /) -> T:
        return question()

    def status() -> PageStatus:
        return PageStatus("9.9", "127.0.0.1:9090", "/srv/columnar", 60.0, cluster.control.reports.cluster_status())

    server = waitress.create_server(
        cluster_pages(ask, cluster.control.reports, status, TwoServers()), host="127.0.0.1", port=0, threads=1
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    yield f"http://127.0.0.1:{server.effective_port}"
    server.trigger.pull_trigger(server.close)
    server.task_dispatcher.shutdown()
    thread.join(10)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_of_a_phone(browser: Any, site: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    try:
        for path in PATHS:
            page.goto(site + path)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, path
            paper, ink = page.evaluate(
                "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
            )
            assert (brightness(paper) < brightness(ink)) == (scheme == "dark"), path
    finally:
        context.close()
    assert faults == [], "the page keeps its own rules about styles and images"


def test_texts_of_flows_end_before_the_curves_that_lead_back(browser: Any, site: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    try:
        page.goto(f"{site}/flows")
        ends = page.locator("svg.flows text").evaluate_all(
            "all => all.map(one => one.getBBox().x + one.getBBox().width)"
        )
        assert len(ends) > 8
        assert max(ends) <= RIGHT
        assert any("…" in text for text in page.locator("svg.flows text").all_text_contents())
    finally:
        context.close()


def brightness(color: str) -> float:
    return sum(map(float, color.removeprefix("rgb(").removesuffix(")").split(",")))


def test_a_person_finds_a_row_by_the_map_and_by_the_form(browser: Any, site: str) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    try:
        page.goto(f"{site}/tables/pages")
        fields = page.locator("svg.map rect")
        assert fields.count() == 8
        widths = fields.evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
        assert min(widths) > 20
        colours = set(fields.evaluate_all("all => all.map(one => getComputedStyle(one).fill)"))
        assert len(colours) == 3
        with page.expect_navigation():
            fields.nth(1).click()
        assert "/where?table=pages&row=b" in page.url
        page.get_by_label("Row").fill("dd")
        with page.expect_navigation():
            page.get_by_role("button", name="Look").click()
        assert "d to before e" in page.locator("dl.facts").inner_text()
    finally:
        context.close()

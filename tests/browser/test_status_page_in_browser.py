"""The pages of a store that is alone, in a real browser: long names, keys of bytes, wide tables, their navigation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from columnar.client import Connection
from tests.support.ports import free_port
from tests.support.standalone_store import StoreProcess

LONG = "a_table_with_a_very_long_name_" * 6 + "end"
BYTES = bytes(range(24)) + b"\xff" * 16


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    web_port = free_port()
    with StoreProcess(tmp_path_factory.mktemp("store") / "data", "--web-port", str(web_port)) as store:
        connection = Connection("127.0.0.1", store.port)
        connection.admin.create_table(LONG, {"family_with_a_long_name_" * 3: None}, splits=[BYTES, b"\xff" * 60])
        connection.table(LONG).put(BYTES, {"family_with_a_long_name_" * 3 + ":q": b"value"})
        connection.close()
        yield f"http://127.0.0.1:{web_port}"


@pytest.fixture
def phone(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


LINES_OF_BYTES = """() => [...document.querySelectorAll(".key")].flatMap((key) => {
    const found = [];
    const walker = document.createTreeWalker(key, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const { index } of node.data.matchAll(/\\\\x[0-9A-F]{2}/g)) {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + 4);
            found.push(new Set([...range.getClientRects()].map((one) => one.top)).size);
        }
    }
    return found;
})"""
PATHS = (
    "/",
    f"/?table={LONG}",
    f"/tables/{LONG}",
    "/servers",
    f"/where?table={LONG}&row=",
    "/flows",
    "/decisions",
    "/requests",
)


@pytest.mark.parametrize("path", PATHS, ids=[path.partition("=")[0].partition("/a_")[0] for path in PATHS])
def test_nothing_sticks_out_and_no_byte_of_a_key_is_broken(phone: Any, site: str, path: str) -> None:
    phone.goto(site + path)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    lines = phone.evaluate(LINES_OF_BYTES)
    assert set(lines) <= {1}
    assert len(lines) >= (40 if LONG in path else 0)
    for name in phone.locator("td.name").all():
        assert name.bounding_box()["width"] <= 380


def test_a_wide_table_shows_that_it_scrolls(phone: Any, site: str) -> None:
    phone.goto(f"{site}/?table={LONG}")
    wide = [box for box in phone.locator(".scroll").all() if box.evaluate("(one) => one.scrollWidth > one.clientWidth")]
    assert wide
    for box in wide:
        attachment = box.evaluate("(one) => getComputedStyle(one).backgroundAttachment")
        assert attachment == "local, local, scroll, scroll, scroll"


def test_every_page_leads_to_every_other(phone: Any, site: str) -> None:
    phone.goto(site + "/")
    names = phone.locator("nav a").all_inner_texts()
    assert names == ["Servers", "Where is a row", "Transitions", "Decisions", "Requests", "Flows"]
    for name in names:
        with phone.expect_navigation():
            phone.click(f"nav >> text={name}")
        assert phone.locator("nav a").all_inner_texts() == names
    phone.click("h1 a")
    phone.wait_for_url(site + "/")

"""A static site in a browser, from a disk: it is styled, its links lead on, and it asks nobody for anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integration.test_static_site import export, wiki  # noqa: F401 - a fixture
from wikka_port.pages import Wiki


def test_pages_open_from_a_disk_without_a_message_or_a_request(
    browser: Any,
    wiki: Wiki,  # noqa: F811
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a site"
    assert export(wiki, folder).exit_code == 0
    context = browser.new_context()
    page = context.new_page()
    messages: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    context.on("request", lambda request: requests.append(request.url))
    page.goto((folder / "index.html").as_uri())
    page.click("p >> text=HomePage")
    page.wait_for_url("**/pages/HomePage.html")
    page.locator("img[src$='Ship.png']").first.scroll_into_view_if_needed()
    decoded = "(async () => { const one = document.querySelector(\"img[src$='Ship.png']\"); await one.decode(); "
    assert page.evaluate(f"{decoded} return one.naturalWidth; }})()") == 4
    assert page.evaluate("getComputedStyle(document.querySelector('.bar')).display") != "inline"
    assert page.evaluate("document.styleSheets[0].href").endswith("/style.css")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.click("article a:text-is('words')")
    page.wait_for_url("**/pages/index**")
    page.goto((folder / "files/HomePage/page.html.txt").as_uri())
    assert page.title() == ""
    context.close()
    assert messages == []
    assert len(requests) > 5
    assert {url.partition("/")[0] for url in requests} == {"file:"}

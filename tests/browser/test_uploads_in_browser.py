"""Files are sent in parts by the script, and an upload continues after a break of the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support import axe
from tests.support.deep import seeds
from tests.support.file_forms import PNG
from tests.support.wiki_server import WikiServer, running_wiki
from wikka_port.files.file_rows import UPLOADS
from wikka_port.rights.rules import PageRights, Privilege

SIZE = seeds("bytes of an upload with a break in a browser", deep=50_000_000, short=20_000_000)
PART = 8_388_608  # bytes
NO_NETWORK = ("Failed to load resource: net::ERR_FAILED", "Failed to load resource: net::ERR_CONNECTION")


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "Long ünï.csv"
    path.write_bytes(b"".join(b"%09d\n" % number for number in range(SIZE // 10)))
    return path


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    server.wiki.save("P", "A text.", author="Ann", base=0)
    with quiet_pages(browser, server, 422, ignored=NO_NETWORK) as open_one:
        yield open_one


def test_an_upload_continues_after_a_break(open_page: Any, server: WikiServer, large: Path) -> None:
    page = open_page()
    parts: list[int] = []
    held: list[Any] = []

    def pass_on(route: Any) -> None:
        if route.request.method == "HEAD":  # which the script asks before it continues
            held.append(route)
            return
        if route.request.method == "PATCH":
            parts.append(int(route.request.headers["upload-offset"]))
            if len(parts) == 2:
                route.abort()
                return
        route.continue_()

    page.route("**/-/upload*", pass_on)
    page.goto("/P/files")
    page.fill("input[name=note]", "ein Ü")
    page.set_input_files("input[type=file]", large)
    with page.expect_request(lambda request: request.method == "HEAD"):
        page.click("button:text('Upload')")
    page.wait_for_selector("text=The connection is broken; the upload continues by itself.")
    assert axe.findings(page) == []
    held[0].continue_()
    page.wait_for_url("**/P/files?added=1")
    assert parts == [0, PART, *range(PART, SIZE, PART)], "the broken one twice"
    (version,) = server.wiki.files.versions("P", "Long ünï.csv")
    assert (version.size_bytes, version.note) == (SIZE, "ein Ü")
    assert b"".join(server.wiki.files.content(version)) == large.read_bytes()
    assert list(server.wiki.rows.scan(UPLOADS)) == []


def test_what_is_refused_is_said_beside_its_name_and_a_stopped_upload_leaves_nothing(
    open_page: Any, server: WikiServer, large: Path, tmp_path: Path
) -> None:
    program, text = tmp_path / "evil.exe", tmp_path / "fine.txt"
    program.write_bytes(b"MZ\x00\x01" * 100)
    text.write_text("fine")
    page = open_page()
    page.goto("/P/files")
    page.set_input_files("input[type=file]", [program, text])
    page.click("button:text('Upload')")
    page.wait_for_selector(".uploads >> text=Not added: The wiki does not know this kind of file.")
    page.wait_for_selector(".uploads >> text=Added.")
    page.route("**/-/upload*", lambda route: route.abort() if route.request.method == "PATCH" else route.continue_())
    page.set_input_files("input[type=file]", large)
    page.click("button:text('Upload')")
    page.wait_for_selector("text=The connection is broken")
    with page.expect_request(lambda request: request.method == "DELETE") as deleted:
        page.click("button:text('Stop')")
    assert deleted.value.response().status == 204
    page.wait_for_selector(".uploads >> text=Stopped.")
    assert list(server.wiki.rows.scan(UPLOADS)) == []
    assert [name for name, one in server.wiki.files.files_of("P").items() if one.is_there] == ["fine.txt"]


def test_each_of_several_pictures_has_its_own_words(open_page: Any, server: WikiServer, tmp_path: Path) -> None:
    for number, name in enumerate(("Harbour.png", "Pier.png")):
        (tmp_path / name).write_bytes(PNG + b"%d" % number)
    page = open_page()
    page.goto("/P/files")
    page.set_input_files("input[type=file]", [tmp_path / "Harbour.png", tmp_path / "Pier.png"])
    assert not page.is_visible("input[name=alt]")
    page.get_by_label("Harbour.png").fill("the harbour")
    page.get_by_label("Pier.png").fill("the pier")
    assert axe.findings(page) == []
    page.click("button:text('Upload')")
    page.wait_for_url("**/P/files?added=2")
    alts = {name: one.alt for name, one in server.wiki.files.files_of("P").items()}
    assert alts == {"Harbour.png": "the harbour", "Pier.png": "the pier"}


@pytest.mark.parametrize("mode", sorted(axe.MODES))
def test_the_files_of_a_new_page_have_no_fault(browser: Any, server: WikiServer, tmp_path: Path, mode: str) -> None:
    for number in range(2):
        (tmp_path / f"A long name of a picture that has no blanks at the end_{'x' * 60}{number}.png").write_bytes(PNG)
    with quiet_pages(browser, server) as open_one:
        page = open_one(viewport={"width": 320, "height": 600}, **axe.MODES[mode])
        page.goto("/New/files")
        assert axe.findings(page) == []
        page.set_input_files("input[type=file]", sorted(tmp_path.glob("*.png")))
        assert axe.findings(page) == []
        page.click("button:text('Upload')")
        page.wait_for_selector("details.describe[open] >> text=Save the descriptions")
        assert axe.findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, "nothing scrolls sideways"


def test_without_a_script_pictures_wait_for_a_new_page_and_get_their_words(
    browser: Any, server: WikiServer, tmp_path: Path
) -> None:
    for number, name in enumerate(("Harbour.png", "Pier.png")):
        (tmp_path / name).write_bytes(PNG + b"%d" % number)
    with quiet_pages(browser, server) as open_one:
        page = open_one(java_script_enabled=False)
        page.goto("/New/files")
        page.set_input_files("input[type=file]", [tmp_path / "Harbour.png", tmp_path / "Pier.png"])
        page.click("button:text('Upload')")
        page.wait_for_selector("text=2 files are added.")
        page.get_by_label("Harbour.png").fill("the harbour")
        page.get_by_label("Pier.png").fill("the pier")
        page.click("button:text('Save the descriptions')")
        page.wait_for_selector("text=2 descriptions are saved.")
        page.click("text=Write the page")
        page.fill("textarea[name=body]", "[[Harbour.png]] [[Pier.png]]")
        page.click("button[name=preview]")
        page.wait_for_selector(".preview img[alt='the pier']")
        page.click("button[name=save]")
        page.wait_for_selector("article img[src^='/New/files/Harbour.png'][alt='the harbour']")
    assert set(server.wiki.files.files_of("New")) == {"Harbour.png", "Pier.png"}


def test_a_refusal_is_seen_though_the_browser_still_sends(browser: Any, large: Path) -> None:
    """The file is larger than what the wiki reads and drops behind its answer."""
    with running_wiki(max_text_bytes=1) as server:
        server.wiki.save("P", "A text.", author="Ann", base=0, owner="Ann")
        with quiet_pages(browser, server, 403) as open_one:
            page = open_one(java_script_enabled=False)
            page.goto("/P/files")
            page.set_input_files("input[type=file]", large)
            server.wiki.rights.change("P", PageRights("Ann"), "Ann", {Privilege.WRITE: "Ann"})
            page.click("button:text('Upload')")
            page.wait_for_selector("text=You may not edit this page.")


# The wiki gets each part; the answer to the first one of each upload is lost on its way.
LOSING = """(() => {
  const given = window.fetch.bind(window);
  const lost = new Set();
  window.fetch = async (to, how) => {
    const answer = await given(to, how);
    if (how?.method !== "PATCH" || lost.has(to)) return answer;
    lost.add(to);
    throw new TypeError("the answer is lost");
  };
})();
"""


def test_a_lost_last_answer_is_asked_for_and_not_taken_for_success(
    browser: Any, server: WikiServer, tmp_path: Path
) -> None:
    server.wiki.save("Lossy", "A text.", author="Ann", base=0)
    program, text = tmp_path / "evil.exe", tmp_path / "Fine ünï.txt"
    program.write_bytes(b"MZ\x00\x01" * 100)
    text.write_text("fine")
    with quiet_pages(browser, server, 404, 422, ignored=NO_NETWORK) as open_one:
        page = open_one()
        page.add_init_script(LOSING)
        page.goto("/Lossy/files")
        page.set_input_files("input[type=file]", [program, text])
        page.click("button:text('Upload')")
        page.wait_for_selector(".uploads >> text=Added.")
        said = page.locator(".uploads li").all_inner_texts()
    assert "Not added: The upload has ended" in said[0]
    assert said[1].endswith("Added.")
    assert [name for name, one in server.wiki.files.files_of("Lossy").items() if one.is_there] == ["Fine ünï.txt"]

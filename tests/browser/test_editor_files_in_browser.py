"""Files that are pasted into the editor, dropped there or chosen: the text names them, and the page gets them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.support import axe
from tests.support.file_forms import PNG
from tests.support.wiki_server import WikiServer
from wikka_port.files.file_rows import UPLOADS

SEND = """([kind, files, words]) => {
  const transfer = new DataTransfer();
  for (const [name, type, content] of files) {
    const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
    transfer.items.add(new File([bytes], name, { type }));
  }
  if (words) transfer.setData("text/plain", words);
  const area = document.querySelector("textarea[name=body]");
  const given = { bubbles: true, cancelable: true };
  area.dispatchEvent(kind === "paste" ? new ClipboardEvent("paste", { ...given, clipboardData: transfer })
    : new DragEvent("drop", { ...given, dataTransfer: transfer }));
}"""


def send(page: Any, kind: str, *files: tuple[str, str, bytes], words: str = "") -> None:
    given = [[name, kind_of, base64.b64encode(content).decode()] for name, kind_of, content in files]
    page.evaluate(SEND, [kind, given, words])


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    server.wiki.save("P", "Before and after.", author="Ann", base=0)
    with quiet_pages(browser, server, 422) as open_one:
        yield open_one


def text_of(page: Any) -> str:
    return str(page.input_value("textarea[name=body]"))


def files_of(server: WikiServer) -> set[str]:
    return set(server.wiki.files.files_of("P"))


def at_end_of_before(page: Any) -> None:
    page.evaluate("document.querySelector('textarea[name=body]').setSelectionRange(7, 7)")


def test_a_dropped_file_is_named_in_the_text_and_added_to_the_page(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/P/edit")
    at_end_of_before(page)
    send(page, "drop", ("Town [1].png", "image/png", PNG), ("notes.txt", "text/plain", b"some notes"))
    page.wait_for_selector(".tip:text('Added to the page’s files.')")
    assert text_of(page) == "Before [[Town -1-.png]] [[notes.txt]]and after."
    assert files_of(server) == {"Town -1-.png", "notes.txt"}
    assert axe.findings(page) == []
    page.click("button[name=save]")
    page.wait_for_selector("article img[src^='/P/files/Town%20-1-.png']")


def test_a_pasted_picture_without_a_name_gets_one(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/P/edit")
    send(page, "paste", ("image.png", "image/png", PNG))
    page.wait_for_selector(".tip:text('Added to the page’s files.')")
    (name,) = files_of(server)
    assert name.startswith("20")
    assert name.endswith(".png")
    assert f"[[{name}]]" in text_of(page)


def test_a_paste_with_words_stays_a_paste_of_words(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/P/edit")
    send(page, "paste", ("image.png", "image/png", PNG), words="cells\tof a sheet")
    assert "[[" not in text_of(page)
    assert files_of(server) == set()


def test_a_refused_file_is_said_and_nothing_of_the_text_is_lost(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/P/edit")
    at_end_of_before(page)
    send(page, "drop", ("tool.exe", "application/octet-stream", b"MZ\x00\x01"), ("a.txt", "text/plain", b"fine"))
    page.wait_for_selector(".tip.problem:text('Not added: tool.exe: The wiki does not know this kind of file.')")
    assert text_of(page) == "Before [[tool.exe]] [[a.txt]]and after."
    assert files_of(server) == {"a.txt"}


def test_a_picture_is_chosen_by_the_toolbar(open_page: Any, server: WikiServer, tmp_path: Path) -> None:
    picture = tmp_path / "Harbour.png"
    picture.write_bytes(PNG)
    page = open_page()
    page.goto("/P/edit")
    page.click("[data-tool=picture]")
    page.set_input_files("dialog input[type=file]", picture)
    page.fill("dialog input[name=words]", "the harbour")
    assert axe.findings(page) == []
    page.click("dialog button:text('Insert')")
    page.wait_for_selector(".tip:text('Added to the page’s files.')")
    assert "[[Harbour.png]]" in text_of(page)
    assert server.wiki.files.files_of("P")["Harbour.png"].alt == "the harbour"


def test_files_of_a_new_page_wait_for_its_first_save(open_page: Any, server: WikiServer) -> None:
    page = open_page()
    page.goto("/New/edit")
    page.fill("textarea[name=body]", "See ")
    page.evaluate("document.querySelector('textarea[name=body]').setSelectionRange(4, 4)")
    send(page, "drop", ("Town.png", "image/png", PNG), ("a.txt", "text/plain", b"fine"))
    page.wait_for_selector(".tip:text('Added. They become files of the page when it is saved.')")
    assert text_of(page) == "See [[Town.png]] [[a.txt]]"
    page.wait_for_selector(".preview.live img[src^='/New/files/Town.png']")
    page.fill(".asked input", "the town")
    assert axe.findings(page) == []
    page.click(".asked button:text('Save the descriptions')")
    page.wait_for_selector(".tip:text('The descriptions are saved.')")
    page.click("button[name=save]")
    page.wait_for_selector("article img[src^='/New/files/Town.png'][alt='the town']")
    assert set(server.wiki.files.files_of("New")) == {"Town.png", "a.txt"}
    assert list(server.wiki.rows.scan(UPLOADS)) == []


def test_several_pictures_are_asked_about_one_by_one(open_page: Any, server: WikiServer, tmp_path: Path) -> None:
    for number, name in enumerate(("Harbour.png", "Pier.png")):
        (tmp_path / name).write_bytes(PNG + b"%d" % number)
    page = open_page()
    page.goto("/P/edit")
    page.click("[data-tool=picture]")
    page.set_input_files("dialog input[type=file]", [tmp_path / "Harbour.png", tmp_path / "Pier.png"])
    page.get_by_label("What Harbour.png shows").fill("the harbour")
    assert axe.findings(page) == []
    page.click("dialog button:text('Insert')")
    page.wait_for_selector(".tip:text('Added to the page’s files.')")
    assert page.locator(".asked input").count() == 1, "of the picture without words"
    page.fill(".asked input", "the pier")
    send(page, "drop", ("More.png", "image/png", PNG + b"2"))
    page.wait_for_selector(".asked label:has-text('More.png')")
    assert page.input_value(".asked input >> nth=0") == "the pier", "what is typed stays"
    page.click(".asked button:text('Save the descriptions')")
    page.wait_for_selector(".asked", state="detached")
    alts = {name: one.alt for name, one in server.wiki.files.files_of("P").items()}
    assert alts == {"Harbour.png": "the harbour", "Pier.png": "the pier", "More.png": ""}

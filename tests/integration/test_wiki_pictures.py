"""Pictures in pages over a store: the calls of a view, a rename, a folder that is older than files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from werkzeug.test import Client

from tests.support.older_wiki import unpacked
from tests.support.sent_calls import counted_calls
from tests.support.store_thread import StoreThread
from wikka_port.app import make_application
from wikka_port.config import WikiConfig
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import PageRights, Privilege

ADA = By("Ada", "account", "why")


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\0abc\0def"))
    + chunk(b"IEND", b"")
)


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with StoreThread(tmp_path) as store:
        made = Wiki("127.0.0.1", store.port, indexes="application")
        made.prepare()
        made.save("Home", "See [[Boat.png]].", author="Ada", base=0)
        made.save("Home/Below", "See [[boat.png]] and [[file:Home/boat.png|it]].", author="Ada", base=0)
        attach(made, "Home")
        yield made
        made.store.close()


def attach(wiki: Wiki, page: str) -> None:
    def anybody(_name: str, _rights: PageRights) -> None:
        """Allow everything."""

    writer = wiki.files.writer(wiki.files.begin(page, "boat.png", "me", allow=anybody))
    writer.write_piece(PNG)
    wiki.files.commit(wiki.files.settle(writer.finish_part()), ADA, alt="a boat", allow=anybody)


def view(wiki: Wiki, path: str) -> str:
    web = Client(make_application(wiki, WikiConfig(secret=b"s" * 32), clock=lambda: 1_000_000.0))
    return web.get(path).text


def picture(page: str, words: str = "a boat") -> str:
    return f'<img src="/{page}/files/boat.png?v=1" width="3" height="2" alt="{words}" loading="lazy" decoding="async">'


def test_pictures_of_the_page_and_of_the_one_above(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_calls(monkeypatch)
    for path, most in (("/Home", 2), ("/Home~2FBelow", 3)):  # the page, its links, the files of all other pages
        for _ in range(2):
            calls.clear()
            text = view(wiki, path)
        assert picture("Home") in text
        assert len(calls) <= most, calls
    assert picture("Home", "it") in text


def test_a_rename_takes_the_pictures_along(wiki: Wiki) -> None:
    wiki.mover.rename("Home", "Harbour", ADA, redirect=True)
    assert picture("Harbour") in view(wiki, "/Harbour")


def test_pictures_of_a_page_that_may_not_be_read_are_missing(wiki: Wiki) -> None:
    page = wiki.page("Home")
    assert page is not None
    wiki.rights.change("Home", page.rights, "Ada", {Privilege.READ: "+", Privilege.WRITE: "+"})
    text = view(wiki, "/Home~2FBelow")
    assert "<img" not in text.partition('<article class="content">')[2].partition("</article>")[0]
    assert '<a href="/boat.png/edit" class="missing"' in text


def test_a_folder_from_before_files_has_none(tmp_path: Path) -> None:
    data, _ = unpacked(tmp_path)
    with StoreThread(data, trigger_modules=("wikka_port.triggers",)) as store:
        wiki = Wiki("127.0.0.1", store.port)
        assert wiki.files_of(["Edited 1"]) == {}
        wiki.store.close()

"""A file whose bytes the store has lost: it is said and logged, ``wikka check`` names it, and all the rest goes on."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exported_wiki import png_of
from tests.support.file_forms import upload
from tests.support.stored_wiki import attach, stored_wiki, wikka_on
from tests.support.wiki_client import WikiClient
from wikka_port.files.chunks import CHUNK_BYTES, chunk_row
from wikka_port.files.file_rows import CHUNKS
from wikka_port.files.refusals import MissingContent
from wikka_port.pages import Wiki

PICTURE = png_of(400, 300)
LONG = b"".join(b"line %07d\n" % number for number in range(200_000))  # more than two chunks
FILES = {"lost.png": PICTURE, "kept.txt": b"kept", "long.txt": LONG}
PATH = "/Home/file?file=lost.png"


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with stored_wiki(tmp_path / "store") as made:
        made.save("Home", "[[lost.png]] [[kept.txt]] {{files}}", author="Ada", base=0)
        for name, content in FILES.items():
            attach(made, "Home", name, content)
        yield made


def lose_chunk(wiki: Wiki, name: str, number: int) -> str:
    """Remove a chunk of a file's content from the store, and return its digest."""
    sha256 = wiki.files.files_of("Home")[name].sha256
    state = wiki.files.contents.blob_state(sha256)
    assert state is not None
    wiki.rows.delete(CHUNKS, chunk_row(state.place, number))
    return sha256


def test_readers_are_told_and_pages_are_as_before(wiki: Wiki, caplog: pytest.LogCaptureFixture) -> None:
    sha256, web = lose_chunk(wiki, "lost.png", 0), WikiClient(wiki)
    for method in ("GET", "HEAD"):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            answer = web.client.open("/Home/files/lost.png", method=method)
        assert (answer.status_code, answer.headers["Cache-Control"]) == (503, "no-store")
        assert [sha256 in one.getMessage() for one in caplog.records] == [True]
    assert "The store has lost the content of this file" in web.get("/Home/files/lost.png?v=1").text
    for path in ("/Home", "/Home/files", PATH, "/Home/edit", "/-/search?q=kept"):
        assert web.get(path).status_code == 200, path
    assert web.get("/Home/files/kept.txt").data == b"kept"
    small = web.get("/Home/files/lost.png?v=1&w=320")
    assert small.status_code in (200, 503), "200 where a smaller version was made before"


def test_a_lost_version_is_not_brought_back_and_an_equal_upload_heals(
    wiki: Wiki, caplog: pytest.LogCaptureFixture
) -> None:
    web = WikiClient(wiki)
    stored = web.get("/Home/files/lost.png").data
    assert web.post(PATH, {**web.form(PATH), "remove": "1"}).status_code == 303
    sha256 = wiki.files.versions("Home", "lost.png")[1].sha256
    wiki.rows.delete(b"blobs", sha256.encode())
    with caplog.at_level(logging.ERROR):
        refused = web.post(PATH, {**web.form(PATH), "restore": "1"})
    assert (refused.status_code, "has lost the content" in refused.text) == (503, True)
    assert any(sha256 in one.getMessage() for one in caplog.records)
    assert not wiki.files.files_of("Home")["lost.png"].is_there
    assert upload(web, ("again.png", PICTURE), page="/Home").status_code == 303
    assert web.post(PATH, {**web.form(PATH), "restore": "1"}).status_code == 303
    assert web.get("/Home/files/lost.png").data == stored


def test_an_answer_that_breaks_off_is_logged(wiki: Wiki, caplog: pytest.LogCaptureFixture) -> None:
    sha256, web = lose_chunk(wiki, "long.txt", 1), WikiClient(wiki)
    with caplog.at_level(logging.ERROR):
        answer = web.client.get("/Home/files/long.txt", buffered=False)
        pieces: list[bytes] = []
        with pytest.raises(MissingContent):
            pieces += answer.response
    assert (answer.status_code, len(b"".join(pieces))) == (200, CHUNK_BYTES)
    assert [sha256 in one.getMessage() for one in caplog.records] == [True]
    begin = web.get("/Home/files/long.txt", headers={"Range": "bytes=0-99"})
    assert (begin.status_code, begin.data) == (206, LONG[:100])
    end = web.get("/Home/files/long.txt", headers={"Range": f"bytes={CHUNK_BYTES}-"})
    assert end.status_code == 503


@pytest.mark.parametrize(("name", "number"), [("lost.png", 0), ("long.txt", 1)])
def test_the_check_names_page_file_and_digest(wiki: Wiki, name: str, number: int) -> None:
    sha256 = lose_chunk(wiki, name, number)
    check = wikka_on(wiki, "check")
    ended = check("--json")
    lost = [one for one in json.loads(ended.stdout)["differences"] if one["kind"] == "lost"]
    assert [(one["table"], one["column"], one["found"]) for one in lost] == [
        ("chunks", f"Home: {name}, version 1", sha256)
    ]
    assert f"Home: {name}, version 1: lost ({sha256})" in check().stdout
    wiki.rows.delete(b"blobs", sha256.encode())
    assert f"Home: {name}, version 1: lost" in check().stdout


@pytest.mark.parametrize(("name", "number"), [("lost.png", 0), ("long.txt", 1)])
@pytest.mark.parametrize("form", ["json-lines", "markdown", "git", "mediawiki", "html", "wikkawiki"])
def test_an_export_goes_on_without_it_and_says_so(
    wiki: Wiki, tmp_path: Path, form: str, name: str, number: int
) -> None:
    lose_chunk(wiki, name, number)
    out = tmp_path / "out"
    folder = ["--files", str(tmp_path / "contents")] if form == "wikkawiki" else []
    ended = wikka_on(wiki, "export")("--to", form, str(out), *folder)
    assert ended.exit_code == 1, ended.output
    assert f"Home: {name}" in ended.stderr
    written = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
    if form in ("markdown", "html"):
        names = {path.name for path in written}
        assert "kept.txt" in names
        assert name not in names
    else:
        assert written

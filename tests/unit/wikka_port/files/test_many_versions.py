"""A file with more versions than one page lists: each is found, sent, brought back, erased and imported."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.support.file_forms import upload
from tests.support.memory_wiki import MemoryWiki
from tests.support.recorded_pages import MemoryPage
from tests.support.wiki_client import WikiClient
from wikka_port.exchange.file_import import FileImport
from wikka_port.exchange.page_source import file_record
from wikka_port.exchange.records import PageRecord
from wikka_port.files.erasing import Erasure
from wikka_port.files.stored_files import VERSIONS_MAX
from wikka_port.imports.file_move import FileMove, FileReport, MovedFile
from wikka_port.imports.source_folder import SourceFolder
from wikka_port.moving.mover import By
from wikka_port.rights.rules import PageRights

ADA = By("Ada", "account", "why")
MANY = VERSIONS_MAX + 2


def anybody(_name: str, _rights: PageRights) -> None:
    """Allow everything."""


@pytest.fixture(scope="module")
def web() -> WikiClient:
    """Return a wiki whose file has a first version, is removed again and again, and has its content again at last."""
    made = WikiClient()
    made.wiki.save("HomePage", "A text.", author="Ann", base=0)
    assert upload(made, ("a.txt", b"one")).status_code == 303
    files = made.wiki.files
    (first,) = files.versions("HomePage", "a.txt")
    newest = first
    for _ in range(VERSIONS_MAX):
        newest = files.remove("HomePage", "a.txt", newest.token, ADA, allow=anybody)
    files.restore("HomePage", "a.txt", newest.token, first, ADA, allow=anybody)
    return made


def test_older_versions_are_on_a_page_of_their_own(web: WikiClient) -> None:
    assert len(web.wiki.files.versions("HomePage", "a.txt")) == VERSIONS_MAX
    shown = web.get("/HomePage/file?file=a.txt").text
    assert 'class="number">1002<' in shown
    assert '?v=1"' not in shown
    older = re.search(r'href="([^"]*below=3)"[^>]*>[^<]*Older versions', shown)
    assert older is not None
    beyond = web.get(html.unescape(older[1])).text
    assert '?v=1"' in beyond
    assert 'class="number">1002<' not in beyond
    assert "Older versions" not in beyond
    assert web.get("/HomePage/files/a.txt?v=1").data == b"one"
    assert web.get("/HomePage/files/a.txt?v=2").status_code == 404
    form = web.form("/HomePage/file?file=a.txt&below=3")
    assert web.post("/HomePage/file?file=a.txt", {**form, "restore": "1"}).status_code == 303
    assert web.wiki.files.files_of("HomePage")["a.txt"].number == MANY + 1


@pytest.mark.parametrize("is_named", [True, False])
def test_a_file_of_a_folder_is_found_among_them(web: WikiClient, tmp_path: Path, is_named: bool) -> None:
    """Else a second run would make the content of the first version the newest again."""
    (tmp_path / "a.txt").write_bytes(b"the first")
    files, page = web.wiki.files, f"Moved {is_named}"
    web.wiki.save(page, "A text.", author="Ann", base=0)
    moved = MovedFile(page, "a.txt", "b.txt", is_named)

    def run() -> FileMove:
        made = FileMove(files, SourceFolder(tmp_path), lambda: [moved], ADA, FileReport(), owner="a command")
        made.run()
        return made

    assert run().report.stored == ["a.txt"]
    (newest,) = files.versions(page, "b.txt")
    for _ in range(VERSIONS_MAX):
        newest = files.remove(page, "b.txt", newest.token, ADA, allow=anybody)
    again = run()
    assert (again.report.already, again.report.stored, again.report.refused) == (["a.txt"], [], [])
    assert files.files_of(page)["b.txt"].token == newest.token
    assert again.compare().is_equal


def test_a_copy_has_them_all_and_a_second_import_changes_nothing(web: WikiClient) -> None:
    records = [file_record(one) for one in web.wiki.files.versions("HomePage", "a.txt", limit=None)][::-1][:MANY]
    contents = (b"one", *[None] * (MANY - 1))
    page = MemoryPage(PageRecord("HomePage"), (), tuple(zip(records, contents, strict=True)))
    copy = MemoryWiki()
    copy.save("HomePage", "A text.", author="Ann", base=0)
    for stored, already in ((MANY, 0), (0, MANY)):
        bringing = FileImport(copy.files)
        bringing.bring_in(page)
        assert (bringing.report.refused, bringing.report.stored, bringing.report.already) == ([], stored, already)
    there = copy.files.versions("HomePage", "a.txt", limit=None)
    assert [file_record(one) for one in there] == records[::-1]
    erased = Erasure(copy.files, copy.rows).erase("HomePage", "a.txt", 1, ADA, anybody)
    assert (erased.number, erased.others) == (1, 1)
    first = copy.files.numbered("HomePage", "a.txt", 1)
    assert first is not None
    assert first.is_erased
    assert copy.files.numbered("HomePage", "a.txt", MANY + 1) is None

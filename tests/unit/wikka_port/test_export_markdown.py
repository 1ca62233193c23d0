"""A folder of texts: what lies in it, edits in it, and what a stopped export leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.drawn_records import drawn_source
from tests.support.recorded_pages import FIXED, WITH_DELETED, MemorySource, digests_of
from tests.support.seeds import seed
from wikka_port.exchange.markdown_folder import AUTHOR, MarkdownFolder, write_folder
from wikka_port.exchange.records import ExportError, RecordedPage, RevisionRecord

SEED = seed(404)


def files_in(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in sorted(found.items()) if not name.startswith((".wikka/", "wikka-pages"))}


def revisions_of(folder: Path, name: str) -> list[RevisionRecord]:
    return next(list(page.revisions()) for page in MarkdownFolder(folder).pages() if page.record.name == name)


@pytest.mark.parametrize("convert", [False, True])
def test_what_is_read_is_what_was_written(tmp_path: Path, convert: bool) -> None:
    print("seed", SEED)
    for number, source in enumerate((FIXED, WITH_DELETED, drawn_source(SEED))):
        out = tmp_path / f"{number}"
        digests = write_folder(source, out, convert=convert)
        folder = MarkdownFolder(out)
        assert folder.site() == source.site()
        assert digests_of(folder).as_lines() == digests.as_lines() == digests_of(source).as_lines()
        assert folder.remarks == []


def test_texts_and_files_lie_where_a_person_expects_them(tmp_path: Path) -> None:
    without_removal = replace(FIXED.of_wiki[0], of_files=FIXED.of_wiki[0].of_files[:1])
    source = MemorySource((without_removal, FIXED.of_wiki[1]))
    write_folder(source, tmp_path / "wiki", convert=False)
    assert files_in(tmp_path / "wiki") == {
        "Harbour/Pier.md": b"# Zwei\n",
        "files/Harbour/Pier/pier.txt": b"a pier\n",
        "日本.wikka": "===日本===\n".encode(),
    }
    write_folder(WITH_DELETED, tmp_path / "converted", convert=True)
    assert files_in(tmp_path / "converted") == {"Harbour/Pier.md": b"# Zwei\n", "日本.md": "#### 日本\n".encode()}


@pytest.mark.parametrize(("convert", "ending", "markup"), [(False, ".wikka", "wikka"), (True, ".md", "markdown")])
def test_an_edited_text_is_one_more_revision(tmp_path: Path, convert: bool, ending: str, markup: str) -> None:
    out = tmp_path / "wiki"
    write_folder(FIXED, out, convert=convert)
    path = out / f"日本{ending}"
    path.write_bytes(b"edited\r\n")
    os.utime(path, (1_800_000_000, 1_800_000_000))
    first, edited = revisions_of(out, "日本")
    assert first == FIXED.of_wiki[1].of_page[0]
    assert (edited.body, edited.markup, edited.author, edited.time_ms) == (
        *("edited\n", markup, AUTHOR, 1_800_000_000_000),
    )
    assert (edited.number, edited.source, edited.origin, edited.signed) == (2, None, "", "")
    path.unlink()
    assert revisions_of(out, "日本") == [first], "a text that was removed is no edit"


def test_an_edit_with_an_older_time_comes_last(tmp_path: Path) -> None:
    write_folder(FIXED, tmp_path / "wiki", convert=False)
    path = tmp_path / "wiki" / "Harbour" / "Pier.md"
    path.write_bytes(b"edited")
    os.utime(path, (1, 1))
    times = [one.time_ms for one in revisions_of(tmp_path / "wiki", "Harbour/Pier")]
    assert times == sorted(times)
    assert len(set(times)) == 4


def read_with_remarks(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the texts of a page after the one that was exported, and the remarks on the whole folder."""
    read = MarkdownFolder(folder)
    bodies = [[one.body for one in page.revisions()] for page in read.pages() if page.record.name == name]
    return bodies[0][1:], read.remarks


def test_other_ends_of_lines_are_no_edit_and_no_letter_is_lost(tmp_path: Path) -> None:
    out = tmp_path / "wiki"
    write_folder(FIXED, out, convert=False)
    path = out / "日本.wikka"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_with_remarks(out, "日本") == ([], [])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_with_remarks(out, "日本") == ([], []), "the mark of some editors"
    path.write_bytes("Grüße für 5 €\r\n".encode("cp1252"))
    assert read_with_remarks(out, "日本") == (
        ["Grüße für 5 €\n"],
        ["日本.wikka: not in UTF-8: read as Windows-1252", "日本: edited in the folder"],
    )


def test_a_link_brings_no_file_of_the_machine_into_a_page(tmp_path: Path) -> None:
    out, secret = tmp_path / "wiki", tmp_path / "secret"
    write_folder(FIXED, out, convert=False)
    secret.mkdir()
    for name in ("key", "Pier.md"):
        (secret / name).write_bytes(b"a secret of this machine")
    (out / "日本.wikka").unlink()
    (out / "日本.wikka").symlink_to(secret / "key")
    assert read_with_remarks(out, "日本") == ([], ["日本.wikka: left out: it is a link to another place"])
    (out / "日本.wikka").unlink()
    os.mkfifo(out / "日本.wikka")
    assert read_with_remarks(out, "日本") == ([], ["日本.wikka: left out: 日本.wikka: no regular file"])
    (out / "日本.wikka").unlink()
    (out / "Harbour" / "Pier.md").unlink()
    (out / "Harbour").rmdir()
    (out / "Harbour").symlink_to(secret)
    folder = MarkdownFolder(out)
    assert digests_of(folder).as_lines() == digests_of(FIXED).as_lines()
    assert folder.remarks == ["Harbour/Pier.md: left out: its folder is a link to another place"]
    (out / "Harbour").unlink()
    (out / "Harbour").symlink_to("Harbour")
    folder = MarkdownFolder(out)
    assert digests_of(folder).as_lines() == digests_of(FIXED).as_lines()
    assert [one.startswith("Harbour/Pier.md: left out: ") for one in folder.remarks] == [True]


class Stopped(MemorySource):
    def pages(self) -> Iterator[RecordedPage]:  # type: ignore[override]
        yield from super().pages()
        raise KeyboardInterrupt


def test_an_export_that_is_stopped_before_a_checkpoint_begins_anew(tmp_path: Path) -> None:
    out = tmp_path / "wiki"
    with pytest.raises(KeyboardInterrupt):
        write_folder(Stopped(FIXED.of_wiki), out, convert=False)
    assert [path.name for path in tmp_path.iterdir()] == ["wiki.part"]
    (tmp_path / "wiki.part" / "left.md").write_bytes(b"of an older export")
    write_folder(FIXED, out, convert=False)
    assert sorted(files_in(out)) == ["Harbour/Pier.md", "日本.wikka"]
    with pytest.raises(ExportError, match="is there already"):
        write_folder(FIXED, out, convert=False)


def test_a_folder_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "wiki.part").mkdir()
    (tmp_path / "wiki.part" / "mine.txt").write_bytes(b"mine")
    with pytest.raises(ExportError, match="none of an export"):
        write_folder(FIXED, tmp_path / "wiki", convert=False)
    assert (tmp_path / "wiki.part" / "mine.txt").read_bytes() == b"mine"

"""An export as WikkaWiki's SQL: its bytes as they were kept, read back as a WikkaWiki's dump, and what has no room."""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cluster_process import until
from tests.support.drawn_records import drawn_source
from tests.support.golden import hold_to
from tests.support.recorded_pages import FIXED, MemoryPage, MemorySource
from tests.support.seeds import seed
from wikka_port.accounts.records import Account
from wikka_port.accounts.settings import DEFAULT
from wikka_port.dump_bytes import DumpBytes
from wikka_port.exchange.export_file import piped
from wikka_port.exchange.records import CommentRecord, PageRecord, RecordSource, RevisionRecord, SiteRecord
from wikka_port.exchange.wikkawiki_sql import SqlReport, UploadFolder, write_wikkawiki
from wikka_port.schema import folded
from wikka_port.wikkawiki.source_database import Source, copied
from wikka_port.wikkawiki.source_pages import SourcePages

SEED = seed(407)
ADA = Account(
    *(b"ada", "1", "Ada <Lovelace>", "active", False, "ada@example.org", "$argon2id$secret", 1_700_000_000_000, DEFAULT)
)


def written(source: RecordSource, accounts: tuple[Account, ...] = ()) -> tuple[bytes, SqlReport]:
    out = io.BytesIO()
    with piped(out.write) as to:
        report = write_wikkawiki(source, accounts, to)
    return out.getvalue(), report


def opened(data: bytes, folder: Path) -> Source:
    return copied(DumpBytes(io.BytesIO(data)), folder / "copy.sqlite", None)


def test_the_statements_are_as_they_were_kept() -> None:
    lines = written(FIXED, (ADA,))[0].decode().split("\n")
    hold_to("wiki-export-wikkawiki.txt", {f"{number}": line for number, line in enumerate(lines, 1)})
    assert "argon2id" not in "".join(lines)


def visible(page: MemoryPage) -> list[tuple[str, str, str, int]]:
    """Return text, author, note and second of the revisions that a WikkaWiki gets."""
    return [
        (one.body, one.author or "(nobody)", " ".join(one.note.split()), one.time_ms // 1000)
        for one in page.of_page
        if not one.hidden
    ]


def read(pages: SourcePages) -> dict[str, list[tuple[str, str, str, int]]]:
    return {
        name: [(one.body, one.author, one.note, one.time_ms // 1000) for one in revisions][::-1]
        for name, revisions in pages.histories()
    }


def test_a_dump_of_it_reads_back_with_texts_authors_notes_and_seconds(tmp_path: Path) -> None:
    print("seed", SEED)
    source = drawn_source(SEED)
    data, report = written(source)
    left_out = {line.partition(": ")[0] for line in report.without_room}
    there = [page for page in source.of_wiki if not page.record.is_deleted]
    assert report.deleted == len(source.of_wiki) - len(there) > 0
    expected = {page.record.name: visible(page) for page in there if page.record.name not in left_out}
    assert len(left_out) == 2, "homepage, and the name of 250 characters"
    pages = SourcePages.ordered(opened(data, tmp_path))
    found = read(pages)
    assert found.keys() == expected.keys()
    for name, revisions in expected.items():
        assert [one[0] for one in found[name]] == [one[0] for one in revisions]
        assert [one[2:] for one in found[name]] == [one[2:] for one in revisions]
    assert report.revisions == sum(map(len, expected.values()))


def test_rights_of_prefixes_are_written_out(tmp_path: Path) -> None:
    pages = tuple(
        MemoryPage(PageRecord(name, "", lists), (RevisionRecord(1, 1_000 + number, "Ada", "text"),))
        for number, (name, lists) in enumerate((("private/diary", {}), ("Own", {"read": "Ada <x>"}), ("Open", {})))
    )
    data, report = written(MemorySource(pages, SiteRecord({"": {"write": "+"}, "private/": {"read": "Ada"}})))
    rows = {row[0]: row[1:] for row in opened(data, tmp_path).rows(
        "acls", ("page_tag", "read_acl", "write_acl", "comment_read_acl", "comment_post_acl"), "page_tag"
    )}  # fmt: skip
    assert rows == {
        "Own": ("Ada &lt;x&gt;", "+", "*", "*"),
        "private/diary": ("Ada", "+", "*", "*"),
        "Open": ("*", "+", "*", "*"),
    }
    data, report = written(MemorySource(pages, SiteRecord({"private/": {"read": "Ada"}})))
    (tmp_path / "second").mkdir()
    listed = [row[0] for row in opened(data, tmp_path / "second").rows("acls", ("page_tag",), "page_tag")]
    assert sorted(listed) == ["Own", "private/diary"]
    assert report.settings[:2] == ["'default_read_acl' => '*'", "'default_write_acl' => '*'"]


def test_ids_rise_with_the_times_over_the_whole_wiki(tmp_path: Path) -> None:
    data, _ = written(drawn_source(SEED))
    times = [row[0] for row in opened(data, tmp_path).rows("pages", ("time",), "id")]
    assert times == sorted(times)


def test_what_has_no_room_is_named() -> None:
    page = FIXED.of_wiki[0]
    long_note = replace(page.of_page[0], note="&" * 200)
    other = MemoryPage(PageRecord("harbour/pier"), page.of_page[:1])
    _, report = written(MemorySource((replace(page, of_page=(long_note, *page.of_page[1:])), other)))
    assert report.without_room == ["harbour/pier: MySQL holds the name equal to Harbour/Pier"]
    assert (report.hidden, report.cut_notes, report.markdown) == (1, 1, ["Harbour/Pier"])
    assert folded("harbour/pier") == folded("Harbour/Pier")


def test_files_lie_in_a_folder_for_each_page(tmp_path: Path) -> None:
    page = FIXED.of_wiki[0]
    named = replace(page, record=PageRecord("Harbour Pier"), of_files=page.of_files[:1])
    source = MemorySource((named, replace(named, record=page.record)))
    with piped(io.BytesIO().write) as to:
        report = write_wikkawiki(source, (), to, UploadFolder(tmp_path))
    assert {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == {
        "Harbour_Pier/pier.txt": b"a pier\n"
    }
    assert report.files == 1
    assert report.without_room == ["Harbour/Pier: its 1 files, since no folder can have its name"]


@pytest.mark.lasts(60)
def test_a_real_server_takes_the_statements_and_its_dump_reads_back(tmp_path: Path) -> None:
    programs = [shutil.which(one) for one in ("mariadb-install-db", "mariadbd", "mariadb", "mariadb-dump")]
    if None in programs:
        pytest.skip("Debian's mariadb-server is not installed: no real server takes the statements")
    install, server, client, dump = map(str, programs)
    folder, socket = tmp_path / "data", tmp_path / "s"
    subprocess.run([install, f"--datadir={folder}", "--auth-root-authentication-method=normal", "--user=root"],
                   check=True, capture_output=True)  # fmt: skip
    serving = [server, f"--datadir={folder}", f"--socket={socket}", "--skip-networking", "--user=root"]
    running = subprocess.Popen(serving, stderr=subprocess.DEVNULL)
    try:
        asks = [client, f"--socket={socket}", "-uroot", "--default-character-set=utf8mb4"]
        ping = [*asks, "-e", "select 1"]
        until(lambda: subprocess.run(ping, capture_output=True, check=False).returncode == 0, within_s=120)
        subprocess.run([*asks, "-e", "create database w"], check=True)
        data, report = written(drawn_source(SEED), (ADA,))
        done = subprocess.run([*asks, "w"], input=data, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        dumped = subprocess.run([dump, f"--socket={socket}", "-uroot", "--default-character-set=utf8mb4", "w"],
                                check=True, capture_output=True).stdout  # fmt: skip
    finally:
        running.terminate()
        running.wait()
    found = []
    for number, one in enumerate((dumped, data)):
        place = tmp_path / f"{number}"
        place.mkdir()
        found.append(read(SourcePages.ordered(opened(one, place))))
    assert found[0] == found[1]
    assert report.users == 1


def test_comments_that_wait_are_counted_and_their_answers_named(tmp_path: Path) -> None:
    given = {"author": "Eve", "signed": "visitor"}
    comments = (
        CommentRecord(1, 1_700_000_001_000, text="first", **given),
        CommentRecord(2, 1_700_000_002_000, text="WAITING", state="held", parent=1, **given),
        CommentRecord(3, 1_700_000_003_000, text="an answer to it", parent=2, **given),
        CommentRecord(4, 1_700_000_004_000, text="WAITING too", state="held", parent=2, **given),
        CommentRecord(5, 1_700_000_005_000, text="another answer", parent=4, **given),
        CommentRecord(6, 1_700_000_006_000, text="removed", state="deleted", removed_by="owner", **given),
        CommentRecord(7, 1_700_000_007_000, text="an answer to a removed one", parent=6, **given),
    )
    page = FIXED.of_wiki[0]
    data, report = written(MemorySource((replace(page, of_comments=comments),)))
    assert b"WAITING" not in data
    assert (report.comments, report.waiting, report.moved_answers) == (5, 2, ["Harbour/Pier: 2"])
    columns = ("id", "comment", "parent")
    found = list(opened(data, tmp_path).rows("comments", columns, "id"))
    assert found == [
        ("1", "first", ""),
        ("2", "an answer to it", "1"),
        ("3", "another answer", "1"),
        ("4", "removed", ""),
        ("5", "an answer to a removed one", "4"),
    ]

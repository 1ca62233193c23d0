"""Moving a WikkaWiki into a real store: both schemas, twice, newer dumps, stopped and continued, beside edits."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.seeds import seed
from tests.support.sql_dumps import BY_ROW, dump_of
from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import wiki_on
from tests.support.wikkawiki_database import Version, WikkaWiki, random_wiki
from wikka_port import bulk_save, importer, schema
from wikka_port.cli import main
from wikka_port.consistency import check
from wikka_port.pages import Wiki

SEED = seed(391)
WIKI_TABLES = tuple(table.name for table in schema.TABLES)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThread]:
    with StoreThread(tmp_path / "store") as running:
        yield running


@pytest.fixture
def wiki(store: StoreThread) -> Iterator[Wiki]:
    with wiki_on(store.port) as made:
        yield made


Move = Callable[..., Result]


@pytest.fixture
def move(store: StoreThread, tmp_path: Path) -> Move:
    """Call the command for a wiki, as a dump of this name or as SQLite."""

    def move(old: WikkaWiki, *options: str, name: str = "wikka.sql", style: int = 0) -> Result:
        path = tmp_path / name
        if name.endswith(".sqlite"):
            path.unlink(missing_ok=True)
            old.write_sqlite(path)
        else:
            data = dump_of(old.tables(), style)
            data = gzip.compress(data, mtime=0) if name.endswith(".gz") else data
            if not path.exists() or path.read_bytes() != data:  # a stopped import is continued from the same file
                path.write_bytes(data)
        kind = "--sqlite" if name.endswith(".sqlite") else "--dump"
        address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
        return CliRunner().invoke(main, ["import-wikkawiki", kind, str(path), *address, *options])

    return move


def figures(done: Result) -> dict[str, int]:
    found = re.findall(r"^ *([0-9,]+)  (.*?) *$", done.output, re.M)
    return {what: int(number.replace(",", "")) for number, what in found}


def test_texts_authors_notes_times_and_owners_come_as_they_were(wiki: Wiki, move: Move) -> None:
    old = WikkaWiki("1.4.2")
    old.add_page(
        "HomePage", "See SandBox.\r\n", "2012-07-01 12:00:00", user="AdaLovelace", note="AT&T <b>", latest=False
    )
    old.add_page("HomePage", "==Größe== &amp; {{toc}}", "2012-07-01 12:00:00", user="192.0.2.7", owner="AdaLovelace")
    done = move(old, "--zone", "Europe/Berlin")
    assert done.exit_code == 0, done.output
    page = wiki.page("HomePage")
    assert page is not None
    assert (page.body, page.author, page.owner) == ("==Größe== &amp; {{toc}}", "192.0.2.7", "AdaLovelace")
    assert (page.time_ms, page.attribution, page.autolink) == (1341136800001, "", True)
    (first,) = wiki.revisions("HomePage", below=2, bodies=True)
    assert (first.body, first.author, first.note, first.time_ms) == (
        "See SandBox.\r\n",
        "AdaLovelace",
        "AT&T <b>",
        1341136800000,
    )
    assert check(wiki).differences == ()


@pytest.mark.parametrize(
    ("version", "name", "style"), [("1.2", "old.sql.gz", BY_ROW), ("1.4.2", "new.sql", 0), ("1.4.2", "new.sqlite", 0)]
)
def test_a_wiki_comes_whole_and_a_second_time_changes_no_cell(
    wiki: Wiki, store: StoreThread, move: Move, version: Version, name: str, style: int
) -> None:
    print("seed", SEED)
    old = random_wiki(version, SEED, pages=12, revisions=60, users=1)
    done = move(old, name=name, style=style)
    assert done.exit_code == 0, done.output
    assert (figures(done)["pages"], figures(done)["revisions stored"]) == (12, 60)
    assert "revisions: 60 there, 60 here, equal: " in done.output
    before = store.dump(*WIKI_TABLES)
    again = move(old, name=name, style=style)
    assert again.exit_code == 0, again.output
    assert (figures(again).get("revisions stored"), figures(again)["revisions that were here"]) == (None, 60)
    assert "written here" not in again.output
    assert "pages whose rights were set" not in again.output
    assert store.dump(*WIKI_TABLES) == before


def test_a_newer_dump_brings_what_is_newer_beside_what_was_written_here(wiki: Wiki, move: Move) -> None:
    old = random_wiki("1.4.2", SEED, pages=3, revisions=9)
    assert move(old).exit_code == 0
    written = old.columns["pages"].index("tag")
    first = old.pages[0][written].decode()
    wiki.save(first, "written here", author="Ann", base=wiki.head(first).number)
    old.add_page("LaterPage", "later", "2026-01-01 00:00:00")
    old.add_page(first, "also later", "2026-01-01 00:00:00")
    done = move(old)
    assert done.exit_code == 0, done.output
    assert figures(done)["revisions stored"] == 2
    assert "1 pages with newer texts that were written here:" in done.output
    page = wiki.page(first)
    assert page is not None
    assert page.body == "written here"
    assert "also later" in [one.body for one in wiki.revisions(first, bodies=True)]


def test_a_stopped_import_is_continued_and_ends_in_the_same_tables(
    tmp_path: Path, wiki: Wiki, store: StoreThread, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = random_wiki("1.4.2", SEED, pages=10, revisions=40)
    monkeypatch.setattr(importer, "GROUP_PAGES", 1)
    monkeypatch.setattr(bulk_save, "IN_FLIGHT", 0)
    note = importer.Importer._note
    for falls_after in (1, 2, 1):
        calls = 0

        def fall(self: Any, pages: int, most: int = falls_after) -> None:
            nonlocal calls
            note(self, pages)
            calls += 1
            if calls >= most:
                raise KeyboardInterrupt

        monkeypatch.setattr(importer.Importer, "_note", fall)
        assert move(old).exit_code != 0
    monkeypatch.setattr(importer.Importer, "_note", note)
    done = move(old)
    assert done.exit_code == 0, done.output
    assert "went on behind page" in done.output
    assert "revisions: 40 there, 40 here, equal" in done.output
    assert check(wiki, repair=True).left == ()


def test_tags_that_mysql_holds_equal_are_one_page_unless_each_has_a_newest_text(wiki: Wiki, move: Move) -> None:
    old = WikkaWiki("1.2")
    old.add_page("Homepage", "one", "2009-01-01 00:00:00", latest=False)
    old.add_page("HomePage", "two", "2009-01-02 00:00:00")
    old.add_page("SandBox", "own", "2009-01-01 00:00:00")
    old.add_page("Sandbox", "own too", "2009-01-02 00:00:00")
    old.add_page("Under_Score", "u", "2009-01-02 00:00:00")
    old.add_page("Bad\x01Name", "lost", "0000-00-00 00:00:00")
    old.add_page("NoTime", "old", "0000-00-00 00:00:00")
    done = move(old)
    assert done.exit_code == 0, done.output
    for line in (
        "Homepage: revisions of the page HomePage, which differs in case alone",
        "SandBox, Sandbox: pages that differ in case alone",
        "Under_Score: Under Score",
        r"'Bad\x01Name': This cannot be the name of a page",
        "NoTime: revision 7 has the time '0000-00-00 00:00:00'",
    ):
        assert line in done.output
    assert [one.body for one in wiki.revisions("HomePage", bodies=True)] == ["two", "one"]
    assert wiki.page("Homepage") is None
    assert {name: getattr(wiki.page(name), "body", None) for name in ("SandBox", "Sandbox", "Under Score")} == {
        "SandBox": "own",
        "Sandbox": "own too",
        "Under Score": "u",
    }


def test_what_differs_at_the_end_is_named_and_the_command_fails(
    wiki: Wiki, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = random_wiki("1.4.2", SEED, pages=3, revisions=6)
    run = importer.Importer.run

    def lose(self: Any) -> Any:
        summary = run(self)
        rows = wiki.store.run(lambda c: [row for row, _ in c.table(schema.REVISIONS).scan()])
        wiki.store.run(lambda c: c.table(schema.REVISIONS).delete(rows[0]))
        return summary

    monkeypatch.setattr(importer.Importer, "run", lose)
    done = move(old)
    assert done.exit_code == 1
    assert "DIFFERENT" in done.output
    assert "6 there, 5 here" in done.output


@pytest.mark.parametrize(
    ("options", "data", "said"),
    [
        ([], b"", "--dump FILE, --sqlite FILE or --dsn mysql://USER@HOST/DB"),
        (["--dump"], b"<mediawiki>", "line 1: the dump ends within a statement"),
        (["--dump"], b"-- nothing\n", "there are no tables of a WikkaWiki"),
        (["--sqlite"], b"no database, " * 100, "is no SQLite database"),
        (["--zone", "Berlin", "--dump"], b"", "'Berlin' is no time zone"),
    ],
)
def test_what_cannot_be_moved_is_said_and_nothing_is_stored(
    tmp_path: Path, store: StoreThread, wiki: Wiki, options: list[str], data: bytes, said: str
) -> None:
    (tmp_path / "given").write_bytes(data)
    given = [*options, str(tmp_path / "given")] if options else []
    address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
    done = CliRunner().invoke(main, ["import-wikkawiki", *given, *address])
    assert done.exit_code in (1, 2)
    assert said in " ".join(done.output.split())
    assert wiki.count_pages() == 0


def test_a_dry_run_stores_nothing_and_names_what_will_differ(tmp_path: Path) -> None:
    old = WikkaWiki("1.4.2")
    old.add_page("HomePage", "{{dbinfo}}", "2012-01-01 00:00:00", latest=False)
    old.add_page("HomePage", "{{referrers}} {{mine}}", "2012-01-02 00:00:00")
    old.add_page("PlainPage", "plain", "2012-01-02 00:00:00")
    old.add_user("Bad;Name", "password")
    (tmp_path / "wikka.sql").write_bytes(dump_of(old.tables()))
    nowhere = ["--dump", str(tmp_path / "wikka.sql"), "--store", "127.0.0.1:1", "--dry-run"]
    done = CliRunner().invoke(main, ["import-wikkawiki", *nowhere])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[:4] == [
        "HomePage: {{mine}}: there is no such action here",
        "HomePage: {{referrers}}: not here, referrers are not kept: they draw spam and tell who reads what",
        "1 pages will look different",
        "3 revisions",
    ]
    assert "Bad;Name: A name cannot have the character ;" in done.output


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000020001"
    "4873ab390000000049454e44ae426082"
)


def test_files_come_with_their_pages_and_a_second_time_what_is_new(wiki: Wiki, move: Move, tmp_path: Path) -> None:
    old = WikkaWiki("1.4.2")
    for tag in ("HomePage", "Größe Page", "LinkedPage"):
        old.add_page(tag, "text", "2012-01-01 00:00:00")
    uploads = tmp_path / "uploads"
    for place, data in (
        ("HomePage/plan[1].txt", b"a plan"),
        ("HomePage/picture.png", PNG),
        ("HomePage/evil.exe", b"MZ\x90\x00" + bytes(100)),
        ("HomePage/.htaccess", b"hidden"),
        ("größe_page/big.txt", b"0123456789" * 200_000),
        ("GonePage/lost.txt", b"lost"),
    ):
        (uploads / place).parent.mkdir(parents=True, exist_ok=True)
        (uploads / place).write_bytes(data)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/secret.txt").write_bytes(b"a secret of this machine")
    (uploads / "LinkedPage").symlink_to(tmp_path / "elsewhere")
    done = move(old, "--uploads", str(uploads))
    assert done.exit_code == 0, done.output
    assert "files: 3 there, 3 here, 1 left out, equal: " in done.output
    assert "LinkedPage: it is a link to another place" in done.output
    assert wiki.files.files_of("LinkedPage") == {}
    assert "HomePage/evil.exe: " in done.output
    assert "GonePage" in done.output
    found = wiki.files.files_of("HomePage")
    assert sorted(found) == ["picture.png", "plan-1-.txt"]
    assert b"".join(wiki.files.content(found["picture.png"])) == PNG
    assert b"".join(wiki.files.content(wiki.files.files_of("Größe Page")["big.txt"])) == b"0123456789" * 200_000
    (uploads / "HomePage/plan[1].txt").write_bytes(b"a newer plan")
    (uploads / "HomePage/new.txt").write_bytes(b"new")
    done = move(old, "--uploads", str(uploads))
    assert done.exit_code == 0, done.output
    assert (figures(done)["files stored"], figures(done)["files that were here"]) == (2, 2)
    assert [len(wiki.files.versions("HomePage", name)) for name in ("plan-1-.txt", "new.txt")] == [2, 1]
    assert check(wiki).differences == ()


def test_the_copy_of_a_dump_has_no_name_while_it_is_read(
    wiki: Wiki, move: Move, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = random_wiki("1.2", SEED, pages=2, revisions=3, users=1)
    (tmp_path / "copies").mkdir()
    seen: list[list[str]] = []
    run = importer.Importer.run

    def look(self: Any) -> Any:
        seen.append([path.name for path in (tmp_path / "copies").rglob("*") if path.is_file()])
        return run(self)

    monkeypatch.setattr(importer.Importer, "run", look)
    done = move(old, "--temporary", str(tmp_path / "copies"))
    assert done.exit_code == 0, done.output
    assert (seen, list((tmp_path / "copies").iterdir())) == ([[]], [])

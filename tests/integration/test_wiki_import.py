"""Importing a dump into a real store: twice, interrupted, beside edits; and the check that finds damage."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.serving import Serving
from tests.support.store_thread import StoreThread
from wikka_port import bulk_save, consistency, importer, schema
from wikka_port.cli import main
from wikka_port.commands.synth import make_wiki
from wikka_port.consistency import check
from wikka_port.dump import DumpError
from wikka_port.first_pages import first_pages, write_first_pages
from wikka_port.importer import Importer, ImportSummary
from wikka_port.limits import LINKS_MAX
from wikka_port.link_check import LinkCheck
from wikka_port.names import page_key
from wikka_port.pages import Wiki

DUMP = Path(__file__).parents[1] / "data" / "small-dump.xml"
WIKI_TABLES = tuple(table.name for table in schema.TABLES)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreThread]:
    with StoreThread(tmp_path) as running:
        yield running


@pytest.fixture
def wiki(store: StoreThread) -> Iterator[Wiki]:
    made = Wiki("127.0.0.1", store.port, indexes="application")
    made.prepare()
    yield made
    made.store.close()


def bring_in(wiki: Wiki, **options: Any) -> ImportSummary:
    with DUMP.open("rb") as stream:
        return Importer.begun(wiki, stream, origin="small-dump.xml", **options).run()


def test_a_dump_comes_in_with_its_revisions_authors_and_times(wiki: Wiki) -> None:
    summary = bring_in(wiki)
    assert (summary.counts.pages, summary.counts.revisions, summary.counts.redirects) == (26, 30, 2)
    assert summary.stored.revisions == 30
    assert summary.counts.unconverted["template: nothing shown"] > 0
    page = wiki.page("Main Page")
    assert page is not None
    assert (page.author, page.note, page.time_ms, page.autolink) == ("Ada", "first version", 1267458429000, False)
    assert page.attribution.startswith("From Harbour Wiki, https://harbour.example/wiki/Main_Page, by its contributors")
    assert [r.number for r in wiki.revisions("Lighthouse")] == [3, 2, 1]
    assert check(wiki).differences == ()


def test_the_same_dump_again_changes_no_cell(wiki: Wiki, store: StoreThread) -> None:
    bring_in(wiki)
    before = store.dump(*WIKI_TABLES)
    summary = bring_in(wiki)
    assert (summary.stored.revisions, summary.stored.already, summary.stored.kept) == (0, 30, set())
    assert store.dump(*WIKI_TABLES) == before


@pytest.mark.parametrize("parts", [64, 1])
def test_a_stopped_import_goes_on_and_ends_in_the_same_tables(
    tmp_path: Path, store: StoreThread, wiki: Wiki, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    bring_in(wiki)
    assert check(wiki, repair=True).differences == ()  # spare cells of wanted hang on who was quicker, and go
    undisturbed = store.dump(*WIKI_TABLES)
    monkeypatch.setattr(importer, "GROUP_PAGES", 2)
    monkeypatch.setattr("wikka_port.import_pages.PART_REVISIONS", parts)  # 1: each revision is a part of its own
    monkeypatch.setattr(bulk_save, "IN_FLIGHT", 2)
    with StoreThread(tmp_path / "other") as other:
        again = Wiki("127.0.0.1", other.port, indexes="application")
        again.prepare()
        for stop_at in (3, 3, 1):
            with pytest.raises(KeyboardInterrupt):
                bring_in(again, progress=stop_behind(stop_at))
        summary = bring_in(again)
        assert summary.resumed_after > 3
        assert check(again, repair=True).differences == ()
        assert other.dump(*WIKI_TABLES) == undisturbed
        again.store.close()


def stop_behind(pages: int) -> Callable[[int, int], None]:
    def progress(_bytes: int, done: int) -> None:
        if done > pages:
            raise KeyboardInterrupt

    return progress


def test_what_people_wrote_stays(wiki: Wiki) -> None:
    wiki.save("Main Page", "ours", author="Eve", base=0)
    bring_in(wiki)
    wiki.save("Lighthouse", "edited", author="Eve", base=3)
    summary = bring_in(wiki)
    assert summary.stored.kept == {"Main Page"}
    pages = [wiki.page("Main Page"), wiki.page("Lighthouse")]
    assert [(p.body, p.autolink, bool(p.attribution)) for p in pages if p] == [
        ("ours", True, False),
        ("edited", False, True),
    ]
    assert check(wiki).differences == ()


def test_only_some_namespaces_and_only_so_many_pages(wiki: Wiki) -> None:
    summary = bring_in(wiki, namespaces=["14"], limit=1)
    assert (summary.counts.pages, wiki.count_pages()) == (1, 1)
    assert wiki.names()[0].startswith("Category:")
    assert bring_in(wiki, namespaces=["Category"]).counts.pages == 2


def test_a_damaged_dump_leaves_what_came_before_and_goes_on_when_it_is_whole(wiki: Wiki) -> None:
    whole = DUMP.read_bytes()
    cut = Importer.begun(wiki, io.BytesIO(whole[: len(whole) * 2 // 3]), origin="dump")
    with pytest.raises(DumpError):
        cut.run()
    assert Importer.begun(wiki, io.BytesIO(whole), origin="dump").run().counts.pages > 0
    assert wiki.count_pages() == 26
    assert check(wiki).differences == ()


def test_triggers_keep_the_indexes_of_an_import(tmp_path: Path) -> None:
    with StoreThread(tmp_path, trigger_modules=("wikka_port.triggers",)) as running:
        wiki = Wiki("127.0.0.1", running.port)
        wiki.prepare()
        wiki.prepare()
        bring_in(wiki)
        assert wiki.settle("", 20)
        assert check(wiki).differences == ()
        assert "Main Page" in wiki.backlinks("Lighthouse")
        saved = wiki.save("New one", "[[Lighthouse]]", author="Ann", base=0)
        assert wiki.settle(saved.sequence, 20)
        assert "New one" in wiki.backlinks("Lighthouse")
        assert wiki.changes(limit=1)[0][0].name == "New one"
        wiki.store.close()


def test_a_page_that_ends_leaves_every_list_by_its_triggers(tmp_path: Path) -> None:
    with StoreThread(tmp_path, trigger_modules=("wikka_port.triggers",)) as running:
        wiki = Wiki("127.0.0.1", running.port)
        wiki.prepare()
        wiki.save("Short-lived", "[[Stays]]", author="Ann", base=0)
        wiki.save("Stays", "[[Short-lived]]", author="Ann", base=0)
        assert wiki.settle("", 20)
        assert (wiki.names(), wiki.wanted()) == (["Short-lived", "Stays"], [])
        wiki.store.run(lambda c: c.table(schema.PAGES).delete(page_key("Short-lived")))
        assert wiki.settle("", 20)
        assert (wiki.names(), wiki.wanted()) == (["Stays"], [("Short-lived", 1)])
        assert wiki.backlinks("Stays") == []
        wiki.store.close()


# --- the check ---------------------------------------------------------------------------------

PAGE = page_key("Lighthouse")
DAMAGE: list[tuple[str, bytes, Callable[[Any], None]]] = [
    ("missing", schema.BACKLINKS, lambda t: t.delete(PAGE, [schema.FROM + page_key("Main Page")])),
    ("missing", schema.BACKLINKS, lambda t: t.delete(PAGE, [schema.TO + key(t, PAGE, schema.TO)])),
    ("stale", schema.BACKLINKS, lambda t: t.put(PAGE, {schema.FROM + page_key("Nowhere"): b"Nowhere"})),
    ("stale", schema.BACKLINKS, lambda t: t.put(PAGE, {schema.FROM: b"of nobody"})),
    ("stale", schema.BACKLINKS, lambda t: t.put(PAGE, {schema.TO + page_key("Main Page"): b"Main Page"})),
    ("stale", schema.BACKLINKS, lambda t: t.put(page_key("Gone"), {schema.TO + PAGE: b"Lighthouse"})),
    ("different", schema.BACKLINKS, lambda t: t.put(PAGE, {schema.FROM + page_key("Main Page"): b"Wrong"})),
    ("missing", schema.NAMES, lambda t: t.delete(schema.name_row("Lighthouse"))),
    ("different", schema.NAMES, lambda t: t.put(schema.name_row("Lighthouse"), {schema.NAME: b"Wrong"})),
    ("stale", schema.NAMES, lambda t: t.put(schema.name_row("Nowhere"), {schema.NAME: b"Nowhere"})),
    ("stale", schema.NAMES, lambda t: t.put(b"\xff\x00junk", {schema.NAME: b"Nowhere"})),
    ("missing", schema.CHANGES, lambda t: t.delete(next(iter(t.scan(limit=1)))[0])),
    ("different", schema.CHANGES, lambda t: t.put(next(iter(t.scan(limit=1)))[0], {schema.NAME: b"Wrong"})),
    ("stale", schema.CHANGES, lambda t: t.put(schema.change_row(PAGE, 5, 9), {schema.HEAD: b"9:x"})),
    ("stale", schema.CHANGES, lambda t: t.put(b"junk", {schema.HEAD: b"junk"})),
    ("missing", schema.WANTED, lambda t: t.delete(next(iter(t.scan(limit=1)))[0])),
    ("stale", schema.WANTED, lambda t: t.put(PAGE, {schema.FROM + page_key("Nowhere"): b"Lighthouse"})),
    ("stale", schema.WANTED, lambda t: t.put(page_key("No"), {schema.FROM + page_key("Main Page"): b"No"})),
    ("missing", schema.REVISIONS, lambda t: t.delete(newest_row(t))),
    ("different", schema.PAGES, lambda t: t.put(PAGE, {schema.BODY: b"not what was saved"})),
    ("missing", schema.PAGES, lambda t: t.delete(PAGE, [schema.TIME])),
]


def key(table: Any, row: bytes, family: bytes) -> bytes:
    return next(iter(table.row(row, columns=[family[:-1]])))[len(family) :]  # type: ignore[no-any-return]


def newest_row(table: Any) -> bytes:
    return next(iter(table.scan(row_prefix=PAGE, limit=1)))[0]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with StoreThread(tmp_path_factory.mktemp("imported")) as running:
        wiki = Wiki("127.0.0.1", running.port, indexes="application")
        wiki.prepare()
        bring_in(wiki)
        yield wiki
        wiki.store.close()


@pytest.mark.parametrize(
    ("kind", "table", "damage"), DAMAGE, ids=[f"{k}-{t.decode()}-{i}" for i, (k, t, _) in enumerate(DAMAGE)]
)
def test_planted_damage_is_found_and_repaired(
    imported: Wiki, kind: str, table: bytes, damage: Callable[[Any], None]
) -> None:
    imported.store.run(lambda c: damage(c.table(table)))
    report = check(imported, repair=True)
    assert (table, kind) in {(one.table, one.kind.value) for one in report.differences}
    assert all(one.text() for one in report.differences)
    assert report.left == ()
    assert check(imported).differences == ()


def test_candidates_whose_page_is_there_are_spare_not_wrong_and_removed_by_a_repair(imported: Wiki) -> None:
    before = imported.wanted()
    cells = {schema.FROM + page_key("Main Page"): b"Lighthouse", schema.GONE: b"Lighthouse"}
    imported.store.run(lambda c: c.table(schema.WANTED).put(PAGE, cells))
    assert imported.wanted() == before, "readers pass over them"
    report = check(imported)
    assert (report.differences, {one.column for one in report.spare}) == ((), cells.keys())
    assert check(imported, repair=True).differences == ()
    assert check(imported).spare == ()
    assert imported.store.run(lambda c: c.table(schema.WANTED).row(PAGE)) == {}


def test_what_was_repaired_ends_with_what_it_was_derived_from(tmp_path: Path) -> None:
    """Times of imported pages are years old, stamps of what triggers delete are not: repairs stand above both."""
    serving = Serving(tmp_path / "data", trigger_modules=("wikka_port.triggers",)).start()
    wiki = Wiki("127.0.0.1", serving.store.port)
    try:
        wiki.prepare()
        wiki.save("Source", "to [[Target]]", author="Ann", base=0, time_ms=1_100_000_000_000)
        assert wiki.settle("", 30)
        wiki.save("Target", "is there", author="Ann", base=0, time_ms=1_100_000_001_000)
        assert wiki.settle("", 30)
        connection = serving.connect()
        connection.delete_table(schema.BACKLINKS, disable=True)
        wiki.prepare()
        assert check(wiki, repair=True).left == ()
        connection.table(schema.PAGES).delete(page_key("Target"))
        assert wiki.settle("", 30)
        tables = (schema.BACKLINKS, schema.WANTED, schema.NAMES)
        assert [found.text() for found in check(wiki).differences if found.table in tables] == []
        assert [name for name, _ in wiki.wanted()] == ["Target"]
    finally:
        wiki.store.close()
        serving.stop()


class Read:
    """How many cells a connection gave."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.cells = connection, 0

    def table(self, name: bytes) -> Any:
        return ReadTable(self, self.connection.table(name))


class ReadTable:
    def __init__(self, read: Read, table: Any) -> None:
        self.read, self.of = read, table

    def rows(self, *arguments: Any, **options: Any) -> Any:
        return self.counted(self.of.rows(*arguments, **options))

    def scan(self, *arguments: Any, **options: Any) -> Any:
        return self.counted(self.of.scan(*arguments, **options))

    def counted(self, rows: Any) -> Iterator[Any]:
        for row, cells in rows:
            self.read.cells += len(cells)
            yield row, cells


def test_the_check_reads_each_link_a_few_times_however_many_there_are(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It once read all that a page links to again for every 300 cells, where that was much."""
    monkeypatch.setattr("wikka_port.link_check._LINKS_HELD", 500, raising=False)
    read = []
    for pages in (4, 8):
        for number in range(pages - 4, pages):
            links = " ".join(f"[[{other}]]" for other in range(300))
            wiki.save(f"Source {number}", links, author="Ann", base=0)
        counted = wiki.store.run(lambda c: Read(c))
        check = LinkCheck(counted, lambda source_ms: source_ms)  # type: ignore[arg-type]
        bodies = wiki.store.run(lambda c: dict(c.table(schema.PAGES).scan()))
        found = [*check.of_pages(bodies)]
        found += [one for look in ("of_tables", "of_backlinks", "of_wanted") for one in getattr(check, look, list)()]
        assert (found, check.links) == ([], 300 * pages)
        read.append(counted.cells)
    assert read[1] <= 2.5 * read[0]
    assert read[1] <= 8 * 300 * pages


def test_what_is_over_a_bound_is_kept_whole_indexed_up_to_it_and_reported(wiki: Wiki) -> None:
    links = " ".join(f"[[a{number}]]" for number in range(LINKS_MAX + 7))
    page = f"<title>Long</title><id>1</id><revision><id>1</id><timestamp>2020-01-01T00:00:00Z</timestamp><text>{links}"
    dump = f"<mediawiki><page>{page}</text></revision></page></mediawiki>"
    summary = Importer.begun(wiki, io.BytesIO(dump.encode()), origin="long").run()
    assert [line.partition(":")[0] for line in summary.counts.cut] == ["Long"]
    stored = wiki.page("Long")
    assert stored is not None
    assert stored.body.count("[[") == LINKS_MAX + 7
    report = check(wiki)
    assert (report.links, report.differences) == (LINKS_MAX, ())


def test_a_name_that_looks_like_another_is_kept_and_reported(wiki: Wiki) -> None:
    name = "Home\u200bPage"
    revision = "<revision><id>1</id><timestamp>2020-01-01T00:00:00Z</timestamp><text>a</text></revision>"
    dump = f"<mediawiki><page><title>{name}</title><id>1</id>{revision}</page></mediawiki>"
    summary = Importer.begun(wiki, io.BytesIO(dump.encode()), origin="odd").run()
    assert ["HomePage" in line for line in summary.counts.confusable_names] == [True]
    assert wiki.page(name) is not None


def test_an_old_revision_that_is_gone_is_said_to_be_lost(wiki: Wiki) -> None:
    bring_in(wiki)
    rows = wiki.store.run(lambda c: [row for row, _ in c.table(schema.REVISIONS).scan(row_prefix=PAGE)])
    wiki.store.run(lambda c: c.table(schema.REVISIONS).delete(rows[1]))
    report = check(wiki, repair=True)
    assert [one.kind.value for one in report.left if one.table == schema.REVISIONS] == ["lost"]
    assert [r.number for r in wiki.revisions("Lighthouse")] == [3, 1], "what is left can still be read"


def test_the_command_says_by_its_exit_status_what_it_found(wiki: Wiki, store: StoreThread) -> None:
    address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
    done = CliRunner().invoke(main, ["import", str(DUMP), *address])
    assert done.exit_code == 0, done.output
    assert "26  pages" in done.output
    clean = CliRunner().invoke(main, ["check", *address])
    assert (clean.exit_code, "0 differences" in clean.output) == (0, True)
    wiki.store.run(lambda c: c.table(schema.NAMES).delete(schema.name_row("Lighthouse")))
    found = CliRunner().invoke(main, ["check", "--json", *address])
    assert found.exit_code == 1
    assert [one["kind"] for one in json.loads(found.stdout)["differences"]] == ["missing"]
    repaired = CliRunner().invoke(main, ["check", "--repair", *address])
    assert (repaired.exit_code, "1 differences, 0 left" in repaired.output) == (1, True)
    assert CliRunner().invoke(main, ["check", *address]).exit_code == 0
    assert CliRunner().invoke(main, ["check", "--store", "nonsense"]).exit_code == 2


def test_the_command_reads_the_standard_input_from_its_beginning(store: StoreThread) -> None:
    address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
    for new, there in ((30, 0), (0, 30)):
        done = CliRunner().invoke(main, ["import", "-", *address], input=DUMP.read_bytes())
        assert done.exit_code == 0, done.output
        said = {what.strip(): int(number) for number, what in re.findall(r"^ *([0-9]+)  (.*)$", done.output, re.M)}
        assert (said["revisions stored"], said["revisions that were there"]) == (new, there)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"7z\xbc\xaf\x27\x1c" + bytes(50), "7z archive"),
        (b"<mediawiki><page><title>A</title><revision><timestamp>2020-01-01T00:00:00Z</timestamp>"
         b'<text id="1" bytes="2"/></revision></page></mediawiki>', "stub"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_by_name_and_nothing_is_stored(
    wiki: Wiki, store: StoreThread, data: bytes, said: str
) -> None:
    address = ["--store", f"127.0.0.1:{store.port}", "--indexes=application"]
    done = CliRunner().invoke(main, ["import", "-", *address], input=data)
    assert (done.exit_code, said in done.output, "standard input" in done.output) == (1, True, True)
    assert wiki.count_pages() == 0


def test_the_synthetic_wiki_is_made_once(wiki: Wiki) -> None:
    assert make_wiki(wiki, pages=40, size_bytes=300, links=3).revisions == 40
    again = make_wiki(wiki, pages=40, size_bytes=300, links=3)
    assert (again.revisions, again.already) == (0, 40)
    assert wiki.count_pages() == 40
    assert check(wiki).differences == ()
    assert consistency.check(wiki).links > 80


@pytest.mark.parametrize(
    ("language", "written_in", "begin"), [("en", "", "Welcome"), ("de", "de", "Willkommen"), ("fr", "", "Welcome")]
)
def test_a_new_wiki_begins_with_pages_and_an_old_one_keeps_its_own(
    wiki: Wiki, language: str, written_in: str, begin: str
) -> None:
    assert first_pages(language).keys() == first_pages().keys()
    assert write_first_pages(wiki, language) == len(first_pages()) > 7
    assert write_first_pages(wiki, "en") == 0
    home = wiki.page("HomePage")
    assert home is not None
    assert (home.language, begin in home.body) == (written_in, True)
    assert wiki.wanted() == [], "the first pages link to each other only"
    assert wiki.orphaned() == []

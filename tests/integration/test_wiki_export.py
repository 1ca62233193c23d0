"""Out of a real store and into another one: JSON lines, rights before texts, hidden revisions, kills."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.exported_wiki import NAMES, add_file, anybody, fill
from tests.support.seeds import seed
from tests.support.store_thread import StoreThread
from wikka_port import importer
from wikka_port.cli import main
from wikka_port.commands.serving_options import accounts_of
from wikka_port.consistency import check
from wikka_port.exchange import export_file, written_pages
from wikka_port.exchange.page_source import StorePage, StorePages
from wikka_port.exchange.records import DigestingSource, Digests, RevisionRecord, living_pages
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege

SEED = seed(391)


@contextmanager
def wiki_in(folder: Path) -> Iterator[Wiki]:
    with StoreThread(folder) as store:
        made = Wiki("127.0.0.1", store.port, indexes="application")
        made.prepare()
        yield made
        made.store.close()


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    print("seed", SEED)
    with wiki_in(tmp_path_factory.mktemp("old")) as wiki:
        fill(wiki, SEED, NAMES[1::2])
        yield wiki


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    """A wiki of a few pages: what a form cannot carry is found without a store (``test_export_git`` and others)."""
    with wiki_in(tmp_path_factory.mktemp("few")) as wiki:
        fill(wiki, SEED, NAMES[:5])
        yield wiki


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Wiki]:
    with wiki_in(tmp_path / "new") as wiki:
        yield wiki


def command(wiki: Wiki, *words: object) -> Result:
    return CliRunner().invoke(main, [*map(str, words), *store_of(wiki)], catch_exceptions=False)


def store_of(wiki: Wiki) -> list[str]:
    return ["--store", f"127.0.0.1:{wiki.store.port}", "--indexes=application"]


def digests_of(wiki: Wiki, **given: Any) -> Digests:
    source = DigestingSource(StorePages(wiki, **given))
    for page in source.pages():
        for _ in page.revisions():
            pass
        for file in page.files():
            assert file.content is None or b"".join(file.content) is not None
        assert all(comment.number for comment in page.comments())
    return source.digests


def lines_of(digests: Digests) -> list[str]:
    return [f"{digests.pages} pages", *digests.as_lines()]


def test_json_lines_carry_everything_and_a_second_import_changes_nothing(old: Wiki, new: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "wiki.jsonl.gz"
    exported = command(old, "export", "--to", "json-lines", out)
    assert exported.exit_code == 0, exported.output
    assert lines_of(digests_of(old))[1:] == exported.stderr.splitlines()[1:]
    done = command(new, "import", out)
    print(done.output)
    assert done.exit_code == 0
    assert lines_of(digests_of(new)) == lines_of(digests_of(old))
    assert check(new).differences == ()
    again = command(new, "import", out, "--restart")
    assert again.exit_code == 0
    assert "0 revisions stored" in again.stdout
    assert "0 versions of files stored" in again.stdout
    assert lines_of(digests_of(new)) == lines_of(digests_of(old))


def test_contents_in_a_folder_come_in_from_there(new: Wiki, tmp_path: Path) -> None:
    out, folder = tmp_path / "wiki.jsonl", tmp_path / "contents"
    with wiki_in(tmp_path / "first") as first:
        for page in ("Ship", "Pier"):
            first.save(page, "a text", author="Ada", base=0)
            add_file(first.files, page, "notes.txt", b"the same notes", By("Ada"))
        assert command(first, "export", "--to", "json-lines", out, "--files", folder).exit_code == 0
        assert b'"kind":"content"' not in out.read_bytes()
        assert len([path for path in folder.rglob("*") if path.is_file()]) == 1
        done = command(new, "import", out, "--files", folder)
        assert done.exit_code == 0, done.output
        assert lines_of(digests_of(new)) == lines_of(digests_of(first))
        (path,) = [path for path in folder.rglob("*") if path.is_file()]
    path.write_bytes(b"THE SAME NOTES")
    new.files.remove("Pier", "notes.txt", new.files.files_of("Pier")["notes.txt"].token, By("Ada"), allow=anybody)
    with wiki_in(tmp_path / "third") as third:
        done = command(third, "import", out, "--files", folder)
        assert done.exit_code == 1
        assert "the content of notes.txt is not the one that its digest names" in done.stdout


def test_an_export_for_a_visitor_has_no_text_that_he_may_not_read(old: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "public.jsonl"
    assert command(old, "export", "--to", "json-lines", out, "--readable-by", "anonymous").exit_code == 0
    records = [json.loads(line) for line in out.read_bytes().splitlines()]
    readable = {one["name"] for one in records if one["kind"] == "page"}
    for page in living_pages(StorePages(old)):
        hides = page.record.lists.get("read", "*") != "*"
        assert (page.record.name in readable) is not hides, page.record
    assert 0 < len(readable) < digests_of(old).counts["rights"]
    assert not [one for one in records if "deleted_ms" in one]
    assert not [one for one in records if one.get("hidden") or one.get("lists") or one["kind"] == "site"]


def test_no_reader_sees_a_hidden_revision_or_a_page_whose_list_hides_it_whenever_the_import_stops(
    old: Wiki, new: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import is stopped three times.  At each note no hidden revision is visible, and each page has its list."""
    out = tmp_path / "wiki.jsonl"
    assert command(old, "export", "--to", "json-lines", out).exit_code == 0
    hidden, lists = hidden_and_lists(out)
    assert len(hidden) >= 3
    visible: list[str] = []
    original = importer.Importer._note

    def note(self: importer.Importer, pages: int) -> None:
        for page in living_pages(StorePages(new)):
            name = page.record.name
            visible.extend(
                f"{name} {one.number}" for one in page.revisions() if (name, one.time_ms, one.hidden) in hidden
            )
            assert dict(page.record.lists) == lists[name]
        original(self, pages)
        if pages >= stop:
            raise KeyboardInterrupt

    monkeypatch.setattr(importer, "GROUP_PAGES", 4)
    monkeypatch.setattr(importer.Importer, "_note", note)
    for stop in (3, 7, 11):  # noqa: B007 - ``note`` reads it
        assert CliRunner().invoke(main, ["import", str(out), *store_of(new)]).exit_code != 0
    monkeypatch.setattr(importer.Importer, "_note", original)
    done = command(new, "import", out)
    assert done.exit_code == 0, done.output
    assert "went on behind page" in done.stderr
    assert visible == []
    assert lines_of(digests_of(new)) == lines_of(digests_of(old))


def hidden_and_lists(out: Path) -> tuple[set[tuple[str, int, bool]], dict[str, dict[str, str]]]:
    """Return name, time and False of each hidden revision, and the lists of each page."""
    hidden, lists, name = set(), {}, ""
    for line in out.read_bytes().splitlines():
        one = json.loads(line)
        if one.get("deleted_ms"):
            break
        if one["kind"] == "page":
            name = one["name"]
            lists[name] = one.get("lists", {})
        elif one.get("hidden"):
            hidden.add((name, one["time_ms"], False))
    return hidden, lists


def test_what_was_written_meanwhile_stays_in_both_wikis(new: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "wiki.jsonl"
    new.save("Ship", "one", author="Ada", base=0, time_ms=1_700_000_000_000)
    new.save("Ship", "two", author="Ada", base=1, time_ms=1_700_000_000_500)
    assert command(new, "export", "--to", "json-lines", out).exit_code == 0
    new.save("Ship", "three", author="Eve", base=2)
    new.mover.hide("Ship", 1, hidden=True)
    done = command(new, "import", out)
    assert [(one.number, one.author) for one in new.revisions("Ship")] == [(3, "Eve"), (2, "Ada")]
    assert done.exit_code == 1, "a revision that was hidden here meanwhile stays hidden, and differs"
    assert "0 revisions stored" in done.stdout


def test_a_revision_that_was_hidden_after_the_first_export_is_hidden_by_the_next(new: Wiki, tmp_path: Path) -> None:
    with wiki_in(tmp_path / "first") as first:
        first.save("Ship", "a secret", author="Ada", base=0)
        first.save("Ship", "no secret", author="Ada", base=1)
        assert command(first, "export", "--to", "json-lines", tmp_path / "1.jsonl").exit_code == 0
        assert command(new, "import", tmp_path / "1.jsonl").exit_code == 0
        assert [one.number for one in new.revisions("Ship")] == [2, 1]
        first.mover.hide("Ship", 1, hidden=True)
        assert command(first, "export", "--to", "json-lines", tmp_path / "2.jsonl").exit_code == 0
    assert command(new, "import", tmp_path / "2.jsonl").exit_code == 0
    assert [one.number for one in new.revisions("Ship")] == [2]


def test_rights_that_were_changed_here_stay(new: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "wiki.jsonl"
    with wiki_in(tmp_path / "first") as first:
        first.save("Ship", "a text", author="Ada", base=0)
        first.rights.change("Ship", first.rights.of(["Ship"])["Ship"], "Ada", {Privilege.READ: "+"})
        first.rights.change_rules("", {Privilege.WRITE: "+"}, first.rights.rules())
        assert command(first, "export", "--to", "json-lines", out).exit_code == 0
    new.rights.change_rules("", {Privilege.READ: "+"}, new.rights.rules())
    assert command(new, "import", out).exit_code == 0
    new.rights.change("Ship", new.rights.of(["Ship"])["Ship"], "Eve", {Privilege.READ: "Eve"})
    done = command(new, "import", out)
    assert done.exit_code == 0, done.output
    assert "Ship: its rights were changed here" in done.stdout
    assert "the lists for all pages are others here: they stay, and pages that theirs close keep theirs" in done.stdout
    assert new.rights.of(["Ship"])["Ship"].lists == {Privilege.READ: "Eve"}


def test_lists_that_cannot_be_set_here_bring_no_page(
    few: Wiki, new: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "wiki.jsonl"
    assert command(few, "export", "--to", "json-lines", out).exit_code == 0
    with monkeypatch.context() as small:
        small.setattr("wikka_port.rights.stored.RULES_BYTES_MAX", 1)
        done = command(new, "import", out)
    assert (done.exit_code, new.page("A/B")) == (1, None), done.output
    assert "cannot be set, so no page is brought in" in done.output
    assert "import again" in done.output
    done = command(new, "import", out)
    assert done.exit_code == 0, done.output
    assert lines_of(digests_of(new)) == lines_of(digests_of(few))


def test_newer_lists_come_before_newer_revisions_and_a_page_is_opened_after_them(
    new: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, tuple[str, str]] = {}
    note = importer.Importer._note

    def look(self: importer.Importer, pages: int) -> None:
        for name, own in new.rights.of(["Ship", "Pier"]).items():
            page = new.page(name)
            assert page is not None
            seen[name] = (page.body, own.lists.get(Privilege.READ, "none"))
        note(self, pages)

    monkeypatch.setattr(importer.Importer, "_note", look)
    with wiki_in(tmp_path / "first") as first:

        def listed(name: str, text: str) -> None:
            first.rights.change(name, first.rights.of([name])[name], "Ada", {Privilege.READ: text})

        for name in ("Ship", "Pier"):
            first.save(name, "a text", author="Ada", base=0)
        listed("Pier", "Ada")
        assert command(first, "export", "--to", "json-lines", tmp_path / "1.jsonl").exit_code == 0
        assert command(new, "import", tmp_path / "1.jsonl").exit_code == 0
        assert seen == {"Ship": ("a text", "none"), "Pier": ("a text", "Ada")}
        listed("Ship", "Ada")
        listed("Pier", "*")
        for name in ("Ship", "Pier"):
            first.save(name, "a newer text", author="Ada", base=1)
        assert command(first, "export", "--to", "json-lines", tmp_path / "2.jsonl").exit_code == 0
    assert command(new, "import", tmp_path / "2.jsonl").exit_code == 0
    assert seen == {"Ship": ("a newer text", "Ada"), "Pier": ("a newer text", "Ada")}
    assert new.rights.of(["Pier"])["Pier"].lists == {Privilege.READ: "*"}


def test_a_stopped_export_leaves_nothing_under_its_name(
    old: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "wiki.jsonl"
    out.write_bytes(b"an older export")

    def broken(self: object) -> Iterator[object]:
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patched:
        patched.setattr("wikka_port.exchange.page_source.StorePage.files", broken)
        assert CliRunner().invoke(main, ["export", "--to", "json-lines", str(out), *store_of(old)]).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["wiki.jsonl"]
    assert out.read_bytes() == b"an older export"


def test_a_stopped_export_goes_on_unless_it_is_told_to_begin_anew_or_is_a_readers(
    old: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins anew for a reader, who may have lost the right to read what was written."""
    monkeypatch.setattr(written_pages, "NOTED", 1)
    names: list[str] = []
    original = StorePage.revisions

    def revisions(self: StorePage) -> Iterator[RevisionRecord]:
        names.append(self.record.identity)
        if len(names) == stop:
            raise KeyboardInterrupt
        return original(self)

    monkeypatch.setattr(StorePage, "revisions", revisions)
    for form, name in (("json-lines", "w.jsonl.gz"), ("git", "w.git"), ("mediawiki", "w.xml"), ("wikkawiki", "w.sql")):
        out, stop, names[:] = tmp_path / name, 5, []
        words = ("export", "--to", form, out)
        assert CliRunner().invoke(main, [*map(str, words), *store_of(old)]).exit_code != 0
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.part", f"{name}.part-written"]
        stop, names[:] = 0, []
        assert re.search("going on behind [45] pages", command(old, *words).stderr)
        whole, read = out.read_bytes(), len(names)
        names.clear()
        again = command(old, *words)
        assert ("going on" in again.stderr, out.read_bytes()) == (False, whole)
        assert len(names) == read + 4
        for more in (("--restart",), ("--readable-by", "anonymous")):
            stop, names[:] = 4, []
            reader = more if "--restart" not in more else ()
            assert CliRunner().invoke(main, [*map(str, (*words, *reader)), *store_of(old)]).exit_code != 0
            stop, names[:] = 0, []
            assert "going on" not in command(old, *words, *more).stderr
            assert len(names) == len(set(names))
        out.unlink()


@pytest.mark.parametrize(
    ("form", "name"),
    [("json-lines", "w.jsonl"), ("git", "w.git"), ("mediawiki", "w.xml"), ("markdown", "w"), ("wikkawiki", "w.sql")],
)
def test_an_export_of_all_takes_nothing_of_a_stopped_one_for_a_reader(
    few: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, name: str
) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 1)
    monkeypatch.setattr(export_file, "sync_all", lambda: None)
    reader, operator = tmp_path / "reader" / name, tmp_path / "operator" / name
    names: list[str] = []
    original = StorePage.revisions

    def revisions(self: StorePage) -> Iterator[RevisionRecord]:
        names.append(self.record.identity)
        if len(names) == 2:
            raise KeyboardInterrupt
        return original(self)

    for one in (reader, operator):
        one.parent.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(StorePage, "revisions", revisions)
        words = ("export", "--to", form, str(reader), "--readable-by", "anonymous")
        assert CliRunner().invoke(main, [*words, *store_of(few)]).exit_code != 0
    assert list(tmp_path.rglob("*.part-written")) != [], "it was stopped behind a checkpoint"
    done = command(few, "export", "--to", form, reader)
    assert (done.exit_code, "going on" in done.stderr) == (0, False)
    assert command(few, "export", "--to", form, operator).exit_code == 0
    assert written_bytes(reader) == written_bytes(operator)


def test_a_comparison_reads_no_content_of_the_store(
    few: Wiki, new: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, read = tmp_path / "w.jsonl", list[object]()
    assert command(few, "export", "--to", "json-lines", out).exit_code == 0
    with monkeypatch.context() as patched:
        patched.setattr(StorePage, "_content", lambda *given: read.append(given))
        assert command(new, "import", out).exit_code == 0
    assert read == []
    assert lines_of(digests_of(new)) == lines_of(digests_of(few))


def written_bytes(out: Path) -> dict[str, bytes]:
    found = out.rglob("*") if out.is_dir() else [out]
    return {str(path.relative_to(out.parent)): path.read_bytes() for path in found if path.is_file()}


def test_contents_in_a_folder_are_synced_before_a_checkpoint(
    few: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 1)
    synced: list[int] = []
    monkeypatch.setattr(export_file, "sync_all", lambda: synced.append(1))
    assert command(few, "export", "--to", "json-lines", tmp_path / "w.jsonl").exit_code == 0
    assert synced == [], "the contents lie in the file"
    words = ("export", "--to", "json-lines", tmp_path / "w2.jsonl", "--files", tmp_path / "contents")
    assert command(few, *words).exit_code == 0
    assert len(synced) >= 3


@pytest.mark.parametrize(
    ("form", "name"), [("git", "wiki.git-stream"), ("markdown", "wiki"), ("mediawiki", "wiki.xml.gz")]
)
def test_other_forms_carry_the_same_records_and_are_recognised(
    few: Wiki, new: Wiki, tmp_path: Path, form: str, name: str
) -> None:
    exported = command(few, "export", "--to", form, tmp_path / name)
    assert exported.exit_code == 0, exported.output
    said = [line for line in exported.stderr.splitlines() if "does not take them" not in line]
    assert lines_of(digests_of(few))[1:] == said[1:]
    done = command(new, "import", tmp_path / name)
    assert done.exit_code == 0, done.output
    assert lines_of(digests_of(new)) == lines_of(digests_of(few))


def test_a_text_that_was_edited_in_a_folder_comes_in_as_a_revision(new: Wiki, tmp_path: Path) -> None:
    new.save("Ship", "one", author="Ada", base=0, markup="markdown")
    assert command(new, "export", "--to", "markdown", tmp_path / "wiki").exit_code == 0
    (tmp_path / "wiki" / "Ship.md").write_text("two")
    done = command(new, "import", tmp_path / "wiki")
    assert done.exit_code == 0, done.output
    assert "Ship: edited in the folder" in done.stdout
    assert [(one.body, one.author) for one in new.revisions("Ship", bodies=True)] == [("two", "Folder"), ("one", "Ada")]


def test_a_wikkawiki_gets_what_it_can_have_and_gives_it_back(new: Wiki, tmp_path: Path) -> None:
    with wiki_in(tmp_path / "first") as first:
        accounts_of(first).directory.make("Ada", status="active", email="ada@example.org", password="a hash")
        first.save("Ship", "one", author="Ada", note="a <note>", signed="account", base=0, time_ms=1_700_000_000_000)
        first.save("Ship", "two", author="Eve", base=1, time_ms=1_700_000_001_000)
        first.save("Pier", "three", author="Ada", signed="account", base=0, time_ms=1_700_000_002_000)
        add_file(first.files, "Ship", "notes.txt", b"some notes", By("Ada"))
        first.rights.change("Ship", first.rights.of(["Ship"])["Ship"], "Ada", {Privilege.WRITE: "Ada"})
        out, uploads = tmp_path / "wikka.sql.gz", tmp_path / "uploads"
        exported = command(first, "export", "--to", "wikkawiki", out, "--files", uploads)
        assert exported.exit_code == 0, exported.output
        for line in ("2 pages", "3 revisions", "1 pages with lists of rights", "1 files", "'default_read_acl' => '*'"):
            assert line in exported.stderr
        done = command(new, "import-wikkawiki", "--dump", out, "--uploads", uploads)
        assert done.exit_code == 0, done.output
        for name in ("Ship", "Pier"):
            revisions = [
                [(one.body, one.author, one.note, one.time_ms, one.signed) for one in wiki.revisions(name, bodies=True)]
                for wiki in (first, new)
            ]
            assert revisions[0] == revisions[1]
        assert new.rights.of(["Ship"])["Ship"].lists[Privilege.WRITE] == "Ada"
        assert [*new.files.content(new.files.files_of("Ship")["notes.txt"])] == [b"some notes"]
        account = accounts_of(new).directory.account("Ada")
        assert account is not None
        assert (account.email, account.password) == ("ada@example.org", "")


def test_a_stream_goes_to_the_standard_output(new: Wiki) -> None:
    new.save("Ship", "one", author="Ada", base=0)
    for form, begin, end in (("git", b"feature done\n", b"done\n"), ("json-lines", b'{"kind":"wikka-export"', b"}\n")):
        done = command(new, "export", "--to", form, "-")
        assert done.exit_code == 0
        assert done.stdout_bytes.startswith(begin)
        assert done.stdout_bytes.endswith(end)
    assert command(new, "export", "--to", "markdown", "-").exit_code == 2


def test_a_hidden_revision_of_the_second_of_the_newest_stays_below_it(new: Wiki, tmp_path: Path) -> None:
    out = tmp_path / "wiki.jsonl"
    with wiki_in(tmp_path / "first") as first:
        for number, body in enumerate(("one", "a secret", "three")):
            first.save("Ship", body, author="Ada", base=number, time_ms=1_700_000_000_000 + 300 * number)
        first.mover.hide("Ship", 2, hidden=True)
        assert command(first, "export", "--to", "json-lines", out).exit_code == 0
        done = command(new, "import", out)
        assert done.exit_code == 0, done.output
        assert lines_of(digests_of(new)) == lines_of(digests_of(first))
    assert [one.body for one in new.revisions("Ship", bodies=True)] == ["three", "one"]

"""Deleted pages out of a wiki and into another: what comes, who may see it, and what stays as it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_wiki_export import command, digests_of, lines_of, wiki_in
from tests.support.exported_wiki import add_file
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import check
from wikka_port.moving.journal import deleted
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege

EVE = By("Eve", "account", "it was spam")


def anybody(_name: str, _rights: object) -> None:
    """Allow everything."""


def fill(wiki: Wiki) -> None:
    """Make a page with all that a page can have, and delete it."""
    wiki.save("Pier", "an older page", author="Ada", base=0, time_ms=1_700_000_000_000)
    wiki.mover.delete("Pier", By("Ada", "account", ""))
    for number, body in enumerate(("first", "a secret", "third")):
        base = wiki.head("Pier").number if number else 0
        wiki.save("Pier", body, author="Ada", signed="account", note=f"note {number}", base=base)
    wiki.mover.hide("Pier", wiki.head("Pier").number - 1, hidden=True)
    add_file(wiki.files, "Pier", "pier.txt", b"a pier", By("Ada"))
    for text, parent in (("a comment", 0), ("its answer", 1)):
        wiki.comments.add("Pier", b"", NewComment(text, "Bob", "visitor", text, "wikka", parent), allow=anybody)
    wiki.rights.change("Pier", wiki.rights.of(["Pier"])["Pier"], "Ada", {Privilege.READ: "Ada"})
    wiki.mover.delete("Pier", EVE)


@pytest.mark.parametrize("form", ["json-lines", "markdown", "git", "mediawiki"])
def test_a_deleted_page_is_deleted_there_and_can_be_brought_back_whole(form: str, tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        fill(old)
        old.save("Pier", "a new page", author="Ada", base=0)
        assert command(old, "export", "--to", form, tmp_path / "out").exit_code == 0
        for said in ("2 deleted pages stored", "2 deleted pages that were here"):
            done = command(new, "import", tmp_path / "out", "--restart")
            assert done.exit_code == 0, done.output
            assert said in done.stdout
        assert lines_of(digests_of(new)) == lines_of(digests_of(old))
        assert check(new).differences == ()
        (gone, older), there = deleted(new.rows, "Pier"), deleted(old.rows, "Pier")
        assert [(one.by, one.reason, one.time_ms) for one in (gone, older)] == [
            (one.by, one.reason, one.time_ms) for one in there
        ]
        assert gone.rights.lists == {Privilege.READ: "Ada"}
        assert new.rights.rules().has_own_lists, "or nobody would read the page's lists when it is back"
        new.mover.undelete("Pier", gone.row, EVE, new="Old pier")
        assert [(one.body, one.author, one.note) for one in new.revisions("Old pier", bodies=True)] == [
            ("third", "Ada", "note 2"),
            ("first", "Ada", "note 0"),
        ]
        assert b"".join(new.files.content(new.files.files_of("Old pier")["pier.txt"])) == b"a pier"
        place = new.comments.find_commented("Old pier")
        assert [one.text for one in new.comments.every(place.history, place.head)] == ["a comment", "its answer"]
        assert new.rights.of(["Old pier"])["Old pier"].lists == {Privilege.READ: "Ada"}
        new.mover.purge("Pier", older.row, EVE)
        assert check(new).differences == ()


def test_what_was_brought_back_here_stays_and_what_was_purged_here_comes_again(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "wiki") as wiki:
        fill(wiki)
        assert command(wiki, "export", "--to", "json-lines", tmp_path / "out").exit_code == 0
        newest, older = deleted(wiki.rows, "Pier")
        wiki.mover.undelete("Pier", newest.row, EVE)
        wiki.mover.purge("Pier", older.row, EVE)
        done = command(wiki, "import", tmp_path / "out")
        assert done.exit_code == 0, done.output
        assert "1 deleted pages that were brought back here: left alone:\n  Pier" in done.stdout
        assert "1 deleted pages stored" in done.stdout
        assert [one.time_ms for one in deleted(wiki.rows, "Pier")] == [older.time_ms]
        assert check(wiki).differences == ()
        wiki.mover.purge("Pier", deleted(wiki.rows, "Pier")[0].row, EVE)
        assert command(wiki, "import", tmp_path / "out").exit_code == 0
        assert [one.time_ms for one in deleted(wiki.rows, "Pier")] == [older.time_ms]


def test_forms_without_a_place_for_deleted_pages_say_so_and_no_visitor_gets_them(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "wiki") as wiki:
        fill(wiki)
        wiki.save("Ship", "a text", author="Ada", base=0)
        done = command(wiki, "export", "--to", "wikkawiki", tmp_path / "wikka.sql")
        assert "2 deleted pages left out" in done.stderr
        assert "third" not in (tmp_path / "wikka.sql").read_text()
        assert "2 deleted pages" in command(wiki, "export", "--to", "html", tmp_path / "site").stderr
        done = command(wiki, "export", "--to", "mediawiki", tmp_path / "wiki.xml")
        assert "the deleted pages are for “wikka import” alone" in done.stderr
        assert "deleted pages" not in command(wiki, "export", "--to", "git", tmp_path / "stream").stderr
        public = command(wiki, "export", "--to", "json-lines", "--readable-by", "Nobody", tmp_path / "public")
        assert public.exit_code == 1, "there is no such user"
        public = command(wiki, "export", "--to", "json-lines", "--readable-by", "anonymous", tmp_path / "public")
        assert public.exit_code == 0
        assert "spam" not in (tmp_path / "public").read_text()

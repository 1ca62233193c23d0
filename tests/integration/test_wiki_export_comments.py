"""Comments out of a wiki and into another: on a page with comments of its own, and again after changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_wiki_export import command, wiki_in
from wikka_port.commands.serving_options import accounts_of
from wikka_port.comments.comment_rows import REMOVED, RESTORED, WAITING, Comment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege


def anybody(_name: str, _rights: object) -> None:
    """Allow everything."""


def add(wiki: Wiki, text: str, at_ms: int, parent: int = 0, author: str = "Ada") -> None:
    new = NewComment(text, author, "account", f"form {text}", "wikka", parent, time_ms=at_ms)
    wiki.comments.add("Page", b"", new, allow=anybody)


def change(wiki: Wiki, number: int, **fields: Any) -> None:
    wiki.comments.change("Page", b"", number, lambda one: replace(one, **fields), allow=anybody)


def comments(wiki: Wiki) -> list[Comment]:
    place = wiki.comments.find_commented("Page")
    return list(wiki.comments.every(place.history, place.head))


@pytest.mark.parametrize("form", ["json-lines", "markdown", "git", "mediawiki"])
def test_comments_come_below_those_that_are_there_and_follow_later_changes(form: str, tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        old.save("Page", "text", author="Ada", base=0, time_ms=1_000)
        add(old, "one", 2_000)
        add(old, "answer", 3_000, parent=1, author="Ann")
        add(old, "answer to it", 4_000, parent=2)
        assert command(old, "export", "--to", form, tmp_path / "first").exit_code == 0
        new.save("Page", "text", author="Ada", base=0, time_ms=1_000)
        add(new, "here", 2_500, author="Bob")
        done = command(new, "import", tmp_path / "first")
        assert done.exit_code == 0, done.output
        assert "3 comments stored" in done.stdout
        found = comments(new)
        assert [(one.text, one.parent) for one in found] == [
            ("here", 0),
            ("one", 0),
            ("answer", 2),
            ("answer to it", 3),
        ]
        change(old, 2, text="edited", edited_ms=5_000)
        change(old, 1, state=REMOVED, removed_by="owner")
        add(old, "late", 6_000)
        assert command(old, "export", "--to", form, tmp_path / "second").exit_code == 0
        again = command(new, "import", tmp_path / "second")
        assert again.exit_code == 0, again.output
        assert "1 comments stored" in again.stdout
        assert [(one.text, one.state) for one in comments(new)] == [
            ("here", "shown"),
            ("one", "deleted"),
            ("edited", "shown"),
            ("answer to it", "shown"),
            ("late", "shown"),
        ]
        place = new.comments.find_commented("Page")
        assert place.head.count == 4


def test_a_wikkawiki_gives_comments_back_as_they_were_typed(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        old.save("Page", "text", author="Ada", base=0, time_ms=1_000)
        add(old, 'two lines\n\n<b> & "quotes"\n', 2_000, author="Łukasz")
        add(old, "answer", 3_000, parent=1)
        add(old, "spam", 4_000)
        change(old, 3, state=REMOVED, removed_by="owner")
        assert command(old, "export", "--to", "wikkawiki", tmp_path / "wikka.sql").exit_code == 0
        for line in ("3 comments", "already"):
            done = command(new, "import-wikkawiki", "--dump", tmp_path / "wikka.sql")
            assert done.exit_code == 0, (line, done.output)
        assert [(one.text, one.author, one.parent, one.state, one.time_ms) for one in comments(new)] == [
            (one.text, one.author, one.parent, one.state, one.time_ms) for one in comments(old)
        ]


@pytest.mark.parametrize(("readers", "are_there"), [("*", True), ("Ada", False)])
def test_one_visitor_gets_the_comments_that_he_may_read_and_none_that_is_removed_or_waits(
    tmp_path: Path, readers: str, are_there: bool
) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        old.save("Page", "text", author="Ada", base=0)
        add(old, "first", 2_000)
        add(old, "REMOVED", 3_000, parent=1)
        add(old, "an answer to it", 4_000, parent=2)
        add(old, "WAITING", 5_000)
        add(old, "an answer to that", 6_000, parent=4)
        add(old, "brought back", 7_000)
        change(old, 2, state=REMOVED, removed_by="owner")
        change(old, 4, state=WAITING)
        change(old, 6, removed_by=RESTORED)
        given = {Privilege.COMMENT_READ: readers}
        old.rights.change("Page", old.rights.of(["Page"])["Page"], "Ada", given)
        accounts_of(old).directory.make("Ada", status="active", admin=False)
        for reader, sees in (("anonymous", are_there), ("Ada", True)):
            out = tmp_path / f"{reader}.jsonl"
            done = command(old, "export", "--to", "json-lines", "--readable-by", reader, out)
            assert done.exit_code == 0, done.output
            text = out.read_text()
            assert ("first" in text, "REMOVED" in text, "WAITING" in text) == (sees, False, False), reader
            assert RESTORED not in text
            assert ("comments: 4" in done.stderr) is sees, done.stderr
        done = command(new, "import", tmp_path / "Ada.jsonl")
        assert done.exit_code == 0, done.output
        assert [(one.text, one.parent) for one in comments(new)] == [
            ("first", 0),
            ("an answer to it", 1),
            ("an answer to that", 0),
            ("brought back", 0),
        ]

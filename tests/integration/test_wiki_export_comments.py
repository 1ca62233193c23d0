"""Comments out of a wiki and into another: on a page with comments of its own, and again after changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_wiki_export import command, wiki_in
from wikka_port.comments.comment_rows import REMOVED, Comment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.pages import Wiki


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


def test_what_one_visitor_may_read_has_no_comments(tmp_path: Path) -> None:
    with wiki_in(tmp_path / "old") as old:
        old.save("Page", "text", author="Ada", base=0)
        add(old, "a comment", 2_000)
        out = tmp_path / "public.jsonl"
        assert command(old, "export", "--to", "json-lines", "--readable-by", "anonymous", out).exit_code == 0
        assert "a comment" not in out.read_text()

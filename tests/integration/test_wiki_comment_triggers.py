"""Lists of comments as the triggers keep them: after comments, moves, a purge, the end of an account, and a repair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stored_wiki import ADA, anybody, settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port import schema
from wikka_port.comments import stored_comments, threads
from wikka_port.comments.comment_lists import LISTS
from wikka_port.comments.comment_rows import COMMENTS
from wikka_port.comments.stored_comments import NewComment
from wikka_port.comments.threads import THREADED
from wikka_port.consistency import check
from wikka_port.moving.journal import deleted
from wikka_port.pages import Wiki


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("comments"), "triggers") as made:
        yield made


def added(wiki: Wiki, page: str, text: str, parent: int = 0) -> int:
    new = NewComment(text, "Ada", "account", f"{page} {text}", "wikka", parent)
    return wiki.comments.add(page, b"", new, allow=anybody).number


def listed(wiki: Wiki, user: str = "") -> list[tuple[str, str]]:
    settle(wiki)
    return [(one.page, one.comment.text) for one in wiki.recent_comments(user=user, limit=20).found]


def test_lists_follow_comments_moves_and_the_end_of_an_account(wiki: Wiki) -> None:
    for page in ("Home", "Other"):
        wiki.save(page, "A text.", author="Ada", base=0)
    for page, text in (("Home", "one"), ("Other", "two"), ("Home", "three")):
        added(wiki, page, text)
    assert listed(wiki) == listed(wiki, "ADA") == [("Home", "three"), ("Other", "two"), ("Home", "one")]
    wiki.save("Home", "A text that has changed.", author="Ada", base=1)
    wiki.mover.rename("Home", "New", ADA)
    assert listed(wiki) == [("New", "three"), ("Other", "two"), ("New", "one")]
    wiki.mover.delete("New", ADA)
    assert listed(wiki) == [("Other", "two")]
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA)
    assert listed(wiki) == [("New", "three"), ("Other", "two"), ("New", "one")]
    wiki.rename_edits("Ada", "Former user 12ab")
    assert listed(wiki, "Ada") == []
    assert len(listed(wiki, "Former user 12ab")) == 3
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()
    wiki.mover.delete("New", ADA)
    settle(wiki)
    wiki.mover.purge("New", deleted(wiki.rows, "New")[0].row, ADA)
    assert listed(wiki) == [("Other", "two")]
    report = check(wiki, settle=lambda: settle(wiki))
    assert [one for one in report.differences if one.table in (COMMENTS, LISTS, schema.PAGES)] == []
    assert len(list(wiki.rows.scan(COMMENTS))) == 1


def test_threads_of_many_comments_and_a_repair(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_comments, "PART", 4)
    monkeypatch.setattr(threads, "PART", 4)
    wiki.save("Many", "A text.", author="Ada", base=0)
    for number in range(1, 10):
        added(wiki, "Many", str(number), parent=1 if number % 2 == 0 else 0)
    settle(wiki)
    web = WikiClient(wiki)
    assert "More comments" in web.get("/Many/comments?order=threaded").text
    place = wiki.comments.find_commented("Many")

    def shown() -> list[int]:
        found, after = list[int](), ""
        while after or not found:
            part = wiki.comments.part(place.history, place.head, order=THREADED, after=after)
            found += [one.number for one in part.comments]
            after = part.after
        return found

    assert shown() == [1, 2, 4, 6, 8, 3, 5, 7, 9]
    rows = [row for row, _ in wiki.rows.scan(LISTS)]
    wiki.rows.delete_rows(LISTS, rows[::2])
    report = check(wiki, repair=True, settle=lambda: settle(wiki))
    assert report.differences != ()
    assert report.left == ()
    assert sorted(row for row, _ in wiki.rows.scan(LISTS)) == sorted(rows)
    assert shown() == [1, 2, 4, 6, 8, 3, 5, 7, 9]

"""Mentions in changed comments over a store: one notice each, through kills and renames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from tests.support.falling_wiki import FallingAtCall
from tests.support.stored_wiki import KINDS, anybody, empty, settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.comments.comment_rows import Comment
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import check
from wikka_port.moving.mover import By
from wikka_port.notices.notice_rows import INBOX
from wikka_port.pages import Wiki

ANN = By("Ann", "account", "because")


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("mentions"), request.param) as made:
        yield made


@pytest.fixture
def wiki(store: Wiki) -> Wiki:
    settle(store)
    empty(store)
    settle(store)
    WikiClient(store).signed_in("Eve")
    return store


def commented(wiki: Wiki, name: str, text: str) -> None:
    wiki.save(name, "A text.", author="Ann", base=0)
    wiki.comments.add(name, b"", NewComment(text, "Bob", "account", name, "wikka"), allow=anybody)


def change(wiki: Wiki, name: str, text: str) -> None:
    def edited(comment: Comment) -> Comment:
        return comment if comment.text == text else replace(comment, text=text, edited_ms=comment.time_ms + 1)

    wiki.comments.change(name, b"", 1, edited, allow=anybody)


def notices(wiki: Wiki) -> int:
    settle(wiki)
    return sum(1 for _ in wiki.rows.scan(INBOX))


def test_changes_tell_each_new_mention_once_and_a_rename_none_again(wiki: Wiki) -> None:
    commented(wiki, "Port", "For @Nobody.")
    change(wiki, "Port", "For @Nobody, yet.")
    assert notices(wiki) == 0
    change(wiki, "Port", "For @Eve.")
    change(wiki, "Port", "For @Eve, too.")
    assert notices(wiki) == 1
    wiki.mover.rename("Port", "Haven", ANN)
    wiki.save("Haven", "Another text.", author="Ann", base=1)
    change(wiki, "Haven", "For @Eve, always.")
    wiki.mover.delete("Haven", ANN)
    assert notices(wiki) == 1
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
def test_a_kill_at_any_call_brings_no_second_notice(is_sent: bool, wiki: Wiki) -> None:
    for fatal in count():
        name, before = f"Port {fatal}", notices(wiki)
        commented(wiki, name, "For nobody.")
        falls = FallingAtCall(wiki, fatal, is_sent=is_sent)
        falls.run(lambda process, page=name: change(process, page, "For @Eve."))  # type: ignore[misc]
        place = wiki.comments.find_commented(name)
        one = wiki.comments.comment_at(place.history, 1, place.head)
        assert one is not None
        was_committed = one.text == "For @Eve."
        change(wiki, name, "For @Eve.")
        now = notices(wiki)
        assert now <= before + 1, fatal
        if wiki.indexes == "triggers" or not was_committed or not falls.has_fallen:
            assert now == before + 1, fatal  # without triggers the process that commits notifies (docs/wiki-notices.md)
        if not falls.has_fallen:
            assert fatal >= 3, "there were calls at which it fell"
            return

"""Refused suggestions over a store: the text and the notice are there once, through kills, renames and purges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.falling_wiki import FallingAtCall
from tests.support.stored_wiki import KINDS, empty, settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.consistency import check
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.editing.suggestions import SUGGESTIONS, Suggestion
from wikka_port.moving.mover import By
from wikka_port.notices.notice_rows import INBOX, OUTGOING
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.rules import PageRights, Privilege

ANN = By("Ann", "account", "because")
RITA = owner_of_account("Rita")


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("refused"), request.param) as made:
        yield made


@pytest.fixture
def wiki(store: Wiki) -> Wiki:
    settle(store)
    empty(store)
    settle(store)
    return store


@pytest.fixture
def rita(wiki: Wiki) -> WikiClient:
    """The author, to whom notices are mailed."""
    web = WikiClient(wiki, edit_burst=10_000).signed_in("Rita")
    wiki.rows.put(b"users", b"rita", {b"settings:mail": b"now"})
    return web


def suggested(wiki: Wiki, name: str, text: str = "Rita's text.") -> Suggestion:
    """A suggestion for a new page."""
    wiki.save(name, "A text.", author="Ann", base=0, owner="Ann")
    wiki.rights.change(name, PageRights("Ann"), "Ann", {Privilege.WRITE: "Ann"})
    page = wiki.page(name)
    assert page is not None
    made = Suggestion("Rita", RITA, "account", clock_ms(), 1, "wikka", text, base_token=page.token)
    return whole(wiki, name, wiki.suggestions.add(name, made).id)


def whole(wiki: Wiki, name: str, suggestion_id: str) -> Suggestion:
    found = wiki.suggestions.one(name, suggestion_id)
    assert found is not None
    return found


def told(wiki: Wiki) -> tuple[int, int]:
    """Numbers of notices and of mails."""
    settle(wiki)
    return sum(1 for _ in wiki.rows.scan(INBOX)), sum(1 for _ in wiki.rows.scan(OUTGOING))


def own(wiki: Wiki) -> list[tuple[str, str]]:
    """Page and text of each of Rita's own texts."""
    found = []
    for one in wiki.suggestions.reviews_of([RITA]):
        page = one.review.page if one.review is not None else ""
        text = wiki.suggestions.reviewed(page, one.id)
        found.append((page, "" if text is None else text.text or ""))
    return found


def test_its_author_learns_of_it_by_notice_and_mail_once(wiki: Wiki, rita: WikiClient) -> None:
    one = suggested(wiki, "Port")
    assert wiki.suggestions.refuse("Port", one, "Ann", "Too long.")
    assert not wiki.suggestions.refuse("Port", one, "Otto", "Too short.")
    assert told(wiki) == (1, 1)
    assert own(wiki) == [("Port", "Rita's text.")]
    inbox = rita.get("/-/inbox").text
    assert "was refused" in inbox
    assert "Too long." in inbox
    assert [one.who for one in wiki.suggestions.refused_of("Port")] == ["Rita"]
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()


def test_a_text_lives_on_from_the_refusal(wiki: Wiki, rita: WikiClient) -> None:
    one = suggested(wiki, "Port")
    (before,) = stamps(wiki)
    wiki.suggestions.refuse("Port", one, "Ann")
    (after,) = stamps(wiki)
    assert min(after.values()) > max(before.values()), "no cell ends 30 days after the suggestion"
    assert before.keys() <= after.keys()


def stamps(wiki: Wiki) -> list[dict[bytes, int]]:
    found = wiki.store.run(lambda c: list(c.table(SUGGESTIONS).scan(row_stop=b"of:", include_timestamp=True)))
    return [{column: stamp for column, (_, stamp) in cells.items()} for _, cells in found]


@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
def test_a_kill_at_any_call_loses_neither_text_nor_notice(is_sent: bool, wiki: Wiki, rita: WikiClient) -> None:
    for fatal in count():
        name = f"Port {fatal}"
        one = suggested(wiki, name)
        before = told(wiki)[0]
        falls = FallingAtCall(wiki, fatal, is_sent=is_sent)
        falls.run(lambda process, page=name, it=one: process.suggestions.refuse(page, it, "Ann", "No."))  # type: ignore[misc]
        is_refused = wiki.suggestions.one(name, one.id) is None
        if not is_refused:
            assert wiki.suggestions.refuse(name, whole(wiki, name, one.id), "Ann", "No.")
        else:
            assert not wiki.suggestions.refuse(name, one, "Otto", "No!"), "somebody has decided"
        assert (name, "Rita's text.") in own(wiki), fatal
        now = told(wiki)[0]
        assert now <= before + 1, fatal
        if wiki.indexes == "triggers" or not falls.has_fallen or not is_refused:
            assert now == before + 1, fatal  # without triggers the process that refuses notifies (docs/wiki-notices.md)
        if not falls.has_fallen:
            assert fatal >= 2, "there were calls at which it fell"
            return


def test_a_page_that_is_renamed_brings_no_second_notice(wiki: Wiki, rita: WikiClient) -> None:
    one = suggested(wiki, "Port")
    wiki.suggestions.refuse("Port", one, "Ann", "Too long.")
    assert told(wiki) == (1, 1)
    wiki.rows.delete_rows(OUTGOING, [row for row, _ in wiki.rows.scan(OUTGOING)])  # it was mailed
    wiki.mover.rename("Port", "Haven", ANN)
    assert own(wiki) == [("Haven", "Rita's text.")]
    assert told(wiki)[1] == 0, "no second mail"
    inbox = rita.get("/-/inbox").text
    assert inbox.count("Too long.") == 1
    assert "page=Haven" in inbox
    assert [one.who for one in wiki.suggestions.refused_of("Haven")] == ["Rita"]
    row = wiki.mover.delete("Haven", ANN).row
    wiki.mover.purge("Haven", row, ANN)
    assert own(wiki) == []
    assert wiki.rows.row_keys(SUGGESTIONS, b"", b"\xff", limit=9) == []

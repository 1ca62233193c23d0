"""Drafts, suggestions and networks of edits are of one page, whichever others have, had or get its name; on a store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import wiki_on
from wikka_port.accounts.audit import networks_of, note_network
from wikka_port.consistency import check
from wikka_port.differences import Difference, Kind
from wikka_port.editing.kept_drafts import KeptDraft, owner_of_account
from wikka_port.editing.suggestions import ACCEPTED, EDIT, OWN, SUGGESTIONS, Review, Suggestion
from wikka_port.moving.mover import By
from wikka_port.pages import Page, Wiki, clock_ms

ANN = By("Ann", "account", "because")
ADA = owner_of_account("Ada")
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("beside") / "data") as running:
        yield running


@pytest.fixture(params=["application", "plain"])
def wiki(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[Wiki]:
    with wiki_on(store.port, request.param) as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"Page {next(_NUMBERS)}"


def saved(wiki: Wiki, name: str, *bodies: str) -> Page:
    """The page with these further revisions, each from a network of its own."""
    for body in bodies:
        page = wiki.page(name)
        done = wiki.save(name, body, author="Ann", base=page.number if page else 0)
        note_network(wiki.rows, name, done.number, body)
    page = wiki.page(name)
    assert page is not None
    return page


def kept(wiki: Wiki, name: str, page: Page | None, text: str) -> None:
    """A draft and a suggestion that begin from ``page``; None: a draft of a new page."""
    now, base, token = clock_ms(), page.number if page else 0, page.token if page else ""
    draft_id = f"{next(_NUMBERS):016x}"
    wiki.drafts.keep(name, KeptDraft(draft_id, ADA, "Ada", now, now, base, "", text, base_token=token))
    if page is not None:
        owner = owner_of_account(text)
        wiki.suggestions.add(name, Suggestion("Bob", owner, "account", now, base, "wikka", text, base_token=token))


def beside(wiki: Wiki, name: str) -> tuple[set[str | None], set[str | None], dict[int, str]]:
    """Texts of drafts and of suggestions, networks by the numbers of edits."""
    suggested = (wiki.suggestions.one(name, one.id) for one in wiki.suggestions.of(name))
    return (
        {one.text for one in wiki.drafts.own(name, [ADA])},
        {one.text for one in suggested if one is not None},
        networks_of(wiki.rows, name, range(1, 9)),
    )


def deleted(wiki: Wiki, name: str) -> bytes:
    """The row of a page that has a draft, a suggestion and networks, and was deleted."""
    kept(wiki, name, saved(wiki, name, "one", "two"), "of the deleted page")
    return wiki.mover.delete(name, ANN).row


def test_a_purge_leaves_what_is_beside_the_page_that_has_the_name_by_now(wiki: Wiki, name: str) -> None:
    row = deleted(wiki, name)
    kept(wiki, name, None, "before the new page")
    kept(wiki, name, saved(wiki, name, "three"), "of the new page")
    wiki.mover.purge(name, row, ANN)
    assert beside(wiki, name) == ({"before the new page", "of the new page"}, {"of the new page"}, {3: "three"})


def test_a_purge_leaves_the_draft_of_a_page_that_is_to_begin(wiki: Wiki, name: str) -> None:
    kept(wiki, name, None, "of the page that was")
    row = deleted(wiki, name)
    kept(wiki, name, None, "of the page to come")
    wiki.mover.purge(name, row, ANN)
    assert beside(wiki, name) == ({"of the page to come"}, set(), {})


def test_a_page_that_comes_back_under_another_name_brings_its_own(wiki: Wiki, name: str) -> None:
    row = deleted(wiki, name)
    kept(wiki, name, saved(wiki, name, "three"), "of the new page")
    wiki.mover.undelete(name, row, ANN, new=f"{name} back")
    assert beside(wiki, name) == ({"of the new page"}, {"of the new page"}, {3: "three"})
    own = {"of the deleted page"}
    assert beside(wiki, f"{name} back") == (own, own, {1: "one", 2: "two"})


def test_of_two_deleted_pages_each_has_its_own(wiki: Wiki, name: str) -> None:
    first = deleted(wiki, name)
    kept(wiki, name, saved(wiki, name, "three"), "of the second page")
    second = wiki.mover.delete(name, ANN).row
    wiki.mover.purge(name, first, ANN)
    wiki.mover.undelete(name, second, ANN, new=f"{name} back")
    assert beside(wiki, name) == (set(), set(), {})
    own = {"of the second page"}
    assert beside(wiki, f"{name} back") == (own, own, {3: "three"})


def test_a_page_is_renamed_with_all_of_its_own(wiki: Wiki, name: str) -> None:
    deleted(wiki, name)
    kept(wiki, name, saved(wiki, name, "three", "four"), "of the new page")
    wiki.mover.rename(name, f"{name} new", ANN)
    own = {"of the new page"}
    assert beside(wiki, f"{name} new") == (own, own, {3: "three", 4: "four"})
    assert beside(wiki, name)[:2] == ({"of the deleted page"}, {"of the deleted page"})


def held(wiki: Wiki, name: str, page: Page, owner: str) -> Suggestion:
    """An edit of the page that waits for an administrator."""
    edit = Suggestion("Bob", owner, "account", clock_ms(), page.number, "wikka", "an edit", base_token=page.token)
    return wiki.suggestions.add_for_review(edit, Review(name, EDIT, form=f"{next(_NUMBERS)}"))


def own(wiki: Wiki, owner: str) -> list[tuple[str, str]]:
    """Id and page of each text in an author's own list."""
    return [(one.id, one.review.page) for one in wiki.suggestions.reviews_of([owner]) if one.review is not None]


def rows_of(wiki: Wiki, owner: str) -> list[bytes]:
    begin = b"of:" + owner.encode() + b":"
    return wiki.rows.row_keys(SUGGESTIONS, begin, begin + b"~", limit=10)


def test_a_text_under_review_follows_its_page_and_is_found_and_decided_there(wiki: Wiki, name: str) -> None:
    owner = owner_of_account(name)
    one = held(wiki, name, saved(wiki, name, "one"), owner)
    assert own(wiki, owner) == [(one.id, name)]
    wiki.mover.rename(name, f"{name} new", ANN, redirect=False)
    assert own(wiki, owner) == [(one.id, f"{name} new")]
    assert len(rows_of(wiki, owner)) == 1
    assert wiki.suggestions.reviewed(name, one.id) is None
    whole = wiki.suggestions.reviewed(f"{name} new", one.id)
    assert whole is not None
    assert whole.text == "an edit"
    assert [other.review.page for other in wiki.suggestions.waiting() if other.id == one.id and other.review] == [
        f"{name} new"
    ]
    assert wiki.suggestions.decide(whole, ACCEPTED)
    row = wiki.mover.delete(f"{name} new", ANN).row
    wiki.mover.purge(f"{name} new", row, ANN)
    assert (own(wiki, owner), rows_of(wiki, owner)) == ([], [])


def unlisted(wiki: Wiki) -> list[Difference]:
    return [one for one in check(wiki).differences if one.table == SUGGESTIONS]


def test_texts_under_review_of_an_older_wiki_are_listed_by_a_preparation_or_a_repair(wiki: Wiki, name: str) -> None:
    owner = owner_of_account(name)
    one = held(wiki, name, saved(wiki, name, "one"), owner)
    listed = rows_of(wiki, owner)
    wiki.rows.delete_rows(SUGGESTIONS, listed)
    assert own(wiki, owner) == []
    (missing,) = unlisted(wiki)
    assert (missing.kind, missing.row, missing.column) == (Kind.MISSING, listed[0], OWN)
    wiki.prepare()
    assert own(wiki, owner) == [(one.id, name)]
    wiki.rows.delete_rows(SUGGESTIONS, listed)
    check(wiki, repair=True)
    assert (own(wiki, owner), rows_of(wiki, owner), unlisted(wiki)) == ([(one.id, name)], listed, [])


def test_an_account_that_ends_leaves_no_row_of_its_texts(wiki: Wiki, name: str) -> None:
    owner, other = owner_of_account(name), owner_of_account(f"{name} other")
    page = saved(wiki, name, "one")
    for author in (owner, owner, other):
        held(wiki, name, page, author)
    assert wiki.suggestions.forget([owner]) == 2
    assert (rows_of(wiki, owner), len(rows_of(wiki, other)), len(own(wiki, other))) == ([], 1, 1)

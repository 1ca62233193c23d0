"""Forms of edits, drafts, suggestions and comments know the page that they began from, whatever page has the name now.

The other page has as many revisions, so the number of a revision cannot tell the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from werkzeug.test import TestResponse

from tests.support.account_pages import text_in
from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import wiki_on
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_conflicts import choosing
from wikka_port.moving.journal import ABANDONED, INTENT
from wikka_port.moving.mover import By
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights.rules import PageRights, Privilege

ANN = By("Ann", "account", "because")
TEXT = "one\n\n==Part==\n\ntwo"
OTHER = "another page\n\n==Part==\n\nof the same number"
_NUMBERS = count(1)


class Fallen(Exception):
    pass


@dataclass(frozen=True)
class Scene:
    """Two pages of two revisions each."""

    web: WikiClient
    wiki: Wiki
    page: str
    other: str

    @property
    def path(self) -> str:
        return f"/{self.page}"

    def text(self) -> str:
        found = self.wiki.page(self.page)
        assert found is not None
        return found.body

    def sent(self, form: dict[str, str], body: str = "MINE", **fields: str) -> TestResponse:
        return self.web.post(f"{self.path}/edit", {**form, "body": body, **fields})


def deleted(scene: Scene) -> None:
    scene.wiki.mover.delete(scene.page, ANN)
    scene.wiki.mover.rename(scene.other, scene.page, ANN, redirect=False)


def renamed(scene: Scene) -> None:
    scene.wiki.mover.rename(scene.page, f"{scene.page}Before", ANN, redirect=False)
    scene.wiki.mover.rename(scene.other, scene.page, ANN, redirect=False)


def begun_anew(scene: Scene) -> None:
    """A rename to the name is given up when the page had arrived already: nothing tells of the numbers before."""
    scene.wiki.mover.delete(scene.page, ANN)

    def fall(step: str) -> None:
        if step == "arrive":
            raise Fallen

    scene.wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        scene.wiki.mover.rename(scene.other, scene.page, ANN)
    scene.wiki.mover.on_step_done = lambda step: None
    (move,) = scene.wiki.mover.journal.opened()
    assert scene.wiki.mover.journal.pass_on(move, INTENT, ABANDONED)
    assert not scene.wiki.mover.finish(move)
    held = scene.wiki.page(scene.other)
    assert held is not None
    assert held.body == OTHER
    for base, text in enumerate(("begun anew", OTHER)):
        scene.wiki.save(scene.page, text, author="Eve", base=base)


Swap = Callable[[Scene], None]
SWAPS = (deleted, renamed, begun_anew)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("forms") / "data") as running:
        yield running


@pytest.fixture(params=["application", "plain"])
def scene(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[Scene]:
    number = next(_NUMBERS)
    with wiki_on(store.port, request.param) as wiki:
        made = Scene(WikiClient(wiki, edit_burst=10_000), wiki, f"Page{number}", f"Other{number}")
        for name, text in ((made.page, TEXT), (made.other, OTHER)):
            for base in (0, 1):
                wiki.save(name, text if base else "first", author="Ann", base=base)
        yield made


@pytest.mark.parametrize("swap", SWAPS)
def test_a_form_of_a_page_is_never_saved_over_another_one(scene: Scene, swap: Swap) -> None:
    whole, part, back = (
        scene.web.form(f"{scene.path}/{which}") for which in ("edit", "edit?section=Part", "revert?revision=1")
    )
    swap(scene)
    answer = scene.sent(whole)
    assert answer.status_code == 409
    assert (text_in(answer), scene.text()) == ("MINE", OTHER)
    assert "another page" in answer.text, "both texts are shown"
    answer = scene.sent(part, "==Part==\n\nMINE")
    assert (answer.status_code, text_in(answer), scene.text()) == (409, "==Part==\n\nMINE", OTHER)
    assert scene.web.post(f"{scene.path}/revert?revision=1", back).status_code == 409
    assert scene.text() == OTHER


@pytest.mark.parametrize("swap", SWAPS)
def test_the_conflict_page_saves_over_the_page_that_it_showed(scene: Scene, swap: Swap) -> None:
    form = scene.web.form(f"{scene.path}/edit")
    swap(scene)
    answer = scene.sent(form)
    assert answer.status_code == 409
    chosen = scene.sent(choosing(answer), **{"place-0": "both"})
    assert chosen.status_code == 303, "somebody has seen both"
    assert scene.text() == f"{OTHER}\nMINE"


def test_a_choice_is_not_saved_over_a_page_that_came_behind_it(scene: Scene) -> None:
    form = scene.web.form(f"{scene.path}/edit")
    scene.wiki.save(scene.page, "THEIRS", author="Eve", base=2)
    answer = scene.sent(form)
    assert answer.status_code == 409
    scene.wiki.save(scene.other, OTHER, author="Ann", base=2)
    renamed(scene)
    later = scene.sent(choosing(answer), "MINE", **{"place-0": "mine"})
    assert (later.status_code, scene.text()) == (409, OTHER)
    by_hand = scene.sent(scene.web.form_of(answer))
    assert (by_hand.status_code, scene.text()) == (409, OTHER)


@pytest.mark.parametrize("swap", SWAPS)
def test_a_draft_of_a_page_is_not_saved_over_another_one(scene: Scene, swap: Swap) -> None:
    form = scene.web.form(f"{scene.path}/edit")
    kept = scene.web.post(f"{scene.path}/draft", {**form, "body": "MINE", "keep": "1"})
    assert kept.status_code == 303
    swap(scene)
    if swap is renamed:
        assert "A draft" not in scene.web.get(f"{scene.path}/edit").text, "it went along with its page"
        resumed = scene.web.get(f"{scene.path}Before/edit?draft={form['draft']}")
        assert "The page was changed" not in resumed.text
        answer = scene.web.post(f"{scene.path}Before/edit", {**scene.web.form_of(resumed), "body": "MINE"})
        assert answer.status_code == 303
        return
    resumed = scene.web.get(f"{scene.path}/edit?draft={form['draft']}")
    assert text_in(resumed) == "MINE"
    assert "The page was changed after this draft began" in resumed.text
    assert (scene.sent(scene.web.form_of(resumed)).status_code, scene.text()) == (409, OTHER)


@pytest.mark.parametrize("swap", [deleted, begun_anew])
def test_a_suggestion_for_a_page_is_not_taken_for_another_one(scene: Scene, swap: Swap) -> None:
    scene.wiki.rights.change(scene.page, PageRights(), "Olga", {Privilege.WRITE: "Olga"})
    early, late = scene.web.form(f"{scene.path}/suggestion"), scene.web.form(f"{scene.path}/suggestion")
    assert scene.web.post(f"{scene.path}/suggestion", {**early, "body": "MINE", "send": "1"}).status_code == 303
    swap(scene)
    held = scene.wiki.page(scene.page)
    assert held is not None
    scene.wiki.rights.change(scene.page, held.rights, "Olga", {Privilege.WRITE: "Olga"})
    olga = scene.web.signed_in(f"Olga {scene.page}", admin=True)
    (one,) = scene.wiki.suggestions.of(scene.page)
    address = f"{scene.path}/suggestion?id={one.id}"
    assert "The page was changed since" in olga.get(address).text
    taken = olga.post(f"{scene.path}/suggestion", {**olga.form(address), "take": "1"})
    assert (taken.status_code, scene.text()) == (409, OTHER)
    again = scene.web.post(f"{scene.path}/suggestion", {**late, "body": "MINE", "send": "1"})
    assert again.status_code == 409
    assert "another page by now" in again.text
    assert text_in(again) == "MINE"
    sent = scene.web.post(f"{scene.path}/suggestion", {**scene.web.form_of(again), "body": "MINE", "send": "1"})
    assert sent.status_code == 303


def test_a_form_without_the_token_is_taken_by_its_number(scene: Scene) -> None:
    """Bookmarks and programs from before."""
    form = scene.web.form(f"{scene.path}/edit")
    assert len(form.pop("base_token")) == 16
    assert scene.sent(form, "by number").status_code == 303
    assert scene.text() == "by number"
    assert scene.sent(form, "behind").status_code == 409
    assert scene.sent({**form, "base": "3", "base_token": "no token"}, "again").status_code == 303


def test_a_page_that_was_renamed_there_and_back_is_the_same_page(scene: Scene) -> None:
    form = scene.web.form(f"{scene.path}/edit")
    scene.wiki.mover.rename(scene.page, f"{scene.page}Before", ANN, redirect=False)
    assert scene.web.post(f"{scene.path}Before/edit", {**form, "body": "under its new name"}).status_code == 303
    form = scene.web.form(f"{scene.path}Before/edit")
    scene.wiki.mover.rename(f"{scene.page}Before", scene.page, ANN, redirect=False)
    assert scene.sent(form, "under its old name").status_code == 303
    assert [one.number for one in scene.wiki.revisions(scene.page)] == [4, 3, 2, 1]


@pytest.mark.parametrize("which", ["edit", "remove"])
def test_a_change_of_a_comment_follows_its_page(scene: Scene, which: str) -> None:
    """Somebody renames the page, with a redirect, while the form is open."""
    address, new = f"{scene.path}/comments", f"{scene.page}New"
    assert scene.web.post(address, {**scene.web.form(address), "body": "a", "send": "1"}).status_code == 303
    form = scene.web.form(f"{address}?{which}=1")
    scene.wiki.mover.rename(scene.page, new, ANN)
    body = {"body": "b"} if which == "edit" else {}
    other = scene.web.other_visitor()
    stranger = other.post(address, {**other.form(address), which: "1", "history": form["history"], **body, "send": "1"})
    assert stranger.status_code == 409, "it is somebody else's comment"
    answer = scene.web.post(address, {**form, **body, "send": "1"})
    assert (answer.status_code, answer.headers["Location"].partition("?")[0]) == (303, f"/{new}/comments")
    page = scene.wiki.page(new)
    assert page is not None
    (comment,) = scene.wiki.comments.every(page.history or page_key(new), page.comments)
    assert (comment.text, comment.is_visible) == (("b", True) if which == "edit" else ("a", False))

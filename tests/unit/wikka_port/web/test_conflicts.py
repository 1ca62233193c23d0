"""Two edits at once: put together and said so, or chosen place by place; nothing of either is lost silently."""

from __future__ import annotations

import re
from html import unescape
from itertools import product

import pytest
from werkzeug.test import TestResponse

from tests.support.account_pages import text_in
from tests.support.wiki_client import WikiClient
from wikka_port.merges import SIDES
from wikka_port.pages import Conflict
from wikka_port.rights.rules import Privilege

OLD = "one\n\ntwo\n\nthree\n\nfour\n\nfive"
MINE = "one\n\n2 <mine>\n\n3 <mine>\n\nfour\n\nfive\n\nsix"
THEIRS = "I\n\nII <theirs>\n\nthree\n\nIV <theirs>\n\nfive"


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=1_000)


def met(web: WikiClient, old: str = OLD, mine: str = MINE, theirs: str = THEIRS, **fields: str) -> TestResponse:
    """The answer to a save behind another one."""
    web.wiki.save("P", old, author="a", base=0)
    form = {**web.form("/P/edit"), "body": mine, "note": "why", **fields}
    web.wiki.save("P", theirs, author="Eve", base=1)
    return web.post("/P/edit", form)


def choosing(answer: TestResponse) -> dict[str, str]:
    """What the form with the choices sends, before anything is chosen."""
    form = answer.text[answer.text.index('id="choose"') :]
    form = form[: form.index("</form>")]
    start = form.index(">\n", form.index('<textarea id="mine"')) + 2
    body = unescape(form[start : form.index("</textarea>", start)])
    fields = re.findall('type="hidden" name="(\\w+)" value="([^"]*)"', form)
    return {**{key: unescape(value) for key, value in fields}, "body": body, "choose": "save"}


def places(answer: TestResponse) -> list[str]:
    return sorted(set(re.findall('name="(place-[0-9]+)"', answer.text)))


def test_edits_of_different_places_are_merged_saved_and_said(web: WikiClient) -> None:
    answer = met(web, "one\n\ntwo\n\nthree", "one\n\ntwo\n\n3 <mine>", "1 theirs\n\ntwo\n\nthree")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/P?merged=1.3")
    page = web.wiki.page("P")
    assert (page.number, page.body, page.note) == (3, "1 theirs\n\ntwo\n\n3 <mine>", "why")
    shown = web.get("/P?merged=1.3").text
    assert "both edits are in the text" in shown
    assert 'href="/P/diff?a=1&amp;b=2"' in shown
    assert 'href="/P/diff?a=2&amp;b=3"' in shown


@pytest.mark.parametrize(
    "merged", ["", "x", "1", "1.", ".3", "1.2", "3.1", "1.9", "-1.3", "1.3.4", "1" * 30 + ".3", "\uff11.3"]
)
def test_what_is_no_merge_is_not_said(web: WikiClient, merged: str) -> None:
    met(web, "one\n\ntwo\n\nthree", "one\n\ntwo\n\n3", "1\n\ntwo\n\nthree")
    answer = web.get("/P", query_string={"merged": merged})
    assert (answer.status_code, "both edits" in answer.text) == (200, False)


def test_words_of_a_line_are_merged(web: WikiClient) -> None:
    met(web, "The fox jumps over the dog.", "The quick fox jumps over the dog.", "The fox jumps over the lazy dog.")
    assert web.wiki.page("P").body == "The quick fox jumps over the lazy dog."


def test_the_same_edit_of_two_is_one(web: WikiClient) -> None:
    answer = met(web, "one\n\ntwo", "1\n\ntwo", "1\n\ntwo\n\nthree")
    assert answer.headers["Location"] == "/P", "everything is there already"
    assert web.wiki.page("P").number == 2


def test_a_save_whose_answer_was_lost_is_not_saved_twice(web: WikiClient) -> None:
    web.wiki.save("P", "one\n\ntwo\n\nthree", author="a", base=0)
    form = {**web.form("/P/edit"), "body": "one\n\ntwo\n\n3 mine"}
    web.post("/P/edit", form)
    web.wiki.save("P", "1 theirs\n\ntwo\n\n3 mine", author="Eve", base=2)
    assert web.post("/P/edit", form).status_code == 303
    assert (web.wiki.page("P").number, web.wiki.page("P").author) == (3, "Eve")


def test_others_that_save_while_an_edit_is_merged(web: WikiClient) -> None:
    """Each time it is put together with what is there then."""
    web.wiki.save("P", OLD, author="a", base=0)
    form = {**web.form("/P/edit"), "body": OLD + "\n\nmine"}
    web.wiki.save("P", OLD.replace("one", "1"), author="Eve", base=1)
    save, texts = web.wiki.save, [OLD.replace("one", "1").replace("two", "2"), OLD.replace("one", "1")]

    def racing(name: str, body: str, **given: object) -> object:
        if texts and given["base"] != 1:
            number = web.wiki.page("P").number
            save("P", texts.pop(0), author="Eve", base=number)
        return save(name, body, **given)  # type: ignore[arg-type]

    web.wiki.save = racing  # type: ignore[method-assign,assignment]
    answer = web.post("/P/edit", form)
    assert answer.headers["Location"] == "/P?merged=1.5"
    assert web.wiki.page("P").body == OLD.replace("one", "1") + "\n\nmine"


def test_a_page_that_changes_without_end_is_chosen_by_hand(web: WikiClient) -> None:
    web.wiki.save("P", OLD, author="a", base=0)
    form = {**web.form("/P/edit"), "body": OLD + "\n\nmine"}
    save = web.wiki.save

    def racing(name: str, body: str, **given: object) -> object:
        page = web.wiki.page("P")
        save("P", page.body.replace("one", "one more"), author="Eve", base=page.number)
        raise Conflict(name, web.wiki.page("P"))

    web.wiki.save = racing  # type: ignore[method-assign,assignment]
    answer = web.post("/P/edit", form)
    assert (answer.status_code, text_in(answer).endswith("mine")) == (409, True)
    web.wiki.save = save  # type: ignore[method-assign]
    assert web.post("/P/edit", choosing(answer)).status_code == 303
    assert web.wiki.page("P").body.endswith("five\n\nmine")
    assert "one more" in web.wiki.page("P").body


@pytest.mark.parametrize("side", SIDES)
def test_a_place_is_taken_from_either_side_or_both(web: WikiClient, side: str) -> None:
    answer = met(web)
    assert (answer.status_code, places(answer)) == (409, ["place-0"]), "only one place was changed by both"
    assert web.wiki.page("P").number == 2
    assert all(words in unescape(answer.text) for words in ("II <theirs>", "2 <mine>"))
    form = choosing(answer)
    assert (form["base"], form["now"], form["note"], form["body"]) == ("1", "2", "why", MINE)
    assert web.post("/P/edit", {**form, "place-0": side}).headers["Location"] == "/P"
    taken = {"theirs": "II <theirs>", "mine": "2 <mine>", "both": "II <theirs>\n2 <mine>"}[side]
    page = web.wiki.page("P")
    assert page.body == f"I\n\n{taken}\n\n3 <mine>\n\nIV <theirs>\n\nfive\n\nsix"
    assert (page.number, page.note) == (3, "why")


def test_a_language_that_was_chosen_goes_with_the_choice(web: WikiClient) -> None:
    answer = met(web, language="de")
    fields = choosing(answer)
    assert web.post("/P/edit", {**fields, **dict.fromkeys(places(answer), "both")}).status_code == 303
    assert web.wiki.page("P").language == "de"


def test_every_combination_of_two_places(web: WikiClient) -> None:
    old, mine, theirs = "a\n\nsame\n\nb", "a mine\n\nsame\n\nb mine", "a theirs\n\nsame\n\nb theirs"
    answer = met(web, old, mine, theirs)
    assert places(answer) == ["place-0", "place-1"]
    lines = {"mine": "{0} mine", "theirs": "{0} theirs", "both": "{0} theirs\n{0} mine"}
    for number, (first, second) in enumerate(product(SIDES, SIDES)):
        form = {**choosing(answer), "place-0": first, "place-1": second, "choose": "edit"}
        edited = web.post("/P/edit", form)
        wanted = f"{lines[first].format('a')}\n\nsame\n\n{lines[second].format('b')}"
        assert (edited.status_code, text_in(edited)) == (200, wanted), number
        assert 'name="base" value="2"' in edited.text
    assert web.wiki.page("P").number == 2, "nothing was saved by looking"


def test_a_place_without_a_choice_is_asked_for_again(web: WikiClient) -> None:
    answer = met(web, "a\n\nsame\n\nb", "a mine\n\nsame\n\nb mine", "a theirs\n\nsame\n\nb theirs")
    for given in ({}, {"place-0": "mine"}, {"place-0": "mine", "place-1": "x"}, {"place-0": "mine", "place-x": "mine"}):
        again = web.post("/P/edit", {**choosing(answer), **given})
        assert again.status_code == 409
        assert "please choose for each place" in again.text
        assert choosing(again)["body"] == "a mine\n\nsame\n\nb mine"
        assert ('value="mine" required checked' in again.text) == bool(given)
    assert web.wiki.page("P").number == 2


def test_a_third_edit_meets_the_choice(web: WikiClient) -> None:
    """What was chosen is an edit of the revision that was shown: a later one is merged, or asked about."""
    answer = met(web)
    form = {**choosing(answer), "place-0": "mine"}
    web.wiki.save("P", THEIRS.replace("IV <theirs>", "IV again"), author="Eve", base=2)
    assert web.post("/P/edit", form).headers["Location"] == "/P?merged=2.4"
    assert web.wiki.page("P").body == "I\n\n2 <mine>\n\n3 <mine>\n\nIV again\n\nfive\n\nsix"


def test_a_third_edit_of_the_same_place_is_asked_about(web: WikiClient) -> None:
    answer = met(web)
    form = {**choosing(answer), "place-0": "mine"}
    web.wiki.save("P", THEIRS.replace("II <theirs>", "II again"), author="Eve", base=2)
    again = web.post("/P/edit", form)
    assert (again.status_code, places(again)) == (409, ["place-0"])
    assert "II again" in again.text
    assert web.post("/P/edit", {**choosing(again), "place-0": "theirs"}).status_code == 303
    assert web.wiki.page("P").body == "I\n\nII again\n\n3 <mine>\n\nIV <theirs>\n\nfive\n\nsix"


@pytest.mark.parametrize("bad", [{"csrf": "x"}, {"now": "9"}, {"now": ""}, {"base": "77"}, {"base": ""}, {"now": "1"}])
def test_a_form_that_is_wrong_overwrites_nothing(web: WikiClient, bad: dict[str, str]) -> None:
    answer = met(web)
    again = web.post("/P/edit", {**choosing(answer), "place-0": "mine", **bad})
    assert again.status_code in (403, 409), bad
    assert web.wiki.page("P").body == THEIRS
    assert "2 &lt;mine&gt;" in again.text, "the text is kept"


def test_choosing_while_the_store_is_away_keeps_the_text(web: WikiClient) -> None:
    form = {**choosing(met(web)), "place-0": "mine"}
    web.wiki.away = True
    answer = web.post("/P/edit", form)
    assert (answer.status_code, text_in(answer)) == (503, MINE)
    web.wiki.away = False
    fields = re.findall('type="hidden" name="(\\w+)" value="([^"]*)"', answer.text)
    assert dict(fields)["base"] == "1", "an edit that has not met the other one yet"


def test_choosing_without_the_right_to_read_shows_nothing(web: WikiClient) -> None:
    form = {**choosing(met(web)), "place-0": "theirs"}
    web.wiki.rights.change("P", web.wiki.page("P").rights, "", {Privilege.READ: "Ada"})
    for choose in ("save", "edit"):
        answer = web.post("/P/edit", {**form, "choose": choose})
        assert (answer.status_code, text_in(answer)) == (403, MINE)
        assert "theirs" not in answer.text


def test_lines_that_one_took_away(web: WikiClient) -> None:
    answer = met(web, "one\n\ntwo three four\n\nfive", "one\n\nfive", "one\n\ntwo 3 four\n\nfive")
    assert (answer.status_code, places(answer)) == (409, ["place-0"])
    assert "(these lines were taken away)" in answer.text
    web.post("/P/edit", {**choosing(answer), "place-0": "mine"})
    assert web.wiki.page("P").body == "one\n\nfive"


def test_a_draft_goes_with_the_choice(web: WikiClient) -> None:
    answer = met(web)
    form = choosing(answer)
    web.post("/P/draft", {**form, "base": "1"})
    assert "/P/edit?draft=" in web.get("/P/edit").text
    web.post("/P/edit", {**form, "place-0": "both"})
    assert "/P/edit?draft=" not in web.get("/P/edit").text


def test_a_revert_is_merged_with_nothing(web: WikiClient) -> None:
    for number, text in enumerate(("one\n\ntwo", "one\n\n2", "1\n\n2")):
        web.wiki.save("P", text, author="a", base=number)
        form = web.form("/P/revert?revision=1") if number == 1 else {}
        if form:
            kept = form
    answer = web.post("/P/revert?revision=1", kept)
    assert answer.status_code == 409
    assert web.wiki.page("P").number == 3

"""Edit forms are filled in as a browser would."""

from __future__ import annotations

import random
from urllib.parse import parse_qsl

import pytest

from wikibench.addresses.mapping import FormRules, LoginRules
from wikibench.outcome import Outcome
from wikibench.targets.bodies import MAX_BYTES, MIN_BYTES, edit_body
from wikibench.targets.forms import find_edit_form, find_form_with, judge_save
from wikibench.targets.map_files import load_map

PAGE = """
<form action="/search"><input name="q" value="x"></form>
<FORM METHOD=post ACTION="/Page/edit?a=1&amp;b=2">
 <input type="hidden" name="csrf" value="a&amp;b&quot;c"><input type='hidden' name='previous' value=12>
 <input name="website"><input type="text" name="note" value="why">
 <input type="checkbox" name="minor"><input type="checkbox" name="watch" checked>
 <input type="file" name="upload"><input type="reset" name="undo"><input name="off" disabled value="1">
 <select name="mode"><option value="a">A<option value="b" selected>B</select>
 <textarea name="summary">two
lines</textarea>
 <textarea id="x" name="body" rows=9>&lt;form&gt; <b> &lt;/textarea&gt;</textarea>
 <input type="submit" name="submit" value="Preview"><input type="submit" name="submit" value="Store">
 <button type="button" name="js">no</button>
</FORM>
"""


def test_every_field_goes_back_and_the_save_button_is_pressed() -> None:
    form = find_edit_form(PAGE)
    assert form is not None
    assert form.action == "/Page/edit?a=1&b=2"
    assert dict(form.fields) == {
        "csrf": 'a&b"c',
        "previous": "12",
        "website": "",
        "note": "why",
        "watch": "on",
        "mode": "b",
        "summary": "two\nlines",
        "submit": "Store",
    }
    sent = parse_qsl(form.filled("one\ntwo ā").decode(), keep_blank_values=True)
    assert sent[-1] == ("body", "one\r\ntwo ā")


def test_a_page_without_the_form_has_none() -> None:
    assert find_edit_form("<p>Sign in to edit</p>") is None
    assert find_edit_form('<form><textarea name="comment"></textarea></form>') is None
    assert find_edit_form('<form><textarea name="body">cut off in the mid') is None


def test_a_form_with_preview_alone_presses_nothing() -> None:
    form = find_edit_form("<form><textarea name=body></textarea><button name=preview>Preview</button></form>")
    assert form is not None
    assert form.fields == ()
    assert form.action == ""


def test_a_map_names_the_text_area_and_the_button() -> None:
    page = PAGE.replace('value="Store"', 'value="Save changes"').replace("body", "wpTextbox1")
    assert find_edit_form(page) is None
    form = find_edit_form(page, FormRules(text="wpTextbox1", save="submit"))
    assert form is not None
    assert ("submit", "Preview") in form.fields, "of two of that name, the first, if none seems to save"
    sent = dict(parse_qsl(form.filled("new").decode(), keep_blank_values=True))
    assert sent["wpTextbox1"] == "new"
    named = find_edit_form(page.replace('name="submit"', 'name="go"'), FormRules(text="wpTextbox1", save="nothing"))
    assert named is not None
    assert not {"go", "submit"} & dict(named.fields).keys()
    read = find_edit_form('<form><textarea name="a[b]" readonly>x</textarea></form>', FormRules(text="a[b]"))
    assert read is not None
    assert read.is_read_only


def test_a_form_is_found_by_a_field_and_filled() -> None:
    page = '<form><input name=pa></form><form action="/in"><input name="p" type=password><input name=t value=1></form>'
    form = find_form_with(page, "p")
    assert form is not None
    assert form.with_values({"p": "a b", "u": "ā"}) == b"t=1&p=a+b&u=%C4%81"
    assert find_form_with(page, "q") is None


WIKI = FormRules(saved=(302, 303), conflict_text="Edit conflict", conflict=(409,))
LOGIN = LoginRules(page="/index.php?title=Special:UserLogin", name="n", password="p")


@pytest.mark.parametrize(
    ("status", "location", "body", "outcome"),
    [
        (302, "/index.php/Page", "", Outcome.REDIRECT),
        (303, "", "", Outcome.REDIRECT),
        (302, "http://h/w/index.php?returnto=A&title=Special%3AUserLogin#x", "", Outcome.BROKEN),
        (302, "/index.php?title=Special:UserLogin2", "", Outcome.REDIRECT),
        (307, "/index.php/Page", "", Outcome.BROKEN),
        (409, "", "", Outcome.CONFLICT),
        (200, "", "an Edit conflict: A", Outcome.CONFLICT),
        (200, "", "the form once more", Outcome.BROKEN),
        (403, "", "", Outcome.CLIENT_ERROR),
        (403, "", "Edit conflict", Outcome.CONFLICT),
        (503, "", "", Outcome.SERVER_ERROR),
        (100, "", "", Outcome.BROKEN),
    ],
)
def test_what_a_save_led_to(status: int, location: str, body: str, outcome: Outcome) -> None:
    assert judge_save(status, location, body, WIKI, LOGIN)[0] is outcome


def test_a_wiki_may_say_saved_with_a_page() -> None:
    assert judge_save(200, "", "", FormRules(saved=(200,)))[0] is Outcome.OK
    assert judge_save(302, "", "", FormRules(saved=(200,))) == (
        Outcome.BROKEN,
        "status 302 where a save is answered by 200",
    )
    assert judge_save(409, "", "", FormRules())[0] is Outcome.CONFLICT
    assert judge_save(200, "", "", FormRules())[0] is Outcome.BROKEN


@pytest.mark.parametrize("name", ["columnar", "plain"])
def test_an_edit_that_waits_for_a_review_is_not_saved(name: str) -> None:
    rules = load_map(name).form
    found = judge_save(303, "http://127.0.0.1:8080/-/held?page=A&id=1", "", rules)
    assert found[0] is Outcome.BROKEN
    assert "waits for a review" in found[1]
    assert judge_save(303, "/Heldout", "", rules)[0] is Outcome.REDIRECT
    assert judge_save(303, "/-/held", "", FormRules(review=""))[0] is Outcome.REDIRECT


def test_bodies_are_made_from_their_seed_and_link_to_known_pages() -> None:
    names = ["One page", "a]b", "x|y", "Two"]
    texts = [edit_body(random.Random(f"1 {n}"), "Name =x=", n, names) for n in range(20)]
    assert texts[3] == edit_body(random.Random("1 3"), "Name =x=", 3, names)
    assert len(set(texts)) == 20
    assert all(MIN_BYTES <= len(text.encode()) <= MAX_BYTES + 50 for text in texts)
    joined = "".join(texts)
    assert "[[One page]]" in joined
    assert "[[Two]]" in joined
    assert "a]b" not in joined
    assert "[[" not in edit_body(random.Random(1), "P", 1, [])

"""Edit forms are filled in as a browser would."""

from __future__ import annotations

import random
from urllib.parse import parse_qsl

from wikibench.targets.bodies import MAX_BYTES, MIN_BYTES, edit_body
from wikibench.targets.forms import find_edit_form

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

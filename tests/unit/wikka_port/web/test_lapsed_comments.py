"""Comments whose session ended between the form and the send: the text is kept, and a sign-in stands beside it."""

from __future__ import annotations

import pytest

from tests.support.account_pages import PASSWORD, hidden_fields, register, text_in, who
from tests.support.wiki_client import WikiClient
from wikka_port.accounts import tables
from wikka_port.rights.rules import PageRights, Privilege

PATH = "/Home/comments"
TYPED = "long & <typed>\n\ntext"


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=100)
    made.wiki.save("Home", "A text.", author="Ann", base=0)
    return made


def lapsed(web: WikiClient, **fields: str) -> tuple[WikiClient, dict[str, str]]:
    """Return a browser whose session ended while a comment was typed, and the fields of the form that came back."""
    ada = web.other_visitor()
    register(ada)
    form = {**ada.form(PATH), "body": TYPED, "send": "1", **fields}
    web.now += tables.SESSION_S
    answer = ada.post(PATH, form)
    assert (answer.status_code, text_in(answer)) == (403, TYPED)
    assert "sign in beside it" in answer.text
    assert 'name="user" value="Ada"' in answer.text
    return ada, {**hidden_fields(answer), "body": text_in(answer)}


def test_a_sign_in_beside_the_text_sends_it_under_the_name(web: WikiClient) -> None:
    ada, again = lapsed(web)
    for password, status in (("", 400), ("not the one", 403)):
        wrong = ada.post(PATH, {**again, "signin": "1", "user": "Ada", "password": password})
        assert (wrong.status_code, text_in(wrong)) == (status, TYPED)
        assert "not the one" not in wrong.text
        assert 'name="user" value="Ada"' in wrong.text, "the sign-in stays"
    assert '<li id="c' not in ada.get(PATH).text
    done = ada.post(PATH, {**again, "signin": "1", "user": "Ada", "password": PASSWORD})
    assert (done.status_code, done.headers["Location"]) == (303, "/Home/comments?at=1#c1")
    assert who(ada) == "Ada"
    text = ada.get(PATH).text
    assert "long &amp; &lt;typed&gt;" in text
    assert text.count('<li id="c') == 1


def test_a_password_beside_the_text_is_not_passed_over(web: WikiClient) -> None:
    ada, again = lapsed(web)
    typed = {**again, "user": "Ada", "password": PASSWORD, "send": "1"}
    asked = ada.post(PATH, typed)
    assert (asked.status_code, text_in(asked)) == (400, TYPED)
    assert "You typed a password" in asked.text
    assert PASSWORD not in asked.text
    assert 'name="send" value="unsigned"' in asked.text
    assert ada.post(PATH, {**typed, **hidden_fields(asked), "send": "unsigned"}).status_code == 303
    assert "Visitor" in ada.get(PATH).text
    assert who(ada) == ""


def test_a_preview_keeps_the_sign_in(web: WikiClient) -> None:
    ada, again = lapsed(web)
    shown = ada.post(PATH, {**again, "user": "Adalbert", "preview": "1"})
    assert (shown.status_code, text_in(shown)) == (200, TYPED)
    assert 'name="user" value="Adalbert"' in shown.text
    assert 'name="user"' not in web.get(PATH).text, "who was never signed in is asked for no password"


def test_what_is_refused_after_the_sign_in_keeps_text_and_session(web: WikiClient) -> None:
    ada, again = lapsed(web)
    web.wiki.rights.change("Home", PageRights(), "Ann", {Privilege.COMMENT_POST: "Ann"})
    answer = ada.post(PATH, {**again, "signin": "1", "user": "Ada", "password": PASSWORD})
    assert (answer.status_code, text_in(answer)) == (403, TYPED)
    assert who(ada) == "Ada"
    assert 'name="user"' not in answer.text


def test_a_sign_in_from_another_site_signs_nobody_in(web: WikiClient) -> None:
    ada, again = lapsed(web)
    answer = ada.post(PATH, {**again, "csrf": "0.0", "signin": "1", "user": "Ada", "password": PASSWORD})
    assert (answer.status_code, text_in(answer)) == (403, TYPED)
    assert who(ada) == ""
    web.wiki.away = True
    answer = ada.post(PATH, {**again, "signin": "1", "user": "Ada", "password": PASSWORD})
    assert (answer.status_code, text_in(answer)) == (503, TYPED)

"""Edits whose session ended, or began, between the form and the save: the text is kept, the name is the form's."""

from __future__ import annotations

import pytest

from tests.support.account_pages import PASSWORD, hidden_fields, register, text_in, who
from tests.support.wiki_client import WikiClient
from wikka_port.accounts import tables


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=100)


def test_a_session_that_ended_during_an_edit_costs_no_text(web: WikiClient) -> None:
    ada = web.other_visitor()
    register(ada)
    fields = {**ada.form("/P/edit"), "body": "long & <typed>\n\ntext", "note": "n"}
    web.now += tables.SESSION_S
    answer = ada.post("/P/edit", fields)
    assert (answer.status_code, text_in(answer)) == (403, "long & <typed>\n\ntext")
    assert web.wiki.page("P") is None
    hidden = hidden_fields(answer)
    again = {**hidden, "body": text_in(answer), "note": "n", "signin": "1", "user": "Ada"}
    wrong = ada.post("/P/edit", {**again, "password": "not the one"})
    assert (wrong.status_code, text_in(wrong)) == (403, fields["body"])
    assert "not the one" not in wrong.text
    assert ada.post("/P/edit", {**again, "password": PASSWORD}).status_code == 303
    page = web.wiki.page("P")
    assert (page.body, page.author, page.signed) == (fields["body"], "Ada", "account")
    assert who(ada) == "Ada"


def test_an_edit_is_never_signed_with_another_name_than_its_form_said(web: WikiClient) -> None:
    visitor = web.other_visitor()
    fields = {**visitor.form("/P/edit"), "body": "text"}
    register(visitor)
    answer = visitor.post("/P/edit", fields)
    assert (answer.status_code, text_in(answer)) == (403, "text")
    assert "signed in as Ada" in answer.text


def test_a_password_that_is_typed_beside_the_text_is_not_passed_over(web: WikiClient) -> None:
    """The other button saves without it: asked about once, so nobody signs with a network by mistake."""
    ada = web.other_visitor()
    register(ada)
    fields = {**ada.form("/P/edit"), "body": "text"}
    ada.post("/-/logout", ada.form("/-/logout"))
    hidden = hidden_fields(ada.post("/P/edit", fields))
    typed = {**hidden, "body": "text", "user": "Ada", "password": PASSWORD, "save": "1"}
    answer = ada.post("/P/edit", typed)
    assert (answer.status_code, text_in(answer)) == (400, "text")
    assert "You typed a password" in answer.text
    assert web.wiki.page("P") is None
    assert 'name="user" value="Ada"' in answer.text, "the sign-in stands there still"
    assert 'name="save" value="unsigned"' in answer.text
    assert ada.post("/P/edit", {**typed, **hidden_fields(answer), "save": "unsigned"}).status_code == 303
    assert web.wiki.page("P").signed == "visitor"


def test_a_preview_keeps_the_sign_in_beside_the_text(web: WikiClient) -> None:
    ada = web.other_visitor()
    register(ada)
    fields = {**ada.form("/P/edit"), "body": "text"}
    ada.post("/-/logout", ada.form("/-/logout"))
    token = ada.form("/P/edit")["csrf"]
    first = ada.post("/P/edit", {**fields, "csrf": token, "preview": "1"})
    assert "You are not signed in any more" in first.text, "the form was made for Ada"
    assert 'name="user" value="Ada"' in first.text
    again = ada.post("/P/edit", {**hidden_fields(first), "body": "text", "user": "Adalbert", "preview": "1"})
    assert 'name="user" value="Adalbert"' in again.text


def test_a_conflict_after_a_sign_in_beside_the_text_keeps_both(web: WikiClient) -> None:
    ada = web.other_visitor()
    register(ada)
    web.wiki.save("P", "base", author="a", base=0)
    fields = {**ada.form("/P/edit"), "body": "mine"}
    ada.post("/-/logout", ada.form("/-/logout"))
    answer = ada.post("/P/edit", fields)
    web.wiki.save("P", "theirs", author="a", base=1)
    hidden = hidden_fields(answer)
    answer = ada.post("/P/edit", {**hidden, "body": "mine", "signin": "1", "user": "Ada", "password": PASSWORD})
    assert (answer.status_code, text_in(answer)) == (409, "mine")
    hidden = hidden_fields(answer)
    assert ada.post("/P/edit", {**hidden, "body": "both"}).status_code == 303, "the form is one of the new session"
    assert web.wiki.page("P").author == "Ada"

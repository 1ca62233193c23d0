"""Pages in Markdown: chosen in the form, shown as written at each revision, converted only before somebody's eyes."""

from __future__ import annotations

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_edit import text_in


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=100)


def send(web: WikiClient, body: str, **given: str) -> TestResponse:
    return web.post("/P/edit", {**web.form("/P/edit"), "body": body, **given})


def test_a_new_page_in_markdown_is_what_was_typed(web: WikiClient) -> None:
    assert send(web, "# Title\n\n**bold**", format="markdown").status_code == 303
    assert web.wiki.page("P").markup == "markdown"
    assert "<strong>bold</strong>" in web.get("/P").text
    assert "<strong>bold</strong>" in web.get("/P/html").text
    assert web.get("/P/raw").text == "# Title\n\n**bold**"
    assert send(web, "# Title\n\n*it*").status_code == 303
    assert web.wiki.page("P").markup == "markdown", "the format stays"


def test_each_revision_is_shown_as_it_was_written(web: WikiClient) -> None:
    web.save("/P", "//old// *star*")
    web.wiki.save("P", "*new* //slash//", author="a", base=1, markup="markdown")
    assert "<em>new</em> //slash//" in web.get("/P").text
    assert "<em>old</em> *star*" in web.get("/P?revision=1").text
    assert text_in(web.get("/P/edit?revision=1")) == "//old// *star*"
    assert 'value="wikka" selected' in web.get("/P/edit?revision=1").text
    web.post("/P/revert?revision=1", web.form("/P/revert?revision=1"))
    assert (web.wiki.page("P").body, web.wiki.page("P").markup) == ("//old// *star*", "wikka")


def test_a_page_is_converted_before_the_eyes_of_its_author_and_saved_by_the_next_save(web: WikiClient) -> None:
    web.save("/P", "======T======\n//a// __u__ [[Other]]")
    answer = send(web, "======T======\n//a// __u__ [[Other]]", format="markdown")
    assert answer.status_code == 200
    assert web.wiki.page("P").number == 1, "nothing is saved"
    assert text_in(answer) == "# T\n\n*a* u [[Other]]\n"
    assert "In Markdown, not saved yet" in answer.text
    assert "underlined text" in answer.text
    assert "Difference, side by side" in answer.text
    fields = {**web.form_of(answer), "format": "markdown", "body": text_in(answer)}
    assert web.post("/P/edit", fields).status_code == 303
    assert (web.wiki.page("P").number, web.wiki.page("P").markup) == (2, "markdown")


def test_markdown_is_not_turned_back_by_a_program(web: WikiClient) -> None:
    web.wiki.save("P", "*a*", author="a", base=0, markup="markdown")
    answer = send(web, "*a*", format="wikka")
    assert "not converted" in answer.text
    assert (text_in(answer), web.wiki.page("P").number) == ("*a*", 1)
    web.post("/P/edit", {**web.form_of(answer), "format": "wikka", "body": "//a//"})
    assert (web.wiki.page("P").body, web.wiki.page("P").markup) == ("//a//", "wikka")


def test_the_site_says_the_format_of_new_pages_and_old_ones_keep_theirs() -> None:
    web = WikiClient(edit_burst=100, markup="markdown")
    web.wiki.save("Old", "//a//", author="a", base=0)
    assert 'value="markdown" selected' in web.get("/P/edit").text
    assert 'value="wikka" selected' in web.get("/Old/edit").text
    web.save("/P", "*a*")
    assert web.wiki.page("P").markup == "markdown"
    web.save("/Old", "//b//")
    assert web.wiki.page("Old").markup == "wikka"


def test_preview_copy_code_and_links_know_the_format(web: WikiClient) -> None:
    web.wiki.save("P", "[w](Other)\n\n```\n%%x%%\n```", author="a", base=0, markup="markdown")
    assert "<em>x</em>" in send(web, "*x*", preview="1").text
    assert web.wiki.backlinks("Other") == ["P"]
    assert web.get("/P/grabcode?block=1").text == "%%x%%\n"
    assert "1" in web.get("/P/showcode").text
    assert 'value="markdown" selected' in web.get("/Q/edit?like=P").text


def test_edits_in_two_formats_are_not_merged(web: WikiClient) -> None:
    web.save("/P", "a\n\nb\n\nc")
    fields = {**web.form("/P/edit"), "format": "wikka", "body": "A\n\nb\n\nc"}
    web.wiki.save("P", "a\n\nb\n\n*c*", author="x", base=1, markup="markdown")
    answer = web.post("/P/edit", fields)
    assert answer.status_code == 409
    assert text_in(answer) == "A\n\nb\n\nc"

"""New pages from templates, notes that a wiki asks for, and minor edits."""

from __future__ import annotations

import pytest

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_edit import text_in
from wikka_port.limits import TEMPLATES_MAX
from wikka_port.rights.rules import PageRights, Privilege


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=100)


def test_templates_are_offered_for_a_new_page_and_fill_its_editor(web: WikiClient) -> None:
    web.wiki.save("Template/Minutes", "# Minutes\n\n- [ ] ", author="a", base=0, markup="markdown")
    answer = web.get("/New/edit")
    assert '<a href="/New/edit?like=Template%2FMinutes" rel="nofollow">Minutes</a>' in answer.text
    begun = web.get("/New/edit?like=Template%2FMinutes")
    assert text_in(begun) == "# Minutes\n\n- [ ] "
    assert 'value="markdown" selected' in begun.text
    assert "Copy of" not in begun.text
    web.post("/New/edit", {**web.form_of(begun), "format": "markdown", "body": "# Minutes"})
    assert web.wiki.page("New").markup == "markdown"
    assert "Begin with a template" not in web.get("/New/edit").text, "it is no new page any more"


def test_templates_that_one_may_not_read_are_not_offered(web: WikiClient) -> None:
    web.wiki.save("Template/Secret", "x", author="a", base=0)
    web.wiki.rights.change("Template/Secret", PageRights(), "", {Privilege.READ: "+"})
    assert "Secret" not in web.get("/New/edit").text


def test_only_so_many_templates_are_offered(web: WikiClient) -> None:
    for number in range(TEMPLATES_MAX + 3):
        web.wiki.save(f"Template/T{number:03}", "x", author="a", base=0)
    assert web.get("/New/edit").text.count("like=Template") == TEMPLATES_MAX


def test_newpage_with_a_template(web: WikiClient) -> None:
    web.save("/P", '{{newpage template="Template/X"}}')
    assert '<input type="hidden" name="template" value="Template/X">' in web.get("/P").text
    answer = web.get("/-/newpage?name=Fresh&template=Template/X")
    assert answer.headers["Location"] == "/Fresh/edit?like=Template%2FX"
    assert web.get("/-/newpage?name=P&template=Template/X").headers["Location"] == "/P"


@pytest.mark.parametrize(("edit_notes", "status", "note"), [(0, 303, ""), (1, 400, None), (2, 303, "")])
def test_notes_are_asked_for_as_in_wikkawiki(edit_notes: int, status: int, note: str | None) -> None:
    web = WikiClient(edit_burst=100, edit_notes=edit_notes)
    answer = web.save("/P", "text")
    assert answer.status_code == status
    page = web.wiki.page("P")
    assert (page and page.note) == note
    assert (">What did you change?" in web.get("/P/edit").text) == (edit_notes != 2)
    if status == 400:
        assert text_in(answer) == "text"
        assert web.save("/P", "text", note="why").status_code == 303
    web.save("/P", "text 2", note="given")
    assert web.wiki.page("P").note == ("" if edit_notes == 2 else "given")


def test_minor_edits_are_marked_and_can_be_left_out(web: WikiClient) -> None:
    ann = web.signed_in("Ann")
    ann.save("/P", "one", minor="1", note="begun")
    assert not web.wiki.page("P").minor, "a page that begins is no minor edit"
    ann.save("/P", "two", minor="1", note="a comma")
    assert web.wiki.page("P").minor
    assert '<span class="badge">minor</span>' in web.get("/P/revisions").text
    assert "a comma" in web.get("/-/recentchanges").text
    hidden = web.get("/-/recentchanges?minor=hide").text
    assert "a comma" not in hidden
    assert "begun" in hidden
    assert "a comma" not in web.get("/-/recentchanges.xml?minor=hide").text
    ann.save("/P", "three", note="more")
    assert not web.wiki.page("P").minor


def test_a_visitor_without_an_account_marks_nothing_as_minor(web: WikiClient) -> None:
    web.save("/P", "one")
    web.save("/P", "two", minor="1")
    assert not web.wiki.page("P").minor
    assert 'name="minor"' not in web.get("/P/edit").text


def test_a_list_without_minor_edits_goes_on_behind_them(web: WikiClient) -> None:
    ann = web.signed_in("Ann")
    ann.post("/-/settings", {**ann.form("/-/settings"), "do": "looks", "changes": "10"})
    ann.save("/P", "0", note="the first")
    for number in range(1, 130):
        web.wiki.save("P", str(number), author="Ann", base=number, minor=True)
    found = ann.get("/-/recentchanges?minor=hide")
    assert "the first" not in found.text, "so many are looked at for one page of the list"
    onward = found.text.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    assert "minor=hide" in onward
    assert "the first" in ann.get(onward).text


def test_nobody_but_an_administrator_begins_a_page_that_is_a_group_of_the_site(web: WikiClient) -> None:
    """Its text says who may read what the list shuts: whoever begins it lets himself in."""
    web.wiki.rights.change_rules("secret/", {Privilege.READ: "EditorsGroup\nAnn"}, web.wiki.rights.rules())
    web.wiki.save("Secret/Plan", "for editors", author="a", base=0)
    mia, ann, admin = web.signed_in("Mia"), web.signed_in("Ann"), web.signed_in("Root", admin=True)
    answer = mia.save("/EditorsGroup", "+Mia+")
    assert answer.status_code == 400
    assert "An administrator can make the page" in answer.text
    assert text_in(answer) == "+Mia+"
    assert mia.get("/Secret~2FPlan").status_code == 403
    assert ann.save("/Ann", "my own page, for a user's name is no group").status_code == 303
    assert admin.save("/EditorsGroup", "+Mia+").status_code == 303
    web.wiki.clock_s += 1
    assert mia.get("/Secret~2FPlan").status_code == 200
    assert mia.save("/EditorsGroup", "+Mia+Bob+").status_code == 303, "who may edit it is said by its own list"

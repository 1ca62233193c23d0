"""Sections: each heading's link, its form, and the page that it is put back into."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.account_pages import hidden_fields, text_in
from tests.support.wiki_client import WikiClient
from wikka_port.markup.document import parse, render
from wikka_port.markup.sections import section_of, spliced, taken, unified
from wikka_port.rights.rules import Privilege

ONE = "===== One =====\nfirst\n==== One A ====\ninner"
TEXT = f"lead\n\n{ONE}\n\n\n===== Two =====\nsecond <b>\n\n===== One =====\nlast"
HEADINGS = ["=====A=====", "====B====", "==C==", "||cell ==D==||", "~- ===E==="]
PARTS = st.sampled_from([*HEADINGS, "words", "\n", "\n", "\n", "%%", "/* c */", " "])


@pytest.fixture
def web() -> WikiClient:
    found = WikiClient(edit_burst=1_000)
    found.wiki.save("P", TEXT, author="a", base=0)
    return found


def edit_links(text: str) -> list[str]:
    return re.findall('class="edit-section" href="([^"]*)"', text)


@given(st.lists(PARTS, max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=200)
def test_a_section_put_back_is_the_text_and_begins_with_its_heading(parts: list[str], end: str) -> None:
    text = "".join(parts)
    document = parse(text.replace("\n", end))
    for heading in document.headings:
        section = section_of(document.headings, unified(text.replace("\n", end)), heading.id)
        assert (section is None) == (heading.start < 0)
        if section is None:
            continue
        body = taken(text, section)
        assert spliced(text, section, body) == text
        assert heading.text in body
        assert section.start == 0 or text[section.start - 1] == "\n"


def test_what_a_section_is() -> None:
    document = parse(TEXT)
    found = {one.id: section_of(document.headings, TEXT, one.id) for one in document.headings}
    texts = {place: taken(TEXT, section) for place, section in found.items() if section}
    assert texts == {
        "s-one": ONE,
        "s-one-a": "==== One A ====\ninner",
        "s-two": "===== Two =====\nsecond <b>",
        "s-one-2": "===== One =====\nlast",
    }
    assert section_of(document.headings, TEXT, "s-three") is None


@pytest.mark.parametrize(
    ("place", "body", "after"),
    [
        ("s-two", "===== Two =====\nnew", TEXT.replace("second <b>", "new")),
        ("s-two", "===== Two =====\nnew\n\n\n", TEXT.replace("second <b>", "new")),
        ("s-two", " \n", TEXT.replace("===== Two =====\nsecond <b>\n\n", "")),
        ("s-one-2", "===== End =====\n", TEXT.replace("===== One =====\nlast", "===== End =====")),
    ],
)
def test_how_a_section_is_put_back(place: str, body: str, after: str) -> None:
    section = section_of(parse(TEXT).headings, TEXT, place)
    assert section is not None
    assert spliced(TEXT, section, body) == after


def test_a_heading_in_a_cell_has_no_section() -> None:
    document = parse("===A===\n||==B==||x||\n===C===")
    assert [heading.start >= 0 for heading in document.headings] == [True, False, True]


def test_the_second_heading_of_a_line_belongs_to_the_section_of_the_first() -> None:
    document = parse("===A=== and ===B=== ===D===\ntext\n===C===")
    assert [heading.start for heading in document.headings] == [0, -1, -1, 33]


def test_links_are_for_who_may_write_the_newest_revision(web: WikiClient) -> None:
    links = [f"/P/edit?section={place}" for place in ("s-one", "s-one-a", "s-two", "s-one-2")]
    assert edit_links(web.get("/P").text) == links
    web.wiki.save("P", TEXT + ".", author="a", base=1)
    assert edit_links(web.get("/P?revision=1").text) == []
    for handler in ("html", "print", "edit", "raw"):
        assert edit_links(web.get(f"/P/{handler}").text) == []
    web.wiki.save("Q", 'x {{include page="P"}}', author="a", base=0)
    assert edit_links(web.get("/Q").text) == []
    web.wiki.rights.change("P", web.wiki.page("P").rights, "", {Privilege.WRITE: "Ada"})
    assert edit_links(web.get("/P").text) == []
    assert edit_links(web.signed_in("Ada").get("/P").text) == links


def test_a_link_is_safe_whatever_the_heading_says() -> None:
    document = parse('=====é "x" <script> & [[Page]]=====')
    html = render(document, existing=frozenset(), edit="/P/edit")
    assert re.search(
        r'href="/P/edit\?section=[\w%-]+" rel="nofollow" aria-label="Edit this section: [^"<>]*">Edit</a>', html
    )


def test_the_form_has_the_section_alone_and_saves_the_page(web: WikiClient) -> None:
    answer = web.get("/P/edit?section=s-two")
    assert text_in(answer) == "===== Two =====\nsecond <b>"
    assert "Only this section is edited" in answer.text
    form = {**hidden_fields(answer), "body": "===== Two =====\nnew"}
    assert form["section"] == "s-two"
    assert web.post("/P/edit", form).headers["Location"] == "/P#s-two"
    assert web.wiki.page("P").body == TEXT.replace("second <b>", "new")


def test_a_section_that_is_not_there_is_the_whole_page(web: WikiClient) -> None:
    answer = web.get("/P/edit?section=s-nothing")
    assert (text_in(answer), hidden_fields(answer)["section"]) == (TEXT, "")
    assert web.get("/New/edit?section=s-two").status_code == 200


def test_another_section_that_is_saved_meanwhile_stays(web: WikiClient) -> None:
    form = {**hidden_fields(web.get("/P/edit?section=s-two")), "body": "===== Two =====\nnew"}
    web.wiki.save("P", "before\n\n===== Zero =====\n\n" + TEXT.replace("first", "1st"), author="Eve", base=1)
    assert web.post("/P/edit", form).headers["Location"] == "/P?merged=1.3#s-two"
    wanted = "before\n\n===== Zero =====\n\n" + TEXT.replace("first", "1st").replace("second <b>", "new")
    assert web.wiki.page("P").body == wanted


def test_the_same_section_in_the_same_place_is_a_conflict_of_whole_pages(web: WikiClient) -> None:
    form = {**hidden_fields(web.get("/P/edit?section=s-two")), "body": "===== Two =====\nnew"}
    web.wiki.save("P", TEXT.replace("second <b>", "theirs"), author="Eve", base=1)
    answer = web.post("/P/edit", form)
    assert (answer.status_code, text_in(answer)) == (409, TEXT.replace("second <b>", "new"))
    assert hidden_fields(answer)["section"] == ""
    assert web.wiki.page("P").number == 2


@pytest.mark.parametrize("bad", [{"base": "0"}, {"base": "9"}, {"base": ""}, {"section": "s-three"}])
def test_a_section_without_a_place_is_never_saved_as_the_page(web: WikiClient, bad: dict[str, str]) -> None:
    form = {**hidden_fields(web.get("/P/edit?section=s-two")), "body": "===== Two =====\nnew", **bad}
    answer = web.post("/P/edit", form)
    assert (answer.status_code, text_in(answer)) == (409, "===== Two =====\nnew")
    assert "no such section" in answer.text
    assert web.wiki.page("P").body == TEXT
    elsewhere = web.post("/New/edit", form)
    assert elsewhere.status_code == 409
    assert web.wiki.page("New") is None


def test_the_bound_of_a_page_is_that_of_the_whole() -> None:
    web = WikiClient(max_text_bytes=len(TEXT) + 5)
    web.wiki.save("P", TEXT, author="a", base=0)
    form = {**hidden_fields(web.get("/P/edit?section=s-two")), "body": "===== Two =====\nsecond <b>" + "x" * 6}
    assert web.post("/P/edit", form).status_code == 413
    assert web.wiki.page("P").number == 1


def test_a_draft_of_a_section_is_gone_on_with(web: WikiClient) -> None:
    form = {**hidden_fields(web.get("/P/edit?section=s-two")), "body": "===== Two =====\nnew", "keep": "1"}
    web.wiki.save("P", TEXT.replace("first", "1st"), author="Eve", base=1)
    location = web.post("/P/draft", form).headers["Location"]
    opened = web.get(location)
    assert text_in(opened) == "===== Two =====\nnew"
    assert "The page was changed after this draft began" in opened.text
    compared = web.get(location.replace("/edit", "/draft")).text
    assert "second" in compared
    assert "A draft of a section from" in web.get("/P/edit").text
    web.post("/P/edit", {**hidden_fields(opened), "body": text_in(opened)})
    assert web.wiki.page("P").body == TEXT.replace("first", "1st").replace("second <b>", "new")


def test_random_edits_of_sections_keep_the_others(web: WikiClient) -> None:
    """A model: the page is a list of sections; whoever edits one changes that alone, however old his form is."""
    rng = Random(19)
    model = {f"s-h{n}": f"text {n}" for n in range(6)}

    def text() -> str:
        return "\n\n".join(f"===== H{place[3:]} =====\n\n{body}" for place, body in model.items())

    web.wiki.save("M", text(), author="a", base=0)
    forms: list[dict[str, str]] = []
    for step in range(40):
        place = rng.choice(list(model))
        if place in [form["section"] for form in forms]:
            form = forms.pop([form["section"] for form in forms].index(place))
            model[place] = f"text {place} {step}"
            body = f"===== H{place[3:]} =====\n\n{model[place]}"
            assert web.post("/M/edit", {**form, "body": body}).status_code == 303
            assert web.wiki.page("M").body == text(), step
        else:
            forms.append(hidden_fields(web.get(f"/M/edit?section={place}")))

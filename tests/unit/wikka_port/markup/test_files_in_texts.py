"""Names of files in texts: what may mean a file, in both formats, and what is counted as a link."""

from __future__ import annotations

import pytest

from wikka_port.file_uses import is_of_file, key_of_file, key_of_name, targets_of_files
from wikka_port.limits import FILES_MAX
from wikka_port.markup.document import Document, parse, render
from wikka_port.markup.file_slots import host_of
from wikka_port.markup.formats import MARKDOWN, WIKKA, tokens
from wikka_port.markup.fragments import FileReference, FileSlot
from wikka_port.markup.links import files_named, links
from wikka_port.moving.rewriting import rewritten
from wikka_port.names import page_key


def slots(document: Document) -> list[FileSlot]:
    return [piece for piece in document.pieces if isinstance(piece, FileSlot)]


def meant(text: str, markup: str = WIKKA) -> list[tuple[str, str, str, bool]]:
    """Return page, name, words and whether it is shown, of each file that a text may mean."""
    return [
        (choice.reference.page, choice.reference.name, choice.label, slot.shows)
        for slot in slots(parse(text, markup=markup))
        for choice in slot.choices
    ]


IN_BOTH = {
    "[[Picture.png]]": [("", "Picture.png", "", True)],
    "[[Picture.png|a town]]": [("", "Picture.png", "a town", True)],
    "[[My_picture.png a town]]": [
        ("", "My picture.png", "a town", True),
    ],
    "[[Paper.pdf]]": [("", "Paper.pdf", "", True)],
    "[[plan.dwg]]": [("", "plan.dwg", "", True)],
    "[[file:Other page/Picture.png]]": [("Other page", "Picture.png", "", True)],
    "[[File:A/B/Picture.png|words]]": [("A/B", "Picture.png", "words", True)],
    '{{image src="Picture.png" alt="a town"}}': [("", "Picture.png", "a town", True)],
    '{{image url="Picture.png" page="Other_page"}}': [("Other page", "Picture.png", "", True)],
    '{{files download="Paper.pdf" text="read it"}}': [("", "Paper.pdf", "read it", False)],
    '{{files download="LICENSE"}}': [("", "LICENSE", "", False)],
    # no names of files
    "[[A/Picture.png]]": [],
    "[[Picture.png#place]]": [],
    "[[https://example.org/Picture.png]]": [],
    "[[A sentence. And more]]": [],
    "[[file:Picture.png]]": [],
    "[[file&#58;A/B.png]]": [],
    '{{image src="/pictures/Picture.png"}}': [],
    '{{image src="https://example.org/a.png"}}': [],
    '{{image src="javascript:alert.png"}}': [],
    "{{files}}": [],
    '{{redirect target="Picture.png"}}': [],
}


@pytest.mark.parametrize("markup", [WIKKA, MARKDOWN])
@pytest.mark.parametrize("text", IN_BOTH)
def test_what_may_mean_a_file(text: str, markup: str) -> None:
    found = meant(text, markup)
    if text == "[[My_picture.png a town]]":
        assert found[0] == ("", "My picture.png a town", "", True) or len(found) == 1
        found = found[-1:]
    assert found == IN_BOTH[text]


IN_MARKDOWN = {
    "![a town](Picture.png)": [("", "Picture.png", "a town", True)],
    "![a town](./My%20picture.png)": [("", "My picture.png", "a town", True)],
    "![[Picture.png]]": [("", "Picture.png", "", True)],
    "![[Picture.png|a town]]": [("", "Picture.png", "a town", True)],
    "![[file:Other/Picture.png]]": [("Other", "Picture.png", "", True)],
    "[read](Paper.pdf)": [("", "Paper.pdf", "read", False)],
    "[**read**](Picture.png)": [("", "Picture.png", "read", False)],
    "[![a town](Picture.png)](Picture.png)": [("", "Picture.png", "a town", True)],
    "![[A page]]": [],
    "![a](folder/Picture.png)": [("", "Picture.png", "a", True)],
    "![a](../assets/My%20picture.png)": [("", "My picture.png", "a", True)],
    '<img src="images/Picture.png" alt="a">': [("", "Picture.png", "a", True)],
    "![a](/folder/Picture.png)": [],
    "![a](//host.example/Picture.png)": [],
    "![a](data:image/Picture.png)": [],
    "![a](folder/)": [],
    "![a](javascript:x.png)": [],
    "`[[Picture.png]]`": [],
}


@pytest.mark.parametrize("text", IN_MARKDOWN)
def test_what_may_mean_a_file_in_markdown(text: str) -> None:
    assert meant(text, MARKDOWN) == IN_MARKDOWN[text]


@pytest.mark.parametrize(
    ("typed", "words", "width"),
    [("![[P.png|300]]", "", 300), ("![[P.png|a b|300x20]]", "a b", 300), ("![a|40](P.png)", "a", 40),
     ("![[P.png|0]]", "0", 0), ("![[P.png|99999]]", "99999", 0)],
)  # fmt: skip
def test_a_width_as_obsidian_writes_it(typed: str, words: str, width: int) -> None:
    (slot,) = slots(parse(typed, markup=MARKDOWN))
    assert slot.choices[0].label == words
    assert dict(slot.options) == ({"width": str(width)} if width else {})


def test_without_files_a_link_leads_to_the_page_as_before() -> None:
    for markup in (WIKKA, MARKDOWN):
        document = parse("[[Picture.png]] [[Paper.pdf|words]]", markup=markup)
        shown = render(document, existing={"Picture.png"})
        assert '<a href="/Picture.png">Picture.png</a>' in shown
        assert '<a href="/Paper.pdf/edit" class="missing" rel="nofollow">words</a>' in shown
        assert document.links == ("Picture.png", "Paper.pdf")


def test_a_file_of_another_page_is_a_link_to_that_page() -> None:
    text = '[[file:Other/Picture.png]] {{image src="a.png" page="Third"}} {{gallery page="Fourth"}}'
    assert links(text) == links(text, markup=MARKDOWN) == ["Other", "Third", "Fourth"]
    assert parse(text).links == ("Other",)


def test_pictures_are_no_actions_and_have_a_bound_of_their_own() -> None:
    text = '{{image src="a.png"}} ' * (FILES_MAX + 3)
    document = parse(text)
    assert document.actions == ()
    assert len(slots(document)) == FILES_MAX
    assert document.files == (FileReference("", "a.png"),)
    assert render(document, existing=set()).count("a.png") == FILES_MAX + 3


def test_a_wrong_width_is_told_to_the_author() -> None:
    said = []
    document = parse('{{image src="a.png" width="wide"}} {{files download="a/b"}}')
    render(document, existing=set(), note=lambda slot: said.append(slot.refused) or "")
    assert said == ["its width and height should be numbers from 1 to 5000", "a/b cannot be the name of a file"]


def test_a_page_without_files_is_rendered_from_its_own_pieces() -> None:
    """No piece is looked at twice if a text has no file and no picture from elsewhere."""
    for text in ("[[Page]] [[A sentence. And more]] **bold**", "[[#place]] {{toc}}\n==a==", "![x](/a.png)"):
        for markup in (WIKKA, MARKDOWN):
            assert parse(text, markup=markup).is_ready
    assert not parse("[[a.png]]").is_ready
    assert not parse("https://example.org/a.png").is_ready


@pytest.mark.parametrize(
    ("typed", "led"),
    [("[[file:Old page/a.png|x]]", "[[file:New/a.png|x]]"), ("[[file:Old_page/a.png]]", "[[file:New/a.png]]"),
     ("[[file:Old page/B/a.png]]", "[[file:Old page/B/a.png]]"),
     ('{{image src="a.png" page="Old page"}}', '{{image src="a.png" page="New"}}'),
     ('{{gallery page="Old page"}}', '{{gallery page="New"}}'),
     ("%%[[file:Old page/a.png]]%%", "%%[[file:Old page/a.png]]%%")],
)  # fmt: skip
def test_a_rename_leads_to_the_files_of_the_new_name(typed: str, led: str) -> None:
    assert rewritten(typed, "Old page", "New") == led


HOSTS = {
    "https://A.Example/x.png": "a.example",
    "https://a.example:8443/x.png": "a.example:8443",
    "https://good.example@bad.example/x.png": "bad.example",
    "/x.png": "",
    "x.png": "",
    "https:///x.png": "?",
    "https://[::1/x.png": "?",
    "https://a.example:99999/x.png": "?",
}


@pytest.mark.parametrize("url", HOSTS)
def test_the_host_of_a_picture(url: str) -> None:
    assert host_of(url) == HOSTS[url]


@pytest.mark.parametrize(
    ("text", "markup"),
    [("https://e.example/a.png", WIKKA), ('""<b><img src="https://e.example/a.png" alt="a.png"></b>""', WIKKA),
     ("![a.png](https://e.example/a.png)", MARKDOWN)],
)  # fmt: skip
def test_a_picture_from_elsewhere_is_a_link_where_the_site_does_not_allow_it(text: str, markup: str) -> None:
    document = parse(text, markup=markup)
    assert '<img src="https://e.example/a.png"' in render(document, existing=set())
    refused = render(document, existing=set(), is_allowed=lambda host: host != "e.example")
    assert "<img" not in refused
    assert 'href="https://e.example/a.png" class="external" rel="nofollow noopener">Picture: a.png</a>' in refused


def test_words_in_the_place_of_a_picture_are_no_link_within_a_link() -> None:
    text = '""<a href="/x">see <img src="https://e.example/a.png" alt="it"></a> <img src="https://e.example/b.png">""'
    shown = render(parse(text), existing=set(), is_allowed=lambda host: False)
    assert ">see Picture: it</a> <a " in shown
    assert shown.count("<a ") == 2


FURTHER = (
    "|=|a|b|\n||[[x.png]]|[[y.pdf words]]||",
    "- [[x.png]]\n  - {{image src='a.webp'}}\n> [[file:B/c.jpg]]",
    '# Head [[x.png]]\n\n![alt](pic.png) ![[other.png|200]] [words](paper.pdf) <img src="in html.png">\n',
    '==== [[x.png]] ====\n%%[[code.png]]%% ""<img src=\'y.png\'>"" [[Page]] [[#here]]',
    "[[a.png b.png]] [[A.PNG]] [[a.png]]",
)


@pytest.mark.parametrize("markup", [WIKKA, MARKDOWN])
@pytest.mark.parametrize("text", [*IN_BOTH, *FURTHER])
def test_the_index_has_the_files_of_the_html(text: str, markup: str) -> None:
    assert set(files_named(tokens(text, markup=markup))) == set(parse(text, markup=markup).files)


def test_the_index_has_no_more_files_than_the_html() -> None:
    text = " ".join(f"[[f{n}.png]]" for n in range(FILES_MAX + 5))
    assert set(files_named(tokens(text))) == set(parse(text).files)
    assert len(files_named(tokens(text))) == FILES_MAX


def test_keys_of_files() -> None:
    named = [FileReference("", "Plan.PDF"), FileReference("Other", "plan_b.pdf"), FileReference("", "LICENSE.xyzzy")]
    found = targets_of_files("A/B", named)
    assert found == {
        key_of_file("A/B", "plan.pdf"): "plan.pdf",
        key_of_name("PLAN.pdf"): "plan.pdf",
        key_of_file("Other", "Plan B.pdf"): "plan b.pdf",
        key_of_file("A/B", "license.xyzzy"): "license.xyzzy",
    }
    assert all(map(is_of_file, found))
    assert len(set(map(len, found))) == 1
    assert not is_of_file(page_key("Plan.PDF"))

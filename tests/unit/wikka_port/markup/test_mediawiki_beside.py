"""Cells, captions, notes and small letters of MediaWiki beside what is hidden, and links within them."""

from __future__ import annotations

import html
import re

import pytest

from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import Dialect, convert

DIALECT = Dialect.of({"": 0, "Talk": 1, "File": 6, "Help": 12, "Category": 14})


def text(wikitext: str, title: str = "Page") -> str:
    return convert(wikitext, namespaces=DIALECT, title=title).text


def shown(wikitext: str) -> str:
    return render(parse(text(wikitext), autolink=False), existing=set())


@pytest.mark.parametrize(
    ("cell", "ours"),
    [
        ('colspan="5" {{CMain}}', "||(x:5)||"),
        ('bgcolor=white colspan="2" {{No|none}}', "||(x:2)||"),
        ("rowspan=3 {{Yes}}", "||(y:3)||"),
        ('colspan="5" words', '||colspan="5" words||'),
        ('colspan="5"', '||colspan="5"||'),
        ('colspan="5" {{nowrap|words}}', '||colspan="5" words||'),
        ("a = b {{x}} c", "||a = b  c||"),
        ("{{x}} words", "|| words||"),
        ('style="a:b" {{x}} | words', "||words||"),
    ],
)
def test_attributes_before_a_template_that_shows_nothing_are_attributes(cell: str, ours: str) -> None:
    assert text(f"{{|\n| {cell}\n|}}").split("\n")[0] == ours
    header = text(f"{{|\n! {cell}\n|}}").split("\n")[0]
    assert header == ours.replace("||", "|=|", 1)


@pytest.mark.parametrize(
    ("cell", "seen"),
    [
        ("[[a|b]] | c", "b | c"),
        ("[[a]] x {{hidden}} | c", "a x  | c"),
        ("{{nowrap|[[a]]}} | c", "a | c"),
        ("[[File:A.jpg]] | c", "[image: A.jpg] | c"),
        ("{{nowrap|x}} | c", "c"),
        ("align=left | c", "c"),
    ],
)
def test_a_bar_behind_a_link_is_one_of_the_text(cell: str, seen: str) -> None:
    """MediaWiki takes what stands before a bar for attributes, but for text with a link."""
    for sign in ("|", "!", "|+"):
        page = shown(f"{{|\n{sign} {cell}\n|-\n| z\n|}}").partition("<details")[0]
        words = html.unescape(re.sub("<[^>]+>", "", page))
        assert seen in [line.strip() for line in words.split("\n")], words


@pytest.mark.parametrize(
    "before", ["{{Clear}}", "{{a}}{{b}} ", "<noinclude>{{x}}</noinclude>", "[[Category:C]]", ":{{x}}"]
)
def test_a_table_behind_what_shows_nothing_is_a_table(before: str) -> None:
    assert ("||a||" in text(f"{before}{{|\n| a\n|}}")) is not before.startswith(":")


def test_a_tag_of_wikisource_shows_nothing() -> None:
    before = '<noinclude><pagequality level="4" user="J" /></noinclude>'
    assert text(f"{before}:{{|\n| a\n|}}") == "||a||"
    assert text(f"{before}words") == "words"


@pytest.mark.parametrize(
    ("caption", "ours"),
    [
        ("In [[Fraktur]]", "In [[Fraktur]]"),
        ("''a'' [http://a.b c]", "//a// [[http://a.b | c]]"),
        ("{{nowrap|a}} {{hidden}}b", "a b"),
        ("alt=words|In [[Fraktur]]", "In [[Fraktur]]"),
        ("<nowiki>[[x]]</nowiki>", '""[[x]]""'),
    ],
)
def test_captions_of_galleries_are_wikitext(caption: str, ours: str) -> None:
    made = convert(f"<gallery>\nFile:A.jpg|{caption}\nFile:B.jpg\n</gallery>", namespaces=DIALECT, title="Page")
    assert made.text.split("\n")[:2] == [f'~- ##""[image: A.jpg]""## {ours}', '~- ##""[image: B.jpg]""##']
    assert made.links == (("Fraktur",) if "Fraktur" in caption else ())


@pytest.mark.parametrize("tag", ["sup", "sub", "small", "big"])
@pytest.mark.parametrize(
    ("content", "html"),
    [
        ("[http://a.b/c]", '<a href="http://a.b/c" rel="nofollow noopener">http://a.b/c</a>'),
        ("[http://a.b/c?d=1&e words]", '<a href="http://a.b/c?d=1&amp;e" rel="nofollow noopener">words</a>'),
        ("see http://a.b/c.", 'see <a href="http://a.b/c." rel="nofollow noopener">http://a.b/c.</a>'),
        ("[http://a.b/'\"><b>x</b> y]", None),
        ("[javascript:alert(1) x]", "[javascript:alert(1) x]"),
        ("''a'' \"b\" & c", 'a "b" &amp; c'),
    ],
)
def test_addresses_in_small_letters_are_links(tag: str, content: str, html: str | None) -> None:
    page = shown(f"London,<{tag}>{content}</{tag}> x")
    assert "javascript" not in page.replace("[javascript:alert(1) x]", "")
    if html is not None and tag != "big":
        assert f"<{tag}>{html}</{tag}>" in page


def test_a_page_in_small_letters_is_linked_to() -> None:
    made = convert("London,<sup>[[Bridge]]</sup>", namespaces=DIALECT, title="Page")
    assert (made.links, "[[Bridge]]" in made.text) == (("Bridge",), True)


def test_words_of_lists_in_html_are_no_one_word() -> None:
    assert text("<ul><li>one</li><li>two</li></ul><dl><dt>t</dt><dd>d</dd></dl>") == "one --- two t --- d"
    assert text("<table><tr><td>a</td><td>b</td></tr></table>") == "a b"


@pytest.mark.parametrize(
    ("title", "link", "ours"),
    [
        ("Help:Foo", "[[/sub]]", "[[Help:Foo/sub | /sub]]"),
        ("Help:Foo", "[[/sub/]]", "[[Help:Foo/sub | sub]]"),
        ("Talk:Foo", "[[/sub|words]]", "[[Talk:Foo/sub | words]]"),
        ("Foo", "[[/sub]]", "[[&#47;sub | /sub]]"),
    ],
)
def test_pages_below_a_page(title: str, link: str, ours: str) -> None:
    assert text(link, title) == ours

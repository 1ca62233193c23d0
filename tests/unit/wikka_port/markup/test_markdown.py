"""Markdown: what its constructs become, that they mean the same as in Wikka markup, and what hostile text can do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it.ruler import Ruler
from markdown_it.rules_inline.text import text as library_text

from tests.support.well_nested import check
from tests.unit.wikka_port.test_markup_hostile import EVIL
from wikka_port.limits import ACTIONS_MAX, CELLS_MAX, LINKS_MAX, MARKDOWN_MARKS_MAX
from wikka_port.markup.bounds import is_expensive, over_bounds
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import MARKDOWN, tokens
from wikka_port.markup.links import links, redirect_target
from wikka_port.markup.markdown_rules import parser
from wikka_port.markup.sections import section_of, spliced, taken, unified
from wikka_port.markup.tokens import Close, Open, Rest
from wikka_port.search.page_text import page_text


def shown(text: str, **given: object) -> str:
    document = parse(text, markup=MARKDOWN)
    html = render(document, existing=set(document.links), **given)  # type: ignore[arg-type]
    check(html)
    return html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a *b* **c** ***d***", "<p>a <em>b</em> <strong>c</strong> <em><strong>d</strong></em></p>\n"),
        ("*a *b* c*", "<p><em>a <em>b</em> c</em></p>\n"),
        ("~~a~~ `x < *y*`", "<p><s>a</s> <code>x &lt; *y*</code></p>\n"),
        ("a\nb  \nc\\\nd", "<p>a\nb<br>\nc<br>\nd</p>\n"),
        ("a<br>b", "<p>a<br>\nb</p>\n"),
        ("***", "<hr>\n"),
        ("> a\n> > b", "<blockquote>\n<p>a</p>\n<blockquote>\n<p>b</p>\n</blockquote>\n</blockquote>\n"),
        ("- a\n- b\n  1. c", "<ul>\n<li>a</li>\n<li>b<ol>\n<li>c</li>\n</ol>\n</li>\n</ul>\n"),
        ("7. a", '<ol start="7">\n<li>a</li>\n</ol>\n'),
        ("- [ ] a", '<ul>\n<li><span class="task" role="img" aria-label="To do">☐</span> a</li>\n</ul>\n'),
        ("- [x] a", '<ul>\n<li><span class="task" role="img" aria-label="Done">☑</span> a</li>\n</ul>\n'),
        ("    code", '<pre class="code" tabindex="0"><code>code</code></pre>\n'),
        ("[[Page]] [[Page|words]]", '<p><a href="/Page">Page</a> <a href="/Page">words</a></p>\n'),
        ("[w](Some_Page.md#A-Place)", '<p><a href="/Some_Page#s-a-place">w</a></p>\n'),
        ("[**b** w](/Foo%20Bar)", '<p><a href="/Foo_Bar"><strong>b</strong> w</a></p>\n'),
        ("[w][r]\n\n[r]: ../Ref", '<p><a href="/Ref">w</a></p>\n'),
        (
            "WikiWord, `WikiWord`, &#87;ikiWord",
            '<p><a href="/WikiWord">WikiWord</a>, <code>WikiWord</code>, WikiWord</p>\n',
        ),
        ("[w](/-/search)", '<p><a href="/-/search">w</a></p>\n'),
        ("[w](#Two words)", "<p>[w](#Two words)</p>\n"),
        ("[w](#Two-words)", '<p><a href="#s-two-words">w</a></p>\n'),
        ("[w](javascript:alert(1))", "<p>w</p>\n"),
        ("[w](//evil.org)", "<p>w</p>\n"),
        ("![a](x.png)", "<p>a</p>\n"),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>\n"),
        ("{{list}}", "<ul></ul>"),
        (
            "a {{list}} **b {{list}} c**",
            "<p>a </p>\n<ul></ul><p><strong>b </strong></p>\n<ul></ul><p><strong> c</strong></p>\n",
        ),
        ("a[^x] b[^y]", "<p>a[^x] b[^y]</p>\n"),
    ],
)
def test_constructs(text: str, html: str) -> None:
    assert shown(text, action=lambda name, _: "<ul></ul>" if name == "list" else None) == html


def test_a_table_with_alignment_and_a_link() -> None:
    html = shown("|a|b|\n|:-|-:|\n|1|[[P\\|q]]|")
    assert '<th scope="col" class="to-left">a</th>' in html
    assert '<td class="to-right"><a href="/P">q</a></td>' in html
    assert "style" not in html


def test_footnotes_are_numbered_in_order_and_lead_back() -> None:
    html = shown(
        "a[^two] b[^one] c[^two]\n\n[^one]: first *x*\n[^two]: second\n    and [[Linked]]\n\n    more\n\n[^three]: no"
    )
    assert html.index("second") < html.index("first")
    assert 'id="r-1-2" href="#n-1"' in html
    assert '<li id="n-1"><p>second\nand <a href="/Linked">Linked</a></p>\n<p>more</p>\n<a href="#r-1"' in html
    assert "no" not in html.split("footnotes")[1].replace("note", "")


def test_links_outside_are_as_in_wikka_markup() -> None:
    html = shown(
        "https://x.org/a. <https://y.org> [z](https://z.org) me@x.org <me@x.org> WikiPedia:Foo [[WikiPedia:Foo]]"
    )
    for part in ('href="https://x.org/a" class="external" rel="nofollow noopener"', 'href="mailto:me@x.org"'):
        assert part in html
    assert html.count('class="interwiki"') == 2


def test_pictures_lead_to_themselves_or_where_they_are_linked() -> None:
    assert 'alt="an alt"' in shown("![an *alt*](https://x.org/p.png)")
    assert '<a href="https://l.org" class="external"' in shown("[![b](https://x.org/b.png)](https://l.org)")


def test_headings_contents_and_title() -> None:
    document = parse("# Title `x`\n\n{{toc}}\n\nTwo *b*\n===\n\n## Two b\n\n###### Six", markup=MARKDOWN)
    assert [(one.level, one.text, one.id) for one in document.headings] == [
        (1, "Title x", "s-title-x"),
        (1, "Two b", "s-two-b"),
        (2, "Two b", "s-two-b-2"),
        (6, "Six", "s-six"),
    ]
    assert 'href="#s-two-b-2"' in render(document, existing=set())


def test_the_contents_stand_by_themselves_from_three_headings_on() -> None:
    three = "## Two\n\n### Three\n\n## Four"
    text = f"# One\n\n> ## Zero\n\nwords\n\n{three}"
    before, _, after = shown(text).partition('<details class="toc" id="toc">')
    assert before.endswith("<p>words</p>\n")
    assert after.index("#s-zero") < after.index("#s-four") < after.index('<h2 id="s-two">')
    for none in ("# One\n\n## Two\n\n## Three", f"{{{{notoc}}}}\n\n{three}", f"{{{{toc}}}}\n\n{three}"):
        assert "details" not in shown(none)
    assert shown("{{notoc}}") == ""


def test_sections_are_where_their_headings_stand() -> None:
    text = (
        "# One\n\n```\n# no heading\n```\n\n- # in a list\n\nTwo\nlines\n---\n\nbody\r\n\r\n### Three\n\nx\n\n# Four\n"
    )
    document = parse(text, markup=MARKDOWN)
    found = {one.text: section_of(document.headings, unified(text), one.id) for one in document.headings}
    assert found["in a list"] is None
    two = found["Two lines"]
    assert two is not None
    assert taken(unified(text), two) == "Two\nlines\n---\n\nbody\n\n### Three\n\nx"
    assert spliced(unified(text), two, taken(unified(text), two)) == unified(text)
    assert render(document, existing=set(), edit="/P/edit").count("?section=") == 4


@pytest.mark.parametrize(
    "text", ['{{redirect target="There"}}', "#REDIRECT [[There]]", 'a\n\n- {{redirect to="There"}}']
)
def test_redirects(text: str) -> None:
    assert redirect_target(text, markup=MARKDOWN) == "There"
    assert links(text, markup=MARKDOWN) == ["There"]


def test_the_words_that_are_searched_have_no_markup() -> None:
    plain = page_text(
        "# A **ti**tle\n\nw*or*d [label](Page) `code` ![alt](x)\n\n```py\nblock\n```\n| c |\n|-|", markup=MARKDOWN
    )
    assert plain.headings.split() == ["A", "title"]
    assert {"word", "label", "code", "alt", "block", "c"} <= set(plain.text.split())


# --- bounds ------------------------------------------------------------------------------------


def rest_of(text: str) -> Rest:
    last = tokens(text, markup=MARKDOWN)[-1]
    assert isinstance(last, Rest), "it goes over no bound"
    return last


def test_so_many_links_and_not_one_more() -> None:
    text = "\n\n".join(f"[[a{n}]]" for n in range(LINKS_MAX - 1))
    assert over_bounds(text + "\n\n[[b]]", markup=MARKDOWN) is None
    longer = text + "\n\n[[b]]\n\nx [[c]] and\n[[d]]\n\nend"
    assert rest_of(longer) == Rest("x [[c]] and\n[[d]]\n\nend", "links")
    assert len(links(longer, markup=MARKDOWN)) == LINKS_MAX
    assert "end</pre>" in shown(longer)
    assert "links to more" in (over_bounds(longer, markup=MARKDOWN) or "")


def test_so_many_cells() -> None:
    text = "a\n\n|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n" + ("|" + "a|" * 100 + "\n") * (CELLS_MAX // 100)
    assert rest_of(text[: 200 * 110]).over == "steps" if text[: 200 * 110].count("|") > MARKDOWN_MARKS_MAX else True
    assert over_bounds(text, markup=MARKDOWN) is not None


def test_so_many_marks_and_the_rest_as_it_was_typed() -> None:
    text = "*a* b\n" * MARKDOWN_MARKS_MAX
    rest = rest_of(text)
    assert text.endswith(rest.source)
    assert rest.source.startswith("*a* b\n")
    assert over_bounds(text, markup=MARKDOWN) is not None
    assert is_expensive(text, markup=MARKDOWN)
    assert not is_expensive("*a* b\n" * 200, markup=MARKDOWN)
    assert is_expensive("$a$ " * MARKDOWN_MARKS_MAX, markup=MARKDOWN), "formulas are marks, too"


@pytest.mark.parametrize("reference", ["[a]", "![a]", "[![a]](/x)", "[**b**][a]"])
def test_a_long_address_is_not_shown_by_every_reference_to_it(reference: str) -> None:
    """A reference of three characters stands for an address of two thousand."""
    text = f"[a]: http://x/{'y' * 1_900}\n\n" + f"{reference}\n\n" * 3_000
    rest = rest_of(text)
    assert (rest.over, rest.source.startswith(reference)) == ("addresses", True)
    assert len(shown(text)) < 400_000
    assert "references" in (over_bounds(text[:19_000], markup=MARKDOWN) or "")
    few = text[:2_100]
    assert not isinstance(tokens(few, markup=MARKDOWN)[-1], Rest)


def test_actions_beyond_the_bound_are_not_run() -> None:
    text = "\n\n".join(["{{list}}"] * (ACTIONS_MAX + 5))
    assert shown(text, action=lambda *_: "<hr>").count("<hr>") == ACTIONS_MAX
    assert "actions" in (over_bounds(text, markup=MARKDOWN) or "")


@pytest.mark.parametrize("unit", ["> ", "- ", "1. ", "> - ", "* "])
def test_blocks_too_deep_lose_no_word(unit: str) -> None:
    html = shown(unit * 300 + "word")
    assert "word" in html
    assert html.count("<blockquote>") + html.count("<li>") <= 26


# --- hostile -----------------------------------------------------------------------------------

PLACES: list[Callable[[str], str]] = [
    lambda x: x,
    lambda x: f"[a]({x})",
    lambda x: f"[a](<{x}>)",
    lambda x: f"![{x}]({x})",
    lambda x: f"[[{x}|{x}]]",
    lambda x: f"# {x}",
    lambda x: f"```{x}\n{x}\n```",
    lambda x: f"|{x}|\n|-|\n|`{x}`|",
    lambda x: f"a[^1]\n\n[^1]: {x}",
    lambda x: f"[a]\n\n[a]: <{x}> '{x}'",
    lambda x: f"<{x}>",
    lambda x: f'{{{{x a="{x}"}}}}',
]


@pytest.mark.parametrize("evil", EVIL)
def test_no_payload_becomes_a_tag_of_its_own(evil: str) -> None:
    for place in PLACES:
        for text in (place(evil), place(evil.replace("\n", " "))):
            document = parse(text, markup=MARKDOWN)
            html = render(document, existing=set())
            check(html).text  # noqa: B018 - it raises
            assert "<script" not in html.lower()
            assert links(text, markup=MARKDOWN) == list(document.links)
            html.encode()


PARTS = [
    "*", "**", "_", "~~", "`", "``", "```\n", "[", "]", "](", "(", ")", "![", "[[", "]]", "[^1]", "[^1]: ", "{{", "}}",
    "{{toc}}", "{{list}}", "{{image}}", "\n", "\n\n", "    ", "\t", "> ", "- ", "1. ", "- [ ] ", "# ", "===\n", "---\n",
    "|", "|-|-|\n", "|a|b|\n", "<", ">", "<b>", "<br>", "<https://x.org>", "https://x.org", "WikiPage", "a",
    "[[Foo|x]]",
    "\\", "&copy;", "&#87;", "\0", "\ud800", "[a]: x\n", "[a]", "mailto:a@b.c", "<!--", "é", "  \n", "<a href=x>",
]  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join), st.booleans())
def test_any_text_becomes_well_nested_html_that_links_what_links_says(text: str, autolink: bool) -> None:
    document = parse(text, autolink=autolink, markup=MARKDOWN)
    html = render(
        document,
        existing=set(),
        action=lambda name, _: {"list": "<ul><li>x</li></ul>", "image": "<b>x</b>"}.get(name),
        page_url=lambda name: "/page/" + name.encode().hex(),
    )
    found = [href for href, _ in check(html).links if href.startswith("/page/")]
    assert list(dict.fromkeys(bytes.fromhex(href.split("/")[2]).decode() for href in found)) == list(document.links)
    assert links(text, autolink=autolink, markup=MARKDOWN) == list(document.links)
    opened: list[str] = []
    for token in tokens(text, autolink=autolink, markup=MARKDOWN):
        if isinstance(token, Open):
            opened.append(token.kind)
        elif isinstance(token, Close):
            assert opened.pop() == token.kind
    assert not opened


UNITS = [
    "[", "[a](", "![", "![a](b)", "**a ", "*a_ ", "*a **a ", "`a ", "<", "&a", "[[", "[[a", "{{", "{{a ", "[^1] ",
    "> a\n",
    "- a\n", "1. a\n", "|a", "[r]: /x\n", "~~a ", "~", "a:", "AaB", "*", "_a", "```\n", "# a\n", "[a](<", "[a]((",
    '[a](b "',
    "[`", "\\[", "- [ ] a\n", "<br", "http://a ", "a\n", "***\n", "[^a]: x\n",
]  # fmt: skip


def steps(text: str) -> int:
    """Calls of Python that parsing takes: a measure of work that no clock disturbs."""
    count = 0

    def profile(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        parse(text, markup=MARKDOWN)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", [*UNITS, "nested images", "nested links"])
def test_steps_grow_with_the_text(unit: str) -> None:
    def of(size: int) -> str:
        if unit == "nested images":
            return "![" * (size // 6) + "](a)" * (size // 6)
        return "[" * (size // 6) + "](a)" * (size // 6) if unit == "nested links" else unit * (size // len(unit))

    small, large = of(500), of(2_000)
    assert steps(large) <= 6 * steps(small) + 2_000, (
        "four times the text must not take much more than four times the work"
    )


@pytest.mark.parametrize("character", [*"}=:$%^#+-@.)", "} ", "a=", "a: "])
def test_a_character_without_a_meaning_costs_nothing(character: str) -> None:
    """Marks are counted and bounded; what is no mark is text, of which a page may have 2 MB."""
    assert steps(f"x{character * 10_000}") < 5_000


@given(st.text(st.sampled_from("ab \n!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00e9"), max_size=60))
def test_text_is_read_as_by_the_library(text: str) -> None:
    """The rule for text passes over what begins no other rule; nothing is read in another way for it."""
    theirs = parser.__wrapped__()
    theirs.inline.ruler.at("text", library_text)
    assert [one.as_dict() for one in parser().parse(text, {})] == [one.as_dict() for one in theirs.parse(text, {})]


def test_threads_that_share_the_parser_make_no_lists_of_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that parsed while another one made them took links for text, which a page's index then kept."""
    parser.cache_clear()
    parser()

    def compile_rules(_ruler: Ruler) -> None:
        raise AssertionError("another thread might take half of the list")

    monkeypatch.setattr(Ruler, "__compile__", compile_rules)
    assert page_text("![words](old.txt) [w](<b c.txt>)\n\n| a |\n|---|\n| b |", markup=MARKDOWN).text.split() == [
        *("words", "w", "a", "b"),
    ]

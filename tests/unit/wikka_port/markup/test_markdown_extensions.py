"""What GitHub and Obsidian know beside CommonMark."""

from __future__ import annotations

import re
import time

import pytest
from markdown_it.rules_block import StateBlock

from tests.support.well_nested import check
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import MARKDOWN
from wikka_port.markup.lexer import tokens as wikka_tokens
from wikka_port.markup.markdown_extensions import ATTRIBUTES_MAX, attributes_in
from wikka_port.search.page_text import page_text


def html(text: str) -> str:
    shown = render(parse(text, markup=MARKDOWN, autolink=False), existing=set())
    assert not check(shown).wrong
    return shown


ALERT = '<blockquote class="alert alert-{}">\n<p class="alert-title">{}</p>\n<p>{}</p>\n</blockquote>\n'
SHOWN = {
    "a ==b **c**== d": "<p>a <mark>b <strong>c</strong></mark> d</p>\n",
    "a == b == c==d ===e===": "<p>a == b == c==d ===e===</p>\n",
    "`==a==` \\==a==": "<p><code>==a==</code> ==a==</p>\n",
    "<kbd>Ctrl</kbd>+<KBD>*x*</KBD> H<sub>2</sub>O x<sup>2</sup>":
        "<p><kbd>Ctrl</kbd>+&lt;KBD&gt;<em>x</em>&lt;/KBD&gt; H<sub>2</sub>O x<sup>2</sup></p>\n",
    "<kbd>a <b>x</b>": "<p>&lt;kbd&gt;a &lt;b&gt;x&lt;/b&gt;</p>\n",
    '<a name="top"></a>\n# Title\n<a id=x> </a>text': None,
    '<a href="javascript:alert(1)">x</a>': "<p>&lt;a href=&quot;javascript:alert(1)&quot;&gt;x&lt;/a&gt;</p>\n",
    '<a href="Page">x</a> <a>y</a>': (
        '<p><a href="/Page/edit" class="missing" rel="nofollow">x</a> &lt;a&gt;y&lt;/a&gt;</p>\n'
    ),
    '[a <a href="https://x.org">b</a>](https://y.org)': None,
    "<sub onclick=x>a</sub>": "<p>&lt;sub onclick=x&gt;a&lt;/sub&gt;</p>\n",
    "a<!-- b -->c": "<p>ac</p>\n",
    "a\n<!-- b\n\nc -->\nd": "<p>a</p>\n<p>d</p>\n",
    "<!-- a": "<p>&lt;!-- a</p>\n",
    "<!-- a --> b": "<p> b</p>\n",
    "- a\n  <!-- b -->\n- c": "<ul>\n<li>a</li>\n<li>c</li>\n</ul>\n",
    "```\n<!-- a -->\n```": '<pre class="code" tabindex="0"><code>&lt;!-- a --&gt;</code></pre>\n',
    "<details>\n<summary>A **b**</summary>\n\n- c\n\n</details>\nd":
        "<details>\n<summary>A <strong>b</strong></summary>\n<ul>\n<li>c</li>\n</ul>\n</details>\n<p>d</p>\n",
    "<details open><summary>A</summary>\nb": "<details open>\n<summary>A</summary>\n<p>b</p>\n</details>\n",
    "a\n\n</details>\n\nb": "<p>a</p>\n<p>b</p>\n",
    "<details onclick=x>\n\na": "<p>&lt;details onclick=x&gt;</p>\n<p>a</p>\n",
    "- <details>": "<ul>\n<li>&lt;details&gt;</li>\n</ul>\n",
    "> [!NOTE]\n> a\n> b": ALERT.format("note", "Note", "a\nb"),
    "> [!WARNING]\n>\n> a": ALERT.format("warning", "Warning", "a"),
    "> [!OTHER]\n> a": "<blockquote>\n<p>[!OTHER]\na</p>\n</blockquote>\n",
    "> [!NOTE] a": ALERT.format("note", "Note", "<strong>a</strong>"),
    "> [!example]- A *b*\n> d": ALERT.format("note", "Example", "<strong>A <em>b</em></strong><br>\nd"),
    "> [!Bug]\n> [[P]]": None,
    "> [!error]+": '<blockquote class="alert alert-caution">\n<p class="alert-title">Error</p>\n</blockquote>\n',
    "> [!note]x": "<blockquote>\n<p>[!note]x</p>\n</blockquote>\n",
    "---\ntitle: A <b>\ntags: [x, 'y z']\nlist:\n  - p\n  - q\n# note\n---\n\ntext":
        '<details class="attributes"><summary>About this page</summary><dl>\n<dt>title</dt><dd>A &lt;b&gt;</dd>\n'
        "<dt>tags</dt><dd>x, y z</dd>\n<dt>list</dt><dd>p, q</dd>\n</dl></details>\n<p>text</p>\n",
    "---\nfoo\n---\n\ntext": None,
    "text\n\n---\na: b\n---": None,
}  # fmt: skip


@pytest.mark.parametrize("typed", SHOWN)
def test_what_is_shown(typed: str) -> None:
    wanted = SHOWN[typed]
    found = html(typed)
    if wanted is None:
        assert "attributes" not in found
    elif "KBD" in typed:
        assert found.replace("<kbd><em>x</em></kbd>", "&lt;KBD&gt;<em>x</em>&lt;/KBD&gt;") == wanted
    else:
        assert found == wanted


def test_a_picture_in_html() -> None:
    assert '<img src="https://e.example/a.png" alt="x&quot;y" width="20" ' in html(
        "<img src='https://e.example/a.png' onerror='alert(1)' width=20 alt='x\"y'>"
    )
    (slot,) = [
        piece for piece in parse('<img src="a.png" width="30">', markup=MARKDOWN).pieces if not isinstance(piece, str)
    ]
    assert dict(slot.options) == {"width": "30"}
    for evil in ("javascript:alert(1)", "data:text/html,x", "//e.example/x.png"):
        assert "&lt;img" in html(f'<img src="{evil}">')


def test_the_words_of_attributes_are_searched_and_those_of_comments_are_not() -> None:
    text = page_text("---\ntags: elephant\n---\n<!-- tiger -->\n==lion==\n", markup=MARKDOWN).text
    assert "elephant" in text
    assert "tiger" not in text
    assert "lion" in text


def test_sections_stay_where_their_headings_stand_below_a_front_matter() -> None:
    body = "---\ntitle: x\n---\n\n# A\n\n<details>\n\n# B\n\n</details>\n"
    assert [body[heading.start :][:3] for heading in parse(body, markup=MARKDOWN).headings] == ["# A", "# B"]


def test_a_link_in_html_is_as_one_in_markdown() -> None:
    for typed, same in (
        ('a <a href="https://x.org/?a=1&amp;b=2" onclick=y>*Club*</a>.', "a [*Club*](https://x.org/?a=1&b=2)."),
        ("<A HREF=mailto:a@x.org>mail</A>", "[mail](mailto:a@x.org)"),
        ('see <a href="/t/Tide pool#low tide">pools</a>', "see [pools](/t/Tide%20pool#low%20tide)"),
        ('<a href="../Other.md">o</a> <a href="#part">p</a>', "[o](../Other.md) [p](#part)"),
    ):
        assert html(typed) == html(same)
        assert "<a " in html(same)


def test_a_link_in_html_to_anything_but_pages_and_sites_is_as_it_was_typed() -> None:
    for evil in ("javascript:alert(1)", "JavaScript:x", "data:text/html,x", "//e.example/x", "vbscript:x", "x:y"):
        assert html(f'<a href="{evil}">words</a>').startswith("<p>&lt;a href="), evil


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ('<h1 align="center">A *b*</h1>\ntext', "# A *b*\ntext"),
        ("text\n  <H3>C</H3>\n- <h2>D</h2>\n\n  e", "text\n### C\n- ## D\n\n  e"),
    ],
)
def test_a_heading_in_html_is_one_on_a_line_of_its_own(typed: str, same: str) -> None:
    assert html(typed) == html(same)


def test_a_section_of_a_heading_in_html_begins_with_its_line() -> None:
    body = "words\n\n<h2>A</h2>\n\nmore\n\n## B\n"
    assert [body[one.start :][:4] for one in parse(body, markup=MARKDOWN).headings] == ["<h2>", "## B"]


def test_what_is_no_heading_in_html_is_text() -> None:
    for typed in ("<h1>a", "<h1>a</h2>", "<h7>a</h7>", "<h1> </h1>", "b <h1>a</h1>", "<h1>a</h1> b", "    <h1>a</h1>"):
        assert "<h1" not in html(typed), typed


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ('<p align="center">\n  <img src="a.png">\n</p>\n', '<img src="a.png">\n'),
        ("<div class=x>\n\n# A\n\n</div>\ntext", "# A\n\ntext"),
        ("a <span onclick='x()'>*b*</span> <FONT color=red>c</FONT><center/>", "a *b* c"),
        ("<blockquote>\n<p>a</p>\n</blockquote>", "a"),
        ("<div>\n</div>", ""),
        ("| a |\n|---|\n| <div>b</div> |\n", "| a |\n|---|\n| b |\n"),
    ],
)
def test_tags_of_layout_are_hidden_and_their_content_is_shown(typed: str, same: str) -> None:
    assert "".join(html(typed).split()) == "".join(html(same).split())


def test_what_only_looks_like_a_tag_of_layout_is_shown() -> None:
    for typed in ("<divx>", "<p", "<div <b>", "<script>a</script>", "<iframe>", "`<div>`"):
        assert html(typed).count("&lt;") == typed.count("<"), typed


def test_an_anchor_without_words_is_hidden_and_no_link_is_within_another() -> None:
    assert "name" not in html('<a name="top"></a>\n# Title\n<a id=x> </a>text')
    assert "&lt;a href" in html('<a href="https://x.org">[b](https://y.org)</a>'), "as it was typed"
    shown = html('[a <a href="https://x.org">b</a>](https://y.org)')
    assert shown.count("<a ") == 1
    assert "https://y.org" in shown


def test_attributes_have_bounds() -> None:
    assert len(attributes_in("\n".join(f"k{n}: v" for n in range(100)))) == ATTRIBUTES_MAX
    assert attributes_in("text: a\n") == (("text", "a"),)
    assert attributes_in("no attribute\nkey: value") == ()
    assert attributes_in("a: |\n  one\n  two") == (("a", "one, two"),)


@pytest.mark.parametrize(
    "unit",
    [
        "<!-- ",
        "==a ",
        "<kbd>",
        "<details>\n",
        "<!--\n",
        "> [!NOTE]\n",
        "<img src=",
        "<summary>",
        "- <!-- \n",
        "<a href=http://x>",
        "<div ",
        "<p>",
        "<h1>",
        "<h1>\n",
    ],
)
def test_openers_without_an_end_cost_no_more_than_others(unit: str) -> None:
    for text in (unit * 300, unit * 300 + "-->"):
        check(html(text)).text  # noqa: B018 - it raises


def test_wikka_markup_has_none_of_them() -> None:
    assert wikka_tokens("<kbd>a</kbd>") == ["<kbd>a</kbd>"]


def test_a_summary_over_a_bound_shows_no_text_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikka_port.markup.markdown.LINKS_MAX", 1)
    shown = html("begin [[A]]\n\n<details>\n<summary>[[B]]</summary>\n\nend\n\n</details>\n")
    assert shown.count("begin") == 1
    assert "[[B]]" in shown


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("text", "A town"),
        ("text\n\n# H", "A town"),
        ("## H\ntext", "A town"),
        ("# H\ntext\n# I", "A town"),
        ("# H\ntext\n## I", "H"),
        ("![a](a.png)\n# H", "A town"),
        ("", "A town"),
    ],
)
def test_the_title_of_a_front_matter_is_that_of_the_page_but_for_one_heading_above_all(body: str, title: str) -> None:
    assert parse(f"---\ntitle: A town\n---\n{body}", markup=MARKDOWN).title == title
    assert parse(f"---\nkey: A town\n---\n{body}", markup=MARKDOWN).title == (
        body.partition("# ")[2].partition("\n")[0] or None
    )


def test_attributes_without_words_are_not_shown() -> None:
    assert html("---\ntitle: x\ndescription:\ntags: \n---\ntext").count("<dt>") == 1
    assert html("---\ndescription:\n---\ntext") == "<p>text</p>\n"


@pytest.mark.parametrize(
    "formula",
    [
        "$a*b*c \\_d$", "$\\text{can\\_access}$", "$x_{1}_2$", "$$a*b*c$$", "$[[a]]$", "$`a`$", "$a\\$b*c*$", "$http://a$",
        "$$\nx*y*z\n$$", "$$\n- a\n# b\n\n    c*d*\n$$", "$${{a}}$$", "$a<b>c$", "$$a $b$ c$$",
    ],
)  # fmt: skip
def test_formulas_are_as_they_were_typed(formula: str) -> None:
    shown = html(f"{formula}")
    assert shown == f"<p>{formula.replace('<', '&lt;').replace('>', '&gt;')}</p>\n"
    if "\n" not in formula:
        assert html(f"**x** {formula}, y").endswith(shown.removeprefix("<p>").removesuffix("</p>\n") + ", y</p>\n")


def test_a_formula_in_the_words_of_a_link() -> None:
    assert ">a $b*c*d$</a>" in html("[a $b*c*d$](Page)")
    assert "$b*c*d$" in page_text("a $b*c*d$ e", markup=MARKDOWN).text


@pytest.mark.parametrize(
    "typed",
    ["$5 and *6* $", "$ a*b*c$", "a$b*c*d$", "$5*6*$7", "\\$a*b*c$", "$a*b*\nc$", "$$ a*b*c", "$$\n*a*\n\nb", "$"],
)
def test_other_dollars_are_letters(typed: str) -> None:
    assert ("<em>" in html(typed)) == ("*" in typed)
    assert html(typed).count("$") == typed.count("$")


def test_ends_of_layout_end_a_list() -> None:
    columns = "<div>\n<div>\n\n- a\n- b\n  </div>\n  <div>\n\n    # C\n    - d\n\n  </div>\n</div>\n\nend"
    assert re.sub(r" <a .*?</a>|\n", "", html(columns)) == (
        '<ul><li>a</li><li>b</li></ul><h1 id="s-c">C</h1><ul><li>d</li></ul><p>end</p>'
    )
    assert html("- a\n</div>\nb").replace("\n", "") == "<ul><li>a</li></ul><p>b</p>"
    assert html("- a\n  </div> b\n  c").count("</li>") == 1
    assert "<p>c</p>" not in html("- a </div>\n\n  c").partition("</li>")[2]
    code = html("- a\n  </div>\n  ```\n    x\n  ```\n")
    assert "<code>  x</code>" in code
    assert code.startswith("<ul>\n<li>a</li>\n</ul>")


@pytest.mark.parametrize(
    "unit", ["$$ a\n", "$$\n", "$a ", "$a\\", "$", "$$", "- a\n  </div>\n  ", "- </div>\n", "$a*b$"]
)
def test_formulas_and_ends_of_layout_take_linear_time(unit: str) -> None:
    count = 8_000 // len(unit)
    began = time.process_time()
    html(unit * count)
    short = time.process_time() - began
    html(unit * count * 4)
    assert time.process_time() - began - short < 8 * short + 1


def test_ends_of_layout_above_many_empty_lines_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each end is in the item still, since its line had a deeper indent; empty lines have no indent to lose."""
    looked, is_empty = 0, StateBlock.isEmpty

    def counted(self: StateBlock, line: int) -> bool:
        nonlocal looked
        looked += 1
        return is_empty(self, line)

    monkeypatch.setattr(StateBlock, "isEmpty", counted)
    ends = "".join(f"{'  ' * depth}</div>\n" for depth in range(1, 61))
    for empty in ("\n", "  \n", "\n \n", "    \n\n"):
        looked = 0
        assert html(f"- a\n{ends}{empty * 1_000}- b\n").count("</li>") == 2
        assert looked < 15_000, empty
    code = html(f"- a\n{ends[:9]}\n\n  ```\n    x\n      \n\n    y\n  ```\n")
    assert "<code>  x\n    \n\n  y</code>" in code, "a line of blanks has an indent to lose"

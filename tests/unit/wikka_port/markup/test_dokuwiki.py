"""DokuWiki's markup as Markdown: each construct of its syntax page, and any text without harm."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.seeds import seed
from wikka_port.markup.dokuwiki import from_dokuwiki
from wikka_port.markup.dokuwiki_inline import FileReference, Surroundings
from wikka_port.markup.markdown import tokens
from wikka_port.markup.tokens import Close, Open, PageLink

FILES = {"a:pic.png": FileReference("", "pic.png"), "b:far.png": FileReference("Other/Page", "far.png"),
         "a:doc.pdf": FileReference("", "doc.pdf"), "b:far.pdf": FileReference("Other/Page", "far.pdf")}  # fmt: skip
AROUND = Surroundings(
    lambda typed: "/".join(part.capitalize() for part in typed.strip(":").split(":")),
    FILES.get,
    {"wp": "https://en.wikipedia.org/wiki/{NAME}", "go": "https://go.example/?q="},
)


def moved(text: str) -> str:
    return from_dokuwiki(text, AROUND).text.rstrip("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("====== Title ======\ntext\n== Five ==", "# Title\n\ntext\n\n##### Five"),
        ("**b** //i// __u__ ''m'' <sub>x</sub> <del>y</del>", "**b** *i* <u>u</u> `m` <sub>x</sub> <del>y</del>"),
        ("**//both//** a**b", "***both*** a\\*\\*b"),
        ("see http://a.example/x_y. And //http://b.example//", "see <http://a.example/x_y>. And *<http://b.example>*"),
        ("a\\\\ b \\\\c", "a<br>b \\\\\\\\c"),
        ("[[ns:page]] [[page|words]] [[page#my_part|w]]", "[[Ns/Page|page]] [[Page|words]] [[Page#s-my-part|w]]"),
        (
            "[[#My Part]] [[wp>Wiki Wiki]]",
            "[My Part](#s-my-part) [Wiki Wiki](https://en.wikipedia.org/wiki/Wiki%20Wiki)",
        ),
        ("[[http://a.example|x|y]] [[me@a.example]]", "[x\\|y](http://a.example) <me@a.example>"),
        ("{{a:pic.png}} {{a:pic.png?200}} {{a:pic.png|Alt}}", "![](pic.png) ![|200](pic.png) ![Alt](pic.png)"),
        ("{{ a:pic.png?20x30|Alt}}", '{{image src="pic.png" alt="Alt" class="right" width="20" height="30"}}'),
        (
            "{{b:far.png}} {{b:far.pdf|paper}}",
            '{{image src="far.png" page="Other/Page"}} [[file:Other/Page/far.pdf|paper]]',
        ),
        ("{{a:doc.pdf|the doc}} {{a:pic.png?linkonly}}", "[the doc](doc.pdf) [pic.png](pic.png)"),
        ("[[page|{{a:pic.png}}]]", '{{image src="pic.png" link="Page"}}'),
        ("a ((note **b**)) c ((two))", "a [^1] c [^2]\n\n[^1]: note **b**\n[^2]: two"),
        ("%%**no**%% <nowiki>//no//</nowiki>", "\\*\\*no\\*\\* //no//"),
        ("  * a\n    - b\n  * c", "- a\n    1. b\n- c"),
        ("  code **x**\n  more\n\ntext", "```\ncode **x**\nmore\n```\n\ntext"),
        ("<code python x.py>\nif x:\n    y\n</code>", "```python\nif x:\n    y\n```"),
        ("a <code>x</code> b", "a\n\n```\nx\n```\n\nb"),
        ("  * item <code>x\ny</code>", "- item\n    ```\n    x\n    y\n    ```"),
        ("> a\n> b\n>> c", "> a<br>\n> b\n>\n>> c"),
        ("^ A ^ B ^\n|  1|[[p|q]]|\n| x ||", "| A | B |\n| --- | --- |\n| 1 | [[P\\|q]] |\n| x |  |"),
        ("^ A | 1 |\n^ B | 2 |", "|  |  |\n| --- | --- |\n| **A** | 1 |\n| **B** | 2 |"),
        ("|  r|\n|  s|", "|  |\n| ---: |\n| r |\n| s |"),
        ("a\n----\nb", "a\n\n***\n\nb"),
        ("a [[http://a.example\n|b\nc]] d", "a [b c](http://a.example) d"),
        ("  * [[page|\n    words]]\n  * {{a:pic.png|\n  Alt}}", "- [[Page|words]]\n- ![Alt](pic.png)"),
        ("  [[page|\n  words]]", "```\n[[page|\nwords]]\n```"),
        ("[[page|\n\nwords]]", "\\[\\[page\\|\n\nwords\\]\\]"),
        ("~~NOTOC~~\n~~NOCACHE~~x", "{{notoc}}\nx"),
        ("<html><b>x</b></html>", "```html\n<b>x</b>\n```"),
        ("1. no list\n# no heading\n+ none", "1\\. no list\n\\# no heading\n\\+ none"),
    ],
)
def test_each_construct_becomes_markdown(before: str, after: str) -> None:
    assert moved(before) == after


def test_what_markdown_cannot_express_is_named() -> None:
    text = "|a||\n{{rss>http://x.example}} [[foo>bar]] [[\\\\server\\share]] {{gone.png}} <WRAP x>w</WRAP> ~~XX~~"
    text += " <php>1</php>"
    assert len(from_dokuwiki(text, AROUND).lost) == 8


def test_a_link_in_a_cell_leads_to_its_page() -> None:
    read = tokens(from_dokuwiki("^ A ^\n| [[ns:page|w]] |", AROUND).text, autolink=False)
    assert [(token.name, token.label) for token in read if isinstance(token, PageLink)] == [("Ns/Page", "w")]


def test_any_text_comes_through_with_its_words() -> None:
    number = seed(3912)
    print("seed", number)
    draw = Random(number)
    pieces = ["**", "//", "__", "''", "((", "))", "[[", "]]", "{{", "}}", "|", "^", "%%", "<code>", "</code>", "\n\n",
              "<nowiki>", "</nowiki>", "\n", "  * ", "  ", "====", "====\n", ">", "\\\\ ", "a:pic.png", "\x021\x02",
              "~~NOTOC~~", "<sub>", "</sub>", ":::"]  # fmt: skip
    for turn in range(400):
        words = [f"word{turn}x{number}y" for number in range(draw.randrange(1, 12))]
        text = "".join(word + "".join(draw.choice(pieces) for _ in range(draw.randrange(4))) for word in words)
        out = from_dokuwiki(text, AROUND).text
        linked = text.count("[[") or text.count("{{") or "<code>" in text
        missing = [word for word in words if word not in out.lower()]
        assert linked or not missing, (text, out)
        depth = 0
        for token in tokens(out, autolink=False):
            depth += isinstance(token, Open) - isinstance(token, Close)
        assert depth == 0, text


def test_marks_without_ends_cost_no_more_than_their_length() -> None:
    for piece in (
        "**a ",
        "((",
        "[[a",
        "{{a",
        "''",
        "%%",
        "<code>",
        "<nowiki>",
        "//",
        "  * ",
        "|",
        "^ ",
        "<sub>",
        "[[a|{{",
    ):
        assert from_dokuwiki(piece * 5_000, AROUND).text

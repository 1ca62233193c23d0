"""Texts in both formats as wikitext: examples, words that look like markup, and any text at all."""

from __future__ import annotations

from html import unescape
from random import Random

import pytest

from tests.support.exported_wiki import TEXTS
from tests.support.seeds import seed
from wikka_port.markup.formats import tokens
from wikka_port.markup.mediawiki import Dialect, convert
from wikka_port.markup.tokens import NEWLINE, Embedded
from wikka_port.markup.wikitext_writing import plain, to_wikitext

SEED = seed(406)
WIKKA = {
    "======Title======": "= Title =\n",
    "==Small==": "===== Small =====\n",
    "**bold** //it// __u__ ##code## ''mark''": "'''bold''' ''it'' <u>u</u> <code>code</code> <mark>mark</mark>\n",
    "**not closed\nnext": "'''not closed'''\nnext\n",
    "[[Harbour | the harbour]] HomePage": "[[Harbour|the harbour]] [[HomePage]]\n",
    "[[http://e.org/a b]]": "[http://e.org/a b]\n",
    "[[Category:Ports]]": "[[:Category:Ports]]\n",
    "~- one\n~~- two\n~1) num": "* one\n** two\n# num\n",
    '{{redirect target="Harbour"}}': "#REDIRECT [[Harbour]]\n",
    '{{image url="a.png" alt="a ship"}}': "[[File:a.png|alt=a ship]]\n",
    "||a||b||\n||c||d||\n\nafter": '{| class="wikitable"\n|-\n| a\n| b\n|-\n| c\n| d\n|}\n\nafter\n',
    "%%(python)\nx = 1\n%%": '<syntaxhighlight lang="python">\nx = 1\n</syntaxhighlight>\n',
    "~- a {{table columns='2' cells='x|;###;z'}}\nb": '* a \n{| class="wikitable"\n|-\n| x&#124;\n| \n|-\n| z\n'
    "|}\n\nb\n",
    "before\n----\nafter": "before\n----\n\nafter\n",
    "": "",
}
MARKDOWN = {
    "# Title": "= Title =\n",
    "**bold** *it* `code` ~~del~~": "'''bold''' ''it'' <code>code</code> <s>del</s>\n",
    "one\n\ntwo": "one\n\ntwo\n",
    "- a\n  - b\n- [x] c": "* a\n** b\n* &#91;x&#93; c\n",
    "1. a\n2. b": "# a\n# b\n",
    "| a | b |\n|---|---|\n| 1 | 2 |": '{| class="wikitable"\n|-\n! a\n! b\n|-\n| 1\n| 2\n|}\n',
    "> quote": "<blockquote>\n\nquote\n</blockquote>\n",
    "[a](https://e.org) [[Page|x]]": "[https://e.org a] [[Page|x]]\n",
}


@pytest.mark.parametrize("text", WIKKA)
def test_wikka_markup(text: str) -> None:
    assert to_wikitext(text) == WIKKA[text]


@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown(text: str) -> None:
    assert to_wikitext(text, markup="markdown") == MARKDOWN[text]


def shown(wikitext: str) -> str:
    """Return the words that this wiki shows of a MediaWiki's text."""
    read = tokens(convert(wikitext, namespaces=Dialect.of({}), title="X").text, autolink=False)
    said = [unescape(one.source) if isinstance(one, Embedded) else one for one in read if one is not NEWLINE]
    assert all(isinstance(one, str) for one in said), read
    return "".join(map(str, said))


def test_words_that_look_like_wikitext_stay_words() -> None:
    print("seed", SEED)
    draw = Random(SEED)
    pieces = ("'''", "[[A]]", "{{b}}", "<b>", "&amp;", "|", "~~~~", "__TOC__", "==", "x", " y", "*", "#", ":", "----")
    for _ in range(300):
        words = "".join(draw.choices(pieces, k=draw.randrange(1, 6))).strip()
        assert shown(plain(words)).strip() == words, words


def test_any_text_converts() -> None:
    draw = Random(SEED)
    marks = ("**", "//", "||", "|=|", "%%", "[[", "]]", "~-", "\n", '""', "{{", "}}", "==", "- ", "> ", "`", "word ")
    for _ in range(300):
        text = "".join(draw.choices((*marks, *TEXTS), k=draw.randrange(1, 12)))
        for markup in ("wikka", "markdown"):
            assert isinstance(to_wikitext(text, markup=markup), str)

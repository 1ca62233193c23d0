"""Bold, italic and code by their keys, in both formats: on, off, with and without a selection, and taken back.

In the texts ``<`` and ``>`` stand where the selection begins and ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.browser.conftest import quiet_pages
from tests.browser.test_editor_in_browser import editor, put, text_of
from tests.support.wiki_server import WikiServer

KEYS = {"bold": "Control+b", "italic": "Control+i", "code": "Control+e"}
MARKS = {
    "wikka": {"bold": "**", "italic": "//", "code": "##"},
    "markdown": {"bold": "**", "italic": "_", "code": "`"},
}

# format, tool, the text before and after each press
PRESSED = [
    ("wikka", "italic", "say //he<>llo// you", "say he<>llo you", "say //he<>llo// you"),
    ("wikka", "italic", "say **he<>llo** you", "say **//he<>llo//** you", "say **he<>llo** you"),
    (
        "wikka",
        "italic",
        "http://a.b/ <x> https://c.d",
        "http://a.b/ //<x>// https://c.d",
        "http://a.b/ <x> https://c.d",
    ),
    ("wikka", "bold", "~- <one\n~- two>", "~- <**one**\n~- **two**>", "~- <one\n~- two>"),
    ("wikka", "bold", "**a <b** c **d> e**", "**<a b c d e>**", "<a b c d e>"),
    ("wikka", "code", "<one\ntwo>", "%%\n<one\ntwo>\n%%", "<one\ntwo>"),
    ("wikka", "bold", "%%co<d>e%%", "%%co**<d>**e%%", "%%co<d>e%%"),
    ("wikka", "italic", 'a ""li<t>eral"" b', 'a ""li//<t>//eral"" b', 'a ""li<t>eral"" b'),
    ("wikka", "link", "see <Home> here", "see [[Home<>]] here", "see Home<> here"),
    ("wikka", "link", "[[https://x.y | <words>]]", "<words>"),
    ("wikka", "link", "<>", "[[<>]]", "<>"),
    ("wikka", "bold", "<====A head====>", "====**<A head>**====", "====<A head>===="),
    ("wikka", "bold", "<~- item>", "~- **<item>**", "~- <item>"),
    ("wikka", "italic", "x **//<>//** y", "x **<>** y", "x **//<>//** y"),
    ("wikka", "bold", "x **//<>//** y", "x //<>// y"),
    ("markdown", "bold", "<## A head ##>", "## **<A head>** ##", "## <A head> ##"),
    ("markdown", "italic", "<- [ ] item>", "- [ ] _<item>_", "- [ ] <item>"),
    ("markdown", "bold", "<# one\ntwo>", "<# **one**\n**two**>", "<# one\ntwo>"),
    ("markdown", "bold", "x **_<>_** y", "x _<>_ y"),
    ("markdown", "code", "x `**_<>_**` y", "x **_<>_** y"),
    ("markdown", "italic", "say *he<>llo* you", "say he<>llo you", "say _he<>llo_ you"),
    ("markdown", "italic", "say ***he<>llo*** you", "say **he<>llo** you"),
    ("markdown", "bold", "say ***he<>llo*** you", "say *he<>llo* you"),
    ("markdown", "bold", "say __he<>llo__ you", "say he<>llo you"),
    ("markdown", "italic", "in<side>words", "in*<side>*words", "in<side>words"),
    ("markdown", "italic", "snake_<case>_name", "snake_*<case>*_name", "snake_<case>_name"),
    ("markdown", "bold", "**one <two> three**", "**one** <two> **three**", "**one** **<two>** **three**"),
    ("markdown", "bold", "a <b **c** d> e", "a **<b c d>** e", "a <b c d> e"),
    ("markdown", "bold", "**_word<>_**", "**_word_**_<>_"),
    ("markdown", "bold", "Hä<>lt", "**Hä<>lt**", "Hä<>lt"),
    ("markdown", "code", "a `wo<>rd` b `c`", "a wo<>rd b `c`", "a `wo<>rd` b `c`"),
    ("markdown", "code", "<one\ntwo>", "```\n<one\ntwo>\n```", "<one\ntwo>"),
    ("markdown", "bold", "- <one\n- two>", "- <**one**\n- **two**>", "- <one\n- two>"),
    ("markdown", "bold", "say `he<l>lo` you", "say `he**<l>**lo` you", "say `he<l>lo` you"),
    ("markdown", "italic", "say `<hello>` you", "say `_<hello>_` you", "say `<hello>` you"),
    ("markdown", "bold", "```\nco<d>e\n```", "```\nco**<d>**e\n```", "```\nco<d>e\n```"),
    ("markdown", "italic", "```\nco<>de\n```", "```\n_co<>de_\n```", "```\nco<>de\n```"),
    ("markdown", "link", "see [<words>](https://x.y/) here", "see <words> here"),
]


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    with quiet_pages(browser, server) as open_one:
        yield open_one


@pytest.mark.parametrize("markup", MARKS)
def test_key_word_key_leaves_no_mark_behind(open_page: Any, markup: str) -> None:
    page = editor(open_page)
    page.select_option("[name=format]", markup)
    page.focus("#body")
    for what, mark in MARKS[markup].items():
        key = KEYS[what]
        put(page, "a <>")
        page.keyboard.press(key)
        assert text_of(page) == f"a {mark}<>{mark}"
        page.keyboard.type("word")
        page.keyboard.press(key)
        assert text_of(page) == f"a {mark}word{mark}<>"
        page.keyboard.type(" X")
        assert text_of(page) == f"a {mark}word{mark} X<>"
        put(page, f"a {mark}word{mark}<>")
        page.keyboard.press(key)
        assert text_of(page) == f"a {mark}word<>{mark}", "it goes on where it ended"
        put(page, "a <>")
        page.keyboard.press(key)
        page.keyboard.press(key)
        assert text_of(page) == "a <>", "nothing was written in between"


@pytest.mark.parametrize("markup", MARKS)
def test_each_tool_twice_and_taken_back(open_page: Any, markup: str) -> None:
    page = editor(open_page)
    page.select_option("[name=format]", markup)
    page.focus("#body")
    for _, what, *steps in (case for case in PRESSED if case[0] == markup):
        put(page, steps[0])
        for before, after in pairwise(steps):
            page.keyboard.press({**KEYS, "link": "Control+k"}[what])
            assert text_of(page) == after, (what, before)
        page.keyboard.press("Control+z")
        assert text_of(page).replace("<", "").replace(">", "") == steps[-2].replace("<", "").replace(">", ""), what


PROPERTY = """(seed) => {
    const random = (most) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return seed % most; };
    const applied = ([text, start, end], change) => (change === null ? [text, start, end]
      : [text.slice(0, change.from) + change.insert + text.slice(change.to), change.start, change.end]);
    const wrong = [];
    for (let round = 0; round < 20000 && wrong.length < 5; round++) {
        const markup = ["wikka", "markdown"][random(2)];
        const what = ["bold", "italic", "code"][random(3)];
        const parts = ["a", "word", " ", "Hä", ". ", "**x y**", "\\n", "\\n\\n",
          ...(markup === "wikka" ? ["//it//", "##c##", "~- "] : ["_it_", "`c`", "- "])];
        let text = "";
        for (let n = random(7); n >= 0; n--) text += parts[random(parts.length)];
        const at = random(text.length + 1);
        const once = applied([text, at, at], wikkaEditor.marks[markup][what](text, at, at));
        const twice = applied(once, wikkaEditor.marks[markup][what](...once));
        const isOff = once[0] !== text && once[0].length <= text.length; // or joined to the next span
        const isSame = isOff || twice[0] === text;
        if (once[1] !== once[2] || twice[1] !== twice[2] || !isSame) wrong.push([markup, what, text, at, once, twice]);
    }
    return wrong;
}"""


def test_without_a_selection_none_is_made_and_the_same_key_gives_the_text_back(open_page: Any) -> None:
    page = editor(open_page)
    assert page.evaluate(PROPERTY, 7) == []


MIXED = """([markup, seed]) => {
    const random = (most) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % most; };
    const marks = wikkaEditor.marks[markup];
    const wrong = [];
    for (let round = 0; round < 3000 && wrong.length < 5; round++) {
        const start = ["", "a  b", "- ", "one\\n\\n", "**x**  _y_", "//x//  ##y##"][random(6)];
        const at = start.includes("  ") ? start.indexOf("  ") + 1 : start.length;
        let [text, caret] = [start, at];
        const press = (what) => {
            const made = marks[what](text, caret, caret);
            text = text.slice(0, made.from) + made.insert + text.slice(made.to);
            caret = made.start;
            if (made.start !== made.end) wrong.push([what, "a selection"]);
        };
        const isOn = new Set();
        const keys = [];
        for (let n = random(7); n >= 0 || isOn.size; n--) {
            const what = n >= 0 ? ["bold", "italic", "code"][random(3)] : [...isOn][random(isOn.size)];
            if (!isOn.delete(what)) isOn.add(what);
            keys.push(what);
            press(what);
        }
        if (text !== start || caret !== at) wrong.push([start, keys.join(" "), text, caret]);
    }
    return wrong;
}"""


@pytest.mark.parametrize("markup", MARKS)
def test_keys_in_any_order_leave_nothing_once_all_are_off(open_page: Any, markup: str) -> None:
    page = editor(open_page)
    assert page.evaluate(MIXED, [markup, 11]) == []

"""The editor with its script: tools and keys, lists, completion, what is pasted, the preview beside the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import becomes, quiet_pages
from tests.support.wiki_server import WikiServer

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def open_page(browser: Any, server: WikiServer) -> Iterator[Any]:
    with quiet_pages(browser, server, 409) as open_one:
        yield open_one


def editor(open_page: Any, name: str = "Draft", **options: Any) -> Any:
    page = open_page(**options)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"/{name}/edit")
    page.wait_for_selector(".toolbar")
    page.focus("#body")
    return page


def text_of(page: Any) -> str:
    """The text, with the selection between < and >."""
    return str(
        page.evaluate("""() => {
            const { value, selectionStart: from, selectionEnd: to } = document.getElementById("body");
            return `${value.slice(0, from)}<${value.slice(from, to)}>${value.slice(to)}`;
        }""")
    )


def put(page: Any, text: str) -> None:
    """``text``, with the selection where < and > stand."""
    before, _, rest = text.partition("<")
    chosen, _, after = rest.partition(">")
    page.fill("#body", before + chosen + after)
    page.evaluate(
        "([from, to]) => document.getElementById('body').setSelectionRange(from, to)",
        [len(before), len(before) + len(chosen)],
    )


def paste(page: Any, **kinds: str) -> bool:
    """Pastes ``html`` and ``plain``; whether the script took it."""
    return not page.evaluate(
        """(kinds) => {
            const data = new DataTransfer();
            for (const [kind, text] of Object.entries(kinds)) data.setData(`text/${kind}`, text);
            const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
            return document.getElementById("body").dispatchEvent(event);
        }""",
        kinds,
    )


# tool or key, before, after
TOOLS = [
    ("bold", "a <word> b", "a **<word>** b"),
    ("Control+b", "a **<word>** b", "a <word> b"),
    ("Control+i", "<>", "//<>//"),
    ("Control+e", "<word>", "##<word>##"),
    ("code", "<one\ntwo>", "%%\n<one\ntwo>\n%%"),
    ("bold", "~- <one\n~- two>", "~- <**one**\n~- **two**>"),
    ("heading", "Ti<>tle", "=====Title<>====="),
    ("Control+Alt+2", "=====Title=====<>", "====Title<>===="),
    ("heading", "===Title<>===", "Title<>"),
    ("bullets", "<one\ntwo>", "<~- one\n~- two>"),
    ("Control+Alt+8", "<~- one\n~- two>", "<one\ntwo>"),
    ("Control+Alt+7", "<~~- one>", "<~~1) one>"),
    ("Control+k", "<https://example.org/>", "[[https://example.org/ | <words>]]"),
    ("link", "see <Home> here", "see [[Home<>]] here"),
    ("table", "<a\tb\nc\td>", "<|=|a|=|b||\n||c||d||>"),
    ("Control+Alt+9", "text<>", "text\n|=|<Head>|=|Head|=|Head||\n||cell||cell||cell||\n||cell||cell||cell||"),
    ("Enter", "~- one<>", "~- one\n~- <>"),
    ("Enter", "~~1) o<>ne", "~~1) o\n~~1) <>ne"),
    ("Enter", "~- one\n~- <>", "~- one\n<>"),
    ("Enter", "no list<>", "no list\n<>"),
    ("Tab", "~- one<>", "~~- one<>"),
    ("Shift+Tab", "~~- one<>", "~- one<>"),
    ("Tab", "<~- one\n~- two>", "<~~- one\n~~- two>"),
]
MARKDOWN = [
    ("bold", "a <word> b", "a **<word>** b"),
    ("Control+i", "a <word> b", "a _<word>_ b"),
    ("Control+e", "<word>", "`<word>`"),
    ("code", "<one\ntwo>", "```\n<one\ntwo>\n```"),
    ("heading", "## Title<>", "### Title<>"),
    ("bullets", "<one\ntwo>", "<- one\n- two>"),
    ("numbers", "<one\ntwo>", "<1. one\n2. two>"),
    ("Control+k", "<https://example.org/>", "[<words>](https://example.org/)"),
    ("Enter", "1. one<>", "1. one\n2. <>"),
    ("Enter", "- [x] done<>", "- [x] done\n- [ ] <>"),
    ("Enter", "- one\n- <>", "- one\n<>"),
    ("Tab", "1. one<>", "   1. one<>"),
    ("Shift+Tab", "   1. one<>", "1. one<>"),
]


@pytest.mark.parametrize(("markup", "cases"), [("wikka", TOOLS), ("markdown", MARKDOWN)])
def test_tools_and_keys_write_the_markup_of_the_page(open_page: Any, markup: str, cases: list[Any]) -> None:
    page = editor(open_page)
    page.select_option("[name=format]", markup)
    page.focus("#body")
    for what, before, after in cases:
        put(page, before)
        if what.islower():
            page.click(f"[data-tool={what}]")
        else:
            page.keyboard.press(what)
        assert text_of(page) == after, (what, before)


def test_a_tool_is_taken_back_by_undo_and_done_again_by_redo(open_page: Any) -> None:
    page = editor(open_page)
    page.keyboard.type("word")
    page.keyboard.press("Control+a")
    page.click("[data-tool=bold]")
    assert page.input_value("#body") == "**word**"
    page.click("[data-tool=undo]")
    assert page.input_value("#body") == "word"
    page.click("[data-tool=redo]")
    assert page.input_value("#body") == "**word**"
    page.keyboard.press("Control+z")
    assert page.input_value("#body") == "word"


def test_the_toolbar_is_one_stop_with_arrows_within(open_page: Any) -> None:
    page = editor(open_page)
    focused = "document.activeElement.dataset.tool ?? document.activeElement.id"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(focused) == "bold"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "heading"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "preview"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "body"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(focused) == "preview", "the bar remembers where one was"
    tools = page.eval_on_selector_all(
        ".toolbar button", "all => all.map(one => [one.title, one.getAttribute('aria-label')])"
    )
    assert all(label and title.startswith(label) and "(" in title for title, label in tools)


def test_escape_then_tab_leaves_a_list(open_page: Any) -> None:
    page = editor(open_page)
    put(page, "~- one<>")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.input_value("#body") == "~- one"
    assert page.evaluate("document.activeElement.id") != "body"


def test_tab_leaves_the_text_where_there_is_no_list(open_page: Any) -> None:
    page = editor(open_page)
    put(page, "words<>")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") != "body"
    assert page.input_value("#body") == "words"


def test_ctrl_s_saves(open_page: Any, server: WikiServer) -> None:
    page = editor(open_page)
    page.keyboard.type("saved by a key")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == "saved by a key"
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('wikka-copy')).length") == 0


def test_a_picture_is_asked_for_by_its_address(open_page: Any) -> None:
    page = editor(open_page)
    page.route("https://example.org/**", lambda route: route.fulfill(content_type="image/svg+xml", body="<svg/>"))
    page.keyboard.type("here: ")
    page.click("[data-tool=picture]")
    page.fill("dialog [name=address]", "https://example.org/a.png")
    page.fill("dialog [name=words]", 'a "boat"')
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    assert text_of(page) == 'here: {{image url="https://example.org/a.png" alt="a ”boat”"}}<>'
    page.keyboard.press("Control+Alt+0")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert page.evaluate("document.activeElement.id") == "body"


def test_names_of_pages_are_completed(open_page: Any, server: WikiServer) -> None:
    for name in ("Tidal rivers", "Tidal|odd]name"):
        server.wiki.save(name, "words", author="a", base=0)
    page = editor(open_page)
    page.keyboard.type("see [[tid")
    page.wait_for_selector("#completions [role=option]")
    assert page.get_attribute("#body", "aria-activedescendant") == "completion-0"
    assert page.inner_text("#completions [aria-selected=true]") == "Tidal rivers"
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#body", "aria-activedescendant") == "completion-1"
    page.keyboard.press("Enter")
    assert text_of(page) == "see [[Tidal&#124;odd&#93;name]]<>"
    page.keyboard.type(" [[tid")
    page.wait_for_selector("#completions [role=option]")
    page.keyboard.press("Escape")
    assert page.is_hidden("#completions")
    assert page.get_attribute("#body", "aria-activedescendant") is None
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") != "body"


def test_a_page_that_is_chosen_stays_so_when_a_later_answer_comes(open_page: Any, server: WikiServer) -> None:
    for name in ("Tidal flats", "Tidal rivers"):
        server.wiki.save(name, "words", author="a", base=0)
    page = editor(open_page)
    page.keyboard.insert_text("[[tid")
    page.wait_for_selector("#completion-1")
    page.keyboard.press("ArrowDown")
    chosen = page.inner_text("#completions [aria-selected=true]")
    page.evaluate("document.getElementById('completion-1').dataset.earlier = ''")
    page.keyboard.insert_text("a")
    page.wait_for_selector("#completion-1:not([data-earlier])")
    assert page.inner_text("#completions [aria-selected=true]") == chosen
    page.keyboard.press("Enter")
    assert text_of(page) == f"[[{chosen}]]<>"


# Text whose input the list has not heard of yet, as on a slow machine.
TYPED_BEHIND_THE_LIST = """(text) => {
    const area = document.getElementById("body");
    area.setRangeText(text, area.selectionStart, area.selectionStart, "end");
}"""


def test_actions_are_completed(open_page: Any) -> None:
    page = editor(open_page)
    page.keyboard.type("{{backl")
    page.wait_for_selector("#completions [role=option]")
    page.keyboard.press("Tab")
    assert text_of(page) == "{{backlinks<>}}"
    page.fill("#body", "")
    page.keyboard.type("{{")
    page.wait_for_selector("#completions [role=option]")
    page.evaluate(TYPED_BEHIND_THE_LIST, "backl")
    page.keyboard.press("Tab")
    assert text_of(page) == "{{backlinks<>}}", "also when more was typed than the list knows of"
    page.fill("#body", "")
    page.keyboard.type("{{")
    page.wait_for_selector("#completions [role=option]")
    page.evaluate(TYPED_BEHIND_THE_LIST, "none")
    page.keyboard.press("Tab")
    assert text_of(page) == "{{none<>", "nothing of the list fits"
    page.fill("#body", "")
    page.keyboard.type("{{countp")
    page.wait_for_selector("#completions [role=option]")
    page.click("#completions [role=option]")
    assert text_of(page) == "{{countpages}}<>"


RICH = """<meta charset=utf-8><b style="font-weight:normal"><h2>A head</h2>
<p>Some <b>bold</b>, <i>italic</i> and <span style="font-weight:700">heavy</span> words,
<a href="https://example.org/a b">a link</a> and <a href="javascript:window.bad=1">none</a> ** stars.</p>
<ul><li>one<ul><li>two</li></ul></li><li>three</li></ul><ol><li>first</li></ol>
<table><tr><th>A</th><th>B</th></tr><tr><td>1|2</td><td><b>x</b></td></tr></table>
<pre>code
 here</pre><img src=x onerror="window.bad=1"><script>window.bad=1</script><style>p{}</style></b>"""
AS_WIKKA = """=====A head=====

Some **bold**, //italic// and **heavy** words, [[https://example.org/a%20b | a link]] and none ""**"" stars.

~- one
~~- two
~- three

~1) first

|=|A|=|B||
||1|2||**x**||

%%
code
 here
%%"""
AS_MARKDOWN = """## A head

Some **bold**, _italic_ and **heavy** words, [a link](https://example.org/a%20b) and none \\*\\* stars.

- one
  - two
- three

1. first

| A | B |
| --- | --- |
| 1\\|2 | **x** |

```
code
 here
```"""


@pytest.mark.parametrize(("markup", "wanted"), [("wikka", AS_WIKKA), ("markdown", AS_MARKDOWN)])
def test_pasted_rich_text_becomes_markup_and_runs_nothing(open_page: Any, markup: str, wanted: str) -> None:
    page = editor(open_page)
    page.select_option("[name=format]", markup)
    page.focus("#body")
    assert paste(page, html=RICH, plain="A head ...")
    assert page.input_value("#body") == wanted
    assert page.evaluate("typeof window.bad") == "undefined"
    page.keyboard.press("Control+z")
    assert page.input_value("#body") == ""


def test_a_pasted_sheet_becomes_a_table_and_an_address_a_link(open_page: Any) -> None:
    page = editor(open_page)
    assert paste(page, plain="Name\tPrice\nTea\t2\n")
    assert page.input_value("#body") == "|=|Name|=|Price||\n||Tea||2||"
    put(page, "see <this page> now")
    assert paste(page, plain="https://example.org/x")
    assert text_of(page) == "see [[https://example.org/x | this page]]<> now"
    put(page, "<>")
    assert not paste(page, plain="\tindented\n\tcode"), "plain text is the browser's"
    assert not paste(page, html="<div>only <span>words</span></div>", plain="only words")


def test_the_preview_follows_the_text(open_page: Any) -> None:
    page = editor(open_page)
    page.keyboard.type('======Title======\nwith **bold** words, ""<b id="body">x</b>"" and HomePage')
    page.wait_for_selector(".preview-scroll strong")
    assert page.inner_text(".preview-scroll h1").startswith("Title")
    page.wait_for_selector(".preview-scroll a[target=_blank]")
    assert page.evaluate("document.querySelectorAll('[id=body]').length") == 1
    page.click("[data-tool=preview]")
    assert page.is_hidden(".preview-scroll")
    page.reload()
    page.wait_for_selector(".toolbar")
    assert page.is_hidden(".preview-scroll"), "that it is off is remembered"
    page.focus("#body")
    page.keyboard.press("Control+Alt+p")
    assert page.is_visible(".preview-scroll")


def test_text_and_preview_are_scrolled_together(open_page: Any, server: WikiServer) -> None:
    parts = [f"=====Part {n}=====\n" + "words of a line that is long enough to be broken " * (n % 5) for n in range(60)]
    server.wiki.save("Long", "\n".join(parts), author="a", base=0)
    page = editor(open_page, "Long", viewport={"width": 1280, "height": 800})
    page.wait_for_selector("#preview-Part_59, .preview-scroll h2 >> nth=59")
    end = page.eval_on_selector(".preview-scroll", "one => one.scrollHeight - one.clientHeight")
    page.evaluate("document.getElementById('body').scrollTop = 1e6")
    becomes(page, ".preview-scroll", "scrollTop", end)
    page.evaluate("document.querySelector('.preview-scroll').scrollTop = 0")
    becomes(page, "#body", "scrollTop", 0)


def test_on_a_phone_nothing_scrolls_sideways_and_saving_is_in_sight(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Long", "words\n" * 2_000 + "x" * 500, author="a", base=0)
    page = editor(open_page, "Long", **PHONE)
    page.keyboard.type("[[lon")
    page.wait_for_selector("#completions [role=option]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for place in (0, 300, 1e6):
        page.evaluate("(to) => scrollTo(0, to)", place)
        box = page.locator("button[name=save]").bounding_box()
        assert 0 <= box["y"] <= 844 - box["height"], place


def test_who_else_is_here_comes_with_the_drafts(open_page: Any, server: WikiServer) -> None:
    one, two = editor(open_page), editor(open_page)
    one.keyboard.type("one")
    one.click("button[name=keep]")
    one.wait_for_selector(".kept-status:text-matches('^Kept')")
    two.keyboard.type("two")
    two.click("button[name=keep]")
    two.wait_for_selector(".banner.others:has-text('is editing')")


def test_a_conflict_takes_the_place_of_the_editor_and_can_be_saved(open_page: Any, server: WikiServer) -> None:
    server.wiki.save("Draft", "one line", author="x", base=0)
    page = editor(open_page)
    server.wiki.save("Draft", "one line of theirs", author="x", base=1)
    page.fill("#body", "one line of mine")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".conflict")
    page.wait_for_selector(".toolbar")
    assert page.locator(".toolbar").count() == 1
    page.fill("#body", "one line of both")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".provenance")
    assert server.wiki.page("Draft").body == "one line of both"

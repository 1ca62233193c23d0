"""Every action in a page, and the table of docs/wiki.md that says which there are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port import rendering
from wikka_port.actions import ACTIONS
from wikka_port.actions.unsupported_actions import LEFT_OUT, REPLACED, UNSUPPORTED
from wikka_port.colours import INKS, nearest
from wikka_port.handlers import HANDLERS
from wikka_port.limits import ACTION_CELLS_MAX, INCLUDED_CHARS_MAX
from wikka_port.markup.compiler import INLINE_ACTIONS
from wikka_port.rights.rules import PageRights, Privilege

PAGES = Path(__file__).parents[4] / "docs" / "wiki.md"
STYLE = Path(__file__).parents[4] / "wikka_port" / "static" / "wiki.css"
OWN = {"toc", "redirect"}  # of the markup itself
ROW = re.compile(r"^\| `([a-z_.]+)` \| (there|replaced by|left out) \| (.*) \|$", re.MULTILINE)

# What is typed -> what a reader sees of it.  The page is called "Page"; "Member" links to "Cat", which is missing.
SHOWN = {
    "{{acls}}|": "|",
    "{{countowned}}": "<p>0</p>",
    "{{countusers}}": "<p>0</p>",
    "{{lastusers}}": '<ul class="authors">',
    "{{mychanges}}": "Sign in to see what is yours",
    "{{mypages}}": "Sign in to see what is yours",
    "{{ownedpages}}": "Sign in to see what is yours",
    "{{owner}}": "<p>Nobody</p>",
    "{{ownerlink}}": "Nobody owns this page",
    "{{attachments}}": "This page has no files. ",
    "{{files page='Member'}}": '<a href="/Member/files" rel="nofollow">All files of Member</a>',
    "{{gallery}}": "This page has no pictures. ",
    "{{backlinks page='Cat'}}": 'href="/Member"',
    "{{calendar year='2026' month='2'}}": "<caption>February 2026</caption>",
    "{{category page='Cat'}}": 'href="/Member"',
    "{{checklinks page='Member'}}": 'href="/Cat/edit"',
    "{{clonelink}}": '<a href="/Page/clone">Copy this page</a>',
    "{{color c='#e00' text='<b>' bg='yellow'}}": '<span class="ink-red paper-yellow">&lt;b&gt;</span>',
    "{{colour hex='navy' text='x'}}": '<span class="ink-blue">x</span>',
    "{{contributors page='Member'}}": '<span class="author">Ada</span> <span class="count">2</span>',
    "{{countcomments}} comments": "0 comments",
    "a{{nocomments}}b": "<p>ab",
    "{{recentcomments}}": "There are no comments yet.",
    "{{recentlycommented}}": "There are no comments yet.",
    "{{highscores rank='comments'}}": "Nobody has written here yet.",
    "{{countedits}} edits": "4 edits",
    "{{countpages}} pages": "3 pages",
    "a{{delete}}b": "<p>ab",
    "a{{deletelink label='Away'}}b": "<p>ab",
    "{{edit}}": '<a href="/Page/edit" rel="nofollow">Edit</a>',
    "{{editlink label='Go <on>'}}": '<a href="/Page/edit" rel="nofollow">Go &lt;on&gt;</a>',
    "{{highscores}}": '<td>1</td><td><span class="author">Ada</span></td><td>3</td><td>75.0 %</td>',
    "{{highscores style='simple'}}": '<span class="author">Ada</span> <span class="count">3</span>',
    "{{highscores rank='pages'}}": '<th scope="col">Pages begun</th>',
    "{{highscores rank='pages' style='simple'}}": '<span class="author">Ada</span> <span class="count">2</span>',
    "{{history}}": '<a href="/Page/history">History</a>',
    "{{historylink}}": '<a href="/Page/history">All changes of this page</a>',
    "{{homepage}}": '<a href="/">HomePage</a>',
    "{{homepagelink label='Home'}}": '<a href="/">Home</a>',
    "{{image url='/a.png' alt='<' width='20' link='Cat'}}":
        '<a href="/Cat"><img src="/a.png" alt="&lt;" loading="lazy" referrerpolicy="no-referrer" width="20"></a>',
    "{{include page='Part' who='Ada'}}": "<p>Dear Ada, dear you,",
    "{{interwikilist}}": "https://en.wikipedia.org/wiki/",
    "{{lastedit}}": "Last edited 2025-06-15",
    "{{lasteditauthor}} was it": "<p>Eve was it",
    "{{lasteditnotes}}!": "<p>a &lt;note&gt;!",
    "{{license type='CC-BY'}}": 'href="https://creativecommons.org/licenses/by/4.0/">Creative Commons BY 4.0</a>',
    "{{license type='C' link='Cat'}}": '<a rel="license" href="/Cat">All rights reserved</a>',
    "{{logo}}": 'alt="Wiki" width="32"',
    "{{logout}}": '<a href="/-/logout">Sign out</a>',
    "{{newpage}}": '<form class="inline-form" action="/-/newpage">',
    "{{orphanedpages}}": 'href="/Part"',
    "{{pageindex}}": "letter-head",
    "{{pageindex showjustletters='Cat'}}": '<a href="/Cat?letter=m" rel="nofollow">M</a>',
    "{{pageindex showjustletters='1'}}": '<a href="/-/pageindex?letter=m" rel="nofollow">M</a>',
    "{{randompage title='Any'}}": ">Any</a>",
    "{{recentchanges limit='3'}}": "entry-name",
    "{{recentchangesrss}}": '<a href="/-/recentchanges.xml">Feed of changes</a>',
    "Revision {{rev}}.": "Revision 1.",
    "{{revertlink}}": '<a href="/Page/revisions">Go back to an older revision</a>',
    "{{revisionlink}}": '<a href="/Page/revisions">Revisions of this page</a>',
    "{{revisions}}": '<a href="/Page/revisions">Revisions</a>',
    "{{revisionsrss}}": '<a href="/Page/revisions.xml">Feed of this page</a>',
    "{{search}}": 'action="/-/search"',
    "{{searchform phrase='<a>'}}": 'value="&lt;a&gt;"',
    "{{table columns='2' cells='A;<b>;###;d'}}": "<tr><td>A</td><td>&lt;b&gt;</td></tr>\n<tr><td></td><td>d</td></tr>",
    "{{textsearch}}": 'action="/-/search"',
    "{{textsearchexpanded}}": 'action="/Page"',
    "{{textsearchexpanded phrase='elephant'}}": "No page has all these words",
    "{{textsearchexpanded phrase='dear'}}": '<p class="passage"><mark>Dear</mark>',
    "It is {{time}}": " UTC",
    "======A======\n{{title}}": "<p>A</p>",
    "{{today}}": "<p>20",
    "{{url}}": "<p>/Page</p>",
    "{{usersettings}}": '<a href="/-/settings">Settings</a>',
    "{{wantedpages}}": 'href="/Cat/edit"',
    "{{who}}": "<p>Visitor ",
    "{{whoami}}": "<p>Visitor ",
    "{{wikkachanges}}": '<a href="/-/recentchanges">Recent changes</a>',
    "{{wikkaname}}": "<p>Wiki</p>",
    "{{wikkaversion}}": "<p>0.",
}  # fmt: skip
REFUSED = {
    "{{calendar month='13'}}": "should be a number",
    "{{pageindex showjustletters='_'}}": "could not be shown",
    "{{color c='no colour' text='x'}}": "is no colour",
    "{{color text='x'}}": "should be a colour",
    "{{image url='javascript:alert(1)'}}": "should be the address of a picture",
    "{{image url='/a.png' width='x'}}": "should be a number",
    "{{include}}": "should be the name of a page",
    "{{include page='Nowhere'}}": "there is no page Nowhere",
    "{{include page='Page'}}": "would include itself",
    "{{license type='<x>'}}": "should be one of C",
    "{{table columns='2'}}": "should be cells",
    "{{table columns='many' cells='a'}}": "should be a number from 1 to 100",
    "{{table cells='" + ";" * ACTION_CELLS_MAX + "'}}": "a table has 2,000 cells at most",
}


@pytest.fixture
def web() -> WikiClient:
    return made()


def made() -> WikiClient:
    client = WikiClient()
    client.wiki.save("Member", "[[Page]]", author="Ada", base=0)
    client.wiki.save("Member", "[[Cat]] [[Page]]", author="Ada", base=1)
    client.wiki.save("Part", "Dear {{{who}}}, dear {{{other|you}}}, ==Head==", author="Ada", base=0)
    return client


def shown(web: WikiClient, typed: str) -> str:
    web.wiki.save("Page", typed, author="Eve", note="a <note>", base=0)
    answer = web.get("/Page")
    assert answer.status_code == 200
    return answer.text.partition('<article class="content">')[2].partition("</article>")[0]


@pytest.mark.parametrize("typed", SHOWN)
def test_an_action_shows_what_it_is_for(web: WikiClient, typed: str) -> None:
    text = shown(web, typed)
    assert SHOWN[typed] in text
    assert "could not be shown" not in text


@pytest.mark.parametrize("typed", REFUSED)
def test_an_action_says_what_is_wrong_with_it(web: WikiClient, typed: str) -> None:
    assert REFUSED[typed] in shown(web, typed)


def test_every_action_has_a_case() -> None:
    assert set(re.findall(r"\{\{(\w+)", " ".join(SHOWN))) == ACTIONS.keys()


def table(title: str) -> dict[str, tuple[str, str]]:
    part = PAGES.read_text().partition(f"\n{title}: ")[2]
    for end in ("\n\nActions: ", "\n\nOwn actions: ", "\n## "):
        part = part.partition(end)[0]
    return {name: (state, said) for name, state, said in ROW.findall(part)}


def test_the_table_of_actions_is_what_there_is() -> None:
    rows = table("Actions")
    assert len(rows) == 97
    by_state = {state: {name for name, row in rows.items() if row[0] == state} for state, _ in rows.values()}
    own = table("Own actions")
    assert not own.keys() & rows.keys(), "WikkaWiki has an action of that name"
    assert {state for state, _ in own.values()} <= {"there"}
    assert by_state["there"] | own.keys() == ACTIONS.keys() | OWN
    assert by_state["replaced by"] == REPLACED.keys()
    assert by_state["left out"] == LEFT_OUT.keys()
    assert all(said for state, said in rows.values() if state != "there")
    assert not UNSUPPORTED.keys() & ACTIONS.keys()


@pytest.mark.parametrize("title", ["Handlers", "Actions"])
def test_the_counts_above_the_tables_are_those_of_their_rows(title: str) -> None:
    counted = Counter(state for state, _ in table(title).values())
    said = f"{title}: {counted['there']} there, {counted['replaced by']} replaced by, {counted['left out']} left out.\n"
    assert f"\n{said}" in PAGES.read_text()


def test_an_action_of_the_wikis_own_has_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "wiki.md"
    text = PAGES.read_text()
    begin = text.index("Own actions: ")
    known = ACTIONS.keys() - {"gallery"}
    monkeypatch.setattr("tests.unit.wikka_port.web.test_actions.ACTIONS", {name: ACTIONS[name] for name in known})
    row = "Own actions: 1.\n\n| action | here | |\n|---|---|---|\n| `moonphase` | there | of today |\n"
    page.write_text(text[:begin] + row + text[text.index("\n## ", begin) :])
    monkeypatch.setattr("tests.unit.wikka_port.web.test_actions.PAGES", page)
    assert table("Own actions") == {"moonphase": ("there", "of today")}
    with pytest.raises(AssertionError):
        test_the_table_of_actions_is_what_there_is()
    monkeypatch.setattr("tests.unit.wikka_port.web.test_actions.ACTIONS", {**dict.fromkeys(known), "moonphase": None})
    test_the_table_of_actions_is_what_there_is()


BLOCK = re.compile(r"<(?:p|div|ul|ol|dl|table|form|section|nav|aside|pre|figure|details|blockquote|h[1-6])\b")


def test_inline_actions_are_actions_whose_html_stands_within_a_line() -> None:
    """An action is in INLINE_ACTIONS if and only if it returns no block."""
    assert ACTIONS.keys() | UNSUPPORTED.keys() >= INLINE_ACTIONS, "a name that no action has"
    blocks: dict[str, set[bool]] = {}

    def noting(name: str, action: Any) -> Any:
        def noted(call: Any) -> str:
            html = action.run(call)
            if html:
                blocks.setdefault(name, set()).add(BLOCK.search(html) is not None)
            return str(html)

        return action._replace(run=noted)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rendering, "ACTIONS", {name: noting(name, action) for name, action in ACTIONS.items()})
        for typed in SHOWN:
            shown(made(), typed)
    inline = {name for name, kinds in blocks.items() if kinds == {False}}
    assert {name for name, kinds in blocks.items() if True in kinds} & INLINE_ACTIONS == set()
    assert inline - INLINE_ACTIONS == set(), "words within a line, which would stand in a paragraph of their own"


def test_the_table_of_handlers_is_what_there_is() -> None:
    rows = table("Handlers")
    assert len(rows) == 31
    there = {name for name, (state, _) in rows.items() if state == "there"}
    assert there <= HANDLERS.keys()
    assert not (rows.keys() - there) & HANDLERS.keys(), "a handler that is there should say so"
    assert all(said for state, said in rows.values() if state != "there")


def test_pages_that_include_each_other_end(web: WikiClient) -> None:
    web.wiki.save("A", "a {{include page='B'}}", author="a", base=0)
    web.wiki.save("B", "b {{include page='A'}}", author="a", base=0)
    text = web.get("/A").text
    assert "the page A would include itself" in text
    for n in range(8):
        web.wiki.save(f"Deep{n}", f"{n} {{{{include page='Deep{n + 1}'}}}}", author="a", base=0)
    assert "4 deep at most" in web.get("/Deep0").text


def test_an_included_page_that_redirects_stands_for_the_page_behind_it(web: WikiClient) -> None:
    for name, text in (("Old", "#REDIRECT [[Part|]]"), ("Loop", "#REDIRECT [[Page|]]"), ("Lost", "#REDIRECT [[No|]]")):
        web.wiki.save(name, text, author="a", base=0)
    text = shown(web, "{{include page='Old' who='Ada'}} {{include page='Loop'}} {{include page='Lost'}}")
    for part in ("Dear Ada, dear you,", "the page Page would include itself", "there is no page No"):
        assert part in text


def test_includes_are_bounded_over_all_pages_of_a_view(web: WikiClient) -> None:
    for n in range(4):
        calls = "".join(f"{{{{include page='Fan{n + 1}' x='{k}'}}}}" for k in range(20))
        web.wiki.save(f"Fan{n}", f"{n} {calls}", author="a", base=0)
    web.wiki.save("Fan4", "leaf", author="a", base=0)
    before = len(web.wiki.calls)
    assert "30 pages are included at most" in web.get("/Fan0").text
    assert len(web.wiki.calls) - before < 200


def test_pages_that_include_each_other_often_are_bounded_together(web: WikiClient) -> None:
    """The same call is run once; shown fifty times on each of four pages it would be gigabytes."""
    web.wiki.save("Fan3", "word " * 200, author="a", base=0)
    for n in range(3):
        web.wiki.save(f"Fan{n}", f"{{{{include page='Fan{n + 1}'}}}}\n" * 50, author="a", base=0)
    assert web.get("/Fan2").text.count("word") == 50 * 200
    answer = web.get("/Fan0")
    assert "more than 3,000,000 characters" in answer.text
    assert len(answer.data) < 2 * INCLUDED_CHARS_MAX


def test_what_a_call_gives_to_an_included_page_is_bounded(web: WikiClient) -> None:
    web.wiki.save("Part", "{{{a}}}{{{b|else}}}" * 1_000, author="a", base=1)
    few = shown(web, "{{include page='Part' a='yyyyy'}}")
    web.wiki.save("Page", f"{{{{include page='Part' a='{'y' * 1_000}'}}}}", author="Eve", base=1)
    many = web.get("/Page").text
    assert few.count("yyyyyelse") == 1_000
    assert len(many) < 20_000
    assert "with what the call gives" in many


def test_an_included_page_brings_no_ids(web: WikiClient) -> None:
    text = shown(web, "==Head==\n{{include page='Part'}}")
    assert text.count('id="s-head"') == 1
    assert "<h5>Head</h5>" in text


def test_an_included_page_keeps_its_tags_whole(web: WikiClient) -> None:
    """Ids were taken out of text and values, too: that let an author's text become attributes of the page."""
    text = '""<span title="x id=">y</span> " z" onmouseover=alert(1) <b title=" id=" class="b c">w</b>""'
    web.wiki.save("Part", text, author="Eve", base=1)
    alone = web.get("/Part").text.partition('<article class="content">')[2].partition("</article>")[0]
    assert "onmouseover" in alone
    assert alone.strip() in shown(web, "{{include page='Part'}}")


def test_places_in_an_included_page_are_those_of_the_page(web: WikiClient) -> None:
    web.wiki.save(
        "Part", '==Head== words[^note^] [[#Head | up]] ""<a id="here" href="#here">x</a>""', author="a", base=1
    )
    text = shown(web, "own[^first^] {{include page='Part'}}")
    assert re.findall(r'id="([nr]-\d)"', text) == ["r-1", "n-1"], "those of the page that is read"
    assert re.findall(r'href="([^"]*#[^"]*)"', text) == [
        "#n-1", "/Part#n-1", "/Part#s-head", "/Part#here", "/Part#r-1", "#r-1",
    ]  # fmt: skip


def asked(web: WikiClient, query: str) -> str:
    return web.get(f"/Page?{query}").text.partition('<article class="content">')[2].partition("</article>")[0]


def test_a_calendar_goes_to_the_months_around_by_the_address(web: WikiClient) -> None:
    assert shown(web, "{{calendar}}").count("nofollow") == 2
    around = asked(web, "year=2026&month=1")
    assert "<caption>January 2026</caption>" in around
    for link in (
        'href="/Page?year=2025&amp;month=12" rel="prev nofollow">← December 2025',
        "month=2",
        "February 2026 →",
    ):
        assert link in around
    present = asked(web, "").partition("</caption>")[0]
    assert f"{present}</caption>" in asked(web, "year=0&month=13")
    assert f"{present}</caption>" in asked(web, f"year={'9' * 5000}&month=x")
    assert 'rel="prev' not in asked(web, "year=1&month=1")
    assert 'rel="next' not in asked(web, "year=9998&month=12")
    assert web.get("/Page?year=2026").headers["X-Robots-Tag"] == "noindex"


def test_a_calendar_of_a_month_stays_where_it_is(web: WikiClient) -> None:
    assert "nofollow" not in shown(web, "{{calendar month='2'}}")
    assert "February" in asked(web, "year=2026&month=3")


def test_a_calendar_of_an_included_page_turns_the_page_that_is_read(web: WikiClient) -> None:
    web.wiki.save("Month", "{{calendar}}", author="a", base=0)
    shown(web, "{{include page='Month'}}")
    assert 'href="/Page?year=2025&amp;month=12"' in asked(web, "year=2026&month=1")
    assert "nofollow" not in web.get("/Month/print").text.partition("<article")[2].partition("</article>")[0]


def test_letters_lead_to_the_index_of_a_page(web: WikiClient) -> None:
    assert 'href="/Member"' in shown(web, "{{pageindex}}")
    only = asked(web, "letter=p")
    assert ('href="/Part"' in only, 'href="/Member"' in only) == (True, False)


def test_a_search_in_a_page_finds_what_its_reader_asks_for(web: WikiClient) -> None:
    assert "passage" not in shown(web, "{{textsearchexpanded}}")
    found = asked(web, "phrase=dear")
    assert 'value="dear"' in found
    assert '<a class="hit" href="/Part">' in found
    web.wiki.rights.change("Part", PageRights(""), "Root", {Privilege.READ: "Root"})
    assert "hit" not in asked(web, "phrase=dear")


def test_who_may_not_write_a_page_is_led_to_its_source(web: WikiClient) -> None:
    shown(web, "{{edit}} {{editlink label='Go on'}}")
    web.wiki.rights.change("Page", PageRights(""), "Root", {Privilege.WRITE: "Root"})
    text = asked(web, "")
    assert text.count('<a href="/Page/showcode" rel="nofollow">Source</a>') == 2
    assert "/edit" not in text


@pytest.mark.parametrize(
    ("attributes", "listed"),
    [('levels="h2,h4"', ["B", "D"]), ('levels="2-3"', ["B", "C"]), ('levels="3"', ["C"]), ("", ["B", "C", "D"])],
)
def test_the_levels_of_a_table_of_contents(web: WikiClient, attributes: str, listed: list[str]) -> None:
    text = shown(web, f"======A======\n=====B=====\n====C====\n===D===\n{{{{toc {attributes}}}}}")
    nav = text.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r'<a href="#[^"]*">(\w)</a>', nav) == listed


def test_a_table_of_contents_without_links(web: WikiClient) -> None:
    text = shown(web, "======A======\n=====B & b=====\n{{toc links='0'}}")
    assert "<ul><li>B &amp; b</li></ul></nav>" in text


@pytest.mark.parametrize("key", ["target", "to", "page"])
def test_a_redirect_of_every_spelling(web: WikiClient, key: str) -> None:
    web.wiki.save("Led", f"{{{{redirect {key}='Part' temporary='yes'}}}}", author="a", base=0)
    assert 'Redirected from <a href="/Led?redirect=no">' in web.get("/Led").text


def test_the_contents_are_of_the_page_alone(web: WikiClient) -> None:
    """None of a page that is included, of a preview of a section, and on paper, where nobody unfolds them."""
    three = "=====B=====\n====C====\n=====D====="
    web.wiki.save("Long", f"======A======\n{three}", author="a", base=0)
    fold = '<details class="toc" id="toc">'
    assert web.get("/Long").text.count(fold) == web.get("/Long/html").text.count(fold) == 1
    assert fold not in web.get("/Long/print").text
    assert "details" not in shown(web, "{{include page='Long'}} {{include page='Long' with='words'}}")
    form = {**web.form("/Long/edit"), "name": "Long", "body": three}
    assert fold in web.post("/-/preview", form).text
    assert fold not in web.post("/-/preview", {**form, "section": "s-b"}).text


def channel(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    red, green, blue = (channel(int(colour[place : place + 2], 16)) for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_colour_can_be_read_in_light_and_dark() -> None:
    """WCAG 2.2 AA: 4.5 to 1, on the paper and on every coloured paper."""
    light, _, rest = STYLE.read_text().partition("@media (prefers-color-scheme: dark)")
    for part in (light, rest):
        values = dict(re.findall(r"--([a-z\-]+): (#[0-9a-f]{6});", part.partition("}")[0]))
        for ink in INKS:
            colour = values[{"grey": "soft", "ink": "ink"}.get(ink, f"ink-{ink}")]
            for paper in ("paper", "sunken", "removed", "warn", "added"):
                assert contrast(colour, values[paper]) >= 4.5, (ink, paper)
    assert all(f".ink-{ink} {{" in STYLE.read_text() for ink in INKS)


@pytest.mark.parametrize(
    ("typed", "ink"),
    [("red", "red"), ("#FF0000", "red"), ("#00f", "blue"), ("008000", "green"), ("#111111", "ink"), ("#888", "grey"),
     ("#f0f", "pink"), ("url(x)", None), ("", None), ("expression(1)", None)],
)  # fmt: skip
def test_a_colour_is_the_nearest_that_can_be_read(typed: str, ink: str | None) -> None:
    assert nearest(typed) == ink


WIKKA_DOC = "/*noinclude*/\n[[Doc]] {{{1}}}\n/*/noinclude*/"
STRONG = "<strong>Ada &amp; Bob</strong>"
MARKDOWN_DOC = "<!--noinclude-->\n\n[[Doc]] {{{1}}}\n\n<!--/noinclude-->"


@pytest.mark.parametrize(
    ("markup", "text", "read", "included"),
    [
        ("wikka", f"**{{{{{{1|you}}}}}}**\n{WIKKA_DOC}", ["<strong>{{{1|you}}}", "Doc"], STRONG),
        ("wikka", f"{WIKKA_DOC}\n/*includeonly\nHi {{{{{{1}}}}}}\n*/", ["Doc", "{{{1}}}"], "Hi Ada &amp; Bob"),
        ("markdown", f"**{{{{{{1|you}}}}}}**\n\n{MARKDOWN_DOC}\n", ["<strong>{{{1|you}}}"], STRONG),
        ("markdown", f"{MARKDOWN_DOC}\n\n<!--includeonly\nHi {{{{{{1}}}}}}\n-->\n", ["Doc"], "Hi Ada &amp; Bob"),
        ("wikka", "Hi {{{1}}} /* c */ /*includeonly open", ["Hi {{{1}}}", "/*includeonly open"], "/*includeonly open"),
        ("wikka", "Hi {{{1}}} /*noinclude*/ Doc, open", ["Hi {{{1}}}", "Doc, open"], "Hi Ada &amp; Bob"),
        ("wikka", "Hi /*includeonlyx {{{1}}} */", ["<p>Hi"], "<p>Hi"),
    ],
)
def test_parts_of_a_template_are_for_its_readers_or_for_pages_that_include_it(
    web: WikiClient, markup: str, text: str, read: list[str], included: str
) -> None:
    web.wiki.save("Template", text, author="Ada", base=0, markup=markup)
    alone = web.get("/Template").text.partition('<article class="content">')[2].partition("</article>")[0]
    assert all(part in alone for part in read), alone
    assert ("Hi" in alone) == ("Hi" in "".join(read))
    found = shown(web, "{{include page='Template' 1='Ada & Bob'}}")
    assert included in found
    assert "Doc" not in found
    assert "noinclude" not in found
    assert "could not be shown" not in found


def test_a_parameter_is_no_action(web: WikiClient) -> None:
    for markup in ("wikka", "markdown"):
        web.wiki.save(f"In {markup}", "a {{{who}}} b {{who}}", author="Ada", base=0, markup=markup)
        text = web.get(f"/In_{markup}").text
        assert "a {{{who}}} b Visitor" in text

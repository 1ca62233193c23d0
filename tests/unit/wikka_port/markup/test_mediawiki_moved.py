"""What a reader who holds moved pages of MediaWikis beside their originals would miss, fault by fault."""

from __future__ import annotations

import re
import time

import pytest

from wikka_port.limits import IMPORTED_INCLUDES_MAX
from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import Converted, Dialect, convert

NAMES = {
    "": 0, "Talk": 1, "User": 2, "User talk": 3, "Wikipedia": 4, "Wikipedia talk": 5, "File": 6, "MediaWiki": 8,
    "Template": 10, "Help": 12, "Category": 14,
}  # fmt: skip
BASE = "https://aa.wikipedia.org/wiki/Main_Page"
TEMPLATES = {"Template:Hello": "Hello {{{1|you}}}", "Template:B/doc": "documented"}
DIALECT = Dialect.of(NAMES, base=BASE, site="Wikipedia", templates=TEMPLATES)


def made(wikitext: str, title: str = "Page", dialect: Dialect = DIALECT) -> Converted:
    return convert(wikitext, namespaces=dialect, title=title)


def text(wikitext: str, title: str = "Page", dialect: Dialect = DIALECT) -> str:
    """The converted text without the table of calls."""
    return made(wikitext, title, dialect).text.partition("|!|(c:folded)||")[0].rstrip("\n")


def seen(ours: str) -> str:
    page = render(parse(ours, autolink=False), existing=set())
    return " ".join(re.sub("<[^>]+>", "", page.partition("<details")[0]).split())


# -- tables


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{|\n|-\n{|\n| a [[B]]\n|}\n|}\nend", "||a [[B]]||\n\nend"),
        ("{|\n{|\n| a || b\n|}\n|}", '||""<table><tr><td>a</td><td>b</td></tr></table>""||'),
        ("{|\n|-\n{|\n|-\n|}\n|}", ""),
        ("{|\n| a\n{|\n| [[b]]\n|} behind\n|}", "||a --- [[B | b]] --- behind||"),
        ("{|\n| a\n{|\n| [[b]]\n{|\n| c\n|} deep\n|}\n|}", "||a --- [[B | b]] --- c --- deep||"),
    ],
)
def test_a_table_in_a_table_before_its_first_cell_is_there(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{|\n| b\n|}</div><includeonly>x</includeonly>", "||b||"),
        ("{|\n| b\n|}<br clear=all/>", "||b||"),
        ("{|\n| b\n|} {{clear}}\nc", "||b||\n\nc"),
        ("{|\n| b\n|} text after", "||b||\n\ntext after"),
        ("{|\n| b\n|}* after\nmore", "||b||\n\n* after more"),
        ("{|\n| b\n|}== after ==", '||b||\n\n""=="" after ""==""'),
        (":{|\n| b\n:|} after", "||b||\n\nafter"),
        ("{|\n| b\n|}{|\n| c\n|}", "||b||\n\n||c||"),
        ("{|\n| b\n|}}\n|}", '||b||""}}""||'),
    ],
)
def test_text_behind_a_table_is_a_paragraph(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


# -- names and addresses


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("[[User talk:{{PAGENAME}}|talk]]", "[[User talk:A | talk]]"),
        ("[[{{FULLPAGENAME}}/sub]]", "[[User:A/sub]]"),
        ("[http://x.org/{{PAGENAME}} site]", "[[http://x.org/A | site]]"),
        ("{{PAGENAME}}, {{FULLPAGENAME}}, {{NAMESPACE}}, {{SITENAME}}", 'A, User"":""A, User, Wikipedia'),
        ("{{TALKPAGENAME}} {{TALKSPACE}} {{NAMESPACENUMBER}}", 'User talk"":""A User talk 2'),
        ("[[{{TALKPAGENAME}}]] [[{{SUBJECTPAGENAME}}]]", "[[User talk:A]] [[User:A]]"),
        ("{{ns:2}} {{ns:Category}} {{urlencode:a b&c}}", "User Category a+b%26c"),
        ("'''{{PAGENAME}}'''", "**A**"),
        ("{{NAMESPACE}}{{nowrap|{{PAGENAME}}}}", "UserA"),
    ],
)
def test_the_names_of_a_page_stand_where_wikitext_stands(theirs: str, ours: str) -> None:
    assert text(theirs, "User:A") == ours


def test_names_of_pages_below_a_page() -> None:
    title = "User:A B/C d/e"
    assert (
        text("{{BASEPAGENAME}}; {{ROOTPAGENAME}}; {{SUBPAGENAME}}; {{PAGENAME}}", title) == "A B/C d; A B; e; A B/C d/e"
    )
    assert text("{{PAGENAMEE}} {{FULLPAGENAMEE}}", title) == 'A_B/C_d/e User"":""A_B/C_d/e'
    assert text("{{BASEPAGENAME}} {{SUBPAGENAME}}", "A/b") == "A/b A/b"
    assert text("{{TALKPAGENAME}} {{NAMESPACE}}.", "A") == 'Talk"":""A .'


def test_a_category_by_the_name_of_the_page_is_one() -> None:
    assert made("[[Category:{{PAGENAME}}]]", "User:A").categories == ("Category:A",)


@pytest.mark.parametrize("name", ["'''A", "*A", "A''B''", "A=B", "A & B", "__TOC__", "A;B", "O'Brien'"])
def test_the_name_of_a_page_is_no_markup(name: str) -> None:
    assert seen(text("{{PAGENAME}}", name)) == name.replace("&", "&amp;")
    assert seen(text("''x'' {{PAGENAME}} y", name)) == f"x {name.replace('&', '&amp;')} y"
    assert made("[[{{PAGENAME}}|w]]", name).links == (name.strip("_"),)  # in titles "_" is a blank


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("[[{{{1|Foo}}}|w]] [[{{nowrap|Foo}}]]", "[[Foo | w]] [[Foo]]"),
        ("[[Foo{{{1|}}}|w]]", "[[Foo | w]]"),
        ("[[:{{{site|it}}}:Utente:P|P]]", "[[https://it.wikipedia.org/wiki/Utente:P | P]]"),
        ("[[Foo{{!}}w]] [[Foo{{!}}a{{!}}b|c]]", None),
        ("[[a [[b]] c]]", '""[[""a [[B | b]] c""]]""'),
        ("[[a<nowiki>b</nowiki>]]", '""[[""ab""]]""'),
        ("[[Foo{{nowrap|[[b]]}}]]", None),
    ],
)
def test_a_link_whose_target_has_the_words_of_a_call(theirs: str, ours: str | None) -> None:
    found = text(theirs)
    assert found == ours if ours is not None else "[[" in found


def test_a_bar_by_a_call_is_the_bar_of_a_link() -> None:
    assert text("[[Foo{{!}}w]]") == "[[Foo | w]]"


def test_a_note_in_the_target_of_a_link_is_kept() -> None:
    assert "[^n^]" in text("[[Foo<ref>n</ref>|w]]")
    assert "[^n^]" in text("[[Foo{{nowrap|x<ref>n</ref>}}|w]]")


@pytest.mark.parametrize(
    ("base", "theirs", "ours"),
    [
        (BASE, "[{{fullurl:A|action=edit}} the page]",
         "[[https://aa.wikipedia.org/w/index.php?title=A&action=edit | the page]]"),
        (BASE, "[{{fullurl::A|action=edit}} the page]",
         "[[https://aa.wikipedia.org/w/index.php?title=A&action=edit | the page]]"),
        (BASE, "[{{SERVER}}/w/x about]", "[[https://aa.wikipedia.org/w/x | about]]"),
        (BASE, "[{{SERVER}}{{localurl:User:A b|a=1}} x]",
         "[[https://aa.wikipedia.org/w/index.php?title=User:A_b&a=1 | x]]"),
        (BASE, "[{{fullurl:{{FULLPAGENAME}}}} x]", "[[https://aa.wikipedia.org/wiki/Page | x]]"),
        (BASE, "[{{fullurl:A|oldid={{{1|3}}}}} x]",
         "[[https://aa.wikipedia.org/w/index.php?title=A&oldid=3 | x]]"),
        (BASE, "{{SERVERNAME}} {{SCRIPTPATH}}", "aa.wikipedia.org /w"),
        ("http://s/wiki/X", "[{{fullurl:A|action=edit}} x]", "[[http://s/wiki/A?action=edit | x]]"),
        ("http://s/index.php?title=X", "[{{canonicalurl:A|b=c}} x]", "[[http://s/index.php?title=A&b=c | x]]"),
        ("", "See [{{fullurl:A|action=edit}} the page] and [{{SERVER}}/w/x about].", "See the page and about."),
        ("", "[{{SERVER}}/w/x]", "/w/x"),
        (BASE, "See [{{fullurl:{{foo}}}} ''the'' page].", "See the page."),
        ("", "a {{SERVER}} b", "a [SERVER] b"),
        ("", "[[{{fullurl:x}} review it]]", "review it"),
    ],
)  # fmt: skip
def test_calls_in_addresses_are_addresses(base: str, theirs: str, ours: str) -> None:
    assert text(theirs, dialect=Dialect.of(NAMES, base=base)) == ours


# -- HTML over lines


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ('a <b\nclass="x">bold</b> <br\n/> c', "a **bold** --- c"),
        ('{|\n| a <span\n style="x"\n>b</span> || c\n|}', "||a b||c||"),
        ('<div\nclass="x">\n* a\n</div\n>', "~- a"),
        ("a <foo\nbar> b", "a <foo bar> b"),
        ("a <foo\n* b>", "a <foo\n\n~- b>"),
        ("a < b\n> c", "a < b > c"),
        ("<nowiki><b\n></nowiki>", None),
    ],
)
def test_tags_over_two_lines_are_tags(theirs: str, ours: str | None) -> None:
    assert text(theirs) == ours if ours is not None else "<b" in seen(text(theirs)).replace("&lt;", "<")


# -- pictures


@pytest.mark.parametrize(
    ("options", "caption"),
    [
        ("miniatur|Words|links", "Words"),
        ("miniaturadaimagem|nenhum", ""),
        ("мини|дясно|200пкс", ""),
        ("мини|ляво|180п|Слова", "Слова"),
        ("vignette|gauche|redresse=1.2|Des mots", "Des mots"),
        ("vignette|sans cadre|redresse 1.2", ""),
        ("miniatura|izquierda|sinmarco|enlace=A", ""),
        ("miniatura|destra|200px|Parole", "Parole"),
        ("miniatuur|rechts|verwijzing=http://a/?b=c", ""),
        ("mały|lewo|Słowa", "Słowa"),
        ("міні|праворуч|100x200пкс", ""),
        ("miniatyr|höger|ram", ""),
        ("サムネイル|右|200ピクセル|言葉", "言葉"),
        ("缩略图|居中|200像素", ""),
        ("تصغير|يسار", ""),
        ("thumb|x", "x"),
        ("thumb|Links", "Links"),
        ("thumb|п", "п"),
        ("thumb|mini 2010", "mini 2010"),
        ("thumb|a = b", "a = b"),
    ],
)
def test_options_of_pictures_in_other_languages_are_no_captions(options: str, caption: str) -> None:
    assert text(f"[[File:A.jpg|{options}]]") == f'##""[image: A.jpg]""## {caption}'.strip()


# -- other languages and sites


def test_on_a_talk_page_a_link_to_another_language_is_a_link() -> None:
    found = made("[[fr:D|Kwak]] x", "Talk:A")
    assert found.text == "[[https://fr.wikipedia.org/wiki/D | Kwak]] x"
    assert text("[[fr:D|Kwak]] x", "A") == " x\n\n[[https://fr.wikipedia.org/wiki/D | fr:D]]"


def test_prefixes_of_languages_and_sites() -> None:
    assert text("[[be-x-old:X]] [[tokipona:Y]] [[incubator:Wp/aa|w]]") == (
        "  [[https://incubator.wikimedia.org/wiki/Wp/aa | w]]\n\n"
        "[[https://be-x-old.wikipedia.org/wiki/X | be-x-old:X]] · "
        "[[https://tokipona.wikipedia.org/wiki/Y | tokipona:Y]]"
    )
    for prefix in ("outreach", "strategy", "wikimania", "testwiki", "nost", "translatewiki", "betawiki"):
        assert text(f"[[{prefix}:X|w]]").endswith("/wiki/X | w]]")


def test_an_item_of_links_that_stand_elsewhere_is_none() -> None:
    assert text("* [[ja:U|N]]\n* [[Category:C]]\n* x").startswith("~- x\n\n")
    assert text("; [[ja:U|N]]\n: {{clear}}\n# x\n* {{DEFAULTSORT:y}}") == "~1) x"


def test_a_redirect_to_another_wiki_is_a_link() -> None:
    found = made("#redirect[[en:User:X]]\n\n[[Category:C]]")
    assert found.text == "→ [[https://en.wikipedia.org/wiki/User:X | en:User:X]]\n\n----\n[[Category:C | C]]"
    assert found.redirect is None


# -- pages that include pages


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("A\n{{User:R/D}}\nB", 'A\n\n{{include page="User:R/D"}}\n\nB'),
        ("{{:x}}", '{{include page="X"}}'),
        ("{{/sub}}", '{{include page="User:R/sub"}}'),
        ("{{/sub/}} [[Category:C]]", '{{include page="User:R/sub"}}\n\n----\n[[Category:C | C]]'),
        ("{{wikipedia:x y}}", '{{include page="Wikipedia:X y"}}'),
        ("* {{User:R/D}} x", "~- [[User:R/D]] x"),
        ("{|\n| {{:X}}\n|}", "||[[X]]||"),
        ('{{:A "b"}}', '{{include page="A &#34;b&#34;"}}'),
        ("{{:Template:Hello}} {{Template:Hello|a}}", "Hello you Hello a"),
        ("a {{Special:Recentchanges}}", 'a [Special"":""Recentchanges]'),
        ("a {{User:R/D|b}}", "a b"),
        ("a {{User:R}}", 'a [User"":""R]'),
    ],
)
def test_calls_of_pages_that_are_no_templates_include_them(theirs: str, ours: str) -> None:
    assert text(theirs, "User:R") == ours


def test_includes_of_a_page_are_bounded_and_those_beyond_are_links() -> None:
    many = text("* {{:C}}\n" * 500 + "{{:A}}\n" * (IMPORTED_INCLUDES_MAX + 5))
    assert many.count('{{include page="A"}}') == IMPORTED_INCLUDES_MAX
    assert many.count("[[A]]") == 5


def test_a_page_below_this_one_is_no_page_where_pages_have_none() -> None:
    assert text("{{/doc}}", "Template:B") == "documented"
    assert "include" not in text("{{/sub}}", "Main")


# -- holes in sentences


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("There {{PLURAL:$3|is|are}} y {{GENDER:x|he|she}}", "There are y she"),
        ("of {{GRAMMAR:genitive|Riga}}", "of Riga"),
        ("a {{DEFAULTSORT:b}} {{DISPLAYTITLE:c|noerror}}d", "a d"),
        ("a form: [[{{#special:X}}]].", "a form: Special:X."),
        ("see {{#special:X}}", "see Special:X"),
    ],
)
def test_calls_that_leave_holes_show_their_words(theirs: str, ours: str) -> None:
    assert seen(text(theirs)) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{{cite book|last=S|first=R|chapter=Anarchism|title=A Companion|year=1995}}",
         "S, R (1995). Anarchism. A Companion."),
        ("{{cite book|last=D|title=[[T]]|chapter=p 91}}", "D. p 91. [[T]]."),
        ("{{cite book|title=T|chapter=C|url=http://u|chapter-url=http://c}}",
         "[[http://c | C]]. [[http://u | T]]."),
        ("{{cite book|title=T|chapter=C|url=http://u}}", "C. [[http://u | T]]."),
        ("{{cite book|chapter=C|url=http://u}}", "[[http://u | C]]."),
        ("{{cite book|title=T|chapter-url=http://c}}", "[[http://c | T]]."),
        ("{{cite web|url=http://u}}", "[[http://u]]."),
        ("{{cite web|title=T|work=W}}", "T. //W//."),
    ],
)  # fmt: skip
def test_a_citation_has_its_chapter_and_its_title(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("a<ref>{{LSJ|a)narxi/a|ἀναρχία|ref}}</ref>", "a[^LSJ: a)narxi/a, ἀναρχία, ref^]"),
        ("a<ref> {{sep entry|godwin|W G|M P|2006-05-20}} </ref>", "a[^sep entry: godwin, W G, M P, 2006-05-20^]"),
        ("a<ref>{{web|t}}</ref>", "a[^t^]"),
        ("a<ref>see {{web|t|u}}</ref>", "a[^see u^]"),
        ("a<ref>{{web|t|u}} x</ref>", "a[^u x^]"),
        ("a<ref>{{web|t|u}}}</ref>", "a[^u}^]"),
    ],
)
def test_a_note_that_is_one_call_has_all_its_values(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        ("{{основна|X}}", "→ [[X]]"),
        ("{{Hauptartikel|X|Y}}", "→ [[X]], [[Y]]"),
        ("{{Siehe auch|[[x]], [[Y]]}}", "→ [[X | x]], [[Y]]"),
        ("{{Article détaillé|X}}", "→ [[X]]"),
        ("{{main|{{{1|}}}}}", ""),
    ],
)
def test_links_to_main_articles_in_other_languages(call: str, ours: str) -> None:
    assert text(call) == ours


# -- the table of calls


def rows(wikitext: str, title: str = "Template:B") -> list[str]:
    """The sources that the table lists."""
    table = made(wikitext, title).text.partition("|!|(c:folded)||")[2]
    page = render(parse("|!|(c:folded)||" + table, autolink=False), existing=set())
    return [re.sub("<[^>]+>", "", row) for row in re.findall("<td>(.*?)</td>", page)]


def test_the_source_of_calls_in_calls_is_as_typed() -> None:
    assert rows("{{#if:{{{1|}}}|{{User {{{1}}}}}\n}}") == ["{{#if:{{{1|}}}|{{User {{{1}}}}} }}"]
    assert rows("a {{x|{{nowrap|b}}|{{y|[[c]]}}}} d {{z}}") == ["{{x|{{nowrap|b}}|{{y|c}}}}", "{{z}}"]
    assert rows("{{nowrap|{{x|a}} {{y|b}}}}") == ["{{x|a}}", "{{y|b}}"]


def test_links_and_notes_of_a_call_stand_once() -> None:
    found = made("a {{x|[[One]]<ref>n</ref>|{{y|[[Two]]<ref>m</ref>|w}}}} b")
    assert found.text.startswith("a w b")
    assert set(found.links) == {"One", "Two"}
    assert (found.text.count("[^n^]"), found.text.count("[^m^]")) == (1, 1)
    assert made("{{x|[[File:A.jpg|thumb|{{y|[[b]]}}]]}}").text.count("[[B | b]]") == 1


@pytest.mark.parametrize(
    "unit",
    [
        "{{User:A}} ", "{{User:A}}\n", "[{{SERVER}} ", "[{{x}} ", "{{fullurl:", "<b\n", "<b\n>", "[[{{nowrap|a}}",
        "[[{{nowrap|a}}]]", "[[{{nowrap|a}}|", "{{x|{{y}}", "{|\n{|\n", "|}{|\n", "{{/a}}", "{{{1|[[", "[[{{!}}",
        "{{PAGENAME}}", "[[{{PAGENAME}}", "[[File:a|redresse ", "<ref>{{x|y|z}}</ref>", "{{main|[[a]]}}",
    ],
)  # fmt: skip
def test_the_time_is_linear(unit: str) -> None:
    """Eight times the text takes some eight times as long; what is quadratic takes 64 times, on any machine."""
    closing = {"[[": "]]", "{{": "}}", "{|": "\n|}"}.get(unit[:2], " ")

    def taken_s(chars: int) -> float:
        count = chars // len(unit)
        began = time.process_time()
        made(unit * count)
        made(unit * (count // 2) + closing * (count // 2))
        return time.process_time() - began

    short_s = taken_s(5_000)
    assert taken_s(40_000) < 16 * short_s + 1

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
        ('colspan="5" {{CMain}}', "||(x:5)[CMain]||"),
        ('bgcolor=white colspan="2" {{No|none}}', "||(x:2)none||"),
        ("rowspan=3 {{Yes}}", "||(y:3)[Yes]||"),
        ('colspan="5" words', '||colspan="5" words||'),
        ('colspan="5"', '||colspan="5"||'),
        ('colspan="5" {{nowrap|words}}', '||colspan="5" words||'),
        ("a = b {{x}} c", "||a = b [x] c||"),
        ("{{x}} words", "||[x] words||"),
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
        ("[[a]] x {{clear}} | c", "a x  | c"),
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
        ("{{nowrap|a}} {{clear}}b", "a b"),
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
        ("''a'' \"b\" & c", "<em>a</em> &quot;b&quot; &amp; c"),
    ],
)
def test_addresses_in_small_letters_are_links(tag: str, content: str, html: str | None) -> None:
    page = shown(f"London,<{tag}>{content}</{tag}> x")
    assert "javascript" not in page.replace("[javascript:alert(1) x]", "")
    if html is not None and tag != "big":
        assert f"<{tag}>{html}</{tag}>" in page


@pytest.mark.parametrize("tag", ["sup", "sub", "small"])
@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("[[Bridge]]", "{link}"),
        ("see [[Bridge]], {{nowrap|x}}{{clear}}", "see {link}, x"),
        ("'''a''' [[Bridge]]", "<strong>a</strong> {link}"),
        ("<nowiki>[[Bridge]]</nowiki> [[Bridge]]", "[[Bridge]] {link}"),
        ('"[[Bridge]]"', '"{link}"'),
    ],
)
def test_links_in_small_letters_are_links_and_the_letters_stay_small(tag: str, content: str, seen: str) -> None:
    link = '<a href="/Bridge/edit" class="missing" rel="nofollow">Bridge</a>'
    for place in ("London,{} x", "* {}", "== {} ==", "{{|\n| {}\n|}}", "''{}''"):
        made = convert(place.format(f"<{tag}>{content}</{tag}>"), namespaces=DIALECT, title="Page")
        page = render(parse(made.text, autolink=False), existing=set())
        assert f"<{tag}>{seen.format(link=link)}</{tag}>" in page, page
        assert made.links == ("Bridge",)


@pytest.mark.parametrize("text_of_it", ["<sup>a [[Bridge]]", "<sup>a [[Bridge]] <sub>b", "</sup>a [[Bridge]]</sub>"])
def test_small_letters_without_an_end_end_with_their_line(text_of_it: str) -> None:
    page = shown(f"{text_of_it}\n\nbehind")
    assert "<p>behind</p>" in page
    assert all(page.count(f"<{tag}>") == page.count(f"</{tag}>") for tag in ("sup", "sub"))


def test_small_letters_around_what_shows_nothing_are_nothing() -> None:
    assert text("a<sup>{{clear}}</sup><small></small><sub> </sub>b").partition("\n")[0] == "ab"


def test_words_of_elements_that_are_never_closed_are_no_one_word() -> None:
    assert text("<table><tr><td>a<td>b<div>c</div>") == "a b c"


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


@pytest.mark.parametrize("call", ["{{clear}}", "{{a}}{{b|c=d}}", "{{DEFAULTSORT:Key}}", "<includeonly>x</includeonly>"])
@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("== H ==", "=====H====="),
        ("* a", "~- a"),
        ("# a", "~1) a"),
        (":a", "~a"),
        ("; a", "**a**"),
        ("----", "----"),
        ("{|\n| a\n|}", "||a||"),
        ("=x", "=x"),
    ],
)
def test_a_block_behind_a_call_that_shows_nothing_begins_its_line(call: str, line: str, ours: str) -> None:
    """MediaWiki reads lines when calls are expanded."""
    assert text(f"{call}{line}").partition("\n")[0] == ours


@pytest.mark.parametrize("behind", ["{{clear}}", " {{clear}} ", "{{a}} {{b}}", "<!-- c -->{{a}}", "{{a}} <!-- c -->"])
def test_a_heading_before_a_call_that_shows_nothing_is_one(behind: str) -> None:
    assert text(f"== H =={behind}").partition("\n")[0] == "=====H====="


@pytest.mark.parametrize("thing", ["{{{1|}}}", "[[Category:C]]", "<nowiki/>", "{{anchor|x}}", "<ref>n</ref>"])
def test_what_stands_in_its_line_when_lines_are_read_begins_no_block_behind_it(thing: str) -> None:
    for line, seen in (("== H ==", "== H =="), ("* a", "* a")):
        page = html.unescape(re.sub("<[^>]+>", "", shown(f"{thing}{line}")))
        assert page.removeprefix("1").startswith(seen), page
    assert "<h" not in shown(f"== H =={thing}").partition("<hr")[0]


@pytest.mark.parametrize(
    "word",
    ["__FILE__", "__LINE__", "__INIT__", "__MAIN__", "__ABC__", "__index__", "__END__", "__NOTOCX__", "__NO TOC__"],
)
def test_a_word_between_underscores_that_mediawiki_does_not_know_is_text(word: str) -> None:
    for place in ("{}", "a {} b", "* {}", "== a {} ==", "{{|\n| {}\n|}}", "[[Page|{}]]", "'''{}'''"):
        assert word in html.unescape(re.sub("<[^>]+>", "", shown(place.format(word)))), place
    assert text(f"{word}== a ==").startswith('""__""')


@pytest.mark.parametrize(
    "word", ["__NOTOC__", "__notoc__", "__NoEditSection__", "__INDEX__", "__HIDDENCAT__", "__KEIN_INHALTSVERZEICHNIS__"]
)
def test_behaviour_switches_in_any_place_are_gone(word: str) -> None:
    assert text(f"a {word} b") == "a b"
    assert text(f"{word}== a =={word}") == "=====a====="
    assert text(f"[[Page|x {word}]]") == "[[Page | x]]"


def test_what_is_for_other_pages_only_stands_with_the_calls() -> None:
    made = convert("a<includeonly>''b'' [[Category:C]]</includeonly>c", namespaces=DIALECT, title="Page")
    assert made.text.partition("\n")[0] == "ac"
    assert "''b'' [[Category:C]]" in made.text
    assert (made.categories, made.unconverted["html <includeonly>"]) == ((), 1)
    assert text("a<includeonly>b") == "ab"


@pytest.mark.parametrize(
    ("source", "ours"),
    [
        ("a\n<!-- c -->\nb", "a b"),
        ("a\n \t<!-- c --> \nb", "a b"),
        ("a\n<!-- c --> <!-- d -->\nb", "a b"),
        ("a\n<!-- c -->\n<!-- d -->\nb", "a b"),
        ("a <!-- c -->\nb", "a b"),
        ("a<!-- c --> <!-- d -->b", "a b"),
        ("* a\n<!-- c -->\n* b", "~- a\n~- b"),
        ("a\n\n<!-- c -->\nb", "a\n\nb"),
        ("a <!-- c", "a"),
    ],
)
def test_lines_of_comments_are_no_lines(source: str, ours: str) -> None:
    assert text(source) == ours


@pytest.mark.parametrize(
    ("source", "ours"),
    [
        (";t:d", "**t**\n~d"),
        ("; t : d", "**t**\n~d"),
        (";t: d", "**t**\n~d"),
        ("; http://a.b/c : d", "**[[http://a.b/c]]**\n~d"),
        (";http://a.b/c: d", "**[[http://a.b/c]]**\n~d"),
        (";[http://a.b c:d]:e", "**[[http://a.b | c:d]]**\n~e"),
        ('; <span style="a:b">t</span>:d', "**t**\n~d"),
        ("; [[Talk:A]]: d", "**[[Talk:A]]**\n~d"),
        (";t", "**t**"),
    ],
)
def test_the_first_colon_of_the_text_ends_a_term(source: str, ours: str) -> None:
    assert text(source) == ours


def test_lines_of_poems_stay_lines() -> None:
    assert text("<poem>\nRoses [[are]]\n  red\n</poem>") == "Roses [[Are | are]] --- \xa0\xa0red"
    assert text("a <poem>b\nc</poem> d") == "a b --- c d"
    assert text("<poem>a\nb") == "a b"
    assert text("{{quote|<poem>a\nb</poem>}}").startswith("a --- b")


@pytest.mark.parametrize(
    ("line", "name"),
    [("File:A.jpg", "A.jpg"), ("Image: A.jpg", "A.jpg"), ("A: b.jpg", "A: b.jpg"), ("A.jpg", "A.jpg"), (":A", ":A")],
)
def test_names_of_a_gallery_may_lack_the_namespace(line: str, name: str) -> None:
    assert f"[image: {name}]" in text(f"<gallery>\n{line}|c\n</gallery>")


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("l'''amour'' c '''d'''", "l'//amour// c **d**"),
        ("ab'''cd'''e l'''f''", "ab**cd**e l'//f//"),
        ("ab '''cd'''ef '''gh''", "ab **cd'//ef //**//gh//"),
    ],
)
def test_which_bold_was_an_apostrophe(line: str, ours: str) -> None:
    """Behind a word of one letter, else behind another word, else behind a blank: ``Parser::doQuotes``."""
    assert text(line) == ours


def test_a_tag_of_a_rule_is_one() -> None:
    assert text("a\n<hr />\nb") == "a\n\n----\nb"


@pytest.mark.parametrize(
    ("base", "link", "url", "label"),
    [
        ("", "[[w:Foo bar]]", "https://en.wikipedia.org/wiki/Foo_bar", "w:Foo bar"),
        ("http://s.example/wiki/X", "[[w:Foo|x]]", "https://en.wikipedia.org/wiki/Foo", "x"),
        ("https://de.wikipedia.org/wiki/X", "[[wikt:Foo|x]]", "https://de.wiktionary.org/wiki/Foo", "x"),
        ("https://de.wikipedia.org/wiki/X", "[[w:fr:Foo#Bar baz|x]]", "https://fr.wikipedia.org/wiki/Foo#Bar_baz", "x"),
        ("https://de.wikipedia.org/wiki/X", "[[:fr:Page|fr]]", "https://fr.wikipedia.org/wiki/Page", "fr"),
        ("https://en.wiktionary.org/wiki/X", "[[:fr:Page]]", "https://fr.wiktionary.org/wiki/Page", "fr:Page"),
        ("", "[[commons:Category:A]]", "https://commons.wikimedia.org/wiki/Category:A", "commons:Category:A"),
        ("", "[[doi:10.1/2(3)]]", "https://doi.org/10.1/2(3)", "doi:10.1/2(3)"),
        ("", "[[d:Q1|''x'']]", "https://www.wikidata.org/wiki/Q1", "x"),
        ("", '[[w:Ä & "b"|x]]', "https://en.wikipedia.org/wiki/%C3%84_%26_%22b%22", "x"),
    ],
)
def test_prefixes_of_other_wikis_lead_there(base: str, link: str, url: str, label: str) -> None:
    for place in ("{}", "* {}", "{{|\n| {} || y\n|}}", "<ref>{}</ref>", "'''{}'''"):
        made = convert(place.format(link), namespaces=Dialect.of({"": 0}, base=base), title="Page")
        page = render(parse(made.text, autolink=False), existing=set())
        assert f'<a href="{html.escape(url)}" class="external"' in page, page
        assert label in html.unescape(re.sub("<[^>]+>", "", page))
        assert (made.links, made.converted["interwiki link"]) == ((), 1)


def test_a_prefix_that_nobody_knows_is_its_words() -> None:
    made = convert("[[:fr:Page|words]] [[fr:Page]]", namespaces=Dialect.of({"": 0}, base="http://s/wiki/X"), title="P")
    assert made.text == 'words \n\n##""fr:Page""##'
    assert (made.unconverted["interwiki link"], made.unconverted["interlanguage link"]) == (1, 1)


def test_the_page_in_other_languages_is_linked_to_at_the_end() -> None:
    dialect = Dialect.of({"": 0}, base="https://en.wikipedia.org/wiki/Main_Page")
    made = convert("a [[de:Hund]][[fr:Chien]] [[de:Hund]]", namespaces=dialect, title="Dog").text
    assert made.partition("\n\n")[2] == (
        "[[https://de.wikipedia.org/wiki/Hund | de:Hund]] · [[https://fr.wikipedia.org/wiki/Chien | fr:Chien]]"
    )


def links_of_notes(page: str) -> tuple[list[str], list[str]]:
    """The addresses of the marks, and those back, in their order."""
    hrefs = re.findall('href="#((?:s-)?(?:n-|note_|r-|use_)[0-9]+)"', page)
    ids = re.findall('id="((?:s-)?(?:n-|note_|r-|use_)[0-9]+)"', page)
    assert sorted(set(ids)) == sorted(ids)
    assert set(hrefs) <= set(ids)
    return [one for one in hrefs if "n-" in one or "note" in one], [one for one in hrefs if "r-" in one or "use" in one]


def test_a_note_and_its_first_mark_lead_to_each_other() -> None:
    source = 'a<ref name="n">one</ref> b<ref>two "x"</ref> c<ref name="n" />\n\n<references />'
    assert links_of_notes(shown(source)) == (["n-1", "n-2", "n-1"], ["r-1", "r-2"])
    page = shown("== h<ref>zero</ref> ==\n" + source)
    assert links_of_notes(page) == (
        ["s-note_1", "s-note_2", "s-note_3", "s-note_2"],
        ["s-use_1", "s-use_2", "s-use_3"],
    )


def test_a_note_that_no_mark_leads_to_leads_nowhere() -> None:
    page = shown('a<references><ref name="n">one</ref></references>')
    assert "one" in page
    assert links_of_notes(page) == ([], [])
    defined_there = shown('a<ref name="n" /> b<ref name="n" /><references><ref name="n">one</ref></references>')
    assert links_of_notes(defined_there) == (["n-1", "n-1"], ["r-1"])


@pytest.mark.parametrize(
    "note",
    ["x||y", "x^]y", "x[^y", "<nowiki>{{x</nowiki>", "%%", "x[", "{{efn|y}}", "<math>x</math> ==", "]x", "x^", "\n"],
)
@pytest.mark.parametrize("place", ["a{}b", "* a{}b", "{{|\n| a{}b || c\n|}}", "; a{} : b", "== a{}b =="])
def test_a_note_of_any_text_shows_it_and_has_links_both_ways(note: str, place: str) -> None:
    page = shown(place.format(f"<ref>{note}</ref>") + "\n\nc<ref>second</ref>")
    seen = html.unescape(re.sub("<[^>]+>", "", page))
    words = html.unescape(re.sub(r"<[^>]+>|\{\{efn\||\}\}(?=$)", "", note)).strip()
    assert words in seen
    assert seen.count("second") == 1
    to, back = links_of_notes(page)
    assert len(to) == len(back) == (3 if "efn" in note else 2)


def test_notes_are_numbered_as_they_are_met() -> None:
    source = "[[File:A.jpg|thumb|p<ref>picture</ref>]]\nwords<ref>words</ref>\n{|\n| t<ref>table</ref>\n|}"
    page = shown(source)
    assert re.findall(r'<li id="n-[0-9]">(\w+) ', page) == ["words", "picture", "table"]
    assert links_of_notes(page) == (["n-1", "n-2", "n-3"], ["r-1", "r-2", "r-3"])


def test_a_heading_above_the_notes_alone_goes() -> None:
    assert text("a<ref>x</ref>\n\n== References ==\n<references/>\n\n== See ==\nb") == "a[^x^]\n\n=====See=====\nb"
    assert text("a<ref>x</ref>\n\n== References ==\nwords\n<references/>") == "a[^x^]\n\n=====References=====\nwords"
    assert text("a<ref>x</ref>\n\n== References ==\n<references/>\nwords").endswith("=====References=====\nwords")


def test_a_bracket_before_a_note_begins_no_link() -> None:
    assert text("a [<ref>x</ref>] b [[<ref>y</ref>") == 'a [""""[^x^]] b ""[[""[^y^]'
    page = shown("a [<ref>x</ref>] b")
    assert links_of_notes(page) == (["n-1"], ["r-1"])

"""MediaWiki markup to ours, construct by construct."""

from __future__ import annotations

import html
import re

import pytest

from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import Converted, Dialect, convert, convert_source

NAMESPACES = {
    "": 0,
    "Talk": 1,
    "User": 2,
    "Harbour": 4,
    "Fails": 6,
    "Taiss": 10,
    "Kategoreja": 14,
}
DIALECT = Dialect.of(NAMESPACES)


def made(wikitext: str, **options: str) -> Converted:
    return convert(wikitext, namespaces=DIALECT, title="Page", **options)


def text(wikitext: str) -> str:
    return made(wikitext).text


def reader_sees(ours: str) -> str:
    """The words of the page."""
    return html.unescape(re.sub("<[^>]+>", "", render(parse(ours, autolink=False), existing=set())))


def folded(title: str, *rows: str) -> str:
    return "\n".join(["|!|(c:folded)||", f"|?|{title}||", *rows])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("= one =", "======one======"),
        ("==two==", "=====two====="),
        ("=== ''three'' ===", "====//three//===="),
        ("====== six ======", "==six=="),
        ("==", '""==""'),
        ("===", '======""=""======'),
        ("=====", '=====""=""====='),
        ("=a=", "======a======"),
        ("==a=", '======""=""a======'),
        ("=a==", '======a""=""======'),
        ("=======a=======", '==""=""a""=""=='),
        ("==[[Dog]]=", '======""=""[[Dog]]======'),
        ("== a == \t", "=====a====="),
        ("== a == <!-- c --><!-- d --> ", "=====a====="),
        ("== a ==<noinclude></noinclude>", "=====a====="),
        ("== a == __NOEDITSECTION__", "=====a====="),
        ("__NOTOC__== a ==", "=====a====="),
        ("== a == b ==", '=====a ""=="" b====='),
        ("|\n== a ==", "|\n\n=====a====="),
    ],
)
def test_headings(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    "line",
    [
        "==Heading without an end sign",
        "=x+y is a sum of two terms",
        "==Title== trailing words",
        "==a=b",
        "==G",
        "=",
        "==",
        "== ",
        "=a",
        "a=",
        "=== a == b",
        "====== six and more, not closed",
        "== a == .",
        "= is no sign of a heading, == neither",
        "== ''a'' == b",
        "\t== indented ==",
    ],
)
@pytest.mark.parametrize("around", ["{}", "before\n{}\nbehind", "{{|\n| cell\n{}\n|}}", "{{|\n| {}\n|}}"])
def test_a_line_that_does_not_end_with_the_sign_is_no_heading_and_loses_nothing(line: str, around: str) -> None:
    shown = reader_sees(text(around.format(line)))
    assert line.replace("''", "").strip() in shown
    assert "<h" not in render(parse(text(around.format(line)), autolink=False), existing=set())


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("==History==<ref>Smith 2001</ref>", "==History==1"),
        ("==External links== [[Category:Foo]]", "==External links=="),
        ("==Title=={{anchor|x}}", "==Title=="),
        ("==Title== <b></b>", "==Title=="),
    ],
)
def test_what_mediawiki_takes_out_only_later_ends_no_heading(line: str, shown: str) -> None:
    assert reader_sees(text(line)).startswith(shown)
    assert "heading" not in made(line).converted


def test_a_heading_in_a_cell_begins_a_line_of_its_own() -> None:
    assert text("{|\n| == a ==\n== b ==\n=== c ==\n|}") == '||""=="" a ""=="" --- **b** --- **= c**||'


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("''i''", "//i//"),
        ("'''b'''", "**b**"),
        ("'''''both'''''", "**//both//**"),
        ("''i '''b''' i''", "//i **b** i//"),
        ("'''''five'' then''' x", "**//five// then** x"),
        ("'''b ''i''' i''", "**b //i//**// i//"),
        ("'''never closed", "**never closed**"),
        ("l'''amour''", "l'//amour//"),
        ("it's 'quoted'", "it's 'quoted'"),
        ("<b>b</b> <i>i</i> <u>u</u> <s>s</s> <code>c</code>", "**b** //i// __u__ ++s++ ##c##"),
        ("''''''", "'"),
        ("<b></b>", ""),
        ("a*'''b'''", 'a""*""**b**'),
        ("see:''x''", 'see"":""//x//'),
    ],
)
def test_emphasis(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("[[Dog]]", "[[Dog]]"),
        ("[[dog]]s", "[[Dog | dogs]]"),
        ("[[Dog|the dog]]s", "[[Dog | the dogs]]"),
        ("[[dog_house]]", "[[Dog house | dog_house]]"),
        ("[[Dog#Food|eats]]", "[[Dog#Food | eats]]"),
        ("[[Dog#My_food]]", "[[Dog#My food | Dog#My_food]]"),
        ("[[#Food|eats]]", "[[#Food | eats]]"),
        ("[[Dog|'''bold''']]", "**[[Dog | bold]]**"),
        ("[[Dog|a ''b'' c]]", "[[Dog | a b c]]"),
        ("[[Dog (animal)|]]", "[[Dog (animal) | Dog]]"),
        ("[[:Kategoreja:Suni]]", "[[Kategoreja:Suni]]"),
        ("[[:Category:suni|x]]", "[[Kategoreja:Suni | x]]"),
        ("[[template:x]]", "[[Taiss:X | template:x]]"),
        ("[[Caf%C3%A9|c]]", "[[Café | c]]"),
        ("[[A &amp; B]]", "[[A & B]]"),
        ("[[wikt:dog|dog]]", "[[https://en.wiktionary.org/wiki/dog | dog]]"),
        ("[[Wikipedia:Dog|d]]", "[[https://en.wikipedia.org/wiki/Dog | d]]"),
        ("[[AA:bb]]", "[[AA&#58;bb | AA:bb]]"),
        ("[[Talk:/x]]", "[[Talk:/x]]"),
        ("[[a]b]]", '""[[""a]b""]]""'),
        ("[[]]", '""[[""""]]""'),
        ("[[Dog|", '""[[""Dog|'),
        ("[[Dog|a [b] c]]", "[[Dog | a &#91;b&#93; c]]"),
    ],
)
def test_links(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("[http://a.example]", "[[http://a.example]]"),
        ("[http://a.example the ''page'']", "[[http://a.example | the page]]"),
        ("http://a.example/x_(y)__z.", "[[http://a.example/x_(y)__z]]."),
        ("(http://a.example)", "([[http://a.example]])"),
        ("[//a.example x]", "[[https://a.example | x]]"),
        ("[mailto:a@b.example post]", "[[mailto:a@b.example | post]]"),
        ("[irc://a.example chat]", '""chat (irc://a.example)""'),
        ("[javascript:alert(1) x]", '[javascript"":""alert(1) x]'),
        ("[http://a.example/''x'' y]", "[[http://a.example/ | x y]]"),  # emphasis is read first
        ("[http://a.example/''Example'']", "[[http://a.example/ | Example]]"),
        ("[http://a.example/d'e f]", "[[http://a.example/d'e | f]]"),
    ],
)
def test_addresses(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


def test_lists() -> None:
    assert text("* a\n** b\n# c\n#* d\n: e\n:: f\n; term : words\n*: more") == (
        "~- a\n~~- b\n~1) c\n~~- d\n~e\n~~f\n**term**\n~words\n~~more"
    )


def test_indented_text_is_not_taken_for_a_list() -> None:
    assert text(":- a\n:1) b\n:x) c") == '~""-"" a\n~""1"") b\n~""x"") c'


def test_paragraphs_are_joined_and_parted() -> None:
    assert text("one\ntwo\n\nthree") == "one two\n\nthree"


def test_rule_and_break() -> None:
    assert text("a<br />b\n----\nc") == "a --- b\n\n----\nc"


def test_table_with_spans_and_caption() -> None:
    assert (
        text(
            '{| class="x"\n|+ Cap\n! A !! B\n|-\n| colspan="2" | wide\n'
            "|-\n| rowspan=3 | [[x|y]] || (z)\n|-\n|\n* li\n* lo\n|}\nafter"
        )
        == '|?|Cap||\n|=|A|=|B||\n||(x:2)wide||\n||(y:3)[[X | y]]||""(""z)||\n'
        '||""<ul><li>li</li><li>lo</li></ul>""||\n\nafter'
    )


def test_table_cells_keep_bars_and_templates() -> None:
    assert text("{|\n| a | b | c || {{t|1||2}}\n|}") == (
        '||b ""|"" c||2||\n\n' + folded("1 template", '||##""{{t|1||2}}""##||')
    )


def test_table_in_a_table_is_flattened_and_counted() -> None:
    result = made("{|\n| a\n{|\n| b || ''c''\n|}\n| d\n|}")
    assert result.text == "||a --- b · //c//||d||"
    assert result.unconverted["table in a table"] == 1


def test_table_that_never_closes() -> None:
    assert text("{|\n| a\n| b") == "||a||b||"


def test_redirects() -> None:
    for source in ("#REDIRECT [[dog#x]]", "#redirect: [[Dog|x]]", "#WEITERLEITUNG [[dog]]", "\n#redirect[[Dog]]"):
        assert made(source).redirect == "Dog"
        assert made(source).text == '{{redirect target="Dog"}}'
    assert made("#anything [[dog]]").redirect is None
    assert made("#anything [[dog]]", redirect_hint="Dog").redirect == "Dog"
    assert made("no redirect [[dog]]", redirect_hint="Dog").redirect is None
    assert made('#REDIRECT [[a "b" c]]').text == '{{redirect target="A &#34;b&#34; c"}}'


def test_literal_forms() -> None:
    assert text("<nowiki>'''x'''</nowiki>") == "\"\"'''x'''\"\""
    assert text("<pre>\na ''b''\n</pre>") == "%%\na ''b''\n%%"
    assert text('<syntaxhighlight lang="Python">\nx = 1\n</syntaxhighlight>') == "%%(python)\nx = 1\n%%"
    assert text("<pre>100 %% x\ny</pre>") == '""<pre>100 %% x&#10;y</pre>""'
    assert text("<source inline>x</source>") == '##""x""##'
    assert text(" code\n  more") == "%%\ncode\n more\n%%"
    assert text(" code with [[link]]") == "code with [[Link | link]]"


def test_templates_that_nobody_knows_are_behind_one_note_and_are_no_actions() -> None:
    result = made('a {{toc}} b {{pageindex x="1"}} {{a|{{b}}|[[c]]}}')
    rows = ('||##""{{toc}}""##||', '||##""{{pageindex x="1"}}""##||', '||##""{{a|{{b}}|c}}""##||')
    assert result.text == 'a  b [pageindex x="1"] [[C | c]]\n\n' + folded("3 templates", *rows)
    names = ("nothing shown", "its name shown", "its last words shown")
    assert [result.unconverted[f"template: {name}"] for name in names] == [2, 1, 1]
    assert result.links == ("C",)
    assert text("{{box\n| a = 1\n}}") == folded("1 template", '||##""{{box""## ##""| a = 1""## ##""}}""##||')
    assert made("{{{1|x}}}").unconverted["parameter"] == 1
    assert text("{{unclosed") == '""{{""unclosed'
    assert text("{{PAGENAME}}") == "Page"


def test_references_become_notes() -> None:
    result = made('a<ref>one</ref> b<ref name="n">two [[x]]</ref> c<ref name=n />\n\n[[Category:C]]')
    assert result.text == (
        'a[^one^] b[^two [[X | x]]^] c""<sup><a href="#n-2">2</a></sup>""\n\n----\n[[Kategoreja:C | C]]'
    )
    assert result.converted["reference"] == 3


@pytest.mark.parametrize("notes", ["<references/>", "<references></references>", "{{reflist}}"])
@pytest.mark.parametrize("sign", ["*", "**", "#", ":", ";", "----", "== a ==", " "])
def test_signs_directly_behind_the_place_of_the_notes_are_text(notes: str, sign: str) -> None:
    for source in (f"a {notes}{sign} b", f"{notes}{sign} b", f"a <references/> d {notes}{sign} b"):
        if notes == "{{reflist}}" and "<references/>" in source:
            continue  # the second place is a call that is not shown
        assert "".join(reader_sees(text(source)).split()) == "".join(
            re.sub("<references/>|" + notes, "", source).split()
        ), source
        assert not made(source).converted.keys() & {"list item", "heading", "rule", "code", "table"}, source


def test_notes_that_the_wikis_own_form_cannot_hold_stand_where_the_author_wants_them() -> None:
    heading = '=====H""<sup><a id="use_1" href="#s-note_1">[1]</a></sup>""====='
    notes = '~1) one ""<a id="note_1" href="#s-use_1">↩</a>""'
    for place in ("<references />", "{{reflist|2}}"):
        assert text(f"== H<ref>one</ref> ==\n{place}\nb") == f"{heading}\n{notes}\n\nb"
    assert text("== H<ref>one</ref> ==\nb") == f"{heading}\nb\n\n----\n{notes}"


def test_notes_without_marks_or_words() -> None:
    source = 'a<ref name=x />\n<references><ref name="x">one</ref><ref name="y">two</ref></references>\nb'
    assert text(source) == "a[^one^]\n\n~1) two\n\nb"
    assert text("a<ref name=x />") == 'a[^""[x]""^]'
    assert made("a<ref name=x />").unconverted["reference without text"] == 1


def test_images_are_their_captions() -> None:
    result = made("[[File:A.jpg|thumb|200px|alt=x|The [[dog]]]] [[Fails:B.png]]")
    assert result.text == '##""[image: A.jpg]""## The [[Dog | dog]]\n\n##""[image: B.png]""##'
    assert result.unconverted["image"] == 2
    assert result.links == ("Dog",)


def test_categories_and_languages_come_last() -> None:
    result = made("[[Category:a|sort]]\ntext\n[[de:Hund]]\n[[Kategoreja:B]]")
    assert result.text == 'text\n\n##""de:Hund""##\n\n----\n[[Kategoreja:A | A]] · [[Kategoreja:B | B]]'
    assert result.categories == ("Kategoreja:A", "Kategoreja:B")
    assert result.links == ()
    assert result.unconverted["interlanguage link"] == 1


def test_html() -> None:
    assert text("H<sub>2</sub>O <small>a < b</small>") == 'H""<sub>2</sub>""O ""<small>""a < b""</small>""'
    assert text("<span style='x'>a</span> <script>alert(1)</script>") == "a <script>alert(1)</script>"
    assert text('<sup onclick="x">""</sup>') == '""<sup>&quot;&quot;</sup>""'
    assert text("a<!-- x -->b") == "ab"
    assert text("a\n<!-- x -->\nb") == "a b"
    assert text("a &nbsp;b &lt;i&gt; &eacute; &amp;lt;") == 'a \xa0b <i> é ""&amp;""lt;'


@pytest.mark.parametrize(
    "sign",
    [
        "**",
        "//",
        "__",
        "##",
        "%%",
        '""',
        "}}",
        "||",
        "~",
        "<<",
        ">>",
        "::c::",
        "££",
        "¥¥",
        "@@",
        "++",
        "``",
        "/*",
        "#%",
    ],
)
def test_what_looks_like_our_markup_is_made_literal(sign: str) -> None:
    shown = text(f"a {sign} b")
    assert shown.startswith('a ""')
    assert shown.endswith('"" b')


def test_behaviour_switches() -> None:
    assert text("__TOC__") == "{{toc}}"
    result = made("a\n__NOTOC__\nb")
    assert result.text == "a b"
    assert result.unconverted["behaviour switch"] == 1


def test_a_case_sensitive_site_keeps_small_letters() -> None:
    dialect = Dialect.of(NAMESPACES, capitalised=False)
    assert convert("[[dog]]", namespaces=dialect, title="x").text == "[[dog]]"
    assert convert("[[dog]]", namespaces=NAMESPACES, title="x").text == "[[Dog | dog]]"


def test_sources_are_listings() -> None:
    assert convert_source("a = '%'", model="Scribunto").text == "%%(lua)\na = '%'\n%%"
    assert convert_source("", model="css").text == ""


def test_links_are_those_of_the_text_that_came_out() -> None:
    result = made('a<ref name="n">[[one]]</ref><ref name="n">[[two]]</ref> [[three|x [[four]]]]')
    assert result.links == ("One", "Three")
    assert result.unconverted["reference defined twice"] == 1


def test_pictures_before_the_first_words_come_behind_them() -> None:
    made = text("[[File:A.jpg|thumb|one]]\n[[File:B.jpg|thumb|two]]\nWords [[File:C.png|20px]] first.\n\nMore.")
    parts = made.split("\n\n")
    assert parts[0].startswith("Words ")
    assert [part.rpartition("## ")[2] for part in parts[1:3]] == ["one", "two"]
    assert parts[3] == "More."
    for alone in (
        "[[File:A.jpg|thumb|one]]",
        "[[File:A.jpg|thumb|one]]\n== Heading ==\nWords",
        "Words\n\n[[File:A.jpg]]",
    ):
        assert text(alone).count("[image: A.jpg]") == 1
    assert text("[[File:A.jpg|thumb|one]]\n== Heading ==\nWords").startswith('##""[image: A.jpg]""##')


@pytest.mark.parametrize(
    "before",
    [
        "{{Infobox river\n| a = b\n}}",
        "{|\n|+ Caption\n|-\n| a\n|}",
        "{|\n! a\n|}",
        "{{see also|Further}}",
        ":''This page is about words.''",
        "{{Infobox river\n| a = b\n}}\n{{main|Further}}",
    ],
)
def test_pictures_come_behind_the_first_words_whatever_stands_above_both(before: str) -> None:
    made = text(f"{before}\n[[File:A.jpg|thumb|one]]\n[[File:B.jpg|thumb|two]]\n'''Words''' first.\n\nMore.")
    parts = made[made.index("**Words**") :].split("\n\n")
    assert [part.rpartition("## ")[2] for part in parts] == ["**Words** first.", "one", "two", "More."]
    assert "image: " not in made[: made.index("**Words**")]


def test_pictures_before_the_first_words_of_a_section_come_behind_them() -> None:
    made = text(
        "Begin.\n\n== H ==\n{{main|Further}}\n[[File:A.jpg|thumb|one]]\nWords.\n\n"
        "== I ==\n[[File:B.jpg|thumb|two]]\n\nMore."
    )
    parts = [part.rpartition("## ")[2] for part in made.replace("\n", "\n\n").split("\n\n") if part]
    assert parts == ["Begin.", "=====H=====", "→ [[Further]]", "Words.", "one", "=====I=====", "More.", "two"]


@pytest.mark.parametrize("nothing", ["{{clear}}", "[[Category:C]]", "<nowiki/>", "{{DEFAULTSORT:a}} {{clear}}"])
def test_a_heading_of_nothing_is_no_row_of_signs(nothing: str) -> None:
    assert text(f"== {nothing} ==\nwords").split("\n")[0].replace(" ", "") == '""==""""==""words'


def test_lines_that_begin_with_a_blank_are_code_with_their_indents_emphasis_and_addresses() -> None:
    assert text(" code with [[link]]\n    deeper") == "code with [[Link | link]]\n\xa0\xa0\xa0deeper"
    assert text(" a\n  \n b\n \nc") == "%%\na\n\nb\n%%\n\nc"
    xml = "<?xml version='1.0'?>\n<match a=\"b\">\n  <edit/>\n</match>"
    assert text(" " + xml.replace("\n", "\n ")) == f"%%\n{xml}\n%%"
    assert text(" <div>a</div>\n <b>c</b>").startswith("a")
    emphasis = text(" if '''a''' &lt; \"b\"\n   ''c'' then [http://x.org/?a=1&b=2 y]\n # http://z.org/")
    assert emphasis == (
        "\"\"<pre>if <b>a</b> &lt; &quot;b&quot;&#10;  <i>c</i> then <a href='http://x.org/?a=1&amp;b=2'>y</a>&#10;"
        "# <a href='http://z.org/'>http://z.org/</a></pre>\"\""
    )
    crossed = text(" ''a '''b'' c''' <code>d</code> <foo>\n ''open")
    assert crossed == '""<pre><i>a <b>b</b></i><b> c</b> d &lt;foo&gt;&#10;<i>open</i></pre>""'

"""Calls of MediaWiki's templates: words, citations, tables of values, and those that show nowhere."""

from __future__ import annotations

import re

import pytest

from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import Converted, Dialect, convert

NAMESPACES = {"": 0, "File": 6, "Template": 10, "Category": 14}


def made(wikitext: str) -> Converted:
    return convert(wikitext, namespaces=NAMESPACES, title="Page")


def text(wikitext: str) -> str:
    return made(wikitext).text


def folded(title: str, *rows: str) -> str:
    return "\n".join(["|!|(c:folded)||", f"|?|{title}||", *rows])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{{nowrap|a ''b''}} c", "a //b// c"),
        ("{{lang|lv|[[upe]]}}", "[[Upe | upe]]"),
        ("{{Vol-ru|river}}", "river"),
        ("{{convert|1300|mi|km}} long", "1300 mi long"),
        ("{{convert|10|to|20|km}}", "10–20 km"),
        ("{{birth date|1809|2|12}}", "1809-02-12"),
        ("H{{chem|H|2|O}}", 'HH""<sub>2</sub>""O'),
        ("a{{·}}b", "a · b"),
        ("{{hlist|[[a]]|b}}", "[[A | a]] · b"),
        ("{{main|Rivers of Riga|Sea#Tide}}", "→ [[Rivers of Riga]], [[Sea]]"),
        ("{{nowrap|{{small|x}}}}", "x"),
        ("({{IPAc-en|icon|ˈ|aɪ|n|_|ˈ|r|æ|n|d}})", "(/ˈaɪn ˈrænd/)"),
        ("{{IPA-de|ˈaʁtʊʁ}}", "ˈaʁtʊʁ"),
        ("{{nowrap|#1 hit}}", "#1 hit"),
        ("a {{nowrap|*x}} {{lang|fr|# y}}", "a *x # y"),
        ("{{hlist|#1|#2}}", "#1 · #2"),
        ("{{plainlist|\n* a\n}}", "a"),
        ("{{small|\n* a\n* b\n}}", "a · b"),
        ("as {{harvnb|Barnes|1995|p=9}} says", "as Barnes 1995, p. 9 says"),
        ("{{url|x.example|there}}", "[[http://x.example | there]]"),
        ("{{formatnum:1234}}", "1234"),
        ("a {{fr icon}} b", "a (fr) b"),
        ("a{{snds}}b{{mdashb}}c {{extinct}}d", "a – b — c †d"),
    ],
)
def test_templates_of_words_are_their_words(theirs: str, ours: str) -> None:
    assert text(theirs) == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{{Wayback|url=http://a.b/c|date=20090312022528|title=The ''c''}}",
         "[[https://web.archive.org/web/20090312022528/http://a.b/c | The c]]"),
        ("{{wayback|url=https://a.b/|date=last year}}",
         "[[https://web.archive.org/web/*/https://a.b/ | web.archive.org]]"),
        ("x {{webarchive|url=https://web.archive.org/web/2009/http://a.b/}}",
         "x [[https://web.archive.org/web/2009/http://a.b/ | web.archive.org]]"),
        ("x {{wayback|url=javascript:x|date=2009}} {{wayback|a}}", "x [wayback] a"),
    ],
)  # fmt: skip
def test_templates_of_archives_are_links(theirs: str, ours: str) -> None:
    assert text(theirs).partition("|!|")[0].rstrip() == ours


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("a [[{{#special:userlogin}}|log in ''here'']]s b", "a log in //here//s b"),
        ("x [[{{#special:Rename}}]] y", 'x Special"":""Rename y'),
        ("[[{{fullurl:x}} review it]]", "review it"),
        ("[[{{a}}b|c]] [[{{a}}|[[Dog]]s]]", "c [[Dog | Dogs]]"),
        ("[[<nowiki></nowiki>]]", '""[[""""]]""'),
        ("[[{{a}}\n|b]]", None),
        ("[[{{nowrap|Dog}}|b]]", None),
    ],
)
def test_a_link_whose_target_is_an_unknown_template_is_its_words(theirs: str, ours: str | None) -> None:
    found = made(theirs)
    shown = found.text.partition("\n\n|!|")[0]
    assert shown == ours if ours is not None else "[[" in shown
    assert found.unconverted["link of a template"] == (
        0 if ours is None or "nowiki" in theirs else theirs.count("[[{{")
    )


def test_citations_become_footnotes() -> None:
    source = (
        "a<ref>{{cite web |url=http://x.example/a |title=The [[Tide]] |last=Ozols |first=A |date=2009 |work=Sea}}</ref>"
        " b{{sfn|Barnes|1995|p=9}} c{{sfn|Barnes|1995|p=9}} d{{efn|with ''care''}}"
    )
    result = made(source)
    assert result.text == (
        "a[^Ozols, A (2009). [[http://x.example/a | The Tide]]. //Sea//.^] b[^Barnes 1995, p. 9^]"
        ' c""<sup><a href="#n-2">2</a></sup>"" d[^with //care//^]'
    )
    assert not result.unconverted
    assert text("* {{Cite book|title=Tides|author=B. Ola|year=1990|publisher=Port|isbn=1}}") == (
        "~- B. Ola (1990). Tides. Port. ISBN 1."
    )


def test_infoboxes_become_folded_tables() -> None:
    source = (
        "{{Infobox river\n| name = Gauja\n| length_km = {{nts|452}}\n| source = [[Elka]]\n| image = a.jpg\n| x =\n"
        "| mouth = {{odd|1}}sea\n}}\n'''Gauja''' is a river."
    )
    result = made(source)
    rows = ("|=|name||Gauja||", "|=|length km||452||", "|=|source||[[Elka]]||", "|=|image||a.jpg||", "|=|mouth||1sea||")
    box = folded("Infobox river", *rows)
    assert result.text == f"{box}\n\n**Gauja** is a river.\n\n" + folded("1 template", '||##""{{odd|1}}""##||')
    assert result.links == ("Elka",)
    html = render(parse(result.text, autolink=False), existing={"Elka"})
    assert html.startswith('<details class="folded"><summary>Infobox river</summary><div class="table"')
    assert '<tr><th scope="row">source</th><td><a href="/Elka">Elka</a></td></tr>' in html


def test_navigation_and_upkeep_show_nothing() -> None:
    upkeep = "{{stub}}\n{{refimprove|date=May}}\ntext{{citation needed|date=May}}\n"
    shown, _, note = text(upkeep + "{{Navbox\n|name=N\n|list1=[[a]]\n|list2=b}}").partition("\n\n")
    assert shown == "text"
    assert note.startswith(folded("4 templates"))
    html = render(parse(note, autolink=False), existing=frozenset())
    assert html.startswith('<details class="folded"><summary>4 templates</summary>')


def test_pictures_are_links_to_where_they_are() -> None:
    there = Dialect.of(NAMESPACES, pictures="https://w.example/wiki/Special:FilePath/")
    shown = convert("[[File:A b.jpg|thumb|The [[dog]]]]", namespaces=there, title="T").text
    assert shown == "[[https://w.example/wiki/Special:FilePath/A_b.jpg | picture: A b.jpg]] The [[Dog | dog]]"
    gallery = convert("<gallery>\nFile:A.png|one\n</gallery>", namespaces=there, title="T").text
    assert gallery == "~- [[https://w.example/wiki/Special:FilePath/A.png | picture: A.png]] one"


def test_the_picture_of_an_infobox_is_linked() -> None:
    there = Dialect.of(NAMESPACES, pictures="https://w.example/")
    box = "{{Infobox river\n| image = File:A b.jpg\n| logo = see a.jpg/x\n| name = N\n}}"
    shown = convert(box, namespaces=there, title="T").text
    assert "|=|image||[[https://w.example/A_b.jpg | picture: A b.jpg]]||" in shown
    assert "|=|logo||see a.jpg/x||" in shown


def test_pictures_of_a_folder_are_shown() -> None:
    folder = Dialect.of(NAMESPACES, pictures="https://p.example/", shows_pictures=True)
    shown = convert('[[File:A "b".jpg|thumb|A "dog"]] [[File:C.ogg]]', namespaces=folder, title="T").text
    assert shown == (
        '{{image url="https://p.example/A_%22b%22.jpg" alt="A dog"}} A "dog"\n\n'
        "[[https://p.example/C.ogg | picture: C.ogg]]"
    )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Coined by {{person|William|Gibson}} in his novel", "Coined by Gibson in his novel"),
        ("Coined by {{person|[[Gibson]]|}} in his novel", "Coined by [[Gibson]] in his novel"),
        ("In {{reign}} he died", "In [reign] he died"),
        ("In {{reign|left|20px|Center}} he died", "In [reign] he died"),
        ("In {{" + "r" * 60 + "}} he", "In [" + "r" * 39 + "…] he"),
        ("* {{foo|bar}}\n* {{foo}}", "~- bar\n~- [foo]"),
        (";{{foo|bar}}: x", "**bar**\n~x"),
        ("== {{foo|bar}} ==", "=====bar====="),
        ("== a == {{foo|bar}}", "=====a====="),
        ("{|\n| {{won}} || rowspan=2 {{foo|bar}}\n|}", "||[won]||(y:2)bar||"),
        ("a [[{{foo|bar}}]] [[{{foo|bar}}|b]] [[C|{{foo|d}}]]", "a bar b [[C | d]]"),
        ("see {{outer|q|{{inner|[[Link]]}}}} end", "see [[Link]] end"),
        ("a {{foo|\n* b\n* c\n}} d", "a b · c d"),
        ("a {{citation needed|date=May}} {{clear}} b", "a b"),
        ("a {{DEFAULTSORT:Riga}} b {{SORTIERUNG:Riga}}", "a b"),
        ("{{foo|bar}}* item", "~- item"),
    ],
)
def test_a_call_of_an_unknown_template_in_a_line_is_its_last_words_or_its_name(theirs: str, ours: str) -> None:
    assert re.sub(" +", " ", text(theirs).partition("|!|")[0]).rstrip() == ours


def test_a_note_of_an_unknown_template_has_its_last_words() -> None:
    assert text("a<ref>{{web|''t''}}</ref>").startswith("a[^//t//^]\n")


@pytest.mark.parametrize(
    "theirs", ["{{foo|bar}}", "{{foo}}<br>", "{{foo|bar}} {{foo}} [[Category:X]]", "{{foo\n|bar\n}}"]
)
def test_a_call_alone_in_its_line_shows_nothing(theirs: str) -> None:
    assert text(f"a\n\n{theirs}\n\nb").partition("\n\n|!|")[0] == "a\n\nb"


def test_a_call_of_several_lines_above_words_shows_nothing() -> None:
    assert text("{{box\n|a\n|b\n}} '''Gauja'''").partition("\n\n|!|")[0].strip() == "**Gauja**"


def test_the_source_of_an_unknown_call_is_listed_and_its_links_stand_once() -> None:
    result = made("see {{A1|[[One]]|{{B1|[[Two]]}}}}\n\n{{C1|[[Three]]|{{D1|[[Four]]}}}}")
    assert result.text == "see [[Two]]\n\n" + folded(
        "2 templates",
        '||##""{{A1|""[[One]]""|{{B1|Two}}}}""##||',
        '||##""{{C1|""[[Three]]""|{{D1|""[[Four]]""}}}}""##||',
    )
    assert set(result.links) == {"One", "Two", "Three", "Four"}
    assert result.unconverted["template: its last words shown"] == 4


def test_nested_unknown_calls_take_linear_room() -> None:
    deep = made("a " + "{{x|" * 3_000 + "[[w]]" + "}}" * 3_000 + " b")
    assert deep.text.startswith("a [[W | w]] b")
    assert len(deep.text) < 3_000 * 60


def test_a_parameter_of_several_lines_keeps_them() -> None:
    fold = "-- {{{ Tags\ntags = {}\n  a = 1\n-- }}}"
    assert text(" " + fold.replace("\n", "\n ")) == f"%%\n{fold}\n%%"
    assert text("{{{x|\n* a\n* b}}}\n") == text("\n* a\n* b\n")
    assert text("{{{a\nb}}}") == '""{{{""a b""}}}""'

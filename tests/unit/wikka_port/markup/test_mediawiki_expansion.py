"""Calls of a dump's own simple templates are what these templates make of them."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from wikka_port.markup.mediawiki import Converted, Dialect, convert
from wikka_port.markup.mediawiki_expansion import BODY_CHARS_MAX, CALL_CHARS_MAX, simple_body
from wikka_port.markup.mediawiki_pieces import EXPANDED_CHARS_MAX

TEMPLATES = {
    "Taiss:Hello": "Hello {{{1|you}}}<noinclude> [[Taiss:Doc]]</noinclude>",
    "Taiss:Bold": "<includeonly>'''{{{x}}}'''</includeonly><!-- c -->",
    "Taiss:Only": "left out <onlyinclude>see {{hello|{{{who|{{{1|W}}}}}}}}</onlyinclude> left out",
    "Taiss:List": "* {{{1}}}\n* {{{2|[[Z|z]]}}}",
    "Taiss:Row": "|-\n| {{{1}}} || {{{2}}}",
    "Taiss:Box": "{{{!}} x".replace("{{{!}}", "{|") + "\n| {{{1}}}\n|}",
    "Taiss:Twice": "{{{1}}}{{{1}}}",
    "Taiss:Image": "[[{{{1}}}|{{{2|here}}}]]",
    "Taiss:Kind": "x[[Kategoreja:A]]",
    "Taiss:Nothing": "<noinclude>x</noinclude>",
    "Taiss:Loop": "a{{Loop}}",
    "Taiss:Ping": "p{{Pong|{{{1|}}}}}",
    "Taiss:Pong": "q{{Ping|{{{1|}}}}}",
    "Taiss:Bars": "{{{1}}}{{!}}{{{2}}}",
    "Taiss:Noted": "{{{1}}}<ref>{{{2}}}</ref>",
}
BODIES = {title: body for title, text in TEMPLATES.items() if (body := simple_body(text)) is not None}
DIALECT = Dialect.of({"": 0, "Taiss": 10, "Kategoreja": 14}, templates=BODIES)


def made(wikitext: str, dialect: Dialect = DIALECT) -> Converted:
    return convert(wikitext, namespaces=dialect, title="T")


def test_these_are_simple() -> None:
    assert set(BODIES) == set(TEMPLATES)


@pytest.mark.parametrize(
    "body",
    [
        "{{#invoke:X|y}}",
        "{{int:x}}",
        "{{x",
        "x}}",
        "{{{1",
        "{{}}",
        "x" * (BODY_CHARS_MAX + 1),
        "\x02" + "0\x03",
    ],
)
def test_these_are_not_simple(body: str) -> None:
    assert simple_body(body) is None


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{{Hello}}, {{hello|Ada}}, {{ hello |1= [[Bob]] }}", "Hello you, Hello Ada, Hello [[Bob]]"),
        ("{{Template:Hello|a}} {{taiss:hello|b}} {{twice|{{hello|c}}}}", "Hello a Hello b Hello cHello c"),
        ("{{hello|}}.", "Hello ."),
        ("a {{bold|x=y}} {{bold|X=y}}", 'a **y** **""{{{""x""}}}""**'),
        ("a {{only}} {{only|B}} {{only|who=C}}.", "a see Hello W see Hello B see Hello C."),
        ("{{list|a}}", "~- a\n~- [[Z | z]]"),
        ("a {{list|a}}", "a\n\n~- a\n~- [[Z | z]]"),
        ("{|\n{{row|1|2}}\n{{row|3|[[four]]}}\n|}", "||1||2||\n||3||[[Four | four]]||"),
        ("{{box|a}}", "||a||"),
        ("{{nowrap|{{hello|a}} {{list|b}}}}", "Hello a b · [[Z | z]]"),
        ("{{twice|[[Q]]}} {{twice|a}}", "[[Q]]Q aa"),
        ("{{image|Dog}} {{image|Dog|''x''}}", "[[Dog | here]] //[[Dog | x]]//"),
        ("a {{nothing}} b\n{{nothing}}\nc", "a  b c"),
        ("[[{{hello|}}|w]] [[{{nothing}}x]]", None),
        ("{{bars|a|b}}", "a|b"),
        ("a <!-- {{hello}} --> <nowiki>{{hello}}</nowiki>", 'a ""{{hello}}""'),
        ("'''a {{hello|b'''c}}", "**a Hello b**c"),
    ],
)
def test_simple_templates_are_expanded(theirs: str, ours: str | None) -> None:
    found = made(theirs)
    if ours is not None:
        assert found.text == ours
        assert not found.unconverted
    assert "|!|" not in found.text


def test_categories_links_and_notes_of_a_template_are_the_pages() -> None:
    found = made("{{kind}} {{noted|[[A]]|b}}")
    assert found.categories == ("Kategoreja:A",)
    assert "A" in found.links
    assert "b" in found.text
    assert found.converted["reference"] == 1


def test_a_template_that_calls_itself_ends() -> None:
    assert made("{{loop}}!").text.startswith("aaaaaaaa[Loop]!")
    assert made("{{ping|x}}!").text.startswith("pqpqpqpq")
    assert "{{ping" not in made("{{ping|{{ping|{{ping|x}}}}}}").text.partition("|!|")[0]


def test_expansions_are_bounded() -> None:
    body = "x" * BODY_CHARS_MAX
    templates = {"Template:Long": body, "Template:Wide": "{{{1}}}" * 2_000, "Template:Fan": "{{Fan}}" * 1_000}
    dialect = Dialect.of({"": 0}, templates=templates)
    began = time.process_time()
    assert len(made("a {{long}} " * 2_000, dialect).text) < 2 * EXPANDED_CHARS_MAX
    assert len(made("a {{wide|" + "y" * 1_000 + "}}", dialect).text) < CALL_CHARS_MAX
    assert len(made("a {{fan}} {{fan}}", dialect).text) < 3 * EXPANDED_CHARS_MAX
    nested = made("{{twice|" * 2_000 + "[[Q]]" + "}}" * 2_000)
    assert len(nested.text) < 4 * EXPANDED_CHARS_MAX
    assert time.process_time() - began < 20


@pytest.mark.parametrize("body", ["{{{1}}}" * 2_000, "{{#if:" + "{{{1}}}" * 2_000 + "|yes}}"])
def test_a_long_value_in_many_places_takes_bounded_room(body: str) -> None:
    """Without a bound a page of a few megabytes takes gigabytes."""
    dialect = Dialect.of({"": 0}, templates={"Template:Wide": body}, language="en")
    tracemalloc.start()
    try:
        made("a {{wide|" + "y" * 100_000 + "}}", dialect)
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 * 1024 * 1024


def test_calls_that_are_too_long_use_up_the_room_of_a_page() -> None:
    """Else each of a hundred thousand calls is made in vain."""
    templates = {"Template:Wide": "{{{1}}}" * 2_000, "Template:Hello": "Good day"}
    dialect, long = Dialect.of({"": 0}, templates=templates), "a {{wide|" + "y" * 1_000 + "}} "
    assert "Good day" in made(long + "{{hello}}", dialect).text
    assert "Good day" not in made(long * 10 + "{{hello}}", dialect).text


def test_a_parameter_of_a_page_is_its_default_or_as_typed() -> None:
    found = made("a {{{1|''b''}}} {{{x}}} {{{y|}}} c")
    assert found.text.startswith('a //b// ""{{{x}}}""  c')
    assert found.unconverted["parameter"] == 3

"""MediaWiki's functions of strings, paths and parts of addresses: what they make, and that they are bounded."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.markup.mediawiki import Dialect, convert
from wikka_port.markup.mediawiki_expansion import simple_body
from wikka_port.markup.mediawiki_strings import (
    PADDED_CHARS_MAX,
    STRING_CHARS_MAX,
    TITLE_PARTS_MAX,
    decoded,
    encoded,
    exploded,
    last_place_of,
    padded,
    part_of,
    path_of,
    place_of,
    replaced,
    title_part,
    whole_of,
)
from wikka_port.markup.mediawiki_values import ExpressionError

TEMPLATES = {
    "Len": "{{#len:{{{1}}}}}",
    "Swap": "{{#replace:{{{1}}}|a|{{{2}}}}}",
    "Hello": "Hello {{{1|you}}}",
    "First": "{{#if:{{#pos:{{{1}}}|,}}|{{#sub:{{{1}}}|0|{{#pos:{{{1}}}|,}}}}|{{{1}}}}}",
}
BODIES = {f"Template:{name}": body for name, text in TEMPLATES.items() if (body := simple_body(text)) is not None}
NAMES = {"": 0, "User": 2, "User talk": 3, "Template": 10}


def shown(wikitext: str, language: str = "en") -> str:
    dialect = Dialect.of(NAMES, templates=BODIES, language=language, base="https://en.wikipedia.org/wiki/Main_Page")
    text = convert(wikitext, namespaces=dialect, title="User:Ada/b").text
    return text.partition("|!|(c:folded)||")[0].rstrip("\n")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("{{#len: abc }} {{#len:}} {{#len:é港}} {{#len:&amp;}} {{#len:[[a|b]]}} {{#len:{{hello}}}}", "3 0 2 5 7 9"),
        ("{{#len:<nowiki>abc</nowiki>d}} {{#len:a<!-- b -->c}}", "1 2"),
        ("{{#pos:abcabc|c}} {{#pos:abcabc|c|3}} x{{#pos:abc|z}}x {{#pos:a b|}} {{#pos:abc|c|99}}x", "2 5 xx 1 x"),
        ("{{#rpos:abcabc|c}} {{#rpos:abc|z}}", "5 -1"),
        ("{{#sub:abcdef|1}} {{#sub:abcdef|-2}} {{#sub:abcdef|1|2}} {{#sub:abcdef|1|-1}} x{{#sub:abc|9}}x",
         "bcdef ef bc bcde xx"),
        ("{{#sub:abc|x}} {{#sub:abc|1.9}} {{#sub:abc| 1 }}", "abc bc bc"),
        ("{{#count:aXbXc|X}} {{#count:a b c}} {{#count:aaa|aa}}", "2 2 1"),
        ("{{#replace:a-b-c|-|+}} {{#replace:a-b-c|-|+|1}} {{#replace:a-b|-}} {{#replace:a-b|-|+|0}}",
         "a+b+c a+b-c ab a-b"),
        ("{{#replace:a b|<nowiki> </nowiki>|_}} {{#replace:abc|b|''x''}}", "a_b a//x//c"),
        ("{{#explode:a,b,c|,|1}} {{#explode:a,b,c|,|-1}} {{#explode:a b}} {{#explode:a,b,c|,|1|2}}", "b c a b,c"),
        ("x{{#explode:a,b|,|5}}x{{#explode:a,b|,|-5}}x{{#explode:a,b|,|z}}x", "xxxx"),
        ("{{#urldecode:a%20b+c%C3%A9}}", "a b cé"),
        ("{{#rel2abs:x/../y|Q}} {{#rel2abs:/c|A/b}} {{#rel2abs:../c|A/b}} {{#rel2abs:|A/b}} {{#rel2abs:./c//d|A}}",
         "y A/b/c A/c A/b A/c/d"),
        ("{{#ifeq:{{#rel2abs:../c}}|User:Ada/c|yes|no}} {{#iferror:{{#rel2abs:../..|A}}|wrong|right}}", "yes wrong"),
        ("{{#ifeq:{{#sub:abc|0|1}}|a|yes|no}} {{#if:{{#pos:abc|x}}|yes|no}} {{#expr:{{#len:abc}} * 2}}", "yes no 6"),
        ("{{first|Ada, Countess}} {{first|Ada}} {{swap|banana|o}} {{len|x}}", "Ada Ada bonono 1"),
        ("{{#titleparts:user:ada/b|1|2}} {{#titleparts:a/b|1}} {{#titleparts:a<b/c|1}}", "b A a<b/c"),
        ("{{urlencode:a b/c}} {{urlencode:a b/c|PATH}} {{urlencode:a b/c|WIKI}}", "a+b%2Fc a%20b%2Fc a_b/c"),
        ("{{anchorencode:a  ''b''}} {{nse:User talk}} {{nse:3}}", "a_b User_talk User_talk"),
    ],
)  # fmt: skip
def test_functions_of_strings(theirs: str, ours: str) -> None:
    assert shown(theirs) == ours


def test_names_in_other_languages() -> None:
    assert shown("{{#zähle:a,b,c|,}} {{#ersetze:a|a|b}}", "de") == "2 b"
    assert shown("{{#長さ:abc}} {{#切り取り:abc|1}}", "ja") == "3 bc"
    assert shown("x {{#zähle:a|a}}", "fr") == "x a"  # none of its functions: the last words are shown


def test_what_they_make_is_text() -> None:
    """Braces call nothing, bars divide nothing, and no mark comes out of an address."""
    assert "Hello" not in shown("a {{#urldecode:%7B%7Bhello%7D%7D}}")
    assert shown("{{hello|{{#replace:a-b|-|{{!}}}}}}").replace('""', "") == "Hello a|b"
    assert shown("[[{{#replace:a-b|-|{{!}}}}]]") == "[[A | b]]"
    assert "\x02" not in shown("{{#urldecode:%020%03}} [[a]]")
    assert shown("x {{#urldecode:%020%03}} [[a]]").startswith("x \ufffd0\ufffd")
    assert "|b" in shown("{{padleft:b|2|{{!}}}}").replace('""', "")


def test_a_text_with_converted_constructs_is_left_undecided() -> None:
    assert shown("x {{len|[[a|b]]}}") == 'x [#len"":""b]'
    assert "nobody knows" in shown("x {{#len:{{nobody knows}}}}")


def test_texts_over_the_bound_are_errors() -> None:
    long = "a" * STRING_CHARS_MAX
    assert shown(f"{{{{#len:{long}}}}}") == str(STRING_CHARS_MAX)
    for call in ("#pos:LONG|a", "#rpos:LONG|a", "#sub:LONG|1", "#count:LONG|a", "#replace:LONG|a|b", "#explode:LONG|a"):
        assert shown(f"{{{{#iferror:{{{{{call.replace('LONG', long)}}}}}|wrong|right}}}}") == "wrong", call
    assert shown(f"{{{{#iferror:{{{{#urldecode:{long}}}}}|wrong|right}}}}") == "wrong"
    just = "a" * (STRING_CHARS_MAX - 1)
    assert replaced(just, "b", "c", None) == just
    with pytest.raises(ExpressionError):
        replaced(just, "a", "bc", None)


@given(st.text(max_size=40), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
def test_no_text_makes_them_fail(text: str, one: str, other: str, third: str) -> None:
    try:
        made = [
            *(place_of(text, one, other), last_place_of(text, one), part_of(text, one, other), decoded(text)),
            *(replaced(text, one, other, third), exploded(text, one, other, third), path_of(text, one)),
            *(encoded(text.encode(errors="replace").decode(), one), title_part(text, one, other)),
        ]
    except ExpressionError:
        return
    assert all(len(part) <= STRING_CHARS_MAX for part in made)


def test_bounds_hold_for_replacements() -> None:
    began = time.process_time()
    for _ in range(200):
        with pytest.raises(ExpressionError):
            replaced("a" * 900, "a", "b" * 900, None)
    assert time.process_time() - began < 5


def test_numbers_are_read_as_php_reads_them() -> None:
    assert [whole_of(text) for text in ("3abc", " 7", "-2.9", "1e2", "x", "", "9" * 40)] == [3, 7, -2, 100, 0, 0, 10**9]
    assert part_of("abc", "-9", "2") == "ab"
    with pytest.raises(ExpressionError):
        place_of("abc", "a", "-9")


def test_filling() -> None:
    assert padded("7", "3", "0", before=True) == "007"
    assert padded("7", "4", "ab", before=False) == "7aba"
    assert padded("7", "x", "0", before=True) == "7"
    assert padded("7", "-1e300", "0", before=True) == "7"
    assert len(padded("7", "1e300", "0", before=True)) == PADDED_CHARS_MAX


def test_parts_of_titles() -> None:
    assert title_part("A/b/c", "", "2") == "b/c"
    assert title_part("A/b/c", "1e9", "-2") == "b/c"
    assert title_part("A/b/c", "-3", "") == ""
    assert title_part("A", "1", "9") == ""
    assert title_part("/".join("a" * 30), "1", "-1") == "/".join("a" * (30 - TITLE_PARTS_MAX + 1))

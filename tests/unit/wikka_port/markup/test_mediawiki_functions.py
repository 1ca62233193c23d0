"""Parser functions of MediaWiki: what they make, in pages and in templates, and that hostile ones are bounded."""

from __future__ import annotations

import time

import pytest

from tests.support.linear_cost import require_linear
from wikka_port.markup.document import parse, render
from wikka_port.markup.mediawiki import Converted, Dialect, convert
from wikka_port.markup.mediawiki_expansion import CALL_CHARS_MAX, simple_body
from wikka_port.markup.mediawiki_pieces import EXPANDED_CHARS_MAX

NAMES = {"": 0, "Talk": 1, "User": 2, "File": 6, "Template": 10, "Category": 14}
TEMPLATES = {
    "Hello": "Hello {{{1|you}}}",
    "Nothing": "<noinclude>x</noinclude>",
    "Bold": "{{#if:{{{1|}}}|'''{{{1}}}'''|nobody}}",
    "Born": "{{#if:{{{year|}}}|({{{year}}}{{#if:{{{place|}}}|, {{{place}}}}})}}",
    "Kind": "{{#switch:{{lc:{{{1|}}}}}|ship|boat=by sea|car=by land|#default=on foot}}",
    "Where": "{{#ifeq:{{NAMESPACE}}|Talk|[[Category:Talks]]|[[Category:Pages]]}}",
    "Noted by": "{{{1}}}{{#tag:ref|see {{{2}}}|name={{{3|n}}}}}",
    "Row": "{{#if:{{{2|}}}|{{!}}-\n{{!}} {{{1}}} {{!}}{{!}} {{{2}}}}}",
    "Table": "{{{!}}\n{{row|a|{{{1|}}}}}\n{{row|b|{{{2|}}}}}\n|}",
    "Twice": "{{#if:{{{1|}}}|{{{1}}} and {{{1}}}}}",
    "Nested": "{{#if:{{bold|{{{1|}}}}}|{{bold|{{{1|}}}}}|never}}",
    "Asks": "{{#ifeq:{{hello|{{{1|}}}}}|Hello Ada|it is Ada|it is not}}",
    "Loop": "{{#if:{{loop}}|a|b}}",
    "Fan": "{{#if:" + "{{fan}}" * 50 + "|a|b}}",
    "Lua": "{{#invoke:Box|main|{{{1}}}}}",
    "Old": "{{safesubst:#if:{{{1|}}}|given|not given}}",
    "Time": "{{#if:{{{1|}}}|on {{#time:j F Y|{{{1}}}}}}}",
    "Colour": '<span style="color:{{#if:{{{1|}}}|{{{1}}}|#fff}}">x</span>',
    "Cite web": "{{#if:{{{title|}}}|wrong}}",
    "Sum": "{{#expr:{{{1}}} + {{{2|0}}}}}",
}
BODIES = {f"Template:{name}": body for name, text in TEMPLATES.items() if (body := simple_body(text)) is not None}
DIALECT = Dialect.of(NAMES, templates=BODIES, language="en", base="https://en.wikipedia.org/wiki/Main_Page")


def made(wikitext: str, title: str = "Riga") -> Converted:
    return convert(wikitext, namespaces=DIALECT, title=title)


def shown(wikitext: str, title: str = "Riga") -> str:
    """The converted text without the table of calls."""
    return made(wikitext, title).text.partition("|!|(c:folded)||")[0].rstrip("\n")


def test_templates_in_lua_alone_are_not_simple() -> None:
    assert set(TEMPLATES) - {title.partition(":")[2] for title in BODIES} == {"Lua"}


@pytest.mark.parametrize(
    "body", ["{{#invoke:X|y}}", "{{int:x}}", "{{#if:x|{{y}}", "{{#if:x|y}}}}", "{{#nobody:x}}", "{{Foo:{{{1}}}}}"]
)
def test_other_functions_and_unpaired_braces_make_no_simple_template(body: str) -> None:
    assert simple_body(body) is None


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("a {{#if:x|yes|no}} {{#if: |yes|no}} {{#if:x}} {{#if:|yes}}b", "a yes no b"),
        ("a {{ #IF : x | yes }}", "a yes"),
        ("a {{#if:<!-- c -->|yes|no}} {{#if:{{#if:|x}}|yes|no}}", "a no no"),
        ("a {{#if:x|''b'' [[Dog|d]] {{hello|Ada}}|no}}", "a //b// [[Dog | d]] Hello Ada"),
        ("a {{#if:x|{{#if:|b|{{#if:y|c}}}}}}", "a c"),
        ("a {{#ifeq:x|x|yes|no}} {{#ifeq: 01 |1.0|yes|no}} {{#ifeq:a|A|yes|no}} {{#ifeq:x|x}}b", "a yes yes no b"),
        ("a {{#ifeq:{{PAGENAME}}|Riga|yes|no}} {{#ifeq:{{NAMESPACE}}||yes|no}}", "a yes yes"),
        ("a {{#ifeq:{{hello}}|Hello you|yes|no}} {{#ifeq:&amp;|&|yes|no}}", "a yes yes"),
        ("a {{#switch:b|a=1|b=2|3}} {{#switch:x|a=1|b=2|3}} {{#switch:x|a=1}}c", "a 2 3 c"),
        ("a {{#switch:b|a|b|c=1|d=2}} {{#switch:x|#default=1|a=2}} {{#switch:2.0|2=yes}}", "a 1 1 yes"),
        ("a {{#switch:x|a=1|#default|b=2|c=3}}", "a 2"),
        ("a {{#switch:b|a=1|b=<span style=\"x\">y=z</span>}}", "a y=z"),
        ("a {{#ifexpr:1<2|yes|no}} {{#ifexpr:0|yes|no}} {{#ifexpr:|yes|no}}", "a yes no no"),
        ("a {{#iferror:{{#expr:1/0}}|wrong|right}} {{#iferror:{{#expr:1}}|wrong}} {{#iferror:x|wrong|right}}",
         "a wrong 1 right"),
        ("a {{#expr:2 + 3 * 4}} {{#expr:(1 + 2) / 3 = 1 and not 0}}", "a 14 1"),
        ("{{lc:ABC}} {{uc:abc}} {{lcfirst:ABC}} {{ucfirst:abc}}", "abc ABC aBC Abc"),
        ("{{uc:a [[dog]] ''b''}} {{uc:{{hello|Ada}}}}", "A [[DOG]] //B// HELLO ADA"),
        ("{{uc:[[dog|{{hello|Ada}}]]}}", "[[DOG | HELLO ADA]]"),
        ("{{formatnum:1234567.891}} {{formatnum:-999}} {{formatnum:x}} {{formatnum:1,234|R}}",
         "1,234,567.891 -999 x 1234"),
        ("1 {{plural:1|ship|ships}} 2 {{plural:2|ship|ships}} {{plural:3|1=one|3=three|many}}", "1 ship 2 ships three"),
        ("{{padleft:7|3}} {{padleft:7|3|ab}} {{padright:7|3|0}} {{padleft:7|-9}}", "007 ab7 700 7"),
        ("{{#titleparts:A/b/c|1}} {{#titleparts:A/b/c|1|2}} {{#titleparts:A/b/c|-1}} {{#titleparts:A/b/c||-1}}",
         "A b A/b c"),
        ("a{{#tag:ref|see ''b''|name=n}} c<ref name=n />", 'a[^see //b//^] c""<sup><a href="#n-1">1</a></sup>""'),
        ("a{{#tag:ref|see|name=n>x}} b{{#tag:ref|more|name=<i>}}", "a[^see^] b[^more^]"),
        ("{{#tag:nowiki|'''x'''}} {{#tag:br}}y", "\"\"'''x'''\"\" [#tag\"\":\"\"br]y"),
        ("a {{#if:x|{{!}}}} {{#ifeq:{{!}}|{{!}}|yes|no}} {{#ifeq:{{=}}|=|yes|no}}", "a | yes yes"),
        ("Items:{{#if:x|* a\n* b}}", "Items:\n\n~- a\n~- b"),
        ("{{#if:x|* a\n* b}}\n* c", "~- a\n~- b\n~- c"),
        ("{|\n| {{#if:x|a}} || {{#if:|b}}c\n|}", "||a||c||"),
        ("[[{{#if:x|Dog|Cat}}|{{#if:x|d}}]] [http://a.b/{{#if:x|c}} {{#if:x|d}}]", "[[Dog | d]] [[http://a.b/c | d]]"),
        ("{{hello|{{#if:x|a=b}}}} {{hello|{{#if:x|<b>c</b>}}}}", "Hello a=b Hello **c**"),
        ("<nowiki>{{#if:x|y}}</nowiki> <!-- {{#if:x|y}} -->b", '""{{#if:x|y}}"" b'),
        ("{|\n| style=\"color:{{#if:x|#fff}}\" bgcolor={{#if:x|#fff}} | a\n|}", "||a||"),
        ("{{#if:x|{{{!}}\n{{!}} a\n{{!}}}\n}}", "||a||"),
        ("b{{#if:x|{{{!}}\n{{!}} a\n{{!}}}\n}}", "b\n\n||a||"),
        ("''{{#if:x|a}}'' == {{uc:b}} ==", '//a// ""=="" B ""==""'),
        ("== {{uc:b}} ==", "=====B====="),
        ("a {{#if:x|b", 'a ""{{""#if"":""x|b'),
        ("<gallery>\nFile:A.jpg|{{#if:x|words}}\n</gallery>", '~- ##""[image: A.jpg]""## words'),
    ],
)  # fmt: skip
def test_functions_in_a_page(theirs: str, ours: str) -> None:
    assert " ".join(shown(theirs).split(" ")).replace("  ", " ") == ours.replace("  ", " ")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ('{{#switch:a|b=1|text<ref name="n">note</ref>}}', "text[^note^]"),
        ('x<ref name="n">y</ref> {{#switch:a|b=1|text<ref name="n" />}}',
         'x[^y^] text""<sup><a href="#n-1">1</a></sup>""'),
        ("{{#if:x|a<ref>b|c</ref>d}}", "a[^b|c^]d"),
        ("{{#if:x|a<ref>b }} c</ref>d}}", 'a[^b ""}}"" c^]d'),
        ("{{#if:<ref>n</ref>|yes|no}}", "yes"),
        ("{{#if:x|\n<gallery>\nA.jpg|words\n</gallery>\n}}", '~- ##""[image: A.jpg]""## words'),
        ("{{lc:Text<ref>Foo Bar</ref> ABC}} {{uc:a<nowiki>b</nowiki>}}", "text[^Foo Bar^] abc Ab"),
        ("a {{#if:\u3000|yes|no}} {{#ifeq:&nbsp;||same|other}} {{#switch:&nbsp;|=none|some}}", "a yes other some"),
        ("{{padleft:7|3|}} {{padleft:7|3| }} {{padleft:7|3|{{{1|}}}}}", "7 7 7"),
        ("a {{formatnum:&lt;!--}} {{padleft:&#91;[b]]|2}} c", 'a <!-- ""[[b]]"" c'),
        ("a {{#urldecode:%3C!--}} {{#urldecode:%3Cnowiki%3E}} ''b''", 'a <!-- ""&lt;nowiki&gt;"" //b//'),
        ("{{#len:a<ref name=x>b|c</ref>d}} {{#rel2abs:/&lt;!--}}", "2 Riga/<!--"),
        ("{{plural:1,000|ship|ships}} {{formatnum:1,000.5|R}} {{formatnum:a,b|R}}", "ships 1000.5 a,b"),
        ("{{#switch:b|b|{{nobody knows}}=yes|no}}", "yes"),
    ],
)  # fmt: skip
def test_what_looks_like_a_part_of_a_call_and_is_a_value(theirs: str, ours: str) -> None:
    found = render(parse(shown(theirs), autolink=False), existing=set())
    assert found == render(parse(ours, autolink=False), existing=set())


def test_a_value_that_is_used_again_keeps_its_length_and_its_code_is_no_markup() -> None:
    words = "word " * 300
    assert shown("{{twice|[[Ada]] " + words + "}}").count("word") == 600
    found = made("{{twice|<nowiki>[[Category:X]]<!--</nowiki>}} b")
    assert found.categories == ()
    assert found.text.endswith(" b")
    assert render(parse(found.text, autolink=False), existing=set()).count("[[Category:X]]&lt;!--") == 2


def test_a_value_with_a_sign_stays_what_it_is_in_a_function_that_is_not_evaluated() -> None:
    dialect = Dialect.of(NAMES, templates={"Template:T": "{{#ifexist:Foo|{{{x}}}}}"}, language="en")
    text = convert('b {{t|x=<span title="a">v</span>}}', namespaces=dialect, title="P").text
    assert text.startswith("b v")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("a {{#if:{{nobody knows}}|yes|no}}", "a no"),
        ("a {{#if:{{nobody knows}}|yes}}", "a yes"),
        ("a {{#if:{{nobody knows}}|yes|}}", "a yes"),
        ("a {{#ifeq:{{lua|x}}|b|yes|{{#if:c|no}}}}", "a no"),
        ("a {{#switch:{{CURRENTYEAR}}|2020=x|then}}", "a then"),
        ("a {{#switch:{{CURRENTYEAR}}|2020=x|2021=y=z}}", "a y=z"),
        ('a {{#if:{{nobody knows}}|<span style="x">words</span>}}', "a words"),
        ("a {{#ifexist:Harbour|[[Harbour]]|none}}", "a none"),
        ("a {{#time:Y}} {{#expr:1 +}} {{#invoke:X|y|words}}", 'a [#time"":""Y] [#expr"":""1 +] words'),
        ("a {{plural:many|ship|ships}} {{GENDER:x|he|she}} {{GRAMMAR:genitive|Riga}}", "a ships she Riga"),
        ("a {{time|2020}}", "a on 2020"),
    ],
)
def test_what_cannot_be_decided_leaves_its_last_words_or_its_name(theirs: str, ours: str) -> None:
    assert shown(theirs) == ours


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        ("a {{bold|Ada}} {{bold}} {{bold| }}", "a **Ada** nobody nobody"),
        ("a {{bold|[[Ada]]}} {{bold|{{nothing}}}}", "a **[[Ada]]** nobody"),
        ("a {{twice|[[Ada]]}}", "a [[Ada]] and Ada"),
        ("b {{born|year=1809|place=[[Hodgenville]]}} {{born|year=1809}} {{born}}c",
         "b (1809, [[Hodgenville]]) (1809) c"),
        ("{{kind|Ship}}, {{kind|boat}}, {{kind|CAR}}, {{kind}}", "by sea, by sea, by land, on foot"),
        ("x {{nested|Ada}} {{asks|Ada}} {{asks|Bob}}", "x **Ada** it is Ada it is not"),
        ("{{table|1|2}}", "||a||1||\n||b||2||"),
        ("{{table|1}}", "||a||1||"),
        ("{{old|x}} {{old}}", "given not given"),
        ("a {{lua|words}}", "a words"),
        ("a {{colour|red}} {{colour}}", "a x x"),
        ("{{sum|1|2}} {{sum|{{sum|1|2}}|3}} x{{sum|a}}", '3 6 x[#expr"":""a + 0]'),
        ("{{cite web|title=T}}", "T."),
    ],
)  # fmt: skip
def test_functions_in_templates(call: str, ours: str) -> None:
    assert shown(call).replace("  ", " ") == ours


def test_branches_that_are_not_taken_leave_nothing() -> None:
    found = made("a {{#if:|[[Cat]]<ref>n</ref>[[Category:X]][[fr:Chat]]{{nobody}}|[[Dog]]}} {{where}}")
    assert (found.links, found.categories) == (("Dog",), ("Category:Pages",))
    assert "[^" not in found.text
    assert "fr" not in found.text
    assert "|!|" not in found.text
    assert made("{{where}}", "Talk:Riga").categories == ("Category:Talks",)
    assert found.converted["parser function"] == 2


def test_a_note_of_a_template_is_one() -> None:
    found = made("{{noted by|Riga|[[Tide]]}} {{noted by|b|c|m}}")
    assert found.text == "Riga[^see [[Tide]]^] b[^see c^]"
    assert found.links == ("Tide",)


def test_the_page_of_a_template_keeps_its_functions() -> None:
    assert "{{#if:x|y}}" in render(parse(made("{{#if:x|y}}", "Template:Odd").text, autolink=False), existing=set())


def test_templates_that_call_themselves_in_what_decides_end() -> None:
    began = time.process_time()
    assert shown("a {{loop}} b") == "a b b"
    fan = shown("a {{fan}} {{fan}} c")
    assert (fan[:4], fan[-2:]) == ("a b ", " c")
    assert time.process_time() - began < 20


def test_functions_that_read_a_value_twice_end() -> None:
    """Each level would double the work: 2 ** 40 groups, of which a page has a bounded number."""
    began = time.process_time()
    assert shown("a " + "{{#iferror:" * 40 + "x" + "}}" * 40 + " b").startswith("a ")
    assert time.process_time() - began < 20


DEEP = [
    "{{#if:", "{{#if:a|", "{{#if:|a|", "{{#ifeq:a|", "{{#switch:a|b=", "{{#switch:a|a|", "{{#expr:1+", "{{#iferror:",
    "{{lc:", "{{uc:[[", "{{#tag:ref|", "{{#if:{{", "{{#if:{{{", "{{#if:[[", "{{hello|{{#if:a|", "{{#if:{{hello|",
    "{{bold|", "{{nested|", "{{#expr:(", "{{padleft:", "{{plural:1|", "{{#if:{{nobody|", "{{formatnum:",
    "{{#titleparts:", "{{#len:", "{{#replace:a|", "{{#sub:{{hello|", "{{#rel2abs:../", "{{#explode:a|", "{{#urldecode:",
]  # fmt: skip


@pytest.mark.parametrize("unit", DEEP)
def test_hostile_depth_and_size_take_linear_time(unit: str) -> None:
    """What is quadratic takes many seconds."""
    closing = "".join({"{{": "}}", "[[": "]]"}[two] for two in _pairs(unit))

    def work(size: int) -> None:
        count = size // len(unit)
        made(unit * count)
        made(unit * (count // 2) + closing * (count // 2))
        made((unit * 3 + "x" + closing * 3 + "\n") * (count // 6))

    require_linear(work, 40_000, usual_s=6)


def _pairs(unit: str) -> list[str]:
    """The openings in a unit, the last first."""
    found = []
    for at in range(len(unit) - 1):
        if unit[at : at + 2] in ("{{", "[[") and unit[at - 1 : at] != "{":
            found.append(unit[at : at + 2])
    return found[::-1]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("{{#if:{{{1|}}}|{{{1}}}}}" * 500, "y" * 1_000),
        ("{{#switch:{{{1}}}|" + "|".join(f"{n}=x" for n in range(1_500)) + "}}", "y" * 1_000),
        ("{{uc:{{{1}}}}}" * 500, "ß" * 1_000),
        ("{{padleft:{{{1}}}|500}}" * 500, "1"),
        ("{{#replace:{{{1}}}|y|" + "z" * 900 + "}}" * 500, "y" * 900),
        ("{{#len:{{{1}}}}}" * 1_000, "y" * 1_000),
        ("{{#expr:" + "1+" * 800 + "{{{1}}}}}", "9" * 300),
        ("{{#expr:" + "9^" * 800 + "{{{1}}}}}", "9" * 300),
    ],
)
def test_what_a_template_makes_is_bounded(body: str, value: str) -> None:
    dialect = Dialect.of({"": 0}, templates={"Template:T": body}, language="en")
    began = time.process_time()
    text = convert(("a {{t|" + value + "}} ") * 300, namespaces=dialect, title="P").text
    assert len(text) < 2 * EXPANDED_CHARS_MAX + 400_000
    assert len(convert("a {{t|" + value + "}}", namespaces=dialect, title="P").text) < 6 * CALL_CHARS_MAX
    assert time.process_time() - began < 20


def test_fifty_functions_in_each_other_are_evaluated_and_more_are_shown_by_their_words() -> None:
    def nested(depth: int) -> str:
        return "x " + "{{#if:a|" * depth + "words" + "}}" * depth

    assert made(nested(40)).text == "x words"
    assert shown(nested(400)).startswith("x words")

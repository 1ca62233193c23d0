"""Templates of a dump as pages that others include: an include shows what the expansion of the call shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from tests.support.seeds import seed
from wikka_port.limits import IMPORTED_INCLUDES_MAX
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import WIKKA, tokens
from wikka_port.markup.includes import filled, included_text
from wikka_port.markup.links import links
from wikka_port.markup.mediawiki import convert
from wikka_port.markup.mediawiki_expansion import simple_body
from wikka_port.markup.mediawiki_includes import include_call, template_body, template_page
from wikka_port.markup.mediawiki_pieces import CALLS_TRIED_MAX
from wikka_port.markup.mediawiki_titles import Dialect
from wikka_port.markup.tokens import ActionCall

SEED = seed(662)
TEXTS = {
    "Template:Hello": "Hello '''{{{1|you}}}'''!<noinclude>\n\nGreets; see [[Doc]].[[Category:Templates]]</noinclude>",
    "Template:Only": "<noinclude>Before</noinclude>\n<includeonly>''{{{Who}}}'' & {{{2|}}}</includeonly>"
    "<noinclude>After</noinclude>",
    "Template:List": "* {{{1}}}\n* {{{2}}}",
    "Template:Bare": "No parameter, but <small>small</small> words and *stars*.",
    "Template:Asterisk": "*{{{1}}}",
    "Template:Stars": "a ** {{{1}}}",
    "Template:Table": "{|\n| {{{1}}}\n|}",
    "Template:Old": "''Out of date: {{{1|all}}}''[[Category:Old pages]][[Category:Upkeep]]<noinclude>doc</noinclude>",
    "Template:Hidden": "<includeonly>Hidden [[Category:Old pages]]</includeonly>",
}
NOT_OWN = {
    "Template:Link": "See [[{{{1}}}]]",
    "Template:Kind": "[[Category:A]]",
    "Template:Kinds": "x {{{1}}} [[Category:{{{1}}}]]",
    "Template:Picture": "x [[File:A.png]]",
    "Template:Language": "x [[de:A]]",
    "Template:Call": "a {{Hello}}",
    "Template:Head": "== {{{1}}} ==\ntext",
    "Template:Note": "{{{1}}}<ref>x</ref>",
    "Template:Html": '<span style="color:{{{1}}}">x</span> <span title="{{{1}}}">y</span>',
    "Template:Within": "a <noinclude>doc</noinclude> b",
    "Template:Blank": "{{{first name}}}",
    "Template:Page": "{{{page}}}",
    "Template:Case": "{{{a}}} {{{A}}}",
    "Template:Nested": "{{{a|{{{b}}}}}}",
    "Template:Marked": "{{{a|'''b'''}}}",
    "Template:Code": " indented {{{1}}}",
    "Template:Part": "a <includeonly>b</includeonly>",
    "Template:Nothing": "<noinclude>x</noinclude>",
    "Template:Comment": "/* {{{1}}} */",
    "Template:Word": "zqxparameteraz {{{1}}}",
}
PLAIN = Dialect.of({"": 0, "Template": 10, "Category": 14})
OWN = {title: body for title, text in TEXTS.items() if (body := template_body(text, PLAIN, title)) is not None}
BODIES = {title: body for title, text in (TEXTS | NOT_OWN).items() if (body := simple_body(text)) is not None}
EXPANDING = replace(PLAIN, templates=BODIES)
INCLUDING = replace(EXPANDING, include_call=partial(include_call, OWN, EXPANDING))
SMALL = '""<small>x</small>""'


def made(wikitext: str, title: str = "T", dialect: Dialect = INCLUDING) -> str:
    return convert(wikitext, namespaces=dialect, title=title).text


def test_these_have_the_wikis_own_form_and_those_have_not() -> None:
    assert OWN.keys() == TEXTS.keys()
    for title, text in NOT_OWN.items():
        assert template_body(text, PLAIN, title) is None, title
        assert template_page(text, PLAIN, title) is None, title


def test_the_page_of_a_template_shows_its_doc_alone_and_its_text_in_other_pages() -> None:
    hello = template_page(TEXTS["Template:Hello"], PLAIN, "Template:Hello")
    only = template_page(TEXTS["Template:Only"], PLAIN, "Template:Only")
    assert hello is not None
    assert only is not None
    assert hello.text.startswith("Hello **{{{1|you}}}**!\n\n/*noinclude*/\nGreets; see [[Doc]].")
    assert (hello.links, hello.categories) == (("Doc",), ("Category:Templates",))
    assert set(links(hello.text, autolink=False)) == {"Doc", "Category:Templates"}
    docs = [f"/*noinclude*/\n{doc}\n/*/noinclude*/" for doc in ("Before", "After")]
    assert only.text == f"{docs[0]}\n\n/*includeonly\n//{{{{{{who}}}}}}// & {{{{{{2|}}}}}}\n*/\n\n{docs[1]}"
    for title, page in (("Template:Hello", hello), ("Template:Only", only)):
        assert included_text(page.text, WIKKA).strip() == OWN[title].strip()


def test_categories_of_a_template_are_those_of_the_pages_that_include_it() -> None:
    page = convert("{{old|x}}\n\n[[A]]", namespaces=INCLUDING, title="T")
    assert page.text.startswith('{{include page="Template:Old" 1="x"}}')
    assert page.categories == ("Category:Old pages", "Category:Upkeep")
    links_of = set(links(page.text, autolink=False))
    assert links_of == {"Template:Old", "A", "Category:Old pages", "Category:Upkeep"}
    for title, found in (("Template:Old", {"Category:Old pages", "Category:Upkeep"}), ("Template:Hidden", set())):
        own = template_page(TEXTS[title], PLAIN, title)
        assert own is not None
        assert set(own.categories) == set(links(own.text, autolink=False)) == found
        assert "Category" not in included_text(own.text, WIKKA)


@pytest.mark.parametrize(
    ("call", "include"),
    [
        ("{{Hello}}", '{{include page="Template:Hello"}}'),
        ("{{hello|Ada}}", '{{include page="Template:Hello" 1="Ada"}}'),
        ("{{hello|1=Ada|unused=x}}", '{{include page="Template:Hello" 1="Ada"}}'),
        ("{{hello|}}", ""),
        ("{{table|}}", ""),
        ("{{list|''A'' <small>x</small>|2=b}}", f'{{{{include page="Template:List" 1=\'//A// {SMALL}\' 2="b"}}}}'),
        ("{{table|a b}}", '{{include page="Template:Table" 1="a b"}}'),
        ("{{only|Who=don't|2=x}}", '{{include page="Template:Only" who="don\'t" 2="x"}}'),
        ("{{list|a|b = c}}", ""),
        ("{{list|a|2=b = c}}", '{{include page="Template:List" 1="a" 2="b = c"}}'),
        ("{{bare}}", '{{include page="Template:Bare"}}'),
        ("{{old}}", '{{include page="Template:Old"}}'),
        ("{{hidden}}", '{{include page="Template:Hidden"}}'),
    ],
)
def test_a_call_that_is_a_paragraph_by_itself_becomes_an_include(call: str, include: str) -> None:
    for before, after in (("", ""), ("words\n\n", "\n\nwords"), ("== H ==\n", "\n== I ==\nx")):
        text = made(before + call + after)
        assert (include in text) if include else ("{{include" not in text), text
        expanded = made(before + call + after, dialect=EXPANDING)
        assert included(text) == shown(expanded)


@pytest.mark.parametrize(
    "text",
    [
        "a {{hello}} b",
        "{{hello}} b",
        "a\n{{hello}}\n\nb",
        "a\n\n{{hello}}\nb",
        "* {{hello}}",
        " {{hello}}",
        "{|\n|\n\n{{hello}}\n\n|}",
        "<div>\n\n{{hello}}\n\n</div>",
        "[[X|\n\n{{hello}}\n\n]]",
        "{{hello|\n\n{{bare}}\n\n}}",
        "{{hello|[[Link]]}}",
        "{{hello|{{{1}}}}}",
        "{{hello|x<ref>y</ref>}}",
        "{{hello|\"a\" 'b'}}",
        "{{list|a\n* b|c}}",
        "{{link|x}}",
        "{{kind}}",
        "{{head|x}}",
        "{{html|red}}",
        "{{only|who=x}}",
        "{{only|2=x}}",
        "{{asterisk|*x}}",
        "{{stars|** bold '''}}",
        "{{unknown|x}}",
    ],
)
def test_other_calls_are_expanded_as_before(text: str) -> None:
    for before in ("", "words\n\n"):
        assert made(before + text) == made(before + text, dialect=EXPANDING)


def test_a_template_does_not_include_itself() -> None:
    text = "Shown:\n\n{{hello}}\n\n[[A]]"
    assert made(text, title="Template:Hello") == made(text, title="Template:Hello", dialect=EXPANDING)
    assert "{{include" in made(text, title="Template:Other")


def test_includes_of_a_page_and_the_work_for_them_are_bounded() -> None:
    text = made("\n\n".join(f"{{{{hello|n{number}}}}}" for number in range(IMPORTED_INCLUDES_MAX + 5)))
    assert text.count("{{include") == IMPORTED_INCLUDES_MAX
    assert f"Hello **n{IMPORTED_INCLUDES_MAX + 4}**!" in text
    tried: list[str] = []

    def never(title: str, _given: Mapping[str, str], _expansion: str) -> str:
        tried.append(title)
        return ""

    made("{{hello}}\n\n" * (CALLS_TRIED_MAX + 5), dialect=replace(EXPANDING, include_call=never))
    assert len(tried) == CALLS_TRIED_MAX


def included(text: str) -> list[str]:
    """Return the lines of HTML of a page with its includes in their places, as the wiki shows them."""

    def action(name: str, arguments: Mapping[str, str]) -> str:
        assert name == "include"
        body = template_page(TEXTS[arguments["page"]], PLAIN, arguments["page"])
        assert body is not None
        return html(filled(included_text(body.text, WIKKA), arguments))

    return lines(render(parse(text, autolink=False), existing=frozenset(), action=action, contents=False))


def shown(text: str) -> list[str]:
    return lines(html(text))


def html(text: str) -> str:
    return render(parse(text, autolink=False), existing=frozenset(), contents=False)


def lines(html: str) -> list[str]:
    return [line for line in html.split("\n") if line.strip()]


WORDS = (
    *("a", "*", "**", "''", "'''", "x y", "1)", "~", "#", "=", "==", "&amp;", "<", "|", "[", "]]", '"', "'", "{", "}"),
    *("//", ":", "\n", "&nbsp;"),
)


def test_no_value_makes_another_page_than_the_expansion_does() -> None:
    """Whatever a call gives, and whatever a template is: with includes a page shows what it shows without them."""
    print("seed", SEED)
    draw = Random(SEED)
    calls = 0
    for _ in range(400):
        name = draw.choice(list(TEXTS)).partition(":")[2]
        values = ["".join(draw.choices(WORDS, k=draw.randrange(4))) for _ in range(draw.randrange(3))]
        page = f"before\n\n{{{{{'|'.join([name, *values])}}}}}\n\nafter"
        text, expanded = made(page), made(page, dialect=EXPANDING)
        read = tokens(text, autolink=False)
        count = sum(isinstance(one, ActionCall) and one.name == "include" for one in read)
        calls += count
        if count:
            assert included(text) == shown(expanded), page
        else:
            assert text == expanded, page
    assert calls > 60

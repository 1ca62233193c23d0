"""The tree of a MediaWiki text's braces, and that any text has one in linear time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.linear_cost import require_linear
from wikka_port.markup.mediawiki_braces import CLOSING, Group, Nodes, parsed, source_of


def drawn(nodes: Nodes) -> str:
    """The tree, with a round bracket around each group, and a stroke between its parts."""
    out = []
    for node in nodes:
        if isinstance(node, Group):
            out.append(f"({node.kind} {' / '.join(drawn(part) for part in node.parts)})")
        else:
            out.append(node)
    return "".join(out)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a {{b|c=d|e}} f", "a ({{ b / c=d / e) f"),
        ("{{{1|x}}}", "({{{ 1 / x)"),
        ("{{a|{{{1|}}}}}", "({{ a / ({{{ 1 / ))"),
        ("{{#if:{{{1|}}}|{{{1}}}}}", "({{ #if:({{{ 1 / ) / ({{{ 1))"),
        ("{{{{{1}}}|x}}", "({{ ({{{ 1) / x)"),
        ("{{{!}}", "{({{ !)"),
        ("{{a|[[b|c]]|d}}", "({{ a / ([[ b / c) / d)"),
        ("{{a|[[b|c}}", "({{ a / [[b / c)"),
        ("[[a|{{b|c}}]]", "([[ a / ({{ b / c))"),
        ("a | b", "a | b"),
        ("{{a|b", "{{a|b"),
        ("a}} b]]", "a}} b]]"),
        ("[[a {{b]] c}}", "[[a ({{ b]] c)"),
        ("{{a|<nowiki>}}|</nowiki>}}", "({{ a / (< <nowiki>}}|</nowiki>))"),
        ("{{a|<!-- }} | -->b}}", "({{ a / (< <!-- }} | -->)b)"),
        ("<!-- {{a}}", "(< <!-- {{a}})"),
        ("<nowiki> {{a}}", "<nowiki> ({{ a)"),
        ("<nowiki/>{{a}}", "(< <nowiki/>)({{ a)"),
        ("{{a|<ref name=b>c|{{d}}}}</ref>|e}}", "({{ a / (<> <ref name=b>c|({{ d)}}</ref>) / e)"),
        ("{{a|<ref name=b />|<ref name=c>}}", "({{ a / (< <ref name=b />) / <ref name=c>)"),
        ("<ref>{{a</ref>}}", "(<> <ref>{{a</ref>)}}"),
        ("<poem><ref>a</ref><ref></poem></ref>", "(<> <poem>(<> <ref>a</ref>)<ref></poem>)</ref>"),
        ("{{a|<gallery>\nb|c\n</gallery>}}", "({{ a / (<> <gallery>\nb|c\n</gallery>))"),
        ("<references><ref>{{a}}</ref></references>", "(<> <references>(<> <ref>({{ a)</ref>)</references>)"),
        ("{| {{a}} |}", "{| ({{ a) |}"),
        ("{ {a} } }}", "{ {a} } }}"),
        ("{{{{a}}}}", "({{ ({{ a))"),
    ],
)
def test_trees(text: str, tree: str) -> None:
    assert drawn(parsed(text)) == tree


SIGNS = "{{ }} {{{ }}} { } [[ ]] | a : <!-- --> <nowiki> </nowiki> <ref> </ref> <ref/> <poem> </poem>"
FRAGMENTS = st.lists(st.sampled_from(SIGNS.split()))


def written(nodes: Nodes) -> str:
    """The text again."""
    out = []
    for node in nodes:
        if isinstance(node, str):
            out.append(node)
        elif node.kind in ("<", "<>"):
            out.append(written(node.parts[0]))
        else:
            out.append(f"{node.kind}{'|'.join(written(part) for part in node.parts)}{CLOSING[node.kind]}")
    return "".join(out)


@settings(max_examples=500)
@given(FRAGMENTS.map("".join))
def test_a_tree_has_all_of_its_text(text: str) -> None:
    nodes = parsed(text)
    assert written(nodes) == text
    for node in nodes:
        if isinstance(node, Group):
            assert source_of(text, node) == written((node,))


@pytest.mark.parametrize(
    "unit",
    [
        "{{",
        "}}",
        "{{{",
        "[[",
        "]]",
        "|",
        "{{[[",
        "[[{{",
        "{{|",
        "[[|",
        "{{a|[[",
        "<nowiki>",
        "<!--",
        "{{a}}",
        "}}[[",
        "[[}}",
        "<ref>",
        "<ref ",
        "<ref></ref>",
        "<ref><poem><gallery><references>",
    ],
)
def test_the_time_is_linear(unit: str) -> None:
    def work(size: int) -> None:
        count = size // len(unit)
        parsed(unit * count)
        parsed(unit * (count // 2) + "}}" * (count // 2))
        parsed(unit * (count // 2) + "]]" * (count // 2))
        parsed(unit * count + "</references></gallery></poem></ref>")

    require_linear(work, 200_000, usual_s=5)

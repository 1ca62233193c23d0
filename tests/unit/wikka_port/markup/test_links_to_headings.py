"""Links to a heading on another page, in both formats."""

from __future__ import annotations

import pytest

from wikka_port.markup.converting import to_markdown
from wikka_port.markup.document import parse, render
from wikka_port.markup.formats import MARKDOWN, WIKKA
from wikka_port.markup.links import links
from wikka_port.moving.rewriting import rewritten

LINKS = {
    "[[Page#My Heading]]": '<a href="/Page#s-my-heading">Page#My Heading</a>',
    "[[Page#My Heading|words]]": '<a href="/Page#s-my-heading">words</a>',
    "[[My_page#s-a-b]]": '<a href="/My_page#s-a-b">My_page#s-a-b</a>',
    "[[A&#35;B]]": '<a href="/A%23B">A#B</a>',
    "[[C#]]": '<a href="/C%23">C#</a>',
    "[[C# language]]": '<a href="/C%23_language">C# language</a>',
    "[[Issue #7]]": '<a href="/Issue_%237">Issue #7</a>',
    "[[a&#124;b#c]]": '<a href="/a%7Cb#s-c">a|b#c</a>',
    "[[#Place]]": '<a href="#s-place">Place</a>',
    '[[Page#" onclick="x]]': '<a href="/Page#s-onclick-x">Page#&quot; onclick=&quot;x</a>',
}


@pytest.mark.parametrize("markup", [WIKKA, MARKDOWN])
@pytest.mark.parametrize("typed", LINKS)
def test_links(typed: str, markup: str) -> None:
    document = parse(typed, markup=markup)
    assert LINKS[typed] in render(document, existing=set(document.links))


def test_the_page_is_linked_to_and_a_missing_page_leads_to_its_editor() -> None:
    for markup in (WIKKA, MARKDOWN):
        assert links("[[Page#Heading]] [[Page]]", markup=markup) == ["Page"]
        assert '<a href="/Page/edit" class="missing"' in render(parse("[[Page#A]]", markup=markup), existing=set())


@pytest.mark.parametrize(
    ("typed", "led"),
    [("[[Old#A b]]", "[[New/x&#35;#A b]]"), ("[[Old#A|c]]", "[[New/x&#35;#A|c]]"), ("[[Old# A]]", "[[Old# A]]"),
     ("[[Older#A]]", "[[Older#A]]")],
)  # fmt: skip
@pytest.mark.parametrize("markup", [WIKKA, MARKDOWN])
def test_a_rename_keeps_the_heading(typed: str, led: str, markup: str) -> None:
    found = rewritten(typed, "Old", "New/x#", markup=markup)
    assert found == led.replace("New/x", "New&#47;x")
    if typed != led:
        assert links(found, markup=markup) == ["New/x#"]


@pytest.mark.parametrize(
    "typed", ["[[Page#A b|c]]", "[[file:Other/a.png]]", "[[file:Other/a.png|words]]", "[[a.png b]]"]
)
def test_conversion_to_markdown_keeps_headings_and_files(typed: str) -> None:
    text, lost = to_markdown(typed, autolink=True)
    assert not lost
    before, after = parse(typed), parse(text, markup=MARKDOWN)
    assert [piece for piece in before.pieces if not isinstance(piece, str)] == [
        piece for piece in after.pieces if not isinstance(piece, str)
    ]

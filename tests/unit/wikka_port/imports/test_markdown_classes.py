"""Classes of blocks: Wiki.js' quotations become alerts, other classes go, and code stays."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.seeds import seed
from wikka_port.imports.markdown_classes import classes_in, without_classes

CODE = "```\n> a\n{.is-info}\n## b {.x}\n```\n`[a](b){.x}`\n    {.x}\n"


@pytest.mark.parametrize(
    ("before", "after", "dropped"),
    [
        ("> a\n> b\n{.is-warning}\nc", "> [!WARNING]\n> a\n> b\nc", []),
        ("> a\n{.is-info}\n\n> b\n{.is-danger .wide}", "> [!NOTE]\n> a\n\n> [!CAUTION]\n> b", [".wide"]),
        ("> [!TIP]\n> a\n{.is-success}", "> [!TIP]\n> a", []),
        ("> a\nb\n{.is-info}", "> a\nb", [".is-info"]),
        ("* a\n* b\n{.links-list .dense}\n", "* a\n* b\n", [".dense", ".links-list"]),
        ("## Tabs {.tabset}\n### One {#one}", "## Tabs\n### One {#one}", [".tabset"]),
        ("# A\n{: .no_toc }\n", "# A\n", [".no_toc"]),
        ("![a](a.png){.align-center} [b](c){.x .y} {.z}", "![a](a.png) [b](c) {.z}", [".align-center", ".x", ".y"]),
        ("{.x}\n\n{.x}\na {.x}", "{.x}\n\n{.x}\na {.x}", []),
        ("a\n{{.Title}}\n{.a b}\n{.a#b}", "a\n{{.Title}}\n{.a b}\n{.a#b}", []),
        ("- a\n\n    > q\n{.is-info}", "- a\n\n    > [!NOTE]\n    > q", []),
        ("- a\n  </div>\n\n    > q\n    {.is-info}", "- a\n  </div>\n\n    > [!NOTE]\n    > q", []),
        ("1. a\n   - b\n\n        > q\n{.is-info}", "1. a\n   - b\n\n        > [!NOTE]\n        > q", []),
        ("- a\n\nb\n\n    > q\n{.is-info}", "- a\n\nb\n\n    > q", [".is-info"]),
        ("    > q\n    {.is-info}", "    > q\n    {.is-info}", []),
        (CODE, CODE, []),
        ("~~~\n```\n{.x}\n~~~\n* a\n{.x}", "~~~\n```\n{.x}\n~~~\n* a", [".x"]),
    ],
)
def test_classes_go_and_alerts_come(before: str, after: str, dropped: list[str]) -> None:
    assert without_classes(before) == after
    assert classes_in(before) == dropped
    assert without_classes(after) == after


def test_any_text_keeps_all_lines_that_are_no_classes() -> None:
    draw = Random(seed(647))
    parts = ["> ", "{.is-info}", "{.x}", "\n", "```", "a", "# ", " ", ")", "[b](c)", "{:", "}", "."]
    for _ in range(2_000):
        text = "".join(draw.choice(parts) for _ in range(draw.randrange(30)))
        made = without_classes(text)
        left = made.replace("> [!NOTE]\n", "")
        assert len(left) <= len(text)
        for sign in "ab`(":
            assert left.count(sign) == text.count(sign), text


def test_a_long_quotation_costs_no_more_than_its_length() -> None:
    text = ">\n{.is-info}\n" * 100_000
    assert without_classes(text).count("[!NOTE]") == 100_000

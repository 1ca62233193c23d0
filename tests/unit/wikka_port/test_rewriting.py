"""Links are led to the new name of a page, and nothing else of the text changes."""

from __future__ import annotations

import random

import pytest

from tests.support.seeds import seed
from wikka_port.markup.links import links
from wikka_port.moving.rewriting import rewritten

SEED = seed(1906)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [[Old name]] and [[Old_name|this]]", "see [[New|]] and [[New|this]]"),
        ("[[ Old  name | a **label** ]]", "[[New| a **label** ]]"),
        ("%%[[Old name]]%% [[Old name]]", "%%[[Old name]]%% [[New|]]"),
        ('""[[Old name]]"" [[Other]]', '""[[Old name]]"" [[Other]]'),
        ("#REDIRECT [[Old name]]", "#REDIRECT [[New|]]"),
        ('{{redirect target="Old name"}}', '{{redirect target="New"}}'),
        ('{{include page="Old name"}} {{include page="Other"}}', '{{include page="New"}} {{include page="Other"}}'),
        ('{{include 1="x" page="Old name" 2="y"}}', '{{include 1="x" page="New" 2="y"}}'),
        (
            "{{ Include who='page=\"Old name\"' page = 'Old_name' x=\"{1}\" }}",
            "{{ Include who='page=\"Old name\"' page = 'New' x=\"{1}\" }}",
        ),
        ('%%{{include page="Old name"}}%% ""{{include page="Old name"}}""',) * 2,
        ('{{include page="Old name"', '{{include page="Old name"'),
        ('{{include title="Old name"}} {{backlinks page="Old name"}}',) * 2,
        ("|=|[[Old name|x]]||[[Older name]]||", "|=|[[New|x]]||[[Older name]]||"),
        ("[[Old&#32;name]]", "[[New|]]"),
        ("[[http://old.name Old name]] Old name", "[[http://old.name Old name]] Old name"),
        ("[[Old name", "[[Old name"),
    ],
)
def test_links_are_led_and_the_rest_stays(text: str, expected: str) -> None:
    assert rewritten(text, "Old name", "New") == expected


def test_a_word_that_is_a_link_by_itself_is_led_where_words_are_links() -> None:
    text = "OldName, [[OldName|OldName]] and %%OldName%% and OldNames"
    assert rewritten(text, "OldName", "NewName") == "NewName, [[NewName|OldName]] and %%OldName%% and OldNames"
    assert rewritten("OldName", "OldName", "Plain") == "[[Plain|]]"
    assert rewritten("OldName [[OldName]]", "OldName", "NewName", False) == "OldName [[NewName|]]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [[Old name]] and [it](Old_name)", "see [[New one|]] and [it](New_one)"),
        ('[a](./Old_name.md#place "title") [b](<Old name>)', '[a](New_one#place "title") [b](New_one)'),
        ("`[a](Old_name)` and [a](Older) [a](https://x.example/Old_name)",) * 2,
        ("    [[Old name]]\n\ntext [[Old name|x]]", "    [[Old name]]\n\ntext [[New one|x]]"),
        (
            'a {{include page="Old name"}} `{{include page="Old name"}}`',
            'a {{include page="New one"}} `{{include page="Old name"}}`',
        ),
    ],
)
def test_links_of_markdown_are_led(text: str, expected: str) -> None:
    assert rewritten(text, "Old name", "New one", markup="markdown") == expected


def test_odd_names_are_linked_as_they_are() -> None:
    for new in ("A/B", "A [b]", "a|b", "Cat: x", "http://x", "#x", "ÄÖ ü", "O'Brien", 'a "b"', "{c}"):
        assert links(rewritten("[[Old name]]", "Old name", new)) == [new]
        for quote in ("'", '"'):
            assert links(rewritten(f"{{{{include page={quote}Old name{quote}}}}}", "Old name", new)) == [new]


def test_of_random_texts_the_links_alone_change() -> None:
    print(f"COLUMNAR_SEED={SEED}")
    rng = random.Random(SEED)
    pieces = (
        *(
            "[[OldName]]",
            "[[OldName|l]]",
            "OldName",
            "%%OldName [[OldName]]%%",
            "==OldName==\n",
            "{{include page='OldName'}}",
            '""OldName""',
            "\n",
        ),
        *("[[Other]]", "OtherPage", "**b**", "||", "~-", '{{redirect target="OldName"}}', "[[", "]]", "''", "{{toc}}"),
    )
    for _ in range(300):
        text = "".join(rng.choice(pieces) + rng.choice(("", " ")) for _ in range(rng.randrange(1, 12)))
        before = links(text)
        after = links(rewritten(text, "OldName", "NewName"))
        assert set(after) == {"NewName" if name == "OldName" else name for name in before}, text


@pytest.mark.parametrize("target", [" ", "A\x07"])
def test_a_link_to_what_is_no_name_stays(target: str) -> None:
    assert rewritten(f"[[{target}]] [[A]]", "A", "B", False) == f"[[{target}]] [[B|]]"

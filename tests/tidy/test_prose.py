"""Pages and docstrings keep the rule of ``prose.py`` (a sentence begins with its subject), or stand on a list."""

from __future__ import annotations

import ast

import pytest

from tests.tidy import prose
from tests.tidy.prose import sentences_of_page as in_page
from tests.tidy.sources import shown


def test_sentences_begin_with_their_subject() -> None:
    to_come = set(prose.to_come())
    bad = {
        shown(path): f"{len(prose.offenders(found))} of {len(found)}: {prose.offenders(found)}"
        for path in prose.files()
        if shown(path) not in to_come and not prose.meets_the_bound(found := prose.sentences_of_file(path))
    }
    assert bad == {}, "put the subject first"


def test_the_list_of_files_to_come_only_shrinks() -> None:
    met = [name for name in prose.to_come() if prose.meets_the_bound(prose.sentences_of_file(prose.ROOT / name))]
    assert met == [], "they keep the rule by now: python -m tests.tidy.prose --prune"


def test_the_list_of_files_to_come_is_in_order_and_names_files_that_are_there() -> None:
    listed = prose.to_come()
    assert listed == sorted(set(listed))
    assert set(listed) <= {shown(path) for path in prose.files()}, "python -m tests.tidy.prose --prune"


def test_every_page_and_every_module_is_looked_at() -> None:
    looked_at = {shown(path) for path in prose.files()}
    assert {"README.md", "docs/faults.md", "docs/formats/cells.md", "columnar/limits.py"} <= looked_at
    assert sum(len(prose.sentences_of_file(path)) for path in prose.files()) > 3_000


@pytest.mark.parametrize(
    "sentence",
    [
        "What regions hold is brought over.",
        "what is open is served",
        "**Who is turned away** is closed.",
        "(Those of the day before were slower.)",
        "[One that is closed](page.md) is opened again.",
        '"Of these two" the first wins.',
        "Nobody's region is lost.",
        "Where the disk is full, the store waits.",
        "Whatever makes regions names them first.",
        "Which of the two it is, the log says.",
    ],
)
def test_an_opening_that_is_found(sentence: str) -> None:
    assert prose.offenders(in_page(sentence)) == in_page(sentence) != []


@pytest.mark.parametrize(
    "sentence",
    [
        "Regions hold what is brought over.",
        "`Who` is the name of a field.",
        "Offsets are bytes.",
        "Whole rows are read.",
        "One-way calls have no reply.",
        "Who may connect to a store?",
        "**What may a region cost?**",
        "When a disk is full, writers wait.",
    ],
)
def test_an_opening_that_is_none(sentence: str) -> None:
    assert in_page(sentence) != []
    assert prose.offenders(in_page(sentence)) == []


def test_where_a_sentence_ends() -> None:
    text = (
        "It takes 0.1 s, e.g. for a row. `Store.gather` keeps batches (see below.) 64 of them wait! of course; not more"
    )
    assert in_page(text) == [
        "It takes 0.1 s, e.g. for a row.",
        "CODE keeps batches (see below.",
        "64 of them wait! of course; not more",
    ]


def test_what_of_a_page_counts() -> None:
    page = """# What a heading says is not counted

A paragraph goes on
over lines. Its second sentence follows.
* What an item says counts
  with its second line.
1. One of the numbered items counts.

| What the header says | is not counted |
|---|---|
| what a cell says counts | 12 MB |
| a code span `with | a bar` is one cell | nobody reads this `\\|` bar |

```
What a block says is not counted.
```

    What an indented block says is not counted.

<!-- What a comment says
is not counted. -->
> Where a quote begins it counts.

![What a picture shows](picture.png) is shown here.
"""
    assert prose.offenders(in_page(page)) == [
        "What an item says counts with its second line.",
        "One of the numbered items counts.",
        "what a cell says counts",
        "nobody reads this CODE bar",
        "Where a quote begins it counts.",
    ]
    assert len(in_page(page)) == 9


def test_what_of_a_module_counts() -> None:
    module = '''"""What the module holds.

    What a format holds := bytes

* Who reads it is named.
"""

# What a comment says is not counted.
NAME = "What a string says is not counted."


class Region:
    """Those rows of a table.

    | What a line with a bar says counts here.
    """

    async def open(self) -> None:
        """Nobody calls it twice. A region opens."""
'''
    found = prose.sentences_of_module(ast.parse(module))
    assert sorted(prose.offenders(found)) == [
        "Nobody calls it twice.",
        "Those rows of a table.",
        "What a line with a bar says counts here.",
        "What the module holds.",
        "Who reads it is named.",
    ]
    assert len(found) == 6


def test_the_bound_is_one_in_a_hundred() -> None:
    good, bad = "A region opens soon.", "What opens is a region."
    assert prose.meets_the_bound([])
    assert prose.meets_the_bound([bad] + [good] * 99)
    assert not prose.meets_the_bound([bad] + [good] * 98)
    assert not prose.meets_the_bound([bad] * 2 + [good] * 197)


def test_few_sentences_open_with_a_relative_word_no_file_exempt() -> None:
    relative, all_ = prose.share_of_relative_openings()
    assert 1_000 * relative <= 3 * all_, f"{relative} of {all_}"


def test_a_sample_is_of_many_files_and_the_seed_repeats_it() -> None:
    chosen = prose.sample(7)
    assert len(chosen) == prose.SAMPLED
    assert len({path for path, _ in chosen}) > prose.SAMPLED // 2
    assert prose.sample(7) == chosen != prose.sample(8)

"""Links and pictures of Markdown files: only those that would lead elsewhere are changed, and nothing in code."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.support.seeds import seed
from wikka_port.imports.file_places import owners
from wikka_port.imports.markdown_links import references, rewritten
from wikka_port.imports.markdown_map import FolderMap, Places, heading_slugs
from wikka_port.imports.markdown_names import NameOrigin
from wikka_port.markup.markdown import tokens
from wikka_port.markup.tokens import Image, PageLink

NAMES = {
    "Guide/Here.md": "Guide/Here",
    "Guide/Other Page.md": "Guide/Other Page",
    "Top.md": "Top",
    "Deep/Only One.md": "Deep/Only One",
    "Deep/README.md": "Deep",
}
FILES = {
    "Guide/images/a b.png": ("Guide/Here.md", "a b.png"),
    "pics/shared.png": ("Top.md", "shared.png"),
    "docs/paper.pdf": ("Top.md", "paper.pdf"),
    "Guide/odd[1].png": ("Guide/Here.md", "odd-1-.png"),
}
SLUGS = {"Top.md": heading_slugs("# What's new?\n"), "Guide/Here.md": heading_slugs("## It's `code`\n")}
PLACES = Places(FolderMap(NAMES, FILES, "obsidian"), FILES, SLUGS)


def moved(text: str) -> str:
    return rewritten(text, lambda reference: PLACES.resolve(reference, "Guide/Here.md"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[x](Other%20Page.md)", "[x](Guide/Other%20Page)"),
        ('[x](./Other%20Page.md#part "title")', '[x](Guide/Other%20Page#part "title")'),
        ("[x](<Other Page.md>)", "[x](Guide/Other%20Page)"),
        ("[x](../Top.md)", "[x](../Top.md)"),
        ("[x](../Top.md#whats-new)", "[x](Top#s-what-s-new)"),
        ("[x](#its-code)", "[x](#s-it-s-code)"),
        ("[x](../Deep/)", "[x](../Deep/)"),
        ("[x](../Missing.md) [y](https://a.example/Top.md)", "[x](../Missing.md) [y](https://a.example/Top.md)"),
        ("[[Only One]] [[Only One|words]]", "[[Deep/Only One|Only One]] [[Deep/Only One|words]]"),
        ("[[Top]] [[Top|x]] [[Top#Part]]", "[[Top]] [[Top|x]] [[Top#Part]]"),
        ("![alt](images/a%20b.png)", "![alt](a%20b.png)"),
        ("![alt](<images/a b.png>)", "![alt](a%20b.png)"),
        ("![[a b.png|300]] ![[Guide/images/a b.png|300]]", "![[a b.png|300]] ![[a b.png|300]]"),
        ("[![alt](images/a%20b.png)](images/a%20b.png)", "[![alt](a%20b.png)](a%20b.png)"),
        ("![one][r]\n\n[r]: images/a%20b.png 'title'", "![one][r]\n\n[r]: a%20b.png 'title'"),
        ('<img src="images/a b.png" width="90">', '<img src="a%20b.png" width="90">'),
        ("![[a b.png#icon]] ![[shared.png#icon]]", "![[a b.png]] ![[file:Top/shared.png]]"),
        ("![x](odd[1].png)", "![x](odd-1-.png)"),
        ("![alt](../pics/shared.png)", "![[file:Top/shared.png|alt]]"),
        ("![alt|90](../pics/shared.png)", '{{image src="shared.png" page="Top" alt="alt" width="90"}}'),
        ("[the paper](../docs/paper.pdf)", "[[file:Top/paper.pdf|the paper]]"),
        ('<img src="/pics/shared.png">', '<img src="/Top/files/shared.png?">'),
        ("![[Only One]]", '{{include page="Deep/Only One"}}'),
        ("![[Only One#Part]] ![[Top#Part]]", "[[Deep/Only One#Part|Only One > Part]] [[Top#Part]]"),
        ("![[#It's `code`]] ![[Missing]] ![[Missing.png]]", "[[#It's `code`]] [[Missing]] ![[Missing.png]]"),
        ("`![[Missing]]`", "`![[Missing]]`"),
    ],
)
def test_references_lead_to_the_page_or_file_they_named(before: str, after: str) -> None:
    assert moved(before) == after
    assert moved(after) == after, "a second time changes nothing"


def outside(text: str, origin: NameOrigin = "github", base: str = "https://h.example/o/r/wiki/") -> str:
    places = replace(PLACES, folder=FolderMap(NAMES, FILES, origin), base=base)
    return rewritten(text, lambda reference: places.resolve(reference, "Guide/Here.md"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[x](../issues/5#note \"t\")", "[x](https://h.example/o/r/issues/5#note \"t\")"),
        ("[x](<../blob/main/a b.py?raw=1>)", "[x](https://h.example/o/r/blob/main/a%20b.py?raw=1)"),
        ("![x](../raw/a.png) <img src='../raw/b.png'>",
         "![x](https://h.example/o/r/raw/a.png) <img src='https://h.example/o/r/raw/b.png'>"),
        ("[x][y]\n\n[y]: ../pull/2\n", "[x][y]\n\n[y]: https://h.example/o/r/pull/2\n"),
        ("[x](../Top.md) [[../issues]] [y](issues/5) [z](/issues/5)",
         "[x](../Top.md) [[../issues]] [y](issues/5) [z](/issues/5)"),
        ("`[x](../issues/5)`", "`[x](../issues/5)`"),
    ],
)  # fmt: skip
def test_links_out_of_the_folder_lead_to_where_it_was_read(before: str, after: str) -> None:
    assert outside(before) == after
    assert outside(after) == after
    assert outside(before, base="") == before


def test_outside_github_a_page_lies_in_its_folder_there() -> None:
    assert outside("[x](../../issues/5)", "plain", "https://h.example/-/wikis/") == "[x](https://h.example/-/issues/5)"


def test_nothing_in_code_is_changed() -> None:
    code = "`[x](Other%20Page.md)` \\[x](Other%20Page.md)\n\n    ![a](images/a%20b.png)\n\n```\n[[Only One]]\n```\n"
    assert moved(code) == code
    assert moved(f"{code}[[Only One]]") == f"{code}[[Deep/Only One|Only One]]"


def test_a_picture_of_another_page_ends_no_cell_of_a_table() -> None:
    table = "| a |\n|---|\n| ![x](../pics/shared.png) [[Only One\\|w]] |\n"
    read = tokens(moved(table), autolink=False)
    assert sum(getattr(token, "kind", "") == "cell" for token in read) == 2, "one is opened and closed"
    assert [token.name for token in read if isinstance(token, PageLink)] == ["Deep/Only One"]


def test_github_wikis_write_the_words_of_a_link_first() -> None:
    def first(text: str) -> str:
        return rewritten(text, lambda one: PLACES.resolve(one, "Top.md"), words_first=True)

    assert first("[[words|Top]]") == "[[Top|words]]"
    assert first("[[Top|words]]") == "[[Top|words]]"


def test_a_file_belongs_to_the_page_that_names_it() -> None:
    folder = FolderMap({**NAMES, "pics/README.md": "pics"}, [*FILES, "pics/more/unused.png"], "plain")
    used = {
        "docs/paper.pdf": {"Top.md"},
        "pics/shared.png": {"Top.md", "Guide/Here.md"},
        "Guide/odd[1].png": {"Top.md", "Guide/Here.md"},
    }
    assert owners(folder.names, [*used, "pics/more/unused.png"], used, folder.folder_page) == {
        "docs/paper.pdf": "Top.md",
        "pics/shared.png": "Guide/Here.md",
        "Guide/odd[1].png": "Guide/Here.md",
        "pics/more/unused.png": "pics/README.md",
    }


def test_any_text_keeps_what_is_no_reference() -> None:
    """Texts of random pieces: without the changed references nothing differs, and pictures are pictures again."""
    number = seed(3911)
    print("seed", number)
    draw = Random(number)
    pieces = ["[x](", "![", "](images/a%20b.png)", "[[Only One", "]]", "|", "`", "```\n", "\n", "    ", "\\",
              "<img src=\"", "\">", "words", "(", ")", "[r]: ", "images/a%20b.png", "#", " \"t",
              "| a |\n|--|\n"]  # fmt: skip
    for _ in range(400):
        text = "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 30)))
        changed = moved(text)
        assert moved(changed) == changed, text
        if "images/" not in text and "[[Only One" not in text:
            assert changed == text
        shown = [
            token for token in tokens(changed, autolink=False) if isinstance(token, Image) and "images/" in token.file
        ]
        assert not shown, text


def test_a_long_line_without_ends_costs_no_more_than_its_length() -> None:
    for piece in ("[", "](", "![x](a ", "<img src", "`" * 3 + "x", "[[x|", '](a "', "](((", "[x](" + " " * 40):
        assert moved(piece * 20_000) == piece * 20_000


def test_references_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikka_port.imports.markdown_links.REFERENCES_MAX", 3)
    assert len(list(references("[x](Top.md) " * 10))) == 3

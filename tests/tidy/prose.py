"""Count the sentences of a page or a module, and find those that do not begin with their subject.

The rule: at most 1 sentence in 100 of a text opens with one of the words in ``OPENERS``, written large or small.
They begin relative clauses ("What regions hold is ...") and sentences whose subject comes late ("Of these ...").
A question is exempt: "Who may connect?" has no other form.

The sentences of a page (Markdown):
    * Paragraphs, quotes, list items and body cells of tables. The end of each also ends its last sentence.
    * Not code blocks (fenced or indented), headings, header rows of tables, HTML comments and images.
    * A code span and a link count as words; the text of a link is the one that the reader sees.
The sentences of a module (Python):
    * The docstrings of the module, its classes and its functions. Comments do not count.

A sentence ends at ``.``, ``!`` or ``?`` where the next word begins with a capital, a digit or code; never at a
colon or a semicolon. A fragment of fewer than three words (a figure, a name) is no sentence, so that tables of
figures do not thin out the share.

``python -m tests.tidy.prose`` prints the sentences that break the rule; with paths, those of the named files;
with ``--prune`` it takes the files that keep the rule by now off the list ``prose_to_come.txt``; with ``--sample SEED``
it prints 100 sentences of docstrings to be read by somebody who did not write them, and the share of all sentences that
open with a relative word.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import sys
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Final

from tests.tidy.sources import ROOT, SOURCES, statements, tree_of

TO_COME: Final = ROOT / "tests/tidy/prose_to_come.txt"  # files that break the rule; it only shrinks

_RELATIVE: Final = {"what", "whatever", "who", "whoever", "whom", "whose", "which", "whichever", "where", "wherever"}
OPENERS: Final = _RELATIVE | {"those", "of", "nobody", "one"}
PER_SENTENCES: Final = 100  # one such opening in so many sentences
WORDS: Final = 3  # a shorter fragment is no sentence
SAMPLED: Final = 100

CODE: Final = "CODE"  # what stands for a code span
_COMMENT: Final = re.compile(r"<!--.*?-->", re.S)
_SPAN: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
_IMAGE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_TAG: Final = re.compile(r"</?\w[^>]*>")
_ITEM: Final = re.compile(r"(?:[*+-]|\d+[.)])\s+")
_RULE_ROW: Final = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
_END: Final = re.compile(r"""(?<=[.!?])["')\]*_]*\s+(?=["'(\[*_]*(?:[A-Z0-9]|CODE))""")
_ABBREVIATED: Final = re.compile(r"\b(?:e\.g|i\.e|etc|cf|vs|p|pp|resp|approx)\.$")
_WORD: Final = re.compile(r"[A-Za-z][\w'-]*|\d[\d.,]*")


def sentences(block: str) -> list[str]:
    """The sentences of one paragraph, list item or cell."""
    text = _IMAGE.sub(" ", _SPAN.sub(CODE, block))
    text = " ".join(_TAG.sub(" ", _LINK.sub(r"\1", text)).split())
    found: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        if not _ABBREVIATED.search(text[: end.start()]):
            found.append(text[begin : end.start()])
            begin = end.end()
    found.append(text[begin:])
    return [sentence for sentence in found if len(_WORD.findall(sentence)) >= WORDS]


def opens_badly(sentence: str, openers: Set[str] = OPENERS) -> bool:
    if sentence.rstrip("\"')*_ ").endswith("?"):
        return False
    first = re.match(r"[^\w]*([A-Za-z]+)(?![\w`-])", sentence)
    return first is not None and first[1].lower() in openers


def blocks_of_page(text: str) -> Iterator[str]:
    """Paragraphs, list items and body cells of a page in Markdown."""
    lines = _COMMENT.sub("", text).splitlines()
    paragraph: list[str] = []
    fence = ""
    within_list = False
    for number, line in enumerate(lines):
        stripped = line.strip().lstrip("> ").strip()
        if fence:
            fence = "" if stripped.startswith(fence) else fence
            continue
        is_row, is_item = stripped.startswith("|"), _ITEM.match(stripped) is not None
        is_code = line.startswith(("    ", "\t")) and not paragraph and not is_item and not within_list
        is_fence = stripped.startswith(("```", "~~~"))
        if not stripped or is_row or is_item or is_code or is_fence or stripped.startswith("#"):
            if paragraph:
                yield " ".join(paragraph)
            paragraph = []
        if is_fence or is_row or stripped.startswith("#"):
            within_list = within_list and line[0].isspace()
        if is_fence:
            fence = stripped[:3]
        elif is_row and not is_code:
            if not _RULE_ROW.fullmatch(stripped) and not _is_header(lines, number):
                yield from cells(stripped)
        elif stripped and not is_code and not stripped.startswith("#"):
            within_list = is_item or (within_list and (bool(paragraph) or line[0].isspace()))
            paragraph.append(_ITEM.sub("", stripped, count=1) if is_item else stripped)
    if paragraph:
        yield " ".join(paragraph)


def _is_header(lines: list[str], number: int) -> bool:
    return number + 1 < len(lines) and _RULE_ROW.fullmatch(lines[number + 1].strip()) is not None


def cells(row: str) -> list[str]:
    """The cells of a table's row; a bar that is escaped or in a code span does not separate."""
    kept: list[str] = []

    def keep(span: re.Match[str]) -> str:
        kept.append(span[0])
        return f"\0{len(kept) - 1}\0"

    parts = _SPAN.sub(keep, row.replace("\\|", "\1")).strip("|").split("|")
    return [re.sub("\0(\\d+)\0", lambda at: kept[int(at[1])], part).replace("\1", "|").strip() for part in parts]


def blocks_of_module(tree: ast.Module) -> Iterator[str]:
    """Paragraphs and list items of the docstrings of a module, its classes and its functions."""
    for node in statements(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield from blocks_of_page(_without_headings(inspect.cleandoc(docstring)))


def _without_headings(docstring: str) -> str:
    """A ``#`` at a line's start is no heading in a docstring, nor is a bar a table."""
    return re.sub(r"^(\s*)[#|]", r"\1", docstring, flags=re.M)


def sentences_of_page(text: str) -> list[str]:
    return [sentence for block in blocks_of_page(text) for sentence in sentences(block)]


def sentences_of_module(tree: ast.Module) -> list[str]:
    return [sentence for block in blocks_of_module(tree) for sentence in sentences(block)]


def offenders(found: list[str]) -> list[str]:
    return [sentence for sentence in found if opens_badly(sentence)]


def meets_the_bound(found: list[str]) -> bool:
    return PER_SENTENCES * len(offenders(found)) <= len(found)


def files() -> list[Path]:
    """Every page and every module that the rule is for."""
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "COMPATIBILITY.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(pages) + sorted(SOURCES)


@cache
def sentences_of_file(path: Path) -> list[str]:
    return sentences_of_module(tree_of(path)) if path.suffix == ".py" else sentences_of_page(path.read_text())


def to_come() -> list[str]:
    return TO_COME.read_text().split()


def sample(seed: int) -> list[tuple[Path, str]]:
    """Return ``SAMPLED`` sentences of the docstrings of the sources, chosen by the seed."""
    found = [(path, sentence) for path in sorted(SOURCES) for sentence in sentences_of_file(path)]
    return random.Random(seed).sample(found, SAMPLED)


def share_of_relative_openings() -> tuple[int, int]:
    """Return how many sentences of pages and docstrings open with a relative word, and how many there are."""
    found = [sentence for path in files() for sentence in sentences_of_file(path)]
    return sum(opens_badly(sentence, _RELATIVE) for sentence in found), len(found)


def print_sample(seed: int) -> None:
    for number, (path, sentence) in enumerate(sample(seed), 1):
        print(f"{number:3} {path.relative_to(ROOT)}: {sentence}")
    relative, all_ = share_of_relative_openings()
    print(f"{relative} of {all_} sentences open with a relative word")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--sample"]:
        print_sample(int(arguments[1]))
        return
    if arguments == ["--prune"]:
        kept = [
            name for name in to_come() if (ROOT / name).exists() and not meets_the_bound(sentences_of_file(ROOT / name))
        ]
        TO_COME.write_text("".join(f"{name}\n" for name in kept))
        print(f"{len(kept)} files still to come")
        return
    for path in [Path(name).resolve() for name in arguments] or files():
        found = sentences_of_file(path)
        bad = offenders(found)
        if bad:
            print(f"{path.relative_to(ROOT)}: {len(bad)} of {len(found)} sentences")
            print("".join(f"    {sentence[:140]}\n" for sentence in bad), end="")


if __name__ == "__main__":
    main(sys.argv[1:])

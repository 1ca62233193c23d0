"""(pure) Footnotes of a MediaWiki text: in the wiki's own form, ``words[^text^]``, or as a list with marks in HTML.

The own form holds a note once, at its first mark; further marks of the note are links with its number.  It cannot hold
a note that has lines, blocks or notes in it, and none in a heading.  A page with such a note has all of them in HTML,
since both forms count from 1.

Invariants:
    I1. A note and its first mark link to each other; every other mark links to the note.
    I2. A note without a mark is an item of a list, which nothing links to.

Knows nothing of the syntax of references; ``mediawiki_scan`` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wikka_port.markup.mediawiki_inline import inline, plain_label
from wikka_port.markup.mediawiki_pieces import Draft, Note, Piece, literal, note_place

Block = tuple[str, str]  # kind ("line", "list", "paragraph"), text
# A note of the own form cannot hold these; the last ones would end it elsewhere.
_UNFIT: Final = re.compile(
    r'\n|\[\^|\^\]|\|\||\|[=?!#_\[\]-]\||%%|\{\{|<<|>>|::c::|\A\]|[\[^]\Z|""<(?:pre|table|ul|ol|div|blockquote)\b|==+|----'
)


def note_texts(draft: Draft) -> list[str]:
    """Return the converted texts of the notes, which have marks."""
    return [_text(draft, note) for note in draft.notes]


def put_notes(draft: Draft, texts: Sequence[str], blocks: list[Block], after: Sequence[Block]) -> list[Block]:
    """Put the notes of the page into ``blocks``, and return the blocks that are to stand before those in ``after``."""
    marks = _marks_in_order(draft, (*blocks, *after), texts)
    if marks is None:
        places = (note_place(at, is_used=bool(note.marks)) for at, note in enumerate(draft.notes, 1))
        return _put_list(draft, blocks, [f"{text} {place}".rstrip() for text, place in zip(texts, places, strict=True)])
    numbers: dict[int, int] = {}
    for mark, at in marks:
        if at not in numbers:
            numbers[at] = len(numbers) + 1
            draft.replace(mark, Piece(f"[^{texts[at]}^]"))
        else:
            draft.replace(mark, Piece(f'""<sup><a href="#n-{numbers[at]}">{numbers[at]}</a></sup>""'))
    unused = [text for at, text in enumerate(texts) if at not in numbers]
    return _put_list(draft, blocks, unused)


def _text(draft: Draft, note: Note) -> str:
    shown = inline(draft, note.content) if note.content else ""
    if shown:
        return shown
    draft.unconverted["reference without text"] += 1
    return literal(f"[{plain_label(draft, note.name) or '?'}]")


def _marks_in_order(draft: Draft, blocks: Sequence[Block], texts: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return the marks, each with the index of its note, as a reader meets them; None if a note cannot be held."""
    of_mark = {mark: at for at, note in enumerate(draft.notes) for mark in note.marks}
    for text in texts:
        whole = draft.expand(text, is_final=False)
        if _UNFIT.search(whole) or not whole.strip() or any(mark in of_mark for mark in draft.marks_in(text)):
            return None
    found: list[tuple[int, int]] = []
    for _kind, text in blocks:
        marks = [(mark, of_mark[mark]) for mark in draft.marks_in(text) if mark in of_mark]
        if marks and text.startswith("=="):
            return None
        found += marks
    return found


def _put_list(draft: Draft, blocks: list[Block], items: Sequence[str]) -> list[Block]:
    """Put a numbered list where the author wants the notes, else return it with a rule above."""
    place = ("paragraph", draft.notes_mark or "")
    notes = "\n".join(f"~1) {item}" for item in items)
    if place not in blocks:
        return [("line", "----"), ("list", notes)] if items else []
    at = blocks.index(place)
    if items:
        blocks[at] = ("paragraph", notes)
        return []
    is_last = at + 1 == len(blocks) or blocks[at + 1][1].startswith("==")
    begin = at - 1 if is_last and at and blocks[at - 1][1].startswith("==") else at
    del blocks[begin : at + 1]  # with a heading that nothing else stands below
    return []

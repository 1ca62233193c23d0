"""(pure) Passages: the part of a page with the words of the query, which are marked.

A passage is the part of at most PASSAGE_CHARS characters with the most different words of the query.  If there are
several such parts, it is the one with the most occurrences, then the earliest.  It is cut at blanks.

Chinese, Japanese and Korean text is searched for its pairs and characters as it was typed, so a passage may be missed
whose characters are composed of parts.  It is cut behind its sentences and commas, for it has few blanks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import Final, NamedTuple

from wikka_port.markup.formats import WIKKA
from wikka_port.page_languages import ENGLISH
from wikka_port.search.page_text import PageText, page_text
from wikka_port.search.words import PAIRED, Word, is_paired, occurrences, stem_of

PASSAGE_CHARS: Final = 220
_READ_CHARS: Final = 200_000  # of a text; if these contain no word of the query, the text's beginning is shown
_FRAGMENT_CHARS: Final = 700  # of markup that are parsed for a passage
SEPARATOR: Final = " · "  # between a heading and the text below it
_AROUND: Final = 60  # characters shown before the first word
_SENTENCE_END: Final = re.compile(r"\. |[\u3002\uff01\uff1f]")  # the full stops and marks of Chinese and Japanese
_BREAK: Final = re.compile(r"[ \u3001\uff0c\uff1b]")  # a blank, or their commas

Piece = tuple[str, bool]  # text, whether it is marked


class Spot(NamedTuple):
    """The part of a page's markup that has the words of its passage."""

    start: int
    end: int


def spot(body: str, wanted: Collection[str], language: str = ENGLISH) -> Spot | None:
    """Return the part with the words, or None if the text has none of them.  O(len(body)), some 30 us for 8 KB."""
    first, last = _best(_hits(body[:_READ_CHARS], wanted, language))
    return Spot(first.start, last.end) if first is not None and last is not None else None


def passage(
    body: str,
    wanted: Collection[str],
    language: str = ENGLISH,
    *,
    markup: str = WIKKA,
    at: Spot | None = None,
) -> list[Piece]:
    """Return the passage of a page's text, as pieces with marks; ``at`` is its ``spot``, if the caller knows it.

    Only the passage is parsed as markup, not all of ``body``.
    """
    body = body[:_READ_CHARS]
    at = at or spot(body, wanted, language)
    start = 0 if at is None else _line_start(body, at.start)
    fragment = body[start : max(start + _FRAGMENT_CHARS, at.end if at is not None else 0)]
    plain = _without_headings(page_text(fragment, markup=markup), wanted, language)
    return _cut(plain, wanted, language, is_begun=start > 0, continues=start + len(fragment) < len(body))


def plain_passage(text: str, wanted: Collection[str], language: str = ENGLISH) -> list[Piece]:
    """Return the passage of a text without markup; its beginning if it has none of the words."""
    text = text[:_READ_CHARS]
    at = spot(text, wanted, language)
    start = 0 if at is None else _line_start(text, at.start)
    fragment = text[start : start + _FRAGMENT_CHARS]
    words_of = " ".join(fragment.split())
    if not words_of:
        return []
    return _cut(words_of, wanted, language, is_begun=start > 0, continues=start + len(fragment) < len(text))


def _without_headings(read: PageText, wanted: Collection[str], language: str) -> str:
    """Return the running text; if it has none of the words, put the headings with the words before it."""
    text = " ".join(read.text.split())
    if text and (not wanted or any(occurrences(text, wanted, language))):
        return text
    headings = [" ".join(line.split()) for line in read.headings.splitlines()]
    named = [line for line in headings if any(occurrences(line, wanted, language))]
    return SEPARATOR.join(part for part in [*(named or headings), text] if part)


def _hits(body: str, wanted: Collection[str], language: str) -> list[Word]:
    """Return the words of ``body`` with the wanted stems; words with accents may be missed."""
    pairs = sorted(filter(is_paired, wanted), key=len, reverse=True)
    spelled = sorted(stem for stem in wanted if not is_paired(stem))
    hits: list[Word] = []
    if spelled:
        begins = "|".join(re.escape(stem[: max(2, len(stem) - 1)]) for stem in spelled)
        pattern = f"(?<![^\\W_{PAIRED}])(?:{begins})(?:[^\\W{PAIRED}]|['\u2019])*"
        found = re.finditer(pattern, body, re.IGNORECASE)
        hits += (Word(stem, *hit.span()) for hit in found if (stem := stem_of(hit.group(), language)) in wanted)
    if pairs:  # neighbouring pairs overlap
        found = re.finditer(f"(?=({'|'.join(pairs)}))", body)
        hits += (Word(hit.group(1), *hit.span(1)) for hit in found)
        hits.sort(key=lambda hit: hit.start)
    return hits


def _line_start(body: str, at: int) -> int:
    """Return the beginning of the line; in a long line that of the sentence, or a break shortly before ``at``."""
    line = body.rfind("\n", 0, at) + 1
    if at - line <= _AROUND:
        return line
    sentences = [found.end() for found in _SENTENCE_END.finditer(body, max(line, at - 2 * _AROUND), at)]
    if sentences:
        return sentences[-1]
    near = _BREAK.search(body, at - _AROUND, at)
    return near.end() if near is not None else at


def _cut(plain: str, wanted: Collection[str], language: str, *, is_begun: bool, continues: bool) -> list[Piece]:
    end = len(plain)
    if end > PASSAGE_CHARS:
        end = plain.rfind(" ", PASSAGE_CHARS // 2, PASSAGE_CHARS)
        end = PASSAGE_CHARS if end < 0 else end
    pieces = marked(plain[:end], wanted, language)
    if is_begun:
        pieces.insert(0, ("… ", False))
    if continues or end < len(plain):
        pieces.append((" …", False))
    return pieces


def marked(text: str, wanted: Collection[str], language: str = ENGLISH) -> list[Piece]:
    """Return a short text as pieces, with the wanted words marked; words that touch each other have one mark."""
    spans: list[tuple[int, int]] = []
    for _, start, end in occurrences(text, wanted, language):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    pieces: list[Piece] = []
    at = 0
    for start, end in spans:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    pieces.append((text[at:], False))
    return [piece for piece in pieces if piece[0]]


def _best(hits: list[Word]) -> tuple[Word | None, Word | None]:
    """Return the first and the last hit of the passage, or None for both without a hit."""
    best: tuple[int, int] = (0, 0)
    chosen: tuple[Word | None, Word | None] = (None, None)
    inside: Counter[str] = Counter()
    low = 0
    for high, hit in enumerate(hits):
        inside[hit.stem] += 1
        while hit.end - hits[low].start > PASSAGE_CHARS - _AROUND:
            inside[hits[low].stem] -= 1
            if not inside[hits[low].stem]:
                del inside[hits[low].stem]
            low += 1
        if (weight := (len(inside), high - low)) > best:
            best, chosen = weight, (hits[low], hit)
    return chosen

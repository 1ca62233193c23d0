"""A search that reads every page, to compare with the index; it shares only the splitting into words with the index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

from wikka_port.names import InvalidName, normalise
from wikka_port.schema import folded
from wikka_port.search.page_text import page_text, title_text
from wikka_port.search.query import Query
from wikka_port.search.words import words


class SearchedPage(NamedTuple):
    name: str
    body: str
    author: str
    time_ms: int
    linked: Collection[str]  # names of the pages that it links to
    autolink: bool = True
    language: str = "en"


def found(query: Query, pages: Iterable[SearchedPage]) -> set[str]:
    return set() if query.is_empty else {page.name for page in pages if _matches(query, page)}


def _matches(query: Query, page: SearchedPage) -> bool:
    parts = _stems(page.name, page.body, page.autolink, page.language)

    def says(phrase: tuple[str, ...]) -> bool:
        return any(_said(phrase).search(part) for part in parts)

    return (
        all(any(says(phrase) for phrase in clause) for clause in query.clauses)
        and not any(says(phrase) for phrase in query.excluded)
        and folded(page.name).startswith(folded(query.prefix))
        and (not query.author or folded(page.author) == folded(query.author))
        and (query.from_ms is None or page.time_ms >= query.from_ms)
        and (query.before_ms is None or page.time_ms < query.before_ms)
        and (not query.category or bool(_categories(query.category) & set(page.linked)))
    )


@lru_cache(maxsize=2_000)
def _said(phrase: tuple[str, ...]) -> re.Pattern[str]:
    """The phrase among stems with blanks between; a single character of Chinese at its edges may be one of a pair."""
    words = [re.escape(word) for word in phrase]
    if _is_alone(phrase[0]):
        words[0] = f"[^ ]?{words[0]}"
    if _is_alone(phrase[-1]):
        words[-1] = f"{words[-1]}[^ ]?"
    return re.compile(f" {' '.join(words)} ")


def _is_alone(word: str) -> bool:
    return len(word) == 1 and unicodedata.name(word, "").startswith(("CJK ", "HIRAGANA ", "KATAKANA ", "HANGUL "))


@lru_cache(maxsize=20_000)
def _stems(name: str, body: str, autolink: bool, language: str) -> list[str]:
    plain = page_text(body, autolink=autolink)
    return [" ".join(["", *(word.stem for word in words(part, language)), ""]) for part in (title_text(name), *plain)]


def _categories(name: str) -> set[str]:
    titles = {f"Category{name}", f"Category:{name}"}
    if folded(name).startswith("category"):
        titles.add(name)
    found = set()
    for title in titles:
        try:
            found.add(normalise(title))
        except InvalidName:
            continue
    return found

"""The order of the pages that were found (pure): BM25 over title, headings and text.

A word in the title counts as TITLE of the text, one in a heading as HEADING (BM25F: the weighted times are added up
before they are dampened).  Equal ones stand by how many pages link to them, as far as that was counted,
then by their keys, so a list has one order.
Robertson and Zaragoza, The Probabilistic Relevance Framework, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from typing import Final

from wikka_port.search.postings import Posting

TITLE: Final = 8.0
HEADING: Final = 3.0
K1: Final = 1.2
B: Final = 0.6

Found = Mapping[str, Mapping[bytes, Posting]]  # stem -> page -> what the page says of it


def scores_of(pages: Iterable[bytes], found: Found, count: int) -> dict[bytes, float]:
    """``count``: of all pages of the wiki.  O(pages times stems)."""
    chosen = list(pages)
    lengths = [1 << posting.length for postings in found.values() for posting in postings.values()]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    scores = dict.fromkeys(chosen, 0.0)
    for postings in found.values():
        rarity = math.log(1 + max(0.0, count - len(postings) + 0.5) / (len(postings) + 0.5))
        for page in chosen:
            posting = postings.get(page)
            if posting is not None:
                scores[page] += rarity * _dampened(posting, mean)
    return scores


def ordered(scores: Mapping[bytes, float]) -> list[bytes]:
    """Return the best first."""
    return sorted(scores, key=lambda page: (-scores[page], page))


def ties(order: Sequence[bytes], scores: Mapping[bytes, float], most: int) -> list[list[bytes]]:
    """Pages with the same score, from the best on: as many groups, whole ones, as have ``most`` pages together."""
    found: list[list[bytes]] = []
    left = most
    for _, alike in groupby(order, key=lambda page: scores[page]):
        group = list(islice(alike, left + 1))
        if len(group) > left:
            break
        if len(group) > 1:
            found.append(group)
            left -= len(group)
    return found


def with_links(order: Sequence[bytes], tied: Iterable[Sequence[bytes]], links: Mapping[bytes, int]) -> list[bytes]:
    """``order`` with the pages of each tie by how many pages link to them."""
    places = {page: at for at, page in enumerate(order)}
    made = list(order)
    for group in tied:
        first = places[group[0]]
        made[first : first + len(group)] = sorted(group, key=lambda page: (-links.get(page, 0), page))
    return made


def _dampened(posting: Posting, mean: float) -> float:
    times = TITLE * posting.title + HEADING * posting.headings + posting.text
    return times / (times + K1 * (1 - B + B * (1 << posting.length) / mean))

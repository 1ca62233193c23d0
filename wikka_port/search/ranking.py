"""The order of the pages that were found (pure): BM25 over title, headings and text.

A word in the title counts as TITLE of the text, one in a heading as HEADING (BM25F: the weighted times are added up
before they are dampened).  The page with the smaller key comes first of equal ones, so a list has one order.
Robertson and Zaragoza, The Probabilistic Relevance Framework, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from wikka_port.search.postings import Posting

TITLE: Final = 8.0
HEADING: Final = 3.0
K1: Final = 1.2
B: Final = 0.6

Found = Mapping[str, Mapping[bytes, Posting]]  # stem -> page -> what the page says of it


def ranked(pages: Iterable[bytes], found: Found, count: int) -> list[bytes]:
    """``pages``, the best first; ``count``: of all pages of the wiki.  O(pages times stems)."""
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
    return sorted(chosen, key=lambda page: (-scores[page], page))


def _dampened(posting: Posting, mean: float) -> float:
    times = TITLE * posting.title + HEADING * posting.headings + posting.text
    return times / (times + K1 * (1 - B + B * (1 << posting.length) / mean))

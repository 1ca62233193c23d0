"""(pure) The orders in which comments are shown, and the parts of a long list.

    threaded   answers below what they answer; the oldest thread first
    oldest     by number, the first one first
    newest     by number, the last one first

Numbers have no gaps, so a part of a list by number is a range of numbers.  A part of the threaded list of a page with
more than PART comments begins after a path (``comment_lists``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wikka_port.comments.comment_rows import NUMBER_CHARS, Comment

THREADED, OLDEST, NEWEST = "threaded", "oldest", "newest"
ORDERS: Final = (THREADED, OLDEST, NEWEST)
PART: Final = 100  # comments that are shown together
NEAR: Final = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page's comments, in the order in which they are shown."""

    comments: Sequence[Comment]
    order: str
    part: int = 1  # counted from 1; 0: of threads, after a path
    parts: int = 1
    after: str = ""  # the path after which the next part of the threads begins; "": there is none

    @property
    def near(self) -> list[int]:
        """The parts to which a list links: the first, the last, and those beside this one."""
        wanted = {1, self.parts, *range(self.part - NEAR, self.part + NEAR + 1)}
        return sorted(one for one in wanted if 1 <= one <= self.parts)


def parts_of(number: int) -> int:
    """Return the number of parts of ``number`` comments."""
    return max(1, -(-number // PART))


def range_of(number: int, order: str, part: int) -> tuple[int, int]:
    """Return the first and the last number of a part, of comments up to ``number``.

    The first part of the newest ones is full, so its parts move with each further comment.
    """
    if order == NEWEST:
        last = number - (part - 1) * PART
        return max(1, last - PART + 1), last
    first = 1 + (part - 1) * PART
    return first, min(number, first + PART - 1)


def part_with(number: int, order: str, wanted: int) -> int:
    """Return the part that has the comment ``wanted``, of comments up to ``number``."""
    return 1 + ((number - wanted) if order == NEWEST else (wanted - 1)) // PART


def in_order(comments: Sequence[Comment], order: str) -> list[Comment]:
    if order == THREADED:
        return sorted(comments, key=lambda one: one.path)
    return sorted(comments, key=lambda one: one.number, reverse=order == NEWEST)


def visible(comments: Sequence[Comment], order: str) -> list[Comment]:
    """Return the comments without removed and held ones, except those removed ones that keep a thread together."""
    if order != THREADED:
        return [one for one in comments if one.is_visible]
    needed = {
        one.path[:end] for one in comments if one.is_visible for end in range(NUMBER_CHARS, len(one.path), NUMBER_CHARS)
    }
    return [one for one in comments if one.is_visible or one.path in needed]

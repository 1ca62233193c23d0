"""The text that an edit posts, made from a source of chance that the caller seeded (pure).

A body has a heading, paragraphs of plain words and forced links ``[[Name]]`` to pages
of the wiki, 2 to 8 KB in all.  Other markup is left out on purpose, because a body must mean the same to every wiki.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

MIN_BYTES: Final = 2_000
MAX_BYTES: Final = 8_000
NAME_CHARS: Final = 300  # of the heading
WORDS_A_LINK: Final = 60  # about ten links in the median body, as the thesis's synthetic pages have
WORDS_A_PARAGRAPH: Final = 90

_PLAIN: Final = """
    river stone market letter winter garden bridge harbour table window morning evening history people language
    village church school mountain forest island king queen century early later often seldom between under over
    built known called found wrote sold carried opened closed moved lived worked small large old new northern
    southern eastern western first second third last common rare open quiet long short light dark and or but with
    without from into the a an of in on by for near far
"""
WORDS: Final = tuple(_PLAIN.split())


class Rng(Protocol):
    """The interface of a source of chance; ``random.Random`` is one."""

    def randint(self, a: int, b: int) -> int: ...

    def choice(self, seq: Sequence[str]) -> str: ...


_MARK: Final = re.compile(r"\A=====.{0,300}=====\r?\n\r?\nThis is edit \d+ of the replay\.\r?\n")


def is_of_a_replay(text: str) -> bool:
    """Return whether ``text`` begins as ``edit_body`` makes it, so that it may be overwritten."""
    return _MARK.match(text.lstrip()) is not None


def edit_body(rng: Rng, page: str, number: int, names: Sequence[str]) -> str:
    """Return the text of edit ``number`` of ``page``, linking to some of ``names``."""
    wanted = rng.randint(MIN_BYTES, MAX_BYTES)
    parts = [f"====={_plain(page)[:NAME_CHARS]}=====\n\nThis is edit {number} of the replay.\n\n"]
    size, words = len(parts[0]), 0
    links = [name for name in names if _can_be_linked(name)]
    while size < wanted:
        words += 1
        if links and words % WORDS_A_LINK == 0:
            piece = f"[[{rng.choice(links)}]] "
        elif words % WORDS_A_PARAGRAPH == 0:
            piece = rng.choice(WORDS) + ".\n\n"
        else:
            piece = rng.choice(WORDS) + " "
        parts.append(piece)
        size += len(piece.encode())
    return "".join(parts).rstrip() + ".\n"


def _plain(name: str) -> str:
    return name.replace("=", " ").replace("\n", " ")


def _can_be_linked(name: str) -> bool:
    # these end or split a forced link in WikkaWiki's markup and MediaWiki's alike
    return bool(name) and not any(mark in name for mark in "[]|{}\n")

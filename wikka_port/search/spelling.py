"""Words one letter away from another (pure): one letter wrong, missing, too much, or two that changed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wikka_port.page_languages import ENGLISH
from wikka_port.schema import folded
from wikka_port.search.words import stem_of

SHORTEST: Final = 4  # a shorter word has too many neighbours to say which one was meant
LONGEST: Final = 24
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def neighbours(word: str, languages: Sequence[str] = (ENGLISH,)) -> dict[str, str]:
    """Stem -> the word that it came from, for each neighbour with another stem.

    At most 53 times the word's length, for each language that has another stem.
    """
    bare = folded(word)
    if not SHORTEST <= len(bare) <= LONGEST or not bare.isalpha():
        return {}
    letters = dict.fromkeys(_LETTERS + bare)
    cuts = [(bare[:at], bare[at:]) for at in range(len(bare) + 1)]
    others = [head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1]
    others += [head + tail[1:] for head, tail in cuts if tail]
    others += [head + letter + tail[1:] for head, tail in cuts if tail for letter in letters]
    others += [head + letter + tail for head, tail in cuts for letter in letters]
    own = {stem_of(bare, language) for language in languages}
    found: dict[str, str] = {}
    for other in others:
        for language in languages:
            stem = stem_of.__wrapped__(other, language)  # not remembered: nearly all are no words
            if stem and stem not in own:
                found[stem] = max(found.get(stem, ""), other, key=len)
    return found

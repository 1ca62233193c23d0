"""Words one letter away from another (pure): one letter wrong, missing, too much, or two that changed places.

A letter that is put in is one of the alphabets that the word's letters are of, or one that the word has already.  A
word of Latin letters counts without its accents, as its stem does; in another alphabet marks make letters (й is not и),
which a stemmer has to see.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Final

from wikka_port.page_languages import ENGLISH
from wikka_port.schema import folded
from wikka_port.search.words import stem_of

SHORTEST: Final = 4  # a shorter word has too many neighbours to say which one was meant
LONGEST: Final = 24
LETTERS_MAX: Final = 72  # that are tried at a place, of an alphabet or of two
MOST: Final = 2_000  # stems of one word: each is searched for in the index
ALPHABETS: Final = (
    "abcdefghijklmnopqrstuvwxyzæøđł",
    "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґўђјљњћџ",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "אבגדהוזחטיכלמנסעפצקרשתךםןףץ",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئىةپچژکگیںہھٹڈڑے",
    "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
    "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृेैोौ्ंँः",
    "অআইঈউঊঋএঐওঔকখগঘঙচছজঝঞটঠডঢণতথদধনপফবভমযরলশষসহািীুূৃেৈোৌ্ংঃঁ",
    "அஆஇஈஉஊஎஏஐஒஓஔகஙசஞடணதநபமயரலவழளறனஜஷஸஹாிீுூெேைொோௌ்",
)


def neighbours(word: str, languages: Sequence[str] = (ENGLISH,)) -> dict[str, str]:
    """Stem -> the word that it came from, for up to MOST neighbours with another stem.

    At most 2 * LETTERS_MAX + 2 words are tried for each place of the word, for each language.
    """
    bare = folded(word)
    plain = bare if bare.isascii() else unicodedata.normalize("NFC", word.casefold())
    if not SHORTEST <= len(plain) <= LONGEST or not all(map(_is_letter, plain)):
        return {}
    own = {stem_of(plain, language) for language in languages}
    found: dict[str, str] = {}
    for other in _changed(plain, _letters(plain)):
        for language in languages:
            stem = stem_of.__wrapped__(other, language)  # not remembered: nearly all are no words
            if stem and stem not in own:
                found[stem] = max(found.get(stem, ""), other, key=len)
        if len(found) >= MOST:
            break
    return found


def _is_letter(character: str) -> bool:
    """Whether it is a letter, or a mark that belongs to one."""
    return character.isalpha() or unicodedata.category(character)[0] == "M"


def _letters(word: str) -> list[str]:
    own = dict.fromkeys(word)
    alphabets = (alphabet for alphabet in ALPHABETS if not _of(alphabet).isdisjoint(own))
    return list(dict.fromkeys(chain(own, *alphabets)))[:LETTERS_MAX]


@cache
def _of(alphabet: str) -> frozenset[str]:
    return frozenset(alphabet)


def _changed(word: str, letters: Sequence[str]) -> Iterable[str]:
    """Yield the likeliest slips first."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1)
    yield from (head + tail[1:] for head, tail in cuts if tail)
    for letter in letters:  # letters of the word itself come first
        yield from (head + letter + tail[1:] for head, tail in cuts if tail)
        yield from (head + letter + tail for head, tail in cuts)

"""(pure) Words, their stems, and words one letter away.

A word is a run of letters, digits and the marks that belong to letters; an apostrophe inside a word belongs to it.
Case and accents do not count (``schema.folded``).  Snowball computes the stem of a word by the language of its page, so
that "landings" finds "landing".  Text in Chinese, Japanese or Korean is cut into pairs of neighbouring characters; a
single such character is a word.  The index has each character of a pair besides, so that one character is found
wherever it stands.

A neighbour of a word has one letter wrong, missing or added, or two neighbouring letters swapped.  Letters of the
word's alphabets, and letters that the word has already, are tried as wrong or added letters.  Latin words and their
stems count without accents; in other alphabets marks make letters (й is not и), so the stemmer must see them.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Final, NamedTuple

import Stemmer  # type: ignore[import-not-found]

from wikka_port.page_languages import ENGLISH, algorithm
from wikka_port.schema import folded

WORD_CHARS: Final = 40  # a longer word counts by its beginning
_REMEMBERED: Final = 65_536  # stems of words seen before: some 10 MB
# Characters that are taken in pairs, as a part of a class of characters.
PAIRED: Final = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PAIRED: Final = re.compile(f"[{PAIRED}]+")


class Word(NamedTuple):
    stem: str
    start: int  # in the text
    end: int


class Terms(NamedTuple):
    """Stems and characters that the index has of a text."""

    stems: list[str]  # of ``words``, in order
    characters: list[str]  # those of pairs, each as often as it stands in the text


def words(text: str, language: str = ENGLISH) -> Iterator[Word]:
    """Yield the words of a text in order.  O(len(text))."""
    for run in _runs().finditer(text.replace("_", " ")):
        typed, start, end = run.group(), *run.span()
        word = _composed(typed)
        if word.isascii() or not _PAIRED.search(word):
            if stem := stem_of(word, language):
                yield Word(stem, start, end)
        elif word == typed:
            yield from _mixed(word, start, language)
        else:  # the positions of pairs in the original text are unknown
            yield from (Word(one.stem, start, end) for one in _mixed(word, 0, language))


def stems(text: str, language: str = ENGLISH) -> list[str]:
    """Return the stems of ``words``, without positions; some five times as fast."""
    return terms(text, language).stems


def terms(text: str, language: str = ENGLISH) -> Terms:
    """Return the stems of ``words``, and the characters of their pairs.  O(len(text))."""
    found, characters = list[str](), list[str]()
    for typed in _runs().findall(text.replace("_", " ")):
        word = _composed(typed)
        if word.isascii() or not _PAIRED.search(word):
            if stem := stem_of(word, language):
                found.append(stem)
        else:
            found += (one.stem for one in _mixed(word, 0, language))
            characters += (one for run in _PAIRED.findall(word) if len(run) > 1 for one in folded(run))
    return Terms(found, characters)


def is_paired(stem: str) -> bool:
    """Return whether a stem, or the beginning of a typed word, is of characters that are taken in pairs."""
    return _PAIRED.match(stem) is not None


def is_character(stem: str) -> bool:
    """Return whether a stem is a single character of those that are taken in pairs."""
    return len(stem) == 1 and is_paired(stem)


def occurrences(text: str, wanted: Collection[str], language: str = ENGLISH) -> Iterator[Word]:
    """Yield the words of a text with a stem of ``wanted``, and the characters of pairs that are among them.

    By their beginnings; what overlaps is yielded as it is, and a character may come twice.
    """
    alone = {stem for stem in wanted if is_character(stem)}
    for word in words(text, language):
        if word.stem in wanted:
            yield word
        elif alone and is_paired(word.stem):
            is_exact = word.end - word.start == len(word.stem)  # else the position is that of the whole run
            for at, character in enumerate(word.stem):
                if character in alone:
                    start, end = (word.start + at, word.start + at + 1) if is_exact else (word.start, word.end)
                    yield Word(character, start, end)


def _composed(run: str) -> str:
    """Compose letters that were typed in parts, so that a Korean syllable is one character, as the pairs need it."""
    return run if run.isascii() else unicodedata.normalize("NFC", run)


def _mixed(run: str, begin: int, language: str) -> Iterator[Word]:
    """Yield the words of a run that has characters to be taken in pairs."""
    at = 0
    for paired in _PAIRED.finditer(run):
        start, end = paired.span()
        if start > at and (stem := stem_of(run[at:start], language)):
            yield Word(stem, begin + at, begin + start)
        for first in range(start, max(start + 1, end - 1)):
            last = min(first + 2, end)
            yield Word(folded(run[first:last]), begin + first, begin + last)
        at = end
    if at < len(run) and (stem := stem_of(run[at:], language)):
        yield Word(stem, begin + at, begin + len(run))


@lru_cache(maxsize=_REMEMBERED)
def stem_of(word: str, language: str = ENGLISH) -> str:
    """Return the stem of one word, or "" if it has only marks.

    A Latin word is stemmed without its accents, which not everybody types.  In other alphabets marks make letters, so
    the stemmer must see them.
    """
    typed = word.replace("\u2019", "'")
    bare = folded(typed)[:WORD_CHARS]
    stemmer = _stemmer(language)
    if stemmer is None or (language == ENGLISH and not bare.isascii()):
        stem = bare
    elif bare.isascii():
        stem = stemmer.stemWord(bare)
    else:
        stem = folded(stemmer.stemWord(typed.casefold()[:WORD_CHARS]))
    return sys.intern(stem.strip("'"))


@cache
def _stemmer(language: str) -> Stemmer.Stemmer | None:
    name = algorithm(language)
    return Stemmer.Stemmer(name) if name else None


@lru_cache(maxsize=1)
def _runs() -> re.Pattern[str]:
    """Return the pattern of runs; made only when needed, since it reads all characters of Unicode's first plane."""
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
    letters = f"[\\w{re.escape(marks)}]++"
    return re.compile(f"{letters}(?:['\u2019]{letters})*+")


SPELLED_MIN: Final = 4  # a shorter word has too many neighbours to guess the intended one
SPELLED_MAX: Final = 24
LETTERS_MAX: Final = 72  # tried at each position, of one or two alphabets
NEIGHBOURS_MAX: Final = 2_000  # stems of one word: each is searched for in the index
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
    """Return up to NEIGHBOURS_MAX neighbours of a word, by stem; those with the word's own stem are left out.

    At most 2 * LETTERS_MAX + 2 words are tried for each position in the word, for each language.
    """
    bare = folded(word)
    plain = bare if bare.isascii() else unicodedata.normalize("NFC", word.casefold())
    if not SPELLED_MIN <= len(plain) <= SPELLED_MAX or not all(map(_is_letter, plain)):
        return {}
    own = {stem_of(plain, language) for language in languages}
    found: dict[str, str] = {}
    for other in _changed(plain, _letters(plain)):
        for language in languages:
            stem = stem_of.__wrapped__(other, language)  # not remembered: nearly all are no words
            if stem and stem not in own:
                found[stem] = max(found.get(stem, ""), other, key=len)
        if len(found) >= NEIGHBOURS_MAX:
            break
    return found


def _is_letter(character: str) -> bool:
    """Return whether ``character`` is a letter, or a mark that belongs to a letter."""
    return character.isalpha() or unicodedata.category(character)[0] == "M"


def _letters(word: str) -> list[str]:
    own = dict.fromkeys(word)
    alphabets = (alphabet for alphabet in ALPHABETS if not _of(alphabet).isdisjoint(own))
    return list(dict.fromkeys(chain(own, *alphabets)))[:LETTERS_MAX]


@cache
def _of(alphabet: str) -> frozenset[str]:
    return frozenset(alphabet)


def _changed(word: str, letters: Sequence[str]) -> Iterable[str]:
    """Yield the neighbours of a word, the likeliest slips first."""
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1)
    yield from (head + tail[1:] for head, tail in cuts if tail)
    for letter in letters:  # letters of the word itself come first
        yield from (head + letter + tail[1:] for head, tail in cuts if tail)
        yield from (head + letter + tail for head, tail in cuts)

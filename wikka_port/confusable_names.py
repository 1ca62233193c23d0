"""Names that look like a different name (pure): refused for new pages and signatures, kept if an import brings them.

The rules are those of Unicode's UTS 39; its data of confusable characters and of scripts come from the library
``confusable_homoglyphs``.  A name is refused if it has

    an invisible character      zero width, soft hyphen, filler; joiners are allowed where a script or an emoji needs
                                them
    a letter in a special form  full-width and mathematical letters and digits
    scripts mixed in a word     if a letter looks like a Latin one; Japanese, Chinese and Korean beside Latin are no
                                mixture
    two kinds of digits

``similar_names`` gives ordinary names that look like the name of a new page.  The new name is refused only if a page
has one of them.  Such names differ in a final dot, or in a word that is Cyrillic or Greek as a whole and could be read
as Latin.  Letters that look alike within one alphabet (I and l, O and 0) are not compared: ordinary names differ in
such letters.

Cost: for ASCII a check of the last character only; else some microseconds a letter.  No page view pays it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wikka_port.texts import N_, _

_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # invisible, though not in category Cf
# Visible, though in category Cf.
_SEEN_FORMATS: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")
_JOINERS: Final = "\u200c\u200d"
_VARIATION: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180f]")
_OTHER_FORMS: Final = ("<wide>", "<font>", "<narrow>")
_WORD: Final = re.compile(r"[^\W\d_]+")
_EAST_ASIAN: Final = frozenset({"HAN", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HANGUL"})
_COMMON: Final = frozenset({"COMMON", "INHERITED"})
_FINAL: Final = ".·․。｡"
_INITIALS: Final = 2  # letters before a final dot that is part of a name, as in "Jr." and "J."


@dataclass(frozen=True, slots=True)
class Confusable:
    like: str  # what a reader takes it for
    why: str

    def __str__(self) -> str:
        said = N_("It looks like “{like}”, but {why}. Please choose a name that cannot be mistaken.")
        return _(said, like=self.like, why=self.why)


def find_confusable(name: str) -> Confusable | None:
    """Return why no page or person should have this name, or None if it may be used."""
    if name.isascii():
        return None
    hidden = next((place for place, _character in enumerate(name) if _is_hidden(name, place)), None)
    if hidden is not None:
        called = _called(name[hidden])
        return Confusable(plain(name), _("has the invisible character {character} in it", character=called))
    for character in name:
        is_other_form = unicodedata.decomposition(character).startswith(_OTHER_FORMS)
        if character.isalnum() and is_other_form and _to_ascii(character):
            return Confusable(plain(name), _("has {character} in it", character=_called(character)))
    zeros = {ord(character) - unicodedata.decimal(character) for character in name if character.isdecimal()}
    if len(zeros) > 1:
        return Confusable(plain(name), _("has digits of different scripts in it"))
    for word in _WORD.findall(name):
        if not word.isascii() and _is_mixed(word):
            latin = _as_latin(word)
            if latin != word:
                why = _("has letters of different alphabets in “{word}”", word=word)
                return Confusable(name.replace(word, latin), why)
    return None


def find_signature_confusable(name: str) -> Confusable | None:
    """Return why nobody should sign with ``name``, or None if it may be used.

    The rules are those of ``find_confusable``, and a final dot is refused, too: the name could imitate the one without
    the dot, and a reader cannot look up who signs.
    """
    bare = name.rstrip(_FINAL + " ")
    last = re.split(r"[\s.]", bare)[-1]
    if bare and bare != name and len(last) > _INITIALS:
        return Confusable(bare, _("ends with a dot"))
    return find_confusable(name)


def similar_names(name: str) -> list[str]:
    """Return ordinary names that look like ``name``; only one of all these names should be a page."""
    bare = name.rstrip(_FINAL + " ")
    latin = name if name.isascii() else _WORD.sub(lambda word: _as_latin(word.group()), name)
    found = [other for other in (bare, latin) if other and other != name]
    return [other for other in found if other == bare or other.isascii()]


def without_hidden(text: str) -> str:
    """Return ``text`` without invisible characters."""
    return "".join(character for place, character in enumerate(text) if not _is_hidden(text, place))


def latin_reading(word: str) -> str:
    """Return the Latin word that a reader takes ``word`` for, or ``word`` if one of its letters looks like none."""
    latin = _as_latin(word)
    return latin if latin.isascii() else word


def has_mixed_scripts(word: str) -> bool:
    """Return whether letters of several alphabets stand in a word, which reads as a Latin one."""
    return not word.isascii() and _is_mixed(word) and latin_reading(word).isascii()


def plain(name: str) -> str:
    """Return ``name`` without invisible characters, its letters and digits in their usual form."""
    usual = unicodedata.normalize("NFKC", without_hidden(name))
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in usual).rstrip(_FINAL + " ")


def _is_hidden(name: str, place: int) -> bool:
    character = name[place]
    if character in _JOINERS:
        before = name[place - 1] if place else " "
        return not (ord(before) > 0x5FF and (before.isalpha() or unicodedata.category(before)[0] in "MS"))
    if _VARIATION.match(character):
        return not (place and ord(name[place - 1]) > 0xFF)
    return character in _FILLERS or (unicodedata.category(character) == "Cf" and character not in _SEEN_FORMATS)


def _called(character: str) -> str:
    return f"U+{ord(character):04X} ({unicodedata.name(character, _('without a name'))})"


def _to_ascii(character: str) -> bool:
    return unicodedata.normalize("NFKC", character).isascii()


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    from confusable_homoglyphs import categories  # its tables take 20 ms to load: not for a wiki in ASCII

    return str(categories.alias(character))


def _is_mixed(word: str) -> bool:
    scripts = {_script(character) for character in word} - _COMMON
    return len(scripts) > 1 and not scripts <= _EAST_ASIAN | {"LATIN"}


def _as_latin(word: str) -> str:
    """Return ``word`` with each letter that looks like a Latin one replaced by that Latin letter."""
    return "".join(_latin(character) for character in word)


@lru_cache(maxsize=4096)
def _latin(character: str) -> str:
    from confusable_homoglyphs import confusables

    if character.isascii() or _script(character) in ("LATIN", *_COMMON):
        return character
    found = confusables.is_confusable(character, greedy=True, preferred_aliases=[]) or []
    alike = [one["c"] for entry in found for one in entry["homoglyphs"] if one["c"].isascii() and one["c"].isalpha()]
    same_case = [letter for letter in alike if letter.isupper() == character.isupper()]
    return str((same_case or alike or [character])[0])
